// Package bsoncodec has registries: a program's own ways to encode and decode Go types.
package bsoncodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

var (
	typeD = reflect.TypeFor[primitive.D]()
	typeM = reflect.TypeFor[primitive.M]()
)

// Marshaler is implemented by types that encode themselves as a document.
//
// Deprecated: use bson.Marshaler.
type Marshaler interface {
	MarshalBSON() ([]byte, error)
}

// ValueMarshaler is implemented by types that encode themselves as any BSON value.
//
// Deprecated: use bson.ValueMarshaler.
type ValueMarshaler interface {
	MarshalBSONValue() (bsontype.Type, []byte, error)
}

// Unmarshaler is implemented by types that decode themselves from a document.
//
// Deprecated: use bson.Unmarshaler.
type Unmarshaler interface {
	UnmarshalBSON([]byte) error
}

// ValueUnmarshaler is implemented by types that decode themselves from any BSON value.
//
// Deprecated: use bson.ValueUnmarshaler.
type ValueUnmarshaler interface {
	UnmarshalBSONValue(bsontype.Type, []byte) error
}

// Proxy is implemented by types that are encoded as another value.
type Proxy interface {
	ProxyBSON() (any, error)
}

// Zeroer is implemented by types that know whether a value counts as empty for omitempty.
//
// Deprecated: use bson.Zeroer.
type Zeroer interface {
	IsZero() bool
}

// CodecZeroer is implemented by encoders that know which values count as empty.
//
// Deprecated: use a method IsZero of the type.
type CodecZeroer interface {
	IsTypeZero(any) bool
}

// KeyMarshaler is implemented by map keys that encode themselves.
type KeyMarshaler interface {
	MarshalKey() (key string, err error)
}

// KeyUnmarshaler is the reverse of KeyMarshaler.
type KeyUnmarshaler interface {
	UnmarshalKey(key string) error
}

// A ValueEncoder writes a Go value as BSON.
type ValueEncoder interface {
	EncodeValue(EncodeContext, bsonrw.ValueWriter, reflect.Value) error
}

// A ValueDecoder reads BSON into a variable, which can be set.
type ValueDecoder interface {
	DecodeValue(DecodeContext, bsonrw.ValueReader, reflect.Value) error
}

// A ValueCodec is both.
//
// Deprecated: register them one by one.
type ValueCodec interface {
	ValueEncoder
	ValueDecoder
}

// A ValueEncoderFunc is a function that is a ValueEncoder.
type ValueEncoderFunc func(EncodeContext, bsonrw.ValueWriter, reflect.Value) error

// EncodeValue calls fn.
func (fn ValueEncoderFunc) EncodeValue(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return fn(ec, vw, val)
}

// A ValueDecoderFunc is a function that is a ValueDecoder.
type ValueDecoderFunc func(DecodeContext, bsonrw.ValueReader, reflect.Value) error

// DecodeValue calls fn.
func (fn ValueDecoderFunc) DecodeValue(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	return fn(dc, vr, val)
}

// The errors.
type (
	// DecodeError is the error for a value in a document that does not decode.
	DecodeError = bson.DecodeError
	// ErrNoDecoder is the error for a type that nothing decodes into.
	ErrNoDecoder = coding.ErrNoDecoder
	// ErrNoEncoder is the error for a type that has no BSON form.
	ErrNoEncoder = coding.ErrNoEncoder
	// ErrNoTypeMapEntry is the error for a BSON type without a Go type.
	ErrNoTypeMapEntry = coding.ErrNoTypeMapEntry
	// ValueDecoderError is the error for a variable that a ValueDecoder is not for.
	ValueDecoderError = bson.ValueDecoderError
	// ValueEncoderError is the error for a value that a ValueEncoder is not for.
	ValueEncoderError = bson.ValueEncoderError
)

// A TransitionError is the error for what cannot be read or written at this place. It is not
// returned: that of package bsonrw is.
type TransitionError struct{ err *bsonrw.TransitionError }

// Error says what was called, and where.
func (te TransitionError) Error() string {
	if te.err == nil {
		return bsonrw.TransitionError{}.Error()
	}
	return te.err.Error()
}
