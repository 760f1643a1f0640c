package bsoncore

import (
	"strings"
	"time"

	"allium/bson"
)

// objectID is an ObjectID's bytes.
type objectID = [12]byte

// appendPart appends a part of a regular expression, which ends with a null byte and so must not
// have one.
func appendPart(dst []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		panic("BSON regex values cannot contain null bytes")
	}
	return append(append(dst, s...), 0)
}

// AppendType appends a type's byte.
func AppendType(dst []byte, t Type) []byte { return append(dst, byte(t)) }

// AppendKey appends a key with its null byte.
func AppendKey(dst []byte, key string) []byte { return append(append(dst, key...), 0) }

// AppendHeader appends an element's type and key.
func AppendHeader(dst []byte, t Type, key string) []byte {
	return AppendKey(AppendType(dst, t), key)
}

// AppendValueElement appends an element with a value that is encoded already.
func AppendValueElement(dst []byte, key string, value Value) []byte {
	return append(AppendHeader(dst, value.Type, key), value.Data...)
}

// AppendNullElement appends a null.
func AppendNullElement(dst []byte, key string) []byte { return AppendHeader(dst, TypeNull, key) }

// AppendUndefinedElement appends an undefined.
func AppendUndefinedElement(dst []byte, key string) []byte {
	return AppendHeader(dst, TypeUndefined, key)
}

// AppendMinKeyElement appends a min key.
func AppendMinKeyElement(dst []byte, key string) []byte { return AppendHeader(dst, TypeMinKey, key) }

// AppendMaxKeyElement appends a max key.
func AppendMaxKeyElement(dst []byte, key string) []byte { return AppendHeader(dst, TypeMaxKey, key) }

// AppendCodeWithScope appends the value of JavaScript code with the variables that it sees.
func AppendCodeWithScope(dst []byte, code string, scope []byte) []byte {
	index, dst := ReserveLength(dst)
	dst = append(bson.AppendStringValue(dst, code), scope...)
	return UpdateLength(dst, index, int32(len(dst))-index)
}

// AppendDouble appends the value of a double.
func AppendDouble(dst []byte, f float64) []byte { return bson.AppendDoubleValue(dst, f) }

// AppendDoubleElement appends an element with a double.
func AppendDoubleElement(dst []byte, key string, f float64) []byte {
	return AppendDouble(AppendHeader(dst, TypeDouble, key), f)
}

// AppendString appends the value of a string.
func AppendString(dst []byte, s string) []byte { return bson.AppendStringValue(dst, s) }

// AppendStringElement appends an element with a string.
func AppendStringElement(dst []byte, key string, s string) []byte {
	return AppendString(AppendHeader(dst, TypeString, key), s)
}

// AppendDocument appends the value of a document.
func AppendDocument(dst []byte, doc []byte) []byte { return append(dst, doc...) }

// AppendDocumentElement appends an element with a document.
func AppendDocumentElement(dst []byte, key string, doc []byte) []byte {
	return AppendDocument(AppendHeader(dst, TypeEmbeddedDocument, key), doc)
}

// AppendArray appends the value of an array.
func AppendArray(dst []byte, arr []byte) []byte { return append(dst, arr...) }

// AppendArrayElement appends an element with an array.
func AppendArrayElement(dst []byte, key string, arr []byte) []byte {
	return AppendArray(AppendHeader(dst, TypeArray, key), arr)
}

// AppendBinary appends the value of a binary value; subtype 2 repeats its length in it.
func AppendBinary(dst []byte, subtype byte, b []byte) []byte {
	return bson.AppendBinaryValue(dst, subtype, b)
}

// AppendBinaryElement appends an element with a binary value, as AppendBinary.
func AppendBinaryElement(dst []byte, key string, subtype byte, b []byte) []byte {
	return AppendBinary(AppendHeader(dst, TypeBinary, key), subtype, b)
}

// AppendObjectID appends the value of an ObjectID.
func AppendObjectID(dst []byte, oid objectID) []byte { return append(dst, oid[:]...) }

// AppendObjectIDElement appends an element with an ObjectID.
func AppendObjectIDElement(dst []byte, key string, oid objectID) []byte {
	return AppendObjectID(AppendHeader(dst, TypeObjectID, key), oid)
}

// AppendBoolean appends the value of a boolean.
func AppendBoolean(dst []byte, b bool) []byte { return bson.AppendBoolValue(dst, b) }

// AppendBooleanElement appends an element with a boolean.
func AppendBooleanElement(dst []byte, key string, b bool) []byte {
	return AppendBoolean(AppendHeader(dst, TypeBoolean, key), b)
}

// AppendDateTime appends the value of a datetime in milliseconds.
func AppendDateTime(dst []byte, dt int64) []byte { return bson.AppendInt64Value(dst, dt) }

// AppendDateTimeElement appends an element with a datetime in milliseconds.
func AppendDateTimeElement(dst []byte, key string, dt int64) []byte {
	return AppendDateTime(AppendHeader(dst, TypeDateTime, key), dt)
}

// AppendTime appends the value of a datetime.
func AppendTime(dst []byte, t time.Time) []byte { return AppendDateTime(dst, t.UnixMilli()) }

// AppendTimeElement appends an element with a datetime.
func AppendTimeElement(dst []byte, key string, t time.Time) []byte {
	return AppendTime(AppendHeader(dst, TypeDateTime, key), t)
}

// AppendRegex appends the value of a regular expression, with its options as they are. It panics if
// one of them has a null byte.
func AppendRegex(dst []byte, pattern, options string) []byte {
	return appendPart(appendPart(dst, pattern), options)
}

// AppendRegexElement appends an element with a regular expression, as AppendRegex.
func AppendRegexElement(dst []byte, key string, pattern, options string) []byte {
	return AppendRegex(AppendHeader(dst, TypeRegex, key), pattern, options)
}

// AppendDBPointer appends the value of a dbPointer.
func AppendDBPointer(dst []byte, ns string, oid objectID) []byte {
	return append(bson.AppendStringValue(dst, ns), oid[:]...)
}

// AppendDBPointerElement appends an element with a dbPointer.
func AppendDBPointerElement(dst []byte, key string, ns string, oid objectID) []byte {
	return AppendDBPointer(AppendHeader(dst, TypeDBPointer, key), ns, oid)
}

// AppendJavaScript appends the value of JavaScript code.
func AppendJavaScript(dst []byte, js string) []byte { return bson.AppendStringValue(dst, js) }

// AppendJavaScriptElement appends an element with JavaScript code.
func AppendJavaScriptElement(dst []byte, key string, js string) []byte {
	return AppendJavaScript(AppendHeader(dst, TypeJavaScript, key), js)
}

// AppendSymbol appends the value of a symbol.
func AppendSymbol(dst []byte, symbol string) []byte { return bson.AppendStringValue(dst, symbol) }

// AppendSymbolElement appends an element with a symbol.
func AppendSymbolElement(dst []byte, key string, symbol string) []byte {
	return AppendSymbol(AppendHeader(dst, TypeSymbol, key), symbol)
}

// AppendCodeWithScopeElement appends an element with code, as AppendCodeWithScope.
func AppendCodeWithScopeElement(dst []byte, key string, code string, scope []byte) []byte {
	return AppendCodeWithScope(AppendHeader(dst, TypeCodeWithScope, key), code, scope)
}

// AppendInt32 appends the value of a 32-bit integer.
func AppendInt32(dst []byte, i32 int32) []byte { return bson.AppendInt32Value(dst, i32) }

// AppendInt32Element appends an element with a 32-bit integer.
func AppendInt32Element(dst []byte, key string, i32 int32) []byte {
	return AppendInt32(AppendHeader(dst, TypeInt32, key), i32)
}

// AppendTimestamp appends the value of a timestamp.
func AppendTimestamp(dst []byte, t, i uint32) []byte {
	return bson.AppendTimestampValue(dst, bson.Timestamp{T: t, I: i})
}

// AppendTimestampElement appends an element with a timestamp.
func AppendTimestampElement(dst []byte, key string, t, i uint32) []byte {
	return AppendTimestamp(AppendHeader(dst, TypeTimestamp, key), t, i)
}

// AppendInt64 appends the value of a 64-bit integer.
func AppendInt64(dst []byte, i64 int64) []byte { return bson.AppendInt64Value(dst, i64) }

// AppendInt64Element appends an element with a 64-bit integer.
func AppendInt64Element(dst []byte, key string, i64 int64) []byte {
	return AppendInt64(AppendHeader(dst, TypeInt64, key), i64)
}

// AppendDecimal128 appends the value of a decimal of these high and low 64 bits.
func AppendDecimal128(dst []byte, high, low uint64) []byte {
	return bson.AppendDecimal128Value(dst, bson.NewDecimal128(high, low))
}

// AppendDecimal128Element appends an element with a decimal of these high and low 64 bits.
func AppendDecimal128Element(dst []byte, key string, high, low uint64) []byte {
	return AppendDecimal128(AppendHeader(dst, TypeDecimal128, key), high, low)
}
