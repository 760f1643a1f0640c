package bsoncore

import (
	"time"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// AppendType appends a type's byte.
func AppendType(dst []byte, t bsontype.Type) []byte {
	return core.AppendType(dst, core.Type(t))
}

// AppendKey appends a key with its null byte.
func AppendKey(dst []byte, key string) []byte {
	return core.AppendKey(dst, key)
}

// AppendHeader appends an element's type and key.
func AppendHeader(dst []byte, t bsontype.Type, key string) []byte {
	return core.AppendHeader(dst, core.Type(t), key)
}

// AppendValueElement appends an element with a value that is encoded already.
func AppendValueElement(dst []byte, key string, value Value) []byte {
	return core.AppendValueElement(dst, key, value.core())
}

// AppendNullElement appends a null.
func AppendNullElement(dst []byte, key string) []byte {
	return core.AppendNullElement(dst, key)
}

// AppendUndefinedElement appends an undefined.
func AppendUndefinedElement(dst []byte, key string) []byte {
	return core.AppendUndefinedElement(dst, key)
}

// AppendMinKeyElement appends a min key.
func AppendMinKeyElement(dst []byte, key string) []byte {
	return core.AppendMinKeyElement(dst, key)
}

// AppendMaxKeyElement appends a max key.
func AppendMaxKeyElement(dst []byte, key string) []byte {
	return core.AppendMaxKeyElement(dst, key)
}

// AppendCodeWithScope appends the value of JavaScript code with the variables that it sees.
func AppendCodeWithScope(dst []byte, code string, scope []byte) []byte {
	return core.AppendCodeWithScope(dst, code, scope)
}

// AppendDouble appends the value of a double.
func AppendDouble(dst []byte, f float64) []byte {
	return core.AppendDouble(dst, f)
}

// AppendDoubleElement appends an element with a double.
func AppendDoubleElement(dst []byte, key string, f float64) []byte {
	return core.AppendDoubleElement(dst, key, f)
}

// AppendString appends the value of a string.
func AppendString(dst []byte, s string) []byte {
	return core.AppendString(dst, s)
}

// AppendStringElement appends an element with a string.
func AppendStringElement(dst []byte, key string, s string) []byte {
	return core.AppendStringElement(dst, key, s)
}

// AppendDocument appends the value of a document.
func AppendDocument(dst []byte, doc []byte) []byte {
	return core.AppendDocument(dst, doc)
}

// AppendDocumentElement appends an element with a document.
func AppendDocumentElement(dst []byte, key string, doc []byte) []byte {
	return core.AppendDocumentElement(dst, key, doc)
}

// AppendArray appends the value of an array.
func AppendArray(dst []byte, arr []byte) []byte {
	return core.AppendArray(dst, arr)
}

// AppendArrayElement appends an element with an array.
func AppendArrayElement(dst []byte, key string, arr []byte) []byte {
	return core.AppendArrayElement(dst, key, arr)
}

// AppendBinary appends the value of a binary value; subtype 2 repeats its length in it.
func AppendBinary(dst []byte, subtype byte, b []byte) []byte {
	return core.AppendBinary(dst, subtype, b)
}

// AppendBinaryElement appends an element with a binary value, as AppendBinary.
func AppendBinaryElement(dst []byte, key string, subtype byte, b []byte) []byte {
	return core.AppendBinaryElement(dst, key, subtype, b)
}

// AppendObjectID appends the value of an ObjectID.
func AppendObjectID(dst []byte, oid primitive.ObjectID) []byte {
	return core.AppendObjectID(dst, oid)
}

// AppendObjectIDElement appends an element with an ObjectID.
func AppendObjectIDElement(dst []byte, key string, oid primitive.ObjectID) []byte {
	return core.AppendObjectIDElement(dst, key, oid)
}

// AppendBoolean appends the value of a boolean.
func AppendBoolean(dst []byte, b bool) []byte {
	return core.AppendBoolean(dst, b)
}

// AppendBooleanElement appends an element with a boolean.
func AppendBooleanElement(dst []byte, key string, b bool) []byte {
	return core.AppendBooleanElement(dst, key, b)
}

// AppendDateTime appends the value of a datetime in milliseconds.
func AppendDateTime(dst []byte, dt int64) []byte {
	return core.AppendDateTime(dst, dt)
}

// AppendDateTimeElement appends an element with a datetime in milliseconds.
func AppendDateTimeElement(dst []byte, key string, dt int64) []byte {
	return core.AppendDateTimeElement(dst, key, dt)
}

// AppendTime appends the value of a datetime.
func AppendTime(dst []byte, t time.Time) []byte {
	return core.AppendTime(dst, t)
}

// AppendTimeElement appends an element with a datetime.
func AppendTimeElement(dst []byte, key string, t time.Time) []byte {
	return core.AppendTimeElement(dst, key, t)
}

// AppendRegex appends the value of a regular expression, with its options as they are.
// It panics if one of them has a null byte.
func AppendRegex(dst []byte, pattern, options string) []byte {
	return core.AppendRegex(dst, pattern, options)
}

// AppendRegexElement appends an element with a regular expression, as AppendRegex.
func AppendRegexElement(dst []byte, key string, pattern, options string) []byte {
	return core.AppendRegexElement(dst, key, pattern, options)
}

// AppendDBPointer appends the value of a dbPointer.
func AppendDBPointer(dst []byte, ns string, oid primitive.ObjectID) []byte {
	return core.AppendDBPointer(dst, ns, oid)
}

// AppendDBPointerElement appends an element with a dbPointer.
func AppendDBPointerElement(dst []byte, key string, ns string, oid primitive.ObjectID) []byte {
	return core.AppendDBPointerElement(dst, key, ns, oid)
}

// AppendJavaScript appends the value of JavaScript code.
func AppendJavaScript(dst []byte, js string) []byte {
	return core.AppendJavaScript(dst, js)
}

// AppendJavaScriptElement appends an element with JavaScript code.
func AppendJavaScriptElement(dst []byte, key string, js string) []byte {
	return core.AppendJavaScriptElement(dst, key, js)
}

// AppendSymbol appends the value of a symbol.
func AppendSymbol(dst []byte, symbol string) []byte {
	return core.AppendSymbol(dst, symbol)
}

// AppendSymbolElement appends an element with a symbol.
func AppendSymbolElement(dst []byte, key string, symbol string) []byte {
	return core.AppendSymbolElement(dst, key, symbol)
}

// AppendCodeWithScopeElement appends an element with code, as AppendCodeWithScope.
func AppendCodeWithScopeElement(dst []byte, key string, code string, scope []byte) []byte {
	return core.AppendCodeWithScopeElement(dst, key, code, scope)
}

// AppendInt32 appends the value of a 32-bit integer.
func AppendInt32(dst []byte, i32 int32) []byte {
	return core.AppendInt32(dst, i32)
}

// AppendInt32Element appends an element with a 32-bit integer.
func AppendInt32Element(dst []byte, key string, i32 int32) []byte {
	return core.AppendInt32Element(dst, key, i32)
}

// AppendTimestamp appends the value of a timestamp.
func AppendTimestamp(dst []byte, t, i uint32) []byte {
	return core.AppendTimestamp(dst, t, i)
}

// AppendTimestampElement appends an element with a timestamp.
func AppendTimestampElement(dst []byte, key string, t, i uint32) []byte {
	return core.AppendTimestampElement(dst, key, t, i)
}

// AppendInt64 appends the value of a 64-bit integer.
func AppendInt64(dst []byte, i64 int64) []byte {
	return core.AppendInt64(dst, i64)
}

// AppendInt64Element appends an element with a 64-bit integer.
func AppendInt64Element(dst []byte, key string, i64 int64) []byte {
	return core.AppendInt64Element(dst, key, i64)
}
