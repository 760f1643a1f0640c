package bson

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"unicode/utf8"
)

// A decoder is the state of decoding one document: the options, how deep it is, and the memory for what it makes.
type decoder struct {
	cfg      *config
	data     []byte // the whole input
	capacity int    // cap(data)
	depth    int

	dense       bool   // strings are cut from windows, not copied into chunks
	window      string // a copy of data from windowStart on
	windowStart int
	chunk       []byte // what is free of the chunk
	chunkSize   int    // of the next chunk
	text        int    // how many bytes of strings were copied into chunks

	strings   slab[string]
	documents slab[D]
	arrays    slab[A]
	slots     []E
	cells     []any

	floats slab[float64]
	int32s slab[int32]
	int64s slab[int64]
	ids    slab[ObjectID]
}

// start makes d ready for decoding data.
func (d *decoder) start(cfg *config, data []byte) {
	d.cfg, d.data, d.capacity, d.depth = cfg, data, cap(data), 0
	d.chunkSize = firstChunk
}

// stop lets go of everything that belongs to the document.
func (d *decoder) stop() {
	*d = decoder{floats: d.floats, int32s: d.int32s, int64s: d.int64s, ids: d.ids}
}

// enter returns the elements of the document or array at the start of b and its size. leave comes after it.
func (d *decoder) enter(b []byte) (body []byte, size int, err error) {
	if d.depth >= d.cfg.maxDepth {
		return nil, 0, errTooDeep
	}
	d.depth++
	return documentBody(b)
}

func (d *decoder) leave() { d.depth-- }

// documentBody is ReadDocument that leaves the capacity alone.
func documentBody(b []byte) (body []byte, size int, err error) {
	if len(b) < 5 {
		return nil, 0, errTruncated
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > len(b) || b[n-1] != 0 {
		_, _, err = ReadDocument(b)
		return nil, 0, err
	}
	return b[4 : n-1], n, nil
}

var (
	errKeyEnd    = errors.New("key is not terminated")
	errOldBinary = errors.New("old binary: inner length does not match")
)

// keyLen returns the length of the key at the start of b, which must be valid UTF-8.
func (d *decoder) keyLen(b []byte) (int, error) {
	n, ascii := cstringLen(b)
	if n < 0 {
		return 0, errKeyEnd
	}
	if !ascii && !d.cfg.AllowInvalidUTF8 && !utf8.Valid(b[:n]) {
		return 0, errUTF8
	}
	return n, nil
}

// countElements returns how many elements body has. Every frame at this level is in order then.
func countElements(body []byte) (int, error) {
	n := 0
	for len(body) > 0 {
		k, _ := cstringLen(body[1:])
		if k < 0 {
			return 0, errKeyEnd
		}
		t := Type(body[0])
		body = body[k+2:]
		size := int(fixedSizes[t])
		if size == variableSize {
			var err error
			if size, err = valueSize(t, body); err != nil {
				return 0, err
			}
		} else if size > len(body) {
			return 0, errTruncated
		}
		body = body[size:]
		n++
	}
	return n, nil
}

const variableSize = 255

// fixedSizes is the size of the values of each type, or variableSize.
var fixedSizes = func() (sizes [256]uint8) {
	for i := range sizes {
		sizes[i] = variableSize
	}
	for size, types := range map[uint8][]Type{
		0:  {TypeUndefined, TypeNull, TypeMinKey, TypeMaxKey},
		1:  {TypeBoolean},
		4:  {TypeInt32},
		8:  {TypeDouble, TypeDateTime, TypeTimestamp, TypeInt64},
		12: {TypeObjectID},
		16: {TypeDecimal128},
	} {
		for _, t := range types {
			sizes[t] = size
		}
	}
	return sizes
}()

// stringValue decodes the value of a string.
func (d *decoder) stringValue(b []byte) (s string, n int, err error) {
	if len(b) < 5 {
		return "", 0, errTruncated
	}
	l := int(int32(binary.LittleEndian.Uint32(b)))
	if l < 1 || l > len(b)-4 || b[4+l-1] != 0 {
		_, err := valueSize(TypeString, b)
		return "", 0, err
	}
	v := b[4 : 4+l-1]
	if !d.cfg.AllowInvalidUTF8 && !validText(v) {
		return "", 0, errUTF8
	}
	return d.str(v), 4 + l, nil
}

// stringOrNull decodes what fits into a string; null is the empty one.
func (d *decoder) stringOrNull(t Type, b []byte, goType reflect.Type) (s string, n int, err error) {
	switch t {
	case TypeString, TypeSymbol:
		if s, n, err = d.stringValue(b); err == nil {
			return s, n, nil
		}
	case TypeNull, TypeUndefined:
		return "", 0, nil
	case TypeObjectID:
		if !d.cfg.ObjectIDAsHex {
			err = errWrongType
		} else if len(b) < 12 {
			err = errTruncated
		} else {
			return ObjectID(b[:12]).Hex(), 12, nil
		}
	case TypeBinary:
		var v []byte
		if v, n, err = plainBytes(t, b); err == nil {
			if d.cfg.AllowInvalidUTF8 || validText(v) {
				return d.str(v), n, nil
			}
			err = errUTF8
		}
	default:
		err = errWrongType
	}
	return "", 0, decodeErr(t, goType, err)
}

func (d *decoder) codeWithScope(b []byte) (c CodeWithScope, n int, err error) {
	n, err = valueSize(TypeCodeWithScope, b)
	if err != nil {
		return c, 0, err
	}
	b = b[4:n]
	code, k, err := d.stringValue(b)
	if err != nil {
		return c, 0, err
	}
	scope, m, err := d.any(TypeEmbeddedDocument, b[k:])
	if err != nil {
		return c, 0, err
	}
	if k+m != len(b) {
		return c, 0, errors.New("code with scope: length does not match")
	}
	return CodeWithScope{Code: JavaScript(code), Scope: scope}, n, nil
}

// d decodes the document at the start of b into a D.
func (d *decoder) d(b []byte) (D, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	n, err := countElements(body)
	if err != nil {
		return nil, 0, err
	}
	d.dense = true
	out := d.elements(n, len(d.data)-(d.capacity-cap(body)))[:n]
	for i := range out {
		t := Type(body[0])
		k, err := d.keyLen(body[1:])
		if err != nil {
			return nil, 0, err
		}
		e := &out[i]
		e.Key = d.str(body[1 : 1+k])
		body = body[k+2:]
		var used int
		if e.Value, used, err = d.any(t, body); err != nil {
			return nil, 0, under(e.Key, err)
		}
		body = body[used:]
	}
	if d.cfg.DisallowDuplicateKeys {
		seen := make(map[string]bool, n)
		for _, e := range out {
			if seen[e.Key] {
				return nil, 0, under(e.Key, &DecodeError{GoType: reflect.TypeFor[D](), Err: errDuplicate})
			}
			seen[e.Key] = true
		}
	}
	d.leave()
	return out, size, nil
}

// m is d for maps. into is the map to add to; nil makes a new one.
func (d *decoder) m(b []byte, into M) (M, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	n, err := countElements(body)
	if err != nil {
		return nil, 0, err
	}
	d.dense = true
	var seen map[string]bool
	if d.cfg.DisallowDuplicateKeys {
		seen = make(map[string]bool, n)
	}
	if into == nil {
		into = make(M, n)
	}
	for len(body) > 0 {
		t := Type(body[0])
		k, err := d.keyLen(body[1:])
		if err != nil {
			return nil, 0, err
		}
		key := d.str(body[1 : 1+k])
		body = body[k+2:]
		if seen != nil {
			if seen[key] {
				return nil, 0, under(key, &DecodeError{BSONType: t, GoType: reflect.TypeFor[M](), Err: errDuplicate})
			}
			seen[key] = true
		}
		v, used, err := d.any(t, body)
		if err != nil {
			return nil, 0, under(key, err)
		}
		into[key] = v
		body = body[used:]
	}
	d.leave()
	return into, size, nil
}

// a is d for arrays.
func (d *decoder) a(b []byte) (A, int, error) {
	body, size, err := d.enter(b)
	if err != nil {
		return nil, 0, err
	}
	n, err := countElements(body)
	if err != nil {
		return nil, 0, err
	}
	out := d.values(n, len(d.data)-(d.capacity-cap(body)))[:n]
	for i := range out {
		t := Type(body[0])
		k, err := d.keyLen(body[1:])
		if err != nil {
			return nil, 0, underIndex(i, decodeErr(t, nil, err))
		}
		body = body[k+2:]
		v, used, err := d.any(t, body)
		if err != nil {
			return nil, 0, underIndex(i, err)
		}
		out[i] = v
		body = body[used:]
	}
	d.leave()
	return out, size, nil
}

// any decodes the value of type t at the start of b into the type that the package's table gives for it.
func (d *decoder) any(t Type, b []byte) (v any, n int, err error) {
	switch t {
	case TypeString:
		s, n, err := d.stringValue(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		return d.boxString(s), n, nil
	case TypeInt32:
		if len(b) >= 4 {
			return d.boxInt32(int32(binary.LittleEndian.Uint32(b))), 4, nil
		}
	case TypeInt64:
		if len(b) >= 8 {
			return d.boxInt64(int64(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeDouble:
		if len(b) >= 8 {
			return d.boxFloat64(math.Float64frombits(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeDateTime:
		if len(b) >= 8 {
			return d.boxDateTime(DateTime(binary.LittleEndian.Uint64(b))), 8, nil
		}
	case TypeObjectID:
		if len(b) >= 12 {
			return d.boxObjectID(b[:12]), 12, nil
		}
	case TypeBoolean:
		if len(b) >= 1 && b[0] <= 1 {
			return b[0] == 1, 1, nil
		}
	case TypeNull:
		return nil, 0, nil
	case TypeEmbeddedDocument:
		switch d.cfg.Documents {
		case DocumentsAsD:
			doc, n, err := d.d(b)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return d.boxD(doc), n, nil
		case DocumentsAsM:
			doc, n, err := d.m(b, nil)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return doc, n, nil
		}
	case TypeArray:
		if d.cfg.Documents != DocumentsAsRaw {
			a, n, err := d.a(b)
			if err != nil {
				return nil, 0, decodeErr(t, nil, err)
			}
			return d.boxA(a), n, nil
		}
	}
	return d.rareAny(t, b)
}

// rareAny is any for the types that are rare, and for broken values.
func (d *decoder) rareAny(t Type, b []byte) (v any, n int, err error) {
	n, err = valueSize(t, b)
	if err != nil {
		return nil, 0, decodeErr(t, nil, err)
	}
	rv := RawValue{Type: t, Value: b[:n]}
	ok := true
	switch t {
	case TypeEmbeddedDocument:
		return append(Raw(nil), b[:n]...), n, nil
	case TypeArray:
		return RawValue{Type: t, Value: append([]byte(nil), b[:n]...)}, n, nil
	case TypeBinary:
		var bin Binary
		if bin, ok = rv.Binary(); ok {
			v = d.anyBinary(bin)
		}
	case TypeTimestamp:
		v, ok = rv.Timestamp()
	case TypeDecimal128:
		v, ok = rv.Decimal128()
	case TypeRegex:
		v, ok = rv.validRegex(d)
	case TypeDBPointer:
		v, ok = rv.validDBPointer(d)
	case TypeJavaScript, TypeSymbol:
		s, _, err := d.stringValue(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		if t == TypeSymbol {
			return Symbol(s), n, nil
		}
		return JavaScript(s), n, nil
	case TypeCodeWithScope:
		c, n, err := d.codeWithScope(b)
		if err != nil {
			return nil, 0, decodeErr(t, nil, err)
		}
		return c, n, nil
	case TypeUndefined:
		v = Undefined{}
	case TypeMinKey:
		v = MinKey{}
	case TypeMaxKey:
		v = MaxKey{}
	default:
		ok = false // a boolean that is neither 0 nor 1
	}
	if !ok {
		return nil, 0, &DecodeError{BSONType: t, Err: errors.New("value is malformed")}
	}
	return v, n, nil
}

// validRegex is Regex that refuses invalid UTF-8 as the options say.
func (v RawValue) validRegex(d *decoder) (Regex, bool) {
	r, ok := v.Regex()
	return r, ok && (d.cfg.AllowInvalidUTF8 || utf8.ValidString(r.Pattern) && utf8.ValidString(r.Options))
}

// validDBPointer is DBPointer that refuses invalid UTF-8 as the options say.
func (v RawValue) validDBPointer(d *decoder) (DBPointer, bool) {
	p, ok := v.DBPointer()
	return p, ok && (d.cfg.AllowInvalidUTF8 || utf8.ValidString(p.DB))
}
