package pipeline

import (
	"math"
	"sort"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/srverr"
)

// rounder moves the bounds of $bucketAuto to preferred numbers: up to the next greater, down to the
// next smaller one.
type rounder interface {
	up(v bson.RawValue) bson.RawValue
	down(v bson.RawValue) bson.RawValue
}

// checkRoundable refuses what cannot be rounded.
func checkRoundable(v bson.RawValue) error {
	if !v.IsNumber() {
		return srverr.New(
			40258, "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: %s", typeName(v))
	}
	f := expr.ToDouble(v)
	switch {
	case math.IsNaN(f):
		return srverr.New(40259,
			"$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN")
	case f < 0:
		return srverr.New(
			40260, "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number")
	}
	return nil
}

// series is one decade of preferred numbers, in ascending order; the others are its multiples.
type series []float64

func findRounder(name string) rounder {
	switch name {
	case "POWERSOF2":
		return powersOf2{}
	case "1-2-5":
		return series{10, 20, 50}
	case "R5":
		return series{10, 16, 25, 40, 63}
	case "R10":
		return every(renard, 8)
	case "R20":
		return every(renard, 4)
	case "R40":
		return every(renard, 2)
	case "R80":
		return renard
	case "E6":
		return every(e24, 4)
	case "E12":
		return every(e24, 2)
	case "E24":
		return e24
	case "E48":
		return geometric(48)
	case "E96":
		return geometric(96)
	case "E192":
		return geometric(192)
	}
	return nil
}

func every(s series, n int) series {
	var out series
	for i := 0; i < len(s); i += n {
		out = append(out, s[i])
	}
	return out
}

// renard is the series R80 of ISO 3, which contains the coarser ones.
var renard = series{
	100, 103, 106, 109, 112, 115, 118, 122, 125, 128, 132, 136, 140, 145, 150, 155, 160, 165, 170, 175,
	180, 185, 190, 195, 200, 206, 212, 218, 224, 230, 236, 243, 250, 258, 265, 272, 280, 290, 300, 307,
	315, 325, 335, 345, 355, 365, 375, 387, 400, 412, 425, 437, 450, 462, 475, 487, 500, 515, 530, 545,
	560, 580, 600, 615, 630, 650, 670, 690, 710, 730, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975,
}

// e24 is the series E24 of IEC 60063, which contains E12 and E6.
var e24 = series{10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91}

// geometric makes the finer series of IEC 60063, which are rounded powers but for one number.
func geometric(n int) series {
	out := make(series, n)
	for i := range out {
		out[i] = math.Round(math.Pow(10, 2+float64(i)/float64(n)))
		if out[i] == 919 {
			out[i] = 920
		}
	}
	return out
}

func (s series) up(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	switch {
	case f == 0 || math.IsInf(f, 0):
		return v
	case v.Type == bson.TypeDecimal128:
		return expr.DecimalValue(s.decimals().up(expr.ToDecimal(v)))
	}
	first, last := s[0], s[len(s)-1]
	m := 1.0
	for f >= last*m {
		m *= 10
	}
	for f < first*m {
		previous := first * m
		m /= 10
		if f >= last*m {
			return bsondoc.DoubleValue(previous)
		}
	}
	i := sort.Search(len(s), func(i int) bool { return f < s[i]*m })
	return bsondoc.DoubleValue(s[min(i, len(s)-1)] * m)
}

func (s series) down(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	switch {
	case f == 0 || math.IsInf(f, 0):
		return v
	case v.Type == bson.TypeDecimal128:
		return expr.DecimalValue(s.decimals().down(expr.ToDecimal(v)))
	}
	first, last := s[0], s[len(s)-1]
	m := 1.0
	for f <= first*m {
		m /= 10
	}
	for f > last*m {
		previous := last * m
		m *= 10
		if f <= first*m {
			return bsondoc.DoubleValue(previous)
		}
	}
	i := sort.Search(len(s), func(i int) bool { return s[i]*m >= f })
	return bsondoc.DoubleValue(s[max(i-1, 0)] * m)
}

// decimalSeries is a series for decimals, which are rounded with all their digits.
type decimalSeries []decimal.Decimal

var ten = decimal.FromInt(10)

func (s series) decimals() decimalSeries {
	out := make(decimalSeries, len(s))
	for i, f := range s {
		out[i] = decimal.FromFloat15(f)
	}
	return out
}

func (s decimalSeries) up(d decimal.Decimal) decimal.Decimal {
	first, last := s[0], s[len(s)-1]
	m := decimal.FromInt(1)
	for d.Cmp(last.Mul(m)) >= 0 {
		m = m.Mul(ten)
	}
	for d.Cmp(first.Mul(m)) < 0 {
		previous := first.Mul(m)
		if m = m.Quo(ten); d.Cmp(last.Mul(m)) >= 0 {
			return previous
		}
	}
	i := sort.Search(len(s), func(i int) bool { return d.Cmp(s[i].Mul(m)) < 0 })
	return s[min(i, len(s)-1)].Mul(m)
}

func (s decimalSeries) down(d decimal.Decimal) decimal.Decimal {
	first, last := s[0], s[len(s)-1]
	m := decimal.FromInt(1)
	for d.Cmp(first.Mul(m)) <= 0 {
		m = m.Quo(ten)
	}
	for d.Cmp(last.Mul(m)) > 0 {
		previous := last.Mul(m)
		if m = m.Mul(ten); d.Cmp(first.Mul(m)) <= 0 {
			return previous
		}
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].Mul(m).Cmp(d) >= 0 })
	return s[max(i-1, 0)].Mul(m)
}

// powersOf2 yields integers but for fractions and decimals.
type powersOf2 struct{}

func power(e float64) bson.RawValue {
	if e >= 0 && e < 63 {
		n := int64(1) << int(e)
		if n <= math.MaxInt32 {
			return bsondoc.Int32Value(int32(n))
		}
		return bsondoc.Int64Value(n)
	}
	return bsondoc.DoubleValue(math.Exp2(e))
}

func decimalPower(e int64) decimal.Decimal { return decimal.FromInt(2).Pow(decimal.FromInt(e)) }

func (powersOf2) up(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	switch {
	case f == 0:
		return v
	case v.Type == bson.TypeDecimal128:
		d := expr.ToDecimal(v)
		e, ok := d.Log2().Int(decimal.Floor)
		if !ok {
			return v
		}
		for d.Cmp(decimalPower(e)) < 0 { // the logarithm is rounded
			e--
		}
		for d.Cmp(decimalPower(e)) >= 0 {
			e++
		}
		return expr.DecimalValue(decimalPower(e))
	}
	return power(math.Floor(math.Log2(f)) + 1)
}

func (powersOf2) down(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	switch {
	case f == 0:
		return v
	case v.Type == bson.TypeDecimal128:
		d := expr.ToDecimal(v)
		e, ok := d.Log2().Int(decimal.Ceil)
		if !ok {
			return v
		}
		for d.Cmp(decimalPower(e)) > 0 {
			e++
		}
		for d.Cmp(decimalPower(e)) <= 0 {
			e--
		}
		return expr.DecimalValue(decimalPower(e))
	}
	return power(math.Ceil(math.Log2(f)) - 1)
}
