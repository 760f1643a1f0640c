// Package decimal is the arithmetic of 128-bit decimals (IEEE 754-2008 decimal128) as the server's
// expressions and update operators need it: exact where 34 digits suffice, else rounded half to
// even, with the exponent that the standard prefers (2.50 + 1 is 3.50, 6 / 3 is 2).
//
//	sum := decimal.FromBSON(a).Add(decimal.FromFloat(f)).BSON()
package decimal

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"allium/bson"
)

// Digits is the precision of a decimal128: results are rounded to so many digits.
const Digits = 34

const (
	bias   = 6176
	minExp = -bias
	maxExp = 6111
)

type kind uint8

const (
	finite kind = iota
	infinite
	notANumber
)

// Decimal is a decimal number, an infinity or not a number. The zero Decimal is 0. It is immutable.
type Decimal struct {
	kind  kind
	neg   bool
	exp   int
	coeff *big.Int // nil stands for 0; never negative
}

var (
	bigZero = new(big.Int)
	bigTen  = big.NewInt(10)
	limit   = pow10(Digits) // first coefficient that has too many digits
)

// NaN and Inf are the special values.
var (
	NaN = Decimal{kind: notANumber}
	Inf = Decimal{kind: infinite}
)

func pow10(n int) *big.Int { return new(big.Int).Exp(bigTen, big.NewInt(int64(n)), nil) }

func (d Decimal) c() *big.Int {
	if d.coeff == nil {
		return bigZero
	}
	return d.coeff
}

// FromBSON returns the number that b encodes.
func FromBSON(b bson.Decimal128) Decimal {
	hi, lo := b.Bits()
	neg := hi>>63 != 0
	switch hi >> 58 & 0x1f {
	case 0x1f:
		return Decimal{kind: notANumber, neg: neg}
	case 0x1e:
		return Decimal{kind: infinite, neg: neg}
	}
	if hi>>61&3 == 3 { // not canonical: such a coefficient is too large, the standard reads it as 0
		return Decimal{neg: neg, exp: int(hi>>47&0x3fff) - bias}
	}
	coeff := new(big.Int).SetUint64(hi & (1<<49 - 1))
	coeff.Lsh(coeff, 64).Or(coeff, new(big.Int).SetUint64(lo))
	if coeff.Cmp(limit) >= 0 {
		coeff = nil
	}
	return Decimal{neg: neg, exp: int(hi>>49&0x3fff) - bias, coeff: coeff}
}

// BSON encodes d. What is too large becomes infinite, what is too small loses digits.
func (d Decimal) BSON() bson.Decimal128 {
	var sign uint64
	if d.neg {
		sign = 1 << 63
	}
	if d.kind == finite {
		d = d.round()
	}
	switch d.kind {
	case notANumber:
		return bson.NewDecimal128(sign|0x7c00000000000000, 0)
	case infinite:
		return bson.NewDecimal128(sign|0x7800000000000000, 0)
	}
	var words [16]byte
	d.c().FillBytes(words[:])
	var hi, lo uint64
	for _, b := range words[:8] {
		hi = hi<<8 | uint64(b)
	}
	for _, b := range words[8:] {
		lo = lo<<8 | uint64(b)
	}
	return bson.NewDecimal128(sign|uint64(d.exp+bias)<<49|hi, lo)
}

// ParseCut reads a decimal number of more digits than there are, and leaves away those that do not
// fit. ok is false if s is none, or is out of range.
func ParseCut(s string) (d bson.Decimal128, ok bool) {
	m := long.FindStringSubmatch(s)
	if m == nil || m[2]+m[3] == "" {
		return d, false
	}
	exp, err := strconv.Atoi(m[4])
	if err != nil && m[4] != "" {
		return d, false
	}
	digits := strings.TrimLeft(m[2]+m[3], "0")
	exp -= len(m[3])
	if len(digits) <= Digits || exp+len(digits) > maxExp+Digits {
		return d, false
	}
	exp += len(digits) - Digits
	coeff, _ := new(big.Int).SetString(digits[:Digits], 10)
	if exp < minExp {
		return d, false
	}
	return Decimal{neg: m[1] == "-", exp: exp, coeff: coeff}.BSON(), true
}

// long has the parts of a number: sign, digits, digits behind the point, exponent.
var long = regexp.MustCompile(`^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$`)

// FromInt returns n.
func FromInt(n int64) Decimal {
	c := big.NewInt(n)
	return Decimal{neg: n < 0, coeff: c.Abs(c)}
}

// FromFloat returns f with up to 34 digits, so exactly where that suffices.
func FromFloat(f float64) Decimal {
	d := fromFloat(f, Digits)
	if d.kind == finite && d.c().Sign() != 0 {
		d = d.strip(0)
	} else {
		d.exp = 0
	}
	return d
}

// FromFloat15 returns f rounded to 15 digits and always with that many: 0.1 is 0.100000000000000.
// That is how the server converts a double to a decimal unless it sums.
func FromFloat15(f float64) Decimal {
	d := fromFloat(f, 15)
	if d.kind == finite && d.c().Sign() == 0 {
		d.exp = 0
	}
	return d
}

func fromFloat(f float64, digits int) Decimal {
	switch {
	case math.IsNaN(f):
		return NaN
	case math.IsInf(f, 0):
		return Decimal{kind: infinite, neg: f < 0}
	}
	text := strconv.FormatFloat(math.Abs(f), 'e', digits-1, 64)
	mantissa, exp, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exp)
	c, _ := new(big.Int).SetString(strings.Replace(mantissa, ".", "", 1), 10)
	return Decimal{neg: math.Signbit(f), exp: e - (digits - 1), coeff: c}
}

// strip removes zeros at the end of the coefficient as long as the exponent stays at most max.
func (d Decimal) strip(max int) Decimal {
	if d.c().Sign() == 0 {
		return d
	}
	c := new(big.Int).Set(d.c())
	q, r := new(big.Int), new(big.Int)
	for d.exp < max {
		if q.QuoRem(c, bigTen, r); r.Sign() != 0 {
			break
		}
		c, q = q, c
		d.exp++
	}
	d.coeff = c
	return d
}

// IsNaN, IsInf, IsZero and IsNegative tell what d is; -0 is negative.
func (d Decimal) IsNaN() bool      { return d.kind == notANumber }
func (d Decimal) IsInf() bool      { return d.kind == infinite }
func (d Decimal) IsZero() bool     { return d.kind == finite && d.c().Sign() == 0 }
func (d Decimal) IsNegative() bool { return d.neg }

// Neg returns -d, Abs its absolute value.
func (d Decimal) Neg() Decimal {
	if d.kind != notANumber {
		d.neg = !d.neg
	}
	return d
}

// Abs returns the absolute value of d.
func (d Decimal) Abs() Decimal { d.neg = false; return d }

// String returns d as the standard's scientific string: 1.50, 1E+3, Infinity.
func (d Decimal) String() string {
	switch d.kind {
	case notANumber:
		return "NaN"
	case infinite:
		if d.neg {
			return "-Infinity"
		}
		return "Infinity"
	}
	digits := d.c().String()
	sign := ""
	if d.neg {
		sign = "-"
	}
	e := d.exp + len(digits) - 1
	switch {
	case d.exp == 0:
		return sign + digits
	case d.exp > 0 || e < -6:
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return sign + digits + "E" + map[bool]string{true: "+"}[e >= 0] + strconv.Itoa(e)
	case len(digits) > -d.exp:
		return sign + digits[:len(digits)+d.exp] + "." + digits[len(digits)+d.exp:]
	}
	return sign + "0." + strings.Repeat("0", -d.exp-len(digits)) + digits
}

// Float returns the nearest float64.
func (d Decimal) Float() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64)
	return f
}

// Rounding is how a discarded part is treated.
type Rounding uint8

// The rounding modes.
const (
	HalfEven Rounding = iota
	Down              // towards zero
	Floor
	Ceil
)

// shift returns d with n digits less (n > 0), rounded.
func (d Decimal) shift(n int, mode Rounding) Decimal {
	if n <= 0 {
		return d
	}
	if digits := len(d.c().String()); n > digits+1 {
		d.exp += n - (digits + 1)
		n = digits + 1
	}
	div := pow10(n)
	q, r := new(big.Int).QuoRem(d.c(), div, new(big.Int))
	up := false
	if r.Sign() != 0 {
		switch mode {
		case HalfEven:
			half := r.Lsh(r, 1).Cmp(div)
			up = half > 0 || half == 0 && q.Bit(0) == 1
		case Floor:
			up = d.neg
		case Ceil:
			up = !d.neg
		}
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	d.coeff = q
	d.exp += n
	return d
}

// round brings d into the format's bounds.
func (d Decimal) round() Decimal {
	if d.kind != finite {
		return d
	}
	for d.c().Cmp(limit) >= 0 {
		d = d.shift(len(d.c().String())-Digits, HalfEven)
	}
	if d.exp < minExp {
		e := minExp - d.exp
		d = d.shift(e, HalfEven)
		d.exp = minExp
	}
	if d.exp > maxExp {
		if d.c().Sign() == 0 {
			d.exp = maxExp
			return d
		}
		pad := d.exp - maxExp
		if pad > Digits || len(d.c().String())+pad > Digits {
			return Decimal{kind: infinite, neg: d.neg}
		}
		d.coeff = new(big.Int).Mul(d.c(), pow10(pad))
		d.exp = maxExp
	}
	return d
}

// Int returns d rounded to an integer, and whether it fits; NaN and infinities do not.
func (d Decimal) Int(mode Rounding) (int64, bool) {
	if d.kind != finite {
		return 0, false
	}
	if d.exp < 0 {
		d = d.shift(-d.exp, mode)
	} else if d.exp > 0 && d.c().Sign() != 0 {
		if d.exp > 20 {
			return 0, false
		}
		d.coeff = new(big.Int).Mul(d.c(), pow10(d.exp))
	}
	c := new(big.Int).Set(d.c())
	if d.neg {
		c.Neg(c)
	}
	return c.Int64(), c.IsInt64()
}

// Integral reports whether d is finite and has no fraction.
func (d Decimal) Integral() bool {
	return d.kind == finite && (d.exp >= 0 || d.strip(0).exp >= 0 || d.c().Sign() == 0)
}

// Quantize returns d with the exponent exp, rounded. If that takes more digits than there are, it
// is NaN.
func (d Decimal) Quantize(exp int, mode Rounding) Decimal {
	if d.kind != finite {
		return d
	}
	switch {
	case d.exp < exp:
		d = d.shift(exp-d.exp, mode)
		d.exp = exp
	case d.exp > exp && d.c().Sign() != 0:
		if d.exp-exp > Digits {
			return NaN
		}
		d.coeff = new(big.Int).Mul(d.c(), pow10(d.exp-exp))
		fallthrough
	default:
		d.exp = exp
	}
	if d.c().Cmp(limit) >= 0 {
		return NaN
	}
	return d
}

// QuantizeFull is Quantize, but where that takes more digits than there are it returns d with all
// digits that there are.
func (d Decimal) QuantizeFull(exp int, mode Rounding) Decimal {
	q := d.Quantize(exp, mode)
	if d.kind != finite || q.kind == finite {
		return q
	}
	pad := Digits - len(d.c().String())
	d.coeff = new(big.Int).Mul(d.c(), pow10(pad))
	d.exp -= pad
	return d.round()
}

// ToIntegral returns d rounded to an integer; what has no fraction stays as it is.
func (d Decimal) ToIntegral(mode Rounding) Decimal {
	if d.kind != finite || d.exp >= 0 {
		return d
	}
	return d.Quantize(0, mode)
}

// align returns the coefficients with their signs at the smaller of both exponents.
func align(a, b Decimal) (x, y *big.Int, exp int) {
	x, y = new(big.Int).Set(a.c()), new(big.Int).Set(b.c())
	exp = min(a.exp, b.exp)
	if a.exp > exp && x.Sign() != 0 {
		x.Mul(x, pow10(a.exp-exp))
	}
	if b.exp > exp && y.Sign() != 0 {
		y.Mul(y, pow10(b.exp-exp))
	}
	if a.neg {
		x.Neg(x)
	}
	if b.neg {
		y.Neg(y)
	}
	return x, y, exp
}

// firstNaN returns the one of two operands that is not a number, the first if both are: its sign
// outlasts arithmetic.
func firstNaN(a, b Decimal) Decimal {
	if a.kind == notANumber {
		return a
	}
	return b
}

// Add returns a + b.
func (a Decimal) Add(b Decimal) Decimal {
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		return firstNaN(a, b)
	case a.kind == infinite:
		if b.kind == infinite && a.neg != b.neg {
			return NaN
		}
		return a
	case b.kind == infinite:
		return b
	}
	x, y, exp := align(a, b)
	sum := x.Add(x, y)
	neg := sum.Sign() < 0 || sum.Sign() == 0 && a.neg && b.neg
	return Decimal{neg: neg, exp: exp, coeff: sum.Abs(sum)}.round()
}

// Sub returns a - b.
func (a Decimal) Sub(b Decimal) Decimal { return a.Add(b.Neg()) }

// Mul returns a * b.
func (a Decimal) Mul(b Decimal) Decimal {
	neg := a.neg != b.neg
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		return firstNaN(a, b)
	case a.kind == infinite || b.kind == infinite:
		if a.IsZero() || b.IsZero() {
			return NaN
		}
		return Decimal{kind: infinite, neg: neg}
	}
	return Decimal{neg: neg, exp: a.exp + b.exp, coeff: new(big.Int).Mul(a.c(), b.c())}.round()
}

// Quo returns a / b: NaN for 0/0, infinite for another number divided by 0.
func (a Decimal) Quo(b Decimal) Decimal {
	neg := a.neg != b.neg
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		return firstNaN(a, b)
	case a.kind == infinite && b.kind == infinite:
		return NaN
	case a.kind == infinite:
		return Decimal{kind: infinite, neg: neg}
	case b.kind == infinite:
		return Decimal{neg: neg, exp: minExp}
	case b.IsZero():
		if a.IsZero() {
			return NaN
		}
		return Decimal{kind: infinite, neg: neg}
	case a.IsZero():
		return Decimal{neg: neg, exp: a.exp - b.exp}.round()
	}
	// Two digits more than wanted, and one that says whether a remainder was left.
	scale := max(0, Digits+2+len(b.c().String())-len(a.c().String()))
	q, r := new(big.Int).QuoRem(new(big.Int).Mul(a.c(), pow10(scale)), b.c(), new(big.Int))
	exp := a.exp - b.exp - scale
	if r.Sign() != 0 {
		q.Mul(q, bigTen).Add(q, big.NewInt(1))
		return Decimal{neg: neg, exp: exp - 1, coeff: q}.round()
	}
	return Decimal{neg: neg, exp: exp, coeff: q}.strip(a.exp - b.exp).round()
}

// Mod returns the remainder of a / b with the sign of a, as C's fmod.
func (a Decimal) Mod(b Decimal) Decimal {
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		return firstNaN(a, b)
	case a.kind == infinite || b.IsZero():
		return NaN
	case b.kind == infinite:
		return a
	}
	if a.exp-b.exp > 8000 || b.exp-a.exp > 8000 {
		if a.exp < b.exp {
			return a
		}
	}
	x, y, exp := align(a.Abs(), b.Abs())
	return Decimal{neg: a.neg, exp: exp, coeff: x.Rem(x, y)}.round()
}

// Cmp compares by value. NaN is less than everything else and equal to itself.
func (a Decimal) Cmp(b Decimal) int {
	switch {
	case a.kind == notANumber || b.kind == notANumber:
		return cmpBool(b.kind == notANumber, a.kind == notANumber)
	case a.kind == infinite || b.kind == infinite:
		return a.rank() - b.rank()
	}
	x, y, _ := align(a, b)
	return x.Cmp(y)
}

func (d Decimal) rank() int {
	if d.kind != infinite {
		return 0
	}
	if d.neg {
		return -1
	}
	return 1
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
