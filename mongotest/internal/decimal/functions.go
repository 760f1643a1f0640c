package decimal

// Roots, powers, logarithms and trigonometry, computed with binary floats of a precision that
// leaves no doubt about the 34 digits.

import (
	"math"
	"math/big"
	"strings"
)

const prec = 320

func newFloat() *big.Float { return new(big.Float).SetPrec(prec) }

func float(f float64) *big.Float { return newFloat().SetFloat64(f) }

var (
	bigOne = float(1)
	pi     = parse("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651")
	ln2    = parse("0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687")
	ln10   = parse("2.302585092994045684017991454684364207601101488628772976033327900967572609677352480235997205089598298")
)

func parse(s string) *big.Float {
	f, _, _ := big.ParseFloat(s, 10, prec, big.ToNearestEven)
	return f
}

// quad is the precision of the binary128 format, in which the server's decimal library computes
// these functions: their last digit need not be the nearest.
const quad = 113

func toQuad(f *big.Float) *big.Float {
	return newFloat().Set(new(big.Float).SetPrec(quad).SetMode(big.ToNearestEven).Set(f))
}

// big returns d, which must be finite and not outlandish, as a binary float.
func (d Decimal) big() *big.Float { return toQuad(parse(d.String())) }

// fromBig rounds to 34 digits. A number that needs fewer has no zeros at its end, one that does not
// keeps them all.
func fromBig(f *big.Float) Decimal {
	f = toQuad(f)
	if f.IsInf() {
		return Decimal{kind: infinite, neg: f.Signbit()}
	}
	if f.Sign() == 0 {
		return Decimal{}
	}
	text := []byte(f.Text('e', Digits+16))
	mark := 0
	for text[mark] != 'e' {
		mark++
	}
	exp := 0
	negExp := text[mark+1] == '-'
	for _, c := range text[mark+2:] {
		exp = exp*10 + int(c-'0')
	}
	if negExp {
		exp = -exp
	}
	digits := make([]byte, 0, mark)
	for _, c := range text[:mark] {
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	c, _ := new(big.Int).SetString(string(digits), 10)
	out := Decimal{neg: f.Signbit(), exp: exp - (len(digits) - 1), coeff: c}
	if strings.Trim(string(digits[Digits:]), "0") == "" {
		return out.strip(0).round()
	}
	return out.round()
}

// magnitude is the exponent of the leading digit.
func (d Decimal) magnitude() int { return d.exp + len(d.c().String()) - 1 }

// Sqrt returns the square root, NaN of a negative number.
func (d Decimal) Sqrt() Decimal {
	switch {
	case d.kind == notANumber:
		return NaN
	case d.IsZero():
		d.exp = floorHalf(d.exp)
		return d
	case d.neg:
		return NaN
	case d.kind == infinite:
		return d
	}
	ideal := floorHalf(d.exp)
	// Scale to an even exponent with at least 2*(Digits+1) digits, then the integer root has enough
	// of them.
	c, exp := new(big.Int).Set(d.c()), d.exp
	pad := max(0, 2*(Digits+2)-len(c.String()))
	if (exp-pad)%2 != 0 {
		pad++
	}
	c.Mul(c, pow10(pad))
	exp -= pad
	root := new(big.Int).Sqrt(c)
	if new(big.Int).Mul(root, root).Cmp(c) == 0 {
		return Decimal{exp: exp / 2, coeff: root}.strip(ideal).round()
	}
	root.Mul(root, bigTen).Add(root, big.NewInt(1)) // the sticky digit
	return Decimal{exp: exp/2 - 1, coeff: root}.round()
}

func floorHalf(n int) int {
	if n < 0 && n%2 != 0 {
		return n/2 - 1
	}
	return n / 2
}

// Exp returns e to the power d.
func (d Decimal) Exp() Decimal {
	switch {
	case d.kind == notANumber:
		return NaN
	case d.kind == infinite:
		if d.neg {
			return Decimal{}
		}
		return Inf
	case d.IsZero():
		return FromInt(1)
	case d.magnitude() > 6:
		if d.neg {
			return Decimal{exp: minExp}
		}
		return Inf
	case d.magnitude() < -Digits-2:
		return FromInt(1)
	}
	return fromBig(expFloat(d.big()))
}

// expFloat computes e^x: x = k*ln2 + r, halved until the series converges fast.
func expFloat(x *big.Float) *big.Float {
	kf, _ := newFloat().Quo(x, ln2).Float64()
	k := int(math.Round(kf))
	r := newFloat().Sub(x, newFloat().Mul(ln2, newFloat().SetInt64(int64(k))))
	const halvings = 16
	r.SetMantExp(r, -halvings)
	sum, term := float(1), float(1)
	for n := 1; n < 60; n++ {
		term.Mul(term, r)
		term.Quo(term, newFloat().SetInt64(int64(n)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, k)
}

// lnFloat computes the natural logarithm of a positive x by Newton's method from the double's
// logarithm.
func lnFloat(x *big.Float) *big.Float {
	mant := newFloat()
	exp := x.MantExp(mant) // mant in [0.5, 1)
	f, _ := mant.Float64()
	y := float(math.Log(f))
	for range 5 { // y += 2*(m-e^y)/(m+e^y), which triples the digits each time
		e := expFloat(y)
		num := newFloat().Sub(mant, e)
		den := newFloat().Add(mant, e)
		y.Add(y, num.Quo(num, den).Mul(num, float(2)))
	}
	return y.Add(y, newFloat().Mul(ln2, newFloat().SetInt64(int64(exp))))
}

func (d Decimal) logarithm(scale *big.Float) Decimal {
	switch {
	case d.kind == notANumber || d.neg && !d.IsZero():
		return NaN
	case d.kind == infinite:
		return Inf
	case d.IsZero():
		return Inf.Neg()
	}
	y := lnFloat(d.big())
	if scale != nil {
		y.Quo(y, scale)
	}
	return snap(y)
}

// snap makes an integer of what is within the computation's error of one.
func snap(f *big.Float) Decimal {
	d := fromBig(f)
	n := d.ToIntegral(HalfEven)
	diff := newFloat().Sub(f, n.big())
	if diff.Sign() == 0 || diff.MantExp(nil) < -220 {
		return FromInt(0).Add(n)
	}
	return d
}

// Ln returns the natural logarithm, Log10 and Log2 those to base 10 and 2.
func (d Decimal) Ln() Decimal    { return d.logarithm(nil) }
func (d Decimal) Log10() Decimal { return d.logarithm(ln10) }
func (d Decimal) Log2() Decimal  { return d.logarithm(ln2) }

// Log returns what the server takes for the logarithm of d to a base: that is true of 10 and 2; for
// others it divides the natural logarithm by the base.
func (d Decimal) Log(base Decimal) Decimal {
	switch {
	case base.Cmp(FromInt(10)) == 0:
		return d.Log10()
	case base.Cmp(FromInt(2)) == 0:
		return d.Log2()
	}
	return d.Ln().Quo(base)
}

// Pow returns d to the power e, with as many digits as there can be.
func (d Decimal) Pow(e Decimal) Decimal { return d.pow(e).fill() }

// fill appends zeros until the coefficient has all digits, as the addition of a zero with the
// smallest exponent does.
func (d Decimal) fill() Decimal {
	switch {
	case d.kind != finite:
		return d
	case d.IsZero():
		return Decimal{neg: d.neg, exp: minExp}
	}
	n := min(Digits-len(d.c().String()), d.exp-minExp)
	if n <= 0 {
		return d
	}
	return Decimal{neg: d.neg, exp: d.exp - n, coeff: new(big.Int).Mul(d.c(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))}
}

func (d Decimal) pow(e Decimal) Decimal {
	switch {
	case e.IsZero() || d.Cmp(FromInt(1)) == 0:
		return FromInt(1)
	case d.kind == notANumber || e.kind == notANumber:
		return NaN
	}
	n, small := e.Int(Down)
	integral := e.Integral()
	if integral && small && n > 0 && n <= 1000 && d.kind == finite && (!d.neg || n == 1) {
		if digits := len(d.c().String()) * int(n); digits <= 4*Digits {
			out := Decimal{exp: d.exp * int(n), coeff: new(big.Int).Exp(d.c(), big.NewInt(n), nil)}
			out.neg = d.neg && n%2 != 0
			return out.strip(0).round()
		}
	}
	odd := integral && e.kind == finite && e.exp <= 0 && small && n%2 != 0
	if d.IsZero() || d.kind == infinite {
		neg := d.neg && odd
		if d.IsZero() == e.neg {
			return Decimal{kind: infinite, neg: neg}
		}
		return Decimal{neg: neg}
	}
	if e.kind == infinite {
		if (d.Abs().Cmp(FromInt(1)) > 0) == !e.neg {
			return Inf
		}
		return Decimal{}
	}
	if d.neg && !integral {
		return NaN
	}
	y := lnFloat(d.Abs().big())
	if d.neg { // the library computes these by their logarithm
		y = toQuad(toQuad(y).Mul(toQuad(y), e.big()))
	} else {
		y.Mul(y, e.big())
	}
	if y.MantExp(nil) > 16 {
		if y.Sign() > 0 {
			return Decimal{kind: infinite, neg: d.neg && odd}
		}
		return Decimal{neg: d.neg && odd, exp: minExp}
	}
	out := fromBig(expFloat(y))
	out.neg = d.neg && odd
	return out
}

// Sin returns the sine of d radians; Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh and
// Atanh are what their names say.
func (d Decimal) Sin() Decimal {
	if d.unreduced() {
		return FromFloat(math.Sin(d.Float()))
	}
	return d.function(func(x *big.Float) *big.Float { s, _ := sinCos(x); return s })
}

// Cos returns the cosine of d radians.
func (d Decimal) Cos() Decimal {
	if d.unreduced() {
		return FromFloat(math.Cos(d.Float()))
	}
	return d.function(func(x *big.Float) *big.Float { _, c := sinCos(x); return c })
}

// Tan returns the tangent of d radians.
func (d Decimal) Tan() Decimal {
	if d.unreduced() {
		return FromFloat(math.Tan(d.Float()))
	}
	return d.function(func(x *big.Float) *big.Float { s, c := sinCos(x); return s.Quo(s, c) })
}

// unreduced reports whether π is not known to enough digits to tell where on the circle so large an
// angle lies.
func (d Decimal) unreduced() bool { return d.kind == finite && d.magnitude() > 50 }

func (d Decimal) function(f func(*big.Float) *big.Float) Decimal {
	if d.kind != finite {
		return NaN
	}
	return snap(f(d.big()))
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

// Atan returns the arc tangent.
func (d Decimal) Atan() Decimal {
	if d.kind == infinite {
		out := fromBig(newFloat().Quo(pi, float(2)))
		out.neg = d.neg
		return out
	}
	return d.function(atanFloat)
}

// Atan2 returns the angle of the point (x, d).
func (d Decimal) Atan2(x Decimal) Decimal {
	if d.kind == finite && x.kind == infinite && !x.neg {
		return Decimal{neg: d.neg, exp: minExp}
	}
	if d.kind != finite || x.kind != finite {
		return FromFloat(math.Atan2(d.Float(), x.Float()))
	}
	y, xf := d.big(), x.big()
	halfPi := newFloat().Quo(pi, float(2))
	switch {
	case xf.Sign() == 0 && y.Sign() == 0:
		return Decimal{neg: d.neg}
	case y.Sign() == 0 && xf.Sign() > 0:
		return Decimal{neg: d.neg, exp: minExp}
	case xf.Sign() == 0:
		if y.Sign() < 0 {
			halfPi.Neg(halfPi)
		}
		return fromBig(halfPi)
	}
	a := atanFloat(newFloat().Quo(y, xf))
	if xf.Sign() < 0 {
		if d.neg {
			a.Sub(a, pi)
		} else {
			a.Add(a, pi)
		}
	}
	return snap(a)
}

// Asin returns the arc sine.
func (d Decimal) Asin() Decimal {
	return d.function(func(x *big.Float) *big.Float {
		rest := newFloat().Sub(bigOne, newFloat().Mul(x, x))
		if rest.Sign() <= 0 {
			half := newFloat().Quo(pi, float(2))
			if x.Sign() < 0 {
				half.Neg(half)
			}
			return half
		}
		return atanFloat(newFloat().Quo(x, rest.Sqrt(rest)))
	})
}

// Acos returns the arc cosine.
func (d Decimal) Acos() Decimal {
	return d.function(func(x *big.Float) *big.Float {
		rest := newFloat().Sub(bigOne, newFloat().Mul(x, x))
		half := newFloat().Quo(pi, float(2))
		if rest.Sign() <= 0 {
			if x.Sign() < 0 {
				return newFloat().Set(pi)
			}
			return newFloat()
		}
		return half.Sub(half, atanFloat(newFloat().Quo(x, rest.Sqrt(rest))))
	})
}

// hyperbolic returns e^x and e^-x.
func hyperbolic(x *big.Float) (up, down *big.Float) {
	up = expFloat(x)
	return up, newFloat().Quo(bigOne, up)
}

// Sinh returns the hyperbolic sine.
func (d Decimal) Sinh() Decimal {
	if d.kind == infinite || d.magnitude() > 5 {
		return Decimal{kind: infinite, neg: d.neg}.orNaN(d)
	}
	return d.function(func(x *big.Float) *big.Float { u, v := hyperbolic(x); return u.Sub(u, v).Quo(u, float(2)) })
}

// Cosh returns the hyperbolic cosine.
func (d Decimal) Cosh() Decimal {
	if d.kind == infinite || d.magnitude() > 5 {
		return Inf.orNaN(d)
	}
	return d.function(func(x *big.Float) *big.Float { u, v := hyperbolic(x); return u.Add(u, v).Quo(u, float(2)) })
}

// Tanh returns the hyperbolic tangent.
func (d Decimal) Tanh() Decimal {
	if d.kind == infinite || d.magnitude() > 5 {
		return Decimal{coeff: big.NewInt(1), neg: d.neg}.orNaN(d)
	}
	return d.function(func(x *big.Float) *big.Float {
		u, v := hyperbolic(x)
		return newFloat().Quo(newFloat().Sub(u, v), newFloat().Add(u, v))
	})
}

func (d Decimal) orNaN(from Decimal) Decimal {
	if from.kind == notANumber {
		return NaN
	}
	return d
}

// Asinh returns the inverse hyperbolic sine.
func (d Decimal) Asinh() Decimal {
	if d.kind == infinite || d.IsZero() {
		return d
	}
	out := d.Abs().function(func(x *big.Float) *big.Float {
		root := newFloat().Add(newFloat().Mul(x, x), bigOne)
		return lnFloat(root.Add(root.Sqrt(root), x))
	})
	out.neg = d.neg
	return out
}

// Acosh returns the inverse hyperbolic cosine of d >= 1.
func (d Decimal) Acosh() Decimal {
	if d.kind == infinite {
		return d
	}
	return d.function(func(x *big.Float) *big.Float {
		root := newFloat().Sub(newFloat().Mul(x, x), bigOne)
		if root.Sign() <= 0 {
			return newFloat()
		}
		return lnFloat(root.Add(root.Sqrt(root), x))
	})
}

// Atanh returns the inverse hyperbolic tangent of -1 <= d <= 1.
func (d Decimal) Atanh() Decimal {
	if d.Abs().Cmp(FromInt(1)) == 0 {
		return Decimal{kind: infinite, neg: d.neg}
	}
	return d.function(func(x *big.Float) *big.Float {
		q := newFloat().Quo(newFloat().Add(bigOne, x), newFloat().Sub(bigOne, x))
		y := lnFloat(q)
		return y.Quo(y, float(2))
	})
}

// Pi is π with 34 digits.
var Pi = fromBig(pi)
