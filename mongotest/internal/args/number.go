package args

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/srverr"
)

// NumberOf returns any number cut to an int64, as the server's numberLong does.
func NumberOf(v bson.RawValue) (int64, bool) {
	n, fits := cast(v)
	if fits {
		return n, v.IsNumber()
	}
	f, _ := v.Double()
	if d, ok := v.Decimal128(); ok {
		f = decimal.FromBSON(d).Float()
	}
	switch {
	case f > 0:
		return math.MaxInt64, true
	case f < 0:
		return math.MinInt64, true
	}
	return 0, true // not a number
}

// ExactLong returns a number that has to be an integer, and to fit.
func ExactLong(field string, v bson.RawValue) (int64, error) {
	if f, ok := v.Double(); ok {
		switch {
		case math.IsNaN(f):
			return 0, srverr.New(srverr.FailedToParse, "Expected an integer, but found NaN in: %s",
				bsontext.Element(field, v))
		case f != math.Trunc(f):
			return 0, srverr.New(srverr.FailedToParse, "Expected an integer: %s", bsontext.Element(field, v))
		case f >= math.MaxInt64 || f < math.MinInt64:
			return 0, srverr.New(srverr.FailedToParse, "Cannot represent as a 64-bit integer: %s",
				bsontext.Element(field, v))
		}
	}
	n, exact := v.AsInt64()
	if !exact {
		return 0, srverr.New(srverr.FailedToParse, "Cannot represent as a 64-bit integer: %s",
			bsontext.Element(field, v))
	}
	return n, nil
}

// CastNumber is NumberOf for commands that cast as a processor does: what does not fit is the least
// number there is.
func CastNumber(v bson.RawValue) int64 {
	n, fits := cast(v)
	if !fits {
		return math.MinInt64
	}
	return n
}

// cast converts a number to an int64, if it fits: doubles towards zero, decimals to the nearest,
// half to even.
func cast(v bson.RawValue) (n int64, fits bool) {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return int64(f), f >= -(1<<63) && f < 1<<63
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return decimal.FromBSON(d).Int(decimal.HalfEven)
	}
	n, _ = v.AsInt64()
	return n, true
}
