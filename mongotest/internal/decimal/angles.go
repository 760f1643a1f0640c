package decimal

// Trigonometry: functions.go says whose steps these are.

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Sin returns the sine of d radians; Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh and
// Atanh are what their names say.
func (d Decimal) Sin() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.IsZero():
		return d
	case d.exp < -52:
		return fma(d, power10(-40).Neg(), d)
	}
	quarter, x := d.quarters()
	s, c := sinCos(x)
	if quarter%2 != 0 {
		s = c
	}
	if quarter >= 2 {
		s.Neg(s)
	}
	return fromBig(s)
}

// Cos returns the cosine of d radians.
func (d Decimal) Cos() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.IsZero() || d.exp < -52:
		return FromInt(1).Sub(power10(-40))
	}
	quarter, x := d.quarters()
	s, c := sinCos(x)
	if quarter%2 != 0 {
		c = s
	}
	if quarter == 1 || quarter == 2 {
		c.Neg(c)
	}
	return fromBig(c)
}

// Tan returns the tangent of d radians.
func (d Decimal) Tan() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.IsZero() || d.exp < -52:
		return d.nudge()
	}
	quarter, x := d.quarters()
	s, c := sinCos(x)
	t := toQuad(s.Quo(s, c))
	if quarter%2 != 0 {
		t = t.Quo(float(-1), t)
	}
	return fromBig(t)
}

// quarters returns how many quarters of a circle d is, modulo 4, to the nearest, and the rest in
// radians as a binary128.
func (d Decimal) quarters() (int, *big.Float) {
	const smallest = -35 // the least exponent of a number that the library reduces
	if d.exp < smallest {
		return 0, d.big()
	}
	p := uint(prec + max(0, d.magnitude())*4) // a digit has less than four bits
	x := d.exact(p)
	x.Quo(x, piTo(p))
	x.SetMantExp(x, 1) // in units of pi/2
	half := 0.5
	if d.neg {
		half = -0.5
	}
	n, _ := new(big.Float).SetPrec(p).Add(x, big.NewFloat(half)).Int(nil)
	x.Sub(x, new(big.Float).SetPrec(p).SetInt(n))
	f := newFloat().Set(new(big.Float).SetPrec(quad).SetMode(big.ToZero).Set(x))
	return int(n.And(n, big.NewInt(3)).Int64()), toQuad(f.Mul(f, toQuad(newFloat().Quo(pi, float(2)))))
}

// exact returns d as a binary float of a precision.
func (d Decimal) exact(p uint) *big.Float {
	f, _, _ := big.ParseFloat(d.String(), 10, p, big.ToNearestEven)
	return f
}

// piTo computes pi to a precision in bits: 16 atan(1/5) - 4 atan(1/239).
func piTo(p uint) *big.Float {
	if p <= prec {
		return newFloat().Set(pi)
	}
	const guard = 32
	one := new(big.Int).Lsh(big.NewInt(1), p+guard)
	atan := func(n int64) *big.Int {
		term := new(big.Int).Quo(one, big.NewInt(n))
		sum, square := new(big.Int), big.NewInt(n*n)
		for i := int64(1); term.Sign() != 0; i += 2 {
			part := new(big.Int).Quo(term, big.NewInt(i))
			if i%4 == 3 {
				part.Neg(part)
			}
			sum.Add(sum, part)
			term.Quo(term, square)
		}
		return sum
	}
	a, b := atan(5), atan(239)
	a.Lsh(a, 2).Sub(a, b).Lsh(a, 2)
	f := new(big.Float).SetPrec(p).SetInt(a)
	return f.SetMantExp(f, -int(p+guard))
}

// sinCos reduces x modulo pi/2, then sums the series.
func sinCos(x *big.Float) (sin, cos *big.Float) {
	halfPi := newFloat().Quo(pi, float(2))
	q := newFloat().Quo(x, halfPi)
	n, _ := q.Add(q, float(math.Copysign(0.5, floatOf(q)))).Int(nil)
	r := newFloat().Sub(x, newFloat().Mul(halfPi, newFloat().SetInt(n)))
	sin, cos = newFloat(), newFloat()
	term := float(1)
	for i := 0; i < 90; i++ {
		if i%2 == 0 {
			addSigned(cos, term, i%4 == 2)
		} else {
			addSigned(sin, term, i%4 == 3)
		}
		term.Mul(term, r)
		term.Quo(term, newFloat().SetInt64(int64(i+1)))
	}
	switch new(big.Int).And(n, big.NewInt(3)).Int64() {
	case 1:
		return cos, sin.Neg(sin)
	case 2:
		return sin.Neg(sin), cos.Neg(cos)
	case 3:
		return cos.Neg(cos), sin
	}
	return sin, cos
}

func floatOf(f *big.Float) float64 { v, _ := f.Float64(); return v }

func addSigned(sum, term *big.Float, minus bool) {
	if minus {
		sum.Sub(sum, term)
	} else {
		sum.Add(sum, term)
	}
}

// atanFloat computes the arc tangent: from the double's value one Newton step after another on tan.
func atanFloat(x *big.Float) *big.Float {
	y := float(math.Atan(floatOf(x)))
	for range 4 { // y -= (tan y - x) / (1 + tan² y) = (sin y - x cos y) * cos y
		s, c := sinCos(y)
		s.Sub(s, newFloat().Mul(x, c))
		y.Sub(y, s.Mul(s, c))
	}
	return y
}

// round34 rounds to 34 digits without a step over binary128.
func round34(f *big.Float) Decimal {
	mantissa, exp, _ := strings.Cut(f.Text('e', Digits+30), "e")
	e, _ := strconv.Atoi(exp)
	c, _ := new(big.Int).SetString(strings.TrimPrefix(strings.Replace(mantissa, ".", "", 1), "-"), 10)
	return Decimal{neg: f.Signbit(), exp: e - (Digits + 30), coeff: c}.round()
}

var halfPi = newFloat().Quo(pi, float(2))

// Atan returns the arc tangent.
func (d Decimal) Atan() Decimal {
	switch {
	case d.kind == infinite || d.kind == finite && d.magnitude() > beyondQuad:
		out := fromBig(halfPi)
		out.neg = d.neg
		return out
	case d.IsZero():
		return d
	case d.kind == finite && d.tiny():
		return fma(d, power10(-40).Neg(), d)
	}
	return d.function(atanFloat)
}

// Atan2 returns the angle of the point (x, d).
func (d Decimal) Atan2(x Decimal) Decimal {
	pi34, half34, quarter34 := round34(pi), round34(halfPi), round34(newFloat().Quo(pi, float(4)))
	signed := func(out Decimal) Decimal { out.neg = d.neg; return out }
	switch {
	case d.kind == notANumber || x.kind == notANumber:
		return NaN
	case d.kind == infinite && x.kind == infinite:
		if x.neg {
			return signed(round34(newFloat().Mul(pi, float(0.75))))
		}
		return signed(quarter34)
	case d.kind == infinite || x.IsZero() && !d.IsZero():
		return signed(half34)
	case d.IsZero() || x.kind == infinite:
		if x.neg {
			return signed(pi34)
		}
		return Decimal{neg: d.neg, exp: minExp}
	}
	z := d.Quo(x)
	switch z = z.Abs(); {
	case z.kind == infinite || z.Cmp(power10(36)) > 0:
		return signed(half34)
	case z.Cmp(power10(-36)) < 0:
		if x.neg {
			return signed(pi34)
		}
		return signed(z)
	}
	out := z.function(atanFloat)
	if x.neg {
		out = pi34.Sub(out)
	}
	return signed(out)
}

// sevenTenths is where the library turns from a function to the one of the other leg.
var sevenTenths = parse("0.7")

// asinFloat computes the arc sine.
func asinFloat(x *big.Float) *big.Float {
	rest := newFloat().Sub(bigOne, newFloat().Mul(x, x))
	if rest.Sign() <= 0 {
		if x.Signbit() {
			return newFloat().Neg(halfPi)
		}
		return newFloat().Set(halfPi)
	}
	return atanFloat(newFloat().Quo(x, rest.Sqrt(rest)))
}

func acosFloat(x *big.Float) *big.Float { return newFloat().Sub(halfPi, asinFloat(x)) }

// otherLeg returns sqrt(1 - x²), as a binary128.
func (d Decimal) otherLeg() *big.Float {
	t := fma(d, d, FromInt(-1)).big()
	return toQuad(t.Sqrt(t.Neg(t)))
}

// Asin returns the arc sine.
func (d Decimal) Asin() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.tiny():
		return d.nudge()
	}
	x := d.big()
	abs := newFloat().Abs(x)
	switch {
	case abs.Cmp(toQuad(sevenTenths)) <= 0:
		return fromBig(asinFloat(x))
	case abs.Cmp(bigOne) > 0:
		return NaN
	}
	out := fromBig(acosFloat(d.otherLeg()))
	out.neg = d.neg
	return out
}

// Acos returns the arc cosine.
func (d Decimal) Acos() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.tiny():
		return round34(halfPi)
	}
	x := d.big()
	abs := newFloat().Abs(x)
	switch {
	case abs.Cmp(toQuad(sevenTenths)) <= 0:
		return fromBig(acosFloat(x))
	case abs.Cmp(bigOne) > 0:
		return NaN
	case x.Cmp(bigOne) == 0:
		return Decimal{exp: minExp}
	}
	y := toQuad(asinFloat(d.otherLeg()))
	if d.neg {
		y.Sub(toQuad(pi), y)
	}
	return fromBig(y)
}

// Pi is π with 34 digits.
var Pi = round34(pi)
