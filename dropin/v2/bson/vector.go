package bson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The types of the elements of a Vector.
const (
	Int8Vector      byte = 0x03
	Float32Vector   byte = 0x27
	PackedBitVector byte = 0x10
)

var (
	errInsufficientVector = errors.New("insufficient data")
	errNotVector          = errors.New("not a vector")
	errVectorPadding      = errors.New("padding must be 0")
	errVectorPaddingMost  = errors.New("padding cannot be larger than 7")
)

// A Vector is an array of numbers of one type, packed into a binary value of subtype 9.
type Vector struct {
	dType       byte
	int8Data    []int8
	float32Data []float32
	bitData     []byte
	bitPadding  uint8
}

// vectorTypeError is what a Vector panics with that is asked for elements of another type.
type vectorTypeError struct {
	method string
	dType  byte
}

func (e vectorTypeError) Error() string {
	name := map[byte]string{Int8Vector: "int8", Float32Vector: "float32", PackedBitVector: "packed bit"}[e.dType]
	return fmt.Sprintf("cannot call %s, on a type %s vector", e.method, name)
}

// NewVector returns the vector of these elements.
func NewVector[T int8 | float32](data []T) Vector {
	var v Vector
	switch d := any(data).(type) {
	case []int8:
		v.dType, v.int8Data = Int8Vector, append([]int8{}, d...)
	case []float32:
		v.dType, v.float32Data = Float32Vector, append([]float32{}, d...)
	}
	return v
}

// NewPackedBitVector returns the vector of the bits, without the last padding ones.
func NewPackedBitVector(bits []byte, padding uint8) (Vector, error) {
	if padding > 7 {
		return Vector{}, errVectorPaddingMost
	}
	if padding != 0 && len(bits) == 0 {
		return Vector{}, errVectorPadding
	}
	return Vector{dType: PackedBitVector, bitData: append([]byte{}, bits...), bitPadding: padding}, nil
}

// NewVectorFromBinary unpacks a vector.
func NewVectorFromBinary(b Binary) (Vector, error) {
	if b.Subtype != TypeBinaryVector {
		return Vector{}, errNotVector
	}
	if len(b.Data) < 2 {
		return Vector{}, errInsufficientVector
	}
	t, padding, data := b.Data[0], b.Data[1], b.Data[2:]
	switch {
	case t == PackedBitVector:
		return NewPackedBitVector(data, padding)
	case t != Int8Vector && t != Float32Vector:
		return Vector{}, fmt.Errorf("invalid Vector data type: %d", t)
	case padding != 0:
		return Vector{}, errVectorPadding
	case t == Int8Vector:
		v := Vector{dType: t, int8Data: make([]int8, len(data))}
		for i, x := range data {
			v.int8Data[i] = int8(x)
		}
		return v, nil
	case len(data)%4 != 0:
		return Vector{}, errInsufficientVector
	}
	v := Vector{dType: t, float32Data: make([]float32, len(data)/4)}
	for i := range v.float32Data {
		v.float32Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[i*4:]))
	}
	return v, nil
}

// Binary packs the vector. It panics if v is the zero Vector.
func (v Vector) Binary() Binary {
	data := []byte{v.dType, v.bitPadding}
	switch v.dType {
	case Int8Vector:
		for _, x := range v.int8Data {
			data = append(data, byte(x))
		}
	case Float32Vector:
		for _, x := range v.float32Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	case PackedBitVector:
		data = append(data, v.bitData...)
	default:
		panic(fmt.Sprintf("invalid Vector data type: %d", v.dType))
	}
	return Binary{Subtype: TypeBinaryVector, Data: data}
}

// Type returns the type of the elements.
func (v Vector) Type() byte { return v.dType }

// Int8 returns the elements. It panics if they are of another type.
func (v Vector) Int8() []int8 {
	if d, ok := v.Int8OK(); ok {
		return d
	}
	panic(vectorTypeError{"bson.Vector.Int8", v.dType})
}

// Int8OK returns the elements, and whether they are of this type.
func (v Vector) Int8OK() ([]int8, bool) {
	if v.dType != Int8Vector {
		return nil, false
	}
	return v.int8Data, true
}

// Float32 returns the elements. It panics if they are of another type.
func (v Vector) Float32() []float32 {
	if d, ok := v.Float32OK(); ok {
		return d
	}
	panic(vectorTypeError{"bson.Vector.Float32", v.dType})
}

// Float32OK returns the elements, and whether they are of this type.
func (v Vector) Float32OK() ([]float32, bool) {
	if v.dType != Float32Vector {
		return nil, false
	}
	return v.float32Data, true
}

// PackedBit returns the bytes of the bits and how many of the last bits do not count. It panics if
// the elements are of another type.
func (v Vector) PackedBit() ([]byte, uint8) {
	if d, padding, ok := v.PackedBitOK(); ok {
		return d, padding
	}
	panic(vectorTypeError{"bson.Vector.PackedBit", v.dType})
}

// PackedBitOK is PackedBit, and returns whether the elements are of this type.
func (v Vector) PackedBitOK() ([]byte, uint8, bool) {
	if v.dType != PackedBitVector {
		return nil, 0, false
	}
	return v.bitData, v.bitPadding, true
}
