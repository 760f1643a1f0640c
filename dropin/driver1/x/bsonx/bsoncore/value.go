package bsoncore

import (
	"go.mongodb.org/mongo-driver/bson/primitive"
	"time"
)

// Validate reports whether the value is whole.
func (v Value) Validate() error {
	return v.core().Validate()
}

// IsNumber reports whether the value is a number of any type.
func (v Value) IsNumber() bool {
	return v.core().IsNumber()
}

// Equal reports whether both are of the same type and have the same bytes.
func (v Value) Equal(v2 Value) bool {
	return v.core().Equal(v2.core())
}

// AsInt32OK returns a double or an integer as an int32, and whether the value is one.
func (v Value) AsInt32OK() (int32, bool) {
	return v.core().AsInt32OK()
}

// AsInt32 is AsInt32OK, and panics if the value is none.
func (v Value) AsInt32() int32 {
	defer own()
	return v.core().AsInt32()
}

// AsInt64OK returns a double or an integer as an int64, and whether the value is one.
func (v Value) AsInt64OK() (int64, bool) {
	return v.core().AsInt64OK()
}

// AsInt64 is AsInt64OK, and panics if the value is none.
func (v Value) AsInt64() int64 {
	defer own()
	return v.core().AsInt64()
}

// DoubleOK returns the value, and whether it is of this type and whole.
func (v Value) DoubleOK() (float64, bool) {
	return v.core().DoubleOK()
}

// Double is DoubleOK, and panics instead of returning false.
func (v Value) Double() float64 {
	defer own()
	return v.core().Double()
}

// StringValueOK returns the value, and whether it is of this type and whole.
func (v Value) StringValueOK() (string, bool) {
	return v.core().StringValueOK()
}

// StringValue is StringValueOK, and panics instead of returning false.
func (v Value) StringValue() string {
	defer own()
	return v.core().StringValue()
}

// DocumentOK returns the value, and whether it is of this type and whole.
func (v Value) DocumentOK() (Document, bool) {
	doc, ok := v.core().DocumentOK()
	return Document(doc), ok
}

// Document is DocumentOK, and panics instead of returning false.
func (v Value) Document() Document {
	defer own()
	return Document(v.core().Document())
}

// ArrayOK returns the value, and whether it is of this type and whole.
func (v Value) ArrayOK() (Array, bool) {
	arr, ok := v.core().ArrayOK()
	return Array(arr), ok
}

// Array is ArrayOK, and panics instead of returning false.
func (v Value) Array() Array {
	defer own()
	return Array(v.core().Array())
}

// BinaryOK returns the value, and whether it is of this type and whole.
func (v Value) BinaryOK() (byte, []byte, bool) {
	return v.core().BinaryOK()
}

// Binary is BinaryOK, and panics instead of returning false.
func (v Value) Binary() (byte, []byte) {
	defer own()
	return v.core().Binary()
}

// ObjectIDOK returns the value, and whether it is of this type and whole.
func (v Value) ObjectIDOK() (primitive.ObjectID, bool) {
	return v.core().ObjectIDOK()
}

// ObjectID is ObjectIDOK, and panics instead of returning false.
func (v Value) ObjectID() primitive.ObjectID {
	defer own()
	return v.core().ObjectID()
}

// BooleanOK returns the value, and whether it is of this type and whole.
func (v Value) BooleanOK() (bool, bool) {
	return v.core().BooleanOK()
}

// Boolean is BooleanOK, and panics instead of returning false.
func (v Value) Boolean() bool {
	defer own()
	return v.core().Boolean()
}

// DateTimeOK returns the value, and whether it is of this type and whole.
func (v Value) DateTimeOK() (int64, bool) {
	return v.core().DateTimeOK()
}

// DateTime is DateTimeOK, and panics instead of returning false.
func (v Value) DateTime() int64 {
	defer own()
	return v.core().DateTime()
}

// TimeOK returns the value, and whether it is of this type and whole.
func (v Value) TimeOK() (time.Time, bool) {
	return v.core().TimeOK()
}

// Time is TimeOK, and panics instead of returning false.
func (v Value) Time() time.Time {
	defer own()
	return v.core().Time()
}

// RegexOK returns the value, and whether it is of this type and whole.
func (v Value) RegexOK() (string, string, bool) {
	return v.core().RegexOK()
}

// Regex is RegexOK, and panics instead of returning false.
func (v Value) Regex() (string, string) {
	defer own()
	return v.core().Regex()
}

// DBPointerOK returns the value, and whether it is of this type and whole.
func (v Value) DBPointerOK() (string, primitive.ObjectID, bool) {
	return v.core().DBPointerOK()
}

// DBPointer is DBPointerOK, and panics instead of returning false.
func (v Value) DBPointer() (string, primitive.ObjectID) {
	defer own()
	return v.core().DBPointer()
}

// JavaScriptOK returns the value, and whether it is of this type and whole.
func (v Value) JavaScriptOK() (string, bool) {
	return v.core().JavaScriptOK()
}

// JavaScript is JavaScriptOK, and panics instead of returning false.
func (v Value) JavaScript() string {
	defer own()
	return v.core().JavaScript()
}

// SymbolOK returns the value, and whether it is of this type and whole.
func (v Value) SymbolOK() (string, bool) {
	return v.core().SymbolOK()
}

// Symbol is SymbolOK, and panics instead of returning false.
func (v Value) Symbol() string {
	defer own()
	return v.core().Symbol()
}

// CodeWithScopeOK returns the value, and whether it is of this type and whole.
func (v Value) CodeWithScopeOK() (string, Document, bool) {
	s, doc, ok := v.core().CodeWithScopeOK()
	return s, Document(doc), ok
}

// CodeWithScope is CodeWithScopeOK, and panics instead of returning false.
func (v Value) CodeWithScope() (string, Document) {
	defer own()
	s, doc := v.core().CodeWithScope()
	return s, Document(doc)
}

// Int32OK returns the value, and whether it is of this type and whole.
func (v Value) Int32OK() (int32, bool) {
	return v.core().Int32OK()
}

// Int32 is Int32OK, and panics instead of returning false.
func (v Value) Int32() int32 {
	defer own()
	return v.core().Int32()
}

// TimestampOK returns the value, and whether it is of this type and whole.
func (v Value) TimestampOK() (uint32, uint32, bool) {
	return v.core().TimestampOK()
}

// Timestamp is TimestampOK, and panics instead of returning false.
func (v Value) Timestamp() (uint32, uint32) {
	defer own()
	return v.core().Timestamp()
}

// Int64OK returns the value, and whether it is of this type and whole.
func (v Value) Int64OK() (int64, bool) {
	return v.core().Int64OK()
}

// Int64 is Int64OK, and panics instead of returning false.
func (v Value) Int64() int64 {
	defer own()
	return v.core().Int64()
}
