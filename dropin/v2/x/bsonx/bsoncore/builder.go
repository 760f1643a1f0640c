package bsoncore

import "strconv"

// A DocumentBuilder makes a document, one element after the other.
type DocumentBuilder struct {
	doc  []byte
	open []int32 // where the documents begin that are not finished
}

// NewDocumentBuilder returns a builder of an empty document.
func NewDocumentBuilder() *DocumentBuilder { return new(DocumentBuilder).start() }

func (db *DocumentBuilder) start() *DocumentBuilder {
	var index int32
	index, db.doc = AppendDocumentStart(db.doc)
	db.open = append(db.open, index)
	return db
}

// Build returns the document, and finishes the embedded ones that are not. It panics if the
// document has 2 GiB.
func (db *DocumentBuilder) Build() Document {
	for len(db.open) > 0 {
		db.FinishDocument()
	}
	return db.doc
}

// StartDocument begins an embedded document: what is appended next goes into it.
func (db *DocumentBuilder) StartDocument(key string) *DocumentBuilder {
	db.doc = AppendHeader(db.doc, TypeEmbeddedDocument, key)
	return db.start()
}

// FinishDocument ends the document that was begun last.
func (db *DocumentBuilder) FinishDocument() *DocumentBuilder {
	last := len(db.open) - 1
	db.doc, _ = AppendDocumentEnd(db.doc, db.open[last])
	db.open = db.open[:last]
	return db
}

// AppendValue appends a value that is encoded already.
func (db *DocumentBuilder) AppendValue(key string, val Value) *DocumentBuilder {
	db.doc = AppendValueElement(db.doc, key, val)
	return db
}

// An ArrayBuilder makes an array, one value after the other.
type ArrayBuilder struct {
	arr  []byte
	open []int32 // where the arrays begin that are not finished
	next []int   // the index of the next value in each of them
}

// NewArrayBuilder returns a builder of an empty array.
func NewArrayBuilder() *ArrayBuilder { return new(ArrayBuilder).start() }

func (a *ArrayBuilder) start() *ArrayBuilder {
	var index int32
	index, a.arr = AppendArrayStart(a.arr)
	a.open, a.next = append(a.open, index), append(a.next, 0)
	return a
}

// key returns the key of the next value.
func (a *ArrayBuilder) key() string {
	last := len(a.next) - 1
	a.next[last]++
	return strconv.Itoa(a.next[last] - 1)
}

// Build returns the array, and finishes those in it that are not.
func (a *ArrayBuilder) Build() Array {
	for len(a.open) > 0 {
		a.FinishArray()
	}
	return a.arr
}

// StartArray begins an array in the array: what is appended next goes into it.
func (a *ArrayBuilder) StartArray() *ArrayBuilder {
	a.arr = AppendHeader(a.arr, TypeArray, a.key())
	return a.start()
}

// FinishArray ends the array that was begun last.
func (a *ArrayBuilder) FinishArray() *ArrayBuilder {
	last := len(a.open) - 1
	a.arr, _ = AppendArrayEnd(a.arr, a.open[last])
	a.open, a.next = a.open[:last], a.next[:last]
	return a
}

// AppendValue appends a value that is encoded already.
func (a *ArrayBuilder) AppendValue(val Value) *ArrayBuilder {
	a.arr = AppendValueElement(a.arr, a.key(), val)
	return a
}

// AppendDouble appends a double.
func (db *DocumentBuilder) AppendDouble(key string, f float64) *DocumentBuilder {
	db.doc = AppendDoubleElement(db.doc, key, f)
	return db
}

// AppendDouble appends a double.
func (a *ArrayBuilder) AppendDouble(f float64) *ArrayBuilder {
	a.arr = AppendDoubleElement(a.arr, a.key(), f)
	return a
}

// AppendString appends a string.
func (db *DocumentBuilder) AppendString(key string, str string) *DocumentBuilder {
	db.doc = AppendStringElement(db.doc, key, str)
	return db
}

// AppendString appends a string.
func (a *ArrayBuilder) AppendString(str string) *ArrayBuilder {
	a.arr = AppendStringElement(a.arr, a.key(), str)
	return a
}

// AppendDocument appends a document.
func (db *DocumentBuilder) AppendDocument(key string, doc []byte) *DocumentBuilder {
	db.doc = AppendDocumentElement(db.doc, key, doc)
	return db
}

// AppendDocument appends a document.
func (a *ArrayBuilder) AppendDocument(doc []byte) *ArrayBuilder {
	a.arr = AppendDocumentElement(a.arr, a.key(), doc)
	return a
}

// AppendArray appends an array.
func (db *DocumentBuilder) AppendArray(key string, arr []byte) *DocumentBuilder {
	db.doc = AppendArrayElement(db.doc, key, arr)
	return db
}

// AppendArray appends an array.
func (a *ArrayBuilder) AppendArray(arr []byte) *ArrayBuilder {
	a.arr = AppendArrayElement(a.arr, a.key(), arr)
	return a
}

// AppendBinary appends a binary value.
func (db *DocumentBuilder) AppendBinary(key string, subtype byte, b []byte) *DocumentBuilder {
	db.doc = AppendBinaryElement(db.doc, key, subtype, b)
	return db
}

// AppendBinary appends a binary value.
func (a *ArrayBuilder) AppendBinary(subtype byte, b []byte) *ArrayBuilder {
	a.arr = AppendBinaryElement(a.arr, a.key(), subtype, b)
	return a
}

// AppendObjectID appends an ObjectID.
func (db *DocumentBuilder) AppendObjectID(key string, oid objectID) *DocumentBuilder {
	db.doc = AppendObjectIDElement(db.doc, key, oid)
	return db
}

// AppendObjectID appends an ObjectID.
func (a *ArrayBuilder) AppendObjectID(oid objectID) *ArrayBuilder {
	a.arr = AppendObjectIDElement(a.arr, a.key(), oid)
	return a
}

// AppendBoolean appends a boolean.
func (db *DocumentBuilder) AppendBoolean(key string, b bool) *DocumentBuilder {
	db.doc = AppendBooleanElement(db.doc, key, b)
	return db
}

// AppendBoolean appends a boolean.
func (a *ArrayBuilder) AppendBoolean(b bool) *ArrayBuilder {
	a.arr = AppendBooleanElement(a.arr, a.key(), b)
	return a
}

// AppendDateTime appends a datetime in milliseconds.
func (db *DocumentBuilder) AppendDateTime(key string, dt int64) *DocumentBuilder {
	db.doc = AppendDateTimeElement(db.doc, key, dt)
	return db
}

// AppendDateTime appends a datetime in milliseconds.
func (a *ArrayBuilder) AppendDateTime(dt int64) *ArrayBuilder {
	a.arr = AppendDateTimeElement(a.arr, a.key(), dt)
	return a
}

// AppendRegex appends a regular expression, with its options as they are.
func (db *DocumentBuilder) AppendRegex(key string, pattern, options string) *DocumentBuilder {
	db.doc = AppendRegexElement(db.doc, key, pattern, options)
	return db
}

// AppendRegex appends a regular expression, with its options as they are.
func (a *ArrayBuilder) AppendRegex(pattern, options string) *ArrayBuilder {
	a.arr = AppendRegexElement(a.arr, a.key(), pattern, options)
	return a
}

// AppendDBPointer appends a dbPointer.
func (db *DocumentBuilder) AppendDBPointer(key string, ns string, oid objectID) *DocumentBuilder {
	db.doc = AppendDBPointerElement(db.doc, key, ns, oid)
	return db
}

// AppendDBPointer appends a dbPointer.
func (a *ArrayBuilder) AppendDBPointer(ns string, oid objectID) *ArrayBuilder {
	a.arr = AppendDBPointerElement(a.arr, a.key(), ns, oid)
	return a
}

// AppendJavaScript appends JavaScript code.
func (db *DocumentBuilder) AppendJavaScript(key string, js string) *DocumentBuilder {
	db.doc = AppendJavaScriptElement(db.doc, key, js)
	return db
}

// AppendJavaScript appends JavaScript code.
func (a *ArrayBuilder) AppendJavaScript(js string) *ArrayBuilder {
	a.arr = AppendJavaScriptElement(a.arr, a.key(), js)
	return a
}

// AppendSymbol appends a symbol.
func (db *DocumentBuilder) AppendSymbol(key string, symbol string) *DocumentBuilder {
	db.doc = AppendSymbolElement(db.doc, key, symbol)
	return db
}

// AppendSymbol appends a symbol.
func (a *ArrayBuilder) AppendSymbol(symbol string) *ArrayBuilder {
	a.arr = AppendSymbolElement(a.arr, a.key(), symbol)
	return a
}

// AppendCodeWithScope appends JavaScript code with the variables that it sees.
func (db *DocumentBuilder) AppendCodeWithScope(key string, code string, scope Document) *DocumentBuilder {
	db.doc = AppendCodeWithScopeElement(db.doc, key, code, scope)
	return db
}

// AppendCodeWithScope appends JavaScript code with the variables that it sees.
func (a *ArrayBuilder) AppendCodeWithScope(code string, scope Document) *ArrayBuilder {
	a.arr = AppendCodeWithScopeElement(a.arr, a.key(), code, scope)
	return a
}

// AppendInt32 appends a 32-bit integer.
func (db *DocumentBuilder) AppendInt32(key string, i32 int32) *DocumentBuilder {
	db.doc = AppendInt32Element(db.doc, key, i32)
	return db
}

// AppendInt32 appends a 32-bit integer.
func (a *ArrayBuilder) AppendInt32(i32 int32) *ArrayBuilder {
	a.arr = AppendInt32Element(a.arr, a.key(), i32)
	return a
}

// AppendTimestamp appends a timestamp.
func (db *DocumentBuilder) AppendTimestamp(key string, t, i uint32) *DocumentBuilder {
	db.doc = AppendTimestampElement(db.doc, key, t, i)
	return db
}

// AppendTimestamp appends a timestamp.
func (a *ArrayBuilder) AppendTimestamp(t, i uint32) *ArrayBuilder {
	a.arr = AppendTimestampElement(a.arr, a.key(), t, i)
	return a
}

// AppendInt64 appends a 64-bit integer.
func (db *DocumentBuilder) AppendInt64(key string, i64 int64) *DocumentBuilder {
	db.doc = AppendInt64Element(db.doc, key, i64)
	return db
}

// AppendInt64 appends a 64-bit integer.
func (a *ArrayBuilder) AppendInt64(i64 int64) *ArrayBuilder {
	a.arr = AppendInt64Element(a.arr, a.key(), i64)
	return a
}

// AppendDecimal128 appends a decimal of these high and low 64 bits.
func (db *DocumentBuilder) AppendDecimal128(key string, high, low uint64) *DocumentBuilder {
	db.doc = AppendDecimal128Element(db.doc, key, high, low)
	return db
}

// AppendDecimal128 appends a decimal of these high and low 64 bits.
func (a *ArrayBuilder) AppendDecimal128(high, low uint64) *ArrayBuilder {
	a.arr = AppendDecimal128Element(a.arr, a.key(), high, low)
	return a
}

// AppendNull appends a null.
func (db *DocumentBuilder) AppendNull(key string) *DocumentBuilder {
	db.doc = AppendNullElement(db.doc, key)
	return db
}

// AppendNull appends a null.
func (a *ArrayBuilder) AppendNull() *ArrayBuilder {
	a.arr = AppendNullElement(a.arr, a.key())
	return a
}

// AppendUndefined appends an undefined.
func (db *DocumentBuilder) AppendUndefined(key string) *DocumentBuilder {
	db.doc = AppendUndefinedElement(db.doc, key)
	return db
}

// AppendUndefined appends an undefined.
func (a *ArrayBuilder) AppendUndefined() *ArrayBuilder {
	a.arr = AppendUndefinedElement(a.arr, a.key())
	return a
}

// AppendMinKey appends a min key.
func (db *DocumentBuilder) AppendMinKey(key string) *DocumentBuilder {
	db.doc = AppendMinKeyElement(db.doc, key)
	return db
}

// AppendMinKey appends a min key.
func (a *ArrayBuilder) AppendMinKey() *ArrayBuilder {
	a.arr = AppendMinKeyElement(a.arr, a.key())
	return a
}

// AppendMaxKey appends a max key.
func (db *DocumentBuilder) AppendMaxKey(key string) *DocumentBuilder {
	db.doc = AppendMaxKeyElement(db.doc, key)
	return db
}

// AppendMaxKey appends a max key.
func (a *ArrayBuilder) AppendMaxKey() *ArrayBuilder {
	a.arr = AppendMaxKeyElement(a.arr, a.key())
	return a
}
