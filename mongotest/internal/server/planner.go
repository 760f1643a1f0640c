package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// access is how a command asks for documents of a collection.
type access struct {
	coll     *store.Coll
	filter   *query.Filter // nil: all
	sort     *query.Sort   // nil: any order
	natural  bool          // in the order of the records, backward if back is set
	back     bool
	hint     bson.RawValue
	min, max bson.Raw
	// collation of the query; an index with another one is of no use for strings.
	collation *query.Collation
	// text describes the query, for errors; nil leaves that away.
	text func() string
	// noScan tells that the collection must not be read from end to end.
	noScan func() bool
}

// fail returns the error of a query that cannot be planned.
func (a *access) fail(code int32, text string) error {
	e := srverr.New(code, "%s", text)
	if a.text == nil {
		return e
	}
	return e.Prefix("error processing query: " + a.text() + " planner returned error :: caused by :: ")
}

// plan is how the documents are got at.
type plan struct {
	scan   *store.Scan
	index  *store.Index  // nil: the whole collection
	filter *query.Filter // what remains to be matched; nil: nothing
	sort   *query.Sort   // what remains to be sorted; nil: nothing
	back   bool
	ranges []store.Range
	sorted bool // the index has the documents in the wanted order
}

// plan chooses an index, and of a sharded collection the shards that may have something.
func (a *access) plan() (*plan, error) {
	p, err := a.choose()
	if sh := sharding.Of(a.coll); err == nil && sh != nil {
		shards := sh.Shards()
		if a.filter != nil {
			shards, _ = sh.Target(a.filter, a.filter.SimpleCollation())
		}
		p.scan.Only(shards)
		if p.sorted {
			p.scan.Merge()
		}
	}
	return p, err
}

// choose chooses an index.
func (a *access) choose() (*plan, error) {
	if err := a.useText(); err != nil {
		return nil, err
	}
	if f := a.filter; f != nil && f.NeedsGeoIndex() && !nearIndexed(a.coll, f.Near()) {
		return nil, a.fail(srverr.NoQueryExecutionPlans, "unable to find index for $geoNear query")
	}
	p := &plan{filter: a.filter, sort: a.sort}
	if p.filter != nil && p.filter.MatchesAll() {
		p.filter = nil
	}
	hinted, natural, back, err := a.hinted()
	if err != nil {
		return nil, err
	}
	bounded := len(a.min) > 5 || len(a.max) > 5
	switch {
	case bounded && natural:
		return nil, a.fail(srverr.NoQueryExecutionPlans, "min and max are incompatible with $natural")
	case bounded:
		return p, a.useBounds(p, hinted)
	}
	if natural || a.natural {
		p.back = back || a.back
		p.scan = store.NewScan(a.coll, p.back, nil)
		return p, nil
	}
	if hinted != nil {
		a.useIndex(p, hinted)
		return p, nil
	}
	if ix := a.narrowest(); ix != nil {
		a.useIndex(p, ix)
		return p, nil
	}
	if a.sort != nil {
		for i := range a.coll.Indexes() {
			ix := &a.coll.Indexes()[i]
			if ok, back := a.sorted(ix); ok && ix.Partial == nil && !ix.Sparse && !ix.Hidden {
				p.back = back
				a.useIndex(p, ix)
				return p, nil
			}
		}
	}
	if a.noScan != nil && p.filter != nil && a.noScan() {
		return nil, a.fail(srverr.NoQueryExecutionPlans, "No indexed plans available, and running with 'notablescan'")
	}
	p.scan = store.NewScan(a.coll, false, nil)
	return p, nil
}

// useBounds takes the part of an index between min and max.
func (a *access) useBounds(p *plan, ix *store.Index) error {
	if ix == nil {
		return a.fail(51173, "When using min()/max() a hint of which index to use must be provided")
	}
	bound := func(doc bson.Raw) bson.Raw {
		if len(doc) > 5 {
			return doc
		}
		return nil
	}
	r, ok, inOrder := ix.Between(bound(a.min), bound(a.max))
	switch {
	case !ok:
		return a.fail(51174, "The index chosen is not compatible with min/max")
	case !inOrder:
		return a.fail(51175, "The value provided for min() does not come before the value provided for max() in the hinted index")
	}
	a.useIndex(p, ix)
	p.ranges = []store.Range{r}
	p.scan = store.NewIndexScan(a.coll, ix, p.back, p.ranges)
	return nil
}

func (a *access) useIndex(p *plan, ix *store.Index) {
	p.index = ix
	ranges, score := ix.Ranges(a.filter, a.collation.Same(ix.Collation))
	if score == 0 {
		ranges = []store.Range{{}}
	}
	p.ranges = ranges
	if ok, back := a.sorted(ix); ok && a.sort != nil {
		p.sort, p.back, p.sorted = nil, back, true
	}
	p.scan = store.NewIndexScan(a.coll, ix, p.back, p.ranges)
	ix.Uses.Add(1)
}

// narrowest returns the index that narrows the query down most, nil if none does. Among equals one
// that has the documents in the wanted order is better.
func (a *access) narrowest() *store.Index {
	var best *store.Index
	bestScore := 0
	for i := range a.coll.Indexes() {
		ix := &a.coll.Indexes()[i]
		if ix.Hidden || ix.Partial != nil || !ix.Ordered() {
			continue
		}
		_, score := ix.Ranges(a.filter, a.collation.Same(ix.Collation))
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
func (a *access) sorted(ix *store.Index) (ok, back bool) {
	if a.sort == nil || ix.Multikey || !ix.Ordered() || !a.collation.Same(ix.Collation) {
		return false, false
	}
	fields := a.sort.Fields()
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

// hinted returns the index that the command insists on.
func (a *access) hinted() (ix *store.Index, natural, back bool, err error) {
	switch a.hint.Type {
	case 0:
		return nil, false, false, nil
	case bson.TypeString:
		name, _ := a.hint.StringValue()
		for i := range a.coll.Indexes() {
			if ix := &a.coll.Indexes()[i]; ix.Name == name {
				return ix, false, false, nil
			}
		}
	case bson.TypeEmbeddedDocument:
		pattern := bson.Raw(a.hint.Value)
		if pattern.IsEmpty() {
			return nil, false, false, nil
		}
		if ok, back, _ := query.Natural(pattern); ok {
			return nil, true, back, nil
		}
		for i := range a.coll.Indexes() {
			if ix := &a.coll.Indexes()[i]; SamePattern(ix.Pattern, pattern) {
				return ix, false, false, nil
			}
		}
	}
	return nil, false, false, a.fail(srverr.BadValue, "hint provided does not correspond to an existing index")
}

// SamePattern compares key patterns: fields, order and values, numbers by value.
func SamePattern(a, b bson.Raw) bool {
	return bson.Compare(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: a}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: b}) == 0
}

// scanIter yields the documents of a plan that match.
type scanIter struct {
	run    *running
	ns     string
	scan   *store.Scan
	filter *query.Filter
	rid    string // of the last document
	at     int    // the array element that made it match, or -1
}

func (s *scanIter) Next() (bson.Raw, error) {
	for {
		rid, doc, ok := s.scan.Next()
		if !ok {
			return nil, nil
		}
		if err := s.run.check(); err != nil {
			return nil, err
		}
		if s.filter != nil {
			ok, at, err := s.filter.MatchIndex(doc)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			s.at = at
		}
		s.rid = rid
		return doc, nil
	}
}

func (s *scanIter) Close() {}

// open returns an iterator over the plan's documents.
func (p *plan) open(run *running, ns string) pipeline.Iterator {
	s := &scanIter{run: run, ns: ns, scan: p.scan, filter: p.filter, at: -1}
	run.scans = append(run.scans, s)
	if p.sort == nil {
		return s
	}
	return &sortIter{src: s, sort: p.sort, scan: s}
}

// indexKey returns the document's key in the plan's index, empty without one.
func (p *plan) indexKey(doc bson.Raw) bson.Raw {
	start, b := bson.BeginDocument(nil)
	if p.index != nil && p.index.Ordered() {
		var paths []string
		for _, f := range p.index.Fields {
			paths = append(paths, f.Path)
		}
		first := true
		query.NewKeyGenerator(paths, false).Keys(doc, func(key []bson.RawValue) {
			for i := range key {
				if first {
					b = bson.AppendRawValue(b, paths[i], key[i])
				}
			}
			first = false
		})
	}
	return bson.EndDocument(b, start)
}

// rest lets go of the state that the cursor has read, while it waits for its next getMore: a cursor
// that nobody asks again must not keep documents that are long gone. Snapshots keep theirs.
func (x *running) rest() {
	for _, s := range x.scans {
		if s.scan.Coll().Derived() {
			return
		}
	}
	x.state = nil
	for _, s := range x.scans {
		s.scan.Rest()
	}
}

// advance moves the scans of a cursor on to a newer state.
func (x *running) advance(st *store.State) error {
	x.state = st
	for _, s := range x.scans {
		if s.scan.Coll().Derived() { // made for this cursor
			continue
		}
		c := st.Coll(s.ns)
		if c == nil || c.UUID != s.scan.Coll().UUID {
			return srverr.New(srverr.QueryPlanKilled, "collection dropped. UUID %s", bsondoc.UUIDString(s.scan.Coll().UUID))
		}
		if !s.scan.Reset(c) {
			return srverr.New(srverr.QueryPlanKilled, "query plan killed :: index '%s' dropped", s.scan.Index())
		}
		if c.Capped && s.scan.Lost() {
			return srverr.New(srverr.CappedPositionLost, "CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%d)", store.RecordNumber(s.scan.Position()))
		}
	}
	return nil
}

// sortIter yields its source's documents in order.
type sortIter struct {
	src    pipeline.Iterator
	sort   *query.Sort
	limit  int64 // only the first ones are of interest; 0: all
	most   int64 // how many bytes it may hold; 0: any number
	loaded bool
	docs   []bson.Raw
	rids   []string
	scan   *scanIter // tells the record ids
	meta   func(doc bson.Raw, name string) bson.RawValue
	rid    string // of the last document
	// context is what the server puts before errors of sorting.
	context string
}

func (s *sortIter) Next() (bson.Raw, error) {
	if !s.loaded {
		if err := s.load(); err != nil {
			return nil, err
		}
	}
	if len(s.docs) == 0 {
		return nil, nil
	}
	doc := s.docs[0]
	s.docs[0] = nil
	s.rid = s.rids[0]
	s.docs, s.rids = s.docs[1:], s.rids[1:]
	return doc, nil
}

func (s *sortIter) load() error {
	size := int64(0)
	type keyed struct {
		key []bson.RawValue
		doc bson.Raw
		rid string
	}
	var list []keyed
	compare := func(a, b keyed) int { return s.sort.CompareKeys(a.key, b.key) }
	var doc bson.Raw
	var meta func(name string) bson.RawValue
	if s.meta != nil {
		meta = func(name string) bson.RawValue { return s.meta(doc, name) }
	}
	for {
		var err error
		if doc, err = s.src.Next(); err != nil {
			return err
		}
		if doc == nil {
			break
		}
		key, err := s.sort.Key(doc, meta)
		if err != nil {
			if s.context != "" {
				err = srverr.From(err).Prefix(s.context + " :: caused by :: ")
			}
			return err
		}
		list = append(list, keyed{key, doc, s.scan.rid})
		if size += int64(len(doc)); s.most > 0 && size > s.most {
			return srverr.New(srverr.QueryExceededMemoryLimitNoDiskUseAllowed, "Executor error during find command :: caused by :: Sort exceeded memory limit of %d bytes, but did not opt in to external sorting.", s.most)
		}
		if s.limit > 0 && int64(len(list)) >= 2*s.limit+1000 {
			slices.SortStableFunc(list, compare)
			clear(list[s.limit:])
			list = list[:s.limit]
			size = 0
			for _, k := range list {
				size += int64(len(k.doc))
			}
		}
	}
	slices.SortStableFunc(list, compare)
	s.docs, s.rids = make([]bson.Raw, len(list)), make([]string, len(list))
	for i := range list {
		s.docs[i], s.rids[i] = list[i].doc, list[i].rid
	}
	s.loaded = true
	return nil
}

func (s *sortIter) Close() { s.docs = nil; s.src.Close() }

// RangeIndex returns the pattern of an index with one entry per document that begins with the
// fields of a pattern.
func RangeIndex(c *store.Coll, pattern bson.Raw) (hint bson.RawValue, ok bool) {
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		if !ix.Multikey && !ix.Sparse && ix.Partial == nil && IsPrefix(ix.Pattern, pattern) {
			return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: ix.Pattern}, true
		}
	}
	return hint, false
}

// ScanRange scans the entries of an index from min on and before max.
func ScanRange(c *store.Coll, index bson.RawValue, min, max bson.Raw) (*store.Scan, error) {
	p, err := (&access{coll: c, hint: index, min: min, max: max}).plan()
	if err != nil {
		return nil, err
	}
	return p.scan, nil
}
