// Package bsoncore has BSON as bytes: functions that append it, that read it, and types for encoded
// documents, arrays, elements and values. It is package bsoncore of version 2 with the types of
// this version.
package bsoncore

import (
	"fmt"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// EmptyDocumentLength is the length of a document without elements.
const EmptyDocumentLength = core.EmptyDocumentLength

// The errors.
var (
	// ErrElementNotFound is the error of a look-up that finds nothing.
	ErrElementNotFound = core.ErrElementNotFound
	// ErrEmptyKey is the error of a look-up without a key.
	ErrEmptyKey = core.ErrEmptyKey
	// ErrNilReader is the error for an io.Reader that is nil.
	ErrNilReader = core.ErrNilReader
	// ErrOutOfBounds is the error for an index that there is not.
	ErrOutOfBounds = core.ErrOutOfBounds
)

type (
	// InsufficientBytesError is the error for bytes that end too early.
	InsufficientBytesError = core.InsufficientBytesError
	// InvalidDepthTraversalError is the error of a look-up in what is no document.
	InvalidDepthTraversalError struct {
		Key  string
		Type bsontype.Type
	}
	// MalformedElementError is the error for an element that is not whole.
	MalformedElementError = core.MalformedElementError
	// ValidationError is the error for a document or an array whose frame is broken.
	ValidationError = core.ValidationError
)

// Error says what the key has.
func (idte InvalidDepthTraversalError) Error() string {
	return core.InvalidDepthTraversalError{Key: idte.Key, Type: core.Type(idte.Type)}.Error()
}

// lookupError is the error of a look-up as one of this package.
func lookupError(err error) error {
	if e, ok := err.(core.InvalidDepthTraversalError); ok {
		return InvalidDepthTraversalError{e.Key, bsontype.Type(e.Type)}
	}
	return err
}

// The errors of broken frames and elements.
const (
	ErrInvalidLength      = core.ErrInvalidLength
	ErrMissingNull        = core.ErrMissingNull
	ErrElementMissingKey  = core.ErrElementMissingKey
	ErrElementMissingType = core.ErrElementMissingType
)

// NewInsufficientBytesError returns the error for src, of which rem is left.
func NewInsufficientBytesError(src, rem []byte) InsufficientBytesError {
	return core.NewInsufficientBytesError(src, rem)
}

// An ElementTypeError is what a getter of a Value panics with that is of another type.
type ElementTypeError struct {
	Method string
	Type   bsontype.Type
}

// Error names the method and the type.
func (ete ElementTypeError) Error() string {
	return fmt.Sprintf("Call of %s on %s type", ete.Method, ete.Type)
}

// own makes a panic of version 2 one of this package.
func own() {
	r := recover()
	switch e := r.(type) {
	case nil:
	case core.ElementTypeError:
		panic(ElementTypeError{e.Method, bsontype.Type(e.Type)})
	default:
		panic(r)
	}
}

// A Document is an encoded document.
type Document []byte

// An Array is an encoded array.
type Array []byte

// An Element is an encoded element: type, key and value.
type Element []byte

// A Value is an encoded value: its type and its bytes.
type Value struct {
	Type bsontype.Type
	Data []byte
}

func (v Value) core() core.Value { return core.Value{Type: core.Type(v.Type), Data: v.Data} }

func valueOf(v core.Value) Value { return Value{Type: bsontype.Type(v.Type), Data: v.Data} }

func valuesOf(values []core.Value) []Value {
	if values == nil {
		return nil
	}
	out := make([]Value, len(values))
	for i, v := range values {
		out[i] = valueOf(v)
	}
	return out
}

func coreValues(values []Value) []core.Value {
	out := make([]core.Value, len(values))
	for i, v := range values {
		out[i] = v.core()
	}
	return out
}

// of returns a slice of encoded parts as one of another type.
func of[To, From ~[]byte](parts []From) []To {
	if parts == nil {
		return nil
	}
	out := make([]To, len(parts))
	for i, p := range parts {
		out[i] = To(p)
	}
	return out
}

// An ArrayBuilder builds an array, value by value.
type ArrayBuilder struct{ core *core.ArrayBuilder }

// A DocumentBuilder builds a document, element by element.
type DocumentBuilder struct{ core *core.DocumentBuilder }

// BuildDocumentFromElements is BuildDocument.
var BuildDocumentFromElements = BuildDocument

// AppendDecimal128 appends a decimal.
func AppendDecimal128(dst []byte, d128 primitive.Decimal128) []byte {
	h, l := d128.GetBytes()
	return core.AppendDecimal128(dst, h, l)
}

// AppendDecimal128Element appends an element.
func AppendDecimal128Element(dst []byte, key string, d128 primitive.Decimal128) []byte {
	h, l := d128.GetBytes()
	return core.AppendDecimal128Element(dst, key, h, l)
}

// ReadDecimal128 reads a decimal.
func ReadDecimal128(src []byte) (primitive.Decimal128, []byte, bool) {
	h, l, rest, ok := core.ReadDecimal128(src)
	return primitive.NewDecimal128(h, l), rest, ok
}

// Decimal128 returns the decimal, or panics.
func (v Value) Decimal128() primitive.Decimal128 {
	defer own()
	return primitive.NewDecimal128(v.core().Decimal128())
}

// Decimal128OK returns the decimal and whether the value is one.
func (v Value) Decimal128OK() (primitive.Decimal128, bool) {
	h, l, ok := v.core().Decimal128OK()
	return primitive.NewDecimal128(h, l), ok
}

// AppendDecimal128 appends a decimal.
func (a *ArrayBuilder) AppendDecimal128(d128 primitive.Decimal128) *ArrayBuilder {
	h, l := d128.GetBytes()
	a.core.AppendDecimal128(h, l)
	return a
}

// AppendDecimal128 appends a decimal.
func (db *DocumentBuilder) AppendDecimal128(key string, d128 primitive.Decimal128) *DocumentBuilder {
	h, l := d128.GetBytes()
	db.core.AppendDecimal128(key, h, l)
	return db
}
