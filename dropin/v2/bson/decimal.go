package bson

import (
	"errors"
	"fmt"
	"math/big"

	"allium/bson"
)

// The limits of a Decimal128's exponent.
const (
	MaxDecimal128Exp = 6111
	MinDecimal128Exp = -6176
)

// The errors for what no big.Int can be.
var (
	ErrParseNaN    = errors.New("cannot parse NaN as a *big.Int")
	ErrParseInf    = errors.New("cannot parse Infinity as a *big.Int")
	ErrParseNegInf = errors.New("cannot parse -Infinity as a *big.Int")
)

// nan is what the high 64 bits of a NaN are.
const nan = 0x7C << 56

// Decimal128 is a decimal floating point number of up to 34 digits.
type Decimal128 struct{ h, l uint64 }

func (d Decimal128) decimal() bson.Decimal128 { return bson.NewDecimal128(d.h, d.l) }

func decimalOf(d bson.Decimal128) Decimal128 {
	h, l := d.Bits()
	return Decimal128{h, l}
}

// NewDecimal128 returns the decimal with these high and low 64 bits.
func NewDecimal128(h, l uint64) Decimal128 { return Decimal128{h, l} }

// ParseDecimal128 parses a decimal number, Infinity or NaN. With an error it returns a NaN.
func ParseDecimal128(s string) (Decimal128, error) {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		return Decimal128{h: nan}, fmt.Errorf("cannot parse %q as a decimal128", s)
	}
	return decimalOf(d), nil
}

// ParseDecimal128FromBigInt returns bi * 10^exp, and whether there is a decimal of that value.
func ParseDecimal128FromBigInt(bi *big.Int, exp int) (Decimal128, bool) {
	d, err := bson.NewDecimal128FromBigInt(bi, exp)
	if err != nil {
		return Decimal128{}, false
	}
	return decimalOf(d), true
}

// GetBytes returns the high and low 64 bits.
func (d Decimal128) GetBytes() (uint64, uint64) { return d.h, d.l }

// BigInt returns d as a whole number and the exponent of ten that it is to be multiplied with.
func (d Decimal128) BigInt() (*big.Int, int, error) {
	switch {
	case d.IsNaN():
		return nil, 0, ErrParseNaN
	case d.IsInf() > 0:
		return nil, 0, ErrParseInf
	case d.IsInf() < 0:
		return nil, 0, ErrParseNegInf
	}
	return d.decimal().BigInt()
}

// IsNaN reports whether d is not a number.
func (d Decimal128) IsNaN() bool { return d.decimal().IsNaN() }

// IsInf returns +1 or -1 for the infinities and 0 for all else.
func (d Decimal128) IsInf() int {
	switch {
	case d.decimal().IsInf(1):
		return 1
	case d.decimal().IsInf(-1):
		return -1
	}
	return 0
}

// IsZero reports whether all bits are 0.
func (d Decimal128) IsZero() bool { return d == Decimal128{} }

// String returns d in the form that ParseDecimal128 reads.
func (d Decimal128) String() string { return d.decimal().String() }

// MarshalJSON returns a string of what String returns.
func (d Decimal128) MarshalJSON() ([]byte, error) {
	return append(append([]byte{'"'}, d.String()...), '"'), nil
}

// UnmarshalJSON reads a string, or the {"$numberDecimal": "..."} of Extended JSON.
func (d *Decimal128) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var v bson.Decimal128
	if err := v.UnmarshalJSON(b); err != nil {
		return err
	}
	*d = decimalOf(v)
	return nil
}
