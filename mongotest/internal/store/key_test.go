package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"allium/bson"
)

// TestKeyOrder compares the order of the encoded keys with bson.Compare for all pairs of a set of
// values.
func TestKeyOrder(t *testing.T) {
	values := keyTestValues(rand.New(rand.NewPCG(1, 2)))
	for i, a := range values {
		ka := AppendKey(nil, a, nil, false)
		for _, b := range values[:i+1] {
			kb := AppendKey(nil, b, nil, false)
			want := bson.Compare(a, b)
			if got := bytes.Compare(ka, kb); got != want {
				t.Fatalf("%s %x and %s %x: keys compare %d, values %d\n%x\n%x", a.Type, a.Value, b.Type, b.Value, got, want, ka, kb)
			}
			if want != 0 && bytes.HasPrefix(ka, kb) {
				t.Fatalf("the key of %s %x is a prefix of that of %s %x", b.Type, b.Value, a.Type, a.Value)
			}
			if got := bytes.Compare(AppendKey(nil, a, nil, true), AppendKey(nil, b, nil, true)); got != -want {
				t.Fatalf("%s %x and %s %x: descending keys compare %d", a.Type, a.Value, b.Type, b.Value, got)
			}
		}
	}
}

// TestKeyEnd: the end of a key is found, whatever follows, and a key that was cut is not whole.
func TestKeyEnd(t *testing.T) {
	for _, v := range keyTestValues(rand.New(rand.NewPCG(1, 2))) {
		key := AppendKey(nil, v, nil, false)
		for _, tail := range []string{"", "\x00", "\xff\x01"} {
			if got := KeyEnd(append(bytes.Clone(key), tail...)); got != len(key) {
				t.Fatalf("%s %x: the key of %d bytes ends at %d", v.Type, v.Value, len(key), got)
			}
		}
		for n := range key {
			if got := KeyEnd(key[:n]); got != -1 {
				t.Fatalf("%s %x: %d of %d bytes end at %d", v.Type, v.Value, n, len(key), got)
			}
		}
	}
}

func keyTestValues(rng *rand.Rand) []bson.RawValue {
	var values []bson.RawValue
	add := func(t bson.Type, b []byte) { values = append(values, bson.RawValue{Type: t, Value: b}) }
	decimal := func(s string) {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			panic(err)
		}
		add(bson.TypeDecimal128, bson.AppendDecimal128Value(nil, d))
	}
	for _, t := range []bson.Type{bson.TypeMinKey, bson.TypeMaxKey, bson.TypeNull, bson.TypeUndefined} {
		add(t, nil)
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, 1.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1 << 53, 1 << 63, -1 << 63, 0.1, -0.1} {
		add(bson.TypeDouble, bson.AppendDoubleValue(nil, f))
	}
	for _, n := range []int64{0, 1, -1, 1 << 53, 1<<53 + 1, -(1<<53 + 1), math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1} {
		add(bson.TypeInt64, bson.AppendInt64Value(nil, n))
		add(bson.TypeInt32, bson.AppendInt32Value(nil, int32(n)))
		decimal(fmt.Sprint(n))
		decimal(fmt.Sprintf("%d.5", n/10))
	}
	for _, s := range []string{"NaN", "Infinity", "-Infinity", "0.1", "-0.1", "0.10", "1E6144", "-1E6144", "1E-6176", "-1E-6176", "0", "-0", "1E400", "2E400",
		"9007199254740993", "9007199254740993.1", "0.1000000000000000055511151231257827", "-1E-400", "1E-400", "1.5"} {
		decimal(s)
	}
	for range 40 {
		add(bson.TypeDouble, binary.LittleEndian.AppendUint64(nil, rng.Uint64()))
		add(bson.TypeInt64, binary.LittleEndian.AppendUint64(nil, rng.Uint64()))
	}
	for _, s := range []string{"", "a", "a\x00", "a\x00b", "a\x01", "ab", "b", "é", "a\xff"} {
		add(bson.TypeString, bson.AppendStringValue(nil, s))
		add(bson.TypeSymbol, bson.AppendStringValue(nil, s))
		add(bson.TypeJavaScript, bson.AppendStringValue(nil, s))
		add(bson.TypeBinary, bson.AppendBinaryValue(nil, byte(len(s)), []byte(s)))
	}
	for _, n := range []int64{0, 1, -1, 1 << 40, -1 << 40} {
		add(bson.TypeDateTime, bson.AppendInt64Value(nil, n))
		add(bson.TypeTimestamp, bson.AppendInt64Value(nil, n))
	}
	add(bson.TypeBoolean, []byte{0})
	add(bson.TypeBoolean, []byte{1})
	add(bson.TypeObjectID, bytes.Repeat([]byte{1}, 12))
	add(bson.TypeObjectID, bytes.Repeat([]byte{0xff}, 12))
	add(bson.TypeRegex, []byte("a\x00i\x00"))
	add(bson.TypeRegex, []byte("a\x00\x00"))
	add(bson.TypeRegex, []byte("ab\x00\x00"))
	add(bson.TypeDBPointer, append(bson.AppendStringValue(nil, "x"), make([]byte, 12)...))
	scalars := values
	for range 150 {
		array := rng.IntN(2) == 0
		at, doc := bson.BeginDocument(nil)
		for i := range rng.IntN(3) {
			v := scalars[rng.IntN(len(scalars))]
			key := []string{"a", "b", "ab", ""}[rng.IntN(4)]
			if array {
				key = fmt.Sprint(i)
			}
			doc = bson.AppendRawValue(doc, key, v)
		}
		doc = bson.EndDocument(doc, at)
		add(map[bool]bson.Type{true: bson.TypeArray, false: bson.TypeEmbeddedDocument}[array], doc)
		scalars = values
	}
	return values
}
