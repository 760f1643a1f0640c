package bson

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Decimal128 is an IEEE 754-2008 decimal floating point number of up to 34 significant digits, in
// BID encoding. It has no arithmetic: use BigInt to calculate with one.
//
// Two Decimal128 that are equal as numbers can differ in their bits (1.0 and 1.00 have different
// exponents), so compare them with Compare, not with ==. The zero value is 0E-6176, which is a
// zero.
type Decimal128 struct {
	hi, lo uint64
}

// The limits of Decimal128: its exponents, and how many digits its coefficient has.
const (
	MaxDecimal128Exponent = 6111
	MinDecimal128Exponent = -6176
	decimal128Digits      = 34
)

const (
	decimalSign     = 1 << 63
	decimalInfinity = 0x78 << 56
	decimalNaN      = 0x7C << 56
	decimalBias     = 6176
)

// ErrDecimal128Syntax, ErrDecimal128Range and ErrDecimal128Inexact are the reasons why a text or
// number has no Decimal128: it is not a number, its exponent is out of range, or it has more
// significant digits than fit.
var (
	ErrDecimal128Syntax  = errors.New("not a decimal number")
	ErrDecimal128Range   = errors.New("exponent out of range")
	ErrDecimal128Inexact = errors.New("more than 34 significant digits")
)

// NewDecimal128 returns the decimal with these high and low 64 bits.
func NewDecimal128(hi, lo uint64) Decimal128 { return Decimal128{hi: hi, lo: lo} }

// NewDecimal128FromInt64 returns n as a decimal with exponent 0.
func NewDecimal128FromInt64(n int64) Decimal128 {
	if n < 0 {
		return packDecimal(true, uint128{lo: -uint64(n)}, 0)
	}
	return packDecimal(false, uint128{lo: uint64(n)}, 0)
}

// NewDecimal128FromBigInt returns coefficient * 10^exponent. Where the exponent or the digits do
// not fit, it uses another pair of the same value; if there is none, the error is
// ErrDecimal128Range or ErrDecimal128Inexact.
func NewDecimal128FromBigInt(coefficient *big.Int, exponent int) (Decimal128, error) {
	// Far beyond any representable number the digits need not be looked at.
	if coefficient.BitLen() > 1<<16 {
		return Decimal128{}, fmt.Errorf("bson: number of %d bits as a decimal: %w", coefficient.BitLen(),
			ErrDecimal128Range)
	}
	digits := new(big.Int).Abs(coefficient).Append(nil, 10)
	var p decimalDigits
	for _, c := range digits {
		p.add(c - '0')
	}
	d, err := p.finish(coefficient.Sign() < 0, int64(exponent))
	if err != nil {
		return d, fmt.Errorf("bson: %sE%+d as a decimal: %w", clip(string(digits)), exponent, err)
	}
	return d, nil
}

// Bits returns the high and low 64 bits.
func (d Decimal128) Bits() (hi, lo uint64) { return d.hi, d.lo }

// IsNaN reports whether d is not a number.
func (d Decimal128) IsNaN() bool { return d.hi&decimalNaN == decimalNaN }

// IsInf reports whether d is an infinity: a positive one for sign > 0, a negative one for sign < 0,
// any for 0.
func (d Decimal128) IsInf(sign int) bool {
	if d.hi&decimalNaN != decimalInfinity {
		return false
	}
	return sign == 0 || sign < 0 == d.negative()
}

// IsZero reports whether d is the zero value of its type. Other zeros, with another exponent or
// sign, are not: omitempty keeps them.
func (d Decimal128) IsZero() bool { return d == Decimal128{} }

// Sign returns -1, 0 or +1 as d is below zero, a zero or not a number, or above zero.
func (d Decimal128) Sign() int {
	if d.IsNaN() {
		return 0
	}
	if !d.IsInf(0) {
		if c, _ := d.unpack(); c == (uint128{}) {
			return 0
		}
	}
	if d.negative() {
		return -1
	}
	return 1
}

func (d Decimal128) negative() bool { return d.hi&decimalSign != 0 }

// unpack returns the coefficient and the exponent of a finite d. A coefficient that is not
// canonical, that is one of more than 34 digits, counts as zero, as IEEE 754 has it.
func (d Decimal128) unpack() (coefficient uint128, exponent int) {
	if d.hi>>61&3 == 3 {
		return uint128{}, int(d.hi>>47&0x3FFF) - decimalBias
	}
	coefficient = uint128{hi: d.hi & (1<<49 - 1), lo: d.lo}
	if coefficient.cmp(powersOfTen[decimal128Digits]) >= 0 {
		coefficient = uint128{}
	}
	return coefficient, int(d.hi>>49&0x3FFF) - decimalBias
}

func packDecimal(negative bool, coefficient uint128, exponent int) Decimal128 {
	d := Decimal128{hi: coefficient.hi | uint64(exponent+decimalBias)<<49, lo: coefficient.lo}
	if negative {
		d.hi |= decimalSign
	}
	return d
}

// BigInt returns d as coefficient * 10^exponent. It reports an error for NaN and the infinities.
// The sign of a negative zero is lost.
func (d Decimal128) BigInt() (coefficient *big.Int, exponent int, err error) {
	if d.hi&decimalInfinity == decimalInfinity {
		return nil, 0, fmt.Errorf("bson: decimal %s has no coefficient", d)
	}
	c, exponent := d.unpack()
	coefficient = c.big()
	if d.negative() {
		coefficient.Neg(coefficient)
	}
	return coefficient, exponent, nil
}

// Int64 returns d as an int64, and whether it is a whole number in its range.
func (d Decimal128) Int64() (int64, bool) {
	if d.hi&decimalInfinity == decimalInfinity {
		return 0, false
	}
	c, exponent := d.unpack()
	if c == (uint128{}) {
		return 0, true
	}
	for ; exponent < 0; exponent++ {
		q, r := c.div(10)
		if r != 0 {
			return 0, false
		}
		c = q
	}
	for ; exponent > 0; exponent-- {
		if c.hi != 0 || c.lo > 1<<63 {
			return 0, false
		}
		c = c.mulAdd(10, 0)
	}
	switch {
	case c.hi != 0:
	case d.negative() && c.lo <= 1<<63:
		return -int64(c.lo), true
	case !d.negative() && c.lo < 1<<63:
		return int64(c.lo), true
	}
	return 0, false
}

// Float64 returns the float64 nearest to d, an infinity if d is too large for one.
func (d Decimal128) Float64() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64) // its one possible error is the overflow that f tells
	return f
}

// ParseDecimal128 parses a number as the specification "BSON Decimal128" writes it: digits with an
// optional point, sign and exponent, or Infinity, Inf or NaN in any case. The text's exponent is
// kept where possible. The result is exact or there is an error: ErrDecimal128Syntax,
// ErrDecimal128Range or ErrDecimal128Inexact.
func ParseDecimal128(s string) (Decimal128, error) {
	d, err := parseDecimal(s)
	if err != nil {
		return d, fmt.Errorf("bson: parse decimal %q: %w", clip(s), err)
	}
	return d, nil
}

func parseDecimal[T string | []byte](s T) (Decimal128, error) {
	i, negative := 0, false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		i, negative = 1, s[0] == '-'
	}
	if i < len(s) && (s[i]|0x20 == 'i' || s[i]|0x20 == 'n') {
		return parseSpecialDecimal(string(s[i:]), negative)
	}
	var p decimalDigits
	var exponent int64
	digits, point := 0, false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
			p.add(c - '0')
			if point {
				exponent--
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return Decimal128{}, ErrDecimal128Syntax
	}
	if i < len(s) {
		if s[i]|0x20 != 'e' {
			return Decimal128{}, ErrDecimal128Syntax
		}
		i++
		minus := false
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			minus = s[i] == '-'
			i++
		}
		if i == len(s) {
			return Decimal128{}, ErrDecimal128Syntax
		}
		var e int64
		for ; i < len(s); i++ {
			c := s[i]
			if c < '0' || c > '9' {
				return Decimal128{}, ErrDecimal128Syntax
			}
			// Saturate where no text that fits into memory could bring the number back into range.
			if e < 1<<56 {
				e = e*10 + int64(c-'0')
			}
		}
		if minus {
			e = -e
		}
		exponent += e
	}
	return p.finish(negative, exponent)
}

func parseSpecialDecimal(s string, negative bool) (Decimal128, error) {
	var d Decimal128
	switch {
	case strings.EqualFold(s, "inf"), strings.EqualFold(s, "infinity"):
		d.hi = decimalInfinity
	case strings.EqualFold(s, "nan"):
		d.hi = decimalNaN
	default:
		return d, ErrDecimal128Syntax
	}
	if negative {
		d.hi |= decimalSign
	}
	return d, nil
}

// decimalDigits collects digits, most significant first: the first 34 significant ones as a
// coefficient, and of the rest how many there were and whether they were all zeros.
type decimalDigits struct {
	coefficient uint128
	n           int   // significant digits in coefficient
	dropped     int64 // digits that did not fit
	inexact     bool
}

func (p *decimalDigits) add(digit byte) {
	switch {
	case p.n == decimal128Digits:
		p.dropped++
		p.inexact = p.inexact || digit != 0
	case p.n > 0 || digit != 0:
		p.coefficient = p.coefficient.mulAdd(10, uint64(digit))
		p.n++
	}
}

func (p *decimalDigits) finish(negative bool, exponent int64) (Decimal128, error) {
	if p.n == 0 {
		exponent = min(max(exponent, MinDecimal128Exponent), MaxDecimal128Exponent)
		return packDecimal(negative, uint128{}, int(exponent)), nil
	}
	if p.inexact {
		return Decimal128{}, ErrDecimal128Inexact
	}
	exponent = min(max(exponent, -1<<60), 1<<60) + p.dropped
	c, n := p.coefficient, p.n
	for ; exponent > MaxDecimal128Exponent; exponent-- {
		if n == decimal128Digits {
			return Decimal128{}, ErrDecimal128Range
		}
		c = c.mulAdd(10, 0)
		n++
	}
	for ; exponent < MinDecimal128Exponent; exponent++ {
		q, r := c.div(10)
		if r != 0 {
			return Decimal128{}, ErrDecimal128Range
		}
		c = q
	}
	return packDecimal(negative, c, int(exponent)), nil
}

// String returns d as the specification "BSON Decimal128" writes it: plain where the exponent
// allows, else in exponential notation, so that parsing it gives d again (but for what NaN and
// non-canonical zeros carry).
func (d Decimal128) String() string {
	var buf [48]byte
	return string(d.append(buf[:0]))
}

func (d Decimal128) append(dst []byte) []byte {
	if d.IsNaN() {
		return append(dst, "NaN"...)
	}
	if d.negative() {
		dst = append(dst, '-')
	}
	if d.IsInf(0) {
		return append(dst, "Infinity"...)
	}
	c, exponent := d.unpack()
	var buf [decimal128Digits]byte
	digits := c.digits(&buf)
	adjusted := exponent + len(digits) - 1
	switch {
	case exponent > 0 || adjusted < -6:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:]...)
		}
		dst = append(dst, 'E')
		if adjusted >= 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(adjusted), 10)
	case exponent == 0:
		return append(dst, digits...)
	}
	if before := len(digits) + exponent; before > 0 {
		dst = append(dst, digits[:before]...)
		dst = append(dst, '.')
		return append(dst, digits[before:]...)
	}
	dst = append(dst, '0', '.')
	for i := len(digits) + exponent; i < 0; i++ {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// MarshalText returns what String returns, but 0 for the zero value, which is a zero of an exponent
// that nobody means: 0E-6176. In JSON, d is a string of it.
func (d Decimal128) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return []byte("0"), nil
	}
	return d.append(nil), nil
}

// UnmarshalText parses as ParseDecimal128 does.
func (d *Decimal128) UnmarshalText(text []byte) error {
	v, err := ParseDecimal128(string(text))
	if err == nil {
		*d = v
	}
	return err
}

// UnmarshalJSON reads a string, a number, or the {"$numberDecimal": "..."} of Extended JSON.
func (d *Decimal128) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') {
		return d.UnmarshalText(text) // all its digits count, which those of a double would not
	}
	return unmarshalExtJSONOf(text, d, func(v RawValue) (Decimal128, bool) {
		if s, ok := v.StringBytes(); ok {
			got, err := parseDecimal(s)
			return got, err == nil
		}
		return v.Decimal128()
	})
}

// Compare returns -1, 0 or +1 as d is less than, equal to or greater than other, as numbers: 1.0
// equals 1.00, and the two zeros are equal. As in the server's order NaN equals NaN and is less
// than every other number.
func (d Decimal128) Compare(other Decimal128) int {
	if d.IsNaN() || other.IsNaN() {
		return compareBool(!d.IsNaN(), !other.IsNaN())
	}
	sign, otherSign := d.Sign(), other.Sign()
	if sign != otherSign || sign == 0 {
		return compareOrdered(sign, otherSign)
	}
	if d.IsInf(0) || other.IsInf(0) {
		return sign * compareBool(d.IsInf(0), other.IsInf(0))
	}
	a, aExp := d.unpack()
	b, bExp := other.unpack()
	an, bn := a.digitCount(), b.digitCount()
	if n, m := an+aExp, bn+bExp; n != m {
		return sign * compareOrdered(n, m)
	}
	// Equal magnitudes: with zeros added to the shorter one, the coefficients tell.
	if an < bn {
		a = a.mul(powersOfTen[bn-an])
	} else {
		b = b.mul(powersOfTen[an-bn])
	}
	return sign * a.cmp(b)
}

// uint128 holds a decimal's coefficient.
type uint128 struct {
	hi, lo uint64
}

// powersOfTen holds 10^0 to 10^34.
var powersOfTen = func() (p [decimal128Digits + 1]uint128) {
	p[0] = uint128{lo: 1}
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1].mulAdd(10, 0)
	}
	return p
}()

func (u uint128) cmp(v uint128) int {
	if u.hi != v.hi {
		return compareOrdered(u.hi, v.hi)
	}
	return compareOrdered(u.lo, v.lo)
}

func (u uint128) mulAdd(factor, summand uint64) uint128 {
	carry, lo := bits.Mul64(u.lo, factor)
	lo, c := bits.Add64(lo, summand, 0)
	return uint128{hi: u.hi*factor + carry + c, lo: lo}
}

// mul returns the low 128 bits of u * v.
func (u uint128) mul(v uint128) uint128 {
	hi, lo := bits.Mul64(u.lo, v.lo)
	return uint128{hi: hi + u.hi*v.lo + u.lo*v.hi, lo: lo}
}

func (u uint128) div(by uint64) (quotient uint128, remainder uint64) {
	quotient.hi, remainder = bits.Div64(0, u.hi, by)
	quotient.lo, remainder = bits.Div64(remainder, u.lo, by)
	return quotient, remainder
}

// digitCount returns how many decimal digits u has; 0 has none.
func (u uint128) digitCount() int {
	for n, p := range powersOfTen {
		if u.cmp(p) < 0 {
			return n
		}
	}
	return len(powersOfTen)
}

// digits returns u, which is less than 10^34, in decimal; 0 gives "0".
func (u uint128) digits(buf *[decimal128Digits]byte) []byte {
	const half = 1e17
	upper, lower := u.div(half)
	if upper == (uint128{}) {
		return strconv.AppendUint(buf[:0], lower, 10)
	}
	out := strconv.AppendUint(buf[:0], upper.lo, 10)
	n := len(out)
	out = out[:n+17]
	for i := len(out) - 1; i >= n; i-- {
		out[i] = byte('0' + lower%10)
		lower /= 10
	}
	return out
}

func (u uint128) big() *big.Int {
	n := new(big.Int).SetUint64(u.hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(u.lo))
}

// clip shortens text from outside for an error message.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
