package bsoncore

import (
	"bytes"
	"time"
)

// A Value is an encoded value: its type and its bytes.
type Value struct {
	Type Type
	Data []byte
}

// Validate reports whether the value is whole.
func (v Value) Validate() error {
	if _, _, ok := readValue(v.Data, v.Type); !ok {
		return NewInsufficientBytesError(v.Data, v.Data)
	}
	return nil
}

// IsNumber reports whether the value is a number of any type.
func (v Value) IsNumber() bool {
	switch v.Type {
	case TypeDouble, TypeInt32, TypeInt64, TypeDecimal128:
		return true
	}
	return false
}

// Equal reports whether both are of the same type and have the same bytes.
func (v Value) Equal(v2 Value) bool { return v.Type == v2.Type && bytes.Equal(v.Data, v2.Data) }

// must panics if a getter's value is of another type, or is not whole.
func (v Value) must(method string, ok bool, types ...Type) {
	if ok {
		return
	}
	for _, t := range types {
		if v.Type == t {
			panic(NewInsufficientBytesError(v.Data, v.Data))
		}
	}
	panic(ElementTypeError{Method: "bsoncore.Value." + method, Type: v.Type})
}

// number returns the value of a double or an integer.
func number[T int32 | int64 | float64](v Value) (T, bool) {
	switch v.Type {
	case TypeDouble:
		f, ok := v.DoubleOK()
		return T(f), ok
	case TypeInt32:
		n, ok := v.Int32OK()
		return T(n), ok
	case TypeInt64:
		n, ok := v.Int64OK()
		return T(n), ok
	}
	return 0, false
}

// AsInt32OK returns a double or an integer as an int32, and whether the value is one.
func (v Value) AsInt32OK() (int32, bool) { return number[int32](v) }

// AsInt32 is AsInt32OK, and panics if the value is none.
func (v Value) AsInt32() int32 {
	n, ok := v.AsInt32OK()
	v.must("AsInt32", ok, TypeDouble, TypeInt32, TypeInt64)
	return n
}

// AsInt64OK returns a double or an integer as an int64, and whether the value is one.
func (v Value) AsInt64OK() (int64, bool) { return number[int64](v) }

// AsInt64 is AsInt64OK, and panics if the value is none.
func (v Value) AsInt64() int64 {
	n, ok := v.AsInt64OK()
	v.must("AsInt64", ok, TypeDouble, TypeInt32, TypeInt64)
	return n
}

// AsFloat64OK returns a double or an integer as a float64, and whether the value is one.
func (v Value) AsFloat64OK() (float64, bool) { return number[float64](v) }

// AsFloat64 is AsFloat64OK, and panics if the value is none.
func (v Value) AsFloat64() float64 {
	n, ok := v.AsFloat64OK()
	v.must("AsFloat64", ok, TypeDouble, TypeInt32, TypeInt64)
	return n
}

// DoubleOK returns the value, and whether it is of this type and whole.
func (v Value) DoubleOK() (float64, bool) {
	if v.Type != TypeDouble {
		return 0, false
	}
	n, _, ok := ReadDouble(v.Data)
	if !ok {
		return 0, false
	}
	return n, true
}

// Double is DoubleOK, and panics instead of returning false.
func (v Value) Double() float64 {
	n, ok := v.DoubleOK()
	v.must("Double", ok, TypeDouble)
	return n
}

// StringValueOK returns the value, and whether it is of this type and whole.
func (v Value) StringValueOK() (string, bool) {
	if v.Type != TypeString {
		return "", false
	}
	s, _, ok := ReadString(v.Data)
	if !ok {
		return "", false
	}
	return s, true
}

// StringValue is StringValueOK, and panics instead of returning false.
func (v Value) StringValue() string {
	s, ok := v.StringValueOK()
	v.must("StringValue", ok, TypeString)
	return s
}

// DocumentOK returns the value, and whether it is of this type and whole.
func (v Value) DocumentOK() (Document, bool) {
	if v.Type != TypeEmbeddedDocument {
		return nil, false
	}
	d, _, ok := ReadDocument(v.Data)
	if !ok {
		return nil, false
	}
	return d, true
}

// Document is DocumentOK, and panics instead of returning false.
func (v Value) Document() Document {
	d, ok := v.DocumentOK()
	v.must("Document", ok, TypeEmbeddedDocument)
	return d
}

// ArrayOK returns the value, and whether it is of this type and whole.
func (v Value) ArrayOK() (Array, bool) {
	if v.Type != TypeArray {
		return nil, false
	}
	a, _, ok := ReadArray(v.Data)
	if !ok {
		return nil, false
	}
	return a, true
}

// Array is ArrayOK, and panics instead of returning false.
func (v Value) Array() Array {
	a, ok := v.ArrayOK()
	v.must("Array", ok, TypeArray)
	return a
}

// BinaryOK returns the value, and whether it is of this type and whole.
func (v Value) BinaryOK() (byte, []byte, bool) {
	if v.Type != TypeBinary {
		return 0, nil, false
	}
	subtype, data, _, ok := ReadBinary(v.Data)
	if !ok {
		return 0, nil, false
	}
	return subtype, data, true
}

// Binary is BinaryOK, and panics instead of returning false.
func (v Value) Binary() (byte, []byte) {
	subtype, data, ok := v.BinaryOK()
	v.must("Binary", ok, TypeBinary)
	return subtype, data
}

// ObjectIDOK returns the value, and whether it is of this type and whole.
func (v Value) ObjectIDOK() ([12]byte, bool) {
	if v.Type != TypeObjectID {
		return [12]byte{}, false
	}
	id, _, ok := ReadObjectID(v.Data)
	if !ok {
		return [12]byte{}, false
	}
	return id, true
}

// ObjectID is ObjectIDOK, and panics instead of returning false.
func (v Value) ObjectID() [12]byte {
	id, ok := v.ObjectIDOK()
	v.must("ObjectID", ok, TypeObjectID)
	return id
}

// BooleanOK returns the value, and whether it is of this type and whole.
func (v Value) BooleanOK() (bool, bool) {
	if v.Type != TypeBoolean {
		return false, false
	}
	b, _, ok := ReadBoolean(v.Data)
	if !ok {
		return false, false
	}
	return b, true
}

// Boolean is BooleanOK, and panics instead of returning false.
func (v Value) Boolean() bool {
	b, ok := v.BooleanOK()
	v.must("Boolean", ok, TypeBoolean)
	return b
}

// DateTimeOK returns the value, and whether it is of this type and whole.
func (v Value) DateTimeOK() (int64, bool) {
	if v.Type != TypeDateTime {
		return 0, false
	}
	n, _, ok := ReadDateTime(v.Data)
	if !ok {
		return 0, false
	}
	return n, true
}

// DateTime is DateTimeOK, and panics instead of returning false.
func (v Value) DateTime() int64 {
	n, ok := v.DateTimeOK()
	v.must("DateTime", ok, TypeDateTime)
	return n
}

// TimeOK returns the value, and whether it is of this type and whole.
func (v Value) TimeOK() (time.Time, bool) {
	if v.Type != TypeDateTime {
		return time.Time{}, false
	}
	t, _, ok := ReadTime(v.Data)
	if !ok {
		return time.Time{}, false
	}
	return t, true
}

// Time is TimeOK, and panics instead of returning false.
func (v Value) Time() time.Time {
	t, ok := v.TimeOK()
	v.must("Time", ok, TypeDateTime)
	return t
}

// RegexOK returns the value, and whether it is of this type and whole.
func (v Value) RegexOK() (string, string, bool) {
	if v.Type != TypeRegex {
		return "", "", false
	}
	pattern, options, _, ok := ReadRegex(v.Data)
	if !ok {
		return "", "", false
	}
	return pattern, options, true
}

// Regex is RegexOK, and panics instead of returning false.
func (v Value) Regex() (string, string) {
	pattern, options, ok := v.RegexOK()
	v.must("Regex", ok, TypeRegex)
	return pattern, options
}

// DBPointerOK returns the value, and whether it is of this type and whole.
func (v Value) DBPointerOK() (string, [12]byte, bool) {
	if v.Type != TypeDBPointer {
		return "", [12]byte{}, false
	}
	ns, id, _, ok := ReadDBPointer(v.Data)
	if !ok {
		return "", [12]byte{}, false
	}
	return ns, id, true
}

// DBPointer is DBPointerOK, and panics instead of returning false.
func (v Value) DBPointer() (string, [12]byte) {
	ns, id, ok := v.DBPointerOK()
	v.must("DBPointer", ok, TypeDBPointer)
	return ns, id
}

// JavaScriptOK returns the value, and whether it is of this type and whole.
func (v Value) JavaScriptOK() (string, bool) {
	if v.Type != TypeJavaScript {
		return "", false
	}
	s, _, ok := ReadJavaScript(v.Data)
	if !ok {
		return "", false
	}
	return s, true
}

// JavaScript is JavaScriptOK, and panics instead of returning false.
func (v Value) JavaScript() string {
	s, ok := v.JavaScriptOK()
	v.must("JavaScript", ok, TypeJavaScript)
	return s
}

// SymbolOK returns the value, and whether it is of this type and whole.
func (v Value) SymbolOK() (string, bool) {
	if v.Type != TypeSymbol {
		return "", false
	}
	s, _, ok := ReadSymbol(v.Data)
	if !ok {
		return "", false
	}
	return s, true
}

// Symbol is SymbolOK, and panics instead of returning false.
func (v Value) Symbol() string {
	s, ok := v.SymbolOK()
	v.must("Symbol", ok, TypeSymbol)
	return s
}

// CodeWithScopeOK returns the value, and whether it is of this type and whole.
func (v Value) CodeWithScopeOK() (string, Document, bool) {
	if v.Type != TypeCodeWithScope {
		return "", nil, false
	}
	code, scope, _, ok := readCodeWithScope(v.Data)
	if !ok {
		return "", nil, false
	}
	return code, scope, true
}

// CodeWithScope is CodeWithScopeOK, and panics instead of returning false.
func (v Value) CodeWithScope() (string, Document) {
	code, scope, ok := v.CodeWithScopeOK()
	v.must("CodeWithScope", ok, TypeCodeWithScope)
	return code, scope
}

// Int32OK returns the value, and whether it is of this type and whole.
func (v Value) Int32OK() (int32, bool) {
	if v.Type != TypeInt32 {
		return 0, false
	}
	n, _, ok := ReadInt32(v.Data)
	if !ok {
		return 0, false
	}
	return n, true
}

// Int32 is Int32OK, and panics instead of returning false.
func (v Value) Int32() int32 {
	n, ok := v.Int32OK()
	v.must("Int32", ok, TypeInt32)
	return n
}

// TimestampOK returns the value, and whether it is of this type and whole.
func (v Value) TimestampOK() (uint32, uint32, bool) {
	if v.Type != TypeTimestamp {
		return 0, 0, false
	}
	t, i, _, ok := ReadTimestamp(v.Data)
	if !ok {
		return 0, 0, false
	}
	return t, i, true
}

// Timestamp is TimestampOK, and panics instead of returning false.
func (v Value) Timestamp() (uint32, uint32) {
	t, i, ok := v.TimestampOK()
	v.must("Timestamp", ok, TypeTimestamp)
	return t, i
}

// Int64OK returns the value, and whether it is of this type and whole.
func (v Value) Int64OK() (int64, bool) {
	if v.Type != TypeInt64 {
		return 0, false
	}
	n, _, ok := ReadInt64(v.Data)
	if !ok {
		return 0, false
	}
	return n, true
}

// Int64 is Int64OK, and panics instead of returning false.
func (v Value) Int64() int64 {
	n, ok := v.Int64OK()
	v.must("Int64", ok, TypeInt64)
	return n
}

// Decimal128OK returns the value, and whether it is of this type and whole.
func (v Value) Decimal128OK() (uint64, uint64, bool) {
	if v.Type != TypeDecimal128 {
		return 0, 0, false
	}
	high, low, _, ok := ReadDecimal128(v.Data)
	if !ok {
		return 0, 0, false
	}
	return high, low, true
}

// Decimal128 is Decimal128OK, and panics instead of returning false.
func (v Value) Decimal128() (uint64, uint64) {
	high, low, ok := v.Decimal128OK()
	v.must("Decimal128", ok, TypeDecimal128)
	return high, low
}
