// Package bsontype has the BSON types.
package bsontype

import "go.mongodb.org/mongo-driver/v2/bson"

// Type is a BSON type.
type Type = bson.Type

// The BSON types.
const (
	Double           Type = bson.TypeDouble
	String           Type = bson.TypeString
	EmbeddedDocument Type = bson.TypeEmbeddedDocument
	Array            Type = bson.TypeArray
	Binary           Type = bson.TypeBinary
	Undefined        Type = bson.TypeUndefined
	ObjectID         Type = bson.TypeObjectID
	Boolean          Type = bson.TypeBoolean
	DateTime         Type = bson.TypeDateTime
	Null             Type = bson.TypeNull
	Regex            Type = bson.TypeRegex
	DBPointer        Type = bson.TypeDBPointer
	JavaScript       Type = bson.TypeJavaScript
	Symbol           Type = bson.TypeSymbol
	CodeWithScope    Type = bson.TypeCodeWithScope
	Int32            Type = bson.TypeInt32
	Timestamp        Type = bson.TypeTimestamp
	Int64            Type = bson.TypeInt64
	Decimal128       Type = bson.TypeDecimal128
	MinKey           Type = bson.TypeMinKey
	MaxKey           Type = bson.TypeMaxKey
)

// The subtypes of binary values.
const (
	BinaryGeneric     = bson.TypeBinaryGeneric
	BinaryFunction    = bson.TypeBinaryFunction
	BinaryBinaryOld   = bson.TypeBinaryBinaryOld
	BinaryUUIDOld     = bson.TypeBinaryUUIDOld
	BinaryUUID        = bson.TypeBinaryUUID
	BinaryMD5         = bson.TypeBinaryMD5
	BinaryEncrypted   = bson.TypeBinaryEncrypted
	BinaryColumn      = bson.TypeBinaryColumn
	BinarySensitive   = bson.TypeBinarySensitive
	BinaryUserDefined = bson.TypeBinaryUserDefined
)
