// Package planner chooses how a command reads the documents of a collection: with which index, on
// which shards, in which order.
package planner

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Access is how a command asks for documents of a collection.
type Access struct {
	Coll     *store.Coll
	Filter   *query.Filter // nil: all
	Sort     *query.Sort   // nil: any order
	Natural  bool          // in the order of the records, backward if back is set
	Back     bool
	Hint     bson.RawValue
	Min, Max bson.Raw
	// Collation of the query; an index with another one is of no use for strings.
	Collation *query.Collation
	// Text describes the query, for errors; nil leaves the description out.
	Text func() string
	// Only are the shards to look at; nil: all that may have something. Reach checks that they are
	// there; it may be nil.
	Only  []int
	Reach func(shards ...int) error
	// Table says which shards have what; nil: the collection's own metadata do.
	Table *sharding.Metadata
	// NoScan reports that the collection must not be read from end to end.
	NoScan func() bool
}

// fail returns the error of a query that cannot be planned.
func (a *Access) fail(code int32, text string) error {
	e := srverr.New(code, "%s", text)
	if a.Text == nil {
		return e
	}
	return e.Prefix("error processing query: " + a.Text() + " planner returned error :: caused by :: ")
}

// Plan is how a command reads a collection's documents.
type Plan struct {
	Scan   *store.Scan
	Index  *store.Index  // nil: the whole collection
	Filter *query.Filter // what remains to be matched; nil: nothing
	Sort   *query.Sort   // what remains to be sorted; nil: nothing
	Back   bool
	ranges []store.Range
	Sorted bool // the index has the documents in the wanted order
}

// WholeIndex reports whether the plan goes through all of an index.
func (p *Plan) WholeIndex() bool {
	return p.Index != nil && (len(p.ranges) == 0 || len(p.ranges) == 1 && p.ranges[0] == store.Range{})
}

// Plan chooses an index, and of a sharded collection the shards that may have something.
func (a *Access) Plan() (*Plan, error) {
	p, err := a.choose()
	if err != nil {
		return nil, err
	}
	shards := []int{a.Coll.Shard()}
	if sh := a.table(); sh != nil {
		shards = sh.Shards()
		if a.Filter != nil {
			shards = sh.Target(a.Filter, a.Filter.SimpleCollation())
		}
		if a.Only != nil {
			shards = a.Only
		}
		p.Scan.Only(shards)
		shards = p.Scan.Reached()
		if p.Sorted {
			p.Scan.Merge()
		}
	}
	if a.Reach != nil && !a.Coll.Derived() {
		err = a.Reach(shards...)
	}
	return p, err
}

// table returns what says where the collection's documents are, nil if it is not sharded.
func (a *Access) table() *sharding.Metadata {
	if a.Table != nil && a.Coll.Sharded() {
		return a.Table
	}
	return sharding.Of(a.Coll)
}

// choose chooses an index.
func (a *Access) choose() (*Plan, error) {
	if err := a.useText(); err != nil {
		return nil, err
	}
	if f := a.Filter; f != nil && f.NeedsGeoIndex() && !nearIndexed(a.Coll, f.Near()) {
		return nil, a.fail(srverr.NoQueryExecutionPlans, "unable to find index for $geoNear query")
	}
	p := &Plan{Filter: a.Filter, Sort: a.Sort}
	if p.Filter != nil && p.Filter.MatchesAll() {
		p.Filter = nil
	}
	hinted, natural, back, err := a.hinted()
	if err != nil {
		return nil, err
	}
	if a.Natural && hinted != nil {
		return nil, srverr.New(srverr.BadValue, "index hint not allowed with $natural sort order")
	}
	bounded := len(a.Min) > 5 || len(a.Max) > 5
	switch {
	case bounded && natural:
		return nil, a.fail(srverr.NoQueryExecutionPlans, "min and max are incompatible with $natural")
	case bounded:
		return p, a.useBounds(p, hinted)
	}
	if natural || a.Natural {
		p.Back = back || a.Back
		p.Scan = store.NewScan(a.Coll, p.Back, nil)
		return p, nil
	}
	if hinted != nil {
		if p.Filter == nil && slices.ContainsFunc(hinted.Fields, func(f store.IndexField) bool { return f.Special == "wildcard" }) {
			return nil, a.fail(srverr.NoQueryExecutionPlans, "No query solutions") // it cannot be scanned as a whole
		}
		a.useIndex(p, hinted)
		return p, nil
	}
	if ix := a.narrowest(); ix != nil {
		a.useIndex(p, ix)
		return p, nil
	}
	if a.Sort != nil {
		for i := range a.Coll.Indexes() {
			ix := &a.Coll.Indexes()[i]
			if ok, back := a.sorted(ix); ok && a.covers(ix) && !ix.Sparse && !ix.Hidden {
				p.Back = back
				a.useIndex(p, ix)
				return p, nil
			}
		}
	}
	if a.NoScan != nil && p.Filter != nil && a.NoScan() {
		return nil, a.fail(srverr.NoQueryExecutionPlans, "No indexed plans available, and running with 'notablescan'")
	}
	p.Scan = store.NewScan(a.Coll, false, nil)
	return p, nil
}

// useBounds takes the part of an index between min and max.
func (a *Access) useBounds(p *Plan, ix *store.Index) error {
	if ix == nil {
		return a.fail(51173, "When using min()/max() a hint of which index to use must be provided")
	}
	bound := func(doc bson.Raw) bson.Raw {
		if len(doc) > 5 {
			return doc
		}
		return nil
	}
	r, ok, inOrder := ix.Between(bound(a.Min), bound(a.Max))
	switch {
	case !ok:
		return a.fail(51174, "The index chosen is not compatible with min/max")
	case !inOrder:
		return a.fail(51175, "The value provided for min() does not come before the value provided for max() in the hinted index")
	}
	a.useIndex(p, ix)
	p.ranges = []store.Range{r}
	p.Scan = store.NewIndexScan(a.Coll, ix, p.Back, p.ranges)
	return nil
}

func (a *Access) useIndex(p *Plan, ix *store.Index) {
	p.Index = ix
	if !ix.Ordered() { // an index without keys here: all that it has is looked through
		p.Scan = store.NewIndexScan(a.Coll, ix, false, nil)
		ix.Uses.Add(1)
		return
	}
	ranges, score := ix.Ranges(a.Filter, a.Collation.Same(ix.Collation))
	if score == 0 {
		ranges = []store.Range{{}}
	}
	p.ranges = ranges
	if ok, back := a.sorted(ix); ok && a.Sort != nil {
		p.Sort, p.Back, p.Sorted = nil, back, true
	}
	p.Scan = store.NewIndexScan(a.Coll, ix, p.Back, p.ranges)
	ix.Uses.Add(1)
}

// covers reports whether an index has all documents that the query can match: a partial one has
// them if the query asks for no others.
func (a *Access) covers(ix *store.Index) bool {
	return ix.Partial == nil || a.Filter != nil && a.Collation.Same(ix.Collation) && a.Filter.Implies(ix.Partial)
}

// narrowest returns the index that narrows the query down most, nil if none does. Among equals one
// that has the documents in the wanted order is better.
func (a *Access) narrowest() *store.Index {
	var best *store.Index
	bestScore := 0
	for i := range a.Coll.Indexes() {
		ix := &a.Coll.Indexes()[i]
		if ix.Hidden || !a.covers(ix) || !ix.Ordered() {
			continue
		}
		_, score := ix.Ranges(a.Filter, a.Collation.Same(ix.Collation))
		if score == 0 {
			continue
		}
		score *= 2
		if ok, _ := a.sorted(ix); ok {
			score++
		}
		if score > bestScore {
			best, bestScore = ix, score
		}
	}
	return best
}

// sorted tells whether an index has the documents in the wanted order, or in the reverse one.
func (a *Access) sorted(ix *store.Index) (ok, back bool) {
	if a.Sort == nil || ix.Multikey || !ix.Ordered() || !a.Collation.Same(ix.Collation) {
		return false, false
	}
	fields := a.Sort.Fields()
	if len(fields) > len(ix.Fields) {
		return false, false
	}
	for i, f := range fields {
		if f.Meta != "" || f.Path != ix.Fields[i].Path {
			return false, false
		}
		reverse := f.Descending != ix.Fields[i].Descending
		if i == 0 {
			back = reverse
		} else if reverse != back {
			return false, false
		}
	}
	return true, back
}

// hinted returns the index that the command's hint names.
func (a *Access) hinted() (ix *store.Index, natural, back bool, err error) {
	switch a.Hint.Type {
	case 0:
		return nil, false, false, nil
	case bson.TypeString:
		name, _ := a.Hint.StringValue()
		for i := range a.Coll.Indexes() {
			if ix := &a.Coll.Indexes()[i]; ix.Name == name && !ix.Hidden {
				return ix, false, false, nil
			}
		}
	case bson.TypeEmbeddedDocument:
		pattern := bson.Raw(a.Hint.Value)
		if pattern.IsEmpty() {
			return nil, false, false, nil
		}
		if ok, back, _ := query.Natural(pattern); ok {
			return nil, true, back, nil
		}
		for i := range a.Coll.Indexes() {
			other := &a.Coll.Indexes()[i]
			switch {
			case other.Hidden || !index.SamePattern(other.Pattern, pattern):
			case ix != nil:
				return nil, false, false, a.fail(srverr.IndexNotFound, "Hint matched multiple indexes, must hint by index name. Matched: "+planned(ix)+" and "+planned(other))
			default:
				ix = other
			}
		}
		if ix != nil {
			return ix, false, false, nil
		}
	}
	return nil, false, false, a.fail(srverr.BadValue, "hint provided does not correspond to an existing index")
}

// planned describes an index as the planner's errors do.
func planned(ix *store.Index) string {
	s := "kp: " + bsontext.Document(ix.Pattern)
	if ix.Multikey {
		s += " multikey"
	}
	if ix.Sparse {
		s += " sparse"
	}
	if ix.Unique {
		s += " unique"
	}
	s += " name: '(" + ix.Name + ", )'"
	if ix.Partial != nil {
		s += " filterExpr: " + ix.Partial.String()
	}
	return s + " io: " + bsontext.Document(ix.Spec)
}

// RangeIndex returns the pattern of an index with one entry per document that begins with the
// fields of a pattern.
func RangeIndex(c *store.Coll, pattern bson.Raw) (hint bson.RawValue, ok bool) {
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		if !ix.Multikey && !ix.Sparse && ix.Partial == nil && index.IsPrefix(pattern, ix.Pattern) {
			return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: ix.Pattern}, true
		}
	}
	return hint, false
}

// ScanRange scans the entries of an index from min on and before max.
func ScanRange(c *store.Coll, hint bson.RawValue, min, max bson.Raw) (*store.Scan, error) {
	p, err := (&Access{Coll: c, Hint: hint, Min: min, Max: max}).Plan()
	if err != nil {
		return nil, err
	}
	return p.Scan, nil
}

// Describe describes a query for errors of planning it.
func Describe(ns string, filter *query.Filter, sort, projection, collation bson.Raw) string {
	if filter == nil {
		filter, _ = query.ParseFilter(bsondoc.OrEmpty(nil), nil)
	}
	return query.Describe(ns, filter, bsondoc.OrEmpty(sort), bsondoc.OrEmpty(projection), bsondoc.OrEmpty(collation))
}

// SpecialFields returns the fields of a collection's indexes of some kinds, one per index.
func SpecialFields(c *store.Coll, kinds ...string) []string {
	var out []string
	for i := range c.Indexes() {
		for _, f := range c.Indexes()[i].Fields {
			if f.Special != "" && strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+f.Special+" ") {
				out = append(out, f.Path)
				break
			}
		}
	}
	return out
}

// useText makes $text search the collection's text index, and refuses it without one.
func (a *Access) useText() error {
	if a.Filter == nil || !a.Filter.NeedsTextIndex() {
		return nil
	}
	switch {
	case a.Hint.Type != 0:
		return srverr.New(srverr.BadValue, "text and hint not allowed in same query")
	case a.Natural:
		return srverr.New(srverr.BadValue, "text expression not allowed with $natural sort order")
	case a.Filter.NeedsGeoIndex():
		return srverr.New(srverr.BadValue, "text and geoNear not allowed in same query")
	}
	for i := range a.Coll.Indexes() {
		if text := a.Coll.Indexes()[i].Text; text != nil {
			if a.Filter.NegatesText() || !a.fixesPrefix(&a.Coll.Indexes()[i]) {
				return a.fail(srverr.NoQueryExecutionPlans, "failed to use text index to satisfy $text query "+
					"(if text index is compound, are equality predicates given for all prefix fields?)")
			}
			return a.Filter.SearchIn(text)
		}
	}
	return srverr.New(srverr.IndexNotFound, "text index required for $text query")
}

// fixesPrefix reports whether the query asks for one value of each field that stands before the
// text in a text index.
func (a *Access) fixesPrefix(ix *store.Index) bool {
	for _, f := range ix.Fields {
		if f.Special == "text" {
			break
		}
		list, ok := a.Filter.Bounds(f.Path, false, a.Collation.Same(ix.Collation))
		if !ok || len(list) == 0 || !list[0].IsPoint() || len(list) > 1 && (len(list) > 2 || list[0].Lo.Type != bson.TypeUndefined) {
			return false // null has two keys
		}
	}
	return true
}

// nearIndexed reports whether the collection has a geo index for the filter's $near.
func nearIndexed(c *store.Coll, n *query.Near) bool {
	for _, kind := range []string{"2d", "2dsphere"} {
		if n.Uses(kind) && slices.Contains(SpecialFields(c, kind), n.Path()) {
			return true
		}
	}
	return false
}
