package bsoncore

import (
	"go.mongodb.org/mongo-driver/bson/primitive"
	"time"

	"go.mongodb.org/mongo-driver/bson/bsontype"
	core "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// ReadType reads a type's byte.
func ReadType(src []byte) (bsontype.Type, []byte, bool) {
	bt, rest, ok := core.ReadType(src)
	return bsontype.Type(bt), rest, ok
}

// ReadKey reads a key and its null byte.
func ReadKey(src []byte) (string, []byte, bool) {
	return core.ReadKey(src)
}

// ReadKeyBytes is ReadKey without a copy.
func ReadKeyBytes(src []byte) ([]byte, []byte, bool) {
	return core.ReadKeyBytes(src)
}

// ReadHeader reads an element's type and key.
func ReadHeader(src []byte) (t bsontype.Type, key string, rem []byte, ok bool) {
	bt, s, rest, ok := core.ReadHeader(src)
	return bsontype.Type(bt), s, rest, ok
}

// ReadHeaderBytes is ReadHeader without a copy: the header is type and key without the null byte.
func ReadHeaderBytes(src []byte) (header []byte, rem []byte, ok bool) {
	return core.ReadHeaderBytes(src)
}

// ReadLength reads a length, and says that there is none if it is negative.
func ReadLength(src []byte) (int32, []byte, bool) {
	return core.ReadLength(src)
}

// ReserveLength appends room for a length, and returns where it is.
func ReserveLength(dst []byte) (int32, []byte) {
	return core.ReserveLength(dst)
}

// UpdateLength writes a length to where ReserveLength has made room.
func UpdateLength(dst []byte, index, length int32) []byte {
	return core.UpdateLength(dst, index, length)
}

// ReadValue reads a value of type t.
func ReadValue(src []byte, t bsontype.Type) (Value, []byte, bool) {
	v, rest, ok := core.ReadValue(src, core.Type(t))
	return valueOf(v), rest, ok
}

// ReadElement reads an element.
func ReadElement(src []byte) (Element, []byte, bool) {
	e, rest, ok := core.ReadElement(src)
	return Element(e), rest, ok
}

// ReadDocument reads a document. Its elements are not looked at.
func ReadDocument(src []byte) (doc Document, rem []byte, ok bool) {
	d, rem, ok := core.ReadDocument(src)
	return Document(d), rem, ok
}

// ReadArray reads an array. Its values are not looked at.
func ReadArray(src []byte) (arr Array, rem []byte, ok bool) {
	a, rem, ok := core.ReadArray(src)
	return Array(a), rem, ok
}

// ReadDouble reads a double.
func ReadDouble(src []byte) (float64, []byte, bool) {
	return core.ReadDouble(src)
}

// ReadString reads a string.
func ReadString(src []byte) (string, []byte, bool) {
	return core.ReadString(src)
}

// ReadJavaScript reads JavaScript code.
func ReadJavaScript(src []byte) (js string, rem []byte, ok bool) {
	return core.ReadJavaScript(src)
}

// ReadSymbol reads a symbol.
func ReadSymbol(src []byte) (symbol string, rem []byte, ok bool) {
	return core.ReadSymbol(src)
}

// ReadBinary reads a binary value, without the length that subtype 2 repeats.
func ReadBinary(src []byte) (subtype byte, bin []byte, rem []byte, ok bool) {
	return core.ReadBinary(src)
}

// ReadObjectID reads an ObjectID.
func ReadObjectID(src []byte) (primitive.ObjectID, []byte, bool) {
	return core.ReadObjectID(src)
}

// ReadBoolean reads a boolean.
func ReadBoolean(src []byte) (bool, []byte, bool) {
	return core.ReadBoolean(src)
}

// ReadDateTime reads a datetime, in milliseconds.
func ReadDateTime(src []byte) (int64, []byte, bool) {
	return core.ReadDateTime(src)
}

// ReadTime reads a datetime.
func ReadTime(src []byte) (time.Time, []byte, bool) {
	return core.ReadTime(src)
}

// ReadRegex reads a regular expression.
func ReadRegex(src []byte) (pattern string, options string, rem []byte, ok bool) {
	return core.ReadRegex(src)
}

// ReadDBPointer reads a dbPointer.
func ReadDBPointer(src []byte) (ns string, oid primitive.ObjectID, rem []byte, ok bool) {
	return core.ReadDBPointer(src)
}

// ReadCodeWithScope reads JavaScript code and the variables that it sees.
func ReadCodeWithScope(src []byte) (code string, scope []byte, rem []byte, ok bool) {
	return core.ReadCodeWithScope(src)
}

// ReadInt32 reads a 32-bit integer.
func ReadInt32(src []byte) (int32, []byte, bool) {
	return core.ReadInt32(src)
}

// ReadInt64 reads a 64-bit integer.
func ReadInt64(src []byte) (int64, []byte, bool) {
	return core.ReadInt64(src)
}

// ReadTimestamp reads a timestamp.
func ReadTimestamp(src []byte) (t uint32, i uint32, rem []byte, ok bool) {
	return core.ReadTimestamp(src)
}
