package expr

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
)

// MovingSum sums up the numbers of a window that moves: what was added can be taken away again. The
// zero value is the sum of none.
type MovingSum struct {
	binary   doubleDouble
	decimals decimal.Decimal
	n        int // decimals
}

// Add adds a number.
func (s *MovingSum) Add(v bson.RawValue) {
	if v.Type != bson.TypeDecimal128 {
		s.binary.add(v)
		return
	}
	s.decimals = s.decimals.Add(toDecimal(v))
	s.n++
}

// Remove takes a number away that was added.
func (s *MovingSum) Remove(v bson.RawValue) {
	switch v.Type {
	case bson.TypeDecimal128:
		s.n--
		if s.decimals = s.decimals.Sub(toDecimal(v)); s.n == 0 {
			s.decimals = decimal.Decimal{}
		}
	case bson.TypeInt64:
		s.binary.addLong(-toLong(v))
	default:
		s.binary.addDouble(-toDouble(v))
	}
}

// Value returns the sum: a decimal if there is one among the numbers, else a double.
func (s *MovingSum) Value() bson.RawValue {
	if s.n > 0 {
		return decimalValue(s.decimals.Add(s.binary.decimal()))
	}
	return bsondoc.DoubleValue(s.binary.double())
}
