package planner

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// maxMerged is how many scans a list of points may be taken apart into, so that their results can
// be merged in order.
const maxMerged = 200

// choose finds the plan for a query.
func (a *Access) choose(p *Plan) error {
	if err := a.useText(); err != nil {
		return err
	}
	if f := a.Filter; f != nil && f.NeedsGeoIndex() && a.Wants.Tailable {
		return srverr.New(srverr.BadValue, "Tailable cursors and geo $near cannot be used together")
	}
	if f := a.Filter; f != nil && f.NeedsGeoIndex() && !nearIndexed(a.Coll, f.Near()) {
		return a.fail(srverr.NoQueryExecutionPlans, "unable to find index for $geoNear query")
	}
	if s := a.byID(); s != nil {
		p.Root, p.Sorted = s, true
		return nil
	}
	if s := a.express(); s != nil {
		p.Root, p.Sorted = s, true
		return nil
	}
	if a.Wants.Count && p.Filter == nil && a.Hint.Type == 0 && !a.shardFiltered {
		p.Root = &Stage{Name: "RECORD_STORE_FAST_COUNT"}
		return nil
	}
	settled, scans, down := a.settled()
	if settled != nil { // it goes before a hint
		a.Hint = bson.RawValue{}
	}
	hinted, natural, back, err := a.hinted()
	if err != nil {
		return err
	}
	if scans && !slices.ContainsFunc(a.Coll.Indexes(), func(ix store.Index) bool { return settled.allows(&ix) }) {
		natural, back = true, down
	}
	if a.Natural && hinted != nil {
		return srverr.New(srverr.BadValue, "index hint not allowed with $natural sort order")
	}
	if settled != nil {
		a.filter = settled
	} else if a.Memory != nil && !a.Natural {
		if a.filter = a.Memory.filterFor(a); a.filter != nil {
			hinted, natural, p.Filtered = nil, false, true // it goes before a hint
		}
	}
	bounded := len(a.Min) > 5 || len(a.Max) > 5
	switch {
	case bounded && natural:
		return a.fail(srverr.NoQueryExecutionPlans, "min and max are incompatible with $natural")
	case bounded:
		s, err := a.useBounds(hinted)
		if err != nil {
			return err
		}
		a.order(p, []*Stage{s})
		return nil
	case a.Wants.Tailable && a.NoScan != nil && a.NoScan():
		return a.fail(srverr.NoQueryExecutionPlans,
			"Running with 'notablescan', so tailable cursors (which always do a table scan) are not allowed")
	case natural || a.Natural || a.Wants.Tailable:
		p.Root = a.collection(back || a.Back)
		return nil
	}
	if hinted != nil && a.Filter != nil && a.Filter.NeedsGeoIndex() && !nearIn(hinted, a.Filter.Near()) {
		return a.fail(srverr.NoQueryExecutionPlans, "unable to find index for $geoNear query")
	}
	if s := a.special(hinted); s != nil {
		p.Root = s
		return nil
	}
	if s := a.nearPlan(hinted); s != nil {
		p.Root = s
		return nil
	}
	if p.Filter == nil && a.Sort == nil && hinted == nil && a.Wants.Distinct == "" {
		p.Root = a.collection(false)
		return nil
	}
	if a.byBranch(p, hinted) {
		return nil
	}
	var list []*Stage
	if p.Filter != nil {
		only := a.onlyIndex(hinted)
		list = only.plans(p.Filter.Condition())
	}
	if len(list) == 0 && hinted != nil {
		if hinted.Wild != nil || !hinted.Ordered() {
			return a.fail(srverr.NoQueryExecutionPlans, "No query solutions")
		}
		list = []*Stage{a.wholeScan(hinted, false)}
	}
	list = a.withSorted(list, hinted)
	if len(list) == 0 {
		list = a.distinctScans()
	}
	if len(list) == 0 && settled != nil && !scans { // what is set is of no use
		a.Settings, a.filter = nil, nil
		return a.choose(p)
	}
	if len(list) == 0 {
		if a.NoScan != nil && p.Filter != nil && a.NoScan() {
			return a.fail(srverr.NoQueryExecutionPlans, "No indexed plans available, and running with 'notablescan'")
		}
		list = []*Stage{a.clustered()}
	}
	return a.order(p, list)
}

// clustered is the plan without an index: of a clustered collection it reads the documents between
// the bounds of _id, by which they lie.
func (a *Access) clustered() *Stage {
	s := a.collection(false)
	if !a.Coll.Clustered || s.Filter == nil || a.Coll.Sharded() {
		return s
	}
	bounds, ok := s.Filter.Bounds("_id", false, a.Collation.Same(a.Coll.Collation))
	if !ok || len(bounds) == 0 || bounds[0].Lo.Type == bson.TypeMinKey && bounds[0].Hi.Type == bson.TypeMaxKey {
		return s
	}
	s.Name = "CLUSTERED_IXSCAN"
	s.First, s.Last = bounds[0].Lo, bounds[len(bounds)-1].Hi
	return s
}

// collection is the plan that reads all documents.
func (a *Access) collection(back bool) *Stage {
	return &Stage{Name: "COLLSCAN", Back: back, Filter: a.remaining()}
}

// onlyIndex returns the access with a hinted index as the only one that it may use.
func (a *Access) onlyIndex(hinted *store.Index) *Access {
	if hinted == nil {
		return a
	}
	out := *a
	out.hint = hinted.Name
	return &out
}

// allowed reports whether a query may use an index at all.
func (a *Access) allowed(ix *store.Index) bool {
	switch {
	case a.hint != "":
		return ix.Name == a.hint
	case a.filter != nil:
		return a.filter.allows(ix) && !ix.Hidden
	}
	return !ix.Hidden
}

// special is the plan for a query that an index without keys here answers, nil if it is another
// one.
func (a *Access) special(hinted *store.Index) *Stage {
	if hinted != nil && !hinted.Ordered() {
		return fetch(&Stage{Name: "IXSCAN", Index: hinted}, a.remaining())
	}
	f := a.Filter
	if f == nil {
		return nil
	}
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		switch {
		case f.NeedsTextIndex() && ix.Text != nil:
			search, _ := f.TextSearch()
			return &Stage{Name: "TEXT", Index: ix, Filter: f, Search: search}
		}
	}
	return nil
}

// byBranch plans the branches of an $or one by one, if the query is one: each gets the plan that is
// best for it.
func (a *Access) byBranch(p *Plan, hinted *store.Index) bool {
	if p.Filter == nil || hinted != nil || a.Wants.Tailable {
		return false
	}
	branches, ok := p.Filter.Condition().Any()
	if !ok {
		return false
	}
	inputs := make([]branch, len(branches))
	for i, b := range branches {
		list := a.plans(b)
		if len(list) == 0 {
			return false
		}
		inputs[i] = branch{list[0], []query.Condition{b}}
		if len(list) > 1 {
			one := Access{Coll: a.Coll, Filter: query.Joined([]query.Condition{b}), Collation: a.Collation}
			t := one.try(&Plan{Coll: a.Coll, access: &one}, list)
			inputs[i].Stage = list[t.Best[0]]
		}
	}
	p.ByBranch = true
	// Which plan is best was decided; there is nothing to compare.
	return a.order(p, []*Stage{a.union(inputs)}) == nil
}

// withSorted adds the plans that read all of an index because it has the wanted order, unless one
// of those there is comes in order.
func (a *Access) withSorted(list []*Stage, hinted *store.Index) []*Stage {
	if a.Sort == nil || hinted != nil {
		return list
	}
	for _, s := range list {
		if _, ok := a.sortedPlan(s); ok {
			return list
		}
	}
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		if !a.allowed(ix) || !ix.ByValue() || ix.Wild != nil || ix.Sparse || !a.covers(ix) {
			continue
		}
		s := a.wholeScan(ix, false)
		if _, ok := a.sortedPlan(s); ok {
			list = append(list, s)
		}
	}
	return list
}

// distinctScans are the plans that read an index because it has the values that are wanted.
func (a *Access) distinctScans() []*Stage {
	if a.Wants.Distinct == "" || a.remaining() != nil {
		return nil
	}
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		if !a.allowed(ix) || !ix.ByValue() || ix.Wild != nil || ix.Sparse || ix.Partial != nil ||
			!a.Collation.Same(ix.Collation) {
			continue
		}
		if ix.Fields[0].Path == a.Wants.Distinct && ix.Fields[0].Special == "" && a.distinctKeys(ix, 0) {
			return []*Stage{a.wholeScan(ix, false)}
		}
	}
	return nil
}

// order makes plans come in the wanted order as far as indexes allow, fetches what has to be
// fetched, and chooses the best.
func (a *Access) order(p *Plan, list []*Stage) error {
	sorted := make([]bool, len(list))
	for i, s := range list {
		if a.Sort != nil {
			if in, ok := a.sortedPlan(s); ok {
				list[i], sorted[i] = in, true
			}
		}
		list[i] = a.fetched(list[i], sorted[i])
		switch {
		case a.Wants.Count, a.Wants.Keyless:
			list[i] = a.counting(list[i])
		case a.Wants.Distinct != "" && (a.Sort == nil || sorted[i]):
			list[i], _ = a.distinctScan(list[i])
		}
	}
	best := 0
	if len(list) > 1 {
		best = a.best(p, list, sorted)
	}
	p.Root, p.Sorted = list[best], sorted[best]
	for i, s := range list {
		if i != best && (p.Trial == nil) {
			p.Rejected = append(p.Rejected, s)
		}
	}
	if p.Trial != nil {
		if a.Explains {
			p.Trial.Remembered = a.remembered(list)
		}
		for _, i := range p.Trial.Best[1:] {
			p.Rejected = append(p.Rejected, a.finish(list[i], sorted[i]))
		}
	}
	return nil
}

// fetched fetches the documents, unless the keys have all that is wanted of them.
func (a *Access) fetched(s *Stage, sorted bool) *Stage {
	if s.fetched() || a.coveredBy(s, sorted) {
		return s
	}
	return &Stage{Name: "FETCH", Inputs: []*Stage{s}}
}

// coveredBy reports whether the keys of a plan have all that is wanted.
func (a *Access) coveredBy(s *Stage, sorted bool) bool {
	if a.Coll.Sharded() || a.shardFiltered {
		return false
	}
	if a.Wants.Count || a.Wants.Keyless && (a.Sort == nil || sorted) {
		return true
	}
	var paths []string
	switch {
	case a.Wants.ReturnKey:
	case a.Wants.Distinct != "" && !a.Wants.First:
		paths = []string{a.Wants.Distinct}
	case a.Wants.Paths != nil:
		paths = a.Wants.Paths
	case a.Wants.Projection != nil:
		list, ok := a.Wants.Projection.Fields()
		if !ok {
			return false
		}
		paths = list
	default:
		return false
	}
	if a.Sort != nil && !sorted {
		for _, f := range a.Sort.Fields() {
			if f.Meta != "" {
				return false
			}
			paths = append(paths, f.Path)
		}
	}
	for _, path := range paths {
		if !s.has(path) {
			return false
		}
	}
	return true
}

// has reports whether the keys that a plan yields have the value at a path.
func (s *Stage) has(path string) bool {
	if s.Name != "IXSCAN" {
		for _, in := range s.Inputs {
			if !in.has(path) {
				return false
			}
		}
		return len(s.Inputs) > 0
	}
	if s.Index.Collation != nil && !s.onlyPlain(path) {
		return false
	}
	if s.Index.Compound() || namesElement(path) { // which is an element to the index, and a field to a projection
		return false
	}
	if s.Wild != "" {
		u := usable{ix: s.Index, wild: s.Wild}
		return path == s.Wild && !u.array(0) && !slices.ContainsFunc(s.Bounds[1], mayBeObject)
	}
	for i, f := range s.Index.Fields {
		if f.Path == path {
			return f.Special == "" && !s.Index.Arrays.Any(i)
		}
	}
	return false
}

// onlyPlain reports whether the bounds of a path leave out all values that a collation compares.
func (s *Stage) onlyPlain(path string) bool {
	at := slices.IndexFunc(s.Index.Fields, func(f store.IndexField) bool { return f.Path == path })
	if s.Wild == path && s.Wild != "" {
		at = 1 // behind the path itself
	}
	return at >= 0 && at < len(s.Bounds) && !slices.ContainsFunc(s.Bounds[at], func(in query.Interval) bool {
		return overlaps(in, bson.TypeString, bson.TypeBinary)
	})
}

// mayBeObject reports whether an interval has documents or arrays.
func mayBeObject(in query.Interval) bool {
	return overlaps(in, bson.TypeEmbeddedDocument, bson.TypeBinary)
}

// overlaps reports whether an interval has values from one type on and before another.
func overlaps(in query.Interval, from, to bson.Type) bool {
	lo, hi := query.Rank(in.Lo.Type), query.Rank(in.Hi.Type)
	return lo < query.Rank(to) && (hi > query.Rank(from) || hi == query.Rank(from) && !(in.HiOpen && isLeast(in.Hi)))
}

func isLeast(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString:
		return len(v.Value) == 5
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return len(v.Value) == 5
	}
	return false
}

// sortedPlan returns the plan so that it yields its documents in the wanted order, without sorting
// them all.
func (a *Access) sortedPlan(s *Stage) (*Stage, bool) {
	switch s.Name {
	case "FETCH":
		in, ok := a.sortedPlan(s.Inputs[0])
		if !ok {
			return nil, false
		}
		out := *s
		out.Inputs = []*Stage{in}
		return &out, true
	case "OR":
		merge := &Stage{Name: "SORT_MERGE", Sort: a.Sort, Spec: a.Wants.SortSpec}
		for _, in := range s.Inputs {
			sorted, ok := a.sortedPlan(in)
			if !ok {
				return nil, false
			}
			if sorted.Name == "SORT_MERGE" {
				merge.Inputs = append(merge.Inputs, sorted.Inputs...)
			} else {
				merge.Inputs = append(merge.Inputs, sorted)
			}
		}
		return merge, len(merge.Inputs) <= maxMerged
	case "IXSCAN":
		if back, ok := a.inOrder(s, s.Bounds); ok {
			out := *s
			out.Back = back
			return &out, true
		}
		return a.explode(s)
	}
	return nil, false
}

// inOrder reports whether a scan has its documents in the wanted order, and in which direction it
// goes then.
func (a *Access) inOrder(s *Stage, bounds [][]query.Interval) (back, ok bool) {
	ix := s.Index
	if ix.Compound() {
		return false, false // the documents are sorted
	}
	fields := ix.KeyFields
	u := usable{ix: ix, fields: fields, wild: s.Wild, same: a.Collation.Same(ix.Collation)}
	first := 0
	if s.Wild != "" {
		fields = []store.IndexField{{Path: "$_path"}, {Path: s.Wild, Descending: fields[1].Descending}}
		first = 1
		if u.array(0) || len(bounds[0]) != 1 || slices.ContainsFunc(bounds[1], mayBeObject) {
			return false, false
		}
	}
	point := func(i int) bool {
		if bounds == nil || i >= len(bounds) || len(bounds[i]) != 1 || !bounds[i][0].IsPoint() {
			return false
		}
		return fields[i].Special == "" && (s.Wild != "" || !ix.Arrays.Any(i)) &&
			(u.same || !overlaps(bounds[i][0], bson.TypeString, bson.TypeBinary))
	}
	i, directed := first, false
	for _, f := range a.Sort.Fields() {
		if f.Meta != "" {
			return false, false
		}
		if k := slices.IndexFunc(fields, func(x store.IndexField) bool { return x.Path == f.Path }); k >= 0 &&
			point(k) {
			continue // all have the same value
		}
		for i < len(fields) && fields[i].Path != f.Path && a.skippable(s, bounds, i) {
			i++
		}
		if i >= len(fields) || fields[i].Path != f.Path || fields[i].Special != "" || !a.keepsOrder(s, &u, bounds, i) {
			return false, false
		}
		reverse := f.Descending != fields[i].Descending
		if directed && reverse != back {
			return false, false
		}
		back, directed = reverse, true
		i++
	}
	return back, true
}

// skippable reports whether all keys within the bounds have the same value of a field.
func (a *Access) skippable(s *Stage, bounds [][]query.Interval, i int) bool {
	return i < len(bounds) && len(bounds[i]) == 1 && bounds[i][0].IsPoint()
}

// keepsOrder reports whether the documents come in the order of a field of the index: an array has
// several keys, of which the bounds must not leave out the one that it sorts by.
func (a *Access) keepsOrder(s *Stage, u *usable, bounds [][]query.Interval, i int) bool {
	if bounds == nil && s.Range != nil {
		return u.same && !s.Index.Multikey
	}
	if !u.same && slices.ContainsFunc(bounds[i], func(in query.Interval) bool {
		return overlaps(in, bson.TypeString, bson.TypeBinary)
	}) {
		return false
	}
	if s.Wild != "" || !s.Index.Arrays.Any(i) {
		return true
	}
	if s.Index.Sparse && strings.Contains(s.Index.Fields[i].Path, ".") {
		return false // an element without the field sorts as null, and has no key
	}
	for j := range s.Index.Fields {
		if (j == i || u.shareArray(i, j)) && !allValues(bounds[j]) {
			return false
		}
	}
	return true
}

// explode takes a scan apart into one for each combination of the points that bound its first
// fields, whose results are in order and can be merged.
func (a *Access) explode(s *Stage) (*Stage, bool) {
	if s.Range != nil || s.Index.Wild != nil {
		return nil, false
	}
	n, total := 0, 1
	for ; n < len(s.Bounds); n++ {
		if len(s.Bounds[n]) == 0 ||
			slices.ContainsFunc(s.Bounds[n], func(in query.Interval) bool { return !in.IsPoint() }) {
			break
		}
		if total *= len(s.Bounds[n]); total > maxMerged {
			return nil, false
		}
	}
	if n == 0 || total < 2 {
		return nil, false
	}
	merge := &Stage{Name: "SORT_MERGE", Sort: a.Sort, Spec: a.Wants.SortSpec}
	for k := range total {
		one := *s
		one.Bounds = slices.Clone(s.Bounds)
		rest := k
		for i := n - 1; i >= 0; i-- {
			one.Bounds[i] = []query.Interval{s.Bounds[i][rest%len(s.Bounds[i])]}
			rest /= len(s.Bounds[i])
		}
		back, ok := a.inOrder(&one, one.Bounds)
		if !ok {
			return nil, false
		}
		one.Back = back
		merge.Inputs = append(merge.Inputs, &one)
	}
	return merge, true
}

// finish puts on a plan what the command does with its documents.
func (a *Access) finish(s *Stage, sorted bool) *Stage {
	w := &a.Wants
	if s.isExpress() {
		return s // it does all of it
	}
	if a.shardFiltered {
		s = &Stage{Name: "SHARDING_FILTER", Inputs: []*Stage{s}}
	}
	skip := w.Skip
	if w.Count {
		return s
	}
	if a.Sort != nil && !sorted {
		kind := "simple"
		if !s.fetched() || a.Sort.NeedsMeta("textScore") ||
			w.Projection != nil && (w.Projection.NeedsMeta("textScore") || w.Projection.NeedsMeta("recordId") ||
				w.Projection.NeedsMeta("indexKey")) {
			kind = "default"
		}
		s = &Stage{Name: "SORT", Sort: a.Sort, Spec: w.SortSpec, Type: kind, Inputs: []*Stage{s}}
		if w.Limit > 0 {
			s.N = w.Limit + skip
		}
	}
	if skip > 0 {
		if s.Name == "FETCH" && s.Filter == nil {
			s = &Stage{Name: "FETCH", Inputs: []*Stage{{Name: "SKIP", N: skip, Inputs: s.Inputs}}}
		} else {
			s = &Stage{Name: "SKIP", N: skip, Inputs: []*Stage{s}}
		}
	}
	switch {
	case w.ReturnKey:
		s = &Stage{Name: "RETURN_KEY", Inputs: []*Stage{s}}
	case w.Projection != nil:
		name := "PROJECTION_DEFAULT"
		if w.Paths == nil && w.Projection.Simple() {
			name = "PROJECTION_SIMPLE"
			if !s.fetched() {
				name = "PROJECTION_COVERED"
			}
		}
		s = &Stage{Name: name, Spec: w.Projected, Inputs: []*Stage{s}}
	}
	if w.Limit > 0 && (a.Sort == nil || sorted) {
		s = &Stage{Name: "LIMIT", N: w.Limit, Inputs: []*Stage{s}}
	}
	return s
}

// signature tells plans apart: which indexes they use, and how.
func (s *Stage) signature() string {
	var b strings.Builder
	s.Walk(func(s *Stage) {
		b.WriteString(s.Name)
		if s.Index != nil {
			b.WriteString("(" + s.Index.Name + "/" + s.Wild + ")")
			for i, list := range s.Bounds {
				if !allValues(list) {
					b.WriteByte(byte('0' + i))
				}
			}
		}
		b.WriteByte(' ')
	})
	return b.String()
}
