package bson

// Type is the one-byte type tag of a BSON element (BSON 1.1, "element" production).
type Type byte

// The element types of BSON 1.1, the deprecated ones included.
const (
	TypeDouble           Type = 0x01
	TypeString           Type = 0x02
	TypeEmbeddedDocument Type = 0x03
	TypeArray            Type = 0x04
	TypeBinary           Type = 0x05
	TypeUndefined        Type = 0x06 // deprecated
	TypeObjectID         Type = 0x07
	TypeBoolean          Type = 0x08
	TypeDateTime         Type = 0x09
	TypeNull             Type = 0x0A
	TypeRegex            Type = 0x0B
	TypeDBPointer        Type = 0x0C // deprecated
	TypeJavaScript       Type = 0x0D
	TypeSymbol           Type = 0x0E // deprecated
	TypeCodeWithScope    Type = 0x0F // deprecated
	TypeInt32            Type = 0x10
	TypeTimestamp        Type = 0x11
	TypeInt64            Type = 0x12
	TypeDecimal128       Type = 0x13
	TypeMaxKey           Type = 0x7F
	TypeMinKey           Type = 0xFF
)

// String returns the type's name as people know it from the MongoDB documentation,
// for example "embedded document", or "invalid" for a byte that is no BSON type.
func (t Type) String() string {
	switch t {
	case TypeDouble:
		return "double"
	case TypeString:
		return "string"
	case TypeEmbeddedDocument:
		return "embedded document"
	case TypeArray:
		return "array"
	case TypeBinary:
		return "binary"
	case TypeUndefined:
		return "undefined"
	case TypeObjectID:
		return "objectID"
	case TypeBoolean:
		return "boolean"
	case TypeDateTime:
		return "UTC datetime"
	case TypeNull:
		return "null"
	case TypeRegex:
		return "regex"
	case TypeDBPointer:
		return "dbPointer"
	case TypeJavaScript:
		return "javascript"
	case TypeSymbol:
		return "symbol"
	case TypeCodeWithScope:
		return "code with scope"
	case TypeInt32:
		return "32-bit integer"
	case TypeTimestamp:
		return "timestamp"
	case TypeInt64:
		return "64-bit integer"
	case TypeDecimal128:
		return "128-bit decimal"
	case TypeMinKey:
		return "min key"
	case TypeMaxKey:
		return "max key"
	}
	return "invalid"
}

// IsValid reports whether t is one of the types of BSON 1.1.
func (t Type) IsValid() bool {
	return t >= TypeDouble && t <= TypeDecimal128 || t == TypeMinKey || t == TypeMaxKey
}
