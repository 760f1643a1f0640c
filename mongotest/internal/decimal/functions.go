package decimal

// Roots, powers, logarithms and trigonometry. The server's decimal library, Intel's, converts to
// binary128, computes with 113 bits, and converts back; around that it takes care of what is badly
// conditioned with a few decimal operations. The last digits of a result come from these steps, so
// the steps are the same here: quad rounds to 113 bits wherever the library has a binary128 value,
// and what the library computes in one call is computed with bits to spare before that.

import (
	"math"
	"math/big"
	"strconv"
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

// fma returns a*b + c, rounded once.
func fma(a, b, c Decimal) Decimal {
	if a.kind != finite || b.kind != finite || c.kind != finite {
		return a.Mul(b).Add(c)
	}
	product := Decimal{neg: a.neg != b.neg, exp: a.exp + b.exp, coeff: new(big.Int).Mul(a.c(), b.c())}
	return product.Add(c)
}

// power10 returns 10^n.
func power10(n int) Decimal { return Decimal{exp: n, coeff: big.NewInt(1)} }

// nudge returns d + d*10^-40, which shows that a result so close to d is not exact.
func (d Decimal) nudge() Decimal { return fma(d, power10(-40), d) }

// tiny reports whether |d| is less than 10^-40.
func (d Decimal) tiny() bool { return d.IsZero() || d.magnitude() < -40 }

// function applies what the library computes in binary128.
func (d Decimal) function(f func(*big.Float) *big.Float) Decimal {
	if d.kind != finite {
		return NaN
	}
	return fromBig(f(d.big()))
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

// parts splits d into a binary128 that is not greater and the rest, as a binary128.
func (d Decimal) parts() (high, low *big.Float) {
	x := parse(d.String())
	high = newFloat().Set(new(big.Float).SetPrec(quad).SetMode(big.ToZero).Set(x))
	return high, toQuad(newFloat().Sub(x, high))
}

// The exponents at which exponentials leave the range of binary128, so that they are computed in
// two factors, and those at which they leave the range of decimals.
const quadExponent, maxNaturalExponent, maxBinaryExponent, maxDecimalExponent = 11000, 15000, 25000, 6400

// exponential returns base^d by power, which computes it for a binary float. slope is the natural
// logarithm of the base, or nil for e itself.
func (d Decimal) exponential(power func(*big.Float) *big.Float, slope *big.Float, limit int64) Decimal {
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
	case d.Abs().Cmp(FromInt(limit)) > 0:
		if d.neg {
			return Decimal{exp: minExp}
		}
		return Inf
	}
	high, low := d.parts()
	far := int64(0)
	if f := floatOf(high); f > quadExponent {
		far = 1
	} else if f < -quadExponent {
		far = -1
	}
	high.Sub(high, newFloat().SetInt64(far*quadExponent))
	r := toQuad(power(high))
	correction := r
	if slope != nil {
		correction = toQuad(newFloat().Mul(r, toQuad(slope)))
	}
	correction = toQuad(newFloat().Mul(correction, low))
	out := fromBig(newFloat().Add(r, correction))
	if far != 0 {
		out = out.Mul(round34(power(newFloat().SetInt64(far * quadExponent))))
	}
	return out
}

// Exp returns e to the power d.
func (d Decimal) Exp() Decimal { return d.exponential(expFloat, nil, maxNaturalExponent) }

// exp2 returns 2 to the power d.
func (d Decimal) exp2() Decimal {
	return d.exponential(func(x *big.Float) *big.Float {
		return expFloat(newFloat().Mul(x, ln2))
	}, ln2, maxBinaryExponent)
}

// exp10 returns 10 to the power d: the integer nearest to d becomes the exponent.
func (d Decimal) exp10() Decimal {
	switch {
	case d.kind != finite:
		return d.Exp()
	case d.IsZero():
		return FromInt(1)
	case d.Abs().Cmp(FromInt(maxDecimalExponent)) > 0:
		if d.neg {
			return Decimal{exp: minExp}
		}
		return Inf
	}
	k, _ := d.Int(HalfEven)
	out := d.Sub(FromInt(k)).function(func(x *big.Float) *big.Float { return expFloat(x.Mul(x, ln10)) })
	out.exp += int(k)
	return out.round()
}

// beyondQuad is the decimal exponent beyond which the library scales a number before it takes its
// logarithm.
const beyondQuad = 4464

// logarithm returns log(d) as a binary128. f computes it, scale is the natural logarithm of the
// base (nil for e), and shift the logarithm of 10^4464.
func (d Decimal) logarithm(f func(*big.Float) *big.Float, scale, shift *big.Float) *big.Float {
	switch m := d.magnitude(); {
	case m >= beyondQuad && d.Cmp(power10(beyondQuad)) > 0:
		d.exp -= beyondQuad
		return toQuad(newFloat().Add(toQuad(f(d.big())), toQuad(shift)))
	case m < -beyondQuad:
		d.exp += beyondQuad
		return toQuad(newFloat().Sub(toQuad(f(d.big())), toQuad(shift)))
	}
	x := d.big()
	r := toQuad(f(x))
	off := toQuad(newFloat().Sub(x, bigOne))
	if newFloat().Abs(off).Cmp(float(0.5)) >= 0 {
		return r
	}
	lost := toQuad(off.Sub(off, d.Sub(FromInt(1)).big()))
	if scale != nil {
		lost = toQuad(lost.Mul(lost, toQuad(newFloat().Quo(bigOne, scale))))
	}
	return toQuad(r.Sub(r, toQuad(lost.Quo(lost, x))))
}

// noLogarithm returns the logarithm of what has none, or an infinite one.
func (d Decimal) noLogarithm() (Decimal, bool) {
	switch {
	case d.kind == notANumber || d.neg && !d.IsZero():
		return NaN, true
	case d.kind == infinite:
		return Inf, true
	case d.IsZero():
		return Inf.Neg(), true
	}
	return d, false
}

func logOf10s(ln *big.Float) *big.Float { return newFloat().Mul(ln, float(beyondQuad)) }

// Ln returns the natural logarithm.
func (d Decimal) Ln() Decimal {
	if out, none := d.noLogarithm(); none {
		return out
	}
	return fromBig(d.logarithm(lnFloat, nil, logOf10s(ln10)))
}

// Log10 returns the logarithm to base 10, which the library computes from the natural one.
func (d Decimal) Log10() Decimal {
	if out, none := d.noLogarithm(); none {
		return out
	}
	far := 0
	switch m := d.magnitude(); {
	case m >= beyondQuad && d.Cmp(power10(beyondQuad)) > 0:
		far = beyondQuad
	case m < -beyondQuad:
		far = -beyondQuad
	}
	d.exp -= far
	r := d.logarithm(lnFloat, nil, logOf10s(ln10))
	r = toQuad(r.Mul(r, toQuad(newFloat().Quo(bigOne, ln10))))
	return fromBig(r.Add(r, float(float64(far))))
}

// Log2 returns the logarithm to base 2.
func (d Decimal) Log2() Decimal {
	if out, none := d.noLogarithm(); none {
		return out
	}
	log2 := func(x *big.Float) *big.Float { y := lnFloat(x); return y.Quo(y, ln2) }
	return fromBig(d.logarithm(log2, ln2, newFloat().Quo(logOf10s(ln10), ln2)))
}

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
func (d Decimal) Pow(e Decimal) Decimal {
	switch {
	case d.Cmp(FromInt(10)) == 0:
		return e.exp10().fill()
	case d.Cmp(FromInt(2)) == 0:
		return e.exp2().fill()
	}
	return d.pow(e).fill()
}

// fill appends zeros until the coefficient has all digits, as the addition of a zero with the
// smallest exponent does.
func (d Decimal) fill() Decimal {
	switch {
	case d.kind != finite:
		return d
	case d.IsZero():
		return Decimal{exp: minExp}
	}
	n := min(Digits-len(d.c().String()), d.exp-minExp)
	if n <= 0 {
		return d
	}
	return Decimal{neg: d.neg, exp: d.exp - n,
		coeff: new(big.Int).Mul(d.c(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))}
}

// pow computes e^(exponent * ln d). The logarithm has 47 decimal places in two parts, so that
// nothing is lost when it is multiplied.
func (d Decimal) pow(e Decimal) Decimal {
	one := FromInt(1)
	switch {
	case e.IsZero() || d.Cmp(one) == 0:
		return one
	case d.kind == notANumber || e.kind == notANumber:
		return NaN
	case e.kind == infinite:
		switch c := d.Abs().Cmp(one); {
		case c == 0:
			return one
		case c > 0 == e.neg:
			return Decimal{}
		}
		return Inf
	}
	integral := e.Integral()
	odd := integral && e.strip(0).exp == 0 && e.strip(0).c().Bit(0) == 1
	negative := d.neg && odd
	if d.kind == infinite || d.IsZero() {
		if (d.kind == infinite) == e.neg {
			return Decimal{neg: negative}
		}
		return Decimal{kind: infinite, neg: negative}
	}
	if d.neg && !integral {
		return NaN
	}
	high, low := d.Abs().lnParts()
	l := e.Mul(high)
	if l.kind != finite {
		return l.Exp()
	}
	low = fma(e, low, fma(e, high, l.Neg()))
	out := l.Exp()
	if out.IsZero() || out.kind == infinite {
		if out.IsZero() {
			out.exp = minExp
		}
		out.neg = false
		return out
	}
	out = fma(out, low, out)
	out.neg = negative
	return out
}

// lnParts returns the natural logarithm of a positive d with 28 decimal places, and the 19 places
// after these.
func (d Decimal) lnParts() (high, low Decimal) {
	const places, more = 28, 19
	if t := d.Sub(FromInt(1)); t.IsZero() || t.magnitude() < -9 {
		// So close to 1 that the places would not do: the series of the logarithm.
		square := t.Mul(t)
		rest := square.Mul(Decimal{neg: true, exp: -1, coeff: big.NewInt(5)})
		cube := square.Mul(t)
		rest = rest.Add(FromInt(1).Quo(FromInt(3)).Mul(cube))
		rest = rest.Add(cube.Mul(t).Mul(Decimal{neg: true, exp: -2, coeff: big.NewInt(25)}))
		high = t.Add(rest)
		return high, rest.Sub(high.Sub(t))
	}
	x := lnFloat(parse(d.String()))
	neg := x.Signbit()
	x.Abs(x).Mul(x, newFloat().SetInt(pow10(places+more)))
	n, _ := x.Int(nil)
	h, l := new(big.Int).QuoRem(n, pow10(more), new(big.Int))
	return Decimal{neg: neg, exp: -places, coeff: h}, Decimal{neg: neg, exp: -places - more, coeff: l}
}

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

// hyperbolic returns e^x and e^-x.
func hyperbolic(x *big.Float) (up, down *big.Float) {
	up = expFloat(x)
	return up, newFloat().Quo(bigOne, up)
}

// halfSum returns (e^|d| ± e^-|d|) / 2, which the library computes in decimals.
func (d Decimal) halfSum(minus bool) Decimal {
	half := Decimal{exp: -1, coeff: big.NewInt(5)}
	if d.magnitude() < 1 || d.Abs().Cmp(FromInt(64)) <= 0 {
		e := d.Abs().Exp()
		rest := half
		rest.neg = minus
		return fma(e, half, rest.Mul(FromInt(1).Quo(e)))
	}
	// The small exponential no longer counts.
	n := d.Abs().ToIntegral(HalfEven)
	if n.Cmp(FromInt(maxNaturalExponent)) > 0 {
		return Inf
	}
	far := n.Cmp(FromInt(quadExponent)) > 0
	whole, rest := n, d.Abs().Sub(n)
	if far {
		whole = n.Sub(FromInt(quadExponent))
	}
	r := toQuad(expFloat(whole.big()))
	r = toQuad(r.Mul(r, toQuad(expFloat(rest.big()))))
	out := fromBig(r.SetMantExp(r, -1))
	if far {
		out = out.Mul(round34(expFloat(float(quadExponent))))
	}
	return out
}

// Sinh returns the hyperbolic sine.
func (d Decimal) Sinh() Decimal {
	switch {
	case d.kind != finite:
		return d
	case d.tiny():
		return d.nudge()
	case d.Abs().Cmp(FromInt(1)) <= 0:
		return d.function(func(x *big.Float) *big.Float { u, v := hyperbolic(x); return u.Sub(u, v).Quo(u, float(2)) })
	}
	out := d.halfSum(true)
	out.neg = d.neg
	return out
}

// Cosh returns the hyperbolic cosine.
func (d Decimal) Cosh() Decimal {
	switch {
	case d.kind != finite:
		return d.Abs()
	case d.tiny():
		return FromInt(1).Add(power10(-40))
	case d.Abs().Cmp(FromInt(1)) <= 0:
		return d.function(func(x *big.Float) *big.Float { u, v := hyperbolic(x); return u.Add(u, v).Quo(u, float(2)) })
	}
	return d.halfSum(false)
}

// Tanh returns the hyperbolic tangent.
func (d Decimal) Tanh() Decimal {
	switch {
	case d.kind == infinite || d.kind == finite && d.magnitude() > 3:
		return Decimal{neg: d.neg, coeff: big.NewInt(1)}
	case d.IsZero():
		return d
	case d.kind == finite && d.tiny():
		return fma(d, power10(-40).Neg(), d)
	}
	return d.function(func(x *big.Float) *big.Float {
		u, v := hyperbolic(x)
		return newFloat().Quo(newFloat().Sub(u, v), newFloat().Add(u, v))
	})
}

// asinhFloat computes the inverse hyperbolic sine.
func asinhFloat(x *big.Float) *big.Float {
	abs := newFloat().Abs(x)
	root := newFloat().Add(newFloat().Mul(abs, abs), bigOne)
	y := lnFloat(root.Add(root.Sqrt(root), abs))
	if x.Signbit() {
		y.Neg(y)
	}
	return y
}

// lnOfDouble returns ln(2c) + exp*ln(10) for a number c*10^exp, whose inverse hyperbolic sine and
// cosine that is.
func (d Decimal) lnOfDouble() Decimal {
	c := Decimal{coeff: d.coeff}.big()
	scaled := toQuad(newFloat().Mul(float(float64(d.exp)), toQuad(ln10)))
	return fromBig(newFloat().Add(toQuad(lnFloat(c.SetMantExp(c, 1))), scaled))
}

// Asinh returns the inverse hyperbolic sine.
func (d Decimal) Asinh() Decimal {
	switch {
	case d.kind != finite || d.IsZero():
		return d
	case d.exp > Digits:
		out := d.lnOfDouble()
		out.neg = d.neg
		return out
	}
	return d.function(asinhFloat)
}

// Acosh returns the inverse hyperbolic cosine of d >= 1.
func (d Decimal) Acosh() Decimal {
	switch {
	case d.kind == infinite && !d.neg:
		return d
	case d.kind != finite || d.Cmp(FromInt(1)) < 0:
		return NaN
	case d.Cmp(Decimal{exp: -5, coeff: big.NewInt(103125)}) < 0:
		return fma(d, d, FromInt(-1)).Sqrt().function(asinhFloat)
	case d.exp > Digits:
		return d.lnOfDouble()
	}
	return d.function(func(x *big.Float) *big.Float {
		root := newFloat().Sub(newFloat().Mul(x, x), bigOne)
		return lnFloat(root.Add(root.Sqrt(root), x))
	})
}

// Atanh returns the inverse hyperbolic tangent of -1 <= d <= 1.
func (d Decimal) Atanh() Decimal {
	switch {
	case d.kind != finite:
		return NaN
	case d.IsZero() || d.exp <= -51:
		return d
	}
	rest := FromInt(1).Sub(d.Abs())
	switch {
	case rest.IsZero():
		return Decimal{kind: infinite, neg: d.neg}
	case rest.neg:
		return NaN
	}
	y := d.Abs().Quo(rest)
	out := y.Add(y).function(func(x *big.Float) *big.Float {
		y := toQuad(lnFloat(x.Add(x, bigOne)))
		return y.SetMantExp(y, -1)
	})
	out.neg = d.neg
	return out
}

// Pi is π with 34 digits.
var Pi = round34(pi)
