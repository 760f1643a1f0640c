package query

import (
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
)

// Condition is a part of a filter as a planner sees it: all or any of several conditions, a
// condition on a path, one on the elements of an array, or something that no index answers.
type Condition struct {
	node   node
	prefix string // of its paths: those of the array that it is about an element of
	f      *Filter
}

// Condition returns the filter as a condition.
func (f *Filter) Condition() Condition { return Condition{node: f.root, f: f} }

func (c Condition) of(list []node) []Condition {
	out := make([]Condition, len(list))
	for i, n := range list {
		out[i] = Condition{n, c.prefix, c.f}
	}
	return out
}

// All returns the conditions that all have to be fulfilled.
func (c Condition) All() (list []Condition, ok bool) {
	if n, ok := c.node.(*and); ok {
		return c.of(n.children), true
	}
	return nil, false
}

// Any returns the conditions of which one has to be fulfilled.
func (c Condition) Any() (list []Condition, ok bool) {
	if n, ok := c.node.(*or); ok {
		return c.of(n.children), true
	}
	return nil, false
}

// HasText reports whether the condition is $text, or has it in a part that is not negated.
func (c Condition) HasText() bool {
	if _, ok := c.node.(*textNode); ok {
		return true
	}
	all, _ := c.All()
	return slices.ContainsFunc(all, Condition.HasText) || c.TextInBranch()
}

// TextInBranch reports whether the condition is an $or, or has one, with $text in a branch.
func (c Condition) TextInBranch() bool {
	all, _ := c.All()
	branches, _ := c.Any()
	return slices.ContainsFunc(branches, Condition.HasText) || slices.ContainsFunc(all, Condition.TextInBranch)
}

// Elements returns what an element of an array has to fulfill, with paths from the document's root.
func (c Condition) Elements() (sub Condition, ok bool) {
	l, isLeaf := c.node.(*leaf)
	if !isLeaf {
		return sub, false
	}
	t, ok := l.test.(*elemMatchObjectTest)
	if !ok {
		return sub, false
	}
	return Condition{t.sub, c.prefix + l.path.name + ".", c.f}, true
}

// Path returns the path that it is about, as far as an index may answer it.
func (c Condition) Path() (path string, ok bool) {
	switch n := c.node.(type) {
	case *leaf:
		switch n.test.(type) {
		case *elemMatchObjectTest, sizeTest:
			return "", false
		}
		return c.prefix + n.path.name, true
	case *directNode:
		if n.compares == 0 {
			return "", false
		}
		return c.prefix + strings.Join(n.path, "."), true
	case *not:
		if l, isLeaf := n.child.(*leaf); isLeaf {
			switch l.test.(type) {
			case *elemMatchObjectTest, sizeTest:
				return "", false
			}
			return c.prefix + l.path.name, true
		}
	}
	return "", false
}

// Joined returns the filter of some conditions, nil if there are none.
func Joined(list []Condition) *Filter {
	if len(list) == 0 {
		return nil
	}
	f := *list[0].f
	f.id, f.source = bson.RawValue{}, nil
	if len(list) == 1 {
		f.root = list[0].node
		return &f
	}
	nodes := make([]node, len(list))
	for i, c := range list {
		nodes[i] = c.node
	}
	f.root = &and{nodes}
	return &f
}

// AnyOf returns the filter that one of several filters has to match.
func AnyOf(list []*Filter) *Filter {
	f := *list[0]
	f.id, f.source = bson.RawValue{}, nil
	nodes := make([]node, len(list))
	for i, c := range list {
		nodes[i] = c.root
	}
	f.root = &or{children: nodes}
	return &f
}

// Tightness says how well bounds stand for a condition.
type Tightness uint8

const (
	Exact   Tightness = iota // the keys within are those of the documents that fulfill it
	Covered                  // the key tells whether the document fulfills it
	Fetched                  // only the document tells
)

// Field is a field of an index that is asked for bounds.
type Field struct {
	SameCollation bool // it has strings in the order of the filter's
	Sparse        bool // documents without any of the index's fields have no key
	Several       bool // it is one of several fields
	Array         bool // its path leads to an array in some document
	Hashed        bool
	SparseElement bool   // it is of a sparse index, and asked about an element of an array
	Wildcard      bool   // documents without the field have no key
	Nested        bool   // some of its values are arrays that have a key as a whole
	Cells         *Cells // of an index that has those of geometries there; or nil
}

// Bounds returns the intervals, in order and apart, in which a document that fulfills the condition
// has a key. ok is false if the index is of no use for it.
func (c Condition) Bounds(f Field) (list []Interval, t Tightness, ok bool) {
	b := boundsFinder{multikey: f.Array, sameCollation: f.SameCollation, simple: c.f.coll == nil, coll: c.f.coll}
	p := fieldBounds{b, f}
	switch {
	case f.Cells == nil:
	case f.Cells.Plane != nil:
		return c.planeBounds(f.Cells.Plane)
	default:
		return c.sphereBounds(f.Cells.Sphere)
	}
	switch n := c.node.(type) {
	case *leaf:
		list, t, ok = p.test(n.test)
	case *not:
		if l, isLeaf := n.child.(*leaf); isLeaf {
			list, t, ok = p.negated(l.test)
		}
	case *directNode:
		list, t, ok = p.direct(n)
	}
	if ok && f.Hashed {
		whole := len(list) == 1 && list[0].Lo.Type == bson.TypeMinKey && list[0].Hi.Type == bson.TypeMaxKey
		for _, in := range list {
			if !in.IsPoint() && !whole {
				return nil, 0, false
			}
		}
		t = Fetched
	}
	return list, t, ok
}

type fieldBounds struct {
	boundsFinder
	field Field
}

var (
	minValue = bson.RawValue{Type: bson.TypeMinKey}
	maxValue = bson.RawValue{Type: bson.TypeMaxKey}
)

// AllValues returns the interval of all values.
func AllValues() []Interval { return []Interval{{Lo: minValue, Hi: maxValue}} }

func (p *fieldBounds) test(t test) (list []Interval, how Tightness, ok bool) {
	switch t := t.(type) {
	case *compareTest:
		return p.comparison(t)
	case *inTest:
		for _, v := range t.values {
			more, tight, ok := p.equality(v)
			if !ok {
				return nil, 0, false
			}
			list, how = append(list, more...), max(how, tight)
		}
		if len(t.regexes) > 0 && p.field.Hashed {
			return nil, 0, false
		}
		for _, re := range t.regexes {
			more, tight := p.pattern(re)
			list, how = append(list, more...), max(how, tight)
		}
		return p.merge(list), how, true
	case *regexTest:
		if p.field.Hashed {
			return nil, 0, false
		}
		list, how = p.pattern(t)
		return p.merge(list), how, true
	case *modTest:
		return []Interval{numbers(math.NaN())}, Covered, !p.field.Hashed
	case existsTest:
		switch {
		case p.field.Wildcard:
			return AllValues(), Exact, true
		case p.field.Sparse && !p.field.Hashed && !p.field.Several:
			return AllValues(), Exact, true
		}
		return AllValues(), Fetched, true
	case *typeTest:
		return p.types(&t.set)
	case *elemMatchValueTest:
		return p.element(&t.sub)
	}
	return nil, 0, false
}

// types returns the bounds of $type.
func (p *fieldBounds) types(set *typeSet) (list []Interval, how Tightness, ok bool) {
	if p.field.Hashed {
		return nil, 0, false
	}
	types := slices.Clone(set.types)
	if set.numbers {
		types = append(types, bson.TypeDouble)
		how = Exact
	}
	for _, t := range types {
		if t == bson.TypeArray || t == bson.TypeEmbeddedDocument && p.field.Wildcard { // its elements have the keys
			return AllValues(), Fetched, true
		}
		switch t {
		case bson.TypeMinKey, bson.TypeMaxKey, bson.TypeUndefined, bson.TypeNull:
			list = append(list, point(bson.RawValue{Type: t}))
		default:
			list = append(list, typeInterval(canonicalType(t)))
		}
		switch t {
		case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
			if !set.numbers {
				how = Fetched
			}
		default:
			how = Fetched
		}
	}
	return p.merge(list), Fetched, true
}

// typeInterval returns the values of a rank with the ends that the server shows.
func typeInterval(canon int) Interval {
	switch canon {
	case 10:
		return numbers(math.NaN())
	case 35:
		return Interval{Lo: bson.RawValue{Type: bson.TypeObjectID, Value: make([]byte, 12)},
			Hi: bson.RawValue{Type: bson.TypeObjectID, Value: slices.Repeat([]byte{0xff}, 12)}}
	case 40:
		return Interval{Lo: bsondoc.BoolValue(false), Hi: bsondoc.BoolValue(true)}
	case 45:
		return Interval{Lo: bsondoc.DateValue(math.MinInt64), Hi: bsondoc.DateValue(math.MaxInt64)}
	case 47:
		return Interval{Lo: bsondoc.TimestampValue(bson.Timestamp{}),
			Hi: bsondoc.TimestampValue(bson.Timestamp{T: math.MaxUint32, I: math.MaxUint32})}
	}
	return bracket(canon)
}

func numbers(from float64) Interval {
	return Interval{Lo: bsondoc.DoubleValue(from), Hi: bsondoc.DoubleValue(math.Inf(1))}
}

// element returns the bounds of $elemMatch on values: all conditions are about one element.
func (p *fieldBounds) element(a *and) (best []Interval, how Tightness, ok bool) {
	if p.field.Hashed || p.field.Nested {
		return nil, 0, false
	}
	one := *p
	one.field.Array, one.field.Sparse, one.multikey = false, false, false
	one.field.SparseElement = p.field.Sparse || p.field.SparseElement
	for _, c := range a.children {
		if l, isLeaf := c.(*leaf); isLeaf && l.wholeArrays {
			return nil, 0, false // the key of an array within an array is the array
		}
		list, _, bounded := (Condition{node: c, f: &Filter{coll: p.coll}}).Bounds(one.field)
		if !bounded {
			return nil, 0, false
		}
		if ok {
			list = p.intersect(best, list)
		}
		best, ok = list, true
	}
	return best, Fetched, ok
}

func (p *fieldBounds) equality(v bson.RawValue) (list []Interval, how Tightness, ok bool) {
	if !p.comparable(v) {
		return nil, 0, false
	}
	switch v.Type {
	case bson.TypeNull:
		if p.field.Wildcard {
			return nil, 0, false // what is missing has no key
		}
		if p.field.Sparse {
			return nil, 0, false
		}
		return []Interval{point(undefinedValue), point(nullValue)}, Fetched, true
	case bson.TypeArray:
		if p.field.Hashed || p.field.Wildcard && !bson.Raw(v.Value).IsEmpty() { // its elements have the keys
			return nil, 0, false
		}
		first := undefinedValue
		for e := range bson.Raw(v.Value).Values() {
			first = e
			break
		}
		return p.merge([]Interval{point(first), point(v)}), Fetched, true
	case bson.TypeEmbeddedDocument:
		if p.field.Wildcard && !bson.Raw(v.Value).IsEmpty() {
			return nil, 0, false // its fields have keys, not itself
		}
	}
	return []Interval{point(v)}, Exact, true
}

func (p *fieldBounds) comparison(t *compareTest) (list []Interval, how Tightness, ok bool) {
	v := t.rhs
	if t.op == equal {
		return p.equality(v)
	}
	with := t.op&equal != 0
	switch {
	case p.field.Hashed || !p.comparable(v):
		return nil, 0, false
	case p.field.Wildcard && t.op == less|equal && v.Type == bson.TypeEmbeddedDocument && bson.Raw(v.Value).IsEmpty():
		return []Interval{point(v)}, Exact, true // there is no lesser document
	case p.field.Wildcard && (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray):
		return nil, 0, false
	case v.Type == bson.TypeMinKey || v.Type == bson.TypeMaxKey:
		return p.extreme(t)
	case v.Type == bson.TypeArray: // its elements have the keys
		return AllValues(), Fetched, true
	case v.Type == bson.TypeNull:
		if !with {
			return nil, Exact, true
		}
		return p.equality(v)
	case t.nan:
		if !with {
			return nil, Exact, true
		}
		return []Interval{point(v)}, Exact, true
	}
	i := typeInterval(t.canon)
	if t.canon == 10 {
		i.Lo = bsondoc.DoubleValue(math.Inf(-1)) // NaN sorts first but is not less
	}
	if t.op&less != 0 {
		i.Hi, i.HiOpen = v, !with
	} else {
		i.Lo, i.LoOpen = v, !with
	}
	if c := p.compareEnds(i.Lo, i.Hi); c > 0 || c == 0 && (i.LoOpen || i.HiOpen) {
		return nil, Exact, true
	}
	return []Interval{i}, Exact, true
}

// extreme returns the bounds of an order relative to MinKey or MaxKey: values of all types are
// compared with these, and what is missing.
func (p *fieldBounds) extreme(t *compareTest) (list []Interval, how Tightness, ok bool) {
	v := t.rhs
	with, below := t.op&equal != 0, t.op&less != 0
	if (v.Type == bson.TypeMinKey) == below { // nothing but itself is there
		if with {
			list = []Interval{point(v)}
		}
		return list, Exact, true
	}
	if p.field.Sparse || p.field.Wildcard {
		return nil, 0, false
	}
	i := AllValues()[0]
	switch {
	case p.field.Array: // an array is compared as a whole, and one within an array has the key null
		how = Fetched
	case below:
		i.HiOpen = !with
	default:
		i.LoOpen = !with
	}
	return []Interval{i}, how, true
}

// pattern returns the bounds of a regular expression.
func (p *fieldBounds) pattern(t *regexTest) (list []Interval, how Tightness) {
	list = p.regex(t)
	how = Covered
	if t.options == "" && p.simple && p.sameCollation && isPlainPrefix(t.pattern) {
		how = Exact
	}
	return list, how
}

// isPlainPrefix reports whether a pattern asks for nothing but how the text begins.
func isPlainPrefix(pattern string) bool {
	rest, ok := strings.CutPrefix(pattern, "^")
	if !ok {
		if rest, ok = strings.CutPrefix(pattern, `\A`); !ok {
			return false
		}
	}
	rest = strings.TrimSuffix(rest, ".*")
	return rest != "" && !strings.ContainsAny(rest, `\.[]{}()*+?|^$# `)
}

// direct returns the bounds of a comparison as expressions have it.
func (p *fieldBounds) direct(n *directNode) (list []Interval, how Tightness, ok bool) {
	if p.field.Array || p.field.Wildcard && n.compares != equal {
		return nil, 0, false
	}
	v := n.rhs
	if !p.comparable(v) {
		return nil, 0, false
	}
	if n.compares == equal {
		if v.Type == bson.TypeNull && (p.field.Sparse || p.field.Wildcard) ||
			p.field.Wildcard && v.Type == bson.TypeEmbeddedDocument {
			return nil, 0, false
		}
		if v.Type == bson.TypeNull { // a missing field has its key as well
			return []Interval{point(v)}, Fetched, true
		}
		return []Interval{point(v)}, Exact, true
	}
	if p.field.Hashed || p.field.Sparse {
		return nil, 0, false
	}
	i := Interval{Lo: minValue, Hi: maxValue}
	if n.compares&less != 0 {
		i.Hi, i.HiOpen = v, n.compares&equal == 0
	} else {
		i.Lo, i.LoOpen = v, n.compares&equal == 0
	}
	return []Interval{i}, Fetched, true
}

// negated returns the bounds of a condition that must not be fulfilled.
func (p *fieldBounds) negated(t test) (list []Interval, how Tightness, ok bool) {
	null := false
	switch t := t.(type) {
	case *compareTest:
		switch {
		case t.rhs.Type == bson.TypeArray, t.op != equal && t.rhs.Type == bson.TypeNull:
			return nil, 0, false
		case t.op != equal && p.field.Array && (t.rhs.Type == bson.TypeMinKey || t.rhs.Type == bson.TypeMaxKey):
			return nil, 0, false
		}
		null = t.rhs.Type == bson.TypeNull
	case *inTest:
		if len(t.regexes) > 0 {
			return nil, 0, false
		}
		for _, v := range t.values {
			if v.Type == bson.TypeArray {
				return nil, 0, false
			}
			null = null || v.Type == bson.TypeNull
		}
	case existsTest:
		if p.field.Sparse || p.field.SparseElement || p.field.Wildcard {
			return nil, 0, false
		}
		return []Interval{point(nullValue)}, Fetched, true
	default:
		return nil, 0, false
	}
	if p.field.Hashed || p.field.SparseElement && !null {
		return nil, 0, false
	}
	if null && p.field.Array {
		return nil, 0, false // an array within an array has the key null, and is not equal to null
	}
	if p.field.Sparse || p.field.Wildcard {
		if !null { // what is missing fulfills it and has no key
			return nil, 0, false
		}
		if p.field.Wildcard {
			if c, isCompare := t.(*compareTest); !isCompare || c.op != equal || p.field.Array {
				return nil, 0, false
			}
			return AllValues(), Fetched, true
		}
	}
	open := *p
	open.field.Sparse = false
	inner, how, ok := open.test(t)
	if !ok {
		return nil, 0, false
	}
	list = p.complement(inner)
	switch {
	case p.field.Array:
		how = Fetched
	case null:
		how = Exact
	}
	return list, how, true
}

// complement returns all values but those of some intervals.
func (b *boundsFinder) complement(list []Interval) (out []Interval) {
	lo, open := minValue, false
	for _, i := range list {
		rest := Interval{Lo: lo, LoOpen: open, Hi: i.Lo, HiOpen: !i.LoOpen}
		// Nothing lies between undefined and null.
		between := lo.Type == bson.TypeUndefined && i.Lo.Type == bson.TypeNull
		if c := b.compareEnds(rest.Lo, rest.Hi); !between && (c < 0 || c == 0 && !rest.LoOpen && !rest.HiOpen) {
			out = append(out, rest)
		}
		lo, open = i.Hi, !i.HiOpen
	}
	rest := Interval{Lo: lo, LoOpen: open, Hi: maxValue}
	if c := b.compareEnds(rest.Lo, rest.Hi); c < 0 || c == 0 && !open {
		out = append(out, rest)
	}
	return out
}

// Intersect returns what two lists of intervals have in common.
func Intersect(x, y []Interval, coll *Collation) []Interval {
	return (&boundsFinder{coll: coll}).intersect(x, y)
}

// Union returns what lies in one of two lists of intervals.
func Union(x, y []Interval, coll *Collation) []Interval {
	return (&boundsFinder{coll: coll}).merge(append(slices.Clone(x), y...))
}

// Text shows an interval as explain does; back turns it round.
func (i Interval) Text(back bool, show func(v bson.RawValue) string) string {
	if show == nil {
		show = bsontext.Value
	}
	open, end := "[", "]"
	lo, hi, loOpen, hiOpen := i.Lo, i.Hi, i.LoOpen, i.HiOpen
	if back {
		lo, hi, loOpen, hiOpen = hi, lo, hiOpen, loOpen
	}
	if loOpen {
		open = "("
	}
	if hiOpen {
		end = ")"
	}
	return open + show(lo) + ", " + show(hi) + end
}

// Prefix returns what the paths of the condition begin with: the path of the array, with its dot.
func (c Condition) Prefix() string { return c.prefix }

// Implied returns conditions on paths that hold wherever the condition does, which no index answers
// itself.
func (c Condition) Implied() (list []Condition) {
	e, ok := c.node.(*exprNode)
	if !ok || c.prefix != "" {
		return nil
	}
	for _, x := range e.compares {
		list = append(list, Condition{&directNode{path: x.path.parts, compares: x.op, rhs: x.value}, "", c.f})
	}
	return list
}
