package read

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"allium/mongotest/internal/args"
)

// The shape of a query: what the server keeps plans for. It encodes match expression, sort and
// projection as text, and shows a hash of that.

// shape returns the hash of a query that asks for all documents in an order. ok is false for other
// queries: the ones without an order have no cached plan, and how the server encodes the rest is
// not known here.
func (x *explained) shape() (hash string, ok bool) {
	if !x.filter.IsEmpty() || len(x.q.sort) <= 5 || len(x.q.projection) > 5 || len(x.q.collation) > 5 || x.stage != "" {
		return "", false
	}
	var text strings.Builder
	text.WriteString("an~") // $and of nothing, sorted
	sep := ""
	for k, v := range x.q.sort.All() {
		n, isNumber := args.NumberOf(v)
		if !isNumber || strings.ContainsAny(k, "|#-~[],<>/?") { // names with these are escaped
			return "", false
		}
		order := "a"
		if n < 0 {
			order = "d"
		}
		text.WriteString(sep + order + k)
		sep = ","
	}
	return fmt.Sprintf("%08X", uint32(murmur3([]byte(text.String())))), true
}

// murmur3 returns the first half of the x64 variant of MurmurHash3 with 128 bits and no seed.
func murmur3(data []byte) uint64 {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	one := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	two := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	final := func(h uint64) uint64 {
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		return h ^ h>>33
	}
	var h1, h2 uint64
	n := uint64(len(data))
	for ; len(data) >= 16; data = data[16:] {
		h1 = (bits.RotateLeft64(h1^one(binary.LittleEndian.Uint64(data)), 27)+h2)*5 + 0x52dce729
		h2 = (bits.RotateLeft64(h2^two(binary.LittleEndian.Uint64(data[8:])), 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], data)
	h1 ^= one(binary.LittleEndian.Uint64(tail[:]))
	h2 ^= two(binary.LittleEndian.Uint64(tail[8:]))
	h1, h2 = h1^n, h2^n
	h1 += h2
	h2 += h1
	return final(h1) + final(h2)
}
