package analysis

import (
	"strings"

	"allium/bson"
)

// typeNames are the types as $jsonSchema and encryptedFields call them.
var typeNames = map[string]bson.Type{
	"double": bson.TypeDouble, "string": bson.TypeString, "object": bson.TypeEmbeddedDocument, "array": bson.TypeArray,
	"binData": bson.TypeBinary, "undefined": bson.TypeUndefined, "objectId": bson.TypeObjectID,
	"bool": bson.TypeBoolean,
	"date": bson.TypeDateTime, "null": bson.TypeNull, "regex": bson.TypeRegex, "dbPointer": bson.TypeDBPointer,
	"javascript": bson.TypeJavaScript, "symbol": bson.TypeSymbol, "javascriptWithScope": bson.TypeCodeWithScope,
	"int": bson.TypeInt32, "timestamp": bson.TypeTimestamp, "long": bson.TypeInt64, "decimal": bson.TypeDecimal128,
	"minKey": bson.TypeMinKey, "maxKey": bson.TypeMaxKey,
}

// typeName returns the name of t in typeNames.
func typeName(t bson.Type) string {
	for name, other := range typeNames {
		if other == t {
			return name
		}
	}
	return t.String()
}

// typeSet is the BSON types that a field may have. The empty one allows all that can be encrypted.
type typeSet []bson.Type

func (s typeSet) has(t bson.Type) bool {
	for _, other := range s {
		if other == t {
			return true
		}
	}
	return false
}

func (s typeSet) String() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = typeName(t)
	}
	return strings.Join(names, " or ")
}

// singleValued reports whether the type t has one value only: its ciphertext would hide nothing.
func singleValued(t bson.Type) bool {
	switch t {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return true
	}
	return false
}

// equatable reports whether equal values of type t have equal bytes, so that they can be compared
// when encrypted. A boolean has too few values for deterministic encryption, which hides nothing of
// two.
func equatable(t bson.Type, kind Kind) bool {
	switch t {
	case bson.TypeDouble, bson.TypeDecimal128, bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		return false
	case bson.TypeBoolean:
		return kind == Equality
	}
	return !singleValued(t)
}

// TypeName returns the name of t in $jsonSchema and encryptedFields.
func TypeName(t bson.Type) string { return typeName(t) }
