package bson

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
)

// Equal reports whether a and b are identical documents: the same keys in the same order with
// values of the same types and the same bytes. Use Compare for the server's idea of equality, where
// 1 equals 1.0.
func Equal(a, b Raw) bool { return bytes.Equal(a, b) }

// Equal reports whether v and other are identical: the same type and the same bytes.
func (v RawValue) Equal(other RawValue) bool {
	return v.Type == other.Type && bytes.Equal(v.Value, other.Value)
}

// Compare returns -1, 0 or +1 as a sorts before, with or after b in the server's total order
// (without a collation):
//
//   - MinKey; no value and undefined; null; numbers; strings and symbols; documents; arrays;
//     binary; ObjectID; booleans; dates; timestamps; regular expressions; DBPointers; code; code
//     with scope; MaxKey
//   - numbers by value, exactly, whatever their types, with NaN before every other number and equal
//     to itself
//   - strings by bytes; documents element by element, each by type, then key, then value; arrays
//     value by value; binaries by length, then subtype, then bytes; regular expressions by pattern,
//     then options
//
// Malformed values never make it panic; where they sort is not defined.
func Compare(a, b RawValue) int {
	if c, done := compareScalars(a, b); done {
		return c
	}
	// Documents nest as deep as their sender likes, so this does not recurse.
	type pair struct {
		a, b  []byte
		array bool
	}
	var stack []pair
	p := pair{compareBody(a), compareBody(b), a.Type == TypeArray}
	for {
		if len(p.a) == 0 || len(p.b) == 0 {
			if c := compareBool(len(p.a) > 0, len(p.b) > 0); c != 0 {
				return c
			}
			if len(stack) == 0 {
				return 0
			}
			p, stack = stack[len(stack)-1], stack[:len(stack)-1]
			continue
		}
		aKey, a, aRest, aErr := readElement(p.a)
		bKey, b, bRest, bErr := readElement(p.b)
		if aErr != nil || bErr != nil {
			p.a, p.b = aRest, bRest
			if c := compareBool(aErr == nil, bErr == nil); c != 0 {
				return c
			}
			continue
		}
		p.a, p.b = aRest, bRest
		if c := compareOrdered(sortRank(a.Type), sortRank(b.Type)); c != 0 {
			return c
		}
		if !p.array {
			if c := bytes.Compare(aKey, bKey); c != 0 {
				return c
			}
		}
		c, done := compareScalars(a, b)
		if c != 0 {
			return c
		}
		if !done {
			stack = append(stack, p)
			p = pair{compareBody(a), compareBody(b), a.Type == TypeArray}
		}
	}
}

// sortRank returns where values of type t stand in the server's order.
func sortRank(t Type) int {
	switch t {
	case TypeMinKey:
		return -1
	case 0, TypeUndefined:
		return 0
	case TypeNull:
		return 5
	case TypeDouble, TypeInt32, TypeInt64, TypeDecimal128:
		return 10
	case TypeString, TypeSymbol:
		return 15
	case TypeEmbeddedDocument:
		return 20
	case TypeArray:
		return 25
	case TypeBinary:
		return 30
	case TypeObjectID:
		return 35
	case TypeBoolean:
		return 40
	case TypeDateTime:
		return 45
	case TypeTimestamp:
		return 47
	case TypeRegex:
		return 50
	case TypeDBPointer:
		return 55
	case TypeJavaScript:
		return 60
	case TypeCodeWithScope:
		return 65
	}
	return 127
}

// compareBody returns the elements that remain to be compared once compareScalars is not done with
// a value.
func compareBody(v RawValue) []byte {
	if v.Type == TypeCodeWithScope {
		_, scope, _ := v.codeAndScope()
		return scope.body()
	}
	return Raw(v.Value).body()
}

// compareScalars compares what needs no descent. It is not done if a and b are documents, arrays or
// code with scope that are equal so far.
func compareScalars(a, b RawValue) (c int, done bool) {
	rank := sortRank(a.Type)
	if c := compareOrdered(rank, sortRank(b.Type)); c != 0 {
		return c, true
	}
	switch rank {
	case 10:
		return compareNumbers(a, b), true
	case 15, 60:
		x, _ := stringBytes(a.Value)
		y, _ := stringBytes(b.Value)
		return bytes.Compare(x, y), true
	case 20, 25:
		return 0, false
	case 30, 55:
		if len(a.Value) != len(b.Value) || len(a.Value) < 4 {
			return compareOrdered(len(a.Value), len(b.Value)), true
		}
		return bytes.Compare(a.Value[4:], b.Value[4:]), true
	case 35, 40:
		return bytes.Compare(a.Value, b.Value), true
	case 45:
		x, _ := a.DateTime()
		y, _ := b.DateTime()
		return compareOrdered(x, y), true
	case 47:
		x, _ := a.Timestamp()
		y, _ := b.Timestamp()
		return x.Compare(y), true
	case 50:
		// Both are a pattern and options with a NUL after each, which sorts before every other
		// byte.
		return bytes.Compare(a.Value, b.Value), true
	case 65:
		x, _, _ := a.codeAndScope()
		y, _, _ := b.codeAndScope()
		c := bytes.Compare(x, y)
		return c, c != 0
	}
	return 0, true
}

func compareNumbers(a, b RawValue) int {
	if a.Type == b.Type && len(a.Value) == len(b.Value) {
		switch {
		case a.Type == TypeInt32 && len(a.Value) == 4:
			return compareOrdered(int32(binary.LittleEndian.Uint32(a.Value)),
				int32(binary.LittleEndian.Uint32(b.Value)))
		case a.Type == TypeInt64 && len(a.Value) == 8:
			return compareOrdered(int64(binary.LittleEndian.Uint64(a.Value)),
				int64(binary.LittleEndian.Uint64(b.Value)))
		}
	}
	if a.Type == TypeDecimal128 || b.Type == TypeDecimal128 {
		return compareDecimals(a, b)
	}
	if a.Type == TypeDouble {
		x, _ := a.Double()
		if b.Type == TypeDouble {
			y, _ := b.Double()
			return cmp.Compare(x, y) // which has NaN first
		}
		y, _ := b.AsInt64()
		return compareDoubleInt(x, y)
	}
	x, _ := a.AsInt64()
	if b.Type == TypeDouble {
		y, _ := b.Double()
		return -compareDoubleInt(y, x)
	}
	y, _ := b.AsInt64()
	return compareOrdered(x, y)
}

// compareDoubleInt compares exactly: a float64 cannot hold every int64.
func compareDoubleInt(f float64, n int64) int {
	switch {
	case math.IsNaN(f), f < -(1 << 63):
		return -1
	case f >= 1<<63:
		return 1
	}
	whole := math.Trunc(f)
	if c := compareOrdered(int64(whole), n); c != 0 {
		return c
	}
	return compareOrdered(f, whole)
}

func compareDecimals(a, b RawValue) int {
	switch {
	case a.Type == TypeDouble:
		f, _ := a.Double()
		d, _ := b.Decimal128()
		return -compareDecimalDouble(d, f)
	case b.Type == TypeDouble:
		d, _ := a.Decimal128()
		f, _ := b.Double()
		return compareDecimalDouble(d, f)
	}
	return integerAsDecimal(a).Compare(integerAsDecimal(b))
}

func integerAsDecimal(v RawValue) Decimal128 {
	if d, ok := v.Decimal128(); ok {
		return d
	}
	n, _ := v.AsInt64()
	return NewDecimal128FromInt64(n)
}

// compareDecimalDouble compares the exact values: a double is rarely a decimal of 34 digits.
func compareDecimalDouble(d Decimal128, f float64) int {
	switch {
	case d.IsNaN() || math.IsNaN(f):
		return compareBool(!d.IsNaN(), !math.IsNaN(f))
	case math.IsInf(f, 0):
		if d.IsInf(int(math.Copysign(1, f))) {
			return 0
		}
		return int(-math.Copysign(1, f))
	case d.IsInf(1):
		return 1
	case d.IsInf(-1):
		return -1
	}
	sign := d.Sign()
	if c := compareOrdered(sign, compareOrdered(f, 0)); c != 0 || sign == 0 {
		return c
	}
	c, exponent := d.unpack()
	// Magnitudes that no finite double has are decided without building numbers of thousands of
	// digits.
	switch magnitude := c.digitCount() + exponent; {
	case magnitude > 309:
		return sign
	case magnitude < -323:
		return -sign
	}
	fraction, shift := math.Frexp(math.Abs(f))
	decimal, double := c.big(), big.NewInt(int64(fraction*(1<<53)))
	if shift -= 53; shift > 0 {
		double.Lsh(double, uint(shift))
	} else {
		decimal.Lsh(decimal, uint(-shift))
	}
	ten := big.NewInt(10)
	if exponent > 0 {
		decimal.Mul(decimal, ten.Exp(ten, big.NewInt(int64(exponent)), nil))
	} else {
		double.Mul(double, ten.Exp(ten, big.NewInt(int64(-exponent)), nil))
	}
	return sign * decimal.Cmp(double)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareOrdered is cmp.Compare without its care for NaN.
func compareOrdered[T cmp.Ordered](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
