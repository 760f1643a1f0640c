package query

import (
	"math"
	"math/rand/v2"

	"allium/bson"
	"allium/mongotest/internal/decimal"
)

// decimalToInt64 truncates a decimal; exact tells whether nothing was lost. What does not fit becomes the smallest
// integer, as on the server.
func decimalToInt64(d bson.Decimal128) (n int64, exact bool) {
	x := decimal.FromBSON(d)
	n, ok := x.Int(decimal.Down)
	if !ok {
		return math.MinInt64, false
	}
	return n, x.Integral()
}

// toDouble converts any number to a double.
func toDouble(v bson.RawValue) float64 {
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
