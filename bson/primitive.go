package bson

// Binary is a BSON binary value: bytes and their subtype.
type Binary struct {
	Subtype byte
	Data    []byte
}

// The binary subtypes that BSON 1.1 names.
const (
	BinaryGeneric     byte = 0x00
	BinaryFunction    byte = 0x01
	BinaryOld         byte = 0x02 // deprecated: the payload repeats its length
	BinaryUUIDOld     byte = 0x03 // deprecated: byte order differs between languages
	BinaryUUID        byte = 0x04
	BinaryMD5         byte = 0x05
	BinaryEncrypted   byte = 0x06
	BinaryColumn      byte = 0x07
	BinarySensitive   byte = 0x08
	BinaryVector      byte = 0x09
	BinaryUserDefined byte = 0x80
)

// Timestamp is MongoDB's internal timestamp: seconds since the Unix epoch and a counter within the second.
type Timestamp struct {
	T uint32
	I uint32
}

// Compare returns -1, 0 or +1 as ts is before, equal to or after other.
func (ts Timestamp) Compare(other Timestamp) int {
	a, b := uint64(ts.T)<<32|uint64(ts.I), uint64(other.T)<<32|uint64(other.I)
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// IsZero reports whether ts is the zero timestamp.
func (ts Timestamp) IsZero() bool { return ts == Timestamp{} }

// JavaScript is BSON JavaScript code.
type JavaScript string

// CodeWithScope is BSON JavaScript code with the variables it sees (deprecated).
type CodeWithScope struct {
	Code  JavaScript
	Scope any
}

// Symbol is the deprecated BSON symbol type.
type Symbol string

// DBPointer is the deprecated BSON DBPointer type.
type DBPointer struct {
	DB      string
	Pointer ObjectID
}

// Undefined is the deprecated BSON undefined value.
type Undefined struct{}

// Null is the BSON null value, for the rare place where a nil interface does not do.
type Null struct{}

// MinKey sorts before, MaxKey after every other value.
type (
	MinKey struct{}
	MaxKey struct{}
)
