package planner

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Whole returns the plan that has not run, with what the command does with its documents.
func (p *Plan) Whole() *Stage {
	a := p.access
	s := p.Root.Clone()
	if s.Name == "TEXT" {
		s = a.textPlan(s.Index)
	}
	s = a.finish(s, p.Sorted)
	if p.ByBranch {
		s = &Stage{Name: "SUBPLAN", Inputs: []*Stage{s}}
	}
	if a.Wants.Count && s.Name == "RECORD_STORE_FAST_COUNT" {
		s.N, s.Skip = a.Wants.Limit, int(a.Wants.Skip)
	} else if a.Wants.Count {
		s = &Stage{Name: "COUNT", N: a.Wants.Limit, Skip: int(a.Wants.Skip), Inputs: []*Stage{s}}
	}
	return s
}

// Run runs a plan to its end, or until it has yielded as many documents as are wanted (0: all), and
// calls f for each; f may be nil.
func (p *Plan) Run(s *Stage, run Running, most int64, f func(doc bson.Raw) error) error {
	e := p.env()
	e.orphans = p.access.shardFiltered
	e.meta, e.sortMemory = p.access.Wants.Meta, p.access.Wants.SortMemory
	var r row
	for n := int64(1); ; n++ {
		st, err := s.work(e, &r)
		if err != nil {
			return err
		}
		if n%checkAfter == 0 {
			if err := run.Interrupted(); err != nil {
				return err
			}
		}
		switch st {
		case isEOF:
			return nil
		case advanced:
			if f != nil {
				if err := f(r.document()); err != nil {
					return err
				}
			}
			if s.Advanced == most && most > 0 {
				return nil
			}
		}
	}
}

// Tailable reports whether the cursor stays open at the end.
func (p *Plan) Tailable() bool { return p.access.Wants.Tailable }

// Scans reports whether the plan has a stage of a name.
func (p *Plan) Scans(name string) (has bool) {
	p.Root.Walk(func(s *Stage) { has = has || s.Name == name })
	return has
}

// Blocks reports whether the documents are sorted once all are there.
func (p *Plan) Blocks() bool { return p.blocks }

// AtOnce reports whether the plan is the one stage that finds a document by itself.
func (p *Plan) AtOnce() bool { return p.Root.atOnce() }

// Hashes returns the short forms of the query's shape and of its key in the plan cache. ok is false
// if no plan is kept for such a query.
func (p *Plan) Hashes() (query, key string, ok bool) {
	a := p.access
	if p.Root.atOnce() || p.Root.Name == "EOF" || a.Hint.Type != 0 || len(a.Min)+len(a.Max) > 0 ||
		a.Filter == nil && a.Sort == nil && a.Wants.SortSpec == nil {
		return "", "", false
	}
	if p.Filter == nil && len(a.Wants.SortSpec) <= 5 || len(a.Coll.Indexes()) == 0 {
		return "", "", false
	}
	return a.QueryHash(), a.PlanCacheKey(), true
}

// NoPlan is the plan for a collection that does not exist.
func (a *Access) NoPlan() *Plan {
	p := &Plan{Coll: a.Coll, Filter: a.remaining(), access: a, Root: &Stage{Name: "EOF"}}
	return p
}

// byID is the plan for a query for one _id, nil if it is another query.
func (a *Access) byID() *Stage {
	if a.Filter == nil || a.Hint.Type != 0 || a.Wants.Skip > 0 || a.Wants.Tailable || a.Natural ||
		len(a.Min)+len(a.Max) > 0 ||
		a.Explains && a.Coll.Clustered && !a.Wants.Express || // shown as what it is on a server
		!a.Coll.HasIDs() || a.Coll.Sharded() && len(a.Only) != 1 || !a.Collation.Same(a.Coll.Collation) {
		return nil
	}
	if _, ok := a.Filter.IDEquality(); !ok {
		return nil
	}
	s := &Stage{Name: "IDHACK", Filter: a.Filter}
	switch w := &a.Wants; {
	case !w.Express || a.Sort != nil || w.ReturnKey || a.Coll.Sharded() || w.Count || w.Distinct != "":
	case a.Coll.Clustered:
		s.Name = "EXPRESS_CLUSTERED_IXSCAN"
	default:
		s.Name = "EXPRESS_IXSCAN"
	}
	for i := range a.Coll.Indexes() {
		if ix := &a.Coll.Indexes()[i]; ix.IsID {
			s.Index = ix
		}
	}
	return s
}

// counting makes of a plan the one that only counts: the keys of one stretch of an index are
// counted as they are.
func (a *Access) counting(s *Stage) *Stage {
	if s.Name == "FETCH" && s.Filter == nil {
		s = s.Inputs[0]
	}
	if s.Name != "IXSCAN" || s.Filter != nil || s.Range != nil || a.shardFiltered || a.Coll.Sharded() {
		return s
	}
	if b := s.Index.Bounds(s.Bounds); !b.SingleInterval() {
		return s
	}
	out := *s
	out.Name = "COUNT_SCAN"
	return &out
}

// distinctScan makes of a plan the one that looks at one key for each value of a field; ok is false
// if the keys do not tell the values.
func (a *Access) distinctScan(s *Stage) (*Stage, bool) {
	in := s
	if in.Name == "FETCH" && in.Filter == nil {
		in = in.Inputs[0]
	}
	if in.Name != "IXSCAN" || in.Filter != nil || in.Range != nil || a.shardFiltered || a.Coll.Sharded() {
		return s, false
	}
	if in.Index.Compound() {
		return s, false
	}
	field := -1
	for i, f := range in.Index.KeyFields {
		if f.Path == a.Wants.Distinct && f.Special == "" || in.Wild == a.Wants.Distinct && in.Wild != "" && i == 1 {
			field = i
		}
	}
	if field < 0 {
		return s, false
	}
	if in.Wild != "" {
		if u := (usable{ix: in.Index, wild: in.Wild}); u.array(0) || len(in.Bounds[0]) > 1 {
			return s, false
		}
	} else if !a.distinctKeys(in.Index, field) {
		return s, false
	}
	if a.Wants.Grouped && in.Wild == "" { // each value is to come once
		for _, list := range in.Bounds[:field] {
			if len(list) != 1 || !list[0].IsPoint() {
				return s, false
			}
		}
	}
	out := *in
	out.Name, out.Skip = "DISTINCT_SCAN", field
	// The document that a key tells of has no arrays.
	if a.Wants.First && s.Name == "FETCH" || namesElement(a.Wants.Distinct) {
		return &Stage{Name: "FETCH", Inputs: []*Stage{&out}}, true
	}
	return &out, true
}

// distinctKeys reports whether the keys of an index have the values of a field as distinct takes
// them: those of an array one by one, but not of an array on the way.
func (a *Access) distinctKeys(ix *store.Index, field int) bool {
	if namesElement(a.Wants.Distinct) && a.Wants.Grouped {
		return false
	}
	return !ix.Arrays.Any(field) ||
		!a.Wants.Grouped && ix.Fields[field].Path == a.Wants.Distinct && a.remaining() == nil
}

// namesElement reports whether a part of a path may be the index of an array's element.
func namesElement(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if query.IsNumericPart(part) {
			return true
		}
	}
	return false
}

// ShownBounds are the bounds of a scan as explain has them: field by field, in the direction of the
// scan.
func (s *Stage) ShownBounds() (fields []string, bounds [][]string) {
	for i, list := range s.Bounds {
		f, name := s.Index.KeyFields[i], s.keyField(i)
		back := s.Back != f.Descending
		var out []string
		for j := range list {
			in := list[j]
			if back {
				in = list[len(list)-1-j]
			}
			if s.Index.Wild != nil && i == s.Index.WildAt-1 {
				out = append(out, in.Text(back, nil))
				continue
			}
			out = append(out, in.Text(back, func(v bson.RawValue) string { return s.Index.Shown(i, v) }))
		}
		fields, bounds = append(fields, name), append(bounds, out)
	}
	return fields, bounds
}

// KeyPattern is the pattern of the index that the stage reads, as explain has it.
func (s *Stage) KeyPattern() bson.Raw {
	if s.Index.Wild == nil {
		return s.Index.Pattern
	}
	at, doc := bson.BeginDocument(nil)
	i := 0
	for k, v := range s.Index.Pattern.All() {
		if i++; i == s.Index.WildAt {
			doc = bson.AppendInt32(doc, "$_path", 1)
			k = s.keyField(i)
		}
		doc = bson.AppendRawValue(doc, k, v)
	}
	return bson.EndDocument(doc, at)
}

// keyField is the name of a field of the keys: for the value of a wildcard the path that is looked
// for, or the wildcard if that is none.
func (s *Stage) keyField(i int) string {
	switch {
	case s.Index.Wild == nil || i != s.Index.WildAt:
		return s.Index.KeyFields[i].Path
	case s.Wild == "":
		return s.Index.Fields[i-1].Path
	}
	return s.Wild
}

// ArrayPaths are for each field of the pattern the paths at which there are arrays in some
// document.
func (s *Stage) ArrayPaths() (fields []string, paths [][]string, multikey bool) {
	if s.Index.Wild != nil {
		paths = make([][]string, len(s.Index.KeyFields))
		for i := range paths {
			fields = append(fields, s.keyField(i))
		}
		if s.Wild != "" {
			u := usable{ix: s.Index, wild: s.Wild}
			list := u.arrayPaths()
			slices.Reverse(list)
			paths[s.Index.WildAt], multikey = list, len(list) > 0
		}
		return fields, paths, multikey
	}
	for i, f := range s.Index.Fields {
		var list []string
		part := 0
		for k := 0; k <= len(f.Path); k++ {
			if k == len(f.Path) || f.Path[k] == '.' {
				if s.Index.Arrays.Holds(i, part) {
					list = append(list, f.Path[:k])
				}
				part++
			}
		}
		fields, paths = append(fields, f.Path), append(paths, list)
	}
	return fields, paths, s.Index.Multikey
}

// Span returns between which keys a scan with min and max goes: a missing one is the end of the
// index.
func (s *Stage) Span() (first, last bson.Raw) {
	first, last = s.Min, s.Max
	whole := func(t bson.Type) bson.Raw {
		at, doc := bson.BeginDocument(nil)
		for _, f := range s.Index.Fields {
			end := t
			if f.Descending && t == bson.TypeMinKey {
				end = bson.TypeMaxKey
			} else if f.Descending {
				end = bson.TypeMinKey
			}
			doc = bson.AppendRawValue(doc, f.Path, bson.RawValue{Type: end})
		}
		return bson.EndDocument(doc, at)
	}
	if first == nil {
		first = whole(bson.TypeMinKey)
	}
	if last == nil {
		last = whole(bson.TypeMaxKey)
	}
	return first, last
}

// Ends returns the first and the last key of a COUNT_SCAN, and whether they are part of it.
func (s *Stage) Ends() (first, last bson.Raw, firstIn, lastIn bool) {
	firstIn, lastIn = true, true
	a, lo := bson.BeginDocument(nil)
	b, hi := bson.BeginDocument(nil)
	for i, list := range s.Bounds {
		name := s.keyField(i)
		var in query.Interval
		if len(list) > 0 {
			in = list[0]
		}
		if s.Index.KeyFields[i].Descending != s.Back {
			in.Lo, in.Hi, in.LoOpen, in.HiOpen = in.Hi, in.Lo, in.HiOpen, in.LoOpen
		}
		lo, hi = bson.AppendRawValue(lo, name, in.Lo), bson.AppendRawValue(hi, name, in.Hi)
		firstIn, lastIn = firstIn && !in.LoOpen, lastIn && !in.HiOpen
	}
	return bson.EndDocument(lo, a), bson.EndDocument(hi, b), firstIn, lastIn
}
