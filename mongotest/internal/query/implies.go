package query

import (
	"slices"

	"allium/bson"
)

// Implies reports whether every document that matches f also matches the other filter, as far as
// the server's planner can tell when it decides whether a query may use a partial index: it looks
// for one condition of the query that is at least as strict for each condition of the index. Both
// filters must compare strings alike.
func (f *Filter) Implies(other *Filter) bool { return implies(f.root, other.root) }

func implies(q, p node) bool {
	switch p := p.(type) {
	case *and:
		return !slices.ContainsFunc(p.children, func(c node) bool { return !implies(q, c) })
	case *or:
		if slices.ContainsFunc(p.children, func(c node) bool { return implies(q, c) }) {
			return true
		}
	}
	switch q := q.(type) {
	case *and:
		return slices.ContainsFunc(q.children, func(c node) bool { return implies(c, p) })
	case *or:
		return len(q.children) > 0 && !slices.ContainsFunc(q.children, func(c node) bool { return !implies(c, p) })
	case *leaf:
		want, ok := p.(*leaf)
		return ok && want.path.name == q.path.name && impliesTest(q.test, want.test)
	}
	return false
}

func impliesTest(q, p test) bool {
	switch p := p.(type) {
	case existsTest:
		switch q := q.(type) {
		case *compareTest:
			ok, _ := q.test(nullValue)
			return !ok // what null does not match, a missing field does not either
		case *inTest:
			return !q.hasNull
		case existsTest, *typeTest, *regexTest, *modTest, sizeTest, *elemMatchObjectTest, *elemMatchValueTest, *geoTest:
			return true
		}
	case *typeTest:
		t, ok := q.(*typeTest)
		return ok && t.set.numbers == p.set.numbers && slices.Equal(t.set.types, p.set.types)
	case *inTest:
		if t, ok := q.(*compareTest); ok && t.op == equal {
			found, _ := p.test(t.rhs)
			return found && len(p.regexes) == 0
		}
	case *compareTest:
		switch q := q.(type) {
		case *compareTest:
			return impliesComparison(q, p)
		case *inTest:
			return len(q.regexes) == 0 && len(q.values) > 0 &&
				!slices.ContainsFunc(q.values, func(v bson.RawValue) bool {
					ok, _ := p.test(v)
					return !ok
				})
		}
	}
	return false
}

func impliesComparison(q, p *compareTest) bool {
	switch {
	case q.canon != p.canon || q.nan || p.nan:
		return false
	case q.op == equal:
		ok, _ := p.test(q.rhs)
		return ok
	case p.op == equal || (q.op|p.op)&(less|greater) == less|greater:
		return false
	}
	c := Compare(q.rhs, p.rhs, p.coll)
	if p.op&greater != 0 {
		c = -c
	}
	return c < 0 || c == 0 && (p.op&equal != 0 || q.op&equal == 0)
}
