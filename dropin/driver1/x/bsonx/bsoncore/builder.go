package bsoncore

import (
	"go.mongodb.org/mongo-driver/bson/primitive"
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// NewDocumentBuilder returns a builder of an empty document.
func NewDocumentBuilder() *DocumentBuilder {
	return &DocumentBuilder{core.NewDocumentBuilder()}
}

// Build returns the document, and finishes the embedded ones that are not. It panics if the
// document has 2 GiB.
func (db *DocumentBuilder) Build() Document {
	return Document(db.core.Build())
}

// StartDocument begins an embedded document: what is appended next goes into it.
func (db *DocumentBuilder) StartDocument(key string) *DocumentBuilder {
	db.core.StartDocument(key)
	return db
}

// FinishDocument ends the document that was begun last.
func (db *DocumentBuilder) FinishDocument() *DocumentBuilder {
	db.core.FinishDocument()
	return db
}

// AppendValue appends a value that is encoded already.
func (db *DocumentBuilder) AppendValue(key string, val Value) *DocumentBuilder {
	db.core.AppendValue(key, val.core())
	return db
}

// NewArrayBuilder returns a builder of an empty array.
func NewArrayBuilder() *ArrayBuilder {
	return &ArrayBuilder{core.NewArrayBuilder()}
}

// Build returns the array, and finishes those in it that are not.
func (a *ArrayBuilder) Build() Array {
	return Array(a.core.Build())
}

// StartArray begins an array in the array: what is appended next goes into it.
func (a *ArrayBuilder) StartArray() *ArrayBuilder {
	a.core.StartArray()
	return a
}

// FinishArray ends the array that was begun last.
func (a *ArrayBuilder) FinishArray() *ArrayBuilder {
	a.core.FinishArray()
	return a
}

// AppendValue appends a value that is encoded already.
func (a *ArrayBuilder) AppendValue(val Value) *ArrayBuilder {
	a.core.AppendValue(val.core())
	return a
}

// AppendDouble appends a double.
func (db *DocumentBuilder) AppendDouble(key string, f float64) *DocumentBuilder {
	db.core.AppendDouble(key, f)
	return db
}

// AppendDouble appends a double.
func (a *ArrayBuilder) AppendDouble(f float64) *ArrayBuilder {
	a.core.AppendDouble(f)
	return a
}

// AppendString appends a string.
func (db *DocumentBuilder) AppendString(key string, str string) *DocumentBuilder {
	db.core.AppendString(key, str)
	return db
}

// AppendString appends a string.
func (a *ArrayBuilder) AppendString(str string) *ArrayBuilder {
	a.core.AppendString(str)
	return a
}

// AppendDocument appends a document.
func (db *DocumentBuilder) AppendDocument(key string, doc []byte) *DocumentBuilder {
	db.core.AppendDocument(key, doc)
	return db
}

// AppendDocument appends a document.
func (a *ArrayBuilder) AppendDocument(doc []byte) *ArrayBuilder {
	a.core.AppendDocument(doc)
	return a
}

// AppendArray appends an array.
func (db *DocumentBuilder) AppendArray(key string, arr []byte) *DocumentBuilder {
	db.core.AppendArray(key, arr)
	return db
}

// AppendArray appends an array.
func (a *ArrayBuilder) AppendArray(arr []byte) *ArrayBuilder {
	a.core.AppendArray(arr)
	return a
}

// AppendBinary appends a binary value.
func (db *DocumentBuilder) AppendBinary(key string, subtype byte, b []byte) *DocumentBuilder {
	db.core.AppendBinary(key, subtype, b)
	return db
}

// AppendBinary appends a binary value.
func (a *ArrayBuilder) AppendBinary(subtype byte, b []byte) *ArrayBuilder {
	a.core.AppendBinary(subtype, b)
	return a
}

// AppendObjectID appends an ObjectID.
func (db *DocumentBuilder) AppendObjectID(key string, oid primitive.ObjectID) *DocumentBuilder {
	db.core.AppendObjectID(key, oid)
	return db
}

// AppendObjectID appends an ObjectID.
func (a *ArrayBuilder) AppendObjectID(oid primitive.ObjectID) *ArrayBuilder {
	a.core.AppendObjectID(oid)
	return a
}

// AppendBoolean appends a boolean.
func (db *DocumentBuilder) AppendBoolean(key string, b bool) *DocumentBuilder {
	db.core.AppendBoolean(key, b)
	return db
}

// AppendBoolean appends a boolean.
func (a *ArrayBuilder) AppendBoolean(b bool) *ArrayBuilder {
	a.core.AppendBoolean(b)
	return a
}

// AppendDateTime appends a datetime in milliseconds.
func (db *DocumentBuilder) AppendDateTime(key string, dt int64) *DocumentBuilder {
	db.core.AppendDateTime(key, dt)
	return db
}

// AppendDateTime appends a datetime in milliseconds.
func (a *ArrayBuilder) AppendDateTime(dt int64) *ArrayBuilder {
	a.core.AppendDateTime(dt)
	return a
}

// AppendRegex appends a regular expression, with its options as they are.
func (db *DocumentBuilder) AppendRegex(key string, pattern, options string) *DocumentBuilder {
	db.core.AppendRegex(key, pattern, options)
	return db
}

// AppendRegex appends a regular expression, with its options as they are.
func (a *ArrayBuilder) AppendRegex(pattern, options string) *ArrayBuilder {
	a.core.AppendRegex(pattern, options)
	return a
}

// AppendDBPointer appends a dbPointer.
func (db *DocumentBuilder) AppendDBPointer(key string, ns string, oid primitive.ObjectID) *DocumentBuilder {
	db.core.AppendDBPointer(key, ns, oid)
	return db
}

// AppendDBPointer appends a dbPointer.
func (a *ArrayBuilder) AppendDBPointer(ns string, oid primitive.ObjectID) *ArrayBuilder {
	a.core.AppendDBPointer(ns, oid)
	return a
}

// AppendJavaScript appends JavaScript code.
func (db *DocumentBuilder) AppendJavaScript(key string, js string) *DocumentBuilder {
	db.core.AppendJavaScript(key, js)
	return db
}

// AppendJavaScript appends JavaScript code.
func (a *ArrayBuilder) AppendJavaScript(js string) *ArrayBuilder {
	a.core.AppendJavaScript(js)
	return a
}

// AppendSymbol appends a symbol.
func (db *DocumentBuilder) AppendSymbol(key string, symbol string) *DocumentBuilder {
	db.core.AppendSymbol(key, symbol)
	return db
}

// AppendSymbol appends a symbol.
func (a *ArrayBuilder) AppendSymbol(symbol string) *ArrayBuilder {
	a.core.AppendSymbol(symbol)
	return a
}

// AppendCodeWithScope appends JavaScript code with the variables that it sees.
func (db *DocumentBuilder) AppendCodeWithScope(key string, code string, scope Document) *DocumentBuilder {
	db.core.AppendCodeWithScope(key, code, core.Document(scope))
	return db
}

// AppendCodeWithScope appends JavaScript code with the variables that it sees.
func (a *ArrayBuilder) AppendCodeWithScope(code string, scope Document) *ArrayBuilder {
	a.core.AppendCodeWithScope(code, core.Document(scope))
	return a
}

// AppendInt32 appends a 32-bit integer.
func (db *DocumentBuilder) AppendInt32(key string, i32 int32) *DocumentBuilder {
	db.core.AppendInt32(key, i32)
	return db
}

// AppendInt32 appends a 32-bit integer.
func (a *ArrayBuilder) AppendInt32(i32 int32) *ArrayBuilder {
	a.core.AppendInt32(i32)
	return a
}

// AppendTimestamp appends a timestamp.
func (db *DocumentBuilder) AppendTimestamp(key string, t, i uint32) *DocumentBuilder {
	db.core.AppendTimestamp(key, t, i)
	return db
}

// AppendTimestamp appends a timestamp.
func (a *ArrayBuilder) AppendTimestamp(t, i uint32) *ArrayBuilder {
	a.core.AppendTimestamp(t, i)
	return a
}

// AppendInt64 appends a 64-bit integer.
func (db *DocumentBuilder) AppendInt64(key string, i64 int64) *DocumentBuilder {
	db.core.AppendInt64(key, i64)
	return db
}

// AppendInt64 appends a 64-bit integer.
func (a *ArrayBuilder) AppendInt64(i64 int64) *ArrayBuilder {
	a.core.AppendInt64(i64)
	return a
}

// AppendNull appends a null.
func (db *DocumentBuilder) AppendNull(key string) *DocumentBuilder {
	db.core.AppendNull(key)
	return db
}

// AppendNull appends a null.
func (a *ArrayBuilder) AppendNull() *ArrayBuilder {
	a.core.AppendNull()
	return a
}

// AppendUndefined appends an undefined.
func (db *DocumentBuilder) AppendUndefined(key string) *DocumentBuilder {
	db.core.AppendUndefined(key)
	return db
}

// AppendUndefined appends an undefined.
func (a *ArrayBuilder) AppendUndefined() *ArrayBuilder {
	a.core.AppendUndefined()
	return a
}

// AppendMinKey appends a min key.
func (db *DocumentBuilder) AppendMinKey(key string) *DocumentBuilder {
	db.core.AppendMinKey(key)
	return db
}

// AppendMinKey appends a min key.
func (a *ArrayBuilder) AppendMinKey() *ArrayBuilder {
	a.core.AppendMinKey()
	return a
}

// AppendMaxKey appends a max key.
func (db *DocumentBuilder) AppendMaxKey(key string) *DocumentBuilder {
	db.core.AppendMaxKey(key)
	return db
}

// AppendMaxKey appends a max key.
func (a *ArrayBuilder) AppendMaxKey() *ArrayBuilder {
	a.core.AppendMaxKey()
	return a
}
