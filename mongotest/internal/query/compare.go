package query

import (
	"bytes"
	"strings"

	"allium/bson"
)

// canonicalType is the rank of a type in the server's order across types. Types with the same rank
// compare by value.
func canonicalType(t bson.Type) int {
	switch t {
	case bson.TypeMinKey:
		return -1
	case 0, bson.TypeUndefined:
		return 0
	case bson.TypeNull:
		return 5
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return 10
	case bson.TypeString, bson.TypeSymbol:
		return 15
	case bson.TypeEmbeddedDocument:
		return 20
	case bson.TypeArray:
		return 25
	case bson.TypeBinary:
		return 30
	case bson.TypeObjectID:
		return 35
	case bson.TypeBoolean:
		return 40
	case bson.TypeDateTime:
		return 45
	case bson.TypeTimestamp:
		return 47
	case bson.TypeRegex:
		return 50
	case bson.TypeDBPointer:
		return 55
	case bson.TypeJavaScript:
		return 60
	case bson.TypeCodeWithScope:
		return 65
	case bson.TypeMaxKey:
		return 127
	}
	return 126
}

// Compare returns -1, 0 or +1 by the server's order of values, with strings compared by the
// collation (nil: by their bytes). The zero RawValue, "no value", sorts with undefined.
func Compare(a, b bson.RawValue, coll *Collation) int {
	if coll == nil {
		return bson.Compare(a, b)
	}
	ca, cb := canonicalType(a.Type), canonicalType(b.Type)
	switch {
	case ca != cb:
		if ca < cb {
			return -1
		}
		return 1
	case ca == 15:
		return coll.CompareBytes(stringData(a), stringData(b))
	case ca == 20, ca == 25:
		return compareDocuments(a.Value, b.Value, coll, ca == 20)
	}
	return bson.Compare(a, b)
}

// compareDocuments compares element by element: type, then name (in documents), then value.
func compareDocuments(a, b bson.Raw, coll *Collation, names bool) int {
	x, y := a.Elements(), b.Elements()
	for {
		switch {
		case len(x) == 0 && len(y) == 0:
			return 0
		case len(x) == 0:
			return -1
		case len(y) == 0:
			return 1
		}
		ka, va, restA, errA := bson.ReadElement(x)
		kb, vb, restB, errB := bson.ReadElement(y)
		if errA != nil || errB != nil {
			return 0
		}
		x, y = restA, restB
		if ca, cb := canonicalType(va.Type), canonicalType(vb.Type); ca != cb {
			if ca < cb {
				return -1
			}
			return 1
		}
		if names {
			if c := strings.Compare(ka, kb); c != 0 {
				return c
			}
		}
		if c := Compare(va, vb, coll); c != 0 {
			return c
		}
	}
}

// Equal reports whether two values are equal for the server: 1 equals 1.0.
func Equal(a, b bson.RawValue, coll *Collation) bool {
	if a.Type == b.Type && bytes.Equal(a.Value, b.Value) {
		return true
	}
	return Compare(a, b, coll) == 0
}

// identical reports whether two values are the same bytes, types included: 1 is not 1.0.
func identical(a, b bson.RawValue) bool {
	return a.Type == b.Type && bytes.Equal(a.Value, b.Value)
}

func stringData(v bson.RawValue) []byte {
	if len(v.Value) < 5 {
		return nil
	}
	return v.Value[4 : len(v.Value)-1]
}

// isNaN reports whether v is a double or decimal NaN.
func isNaN(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return f != f
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		hi, _ := d.Bits()
		return hi>>58&0x1f == 0x1f
	}
	return false
}

// Rank is the place of a type in the server's order across types.
func Rank(t bson.Type) int { return canonicalType(t) }
