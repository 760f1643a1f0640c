package bsonx

import (
	"time"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

// get returns what a value holds, if it is of a type.
func get[T any](v Val, t bsontype.Type) (x T, ok bool) {
	if v.Type() != t {
		return x, false
	}
	x, ok = v.v.(T)
	return x, ok
}

// must panics if a value is of another type than a method wants.
func (v Val) must(ok bool, method string) {
	if !ok {
		panic(ElementTypeError{"bson.Value." + method, v.t})
	}
}

// Double returns a double as a Val.
func Double(f64 float64) Val { return Val{bsontype.Double, f64} }

// DoubleOK returns the value and whether it is a double.
func (v Val) DoubleOK() (float64, bool) { return get[float64](v, bsontype.Double) }

// Double returns the value, or panics.
func (v Val) Double() float64 {
	x, ok := v.DoubleOK()
	v.must(ok, "Double")
	return x
}

// Int32 returns a 32-bit integer as a Val.
func Int32(i32 int32) Val { return Val{bsontype.Int32, i32} }

// Int32OK returns the value and whether it is a 32-bit integer.
func (v Val) Int32OK() (int32, bool) { return get[int32](v, bsontype.Int32) }

// Int32 returns the value, or panics.
func (v Val) Int32() int32 {
	x, ok := v.Int32OK()
	v.must(ok, "Int32")
	return x
}

// Int64 returns a 64-bit integer as a Val.
func Int64(i64 int64) Val { return Val{bsontype.Int64, i64} }

// Int64OK returns the value and whether it is a 64-bit integer.
func (v Val) Int64OK() (int64, bool) { return get[int64](v, bsontype.Int64) }

// Int64 returns the value, or panics.
func (v Val) Int64() int64 {
	x, ok := v.Int64OK()
	v.must(ok, "Int64")
	return x
}

// Boolean returns a boolean as a Val.
func Boolean(b bool) Val { return Val{bsontype.Boolean, b} }

// BooleanOK returns the value and whether it is a boolean.
func (v Val) BooleanOK() (bool, bool) { return get[bool](v, bsontype.Boolean) }

// Boolean returns the value, or panics.
func (v Val) Boolean() bool {
	x, ok := v.BooleanOK()
	v.must(ok, "Boolean")
	return x
}

// String returns a string as a Val.
func String(str string) Val { return Val{bsontype.String, str} }

// StringValueOK returns the value and whether it is a string.
func (v Val) StringValueOK() (string, bool) { return get[string](v, bsontype.String) }

// StringValue returns the value, or panics.
func (v Val) StringValue() string {
	x, ok := v.StringValueOK()
	v.must(ok, "StringValue")
	return x
}

// JavaScript returns JavaScript code as a Val.
func JavaScript(js string) Val { return Val{bsontype.JavaScript, js} }

// JavaScriptOK returns the value and whether it is JavaScript code.
func (v Val) JavaScriptOK() (string, bool) { return get[string](v, bsontype.JavaScript) }

// JavaScript returns the value, or panics.
func (v Val) JavaScript() string {
	x, ok := v.JavaScriptOK()
	v.must(ok, "JavaScript")
	return x
}

// Symbol returns a symbol as a Val.
func Symbol(symbol string) Val { return Val{bsontype.Symbol, symbol} }

// SymbolOK returns the value and whether it is a symbol.
func (v Val) SymbolOK() (string, bool) { return get[string](v, bsontype.Symbol) }

// Symbol returns the value, or panics.
func (v Val) Symbol() string {
	x, ok := v.SymbolOK()
	v.must(ok, "Symbol")
	return x
}

// DateTime returns a datetime, in milliseconds since the Unix epoch as a Val.
func DateTime(dt int64) Val { return Val{bsontype.DateTime, dt} }

// DateTimeOK returns the value and whether it is a datetime.
func (v Val) DateTimeOK() (int64, bool) { return get[int64](v, bsontype.DateTime) }

// DateTime returns the value, or panics.
func (v Val) DateTime() int64 {
	x, ok := v.DateTimeOK()
	v.must(ok, "DateTime")
	return x
}

// ObjectID returns an ObjectID as a Val.
func ObjectID(oid primitive.ObjectID) Val { return Val{bsontype.ObjectID, oid} }

// ObjectIDOK returns the value and whether it is an ObjectID.
func (v Val) ObjectIDOK() (primitive.ObjectID, bool) {
	return get[primitive.ObjectID](v, bsontype.ObjectID)
}

// ObjectID returns the value, or panics.
func (v Val) ObjectID() primitive.ObjectID {
	x, ok := v.ObjectIDOK()
	v.must(ok, "ObjectID")
	return x
}

// Decimal128 returns a decimal as a Val.
func Decimal128(d128 primitive.Decimal128) Val { return Val{bsontype.Decimal128, d128} }

// Decimal128OK returns the value and whether it is a decimal.
func (v Val) Decimal128OK() (primitive.Decimal128, bool) {
	return get[primitive.Decimal128](v, bsontype.Decimal128)
}

// Decimal128 returns the value, or panics.
func (v Val) Decimal128() primitive.Decimal128 {
	x, ok := v.Decimal128OK()
	v.must(ok, "Decimal128")
	return x
}

// Null returns that value.
func Null() Val { return Val{bsontype.Null, primitive.Null{}} }

// NullOK reports whether the value is that.
func (v Val) NullOK() bool { return v.Type() == bsontype.Null }

// Null panics if the value is another.
func (v Val) Null() { v.must(v.NullOK(), "Null") }

// Undefined returns that value.
func Undefined() Val { return Val{bsontype.Undefined, primitive.Undefined{}} }

// UndefinedOK reports whether the value is that.
func (v Val) UndefinedOK() bool { return v.Type() == bsontype.Undefined }

// Undefined panics if the value is another.
func (v Val) Undefined() { v.must(v.UndefinedOK(), "Undefined") }

// MinKey returns that value.
func MinKey() Val { return Val{bsontype.MinKey, primitive.MinKey{}} }

// MinKeyOK reports whether the value is that.
func (v Val) MinKeyOK() bool { return v.Type() == bsontype.MinKey }

// MinKey panics if the value is another.
func (v Val) MinKey() { v.must(v.MinKeyOK(), "MinKey") }

// MaxKey returns that value.
func MaxKey() Val { return Val{bsontype.MaxKey, primitive.MaxKey{}} }

// MaxKeyOK reports whether the value is that.
func (v Val) MaxKeyOK() bool { return v.Type() == bsontype.MaxKey }

// MaxKey panics if the value is another.
func (v Val) MaxKey() { v.must(v.MaxKeyOK(), "MaxKey") }

// Time returns a datetime as a Val.
func Time(t time.Time) Val { return DateTime(t.UnixMilli()) }

// TimeOK returns the time, in the local zone, and whether the value is a datetime.
func (v Val) TimeOK() (time.Time, bool) {
	ms, ok := v.DateTimeOK()
	if !ok {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// Time returns the time, or panics.
func (v Val) Time() time.Time {
	t, ok := v.TimeOK()
	v.must(ok, "Time")
	return t
}

// Binary returns a binary value as a Val.
func Binary(subtype byte, data []byte) Val {
	return Val{bsontype.Binary, primitive.Binary{Subtype: subtype, Data: data}}
}

// BinaryOK returns the subtype, the bytes and whether the value is binary.
func (v Val) BinaryOK() (byte, []byte, bool) {
	b, ok := get[primitive.Binary](v, bsontype.Binary)
	return b.Subtype, b.Data, ok
}

// Binary returns the subtype and the bytes, or panics.
func (v Val) Binary() (byte, []byte) {
	subtype, data, ok := v.BinaryOK()
	v.must(ok, "Binary")
	return subtype, data
}

// Regex returns a regular expression as a Val.
func Regex(pattern, options string) Val {
	return Val{bsontype.Regex, primitive.Regex{Pattern: pattern, Options: options}}
}

// RegexOK returns the parts and whether the value is a regular expression.
func (v Val) RegexOK() (pattern, options string, ok bool) {
	r, ok := get[primitive.Regex](v, bsontype.Regex)
	return r.Pattern, r.Options, ok
}

// Regex returns the parts, or panics.
func (v Val) Regex() (pattern, options string) {
	pattern, options, ok := v.RegexOK()
	v.must(ok, "Regex")
	return pattern, options
}

// DBPointer returns a dbPointer as a Val.
func DBPointer(ns string, ptr primitive.ObjectID) Val {
	return Val{bsontype.DBPointer, primitive.DBPointer{DB: ns, Pointer: ptr}}
}

// DBPointerOK returns the parts and whether the value is a dbPointer.
func (v Val) DBPointerOK() (string, primitive.ObjectID, bool) {
	p, ok := get[primitive.DBPointer](v, bsontype.DBPointer)
	return p.DB, p.Pointer, ok
}

// DBPointer returns the parts, or panics.
func (v Val) DBPointer() (string, primitive.ObjectID) {
	ns, ptr, ok := v.DBPointerOK()
	v.must(ok, "DBPointer")
	return ns, ptr
}

// Timestamp returns a timestamp as a Val.
func Timestamp(t, i uint32) Val { return Val{bsontype.Timestamp, primitive.Timestamp{T: t, I: i}} }

// TimestampOK returns the parts and whether the value is a timestamp.
func (v Val) TimestampOK() (t uint32, i uint32, ok bool) {
	ts, ok := get[primitive.Timestamp](v, bsontype.Timestamp)
	return ts.T, ts.I, ok
}

// Timestamp returns the parts, or panics.
func (v Val) Timestamp() (t, i uint32) {
	t, i, ok := v.TimestampOK()
	v.must(ok, "Timestamp")
	return t, i
}

// CodeWithScope returns JavaScript code with a scope as a Val.
func CodeWithScope(code string, scope IDoc) Val {
	return Val{bsontype.CodeWithScope, primitive.CodeWithScope{Code: primitive.JavaScript(code), Scope: scope}}
}

// CodeWithScopeOK returns the parts and whether the value is code with a scope.
func (v Val) CodeWithScopeOK() (string, Doc, bool) {
	c, ok := get[primitive.CodeWithScope](v, bsontype.CodeWithScope)
	if !ok {
		return "", nil, false
	}
	return string(c.Code), ordered(c.Scope), true
}

// CodeWithScope returns the parts, or panics.
func (v Val) CodeWithScope() (string, Doc) {
	code, scope, ok := v.CodeWithScopeOK()
	v.must(ok, "CodeWithScope")
	return code, scope
}

// ordered returns a document as a Doc.
func ordered(d any) Doc {
	if m, ok := d.(MDoc); ok {
		out := make(Doc, 0, len(m))
		for e := range m.sorted {
			out = append(out, e)
		}
		return out
	}
	doc, _ := d.(Doc)
	return doc
}

// Document returns a document as a Val. One that is nil is null.
func Document(doc IDoc) Val {
	switch d := doc.(type) {
	case Doc:
		if d != nil {
			return Val{bsontype.EmbeddedDocument, d}
		}
	case MDoc:
		if d != nil {
			return Val{bsontype.EmbeddedDocument, d}
		}
	}
	return Null()
}

// DocumentOK returns the document and whether the value is one.
func (v Val) DocumentOK() (Doc, bool) {
	if v.t != bsontype.EmbeddedDocument {
		return nil, false
	}
	return ordered(v.v), true
}

// Document returns the document, or panics.
func (v Val) Document() Doc {
	d, ok := v.DocumentOK()
	v.must(ok, "Document")
	return d
}

// MDocumentOK returns the document and whether the value is one.
func (v Val) MDocumentOK() (MDoc, bool) {
	switch d := v.v.(type) {
	case MDoc:
		return d, true
	case Doc:
		m := make(MDoc, len(d))
		for _, e := range d {
			m[e.Key] = e.Value
		}
		return m, true
	}
	return nil, false
}

// MDocument returns the document, or panics.
func (v Val) MDocument() MDoc {
	d, ok := v.MDocumentOK()
	v.must(ok, "MDocument")
	return d
}

// Array returns an array as a Val. One that is nil is null.
func Array(arr Arr) Val {
	if arr == nil {
		return Null()
	}
	return Val{bsontype.Array, arr}
}

// ArrayOK returns the array and whether the value is one.
func (v Val) ArrayOK() (Arr, bool) { return get[Arr](v, bsontype.Array) }

// Array returns the array, or panics.
func (v Val) Array() Arr {
	a, ok := v.ArrayOK()
	v.must(ok, "Array")
	return a
}
