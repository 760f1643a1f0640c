package query

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/work"
)

// comparison is which results of a comparison match.
type comparison uint8

const (
	equal comparison = 1 << iota
	less
	greater
)

// compareTest is $eq, $lt, $lte, $gt and $gte: a value is compared with values of its own rank
// only.
type compareTest struct {
	op    comparison
	rhs   bson.RawValue
	canon int
	nan   bool
	// direct: equal values have equal bytes and equal types, so that nothing else need be looked at
	// for $eq.
	direct bool
	coll   *Collation
}

func newCompareTest(op comparison, rhs bson.RawValue, coll *Collation) *compareTest {
	t := makeCompareTest(op, rhs, coll)
	return &t
}

func makeCompareTest(op comparison, rhs bson.RawValue, coll *Collation) compareTest {
	t := compareTest{op: op, rhs: rhs, canon: canonicalType(rhs.Type), nan: isNaN(rhs), coll: coll}
	switch rhs.Type {
	case bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeBinary:
		t.direct = op == equal
	}
	return t
}

func (t *compareTest) test(v bson.RawValue) (bool, int) {
	if v.Type == t.rhs.Type && string(v.Value) == string(t.rhs.Value) {
		return t.op&equal != 0, noIndex
	}
	if t.direct {
		return false, noIndex
	}
	canon := canonicalType(v.Type)
	if canon != t.canon {
		switch {
		case canon+t.canon == 5: // null, undefined and missing are the same
			return t.op&equal != 0, noIndex
		case t.rhs.Type == bson.TypeMaxKey:
			return t.op&less != 0, noIndex
		case t.rhs.Type == bson.TypeMinKey:
			return t.op&greater != 0, noIndex
		}
		return false, noIndex
	}
	if canon == 10 && (t.nan || isNaN(v)) {
		return t.nan && isNaN(v) && t.op&equal != 0, noIndex
	}
	switch c := Compare(v, t.rhs, t.coll); {
	case c < 0:
		return t.op&less != 0, noIndex
	case c > 0:
		return t.op&greater != 0, noIndex
	}
	return t.op&equal != 0, noIndex
}

// inTest is $in: values, sorted for a binary search, and regular expressions.
type inTest struct {
	values  []bson.RawValue
	regexes []*regexTest
	hasNull bool
	coll    *Collation
}

func (t *inTest) sortValues(m *work.Meter) {
	slices.SortStableFunc(t.values, work.Counting(m, func(a, b bson.RawValue) int { return Compare(a, b, t.coll) }))
	out := t.values[:0]
	for i, v := range t.values {
		if i == 0 || Compare(out[len(out)-1], v, t.coll) != 0 {
			out = append(out, v)
		}
	}
	t.values = out
}

func (t *inTest) test(v bson.RawValue) (bool, int) {
	if v.Type == 0 {
		return t.hasNull, noIndex // unlike {$eq: null}, $in does not match undefined
	}
	lo, hi := 0, len(t.values)
	for lo < hi {
		mid := (lo + hi) / 2
		c := Compare(t.values[mid], v, t.coll)
		if c == 0 {
			return true, noIndex
		}
		if c < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for _, re := range t.regexes {
		if ok, _ := re.test(v); ok {
			return true, noIndex
		}
	}
	return false, noIndex
}

// existsTest is {$exists: true}.
type existsTest struct{}

func (existsTest) test(v bson.RawValue) (bool, int) { return v.Type != 0, noIndex }

// typeSet is a set of BSON types.
type typeSet struct {
	numbers bool
	types   []bson.Type
}

func (s *typeSet) has(t bson.Type) bool {
	if s.numbers && canonicalType(t) == 10 {
		return true
	}
	for _, x := range s.types {
		if x == t {
			return true
		}
	}
	return false
}

// typeTest is $type.
type typeTest struct{ set typeSet }

func (t *typeTest) test(v bson.RawValue) (bool, int) {
	return v.Type != 0 && t.set.has(v.Type), noIndex
}

// sizeTest is $size.
type sizeTest int

func (t sizeTest) test(v bson.RawValue) (bool, int) {
	return v.Type == bson.TypeArray && countElements(v.Value) == int(t), noIndex
}

func countElements(doc bson.Raw) int {
	n := 0
	for b := doc.Elements(); len(b) > 0; n++ {
		_, _, rest, err := bson.ReadElement(b)
		if err != nil {
			break
		}
		b = rest
	}
	return n
}

// modTest is $mod.
type modTest struct {
	divisor, remainder int64
	cut                bool // decimals are cut; before version 5.0 they are rounded
}

func (t *modTest) test(v bson.RawValue) (bool, int) {
	if !v.IsNumber() {
		return false, noIndex
	}
	if t.divisor == -1 {
		return t.remainder == 0, noIndex // the quotient of the smallest integer would overflow
	}
	if t.cut && v.Type == bson.TypeDecimal128 {
		return truncate(v)%t.divisor == t.remainder, noIndex
	}
	return args.CastNumber(v)%t.divisor == t.remainder, noIndex
}

// elemMatchObjectTest is $elemMatch with conditions on the elements' fields. Elements that are
// arrays count as documents with their indexes as names.
type elemMatchObjectTest struct{ sub node }

func (t *elemMatchObjectTest) test(v bson.RawValue) (bool, int) {
	return anyElement(v, func(e bson.RawValue) bool {
		if e.Type != bson.TypeEmbeddedDocument && e.Type != bson.TypeArray {
			return false
		}
		ok, _, _ := t.sub.match(e.Value)
		return ok
	})
}

// anyElement reports whether an array has an element that matches, and at which index the first one
// is.
func anyElement(v bson.RawValue, match func(bson.RawValue) bool) (bool, int) {
	if v.Type != bson.TypeArray {
		return false, noIndex
	}
	i := 0
	for b := bson.Raw(v.Value).Elements(); len(b) > 0; i++ {
		_, e, rest, err := bson.ReadElement(b)
		if err != nil {
			break
		}
		b = rest
		if match(e) {
			return true, i
		}
	}
	return false, noIndex
}

// elemMatchValueTest is $elemMatch with conditions on the elements themselves.
type elemMatchValueTest struct{ sub and }

func (t *elemMatchValueTest) test(v bson.RawValue) (bool, int) {
	return anyElement(v, t.sub.matchValue)
}
