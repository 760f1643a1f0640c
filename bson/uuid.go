package bson

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// UUID is a universally unique identifier (RFC 9562), its bytes in the order in which it is
// written. BSON holds it in a binary; see UUIDRepresentation.
type UUID [16]byte

// NewUUID returns a new random UUID (version 4). It is safe for concurrent use.
func NewUUID() UUID {
	var id UUID
	rand.Read(id[:]) // never fails (crypto/rand)
	id[6] = id[6]&0x0F | 0x40
	id[8] = id[8]&0x3F | 0x80
	return id
}

// ParseUUID parses a UUID of 32 hexadecimal digits, in groups of 8, 4, 4, 4 and 12 with hyphens
// between them or without any hyphens.
func ParseUUID(s string) (UUID, error) {
	id, ok := parseUUID([]byte(s))
	if !ok {
		return UUID{}, fmt.Errorf("bson: parse UUID %q: not of the form 00112233-4455-6677-8899-aabbccddeeff", clip(s))
	}
	return id, nil
}

// uuidGroups holds where the groups of digits are in the text and in the bytes.
var uuidGroups = [...]struct{ text, from, to int }{{0, 0, 4}, {9, 4, 6}, {14, 6, 8}, {19, 8, 10}, {24, 10, 16}}

func parseUUID(s []byte) (id UUID, ok bool) {
	switch len(s) {
	case 32:
		_, err := hex.Decode(id[:], s)
		return id, err == nil
	case 36:
		for _, g := range uuidGroups {
			if g.text > 0 && s[g.text-1] != '-' {
				return UUID{}, false
			}
			if _, err := hex.Decode(id[g.from:g.to], s[g.text:g.text+2*(g.to-g.from)]); err != nil {
				return UUID{}, false
			}
		}
		return id, true
	}
	return UUID{}, false
}

// String returns id with hyphens and lower-case digits: 00112233-4455-6677-8899-aabbccddeeff.
func (id UUID) String() string {
	var buf [36]byte
	return string(id.append(buf[:0]))
}

func (id UUID) append(dst []byte) []byte {
	for _, g := range uuidGroups {
		if g.text > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[g.from:g.to])
	}
	return dst
}

// IsZero reports whether all bytes of id are zero.
func (id UUID) IsZero() bool { return id == UUID{} }

// Compare returns -1, 0 or +1 as id sorts before, with or after other.
func (id UUID) Compare(other UUID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText returns what String returns. In JSON, id is a string of it.
func (id UUID) MarshalText() ([]byte, error) { return id.append(nil), nil }

// UnmarshalText parses as ParseUUID does.
func (id *UUID) UnmarshalText(text []byte) error {
	v, err := ParseUUID(string(text))
	if err == nil {
		*id = v
	}
	return err
}

// UnmarshalJSON reads a string as ParseUUID does, or the {"$uuid": "..."} or {"$binary": ...} of
// Extended JSON.
func (id *UUID) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, id, func(v RawValue) (UUID, bool) {
		if s, ok := v.StringBytes(); ok {
			return parseUUID(s)
		}
		b, _ := v.Binary()
		got, err := b.UUID()
		return got, err == nil
	})
}

// UUIDRepresentation says how UUIDs are stored: as binaries of subtype 4, in the order in which
// they are written, or as old versions of some drivers did it, in subtype 3 and their own orders.
type UUIDRepresentation uint8

const (
	// UUIDDefault encodes and decodes a UUID as UUIDStandard does, but a binary that is decoded
	// into a variable of type any stays a Binary.
	UUIDDefault UUIDRepresentation = iota
	// UUIDStandard is subtype 4 and the order of RFC 9562. Use it for everything new.
	UUIDStandard
	// UUIDUnspecified refuses to convert UUIDs at all.
	UUIDUnspecified
	// UUIDJavaLegacy is subtype 3 with either half reversed.
	UUIDJavaLegacy
	// UUIDCSharpLegacy is subtype 3 with the first three groups reversed.
	UUIDCSharpLegacy
	// UUIDPythonLegacy is subtype 3 with the order of RFC 9562.
	UUIDPythonLegacy
)

var uuidRepresentations = [...]string{
	UUIDDefault: "default", UUIDStandard: "standard", UUIDUnspecified: "unspecified", UUIDJavaLegacy: "javaLegacy",
	UUIDCSharpLegacy: "csharpLegacy", UUIDPythonLegacy: "pythonLegacy",
}

// ParseUUIDRepresentation parses a name of the connection string option uuidRepresentation:
// "standard", "unspecified", "javaLegacy", "csharpLegacy" or "pythonLegacy".
func ParseUUIDRepresentation(s string) (UUIDRepresentation, error) {
	for r, name := range uuidRepresentations {
		if s == name && UUIDRepresentation(r) != UUIDDefault {
			return UUIDRepresentation(r), nil
		}
	}
	return UUIDUnspecified, fmt.Errorf("bson: parse UUID representation %q: no such representation", clip(s))
}

// String returns the name that ParseUUIDRepresentation takes.
func (r UUIDRepresentation) String() string {
	if int(r) < len(uuidRepresentations) {
		return uuidRepresentations[r]
	}
	return fmt.Sprintf("UUIDRepresentation(%d)", uint8(r))
}

// Subtype returns the binary subtype in which r stores UUIDs; UUIDUnspecified has none.
func (r UUIDRepresentation) Subtype() (subtype byte, ok bool) {
	switch r {
	case UUIDDefault, UUIDStandard:
		return BinaryUUID, true
	case UUIDJavaLegacy, UUIDCSharpLegacy, UUIDPythonLegacy:
		return BinaryUUIDOld, true
	}
	return 0, false
}

// reorder turns the order of RFC 9562 into r's and back.
func (r UUIDRepresentation) reorder(id UUID) UUID {
	switch r {
	case UUIDJavaLegacy:
		reverse(id[:8])
		reverse(id[8:])
	case UUIDCSharpLegacy:
		reverse(id[:4])
		reverse(id[4:6])
		reverse(id[6:8])
	}
	return id
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}

var errUUIDUnspecified = errors.New(`bson: the UUID representation is "unspecified", which converts no UUIDs`)

// Binary returns id in the standard representation.
func (id UUID) Binary() Binary { return Binary{Subtype: BinaryUUID, Data: id[:]} }

// BinaryAs returns id in the given representation, which must not be UUIDUnspecified.
func (id UUID) BinaryAs(r UUIDRepresentation) (Binary, error) {
	subtype, ok := r.Subtype()
	if !ok {
		return Binary{}, errUUIDUnspecified
	}
	id = r.reorder(id)
	return Binary{Subtype: subtype, Data: id[:]}, nil
}

// UUID returns the UUID in b, which must be in the standard representation.
func (b Binary) UUID() (UUID, error) { return b.UUIDAs(UUIDStandard) }

// UUIDAs returns the UUID in b, which must be in the given representation. Which of the legacy ones
// it is cannot be told from b.
func (b Binary) UUIDAs(r UUIDRepresentation) (UUID, error) {
	subtype, ok := r.Subtype()
	if !ok {
		return UUID{}, errUUIDUnspecified
	}
	if b.Subtype != subtype {
		return UUID{}, fmt.Errorf("bson: binary of subtype %d as a %s UUID: want subtype %d", b.Subtype, r, subtype)
	}
	if len(b.Data) != len(UUID{}) {
		return UUID{}, fmt.Errorf("bson: binary of %d bytes as a UUID: want 16", len(b.Data))
	}
	return r.reorder(UUID(b.Data)), nil
}
