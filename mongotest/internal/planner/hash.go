package planner

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// hash is the short form of a text in which shapes of queries are shown.
func hash(text string) string { return fmt.Sprintf("%08X", uint32(murmur3([]byte(text)))) }

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
