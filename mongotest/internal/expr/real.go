package expr

import (
	"math"

	"allium/mongotest/internal/decimal"
)

// The server computes functions of doubles with the C library, whose results are the nearest
// doubles nearly always. Those of package math may be off by one or two in the last place, so that
// they are computed in decimals here.

// nearest returns f, computed by d where the result is a usual number.
func nearest(d func(decimal.Decimal) decimal.Decimal, f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if !usual(x) {
			return f(x)
		}
		return corrected(f(x), func() decimal.Decimal { return d(decimal.FromFloat(x)) })
	}
}

// log is math.Log, which on some processors is wrong of numbers that have not all their bits.
func log(x float64) float64 {
	if x > 0 && x < minNormal {
		return math.Log(x*(1<<54)) - 54*math.Ln2
	}
	return math.Log(x)
}

// nearest2 is nearest for functions of two numbers.
func nearest2(d func(a, b decimal.Decimal) decimal.Decimal, f func(a, b float64) float64) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if !usual(a) || !usual(b) {
			return f(a, b)
		}
		return corrected(f(a, b), func() decimal.Decimal { return d(decimal.FromFloat(a), decimal.FromFloat(b)) })
	}
}

// usual reports whether a number is neither 0 nor special, and so far from the bounds that 34
// digits tell it from its neighbours.
func usual(x float64) bool {
	x = math.Abs(x)
	return x > 1e-30 && x < 1e30
}

// corrected returns the double that is nearest to exact, which must not be far from approx.
func corrected(approx float64, exact func() decimal.Decimal) float64 {
	if approx == 0 || math.IsNaN(approx) || math.IsInf(approx, 0) {
		return approx
	}
	out := exact().Float()
	if math.Abs(out-approx) > math.Abs(approx)*1e-10 || math.IsNaN(out) {
		return approx
	}
	return out
}

var (
	exp   = nearest(decimal.Decimal.Exp, math.Exp)
	ln    = nearest(decimal.Decimal.Ln, log)
	log10 = nearest(decimal.Decimal.Log10, func(x float64) float64 {
		if x > 0 && x < minNormal {
			return math.Log10(x*(1<<54)) - 54*math.Ln2/math.Ln10
		}
		return math.Log10(x)
	})
	pow   = nearest2(decimal.Decimal.Pow, math.Pow)
	atan2 = nearest2(decimal.Decimal.Atan2, math.Atan2)
)

// The inverse hyperbolic functions of the C library are not those nearest doubles: they are as
// exact as the logarithms and square roots that they are made of, by the same formulas as those of
// package math.

// acosh is math.Acosh with the C library's logarithm.
func acosh(x float64) float64 {
	switch {
	case x >= 1<<28:
		return ln(x) + math.Ln2
	case x > 2:
		return ln(2*x - 1/(x+math.Sqrt(x*x-1)))
	}
	return math.Acosh(x)
}

// asinh is math.Asinh with the C library's logarithm.
func asinh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a > 1<<28 && !math.IsInf(a, 0):
		a = ln(a) + math.Ln2
	case a > 2 && !math.IsInf(a, 0):
		a = ln(2*a + 1/(math.Sqrt(a*a+1)+a))
	default:
		return math.Asinh(x)
	}
	return math.Copysign(a, x)
}
