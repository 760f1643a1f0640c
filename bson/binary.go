package bson

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// Binary is a BSON binary value: bytes and their subtype.
type Binary struct {
	Subtype byte
	Data    []byte
}

// The binary subtypes that BSON 1.1 and the driver specifications name. Values from
// BinaryUserDefined on are free for applications.
const (
	BinaryGeneric     byte = 0x00
	BinaryFunction    byte = 0x01
	BinaryOld         byte = 0x02 // deprecated: the payload repeats its length, which Data is without
	BinaryUUIDOld     byte = 0x03 // deprecated: the byte order differs between drivers, see UUIDRepresentation
	BinaryUUID        byte = 0x04
	BinaryMD5         byte = 0x05
	BinaryEncrypted   byte = 0x06 // made by in-use encryption
	BinaryColumn      byte = 0x07 // compressed time series
	BinarySensitive   byte = 0x08 // not to be logged
	BinaryVector      byte = 0x09 // see Vector
	BinaryUserDefined byte = 0x80
)

// Equal reports whether b and other have the same subtype and the same bytes.
func (b Binary) Equal(other Binary) bool {
	return b.Subtype == other.Subtype && bytes.Equal(b.Data, other.Data)
}

// IsZero reports whether b is generic and has no bytes.
func (b Binary) IsZero() bool { return b.Subtype == BinaryGeneric && len(b.Data) == 0 }

// String returns b as Binary(subtype, "base64"). Sensitive data is left out.
func (b Binary) String() string {
	if b.Subtype == BinarySensitive {
		return fmt.Sprintf("Binary(%d, %d bytes)", b.Subtype, len(b.Data))
	}
	return fmt.Sprintf("Binary(%d, %q)", b.Subtype, base64.StdEncoding.EncodeToString(b.Data))
}

// MarshalJSON returns b as Extended JSON.
func (b Binary) MarshalJSON() ([]byte, error) {
	return marshalExtJSONOf(TypeBinary, AppendBinaryValue(nil, b.Subtype, b.Data))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (b *Binary) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, b, RawValue.Binary)
}
