package expr

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
)

// doubleDouble sums doubles with a second double that carries what the first cannot hold, as the
// server does, so that integers add up exactly and the order of summation hardly matters.
type doubleDouble struct{ sum, addend, special float64 }

func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	a1 := sum - b
	b1 := sum - a1
	return sum, (a - a1) + (b - b1)
}

func (d *doubleDouble) addDouble(x float64) {
	d.special += x
	var c float64
	x, c = twoSum(x, d.addend)
	d.sum, d.addend = twoSum(d.sum, x)
	d.addend += c
}

func (d *doubleDouble) addLong(n int64) {
	high := n / (1 << 32) * (1 << 32)
	d.addDouble(float64(n - high))
	d.addDouble(float64(high))
}

// add adds a number that is no decimal.
func (d *doubleDouble) add(v bson.RawValue) {
	if v.Type == bson.TypeInt64 {
		d.addLong(toLong(v))
	} else {
		d.addDouble(toDouble(v))
	}
}

// isSpecial reports whether an infinity or NaN was added. An infinity makes only the addend NaN.
func (d *doubleDouble) isSpecial() bool { return math.IsNaN(d.sum) || math.IsNaN(d.addend) }

// double returns the sum. What it cannot hold does not round it: the server leaves it away.
func (d *doubleDouble) double() float64 {
	if d.isSpecial() {
		return d.special
	}
	return d.sum
}

func (d *doubleDouble) decimal() decimal.Decimal {
	if d.isSpecial() {
		return decimal.FromFloat(d.special)
	}
	return decimal.FromFloat(d.sum).Add(decimal.FromFloat(d.addend))
}

func (d *doubleDouble) fitsLong() bool {
	const lowest, highest = -(1 << 63), 1 << 63
	switch {
	case d.sum > lowest && d.sum < highest:
		return true
	case !(d.sum >= lowest && d.sum <= highest):
		return false
	case d.sum == lowest:
		return d.addend >= 0
	}
	return d.addend < 0
}

// long must be called only if fitsLong.
func (d *doubleDouble) long() int64 {
	if d.sum >= 1<<63 {
		return math.MaxInt64 + int64(math.Round(d.addend)) + 1
	}
	n := int64(math.Round(d.sum))
	return n + int64(math.Round((d.sum-float64(n))+d.addend))
}

// total is a sum of numbers with the type it has to be answered in.
type total struct {
	binary   doubleDouble
	decimals decimal.Decimal
	typ      bson.Type
}

func newTotal() total { return total{typ: bson.TypeInt32} }

// add adds a number.
func (t *total) add(v bson.RawValue) {
	t.typ = widest(t.typ, v.Type)
	if v.Type == bson.TypeDecimal128 {
		t.decimals = t.decimals.Add(toDecimal(v))
		return
	}
	t.binary.add(v)
}

// decimal returns the sum as a decimal.
func (t *total) decimal() decimal.Decimal { return t.decimals.Add(t.binary.decimal()) }

// value returns the sum in the narrowest type that holds it and all of the summands' types.
func (t *total) value() bson.RawValue {
	switch t.typ {
	case bson.TypeDecimal128:
		return decimalValue(t.decimal())
	case bson.TypeInt64:
		if t.binary.fitsLong() {
			return bsondoc.Int64Value(t.binary.long())
		}
	case bson.TypeInt32:
		if t.binary.fitsLong() {
			return intOrLong(t.binary.long())
		}
	}
	return bsondoc.DoubleValue(t.binary.double())
}
