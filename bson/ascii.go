package bson

// Looking at text: most of it is ASCII, and that is seen eight bytes at a time.

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// validText reports whether b is valid UTF-8.
func validText(b []byte) bool {
	rest := b
	for len(rest) >= 32 {
		x := binary.LittleEndian.Uint64(rest) | binary.LittleEndian.Uint64(rest[8:]) |
			binary.LittleEndian.Uint64(rest[16:]) | binary.LittleEndian.Uint64(rest[24:])
		if x&highs != 0 {
			return utf8.Valid(rest)
		}
		rest = rest[32:]
	}
	for len(rest) >= 8 {
		if binary.LittleEndian.Uint64(rest)&highs != 0 {
			return utf8.Valid(rest)
		}
		rest = rest[8:]
	}
	if len(b) >= 8 {
		// The last eight bytes once more, in one look. What was before the rest is ASCII.
		return binary.LittleEndian.Uint64(b[len(b)-8:])&highs == 0 || utf8.Valid(rest)
	}
	for _, c := range rest {
		if c >= utf8.RuneSelf {
			return utf8.Valid(rest)
		}
	}
	return true
}

// plainKey reports whether b is ASCII without a NUL; false may also mean that a closer look is
// needed.
func plainKey(b []byte) bool {
	n := len(b)
	if n < 8 {
		for _, c := range b {
			if c-1 >= utf8.RuneSelf-1 {
				return false
			}
		}
		return true
	}
	for i := 0; i <= n-8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if (x|(x-ones))&highs != 0 {
			return false
		}
	}
	x := binary.LittleEndian.Uint64(b[n-8:])
	return (x|(x-ones))&highs == 0
}

// cstringLen returns how many bytes of b come before the first NUL, or -1, and whether all of them
// are ASCII.
func cstringLen(b []byte) (n int, ascii bool) {
	var high uint64
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// The lowest set bit marks the first NUL.
		if zero := (x - ones) & ^x & highs; zero != 0 {
			high |= x & (zero&-zero - 1)
			return i + bits.TrailingZeros64(zero)/8, high&highs == 0
		}
		high |= x
	}
	ascii = high&highs == 0
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == 0:
			return i, ascii
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return -1, false
}
