package bson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Vector is a list of numbers of one type, packed into a binary of subtype 9. Its elements are
// int8, float32 or single bits. The zero value is no vector and cannot be encoded.
//
// A Vector is immutable. Compare with Equal.
type Vector struct {
	kind    VectorType
	padding uint8
	packed  []byte // the elements, as BSON has them
}

// VectorType is the type of a vector's elements.
type VectorType byte

// The types of elements. The specification may add others.
const (
	VectorInt8      VectorType = 0x03
	VectorPackedBit VectorType = 0x10
	VectorFloat32   VectorType = 0x27
)

// String returns the specification's name of t.
func (t VectorType) String() string {
	switch t {
	case VectorInt8:
		return "INT8"
	case VectorPackedBit:
		return "PACKED_BIT"
	case VectorFloat32:
		return "FLOAT32"
	}
	return fmt.Sprintf("VectorType(0x%02X)", byte(t))
}

// NewInt8Vector returns a vector with these elements.
func NewInt8Vector(elements []int8) Vector {
	packed := make([]byte, len(elements))
	for i, n := range elements {
		packed[i] = byte(n)
	}
	return Vector{kind: VectorInt8, packed: packed}
}

// NewFloat32Vector returns a vector with these elements.
func NewFloat32Vector(elements []float32) Vector {
	packed := make([]byte, 0, 4*len(elements))
	for _, f := range elements {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(f))
	}
	return Vector{kind: VectorFloat32, packed: packed}
}

// NewPackedBitVector returns a vector of the bits in packed, the most significant bit of every byte
// first, without the last padding bits. Padding must be less than 8, the bits that it leaves out
// zero, and 0 if there are no bits at all.
func NewPackedBitVector(packed []byte, padding int) (Vector, error) {
	return newVector(VectorPackedBit, padding, bytes.Clone(packed))
}

// NewBitVector returns a vector with these bits.
func NewBitVector(bits []bool) Vector {
	packed := make([]byte, (len(bits)+7)/8)
	for i, bit := range bits {
		if bit {
			packed[i/8] |= 0x80 >> (i % 8)
		}
	}
	return Vector{kind: VectorPackedBit, padding: uint8(8*len(packed) - len(bits)), packed: packed}
}

// NewVector returns a vector whose elements are already packed as BSON has them (float32
// little-endian), and of which the last padding bits do not count. It checks all that the
// specification demands.
func NewVector(t VectorType, padding int, packed []byte) (Vector, error) {
	return newVector(t, padding, bytes.Clone(packed))
}

func newVector(t VectorType, padding int, packed []byte) (Vector, error) {
	switch t {
	case VectorInt8:
	case VectorFloat32:
		if len(packed)%4 != 0 {
			return Vector{}, fmt.Errorf("bson: vector of FLOAT32 with %d bytes: want a multiple of 4", len(packed))
		}
	case VectorPackedBit:
		if padding < 0 || padding > 7 {
			return Vector{}, fmt.Errorf("bson: vector of PACKED_BIT with padding %d: want 0 to 7", padding)
		}
		if padding > 0 && len(packed) == 0 {
			return Vector{},
				fmt.Errorf("bson: vector of PACKED_BIT with padding %d: it has no bits to leave out", padding)
		}
		if padding > 0 && packed[len(packed)-1]&(1<<padding-1) != 0 {
			return Vector{}, fmt.Errorf(
				"bson: vector of PACKED_BIT with padding %d: the bits to leave out are not zero", padding)
		}
		return Vector{kind: t, padding: uint8(padding), packed: packed}, nil
	default:
		return Vector{}, fmt.Errorf("bson: vector with elements of the type 0x%02X: no such type", byte(t))
	}
	if padding != 0 {
		return Vector{}, fmt.Errorf("bson: vector of %s with padding %d: want 0", t, padding)
	}
	return Vector{kind: t, packed: packed}, nil
}

// Type returns the type of v's elements.
func (v Vector) Type() VectorType { return v.kind }

// Padding returns how many bits of the last byte do not count.
func (v Vector) Padding() int { return int(v.padding) }

// Packed returns the elements as BSON has them. Do not write to it.
func (v Vector) Packed() []byte { return v.packed }

// Len returns how many elements v has: for PACKED_BIT, how many bits.
func (v Vector) Len() int {
	switch v.kind {
	case VectorFloat32:
		return len(v.packed) / 4
	case VectorPackedBit:
		return 8*len(v.packed) - int(v.padding)
	}
	return len(v.packed)
}

// Int8 returns the elements of an INT8 vector; false if v is of another type.
func (v Vector) Int8() ([]int8, bool) {
	if v.kind != VectorInt8 {
		return nil, false
	}
	elements := make([]int8, len(v.packed))
	for i, b := range v.packed {
		elements[i] = int8(b)
	}
	return elements, true
}

// Float32 returns the elements of a FLOAT32 vector; false if v is of another type.
func (v Vector) Float32() ([]float32, bool) {
	if v.kind != VectorFloat32 {
		return nil, false
	}
	elements := make([]float32, len(v.packed)/4)
	for i := range elements {
		elements[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.packed[4*i:]))
	}
	return elements, true
}

// Bits returns the elements of a PACKED_BIT vector; false if v is of another type.
func (v Vector) Bits() ([]bool, bool) {
	if v.kind != VectorPackedBit {
		return nil, false
	}
	bits := make([]bool, v.Len())
	for i := range bits {
		bits[i] = v.packed[i/8]&(0x80>>(i%8)) != 0
	}
	return bits, true
}

// Equal reports whether v and other have the same type and the same elements, bit for bit.
func (v Vector) Equal(other Vector) bool {
	return v.kind == other.kind && v.padding == other.padding && bytes.Equal(v.packed, other.packed)
}

// IsZero reports whether v is the zero value. An empty vector is not.
func (v Vector) IsZero() bool { return v.kind == 0 }

// String returns v as its type and elements, bits as one digit each: FLOAT32[1.5 2].
func (v Vector) String() string {
	out := append([]byte(v.kind.String()), '[')
	for i := range v.Len() {
		if i > 0 && v.kind != VectorPackedBit {
			out = append(out, ' ')
		}
		switch v.kind {
		case VectorFloat32:
			f := math.Float32frombits(binary.LittleEndian.Uint32(v.packed[4*i:]))
			out = strconv.AppendFloat(out, float64(f), 'g', -1, 32)
		case VectorPackedBit:
			out = append(out, '0'+v.packed[i/8]>>(7-i%8)&1)
		default:
			out = strconv.AppendInt(out, int64(int8(v.packed[i])), 10)
		}
	}
	return string(append(out, ']'))
}

// Binary returns v as a binary of subtype 9.
func (v Vector) Binary() Binary {
	return Binary{Subtype: BinaryVector, Data: append([]byte{byte(v.kind), v.padding}, v.packed...)}
}

// Vector returns the vector in b. Its elements share the bytes of b.
func (b Binary) Vector() (Vector, error) {
	if b.Subtype != BinaryVector {
		return Vector{}, fmt.Errorf("bson: binary of subtype %d as a vector: want subtype %d", b.Subtype, BinaryVector)
	}
	if len(b.Data) < 2 {
		return Vector{}, fmt.Errorf("bson: binary of %d bytes as a vector: want at least 2", len(b.Data))
	}
	return newVector(VectorType(b.Data[0]), int(b.Data[1]), b.Data[2:])
}

// MarshalBSONValue implements ValueMarshaler.
func (v Vector) MarshalBSONValue() (typ byte, data []byte, err error) {
	if v.IsZero() {
		return 0, nil, fmt.Errorf("bson: the zero value of %T is no vector", v)
	}
	data = binary.LittleEndian.AppendUint32(make([]byte, 0, 7+len(v.packed)), uint32(2+len(v.packed)))
	data = append(data, BinaryVector, byte(v.kind), v.padding)
	return byte(TypeBinary), append(data, v.packed...), nil
}

// UnmarshalBSONValue implements ValueUnmarshaler. Null gives the zero value.
func (v *Vector) UnmarshalBSONValue(typ byte, data []byte) error {
	if t := Type(typ); t == TypeNull || t == TypeUndefined {
		*v = Vector{}
		return nil
	}
	b, ok := RawValue{Type: Type(typ), Value: data}.Binary()
	if !ok {
		return fmt.Errorf("bson: %s as a vector: want a binary of subtype %d", Type(typ), BinaryVector)
	}
	got, err := b.Vector()
	if err == nil {
		*v = got
	}
	return err
}

// MarshalJSON returns v as an array of its elements, bits as 0 and 1. Elements that JSON has no
// number for are an error.
func (v Vector) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}
	out := []byte{'['}
	for i := range v.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		switch v.kind {
		case VectorFloat32:
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(v.packed[4*i:])))
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("bson: element %d of a vector is %v, which JSON has no number for", i, f)
			}
			out = strconv.AppendFloat(out, f, 'g', -1, 32)
		case VectorPackedBit:
			out = append(out, '0'+v.packed[i/8]>>(7-i%8)&1)
		default:
			out = strconv.AppendInt(out, int64(int8(v.packed[i])), 10)
		}
	}
	return append(out, ']'), nil
}
