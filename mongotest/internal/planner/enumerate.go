package planner

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// The plans that there are for a query. Each index whose first field the query bounds gives one;
// where the index has arrays on the way to a field, conditions on it may be fulfilled by different
// elements, so that only one of them bounds the field, and each gives a plan. For an $or all
// branches need an index. What the bounds do not stand for is matched on the documents.

// maxPlans is how many plans are tried, and maxOrPlans how many come of one $or.
const (
	maxPlans   = 64
	maxOrPlans = 10
)

// usable is an index as a query may use it: a wildcard index for one path, or for its fields before
// the wildcard alone.
type usable struct {
	ix     *store.Index
	fields []store.IndexField
	wild   string
	at     int      // which of the fields wild is
	paths  []string // under which the keys of a wildcard index may be, if there are several
	nested bool     // some of these may be those of arrays within arrays, each as a whole
	same   bool     // compares strings as the query does
}

// array reports whether the path of a field leads to an array somewhere.
func (u *usable) array(i int) bool {
	if u.ix.Wild != nil {
		return u.wild != "" && i == u.at && (len(u.paths) > 1 || len(u.arrayPaths()) > 0)
	}
	return u.ix.Arrays.Any(i)
}

// arrayPaths returns the paths at which a wildcard index has arrays, of those that lead to its
// field.
func (u *usable) arrayPaths() (list []string) {
	if u.ix.Arrays == nil {
		return nil
	}
	for p := u.wild; ; {
		if u.ix.Arrays.At(p) {
			list = append(list, p)
		}
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			return list
		}
		p = p[:i]
	}
}

// arrayOn reports whether a part of a field's path, counted from 0, leads to an array.
func (u *usable) arrayOn(i, part int) bool {
	if u.ix.Wild == nil {
		return u.ix.Arrays.Holds(i, part)
	}
	if u.wild == "" || i != u.at {
		return false
	}
	for _, p := range u.arrayPaths() {
		if strings.Count(p, ".") == part {
			return true
		}
	}
	return false
}

func (u *usable) field(i int) query.Field {
	f := query.Field{SameCollation: u.same, Sparse: u.ix.Sparse, Several: len(u.fields) > 1, Array: u.array(i),
		Hashed: u.fields[i].Special == "hashed", Wildcard: u.wild != "" && i == u.at,
		Nested: u.nested && i == u.at}
	f.Sparse, f.Cells = f.Sparse && !u.geo(), u.ix.Cells(i)
	return f
}

// geo reports whether it is a 2dsphere or 2d index. It lacks the documents that have no geometry,
// so that it is of use only where the query asks for one.
func (u *usable) geo() bool { return u.ix.HasCells() }

// flat reports whether it is a 2d index. It has the values of the fields behind the geometry as
// they are, arrays as a whole, so that these have no bounds, and its keys tell whether they match.
func (u *usable) flat() bool {
	in := u.ix.Cells(0)
	return in != nil && in.Plane != nil
}

// predicate is a condition on a path, somewhere in the conditions that all have to be fulfilled.
type predicate struct {
	cond query.Condition
	path string
	top  int // which of the conditions it is part of
	// Of a condition on an element of an array: the array's path, and which $elemMatch it is of.
	array string
	elem  int
	only  bool // the condition at the top is not answered by it: it follows from that
}

// plans returns the ways to find the documents that fulfill a condition, without fetching those of
// which nothing is left to be matched. There are none if no index helps.
func (a *Access) plans(c query.Condition) []*Stage {
	if any, ok := c.Any(); ok {
		return a.plansOfAny(any, c)
	}
	list, ok := c.All()
	if !ok {
		list = []query.Condition{c}
	}
	return a.plansOfAll(list)
}

func (a *Access) plansOfAll(list []query.Condition) (out []*Stage) {
	preds := a.predicates(nil, list)
	var single []*indexPlan
	for _, u := range a.usables(preds) {
		for _, p := range a.indexPlans(&u, list, preds) {
			single = append(single, p)
			if out = append(out, fetch(p.scan.Clone(), p.rest)); len(out) >= maxPlans {
				return out
			}
		}
	}
	out = append(out, intersections(single, list)...)
	for i, c := range list {
		any, ok := c.Any()
		if !ok || len(list) == 1 {
			continue
		}
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, s := range a.plansOfAny(any, c) {
			out = append(out, fetch(s, query.Joined(rest)))
		}
	}
	return out
}

// maxIntersections is how many pairs of indexes are tried for conditions that all have to be
// fulfilled, as in internalQueryEnumerationMaxIntersectPerAnd.
const maxIntersections = 3

// intersections returns the plans that take the documents which two indexes have both. The scans
// have to come in the order of the records, so that each must be for one key; and no condition
// bounds both of them. The documents are matched once more: they may have changed between.
func intersections(single []*indexPlan, list []query.Condition) (out []*Stage) {
	for i, x := range single {
		for _, y := range single[i+1:] {
			if len(out) >= maxIntersections {
				return out
			}
			if x.scan.Index == y.scan.Index || !x.scan.onePoint() || !y.scan.onePoint() || x.shares(y) {
				continue
			}
			and := &Stage{Name: "AND_SORTED", Inputs: []*Stage{x.scan.Clone(), y.scan.Clone()}}
			out = append(out, &Stage{Name: "FETCH", Filter: query.Joined(list), Inputs: []*Stage{and}})
		}
	}
	return out
}

// onePoint reports whether a scan is for one key.
func (s *Stage) onePoint() bool {
	return !slices.ContainsFunc(s.Bounds, func(list []query.Interval) bool {
		return len(list) != 1 || !list[0].IsPoint()
	})
}

// indexPlan is the plan that one index gives: a scan, and what is left to be matched.
type indexPlan struct {
	scan *Stage
	rest *query.Filter
	tops []bool // the conditions that bound the scan
}

// shares reports whether a condition bounds both plans.
func (p *indexPlan) shares(q *indexPlan) bool {
	for i := range p.tops {
		if p.tops[i] && q.tops[i] {
			return true
		}
	}
	return false
}

// fetch puts a stage that fetches and matches on another one.
func fetch(s *Stage, f *query.Filter) *Stage {
	if f == nil {
		return s
	}
	if s.Name == "FETCH" && s.Filter == nil {
		s.Filter = f
		return s
	}
	return &Stage{Name: "FETCH", Filter: f, Inputs: []*Stage{s}}
}

// plansOfAny returns the plans for a condition of which one branch has to be fulfilled. Branches
// that one scan can do are one.
func (a *Access) plansOfAny(branches []query.Condition, whole query.Condition) (out []*Stage) {
	if len(branches) == 0 {
		return nil
	}
	lists := make([][]*Stage, len(branches))
	n := 1
	for i, b := range branches {
		if lists[i] = a.plans(b); len(lists[i]) == 0 {
			return nil
		}
		n *= len(lists[i])
		if n > maxOrPlans {
			n = maxOrPlans
		}
	}
	for k := range n {
		inputs := make([]branch, len(branches))
		rest := k
		for i := range inputs {
			inputs[i] = branch{lists[i][rest%len(lists[i])].Clone(), []query.Condition{branches[i]}}
			rest /= len(lists[i])
		}
		out = append(out, a.union(inputs))
	}
	return out
}

// branch is the plan for some of the conditions of which one has to be fulfilled.
type branch struct {
	*Stage
	conds []query.Condition
}

// leafScan returns the scan of a plan for a condition on one path: one that only the documents tell
// exactly has a FETCH on top.
func (b *branch) leafScan() *Stage {
	s := b.Stage
	if _, several := b.conds[0].All(); s.Name == "FETCH" && !several && len(s.Inputs) == 1 {
		s = s.Inputs[0]
	}
	if s.Name != "IXSCAN" {
		return nil
	}
	return s
}

// union returns the stage that yields what any of some plans yields.
func (a *Access) union(inputs []branch) *Stage {
	// Scans of one index stand together.
	order := func(b *branch) string {
		if s := b.leafScan(); s != nil {
			return s.Index.Name
		}
		return "\xff"
	}
	slices.SortStableFunc(inputs, func(x, y branch) int { return strings.Compare(order(&x), order(&y)) })
	merged := inputs[:1:1]
	for _, b := range inputs[1:] {
		if !a.join(&merged[len(merged)-1], &b) {
			merged = append(merged, b)
		}
	}
	if len(merged) == 1 {
		return merged[0].Stage
	}
	out := &Stage{Name: "OR"}
	for _, b := range merged {
		out.Inputs = append(out.Inputs, b.Stage)
	}
	return out
}

// join makes one plan of two if their scans can be one. If the documents have to tell for one of
// them, they do for both.
func (a *Access) join(x, y *branch) bool {
	s, t := x.leafScan(), y.leafScan()
	if s == nil || t == nil || !a.joinScans(s, t) {
		return false
	}
	x.conds = append(x.conds, y.conds...)
	var either []*query.Filter
	for _, c := range x.conds {
		either = append(either, query.Joined([]query.Condition{c}))
	}
	switch {
	case x.Stage != s || y.Stage != t:
		s.Filter = nil
		x.Stage = &Stage{Name: "FETCH", Filter: query.AnyOf(either), Inputs: []*Stage{s}}
	case s.Filter != nil && t.Filter != nil:
		s.Filter = query.AnyOf([]*query.Filter{s.Filter, t.Filter})
	case s.Filter != nil || t.Filter != nil:
		s.Filter = query.AnyOf(either)
	}
	return true
}

// joinScans makes one scan of two of the same index that bound its first field alone.
func (a *Access) joinScans(x, y *Stage) bool {
	if x.Index.Name != y.Index.Name || x.Wild != y.Wild || x.Range != nil || y.Range != nil {
		return false
	}
	field := 0
	if x.Index.Compound() {
		return false
	}
	if x.Wild != "" {
		field = 1
		if !slices.EqualFunc(x.Bounds[0], y.Bounds[0], query.Interval.Same) {
			return false // they look at other paths
		}
	}
	for i := field + 1; i < len(x.Bounds); i++ {
		if !allValues(x.Bounds[i]) || !allValues(y.Bounds[i]) {
			return false
		}
	}
	x.Bounds = slices.Clone(x.Bounds) // other plans have the scan with bounds of its own
	x.Bounds[field] = query.Union(x.Bounds[field], y.Bounds[field], a.Collation)
	return true
}

func allValues(list []query.Interval) bool {
	all := query.AllValues()[0]
	return len(list) == 1 && list[0].Lo.Type == all.Lo.Type && list[0].Hi.Type == all.Hi.Type && !list[0].LoOpen &&
		!list[0].HiOpen
}

// predicates collects the conditions on paths.
func (a *Access) predicates(out []predicate, list []query.Condition) []predicate {
	for i, c := range list {
		out = a.predicatesOf(out, c, predicate{top: i, elem: -1})
	}
	return out
}

func (a *Access) predicatesOf(out []predicate, c query.Condition, at predicate) []predicate {
	if path, ok := c.Path(); ok {
		at.cond, at.path = c, path
		return append(out, at)
	}
	if sub, ok := c.Elements(); ok {
		at.array, at.elem, at.only = sub.Prefix(), len(out), true
		parts, all := sub.All()
		if !all {
			parts = []query.Condition{sub}
		}
		for _, p := range parts {
			out = a.predicatesOf(out, p, at)
		}
		return out
	}
	for _, implied := range c.Implied() {
		at.only = true
		out = a.predicatesOf(out, implied, at)
	}
	return out
}

// usables returns the indexes that may answer some of the predicates.
func (a *Access) usables(preds []predicate) (out []usable) {
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		if !a.allowed(ix) || !ix.Ordered() || !a.covers(ix) {
			continue
		}
		same := a.Collation.Same(ix.Collation)
		if ix.Wild == nil {
			out = append(out, usable{ix: ix, fields: ix.KeyFields, same: same})
			continue
		}
		before, behind := ix.KeyFields[:ix.WildAt-1], ix.KeyFields[ix.WildAt+1:]
		if len(before) > 0 {
			out = append(out, usable{ix: ix, fields: before, same: same})
		}
		var seen []string
		for _, p := range preds {
			if slices.Contains(seen, p.path) || !ix.Wild.Has(p.path) || ix.Wild.Numbered(ix.Arrays) {
				continue
			}
			seen = append(seen, p.path)
			paths, nested := keyPaths(ix, p.path)
			if paths == nil {
				continue
			}
			field := store.IndexField{Path: p.path, Descending: ix.KeyFields[ix.WildAt].Descending}
			out = append(out, usable{ix: ix, fields: slices.Concat(before, []store.IndexField{field}, behind),
				wild: p.path, at: len(before), paths: paths, nested: nested, same: same})
		}
	}
	return out
}

// keyPaths returns the paths under which a wildcard index has the keys for a path: where a part of
// it may be the number of an element, the keys are those of the array. It returns nil for a path
// with more such parts than the server looks at, or two of them in a row: an array within an array
// is a key as a whole. nested is true if the path may lead to one of these.
func keyPaths(ix *store.Index, path string) (paths []string, nested bool) {
	list, elements, last := []string{""}, 0, false
	for part := range strings.SplitSeq(path, ".") {
		var next []string
		element := false
		if nested {
			return nil, false // what is in an array within an array has no key of its own
		}
		for _, prefix := range list {
			whole := part
			if prefix != "" {
				whole = prefix + "." + part
			}
			next = append(next, whole)
			if query.IsNumericPart(part) && ix.Arrays.At(prefix) {
				next, element = append(next, prefix), true
				nested = nested || ix.Arrays.Nested(prefix)
			}
		}
		if list = next; element {
			if elements++; elements > maxElements || last {
				return nil, false
			}
		}
		last = element
	}
	slices.Sort(list)
	return list, nested
}

// maxElements is how many parts of a path may be numbers of elements.
const maxElements = 8

// bounded is a predicate with the bounds that it gives a field.
type bounded struct {
	*predicate
	list []query.Interval
	how  query.Tightness
}

// on returns the predicates that bound a field.
func (u *usable) on(field int, preds []predicate) (out []bounded) {
	f := u.field(field)
	for i := range preds {
		p := &preds[i]
		if p.path != u.fields[field].Path {
			continue
		}
		g := f
		if p.elem >= 0 && g.Array && !u.arrayBehind(field, p.array) {
			g.Array = false // all conditions are about one element
		}
		if list, how, ok := p.cond.Bounds(g); ok {
			out = append(out, bounded{p, list, how})
		}
	}
	return out
}

// groups divides the predicates on a field into those that one element must fulfill together: all
// of them, if there is no array on the way.
func (u *usable) groups(field int, list []bounded) (out [][]bounded) {
	if !u.array(field) || len(list) < 2 {
		return [][]bounded{list}
	}
	for _, p := range list {
		if p.elem >= 0 && len(out) > 0 {
			last := out[len(out)-1]
			if last[0].elem == p.elem && !u.arrayBehind(field, p.array) {
				out[len(out)-1] = append(last, p)
				continue
			}
		}
		out = append(out, []bounded{p})
	}
	return out
}

// arrayBehind reports whether a field's path leads to an array behind the one that it begins with.
func (u *usable) arrayBehind(field int, array string) bool {
	from := strings.Count(array, ".")
	for part := from; part <= strings.Count(u.fields[field].Path, "."); part++ {
		if u.arrayOn(field, part) {
			return true
		}
	}
	return false
}

// together reports whether a predicate on a field may bound it beside those that bound others: not
// if both lead into the same array, unless they are about the same element.
func (u *usable) together(field int, p *bounded, chosen [][]bounded) bool {
	for i, group := range chosen {
		for _, q := range group {
			if !u.shareArray(field, i) {
				continue
			}
			if p.elem < 0 || p.elem != q.elem || u.sharesBehind(field, i, p.array) {
				return false
			}
		}
	}
	return true
}

// shareArray reports whether the paths of two fields go through the same array.
func (u *usable) shareArray(i, j int) bool { return u.sharesBehind(i, j, "") }

func (u *usable) sharesBehind(i, j int, array string) bool {
	x, y := strings.Split(u.fields[i].Path, "."), strings.Split(u.fields[j].Path, ".")
	from := strings.Count(array, ".")
	for k := 0; k < min(len(x), len(y)) && x[k] == y[k]; k++ {
		if k >= from && u.arrayOn(i, k) {
			return true
		}
	}
	return false
}

// indexPlans returns the plans that an index gives.
func (a *Access) indexPlans(u *usable, list []query.Condition, preds []predicate) (out []*indexPlan) {
	first := u.on(0, preds)
	if len(first) == 0 {
		return nil
	}
	for _, lead := range u.groups(0, first) {
		chosen := make([][]bounded, len(u.fields))
		chosen[0] = lead
		for i := 1; i < len(u.fields); i++ {
			for _, group := range u.groups(i, u.on(i, preds)) {
				group = slices.DeleteFunc(slices.Clone(group), func(p bounded) bool {
					return !u.geo() && !u.together(i, &p, chosen[:i])
				})
				if len(group) > 0 {
					chosen[i] = group
					break
				}
			}
		}
		if u.geo() && !u.asksGeometry(chosen) || u.wild != "" && len(chosen[u.at]) == 0 {
			continue // documents without the field have no key
		}
		out = append(out, a.scanOf(u, list, chosen))
	}
	return out
}

// asksGeometry reports whether one of the fields that have cells is bounded.
func (u *usable) asksGeometry(chosen [][]bounded) bool {
	for i, group := range chosen {
		if u.ix.Cells(i) != nil && len(group) > 0 {
			return true
		}
	}
	return false
}

// scanOf returns the plan that scans an index within the bounds that some predicates give its
// fields.
func (a *Access) scanOf(u *usable, list []query.Condition, chosen [][]bounded) *indexPlan {
	s := &Stage{Name: "IXSCAN", Index: u.ix, Wild: u.wild}
	tops := make([]bool, len(list))
	answered := make([]bool, len(list))
	byKey := make([]bool, len(list))
	for i, group := range chosen {
		bounds, coll := query.AllValues(), a.Collation
		if u.ix.Cells(i) != nil {
			coll = nil // cells of some versions are strings
		}
		for _, p := range group {
			if i > 0 && u.flat() {
				byKey[p.top] = byKey[p.top] || !p.only && p.how != query.Fetched && !u.ix.Multikey
				continue
			}
			bounds = query.Intersect(bounds, p.list, coll)
			tops[p.top] = true
			switch {
			case p.only:
			case u.wild != "" && i == u.at && (len(u.paths) > 1 || belowToo(p.list) && !allValues(p.list)):
			case p.how == query.Exact:
				answered[p.top] = true
			case p.how == query.Covered && !u.ix.Multikey && u.wild == "":
				byKey[p.top] = true
			}
		}
		if i < len(u.ix.Fields) && u.ix.Fields[i].Special == "hashed" && len(group) > 0 {
			bounds = u.hashed(i, bounds)
		}
		s.Bounds = append(s.Bounds, bounds)
	}
	switch {
	case u.wild != "":
		s.Several = belowToo(s.Bounds[u.at])
		s.Bounds = slices.Concat(s.Bounds[:u.at], wildBounds(u, s.Bounds[u.at]), s.Bounds[u.at+1:])
	case u.ix.Wild != nil:
		s.Several = true
		s.Bounds = append(s.Bounds, anyPath)
		for len(s.Bounds) < len(u.ix.KeyFields) {
			s.Bounds = append(s.Bounds, query.AllValues())
		}
	}
	var keyed, rest []query.Condition
	for i, c := range list {
		switch {
		case answered[i]:
		case byKey[i]:
			keyed = append(keyed, c)
		default:
			rest = append(rest, c)
		}
	}
	s.Filter = query.Joined(keyed)
	return &indexPlan{s, query.Joined(rest), tops}
}

// hashed returns the points of a hashed field's index for those of its values.
func (u *usable) hashed(i int, list []query.Interval) (out []query.Interval) {
	if allValues(list) {
		return list
	}
	for _, in := range list {
		v := u.ix.Stored(i, in.Lo)
		out = query.Union(out, []query.Interval{{Lo: v, Hi: v}}, nil)
	}
	return out
}

// wholeScan returns the plan that scans all of an index and matches the query on the documents.
func (a *Access) wholeScan(ix *store.Index, back bool) *Stage {
	s := &Stage{Name: "IXSCAN", Index: ix, Back: back}
	for range ix.KeyFields {
		s.Bounds = append(s.Bounds, query.AllValues())
	}
	return fetch(s, a.remaining())
}

// remaining is the query's filter, nil if it takes all documents.
func (a *Access) remaining() *query.Filter {
	if a.Filter == nil || a.Filter.MatchesAll() {
		return nil
	}
	return a.Filter
}

// belowToo reports whether bounds take documents, whose fields have the keys.
func belowToo(list []query.Interval) bool {
	return slices.ContainsFunc(list, func(in query.Interval) bool { return !in.IsPoint() && mayBeObject(in) })
}

// anyPath are the bounds of a wildcard's path where all keys count: MinKey is that of documents
// without one.
var anyPath = []query.Interval{
	{Lo: bson.RawValue{Type: bson.TypeMinKey}, Hi: bson.RawValue{Type: bson.TypeMinKey}},
	{Lo: bsondoc.StringValue(""), Hi: bsondoc.DocumentValue(bsondoc.OrEmpty(nil)), HiOpen: true},
}

// wildBounds are the bounds of a wildcard index for one path: documents below the path have keys
// with longer ones.
func wildBounds(u *usable, list []query.Interval) [][]query.Interval {
	text := func(s string) query.Interval {
		v := bsondoc.StringValue(s)
		return query.Interval{Lo: v, Hi: v}
	}
	var paths []query.Interval
	for _, path := range u.paths {
		paths = query.Union(paths, []query.Interval{text(path)}, nil)
		if belowToo(list) {
			below := text(path + ".")
			below.Hi, below.HiOpen = bsondoc.StringValue(path+"/"), true
			paths = query.Union(paths, []query.Interval{below}, nil)
		}
	}
	return [][]query.Interval{paths, list}
}
