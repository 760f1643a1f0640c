package bson

// How types with methods of their own, and types with a user's codec, are encoded and decoded.

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
)

// Marshaler is implemented by types that encode themselves as a document. The bytes must be a whole
// document.
type Marshaler interface {
	MarshalBSON() ([]byte, error)
}

// Unmarshaler is implemented by types that decode themselves from a document. They may keep the
// bytes. A null in the document gives the zero value without a call.
type Unmarshaler interface {
	UnmarshalBSON(data []byte) error
}

// ValueMarshaler is implemented by types that encode themselves as any BSON value: its type (the
// byte of a Type) and its bytes, as in RawValue.
type ValueMarshaler interface {
	MarshalBSONValue() (typ byte, data []byte, err error)
}

// ValueUnmarshaler is implemented by types that decode themselves from any BSON value, null
// included. They may keep the bytes.
type ValueUnmarshaler interface {
	UnmarshalBSONValue(typ byte, data []byte) error
}

// zeroer is implemented by types that know when they are left out by omitempty and omitzero.
type zeroer interface {
	IsZero() bool
}

func encValueMarshaler(t reflect.Type) encFunc {
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		typ, data, err := p.value(t).Addr().Interface().(ValueMarshaler).MarshalBSONValue()
		if err == nil {
			dst, err = appendChecked(dst, Type(typ), data)
		}
		if err != nil {
			return 0, dst, encodeErr(t, err)
		}
		return Type(typ), dst, nil
	}
}

// appendChecked appends a value that a user's code made, if its frame is right.
func appendChecked(dst []byte, t Type, data []byte) ([]byte, error) {
	n, err := valueSize(t, data)
	if err != nil {
		return dst, err
	}
	if n != len(data) {
		return dst, fmt.Errorf("%d bytes after the %s", len(data)-n, t)
	}
	return append(dst, data...), nil
}

func encMarshaler(t reflect.Type) encFunc {
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		data, err := p.value(t).Addr().Interface().(Marshaler).MarshalBSON()
		if err == nil {
			dst, err = appendChecked(dst, TypeEmbeddedDocument, data)
		}
		if err != nil {
			return 0, dst, encodeErr(t, err)
		}
		return TypeEmbeddedDocument, dst, nil
	}
}

func encTextMarshaler(t reflect.Type) encFunc {
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		text, err := p.value(t).Addr().Interface().(encoding.TextMarshaler).MarshalText()
		if err == nil {
			dst, err = appendText(dst, viewString(text))
		}
		if err != nil {
			return 0, dst, encodeErr(t, err)
		}
		return TypeString, dst, nil
	}
}

func decValueUnmarshaler(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		n, err := valueSize(bt, b)
		if err == nil {
			err = p.value(t).Addr().Interface().(ValueUnmarshaler).UnmarshalBSONValue(byte(bt), bytes.Clone(b[:n]))
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		return n, nil
	}
}

func decUnmarshaler(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.value(t).SetZero()
			return 0, nil
		}
		if bt != TypeEmbeddedDocument && bt != TypeArray {
			return 0, &DecodeError{BSONType: bt, GoType: t, Err: errNotDocument}
		}
		n, err := valueSize(bt, b)
		if err == nil {
			err = p.value(t).Addr().Interface().(Unmarshaler).UnmarshalBSON(bytes.Clone(b[:n]))
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		return n, nil
	}
}

func decTextUnmarshaler(t reflect.Type) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		switch bt {
		case TypeNull, TypeUndefined:
			p.value(t).SetZero()
			return 0, nil
		case TypeString:
			s, n, err := d.stringValue(b)
			if err == nil {
				err = p.value(t).Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
			}
			if err != nil {
				return 0, decodeErr(bt, t, err)
			}
			return n, nil
		}
		return 0, &DecodeError{BSONType: bt, GoType: t, Err: errWrongType}
	}
}

// userEncoder is checkedEncoder for a function that gets no nil pointers and interfaces.
func userEncoder(t reflect.Type, encode func(dst []byte, p ptr) (Type, []byte, error)) encFunc {
	indirect := t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer
	checked := checkedEncoder(t, encode)
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		if indirect && p.value(t).IsNil() {
			return TypeNull, dst, nil
		}
		return checked(e, dst, p)
	}
}

// checkedEncoder checks what a user's function does.
func checkedEncoder(t reflect.Type, encode func(dst []byte, p ptr) (Type, []byte, error)) encFunc {
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		start := len(dst)
		bt, out, err := encode(dst, p)
		if err != nil {
			return 0, dst, encodeErr(t, err)
		}
		if len(out) < start {
			return 0, dst, &EncodeError{GoType: t, Err: fmt.Errorf("codec did not append to its dst")}
		}
		if n, err := valueSize(bt, out[start:]); err != nil || n != len(out)-start {
			return 0, dst, &EncodeError{GoType: t, Err: fmt.Errorf("codec appended no valid %s", bt)}
		}
		return bt, out, nil
	}
}

// userDecoder is framedDecoder for a function that gets no nulls for pointers and interfaces.
func userDecoder(t reflect.Type, decode func(v RawValue, p ptr) error) decFunc {
	indirect := t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer
	framed := framedDecoder(t, decode)
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if indirect && (bt == TypeNull || bt == TypeUndefined) {
			p.value(t).SetZero()
			return 0, nil
		}
		return framed(d, bt, b, p)
	}
}

// framedDecoder gives a user's function one value.
func framedDecoder(t reflect.Type, decode func(v RawValue, p ptr) error) decFunc {
	return func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		n, err := valueSize(bt, b)
		if err == nil {
			err = decode(RawValue{Type: bt, Value: b[:n:n]}, p)
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		return n, nil
	}
}
