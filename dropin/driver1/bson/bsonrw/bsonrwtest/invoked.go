// Package bsonrwtest has a reader and writer of BSON for tests of codecs: it notes which method was
// called last, and returns what the test wants.
package bsonrwtest

// Invoked names a method of ValueReaderWriter.
type Invoked byte

// The methods, and that none was called.
const (
	Nothing Invoked = iota
	ReadArray
	ReadBinary
	ReadBoolean
	ReadDocument
	ReadCodeWithScope
	ReadDBPointer
	ReadDateTime
	ReadDecimal128
	ReadDouble
	ReadInt32
	ReadInt64
	ReadJavascript
	ReadMaxKey
	ReadMinKey
	ReadNull
	ReadObjectID
	ReadRegex
	ReadString
	ReadSymbol
	ReadTimestamp
	ReadUndefined
	ReadElement
	ReadValue
	WriteArray
	WriteBinary
	WriteBinaryWithSubtype
	WriteBoolean
	WriteCodeWithScope
	WriteDBPointer
	WriteDateTime
	WriteDecimal128
	WriteDouble
	WriteInt32
	WriteInt64
	WriteJavascript
	WriteMaxKey
	WriteMinKey
	WriteNull
	WriteObjectID
	WriteRegex
	WriteString
	WriteDocument
	WriteSymbol
	WriteTimestamp
	WriteUndefined
	WriteDocumentElement
	WriteDocumentEnd
	WriteArrayElement
	WriteArrayEnd
	Skip
)

// names are those of the methods but Skip, for which the official driver has none.
var names = [...]string{
	"Nothing", "ReadArray", "ReadBinary", "ReadBoolean", "ReadDocument", "ReadCodeWithScope",
	"ReadDBPointer", "ReadDateTime", "ReadDecimal128", "ReadDouble", "ReadInt32", "ReadInt64",
	"ReadJavascript", "ReadMaxKey", "ReadMinKey", "ReadNull", "ReadObjectID", "ReadRegex", "ReadString",
	"ReadSymbol", "ReadTimestamp", "ReadUndefined", "ReadElement", "ReadValue", "WriteArray",
	"WriteBinary", "WriteBinaryWithSubtype", "WriteBoolean", "WriteCodeWithScope", "WriteDBPointer",
	"WriteDateTime", "WriteDecimal128", "WriteDouble", "WriteInt32", "WriteInt64", "WriteJavascript",
	"WriteMaxKey", "WriteMinKey", "WriteNull", "WriteObjectID", "WriteRegex", "WriteString",
	"WriteDocument", "WriteSymbol", "WriteTimestamp", "WriteUndefined", "WriteDocumentElement",
	"WriteDocumentEnd", "WriteArrayElement", "WriteArrayEnd",
}

// String returns the method's name, and for Skip and what is none "<unknown>".
func (i Invoked) String() string {
	if int(i) < len(names) {
		return names[i]
	}
	return "<unknown>"
}
