package fle

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"allium/bson"
)

// DefaultTrimFactor and DefaultSparsity are those of a range field that does not say.
const (
	DefaultTrimFactor = 6
	DefaultSparsity   = 2
)

// Domain is the values that a range field can have, mapped to the whole numbers from 0 in their
// order.
type Domain struct {
	kind      bson.Type
	min, max  bson.RawValue
	precision *int32
	top       uint128                             // the greatest number
	bits      int                                 // of top
	number    func(bson.RawValue) (uint128, bool) // of a value within min and max; false for NaN and infinities
}

// NewDomain returns the domain of the values of type kind from min to max. Both are absent or of
// that type; precision, for doubles and decimals alone, is how many digits after the point count,
// and needs both.
func NewDomain(kind bson.Type, min, max bson.RawValue, precision *int32) (*Domain, error) {
	d := &Domain{kind: kind, min: min, max: max, precision: precision}
	switch kind {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDateTime, bson.TypeDouble, bson.TypeDecimal128:
	default:
		return nil, fmt.Errorf("unsupported BSON type: %s for range", kind)
	}
	if min.IsZero() != max.IsZero() {
		//lint:ignore ST1005 the text is that of other drivers
		return nil, errors.New("Must specify both a lower and upper bound or no bounds.")
	}
	if precision != nil {
		switch {
		case kind != bson.TypeDouble && kind != bson.TypeDecimal128:
			return nil, fmt.Errorf("expected 'precision' to be set with double or decimal128 index, but got: %s min",
				kind)
		case *precision < 0:
			//lint:ignore ST1005 the text is that of other drivers
			return nil, fmt.Errorf("Precision must be non-negative, but got %d", *precision)
		case min.IsZero():
			return nil, errors.New("min, max, and precision must all be set or must all be unset")
		}
	}
	if !min.IsZero() {
		if min.Type != max.Type {
			return nil, fmt.Errorf("expected 'min' and 'max' to be same type, but got: %s min and %s max", min.Type,
				max.Type)
		}
		if min.Type != kind {
			return nil, fmt.Errorf(
				"expected matching 'min' and value type. Got range option 'min' of type %s and value of type %s",
				min.Type, kind)
		}
		if !finite(min) || !finite(max) {
			return nil, errUnbounded(kind)
		}
		if bson.Compare(min, max) >= 0 {
			//lint:ignore ST1005 the text is that of other drivers
			return nil, fmt.Errorf("The minimum value must be less than the maximum value, got min: %s, max: %s",
				text(min), text(max))
		}
	}
	var err error
	switch kind {
	case bson.TypeDouble:
		err = d.doubles()
	case bson.TypeDecimal128:
		err = d.decimals()
	default:
		d.integers()
	}
	if err != nil {
		return nil, err
	}
	d.bits = d.top.len()
	return d, nil
}

// Bits returns how many bits a number of the domain has.
func (d *Domain) Bits() int { return d.bits }

// Bounds returns the least and the greatest value: those that NewDomain got, or those of the type.
func (d *Domain) Bounds() (min, max bson.RawValue) {
	if !d.min.IsZero() {
		return d.min, d.max
	}
	return limit(d.kind, true), limit(d.kind, false)
}

// limit returns the least or the greatest value of a type.
func limit(kind bson.Type, least bool) bson.RawValue {
	v := bson.RawValue{Type: kind}
	switch kind {
	case bson.TypeInt32:
		v.Value = bson.AppendInt32Value(nil, pick[int32](least, math.MinInt32, math.MaxInt32))
	case bson.TypeInt64, bson.TypeDateTime:
		v.Value = bson.AppendInt64Value(nil, pick[int64](least, math.MinInt64, math.MaxInt64))
	case bson.TypeDouble:
		v.Value = bson.AppendDoubleValue(nil, pick(least, -math.MaxFloat64, math.MaxFloat64))
	default:
		greatest, _ := bson.ParseDecimal128(pick(least, "-9999999999999999999999999999999999E6111",
			"9999999999999999999999999999999999E6111"))
		v.Value = bson.AppendDecimal128Value(nil, greatest)
	}
	return v
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// text returns a bound for an error's text.
func text(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return fmt.Sprint(n)
	case bson.TypeDateTime:
		n, _ := v.DateTime()
		return fmt.Sprint(int64(n))
	case bson.TypeDouble:
		f, _ := v.Double()
		return fmt.Sprintf("%g", f)
	}
	d, _ := v.Decimal128()
	return d.String()
}

func finite(v bson.RawValue) bool {
	if f, ok := v.Double(); ok {
		return !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	if d, ok := v.Decimal128(); ok {
		return !d.IsNaN() && !d.IsInf(0)
	}
	return true
}

func errUnbounded(kind bson.Type) error {
	if kind == bson.TypeDouble {
		//lint:ignore ST1005 the text is that of other drivers
		return errors.New("Infinity and NaN double values are not supported.")
	}
	//lint:ignore ST1005 the text is that of other drivers
	return errors.New("Infinity and Nan Decimal128 values are not supported.")
}

// encode returns the number of v. An error does not tell v, which is to be encrypted.
func (d *Domain) encode(v bson.RawValue) (uint128, error) {
	if v.Type != d.kind {
		return uint128{}, fmt.Errorf(
			"expected matching 'min' and value type. Got range option 'min' of type %s and value of type %s", d.kind,
			v.Type)
	}
	if !finite(v) {
		return uint128{}, errUnbounded(d.kind)
	}
	if !d.min.IsZero() && (bson.Compare(v, d.min) < 0 || bson.Compare(v, d.max) > 0) {
		return uint128{}, fmt.Errorf(
			"Value must be greater than or equal to the minimum value and less than or equal to the maximum value, got min: %s, max: %s", text(d.min), text(d.max))
	}
	n, ok := d.number(v)
	if !ok {
		return uint128{}, errUnbounded(d.kind)
	}
	return n, nil
}

// integers sets up a domain of whole numbers and dates: the distance from the least.
func (d *Domain) integers() {
	least, greatest := d.Bounds()
	base := whole(least)
	d.top = uint128{lo: uint64(whole(greatest)) - uint64(base)}
	d.number = func(v bson.RawValue) (uint128, bool) { return uint128{lo: uint64(whole(v)) - uint64(base)}, true }
}

func whole(v bson.RawValue) int64 {
	if t, ok := v.DateTime(); ok {
		return int64(t)
	}
	n, _ := v.AsInt64()
	return n
}

// doubles sets up a domain of doubles. Without a precision a double's bits are a number in the
// order of the values already, but for the sign. With one it is scaled to a whole number.
func (d *Domain) doubles() error {
	if d.precision == nil {
		d.top = ones(64)
		d.number = func(v bson.RawValue) (uint128, bool) {
			f, _ := v.Double()
			switch {
			case f == 0:
				return uint128{lo: 1 << 63}, true
			case f > 0:
				return uint128{lo: 1<<63 + math.Float64bits(f)}, true
			}
			return uint128{lo: 1<<63 - math.Float64bits(-f)}, true
		}
		return nil
	}
	// All is exact below 2^53.
	const limit int64 = 1 << 53
	scale := math.Pow10(int(*d.precision))
	if math.IsInf(scale, 0) {
		//lint:ignore ST1005 the text is that of other drivers
		return errors.New("Precision is too large and cannot be used to calculate the scaled range bounds")
	}
	low, _ := d.min.Double()
	high, _ := d.max.Double()
	for _, side := range []struct {
		name, bound string
		value       float64
	}{{"upper", "max", high}, {"lower", "min", low}} {
		scaled := side.value * scale
		if math.Abs(scaled) >= float64(limit) {
			//lint:ignore ST1005 the text is that of other drivers
			return fmt.Errorf(
				"Invalid %s bound for double precision. Absolute scaled value of %s must be less than %d. %s: %g",
				side.name, side.bound, limit, side.bound, side.value)
		}
		if math.Round(scaled)/scale != side.value { // 314.15 * 100 is no whole number, but 314.15 has two digits
			//lint:ignore ST1005 the text is that of other drivers
			return fmt.Errorf(
				"Invalid %s bound for double precision. Fractional digits must be less than the specified precision value. %s: %g", side.name, side.bound, side.value)
		}
	}
	low, high = low*scale, high*scale
	values := math.Ceil(high - low + scale)
	if values > 1<<52 {
		//lint:ignore ST1005 the text is that of other drivers
		return fmt.Errorf(
			"The domain of double values specified by the min, max, and precision cannot be represented in fewer than 53 bits. min: %s, max: %s, precision: %d", text(d.min), text(d.max), *d.precision)
	}
	d.top = ones(uint128{lo: uint64(values) - 1}.len())
	d.number = func(v bson.RawValue) (uint128, bool) {
		f, _ := v.Double()
		return uint128{lo: uint64(int64(math.Trunc(f*scale)) - int64(low))}, true
	}
	return nil
}

var (
	ten           = big.NewInt(10)
	decimalDigits = new(big.Int).Sub(exp10(34), big.NewInt(1)) // the greatest coefficient
	decimalMiddle = new(big.Int).Lsh(big.NewInt(1), 127)       // stands for zero
)

func exp10(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// decimals sets up a domain of decimals, as doubles does.
func (d *Domain) decimals() error {
	if d.precision == nil {
		d.top = ones(128)
		d.number = decimalNumber
		return nil
	}
	// A precision beyond the exponents of Decimal128 cannot matter.
	if *d.precision > -bson.MinDecimal128Exponent {
		//lint:ignore ST1005 the text is that of other drivers
		return errors.New("Precision is too large and cannot be used to calculate the scaled range bounds")
	}
	precision := int(*d.precision)
	high, exact, ok := scaled(d.max, precision)
	if ok && !exact {
		//lint:ignore ST1005 the text is that of other drivers
		return fmt.Errorf(
			"Invalid upper bound for Decimal128 precision. Fractional digits must be less than the specified precision value. max: %s", text(d.max))
	}
	low, exact, okLow := scaled(d.min, precision)
	if okLow && !exact {
		//lint:ignore ST1005 the text is that of other drivers
		return fmt.Errorf(
			"Invalid lower bound for Decimal128 precision. Fractional digits must be less than the specified precision value. min: %s", text(d.min))
	}
	top := 128
	if ok && okLow {
		values := new(big.Int).Sub(high, low)
		values.Add(values, exp10(precision))
		top = values.Sub(values, big.NewInt(1)).BitLen()
	}
	if top >= 128 {
		//lint:ignore ST1005 the text is that of other drivers
		return fmt.Errorf(
			"The domain of decimal values specified by the min, max, and precision cannot be represented in fewer than 128 bits. min: %s, max: %s, precision: %d", text(d.min), text(d.max), precision)
	}
	d.top = ones(top)
	d.number = func(v bson.RawValue) (uint128, bool) {
		n, _, ok := scaled(v, precision)
		if !ok {
			return uint128{}, false // not between min and max
		}
		return fromBig(n.Sub(n, low)), true
	}
	return nil
}

// scaled returns v * 10^precision without its fraction, whether it has none, and whether it is
// small enough to look at.
func scaled(v bson.RawValue, precision int) (n *big.Int, exact, ok bool) {
	decimal, _ := v.Decimal128()
	n, exponent, err := decimal.BigInt()
	if err != nil {
		return nil, false, false
	}
	if n.Sign() == 0 {
		return n, true, true
	}
	exponent += precision
	switch {
	case exponent > 40: // no number of 128 bits
		return nil, false, false
	case exponent >= 0:
		return n.Mul(n, exp10(exponent)), true, true
	case exponent < -34: // less than one
		return n.SetInt64(0), false, true
	}
	rest := new(big.Int)
	n.QuoRem(n, exp10(-exponent), rest)
	return n, rest.Sign() == 0, true
}

// decimalNumber returns the number of a decimal among all decimals: of those with as many digits as
// fit, by exponent and then by coefficient, around the middle for zero.
func decimalNumber(v bson.RawValue) (uint128, bool) {
	decimal, _ := v.Decimal128()
	n, exponent, err := decimal.BigInt()
	if err != nil {
		return uint128{}, false
	}
	negative := n.Sign() < 0
	if n.Abs(n).Sign() == 0 {
		return fromBig(decimalMiddle), true
	}
	biased := exponent - bson.MinDecimal128Exponent
	shift := 0 // how many zeros the coefficient has room for
	for p := new(big.Int).Mul(n, ten); p.Cmp(decimalDigits) <= 0; p.Mul(p, ten) {
		shift++
	}
	if shift > biased {
		n.Mul(n, exp10(biased))
	} else {
		n.Mul(n, exp10(shift))
		n.Add(n, new(big.Int).Mul(decimalDigits, big.NewInt(int64(biased-shift))))
	}
	if negative {
		return fromBig(n.Sub(decimalMiddle, n)), true
	}
	return fromBig(n.Add(decimalMiddle, n)), true
}
