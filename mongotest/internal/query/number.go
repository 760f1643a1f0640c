package query

import (
	"math"
	"math/rand/v2"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
)

// decimalToInt64 truncates a decimal; exact tells whether nothing was lost. What does not fit
// becomes the smallest integer, as on the server.
func decimalToInt64(d bson.Decimal128) (n int64, exact bool) {
	x := decimal.FromBSON(d)
	n, ok := x.Int(decimal.Down)
	if !ok {
		return math.MinInt64, false
	}
	return n, x.Integral()
}

// truncate converts a number to int64 towards zero, clamped; NaN is 0.
func truncate(v bson.RawValue) int64 {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		switch {
		case f != f:
			return 0
		case f >= 1<<63:
			return math.MaxInt64
		case f < -(1 << 63):
			return math.MinInt64
		}
		return int64(f)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		n, _ := decimalToInt64(d)
		return n
	}
	n, _ := v.AsInt64()
	return n
}

// castInt is [args.CastNumber] to 32 bits; of an int64 the lower half remains.
func castInt(v bson.RawValue) int64 {
	n := args.CastNumber(v)
	if v.Type != bson.TypeInt64 && n != int64(int32(n)) {
		return math.MinInt32
	}
	return int64(int32(n))
}

// Float converts any number to a double; 0 for what is no number.
func Float(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return f
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return float64(n)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return decimal.FromBSON(d).Float()
	}
	return 0
}

// sampleRate is $sampleRate: it matches with this probability.
type sampleRate float64

func (r sampleRate) match(bson.Raw) (bool, int, error) {
	return rand.Float64() < float64(r), noIndex, nil
}
func (r sampleRate) matchValue(bson.RawValue) bool { return rand.Float64() < float64(r) }

// toDecimal converts a number as update operators do: doubles with 15 digits.
func toDecimal(v bson.RawValue) decimal.Decimal {
	switch v.Type {
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return decimal.FromBSON(d)
	case bson.TypeDouble:
		f, _ := v.Double()
		return decimal.FromFloat15(f)
	}
	n, _ := v.AsInt64()
	return decimal.FromInt(n)
}

func decimalValue(d decimal.Decimal) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, d.BSON())}
}

// addNumbers adds as $inc does: the wider type wins, an int32 that overflows becomes an int64, an
// int64 that overflows is an error.
func addNumbers(a, b bson.RawValue) (bson.RawValue, bool) {
	return computeNumbers(a, b, decimal.Decimal.Add, func(x, y float64) float64 {
		return x + y
	}, func(x, y int64) (int64, bool) {
		sum := x + y
		return sum, (sum > x) == (y > 0)
	})
}

// multiplyNumbers is addNumbers for $mul.
func multiplyNumbers(a, b bson.RawValue) (bson.RawValue, bool) {
	return computeNumbers(a, b, decimal.Decimal.Mul, func(x, y float64) float64 {
		return x * y
	}, func(x, y int64) (int64, bool) {
		if x == 0 || y == 0 {
			return 0, true
		}
		if x == -1 && y == math.MinInt64 || y == -1 && x == math.MinInt64 {
			return 0, false
		}
		product := x * y
		return product, product/y == x
	})
}

func computeNumbers(a, b bson.RawValue, decimals func(x, y decimal.Decimal) decimal.Decimal,
	doubles func(x, y float64) float64,
	integers func(x, y int64) (int64, bool)) (bson.RawValue, bool) {
	switch {
	case a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128:
		return decimalValue(decimals(toDecimal(a), toDecimal(b))), true
	case a.Type == bson.TypeDouble || b.Type == bson.TypeDouble:
		return bsondoc.DoubleValue(doubles(Float(a), Float(b))), true
	}
	x, _ := a.AsInt64()
	y, _ := b.AsInt64()
	n, ok := integers(x, y)
	if !ok {
		return a, false
	}
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 && n == int64(int32(n)) {
		return bsondoc.Int32Value(int32(n)), true
	}
	return bsondoc.Int64Value(n), true
}

// debugNumber renders a number with its type, as one message about overflow does.
func debugNumber(v bson.RawValue) string {
	names := map[bson.Type]string{
		bson.TypeInt32: "NumberInt", bson.TypeInt64: "NumberLong", bson.TypeDouble: "NumberDouble",
		bson.TypeDecimal128: "NumberDecimal",
	}
	return "(" + names[v.Type] + ")" + plainNumber(v)
}
