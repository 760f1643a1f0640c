package pipeline

import (
	"math"
	"sort"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
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

// number returns a result as a decimal where the input was one.
func number(like bson.RawValue, f float64) bson.RawValue {
	if like.Type == bson.TypeDecimal128 {
		return expr.DecimalFromDouble(f)
	}
	return bsondoc.DoubleValue(f)
}

func (s series) up(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	if f == 0 || math.IsInf(f, 0) {
		return v
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
			return number(v, previous)
		}
	}
	i := sort.Search(len(s), func(i int) bool { return f < s[i]*m })
	return number(v, s[min(i, len(s)-1)]*m)
}

func (s series) down(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	if f == 0 || math.IsInf(f, 0) {
		return v
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
			return number(v, previous)
		}
	}
	i := sort.Search(len(s), func(i int) bool { return s[i]*m >= f })
	return number(v, s[max(i-1, 0)]*m)
}

// powersOf2 yields integers but for fractions and decimals.
type powersOf2 struct{}

func power(v bson.RawValue, e float64) bson.RawValue {
	if v.Type != bson.TypeDecimal128 && e >= 0 && e < 63 {
		n := int64(1) << int(e)
		if n <= math.MaxInt32 {
			return bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, int32(n))}
		}
		return bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, n)}
	}
	return number(v, math.Exp2(e))
}

func (powersOf2) up(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	if f == 0 {
		return v
	}
	return power(v, math.Floor(math.Log2(f))+1)
}

func (powersOf2) down(v bson.RawValue) bson.RawValue {
	f := expr.ToDouble(v)
	if f == 0 {
		return v
	}
	return power(v, math.Ceil(math.Log2(f))-1)
}
