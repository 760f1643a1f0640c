package query

import (
	"math"
	"slices"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// bitTest is $bitsAllSet, $bitsAllClear, $bitsAnySet and $bitsAnyClear.
type bitTest struct {
	positions []uint32 // ascending
	set       bool     // looks for ones, else for zeros
	all       bool
	whole     bool // a decimal that is no integer, or none of 64 bits, has no bits
}

func (t *bitTest) test(v bson.RawValue) (bool, int) {
	var bit func(uint32) bool
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n := args.CastNumber(v) // servers before 8.1 do not look whether a decimal is a whole number
		if _, ok := v.AsInt64(); !ok && (v.Type == bson.TypeDouble || t.whole) {
			return false, noIndex
		}
		bit = func(p uint32) bool { return n>>min(p, 63)&1 != 0 } // the sign extends
	case bson.TypeBinary:
		data := v.Value[5:] // of subtype 2 with the length that stands in it once more
		bit = func(p uint32) bool { return int(p/8) < len(data) && data[p/8]>>(p%8)&1 != 0 }
	default:
		return false, noIndex
	}
	for _, p := range t.positions {
		if hit := bit(p) == t.set; hit != t.all {
			return hit, noIndex
		}
	}
	return t.all, noIndex
}

// exactInt64 converts a number that is a whole one within the range of int64.
func exactInt64(v bson.RawValue) (int64, bool) {
	if v.Type != bson.TypeDecimal128 {
		return v.AsInt64()
	}
	d, _ := v.Decimal128()
	n, exact := decimalToInt64(d)
	return n, exact
}

// bitPositions reads the positions that an operator on bits names.
func (p *filterParser) bitPositions(c condition) (positions []uint32, err error) {
	v := c.arg
	switch v.Type {
	case bson.TypeArray:
		i := 0
		for e := range bson.Raw(v.Value).Values() {
			if p.version.AtLeast(5, 0) {
				if _, err := parseNonNegativeLong(strconv.Itoa(i), e, p.version); err != nil {
					return nil, badValue("Failed to parse bit position. %s", srverr.From(err).Msg)
				}
			}
			at := bsontext.Element(strconv.Itoa(i), e)
			n, _ := exactInt64(e)
			f, isDouble := e.Double()
			if d, isDecimal := e.Decimal128(); isDecimal {
				if n = -1; math.Abs(Float(e)) <= math.MaxInt32 { // what is too large is negative there
					n, _ = decimal.FromBSON(d).Int(decimal.HalfEven)
				}
			}
			switch {
			case !e.IsNumber():
				return nil, badValue("bit positions must be an integer but got: %s", at)
			case isDouble && f != f:
				return nil, badValue("bit positions cannot take a NaN: %s", at)
			case isDouble && (f > math.MaxInt32 || f < math.MinInt32), n > math.MaxInt32, n < math.MinInt32:
				return nil, badValue("bit positions cannot be represented as a 32-bit signed integer: %s", at)
			case isDouble && f != math.Trunc(f):
				return nil, badValue("bit positions must be an integer but got: %s", at)
			case n < 0:
				return nil, badValue("bit positions must be >= 0 but got: %s", at)
			}
			positions = append(positions, uint32(n))
			i++
		}
		slices.Sort(positions)
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n, err := parseNonNegativeLong(c.op, v, p.version)
		if err != nil {
			return nil, err
		}
		for i := range uint32(64) {
			if n>>i&1 != 0 {
				positions = append(positions, i)
			}
		}
	case bson.TypeBinary:
		b, _ := v.Binary()
		for i, octet := range b.Data {
			for j := range 8 {
				if octet>>j&1 != 0 {
					positions = append(positions, uint32(i*8+j))
				}
			}
		}
	default:
		return nil, badValue("%s takes an Array, a number, or a BinData but received: %s",
			c.field, bsontext.Element(c.op, v))
	}
	return positions, nil
}

// isWhole reports whether a number has no fraction, whatever its size.
func isWhole(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return true
	case bson.TypeDouble:
		f, _ := v.Double()
		return f == math.Trunc(f) && !math.IsInf(f, 0)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return decimal.FromBSON(d).Integral()
	}
	return false
}

// parseLong converts an argument that has to be an integer, with the server's messages.
func parseLong(key string, v bson.RawValue) (int64, error) {
	at := bsontext.Element(key, v)
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
	case bson.TypeDouble:
		f, _ := v.Double()
		switch {
		case f != f:
			return 0, srverr.New(srverr.FailedToParse, "Expected an integer, but found NaN in: %s", at)
		case f >= 1<<63 || f < -(1<<63):
			return 0, srverr.New(srverr.FailedToParse, "Cannot represent as a 64-bit integer: %s", at)
		case f != math.Trunc(f):
			return 0, srverr.New(srverr.FailedToParse, "Expected an integer: %s", at)
		}
	case bson.TypeDecimal128:
		if _, ok := exactInt64(v); ok {
			break
		}
		if isWhole(v) {
			return 0, srverr.New(srverr.FailedToParse, "Cannot represent as a 64-bit integer: %s", at)
		}
		if isNaN(v) {
			return 0, srverr.New(srverr.FailedToParse, "Expected an integer, but found NaN in: %s", at)
		}
		d, _ := v.Decimal128()
		if decimal.FromBSON(d).IsInf() {
			return 0, srverr.New(srverr.FailedToParse, "Cannot represent as a 64-bit integer: %s", at)
		}
		return 0, srverr.New(srverr.FailedToParse, "Expected an integer: %s", at)
	default:
		return 0, srverr.New(srverr.FailedToParse, "Expected a number in: %s", at)
	}
	n, _ := exactInt64(v)
	return n, nil
}

func parseNonNegativeLong(key string, v bson.RawValue, version release.Version) (int64, error) {
	n, err := parseLong(key, v)
	if err == nil && n < 0 && version.AtLeast(5, 0) {
		return 0, srverr.New(srverr.FailedToParse, "Expected a non-negative number in: %s", bsontext.Element(key, v))
	}
	if err == nil && n < 0 {
		return 0, srverr.New(srverr.FailedToParse, "Expected a positive number in: %s", bsontext.Element(key, v))
	}
	return n, err
}
