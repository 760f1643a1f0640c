package expr

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/srverr"
)

// bounds is the domain of a function.
type bounds struct {
	low, high float64
	open      bool
	text      string
}

var (
	finiteBounds = &bounds{math.Inf(-1), math.Inf(1), true, "(-inf,inf)"}
	unitBounds   = &bounds{-1, 1, false, "[-1,1]"}
	acoshBounds  = &bounds{1, math.Inf(1), false, "[1,inf]"}
)

func init() {
	type dec = decimal.Decimal
	registerNary(
		trigonometric("$sin", finiteBounds, dec.Sin, math.Sin),
		trigonometric("$cos", finiteBounds, dec.Cos, math.Cos),
		trigonometric("$tan", finiteBounds, dec.Tan, math.Tan),
		trigonometric("$asin", unitBounds, dec.Asin, math.Asin),
		trigonometric("$acos", unitBounds, dec.Acos, math.Acos),
		likeC("$acosh", acoshBounds, dec.Acosh, acosh),
		likeC("$atanh", unitBounds, dec.Atanh, math.Atanh),
		trigonometric("$atan", nil, dec.Atan, math.Atan),
		trigonometric("$sinh", nil, dec.Sinh, math.Sinh),
		trigonometric("$cosh", nil, dec.Cosh, math.Cosh),
		trigonometric("$tanh", nil, dec.Tanh, math.Tanh),
		likeC("$asinh", nil, dec.Asinh, asinh),
		&naryOp{name: "$atan2", arity: exactly(2), operand: angleOperand, eval: evalAtan2},
		numeric("$degreesToRadians", real(
			func(d dec) dec { return d.Mul(decimal.Pi.Quo(decimal.FromInt(180))) },
			func(f float64) float64 { return f * (math.Pi / 180) })),
		numeric("$radiansToDegrees", real(
			func(d dec) dec { return d.Mul(decimal.FromInt(180).Quo(decimal.Pi)) },
			func(f float64) float64 { return f * (180 / math.Pi) })),
	)
}

func trigonometric(name string, b *bounds, d func(decimal.Decimal) decimal.Decimal, f func(float64) float64) *naryOp {
	return likeC(name, b, d, nearest(d, f))
}

// likeC is trigonometric for a function that computes the doubles of the C library as they are.
func likeC(name string, b *bounds, d func(decimal.Decimal) decimal.Decimal, f func(float64) float64) *naryOp {
	return numeric(name, func(v bson.RawValue) (bson.RawValue, error) {
		x := toDouble(v)
		if math.IsNaN(x) {
			return v, nil
		}
		if b != nil {
			inside := x >= b.low && x <= b.high
			if b.open {
				inside = x > b.low && x < b.high
			}
			if !inside {
				shown := Text(v)
				if v.Type != bson.TypeDecimal128 {
					shown = shortDouble(x)
				}
				return missing, srverr.New(50989, "cannot apply %s to %s, value must in %s", name, shown, b.text)
			}
		}
		return real(d, f)(v)
	})
}

// angleOperand looks at an operand of $atan2 before the next one is evaluated.
func angleOperand(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
	v := args[len(args)-1]
	if !nullish(v) && !v.IsNumber() {
		return false, srverr.New(51043+int32(len(args)), "$atan2 only supports numeric types, not %s", typeName(v))
	}
	return nullish(v), nil
}

func evalAtan2(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	y, x := args[0], args[1]
	if y.Type == bson.TypeDecimal128 || x.Type == bson.TypeDecimal128 {
		return decimalValue(toDecimal(y).Atan2(toDecimal(x))), nil
	}
	return bsondoc.DoubleValue(atan2(toDouble(y), toDouble(x))), nil
}
