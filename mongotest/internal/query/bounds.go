package query

import (
	"math"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// Interval is a range of values in the server's order. Lo and Hi are always set.
type Interval struct {
	Lo, Hi         bson.RawValue
	LoOpen, HiOpen bool // the end itself is not part of it
}

// IsPoint reports whether the interval is one value.
func (i Interval) IsPoint() bool { return !i.LoOpen && !i.HiOpen && identical(i.Lo, i.Hi) }

// Same reports whether two are of the same values, ends and all.
func (i Interval) Same(o Interval) bool {
	return i.LoOpen == o.LoOpen && i.HiOpen == o.HiOpen && i.Lo.Equal(o.Lo) && i.Hi.Equal(o.Hi)
}

// Bounds returns intervals, in order and apart from each other, for the keys that an index has for
// a path: a document that matches the filter has a key in one of them. Documents with such a key
// may still not match. ok is false if the filter says nothing about the path.
//
// multikey tells that the index has, for the path, several keys for some documents (then conditions
// cannot be combined, as different elements may fulfill them); sameCollation that the index orders
// strings as the filter compares them.
func (f *Filter) Bounds(path string, multikey, sameCollation bool) (intervals []Interval, ok bool) {
	b := boundsFinder{multikey: multikey, sameCollation: sameCollation, simple: f.coll == nil, coll: f.coll}
	return b.node(f.root, "", path)
}

type boundsFinder struct {
	multikey, sameCollation, simple bool
	coll                            *Collation
}

// node finds the bounds of a path in a part of the filter whose own paths start with prefix.
func (b *boundsFinder) node(n node, prefix, path string) ([]Interval, bool) {
	switch n := n.(type) {
	case *and:
		return b.all(n.children, prefix, path)
	case *or:
		var union []Interval
		for _, c := range n.children {
			list, ok := b.node(c, prefix, path)
			if !ok {
				return nil, false
			}
			union = append(union, list...)
		}
		return b.merge(union), true
	case constant:
		return nil, !bool(n)
	case *exprNode:
		for _, e := range n.compares {
			if e.op == equal && e.path.name == path && !b.multikey {
				return b.equal(e.value)
			}
		}
	case *leaf:
		name := prefix + n.path.name
		switch t := n.test.(type) {
		case *elemMatchObjectTest:
			if len(path) > len(name) && path[:len(name)] == name && path[len(name)] == '.' {
				return b.node(t.sub, name+".", path)
			}
		case *elemMatchValueTest:
			if name == path {
				// All conditions are about the same element, so they combine whatever the index.
				one := *b
				one.multikey = false
				return one.element(&t.sub)
			}
		default:
			if name == path {
				return b.test(n.test)
			}
		}
	}
	return nil, false
}

// all combines the bounds that each of several conditions sets.
func (b *boundsFinder) all(children []node, prefix, path string) (best []Interval, ok bool) {
	for _, c := range children {
		list, bounded := b.node(c, prefix, path)
		if !bounded {
			continue
		}
		best, ok = b.combine(best, ok, list), true
	}
	return best, ok
}

// combine returns the bounds of two conditions: what they have in common, or the tighter ones if
// several elements may fulfill them.
func (b *boundsFinder) combine(best []Interval, ok bool, list []Interval) []Interval {
	switch {
	case !ok:
		return list
	case !b.multikey:
		return b.intersect(best, list)
	case looseness(list) < looseness(best):
		return list
	}
	return best
}

func looseness(list []Interval) int {
	n := 0
	for _, i := range list {
		if i.IsPoint() {
			n++
		} else {
			n += 1000
		}
	}
	return n
}

// element finds the bounds of an $elemMatch on values.
func (b *boundsFinder) element(a *and) (best []Interval, ok bool) {
	for _, c := range a.children {
		l, isLeaf := c.(*leaf)
		if !isLeaf {
			continue
		}
		if list, bounded := b.test(l.test); bounded {
			best, ok = b.combine(best, ok, list), true
		}
	}
	return best, ok
}

func (b *boundsFinder) test(t test) ([]Interval, bool) {
	switch t := t.(type) {
	case *compareTest:
		return b.compare(t)
	case *inTest:
		var union []Interval
		for _, v := range t.values {
			list, ok := b.equal(v)
			if !ok {
				return nil, false
			}
			union = append(union, list...)
		}
		for _, re := range t.regexes {
			union = append(union, b.regex(re)...)
		}
		return b.merge(union), true
	case *regexTest:
		return b.merge(b.regex(t)), true
	case *modTest:
		i := bracket(10)
		return []Interval{i}, true
	}
	return nil, false
}

func point(v bson.RawValue) Interval { return Interval{Lo: v, Hi: v} }

// comparable reports whether the index orders a value as the filter does.
func (b *boundsFinder) comparable(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument, bson.TypeArray:
		return b.sameCollation
	}
	return true
}

func (b *boundsFinder) equal(v bson.RawValue) ([]Interval, bool) {
	if !b.comparable(v) {
		return nil, false
	}
	switch v.Type {
	case bson.TypeNull: // also matches undefined and missing fields; those are null in an index
		return []Interval{point(undefinedValue), point(nullValue)}, true
	case bson.TypeArray: // its elements are in the index, or itself if it is inside of an array
		first := undefinedValue
		for e := range bson.Raw(v.Value).Values() {
			first = e
			break
		}
		return b.merge([]Interval{point(first), point(v)}), true
	}
	return []Interval{point(v)}, true
}

func (b *boundsFinder) compare(t *compareTest) ([]Interval, bool) {
	v := t.rhs
	if t.op == equal {
		return b.equal(v)
	}
	switch {
	case v.Type == bson.TypeArray, v.Type == bson.TypeMinKey, v.Type == bson.TypeMaxKey, !b.comparable(v):
		return nil, false
	case v.Type == bson.TypeNull:
		if t.op&equal == 0 {
			return nil, true
		}
		return b.equal(v)
	case t.nan:
		if t.op&equal == 0 {
			return nil, true
		}
		return []Interval{point(v)}, true
	}
	i := bracket(t.canon)
	if t.op&less != 0 {
		i.Hi, i.HiOpen = v, t.op&equal == 0
		if t.canon == 10 {
			i.Lo = bsondoc.DoubleValue(math.Inf(-1)) // NaN sorts first but is not less
		}
	} else {
		i.Lo, i.LoOpen = v, t.op&equal == 0
	}
	return []Interval{i}, true
}

func (b *boundsFinder) regex(t *regexTest) []Interval {
	i := bracket(15)
	if prefix := t.re.AnchoredPrefix(); prefix != "" && !alternates(t.pattern) && b.simple && b.sameCollation {
		i.Lo = bsondoc.StringValue(prefix)
		if end := []byte(prefix); end[len(end)-1] < 0x7f {
			end[len(end)-1]++
			i.Hi = bsondoc.StringValue(string(end))
		}
	}
	re := bson.RawValue{Type: bson.TypeRegex, Value: append(append(append([]byte(t.pattern), 0), t.options...), 0)}
	return []Interval{i, point(re)}
}

// alternates reports whether a pattern has a bar that may separate alternatives, to the server's
// eye, which looks at the two characters before it only: one backslash quotes it.
func alternates(pattern string) bool {
	for i := range len(pattern) {
		if pattern[i] == '|' && (i == 0 || pattern[i-1] != '\\' || i > 1 && pattern[i-2] == '\\') {
			return true
		}
	}
	return false
}

// bracket returns the interval of all values of a rank: from the least one to before the least one
// of the next rank.
func bracket(canon int) Interval {
	i := slices.IndexFunc(leastValues, func(v bson.RawValue) bool { return canonicalType(v.Type) == canon })
	return Interval{Lo: leastValues[i], Hi: leastValues[i+1], HiOpen: true}
}

// leastValues are the least values of the ranks, in order.
var leastValues = []bson.RawValue{
	{Type: bson.TypeMinKey},
	undefinedValue,
	nullValue,
	bsondoc.DoubleValue(math.NaN()),
	bsondoc.StringValue(""),
	{Type: bson.TypeEmbeddedDocument, Value: []byte{5, 0, 0, 0, 0}},
	{Type: bson.TypeArray, Value: []byte{5, 0, 0, 0, 0}},
	{Type: bson.TypeBinary, Value: make([]byte, 5)},
	{Type: bson.TypeObjectID, Value: make([]byte, 12)},
	{Type: bson.TypeBoolean, Value: []byte{0}},
	{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, math.MinInt64)},
	{Type: bson.TypeTimestamp, Value: make([]byte, 8)},
	{Type: bson.TypeRegex, Value: []byte{0, 0}},
	{Type: bson.TypeDBPointer, Value: append([]byte{1, 0, 0, 0, 0}, make([]byte, 12)...)},
	{Type: bson.TypeJavaScript, Value: []byte{1, 0, 0, 0, 0}},
	{Type: bson.TypeCodeWithScope, Value: []byte{14, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0}},
	{Type: bson.TypeMaxKey},
}

// compareEnds compares two ends of intervals.
func (b *boundsFinder) compareEnds(x bson.RawValue, y bson.RawValue) int {
	return Compare(x, y, b.coll)
}

// merge sorts intervals and joins those that touch or overlap.
func (b *boundsFinder) merge(list []Interval) []Interval {
	if len(list) < 2 {
		return list
	}
	slices.SortStableFunc(list, func(x, y Interval) int {
		if c := b.compareEnds(x.Lo, y.Lo); c != 0 {
			return c
		}
		switch {
		case x.LoOpen == y.LoOpen:
			return 0
		case x.LoOpen:
			return 1
		}
		return -1
	})
	out := list[:1]
	for _, i := range list[1:] {
		last := &out[len(out)-1]
		c := b.compareEnds(i.Lo, last.Hi)
		if c > 0 || c == 0 && (i.LoOpen || last.HiOpen) {
			out = append(out, i)
			continue
		}
		if c := b.compareEnds(i.Hi, last.Hi); c > 0 || c == 0 && !i.HiOpen {
			last.Hi, last.HiOpen = i.Hi, i.HiOpen
		}
	}
	return out
}

// intersect returns what two lists have in common.
func (b *boundsFinder) intersect(x, y []Interval) []Interval {
	var out []Interval
	for _, p := range x {
		for _, q := range y {
			i := p
			if c := b.compareEnds(q.Lo, i.Lo); c > 0 || c == 0 && q.LoOpen {
				i.Lo, i.LoOpen = q.Lo, q.LoOpen
			}
			if c := b.compareEnds(q.Hi, i.Hi); c < 0 || c == 0 && q.HiOpen {
				i.Hi, i.HiOpen = q.Hi, q.HiOpen
			}
			if c := b.compareEnds(i.Lo, i.Hi); c < 0 || c == 0 && !i.LoOpen && !i.HiOpen {
				out = append(out, i)
			}
		}
	}
	return out
}
