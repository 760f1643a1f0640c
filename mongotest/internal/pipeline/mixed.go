package pipeline

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/expr"
)

// mixed is a number that a window function computes with: a double, until a decimal takes part.
type mixed struct {
	double    float64
	decimal   decimal.Decimal
	isDecimal bool
	whole     bool // the double stands for an integer, whose decimal has no more digits
}

func integer(n int64) mixed { return mixed{double: float64(n), whole: true} }

// mixedOf returns a value's number; 0 if it is none.
func mixedOf(v bson.RawValue) mixed {
	if d, ok := v.Decimal128(); ok {
		return mixed{decimal: decimal.FromBSON(d), isDecimal: true}
	}
	return mixed{double: expr.ToDouble(v), whole: v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64}
}

// inDecimal returns the number as a decimal.
func (a mixed) inDecimal() decimal.Decimal {
	if a.isDecimal {
		return a.decimal
	}
	if a.whole {
		return decimal.FromInt(int64(a.double))
	}
	return decimal.FromFloat15(a.double)
}

func (a mixed) apply(b mixed, doubles func(x, y float64) float64,
	decimals func(x, y decimal.Decimal) decimal.Decimal) mixed {
	if a.isDecimal || b.isDecimal {
		return mixed{decimal: decimals(a.inDecimal(), b.inDecimal()), isDecimal: true}
	}
	f := doubles(a.double, b.double)
	return mixed{double: f, whole: a.whole && b.whole && f == math.Trunc(f) && math.Abs(f) < 1<<53}
}

func (a mixed) add(b mixed) mixed {
	return a.apply(b, func(x, y float64) float64 { return x + y }, decimal.Decimal.Add)
}

func (a mixed) sub(b mixed) mixed {
	return a.apply(b, func(x, y float64) float64 { return x - y }, decimal.Decimal.Sub)
}

func (a mixed) mul(b mixed) mixed {
	return a.apply(b, func(x, y float64) float64 { return x * y }, decimal.Decimal.Mul)
}

func (a mixed) quo(b mixed) mixed {
	return a.apply(b, func(x, y float64) float64 { return x / y }, decimal.Decimal.Quo)
}

// approximate returns the number as a double.
func (a mixed) approximate() float64 {
	if a.isDecimal {
		return a.decimal.Float()
	}
	return a.double
}

func (a mixed) isZero() bool {
	if a.isDecimal {
		return a.decimal.IsZero()
	}
	return a.double == 0
}

func (a mixed) isNaN() bool {
	if a.isDecimal {
		return a.decimal.IsNaN()
	}
	return a.double != a.double
}

func (a mixed) value() bson.RawValue {
	if a.isDecimal {
		return expr.DecimalValue(a.decimal)
	}
	return bsondoc.DoubleValue(a.double)
}
