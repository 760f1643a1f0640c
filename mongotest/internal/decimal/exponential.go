package decimal

// Powers and logarithms: functions.go says whose steps these are.

import (
	"math"
	"math/big"
)

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
	r := newFloat()
	if x.Cmp(bigOne) != 0 { // whose logarithm is 0, and not nearly so
		r = toQuad(f(x))
	}
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

// Log returns what servers before 8.1 take for the logarithm of d to a base: that is true of 10 and
// 2; for others they divide the natural logarithm by the base.
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
