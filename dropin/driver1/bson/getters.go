package bson

import (
	"time"

	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// The getters of a RawValue come in pairs: one panics for a value of another type or a broken one,
// the one with OK returns false.

func (rv RawValue) core() bsoncore.Value {
	return bsoncore.Value{Type: rv.Type, Data: rv.Value}
}

// Double returns the value, or panics.
func (rv RawValue) Double() float64 { return rv.core().Double() }

// DoubleOK returns the value and whether it is of the type.
func (rv RawValue) DoubleOK() (float64, bool) { return rv.core().DoubleOK() }

// StringValue returns the value, or panics.
func (rv RawValue) StringValue() string { return rv.core().StringValue() }

// StringValueOK returns the value and whether it is of the type.
func (rv RawValue) StringValueOK() (string, bool) { return rv.core().StringValueOK() }

// Boolean returns the value, or panics.
func (rv RawValue) Boolean() bool { return rv.core().Boolean() }

// BooleanOK returns the value and whether it is of the type.
func (rv RawValue) BooleanOK() (bool, bool) { return rv.core().BooleanOK() }

// DateTime returns the value, or panics.
func (rv RawValue) DateTime() int64 { return rv.core().DateTime() }

// DateTimeOK returns the value and whether it is of the type.
func (rv RawValue) DateTimeOK() (int64, bool) { return rv.core().DateTimeOK() }

// Time returns the value, or panics.
func (rv RawValue) Time() time.Time { return rv.core().Time() }

// TimeOK returns the value and whether it is of the type.
func (rv RawValue) TimeOK() (time.Time, bool) { return rv.core().TimeOK() }

// JavaScript returns the value, or panics.
func (rv RawValue) JavaScript() string { return rv.core().JavaScript() }

// JavaScriptOK returns the value and whether it is of the type.
func (rv RawValue) JavaScriptOK() (string, bool) { return rv.core().JavaScriptOK() }

// Symbol returns the value, or panics.
func (rv RawValue) Symbol() string { return rv.core().Symbol() }

// SymbolOK returns the value and whether it is of the type.
func (rv RawValue) SymbolOK() (string, bool) { return rv.core().SymbolOK() }

// Int32 returns the value, or panics.
func (rv RawValue) Int32() int32 { return rv.core().Int32() }

// Int32OK returns the value and whether it is of the type.
func (rv RawValue) Int32OK() (int32, bool) { return rv.core().Int32OK() }

// Int64 returns the value, or panics.
func (rv RawValue) Int64() int64 { return rv.core().Int64() }

// Int64OK returns the value and whether it is of the type.
func (rv RawValue) Int64OK() (int64, bool) { return rv.core().Int64OK() }

// AsInt64 returns the value, or panics.
func (rv RawValue) AsInt64() int64 { return rv.core().AsInt64() }

// AsInt64OK returns the value and whether it is of the type.
func (rv RawValue) AsInt64OK() (int64, bool) { return rv.core().AsInt64OK() }

// AsInt32 returns a number as an int32, or panics.
func (rv RawValue) AsInt32() int32 { return rv.core().AsInt32() }

// AsInt32OK returns a number as an int32, and whether the value is one that can be.
func (rv RawValue) AsInt32OK() (int32, bool) { return rv.core().AsInt32OK() }

// Document returns the document, or panics.
func (rv RawValue) Document() Raw { return Raw(rv.core().Document()) }

// DocumentOK returns the document and whether the value is one.
func (rv RawValue) DocumentOK() (Raw, bool) {
	d, ok := rv.core().DocumentOK()
	return Raw(d), ok
}

// Array returns the array, or panics.
func (rv RawValue) Array() Raw { return Raw(rv.core().Array()) }

// ArrayOK returns the array and whether the value is one.
func (rv RawValue) ArrayOK() (Raw, bool) {
	a, ok := rv.core().ArrayOK()
	return Raw(a), ok
}

// Binary returns the subtype and the bytes, or panics.
func (rv RawValue) Binary() (subtype byte, data []byte) { return rv.core().Binary() }

// BinaryOK returns the subtype, the bytes, and whether the value is a binary.
func (rv RawValue) BinaryOK() (subtype byte, data []byte, ok bool) { return rv.core().BinaryOK() }

// ObjectID returns the ObjectID, or panics.
func (rv RawValue) ObjectID() primitive.ObjectID { return rv.core().ObjectID() }

// ObjectIDOK returns the ObjectID and whether the value is one.
func (rv RawValue) ObjectIDOK() (primitive.ObjectID, bool) { return rv.core().ObjectIDOK() }

// Regex returns the pattern and the options, or panics.
func (rv RawValue) Regex() (pattern, options string) { return rv.core().Regex() }

// RegexOK returns the pattern, the options, and whether the value is a regular expression.
func (rv RawValue) RegexOK() (pattern, options string, ok bool) { return rv.core().RegexOK() }

// DBPointer returns the namespace and the ObjectID, or panics.
func (rv RawValue) DBPointer() (string, primitive.ObjectID) { return rv.core().DBPointer() }

// DBPointerOK returns the namespace, the ObjectID, and whether the value is a dbPointer.
func (rv RawValue) DBPointerOK() (string, primitive.ObjectID, bool) { return rv.core().DBPointerOK() }

// CodeWithScope returns the code and the scope, or panics.
func (rv RawValue) CodeWithScope() (string, Raw) {
	code, scope := rv.core().CodeWithScope()
	return code, Raw(scope)
}

// CodeWithScopeOK returns the code, the scope, and whether the value is code with scope.
func (rv RawValue) CodeWithScopeOK() (string, Raw, bool) {
	code, scope, ok := rv.core().CodeWithScopeOK()
	return code, Raw(scope), ok
}

// Timestamp returns the seconds and the counter, or panics.
func (rv RawValue) Timestamp() (t, i uint32) { return rv.core().Timestamp() }

// TimestampOK returns the seconds, the counter, and whether the value is a timestamp.
func (rv RawValue) TimestampOK() (t, i uint32, ok bool) { return rv.core().TimestampOK() }

// Decimal128 returns the decimal, or panics.
func (rv RawValue) Decimal128() primitive.Decimal128 { return rv.core().Decimal128() }

// Decimal128OK returns the decimal and whether the value is one.
func (rv RawValue) Decimal128OK() (primitive.Decimal128, bool) {
	return rv.core().Decimal128OK()
}
