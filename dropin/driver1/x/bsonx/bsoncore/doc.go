package bsoncore

import (
	"go.mongodb.org/mongo-driver/bson/bsontype"
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// NewDocumentLengthError returns the error for a document that is longer than the bytes there are.
func NewDocumentLengthError(length, rem int) error {
	return core.NewDocumentLengthError(length, rem)
}

// NewArrayLengthError returns the error for an array that is longer than the bytes there are.
func NewArrayLengthError(length, rem int) error {
	return core.NewArrayLengthError(length, rem)
}

// EqualValue reports whether two values are of the same type and the same; what is behind them does
// not count.
func EqualValue(t1, t2 bsontype.Type, v1, v2 []byte) bool {
	return core.EqualValue(core.Type(t1), core.Type(t2), v1, v2)
}
