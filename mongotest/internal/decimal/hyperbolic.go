package decimal

// Hyperbolic functions: functions.go says whose steps these are.

import "math/big"

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
