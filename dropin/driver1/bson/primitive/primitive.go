// Package primitive has Go types for the BSON types that Go has none for. Documents and arrays are
// types of this version, whose JSON and texts differ from those of version 2; the rest are the
// types of package bson of version 2.
package primitive

import (
	"math/big"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A is a BSON array.
type A []any

// D is an ordered BSON document.
type D []E

// Map returns the elements as an M. Of those with the same key the last one counts.
//
// Deprecated: convert the elements one by one.
func (d D) Map() M {
	m := make(M, len(d))
	for _, e := range d {
		m[e.Key] = e.Value
	}
	return m
}

// M is an unordered BSON document.
type M map[string]any

// The types that are those of version 2.
type (
	// Binary is a BSON binary value.
	Binary = bson.Binary
	// CodeWithScope is BSON JavaScript code with the variables that it sees.
	CodeWithScope = bson.CodeWithScope
	// DBPointer is a BSON dbPointer, a type that is no longer in use.
	DBPointer = bson.DBPointer
	// DateTime is a BSON datetime: milliseconds since the Unix epoch.
	DateTime = bson.DateTime
	// Decimal128 is a decimal floating point number of up to 34 digits.
	Decimal128 = bson.Decimal128
	// E is an element of a D.
	E = bson.E
	// JavaScript is BSON JavaScript code.
	JavaScript = bson.JavaScript
	// MaxKey is the BSON value that sorts after every other.
	MaxKey = bson.MaxKey
	// MinKey is the BSON value that sorts before every other.
	MinKey = bson.MinKey
	// Null is the BSON null value.
	Null = bson.Null
	// ObjectID is a BSON ObjectID.
	ObjectID = bson.ObjectID
	// Regex is a BSON regular expression.
	Regex = bson.Regex
	// Symbol is a BSON symbol.
	Symbol = bson.Symbol
	// Timestamp is a BSON timestamp: seconds since the Unix epoch and a counter.
	Timestamp = bson.Timestamp
	// Undefined is the BSON undefined value, a type that is no longer in use.
	Undefined = bson.Undefined
)

// The limits of a Decimal128's exponent.
const (
	MaxDecimal128Exp = bson.MaxDecimal128Exp
	MinDecimal128Exp = bson.MinDecimal128Exp
)

// The errors for what no big.Int can be.
var (
	ErrParseNaN    = bson.ErrParseNaN
	ErrParseInf    = bson.ErrParseInf
	ErrParseNegInf = bson.ErrParseNegInf
)

// ErrInvalidHex is the error for a text that is not as long as an ObjectID.
var ErrInvalidHex = bson.ErrInvalidHex

// NilObjectID is the ObjectID whose bytes are all zero.
var NilObjectID ObjectID

// NewObjectID returns a new, unique ObjectID.
func NewObjectID() ObjectID { return bson.NewObjectID() }

// NewObjectIDFromTimestamp returns a new ObjectID that was made at this time, as it says.
func NewObjectIDFromTimestamp(timestamp time.Time) ObjectID {
	return bson.NewObjectIDFromTimestamp(timestamp)
}

// ObjectIDFromHex parses the 24 hexadecimal digits of an ObjectID.
func ObjectIDFromHex(s string) (ObjectID, error) { return bson.ObjectIDFromHex(s) }

// IsValidObjectID reports whether s is the 24 hexadecimal digits of an ObjectID.
//
// Deprecated: use ObjectIDFromHex.
func IsValidObjectID(s string) bool {
	_, err := ObjectIDFromHex(s)
	return err == nil
}

// NewDateTimeFromTime returns t in whole milliseconds.
func NewDateTimeFromTime(t time.Time) DateTime { return bson.NewDateTimeFromTime(t) }

// NewDecimal128 returns the decimal with these high and low 64 bits.
func NewDecimal128(h, l uint64) Decimal128 { return bson.NewDecimal128(h, l) }

// ParseDecimal128 parses a decimal number, Infinity or NaN. With an error it returns a NaN.
func ParseDecimal128(s string) (Decimal128, error) { return bson.ParseDecimal128(s) }

// ParseDecimal128FromBigInt returns bi * 10^exp, and whether there is a decimal of that value.
func ParseDecimal128FromBigInt(bi *big.Int, exp int) (Decimal128, bool) {
	return bson.ParseDecimal128FromBigInt(bi, exp)
}

// CompareTimestamp returns -1, 0 or +1 as tp is before, the same as or after tp2.
//
// Deprecated: use Timestamp.Compare.
func CompareTimestamp(tp, tp2 Timestamp) int { return tp.Compare(tp2) }
