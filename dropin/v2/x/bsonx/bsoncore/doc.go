// Package bsoncore has BSON as bytes: functions that append it, that read it, and types for encoded
// documents, arrays, elements and values. It is for code that is at home in the official driver's
// package of that name; allium/bson has the same in its own form.
package bsoncore

import (
	"bytes"
	"errors"
	"fmt"

	"allium/bson"
)

// EmptyDocumentLength is the length of a document without elements.
const EmptyDocumentLength = 5

// Type is a BSON type.
type Type byte

// The BSON types.
const (
	TypeDouble           Type = 0x01
	TypeString           Type = 0x02
	TypeEmbeddedDocument Type = 0x03
	TypeArray            Type = 0x04
	TypeBinary           Type = 0x05
	TypeUndefined        Type = 0x06
	TypeObjectID         Type = 0x07
	TypeBoolean          Type = 0x08
	TypeDateTime         Type = 0x09
	TypeNull             Type = 0x0A
	TypeRegex            Type = 0x0B
	TypeDBPointer        Type = 0x0C
	TypeJavaScript       Type = 0x0D
	TypeSymbol           Type = 0x0E
	TypeCodeWithScope    Type = 0x0F
	TypeInt32            Type = 0x10
	TypeTimestamp        Type = 0x11
	TypeInt64            Type = 0x12
	TypeDecimal128       Type = 0x13
	TypeMaxKey           Type = 0x7F
	TypeMinKey           Type = 0xFF
)

// String returns the type's name, "invalid" for what is none.
func (bt Type) String() string { return bson.Type(bt).String() }

var (
	// ErrElementNotFound is the error of a look-up that finds nothing.
	ErrElementNotFound = errors.New("element not found")
	// ErrEmptyKey is the error of a look-up without a key.
	ErrEmptyKey = errors.New("empty key provided")
	// ErrNilReader is the error for an io.Reader that is nil.
	ErrNilReader = errors.New("nil reader")
	// ErrOutOfBounds is the error for an index that there is not.
	ErrOutOfBounds = errors.New("out of bounds")
)

// A ValidationError is the error for a document or an array whose frame is broken.
type ValidationError string

// The ways in which it can be.
const (
	ErrInvalidLength ValidationError = "document or array length is invalid"
	ErrMissingNull   ValidationError = "document or array end is missing null byte"
)

// Error returns the text.
func (ve ValidationError) Error() string { return string(ve) }

// A MalformedElementError is the error for an element that ends early.
type MalformedElementError string

// What it can lack.
const (
	ErrElementMissingKey  MalformedElementError = "element is missing key"
	ErrElementMissingType MalformedElementError = "element is missing type"
)

// Error returns the text.
func (mee MalformedElementError) Error() string { return string(mee) }

// An InsufficientBytesError is the error for a value that ends early.
type InsufficientBytesError struct {
	Source    []byte
	Remaining []byte
}

// NewInsufficientBytesError returns the error with these bytes.
func NewInsufficientBytesError(src, rem []byte) InsufficientBytesError {
	return InsufficientBytesError{Source: src, Remaining: rem}
}

// Error says so.
func (ibe InsufficientBytesError) Error() string { return "too few bytes to read next component" }

// Equal reports whether err2 is such an error, too.
func (ibe InsufficientBytesError) Equal(err2 error) bool {
	_, ok := err2.(InsufficientBytesError)
	return ok
}

// An InvalidDepthTraversalError is the error of a look-up that meets a value with nothing in it.
type InvalidDepthTraversalError struct {
	Key  string
	Type Type
}

// Error says which.
func (idte InvalidDepthTraversalError) Error() string {
	return fmt.Sprintf("attempt to traverse into %s, but it's type is %s, not %s nor %s",
		idte.Key, idte.Type, TypeEmbeddedDocument, TypeArray)
}

// An ElementTypeError is what a getter panics with that meets a value of another type.
type ElementTypeError struct {
	Method string
	Type   Type
}

// Error says which.
func (ete ElementTypeError) Error() string {
	return "Call of " + ete.Method + " on " + ete.Type.String() + " type"
}

func lengthError(of string, length, remaining int) error {
	return ValidationError(fmt.Sprintf("%s length exceeds available bytes. length=%d remainingBytes=%d", of, length,
		remaining))
}

// NewDocumentLengthError returns the error for a document that is longer than the bytes there are.
func NewDocumentLengthError(length, rem int) error { return lengthError("document", length, rem) }

// NewArrayLengthError returns the error for an array that is longer than the bytes there are.
func NewArrayLengthError(length, rem int) error { return lengthError("array", length, rem) }

// EqualValue reports whether two values are of the same type and the same; what is behind them does
// not count.
func EqualValue(t1, t2 Type, v1, v2 []byte) bool {
	if t1 != t2 {
		return false
	}
	a, _, ok := readValue(v1, t1)
	if !ok {
		return false
	}
	b, _, ok := readValue(v2, t2)
	return ok && bytes.Equal(a, b)
}
