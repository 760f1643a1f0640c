package bson

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// Unmarshal decodes the document data into what v points to: a struct, a map, a D, a Raw, any, or a
// type that implements Unmarshaler; v may also be a map that is not nil. The package documentation
// has the table of what becomes what. The result shares no memory with data. The error is a
// *DecodeError; v may be partly filled then.
func Unmarshal(data []byte, v any) error {
	return defaultConfig.unmarshal(TypeEmbeddedDocument, data, v)
}

// Unmarshal is the function Unmarshal with these options.
func (o Options) Unmarshal(data []byte, v any) error {
	return o.config().unmarshal(TypeEmbeddedDocument, data, v)
}

// Unmarshal decodes the value into what v points to, as Unmarshal does with documents.
func (v RawValue) Unmarshal(into any) error {
	return defaultConfig.unmarshal(v.Type, v.Value, into)
}

// UnmarshalValue is RawValue.Unmarshal with these options.
func (o Options) UnmarshalValue(v RawValue, into any) error {
	return o.config().unmarshal(v.Type, v.Value, into)
}

// UnmarshalDefault decodes a value into a variable, which can be set, as if o.Codecs had nothing
// for its type: for a DecodeFunc that leaves a value to the default way. What is in v is decoded by
// the codecs, also where it is of the same type.
func (o Options) UnmarshalDefault(v RawValue, into reflect.Value) error {
	c, t := o.config(), into.Type()
	d := decoders.Get().(*decoder)
	d.start(c, v.Value)
	n, err := c.defaultCodec(t, c.flags()).dec(d, v.Type, v.Value, pointerOf(into.Addr()))
	d.stop()
	decoders.Put(d)
	return decoded(v, reflect.PointerTo(t), n, err)
}

// decoded returns the error of a value that n bytes were decoded of, or of which decoding failed.
func decoded(v RawValue, t reflect.Type, n int, err error) error {
	if err != nil {
		return decodeErr(v.Type, t, err)
	}
	if n != len(v.Value) {
		return &DecodeError{BSONType: v.Type, GoType: t, Err: fmt.Errorf("%d bytes follow", len(v.Value)-n)}
	}
	return nil
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

var errNotPointer = errors.New("want a pointer that is not nil, or a map")

func (c *config) unmarshal(t Type, data []byte, v any) error {
	if v == nil {
		return &DecodeError{BSONType: t, Err: errNotPointer}
	}
	vt := reflect.TypeOf(v)
	var p ptr
	switch vt.Kind() {
	case reflect.Pointer:
		if p = word(v); p.isNil() {
			return &DecodeError{BSONType: t, GoType: vt, Err: errNotPointer}
		}
	case reflect.Map:
		p = wordVariable(v)
		if p.elem().isNil() {
			return &DecodeError{BSONType: t, GoType: vt, Err: errNotPointer}
		}
	default:
		return &DecodeError{BSONType: t, GoType: vt, Err: errNotPointer}
	}
	d := decoders.Get().(*decoder)
	if d.lastType != vt || d.lastConfig != c {
		of := vt
		if vt.Kind() == reflect.Pointer {
			of = vt.Elem()
		}
		d.lastConfig, d.lastType, d.lastDec = c, vt, c.codec(of, c.flags()).dec
	}
	d.start(c, data)
	n, err := d.lastDec(d, t, data, p)
	d.stop()
	decoders.Put(d)
	return decoded(RawValue{Type: t, Value: data}, vt, n, err)
}
