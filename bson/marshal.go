package bson

import (
	"fmt"
	"math"
	"reflect"
	"sync"
)

// Marshal returns v as a document: v is a struct, a map, a D, a Raw, a pointer to one of them, or a
// type that implements Marshaler. The package documentation has the table of what becomes what. The
// error is an *EncodeError.
func Marshal(v any) ([]byte, error) { return defaultConfig.marshal(v) }

// Marshal is the function Marshal with these options.
func (o Options) Marshal(v any) ([]byte, error) { return o.config().marshal(v) }

// MarshalAppend appends to dst what Marshal returns. On an error it returns dst as it was.
func MarshalAppend(dst []byte, v any) ([]byte, error) { return defaultConfig.marshalAppend(dst, v) }

// MarshalAppend is the function MarshalAppend with these options.
func (o Options) MarshalAppend(dst []byte, v any) ([]byte, error) {
	return o.config().marshalAppend(dst, v)
}

// MarshalValue returns any value that has a BSON form, not only documents. A nil is null.
func MarshalValue(v any) (RawValue, error) { return defaultConfig.marshalValue(v) }

// MarshalValue is the function MarshalValue with these options.
func (o Options) MarshalValue(v any) (RawValue, error) { return o.config().marshalValue(v) }

// AppendValue appends an element with any value that has a BSON form to dst, which is a document in
// the making: see BeginDocument. On an error it returns dst as it was.
func AppendValue(dst []byte, key string, v any) ([]byte, error) {
	return defaultConfig.appendValue(dst, key, v)
}

// AppendValue is the function AppendValue with these options.
func (o Options) AppendValue(dst []byte, key string, v any) ([]byte, error) {
	return o.config().appendValue(dst, key, v)
}

// AppendValueMaps is AppendValue for values whose order matters. It also returns where in out the
// documents begin that have more than one key out of a map: their order is random. What types that
// encode themselves append is not looked into.
func (o Options) AppendValueMaps(dst []byte, key string, v any) (out []byte, maps []int, err error) {
	c := o.config()
	e := newEncoder(c)
	e.maps = &maps
	out, err = e.element(dst, key, v)
	e.maps = nil
	e.free()
	return out, maps, err
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// mostScratch is the size of the largest scratch buffer that is kept.
const mostScratch = 1 << 20

func newEncoder(cfg *config) *encoder {
	e := encoders.Get().(*encoder)
	e.cfg, e.depth, e.held = cfg, 0, 0
	return e
}

func (e *encoder) free() {
	if cap(e.buf) > mostScratch {
		e.buf = nil
	}
	encoders.Put(e)
}

// document appends v, which must become a document.
func (e *encoder) document(dst []byte, v any) ([]byte, error) {
	t, out, err := e.appendAny(dst, v, e.cfg.flags())
	switch {
	case err != nil:
		return dst, encodeErr(reflect.TypeOf(v), err)
	case t == TypeNull && isDocumentKind(v):
		return append(dst, 5, 0, 0, 0, 0), nil // Options.NilMapAsNull is for what lies in a document
	case t != TypeEmbeddedDocument:
		return dst, &EncodeError{GoType: reflect.TypeOf(v), Err: fmt.Errorf("it becomes a BSON %s, not a document", t)}
	case len(out)-len(dst) > math.MaxInt32:
		return dst, &EncodeError{GoType: reflect.TypeOf(v), Err: errTooLong}
	}
	return out, nil
}

// isDocumentKind reports whether v is a map, a D or a Raw.
func isDocumentKind(v any) bool {
	switch v.(type) {
	case D, Raw:
		return true
	}
	return v != nil && reflect.TypeOf(v).Kind() == reflect.Map
}

var errTooLong = fmt.Errorf("it takes more than %d bytes", math.MaxInt32)

func (c *config) marshal(v any) ([]byte, error) {
	e := newEncoder(c)
	buf, err := e.document(e.buf[:0], v)
	e.buf = buf
	var out []byte
	if err == nil {
		out = append(out, buf...)
	}
	e.free()
	return out, err
}

func (c *config) marshalAppend(dst []byte, v any) ([]byte, error) {
	e := newEncoder(c)
	out, err := e.document(dst, v)
	e.free()
	return out, err
}

func (c *config) marshalValue(v any) (RawValue, error) {
	e := newEncoder(c)
	t, buf, err := e.appendAny(e.buf[:0], v, c.flags())
	if err != nil {
		e.free()
		return RawValue{}, encodeErr(reflect.TypeOf(v), err)
	}
	e.buf = buf
	out := RawValue{Type: t, Value: append([]byte{}, buf...)}
	e.free()
	return out, nil
}

// AppendDefault appends the BSON value of v to dst, without a key, as if o.Codecs had nothing for
// the type of v: for an EncodeFunc that leaves a value to the default way. What is in v is encoded
// by the codecs, also where it is of the same type. With o.MethodsByAddress, v has an address if
// v.CanAddr says so. On an error it returns dst as it was.
func (o Options) AppendDefault(dst []byte, v reflect.Value) (Type, []byte, error) {
	if !v.IsValid() {
		return TypeNull, dst, nil
	}
	c, t := o.config(), v.Type()
	fl := c.flags()
	if !v.CanAddr() {
		fl = c.copied(fl)
		variable := reflect.New(t).Elem()
		variable.Set(v)
		v = variable
	}
	e := newEncoder(c)
	bt, out, err := c.defaultCodec(t, fl).enc(e, dst, pointerOf(v.Addr()))
	e.free()
	if err != nil {
		return 0, dst, encodeErr(t, err)
	}
	return bt, out, nil
}

func (c *config) appendValue(dst []byte, key string, v any) ([]byte, error) {
	e := newEncoder(c)
	out, err := e.element(dst, key, v)
	e.free()
	return out, err
}

// element appends a key and its value. On an error it returns dst as it was.
func (e *encoder) element(dst []byte, key string, v any) ([]byte, error) {
	out, err := appendKey(append(dst, 0), key)
	if err == nil {
		var t Type
		if t, out, err = e.appendAny(out, v, e.cfg.flags()); err == nil {
			out[len(dst)] = byte(t)
		}
	}
	if err != nil {
		return dst, under(key, encodeErr(reflect.TypeOf(v), err))
	}
	return out, nil
}

// appendIndex appends an array's key and its NUL.
func appendIndex(dst []byte, i int) []byte {
	if i < 10 {
		return append(dst, '0'+byte(i), 0)
	}
	return appendLongIndex(dst, i)
}
