package bson_test

// The vector tests (specification: BSON Binary Vector), from JSON and in prose.

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/spectest"
)

type vectorFile struct {
	Description string
	TestKey     string `bson:"test_key"`
	Tests       []struct {
		Description   string
		Valid         bool
		Vector        *bson.A
		DtypeHex      string `bson:"dtype_hex"`
		DtypeAlias    string `bson:"dtype_alias"`
		Padding       int
		CanonicalBSON *string `bson:"canonical_bson"`
	}
}

func TestVectorSpecification(t *testing.T) {
	for _, file := range spectest.Files(t, "bson-binary-vector/tests/*.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var suite vectorFile
			if err := (bson.Options{DisallowUnknownFields: true}).UnmarshalExtJSON(spectest.Read(t, file), &suite); err != nil {
				t.Fatal(err)
			}
			for _, tt := range suite.Tests {
				t.Run(tt.Description, func(t *testing.T) {
					code, err := strconv.ParseUint(tt.DtypeHex, 0, 8)
					if err != nil {
						t.Fatal(err)
					}
					dtype := bson.VectorType(code)
					if tt.Valid && dtype.String() != tt.DtypeAlias {
						t.Errorf("type %#x is %s, want %s", code, dtype, tt.DtypeAlias)
					}
					var made bson.Vector
					if tt.Vector != nil {
						if made, err = vectorOf(dtype, *tt.Vector, tt.Padding); (err == nil) != tt.Valid {
							t.Fatalf("making the vector %v with padding %d: error %v, want valid %v", *tt.Vector, tt.Padding, err, tt.Valid)
						}
					}
					if tt.CanonicalBSON == nil {
						return
					}
					doc := unhex(t, *tt.CanonicalBSON)
					var got map[string]bson.Vector
					if err := bson.Unmarshal(doc, &got); (err == nil) != tt.Valid {
						t.Fatalf("decoding: error %v, want valid %v", err, tt.Valid)
					}
					binary, ok := bson.Raw(doc).Lookup(suite.TestKey).Binary()
					if !ok {
						t.Fatal("no binary to decode")
					}
					parsed, err := binary.Vector()
					if (err == nil) != tt.Valid {
						t.Fatalf("parsing: error %v, want valid %v", err, tt.Valid)
					}
					if !tt.Valid {
						return
					}
					if v := got[suite.TestKey]; !v.Equal(made) || !parsed.Equal(made) || v.Type() != dtype || v.Padding() != tt.Padding {
						t.Errorf("got %v and %v, want %v", v, parsed, made)
					}
					for _, value := range []any{made, made.Binary()} {
						encoded, err := bson.Marshal(bson.D{{Key: suite.TestKey, Value: value}})
						if err != nil {
							t.Fatal(err)
						}
						checkBytes(t, fmt.Sprintf("encoded %T", value), doc, encoded)
					}
				})
			}
		})
	}
}

// vectorOf makes a vector of JSON numbers. That a number is not one of the vector's type is what
// Go's own types refuse.
func vectorOf(t bson.VectorType, numbers bson.A, padding int) (bson.Vector, error) {
	var packed []byte
	for _, n := range numbers {
		v, err := bson.MarshalValue(n)
		if err != nil {
			return bson.Vector{}, err
		}
		i, whole := v.AsInt64()
		f, isDouble := v.Double()
		if !isDouble {
			f = float64(i)
		}
		switch t {
		case bson.VectorFloat32:
			one := bson.NewFloat32Vector([]float32{float32(f)})
			packed = append(packed, one.Packed()...)
			continue
		case bson.VectorInt8:
			whole = whole && int64(int8(i)) == i
		case bson.VectorPackedBit:
			whole = whole && int64(byte(i)) == i
		}
		if !whole {
			return bson.Vector{}, fmt.Errorf("%v is no element of a vector of %s", n, t)
		}
		packed = append(packed, byte(i))
	}
	return bson.NewVector(t, padding, packed)
}

func TestVectorProse1EncodeIgnoredBits(t *testing.T) {
	if v, err := bson.NewPackedBitVector([]byte{0xFF}, 7); err == nil {
		t.Errorf("got %v, want an error", v)
	}
}

func TestVectorProse2DecodeIgnoredBits(t *testing.T) {
	b := bson.Binary{Subtype: bson.BinaryVector, Data: []byte{0x10, 0x07, 0xFF}}
	if v, err := b.Vector(); err == nil {
		t.Errorf("got %v, want an error", v)
	}
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: b}})
	if err != nil {
		t.Fatal(err)
	}
	var into struct{ V bson.Vector }
	if err := bson.Unmarshal(doc, &into); err == nil {
		t.Errorf("got %v, want an error", into.V)
	}
}

// TestVectorProse3Comparison: the vector with ignored bits set, v2 in the specification, cannot be
// made here.
func TestVectorProse3Comparison(t *testing.T) {
	b1 := bson.Binary{Subtype: bson.BinaryVector, Data: []byte{0x10, 0x07, 0x80}}
	b2 := bson.Binary{Subtype: bson.BinaryVector, Data: []byte{0x10, 0x07, 0xFF}}
	v1, err := b1.Vector()
	if err != nil {
		t.Fatal(err)
	}
	v3, err := bson.NewPackedBitVector([]byte{0x80}, 7)
	if err != nil {
		t.Fatal(err)
	}
	b3 := v3.Binary()
	if b1.Equal(b2) {
		t.Error("b1 equals b2")
	}
	if !b1.Equal(b3) {
		t.Error("b1 differs from b3")
	}
	if !v1.Equal(v3) {
		t.Error("v1 differs from v3")
	}
}

func TestVectorElements(t *testing.T) {
	floats := bson.NewFloat32Vector([]float32{1.5, -2, float32(math.Inf(1))})
	if got, ok := floats.Float32(); !ok || len(got) != 3 || got[0] != 1.5 || floats.Len() != 3 || floats.String() != "FLOAT32[1.5 -2 +Inf]" {
		t.Errorf("got %v, %v, %s", got, ok, floats)
	}
	ints := bson.NewInt8Vector([]int8{-128, 0, 127})
	if got, ok := ints.Int8(); !ok || len(got) != 3 || got[0] != -128 || ints.Len() != 3 || ints.String() != "INT8[-128 0 127]" {
		t.Errorf("got %v, %v, %s", got, ok, ints)
	}
	bits := bson.NewBitVector([]bool{true, false, true, true, false, false, false, false, true})
	if got, ok := bits.Bits(); !ok || len(got) != 9 || !got[8] || got[7] || bits.Padding() != 7 || bits.String() != "PACKED_BIT[101100001]" {
		t.Errorf("got %v, %v, %s", got, ok, bits)
	}
	if again, err := bson.NewPackedBitVector(bits.Packed(), bits.Padding()); err != nil || !again.Equal(bits) {
		t.Errorf("got %v, %v", again, err)
	}
	if _, ok := floats.Int8(); ok {
		t.Error("floats are int8")
	}
	if _, ok := ints.Bits(); ok {
		t.Error("int8 are bits")
	}
	if _, ok := bits.Float32(); ok {
		t.Error("bits are floats")
	}
	if out, err := json.Marshal([]bson.Vector{ints, bits}); err != nil || string(out) != "[[-128,0,127],[1,0,1,1,0,0,0,0,1]]" {
		t.Errorf("got %s, %v", out, err)
	}
	if out, err := json.Marshal(floats); err == nil {
		t.Errorf("an infinity becomes %s", out)
	}
	if _, err := bson.NewVector(0x7F, 0, nil); err == nil {
		t.Error("an unknown type of elements is accepted")
	}
	if _, err := bson.Marshal(bson.D{{Key: "v", Value: bson.Vector{}}}); err == nil {
		t.Error("the zero value is encoded")
	}
	if _, err := (bson.Binary{Data: []byte{3, 0}}).Vector(); err == nil {
		t.Error("a binary of another subtype is a vector")
	}
	if _, err := (bson.Binary{Subtype: bson.BinaryVector, Data: []byte{3}}).Vector(); err == nil {
		t.Error("a binary of one byte is a vector")
	}
}

func ExampleNewFloat32Vector() {
	type item struct {
		Name      string
		Embedding bson.Vector
	}
	doc, err := bson.Marshal(item{"onion", bson.NewFloat32Vector([]float32{0.25, -0.5})})
	if err != nil {
		fmt.Println(err)
	}
	var back item
	if err := bson.Unmarshal(doc, &back); err != nil {
		fmt.Println(err)
	}
	elements, _ := back.Embedding.Float32()
	fmt.Println(elements)
	// Output: [0.25 -0.5]
}
