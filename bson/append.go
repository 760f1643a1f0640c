package bson

// The Append functions build documents without Go values in between. Each appends to dst and
// returns the extended slice, as the built-in append does. A document is
//
//	start, dst := bson.BeginDocument(dst)
//	dst = bson.AppendInt32(dst, "ping", 1)
//	dst = bson.EndDocument(dst, start)
//
// None of them checks what it is given: a key must not contain a NUL byte, and strings must be
// valid UTF-8. AppendValue does check.

import (
	"encoding/binary"
	"math"
	"strconv"
)

// BeginDocument starts a document or an array, which have the same form, and returns its offset in
// out. Finish it with EndDocument.
func BeginDocument(dst []byte) (start int, out []byte) {
	return len(dst), append(dst, 0, 0, 0, 0)
}

// EndDocument finishes the document that starts at start: it writes the terminator and the length.
func EndDocument(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// AppendHeader appends an element's type and key; the value must follow.
func AppendHeader(dst []byte, t Type, key string) []byte {
	dst = append(dst, byte(t))
	dst = append(dst, key...)
	return append(dst, 0)
}

// AppendIndexHeader is AppendHeader for the element at index i of an array.
func AppendIndexHeader(dst []byte, t Type, i int) []byte {
	dst = append(dst, byte(t))
	dst = strconv.AppendInt(dst, int64(i), 10)
	return append(dst, 0)
}

// BeginDocumentElement starts an embedded document. Finish it with EndDocument.
func BeginDocumentElement(dst []byte, key string) (start int, out []byte) {
	return BeginDocument(AppendHeader(dst, TypeEmbeddedDocument, key))
}

// BeginArrayElement starts an array. Finish it with EndDocument.
func BeginArrayElement(dst []byte, key string) (start int, out []byte) {
	return BeginDocument(AppendHeader(dst, TypeArray, key))
}

// AppendRawValue appends an element with a value that is already encoded.
func AppendRawValue(dst []byte, key string, v RawValue) []byte {
	return append(AppendHeader(dst, v.Type, key), v.Value...)
}

// AppendDocument appends an embedded document that is already encoded.
func AppendDocument(dst []byte, key string, doc Raw) []byte {
	return append(AppendHeader(dst, TypeEmbeddedDocument, key), doc...)
}

// AppendArray appends an array that is already encoded.
func AppendArray(dst []byte, key string, array Raw) []byte {
	return append(AppendHeader(dst, TypeArray, key), array...)
}

// AppendDouble appends a double.
func AppendDouble(dst []byte, key string, v float64) []byte {
	return AppendDoubleValue(AppendHeader(dst, TypeDouble, key), v)
}

// AppendString appends a string, which must be valid UTF-8.
func AppendString(dst []byte, key, v string) []byte {
	return AppendStringValue(AppendHeader(dst, TypeString, key), v)
}

// AppendBinary appends a binary value; for subtype 2 it writes the inner length that the subtype
// demands.
func AppendBinary(dst []byte, key string, subtype byte, data []byte) []byte {
	return AppendBinaryValue(AppendHeader(dst, TypeBinary, key), subtype, data)
}

// AppendObjectID appends an ObjectID.
func AppendObjectID(dst []byte, key string, v ObjectID) []byte {
	return append(AppendHeader(dst, TypeObjectID, key), v[:]...)
}

// AppendBool appends a boolean.
func AppendBool(dst []byte, key string, v bool) []byte {
	return AppendBoolValue(AppendHeader(dst, TypeBoolean, key), v)
}

// AppendDateTime appends a UTC datetime.
func AppendDateTime(dst []byte, key string, v DateTime) []byte {
	return AppendInt64Value(AppendHeader(dst, TypeDateTime, key), int64(v))
}

// AppendNull appends null.
func AppendNull(dst []byte, key string) []byte { return AppendHeader(dst, TypeNull, key) }

// AppendRegex appends a regular expression, with its options in alphabetical order. Like the key,
// neither part may contain a NUL byte.
func AppendRegex(dst []byte, key string, v Regex) []byte {
	dst = append(AppendHeader(dst, TypeRegex, key), v.Pattern...)
	dst = append(append(dst, 0), sortOptions(v.Options)...)
	return append(dst, 0)
}

// AppendInt32 appends a 32-bit integer.
func AppendInt32(dst []byte, key string, v int32) []byte {
	return AppendInt32Value(AppendHeader(dst, TypeInt32, key), v)
}

// AppendTimestamp appends a timestamp.
func AppendTimestamp(dst []byte, key string, v Timestamp) []byte {
	return AppendTimestampValue(AppendHeader(dst, TypeTimestamp, key), v)
}

// AppendInt64 appends a 64-bit integer.
func AppendInt64(dst []byte, key string, v int64) []byte {
	return AppendInt64Value(AppendHeader(dst, TypeInt64, key), v)
}

// AppendDecimal128 appends a decimal.
func AppendDecimal128(dst []byte, key string, v Decimal128) []byte {
	return AppendDecimal128Value(AppendHeader(dst, TypeDecimal128, key), v)
}

// AppendDoubleValue and its siblings append a value alone, without type and key.
func AppendDoubleValue(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// AppendStringValue appends a string's value alone.
func AppendStringValue(dst []byte, v string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)+1))
	dst = append(dst, v...)
	return append(dst, 0)
}

// AppendBinaryValue appends a binary's value alone.
func AppendBinaryValue(dst []byte, subtype byte, data []byte) []byte {
	if subtype == BinaryOld {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)+4))
		dst = append(dst, subtype)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
		return append(dst, data...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	dst = append(dst, subtype)
	return append(dst, data...)
}

// AppendBoolValue appends a boolean's value alone.
func AppendBoolValue(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendInt32Value appends a 32-bit integer's value alone.
func AppendInt32Value(dst []byte, v int32) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(v))
}

// AppendInt64Value appends a 64-bit integer's value alone.
func AppendInt64Value(dst []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(v))
}

// AppendTimestampValue appends a timestamp's value alone.
func AppendTimestampValue(dst []byte, v Timestamp) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, v.I)
	return binary.LittleEndian.AppendUint32(dst, v.T)
}

// AppendDecimal128Value appends a decimal's value alone.
func AppendDecimal128Value(dst []byte, v Decimal128) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, v.lo)
	return binary.LittleEndian.AppendUint64(dst, v.hi)
}

func appendLongIndex(dst []byte, i int) []byte {
	return append(strconv.AppendInt(dst, int64(i), 10), 0)
}
