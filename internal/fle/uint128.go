package fle

import (
	"math/big"
	"math/bits"
)

// uint128 is a number of 128 bits.
type uint128 struct{ hi, lo uint64 }

func (a uint128) add(b uint128) uint128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return uint128{hi, lo}
}

func (a uint128) sub(b uint128) uint128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return uint128{hi, lo}
}

func (a uint128) less(b uint128) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// len returns how many bits a has without leading zeros.
func (a uint128) len() int {
	if a.hi != 0 {
		return 64 + bits.Len64(a.hi)
	}
	return bits.Len64(a.lo)
}

// bit returns the bit of a that counts 2^i.
func (a uint128) bit(i int) byte {
	if i >= 64 {
		return byte(a.hi >> (i - 64) & 1)
	}
	return byte(a.lo >> i & 1)
}

// power returns 2^n, for n < 128.
func power(n int) uint128 {
	if n >= 64 {
		return uint128{hi: 1 << (n - 64)}
	}
	return uint128{lo: 1 << n}
}

// ones returns 2^n - 1, for n <= 128.
func ones(n int) uint128 {
	if n == 128 {
		return uint128{^uint64(0), ^uint64(0)}
	}
	return power(n).sub(uint128{lo: 1})
}

// fromBig returns n, which is not negative and has at most 128 bits.
func fromBig(n *big.Int) uint128 {
	var b [16]byte
	n.FillBytes(b[:])
	var out uint128
	for i := range 8 {
		out.hi = out.hi<<8 | uint64(b[i])
		out.lo = out.lo<<8 | uint64(b[8+i])
	}
	return out
}
