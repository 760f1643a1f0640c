package bson

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// An encoder is the state of one encoding: the options and how deep it is.
type encoder struct {
	cfg   *config
	depth int    // documents and arrays around
	held  int    // values held by interfaces around
	buf   []byte // scratch, for results that are copied out
	maps  *[]int // where documents of random order begin, see AppendValueMaps; nil: nobody asks
}

// note remembers that n keys of the document that begins at start come from a map.
func (e *encoder) note(start, n int) {
	if e.maps != nil && n > 1 {
		*e.maps = append(*e.maps, start)
	}
}

// enter is called before every document and array; leave after it.
func (e *encoder) enter() error {
	if e.depth >= e.cfg.maxDepth {
		return &EncodeError{Err: errTooDeep}
	}
	e.depth++
	return nil
}

func (e *encoder) leave() { e.depth-- }

// checkKey returns an error if key cannot be a key. Keys come out of maps and D: they may hold
// anything.
func checkKey(key string) error {
	if plainKey(viewBytes(key)) {
		return nil
	}
	if strings.IndexByte(key, 0) >= 0 {
		return &EncodeError{Err: fmt.Errorf("key %q %w", key, errNUL)}
	}
	if !utf8.ValidString(key) {
		return &EncodeError{Err: fmt.Errorf("key %q %w", key, errUTF8)}
	}
	return nil
}

// appendKey appends a key and its NUL.
func appendKey(dst []byte, key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return dst, err
	}
	return append(append(dst, key...), 0), nil
}

// appendText appends a string's value if it is valid UTF-8.
func appendText(dst []byte, s string) ([]byte, error) {
	if !validText(viewBytes(s)) {
		return dst, errUTF8
	}
	at := len(dst)
	size := 4 + len(s) + 1
	if cap(dst)-at < size {
		dst = grow(dst, size)
	}
	dst = dst[:at+size]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(s)+1))
	copy(dst[at+4:], s)
	dst[at+size-1] = 0
	return dst, nil
}

// grow makes room for n more bytes. It at least doubles dst, where append adds a quarter to a large
// slice: a document of megabytes would be copied many times over.
func grow(dst []byte, n int) []byte { return slices.Grow(dst, max(n, cap(dst))) }

func appendCString(dst []byte, s string) ([]byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return dst, errNUL
	}
	if !utf8.ValidString(s) {
		return dst, errUTF8
	}
	dst = append(dst, s...)
	return append(dst, 0), nil
}

// appendInt appends n as an int32 if small allows it and it fits, else as an int64.
func appendInt(dst []byte, n int64, small bool) (Type, []byte, error) {
	if small && n == int64(int32(n)) {
		return TypeInt32, AppendInt32Value(dst, int32(n)), nil
	}
	return TypeInt64, AppendInt64Value(dst, n), nil
}

func appendUint(dst []byte, n uint64, small bool) (Type, []byte, error) {
	if n > math.MaxInt64 {
		return 0, dst, errOverflow(n)
	}
	return appendInt(dst, int64(n), small)
}

func appendTime(dst []byte, t time.Time) (Type, []byte, error) {
	const most = math.MaxInt64 / 1000
	if s := t.Unix(); s >= most || s <= -most {
		return 0, dst, errOverflow(t)
	}
	return TypeDateTime, AppendInt64Value(dst, t.UnixMilli()), nil
}

func appendNumber(dst []byte, n json.Number, fl flags) (Type, []byte, error) {
	if i, err := n.Int64(); err == nil {
		return appendInt(dst, i, fl&flagMinSize != 0)
	}
	f, err := n.Float64()
	if err != nil {
		return 0, dst, err
	}
	if !strings.ContainsAny(string(n), ".eE") {
		return 0, dst, errOverflow(n)
	}
	return TypeDouble, AppendDoubleValue(dst, f), nil
}

func appendRegexValue(dst []byte, r Regex) (out []byte, err error) {
	if out, err = appendCString(dst, r.Pattern); err == nil {
		out, err = appendCString(out, sortOptions(r.Options))
	}
	return out, err
}

func appendDBPointerValue(dst []byte, p DBPointer) ([]byte, error) {
	dst, err := appendText(dst, p.DB)
	if err != nil {
		return dst, err
	}
	return append(dst, p.Pointer[:]...), nil
}

// appendRaw appends an encoded document after a look at its frame; nil is an empty one.
func appendRaw(dst []byte, r Raw) ([]byte, error) {
	if r == nil {
		return append(dst, 5, 0, 0, 0, 0), nil
	}
	doc, rest, err := ReadDocument(r)
	if err != nil {
		return dst, err
	}
	if len(rest) != 0 {
		return dst, fmt.Errorf("%d bytes after the document", len(rest))
	}
	return append(dst, doc...), nil
}

func appendRawValue(dst []byte, v RawValue) (Type, []byte, error) {
	if v.Type == 0 {
		return 0, dst, errors.New("RawValue has no type")
	}
	dst, err := appendChecked(dst, v.Type, v.Value)
	return v.Type, dst, err
}

func (e *encoder) appendCodeWithScope(dst []byte, c CodeWithScope, fl flags) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, err := appendText(dst, string(c.Code))
	if err != nil {
		return dst, err
	}
	if c.Scope == nil {
		dst = append(dst, 5, 0, 0, 0, 0)
	} else {
		t, out, err := e.appendAny(dst, c.Scope, fl)
		if err != nil {
			return dst, err
		}
		if t != TypeEmbeddedDocument {
			return dst, errors.New("scope is not a document")
		}
		dst = out
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, nil
}

// appendD appends a document. Nil is an empty one: the caller decides about null.
func (e *encoder) appendD(dst []byte, d D, fl flags) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range d {
		var err error
		if dst, err = e.appendElement(dst, d[i].Key, d[i].Value, fl); err != nil {
			return dst, err
		}
	}
	e.leave()
	return EndDocument(dst, start), nil
}

// appendM is appendD for maps; the order is whatever the map gives.
func (e *encoder) appendM(dst []byte, m M, fl flags) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	start := len(dst)
	e.note(start, len(m))
	dst = append(dst, 0, 0, 0, 0)
	for key, v := range m {
		var err error
		if dst, err = e.appendElement(dst, key, v, fl); err != nil {
			return dst, err
		}
	}
	e.leave()
	return EndDocument(dst, start), nil
}

// appendElement appends a key and its value.
func (e *encoder) appendElement(dst []byte, key string, v any, fl flags) ([]byte, error) {
	// Room for the key and any value of fixed size, so that they are stored without a further look.
	pos := len(dst)
	value := pos + 1 + len(key) + 1
	if cap(dst) < value+8 {
		dst = grow(dst, value+8-pos)
	}
	dst = dst[:value]
	copy(dst[pos+1:], key)
	dst[value-1] = 0
	if err := checkKey(key); err != nil {
		return dst, under(key, err)
	}
	if !e.cfg.special {
		switch v := v.(type) {
		case string:
			dst[pos] = byte(TypeString)
			out, err := appendText(dst, v)
			if err != nil {
				return dst, under(key, encodeErr(reflect.TypeFor[string](), err))
			}
			return out, nil
		case int32:
			dst[pos] = byte(TypeInt32)
			dst = dst[:value+4]
			binary.LittleEndian.PutUint32(dst[value:], uint32(v))
			return dst, nil
		case float64:
			dst[pos] = byte(TypeDouble)
			dst = dst[:value+8]
			binary.LittleEndian.PutUint64(dst[value:], math.Float64bits(v))
			return dst, nil
		case int64:
			if fl&flagMinSize == 0 {
				dst[pos] = byte(TypeInt64)
				dst = dst[:value+8]
				binary.LittleEndian.PutUint64(dst[value:], uint64(v))
				return dst, nil
			}
		}
	}
	t, out, err := e.appendAny(dst, v, fl)
	if err != nil {
		return dst, under(key, encodeErr(reflect.TypeOf(v), err))
	}
	out[pos] = byte(t)
	return out, nil
}

// appendA is appendD for arrays.
func (e *encoder) appendA(dst []byte, a []any, fl flags) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range a {
		at := len(dst)
		dst = appendIndex(append(dst, 0), i)
		t, out, err := e.appendAny(dst, a[i], fl)
		if err != nil {
			return dst, underIndex(i, encodeErr(reflect.TypeOf(a[i]), err))
		}
		dst = out
		dst[at] = byte(t)
	}
	e.leave()
	return EndDocument(dst, start), nil
}

// shortcuts are the types that values are encoded of without a look at their compiled codecs,
// unless one of them is the user's.
var shortcuts = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int32](), reflect.TypeFor[int](), reflect.TypeFor[int64](),
	reflect.TypeFor[float64](),
	reflect.TypeFor[bool](), reflect.TypeFor[D](), reflect.TypeFor[M](), reflect.TypeFor[A](),
	reflect.TypeFor[ObjectID](),
	reflect.TypeFor[DateTime](), reflect.TypeFor[time.Time](), reflect.TypeFor[Binary](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[Raw](),
	reflect.TypeFor[RawValue](), reflect.TypeFor[Timestamp](), reflect.TypeFor[Decimal128](), reflect.TypeFor[Regex](),
	reflect.TypeFor[[]string](),
}

// appendAny appends the value that v holds. The basic types are done here, all others by their
// compiled codecs. An error that is not an *EncodeError yet is one about v itself.
func (e *encoder) appendAny(dst []byte, v any, fl flags) (t Type, out []byte, err error) {
	if e.cfg.special {
		return e.appendOther(dst, v, fl)
	}
	switch v := v.(type) {
	case nil:
		return TypeNull, dst, nil
	case string:
		out, err = appendText(dst, v)
		return TypeString, out, err
	case int32:
		return TypeInt32, AppendInt32Value(dst, v), nil
	case int:
		return appendInt(dst, int64(v), true)
	case int64:
		return appendInt(dst, v, fl&flagMinSize != 0)
	case float64:
		return TypeDouble, AppendDoubleValue(dst, v), nil
	case bool:
		return TypeBoolean, AppendBoolValue(dst, v), nil
	case D:
		if v == nil && e.cfg.NilMapAsNull {
			return TypeNull, dst, nil
		}
		out, err = e.appendD(dst, v, fl)
		return TypeEmbeddedDocument, out, err
	case M:
		if v == nil && e.cfg.NilMapAsNull {
			return TypeNull, dst, nil
		}
		out, err = e.appendM(dst, v, fl)
		return TypeEmbeddedDocument, out, err
	case A:
		if v == nil && e.cfg.NilSliceAsNull {
			return TypeNull, dst, nil
		}
		out, err = e.appendA(dst, v, fl)
		return TypeArray, out, err
	case ObjectID:
		return TypeObjectID, append(dst, v[:]...), nil
	case DateTime:
		return TypeDateTime, AppendInt64Value(dst, int64(v)), nil
	case time.Time:
		return appendTime(dst, v)
	case Binary:
		return TypeBinary, AppendBinaryValue(dst, v.Subtype, v.Data), nil
	case []byte:
		if v == nil && e.cfg.NilBytesAsNull {
			return TypeNull, dst, nil
		}
		return TypeBinary, AppendBinaryValue(dst, BinaryGeneric, v), nil
	case Raw:
		if v == nil && e.cfg.NilMapAsNull {
			return TypeNull, dst, nil
		}
		out, err = appendRaw(dst, v)
		return TypeEmbeddedDocument, out, err
	case RawValue:
		return appendRawValue(dst, v)
	case Timestamp:
		return TypeTimestamp, AppendTimestampValue(dst, v), nil
	case Decimal128:
		return TypeDecimal128, AppendDecimal128Value(dst, v), nil
	case Regex:
		out, err = appendRegexValue(dst, v)
		return TypeRegex, out, err
	case []string:
		if v == nil && e.cfg.NilSliceAsNull {
			return TypeNull, dst, nil
		}
		out, err = e.appendStrings(dst, v)
		return TypeArray, out, err
	}
	return e.appendOther(dst, v, fl)
}

// appendOther appends the value that v holds by its compiled codec.
func (e *encoder) appendOther(dst []byte, v any, fl flags) (Type, []byte, error) {
	if v == nil {
		return TypeNull, dst, nil
	}
	// Interfaces can hold pointers to interfaces, and so go on for ever without any document in
	// between.
	if e.held > 8*e.cfg.maxDepth {
		return 0, dst, errTooDeep
	}
	e.held++
	defer func() { e.held-- }()
	t := reflect.TypeOf(v)
	tc := e.cfg.codec(t, e.cfg.copied(fl))
	switch {
	case tc.elem != nil:
		p := word(v)
		if p.isNil() {
			return TypeNull, dst, nil
		}
		return tc.elem.enc(e, dst, p)
	case tc.copies:
		c := reflect.New(t)
		c.Elem().Set(reflect.ValueOf(v))
		return tc.enc(e, dst, pointerOf(c))
	case heldByPointer(t):
		return tc.enc(e, dst, word(v))
	case t.Kind() == reflect.Map || t.Kind() == reflect.Pointer:
		return tc.enc(e, dst, wordVariable(v))
	}
	c := reflect.New(t)
	c.Elem().Set(reflect.ValueOf(v))
	return tc.enc(e, dst, pointerOf(c))
}

func (e *encoder) appendStrings(dst []byte, a []string) ([]byte, error) {
	if err := e.enter(); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, s := range a {
		dst = appendIndex(append(dst, byte(TypeString)), i)
		var err error
		if dst, err = appendText(dst, s); err != nil {
			return dst, underIndex(i, encodeErr(reflect.TypeFor[string](), err))
		}
	}
	e.leave()
	return EndDocument(dst, start), nil
}

// interfaceCodec returns the codec of interface types.
func interfaceCodec(t reflect.Type, fl flags) (encFunc, decFunc) {
	if t == typeAny {
		return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
				v := *at[any](p)
				bt, out, err := e.appendAny(dst, v, fl)
				if err != nil {
					return 0, dst, encodeErr(reflect.TypeOf(v), err)
				}
				return bt, out, nil
			}, func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
				if held := *at[any](p); held != nil && bt != TypeNull && bt != TypeUndefined {
					if dec, q := d.held(held, fl); dec != nil {
						return d.follow(dec, bt, b, q)
					}
				}
				v, n, err := d.root(bt, b)
				if err == nil {
					*at[any](p) = v
				}
				return n, err
			}
	}
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
			v := p.value(t)
			if v.IsNil() {
				return TypeNull, dst, nil
			}
			bt, out, err := e.appendAny(dst, v.Elem().Interface(), fl)
			if err != nil {
				return 0, dst, encodeErr(v.Elem().Type(), err)
			}
			return bt, out, nil
		}, func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
			v := p.value(t)
			if bt == TypeNull || bt == TypeUndefined {
				v.SetZero()
				return 0, nil
			}
			if !v.IsNil() {
				if dec, q := d.held(v.Elem().Interface(), fl); dec != nil {
					return d.follow(dec, bt, b, q)
				}
			}
			if t.NumMethod() > 0 {
				// Nobody knows which type it should be.
				return 0, &DecodeError{BSONType: bt, GoType: t,
					Err: errors.New("an interface with methods needs a pointer in it or a codec in the options")}
			}
			x, n, err := d.root(bt, b)
			if err == nil {
				v.Set(reflect.ValueOf(x))
			}
			return n, err
		}
}

// root decodes a value for a variable of type any.
func (d *decoder) root(t Type, b []byte) (v any, n int, err error) {
	if d.cfg.mapped(t, b) {
		return d.mappedAny(t, b)
	}
	if err := d.measure(t, b); err != nil {
		return nil, 0, decodeErr(t, typeAny, err)
	}
	v, n, err = d.any(t, b)
	d.finish()
	return v, n, err
}

// held returns what to decode into if v, which an interface holds, is a pointer that is not nil;
// else no function.
func (d *decoder) held(v any, fl flags) (decFunc, ptr) {
	t := reflect.TypeOf(v)
	if t.Kind() != reflect.Pointer || word(v).isNil() {
		return nil, ptr{}
	}
	return d.cfg.codec(t.Elem(), fl).dec, word(v)
}

// follow decodes into what an interface points to. That can be an interface again, and the same
// one.
func (d *decoder) follow(dec decFunc, t Type, b []byte, p ptr) (int, error) {
	if d.holds >= d.cfg.maxDepth {
		return 0, &DecodeError{BSONType: t, Err: errTooDeep}
	}
	d.holds++
	n, err := dec(d, t, b, p)
	d.holds--
	return n, err
}
