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
	"allium/mongotest/internal/release"
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
	// Wants is what the command does with the documents.
	Wants Wants
	// Memory has the index filters and the plans that were good before; nil: none.
	Memory *Memory
	// Settings are those for queries of this shape; nil: there are none.
	Settings *QuerySetting
	// Explains leaves a trial out of the plan cache, and does not use it.
	Explains bool

	// Version is that whose stages are planned and counted.
	Version release.Version

	// OnShard plans for a process that leaves out what it has only left of a migration.
	OnShard bool

	filter        *IndexFilter // in force
	hint          string       // the only index that may be used
	shardFiltered bool
}

// Wants is what a command does with the documents of a plan.
type Wants struct {
	Skip, Limit int64
	// Projection is nil if the documents are wanted whole; Projected is how the command has it.
	Projection *query.Projection
	Projected  bson.Raw
	// Paths are what a projection that computes fields reads, the empty one for the whole document;
	// nil if it only includes or excludes fields.
	Paths     []string
	SortSpec  bson.Raw // how the command has the order
	Collated  bson.Raw // the collation that the command asks for, empty for that of the collection
	Engine    string   // the shape of a stage that the engine does, too; empty for none
	Count     bool     // only their number
	ReturnKey bool
	Meta      func(doc bson.Raw, name string) bson.RawValue
	// Distinct is the path whose values are wanted, empty for none.
	Distinct string
	Tailable bool
	// Grouped asks for the values of Distinct as they are, an array as a whole. Keyless asks for
	// nothing of the documents: only their number counts.
	Grouped, Keyless bool
	// First takes of the documents with one value of Distinct the first, in the wanted order.
	First bool
	// TextStage shows a search as versions before 5.0 do, with a stage TEXT on top.
	TextStage bool
	// SortMemory is how many bytes of documents a sort may hold, 0 for any number.
	SortMemory int64
	// Express finds one document past the planner, as versions from 8.0 on do.
	Express bool
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
	Coll  *store.Coll
	Index *store.Index // that the plan reads first; nil: the whole collection
	// Filter is all that a document has to match; nil: nothing.
	Filter *query.Filter
	Sort   *query.Sort // what remains to be sorted; nil: nothing
	Back   bool
	Sorted bool // the documents come in the wanted order

	// Root is the stage that yields the documents, but for what the command does with them: order,
	// skip, limit, projection. Rejected are the other plans there were.
	Root     *Stage
	Rejected []*Stage
	Trial    *Trial // of several plans; nil: there was one
	// Filtered tells that an index filter was in force, ByBranch that the branches of an $or were
	// planned one by one.
	Filtered bool
	ByBranch bool
	// From is the entry of the plan cache that the plan was taken from, or nil.
	From *Cached

	// Replanned says why a plan that was remembered was not taken; empty: it was, or there was
	// none.
	Replanned string

	access *Access
	blocks bool        // the order is made by sorting
	scan   *store.Scan // of a collection; nil: Root is worked step by step
	only   []int
}

// Plan chooses an index, and of a sharded collection the shards that may have something.
func (a *Access) Plan() (*Plan, error) {
	p := &Plan{Coll: a.Coll, Filter: a.remaining(), Sort: a.Sort, access: a}
	shards := []int{a.Coll.Shard()}
	if sh := a.table(); sh != nil {
		shards = sh.Shards()
		if a.Filter != nil {
			shards = sh.Target(a.Filter, a.Filter.SimpleCollation())
		}
		if a.Only != nil {
			shards = a.Only
		}
		p.only = shards
		reached := store.NewScan(a.Coll, false, nil)
		reached.Only(shards)
		shards = reached.Reached()
	}
	a.shardFiltered = a.OnShard && a.Coll.Sharded()
	if err := a.choose(p); err != nil {
		return nil, err
	}
	if a.Reach != nil && !a.Coll.Derived() {
		if err := a.Reach(shards...); err != nil {
			return nil, err
		}
	}
	p.settle()
	return p, nil
}

// settle notes what the chosen plan is, and opens it.
func (p *Plan) settle() {
	first := p.Root
	for len(first.Inputs) > 0 {
		first = first.Inputs[0]
	}
	p.Index, p.Back = first.Index, first.Back
	p.Root.Walk(func(s *Stage) {
		if s.Index != nil {
			s.Index.Uses.Add(1)
		}
	})
	if p.Sorted = p.Sorted && p.access.Sort != nil; p.Sorted {
		p.Sort = nil
	}
	p.blocks = p.access.Sort != nil && !p.Sorted
	if p.Root.Name == "COLLSCAN" {
		p.Root.open(p.env())
		p.scan = p.Root.scan
	}
}

func (p *Plan) env() *env {
	return &env{coll: p.Coll, only: p.only, merge: p.Sorted, direct: p.access.Version.AtLeast(7, 0)}
}

// Resume makes a plan that reads the whole collection begin behind a record.
func (p *Plan) Resume(after string) {
	p.scan = store.NewScan(p.Coll, false, []store.Range{{Lo: after + "\x00"}})
	p.Root.scan = p.scan
}

// table returns what says where the collection's documents are, nil if it is not sharded.
func (a *Access) table() *sharding.Metadata {
	if a.Table != nil && a.Coll.Sharded() {
		return a.Table
	}
	return sharding.Of(a.Coll)
}

// useBounds is the plan of the part of an index between min and max.
func (a *Access) useBounds(ix *store.Index) (*Stage, error) {
	if ix == nil {
		return nil, a.fail(51173, "When using min()/max() a hint of which index to use must be provided")
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
		return nil, a.fail(51174, "The index chosen is not compatible with min/max")
	case !inOrder:
		return nil, a.fail(
			51175, "The value provided for min() does not come before the value provided for max() in the hinted index")
	}
	return fetch(&Stage{Name: "IXSCAN", Index: ix, Range: &r, Min: bound(a.Min), Max: bound(a.Max)}, a.remaining()), nil
}

// covers reports whether an index has all documents that the query can match: a partial one has
// them if the query asks for no others.
func (a *Access) covers(ix *store.Index) bool {
	return ix.Partial == nil || a.Filter != nil && a.Collation.Same(ix.Collation) && a.Filter.Implies(ix.Partial)
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
				return nil, false, false, a.fail(srverr.IndexNotFound,
					"Hint matched multiple indexes, must hint by index name. Matched: "+planned(ix)+" and "+
						planned(other))
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
		if !ix.Multikey && !ix.Sparse && ix.Partial == nil && ix.ByValue() && index.IsPrefix(pattern, ix.Pattern) {
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
	r := store.Range{}
	p.Root.Walk(func(s *Stage) {
		if s.Range != nil {
			r = *s.Range
		}
	})
	return store.NewIndexScan(c, p.Index, false, []store.Range{r}), nil
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
	case a.Hint.Type == bson.TypeString || len(a.Hint.Value) > 5:
		return srverr.New(srverr.BadValue, "text and hint not allowed in same query")
	case a.Natural:
		return srverr.New(srverr.BadValue, "text expression not allowed with $natural sort order")
	case a.Filter.NeedsGeoIndex():
		return srverr.New(srverr.BadValue, "text and geoNear not allowed in same query")
	}
	hidden := false
	for i := range a.Coll.Indexes() {
		if text := a.Coll.Indexes()[i].Text; text != nil && a.Coll.Indexes()[i].Hidden {
			hidden = true
		} else if text != nil {
			if why := a.textUnplanned(a.Filter.Condition(), &a.Coll.Indexes()[i]); why != "" {
				return a.fail(srverr.NoQueryExecutionPlans, why)
			}
			return a.Filter.SearchIn(text)
		}
	}
	if hidden {
		return a.fail(srverr.NoQueryExecutionPlans, "need exactly one text index for $text query")
	}
	return srverr.New(srverr.IndexNotFound, "text index required for $text query")
}

// textUnplanned says why no plan with a text index answers a condition that has $text, empty if
// one does. Of an $or each branch needs an index: the one with $text is planned like a query of its
// own, to which nothing outside of the $or gives the values of the index's prefix.
func (a *Access) textUnplanned(c query.Condition, ix *store.Index) string {
	of := query.Joined([]query.Condition{c})
	if of.NegatesText() || !a.fixesPrefix(of, ix) && !c.TextInBranch() {
		return "failed to use text index to satisfy $text query " +
			"(if text index is compound, are equality predicates given for all prefix fields?)"
	}
	if all, ok := c.All(); ok {
		if i := slices.IndexFunc(all, query.Condition.TextInBranch); i >= 0 {
			return a.textUnplanned(all[i], ix)
		}
		return ""
	}
	branches, _ := c.Any()
	for _, b := range branches {
		if b.HasText() {
			if why := a.textUnplanned(b, ix); why != "" {
				return why
			}
		}
	}
	for _, b := range branches {
		if !b.HasText() && len(a.plans(b)) == 0 {
			return "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well."
		}
	}
	return ""
}

// fixesPrefix reports whether a query asks for one value of each field that stands before the text
// in a text index.
func (a *Access) fixesPrefix(q *query.Filter, ix *store.Index) bool {
	for _, f := range ix.Fields {
		if f.Special == "text" {
			break
		}
		list, ok := q.Bounds(f.Path, false, a.Collation.Same(ix.Collation))
		if !ok || len(list) == 0 || !list[0].IsPoint() ||
			len(list) > 1 && (len(list) > 2 || list[0].Lo.Type != bson.TypeUndefined) {
			return false // null has two keys
		}
	}
	return true
}

// nearIn reports whether the index is a geo index for the filter's $near.
func nearIn(ix *store.Index, n *query.Near) bool {
	for _, f := range ix.Fields {
		if f.Special != "" && n.Uses(f.Special) && f.Path == n.Path() {
			return true
		}
	}
	return false
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
