package planner

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/fts"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Stage is a stage of a plan: it makes documents, or keys of an index, out of those of its inputs.
// What it has done is in its figures once it has run. A plan runs once; for another run it is
// cloned.
type Stage struct {
	Name   string // as explain shows it
	Inputs []*Stage

	// Of a stage that reads an index: which one, and its part. A wildcard index is read for one
	// path.
	Index  *store.Index
	Wild   string
	Bounds [][]query.Interval // in ascending order, for each of the index's key fields
	Range  *store.Range       // in place of the bounds: between min and max
	Min    bson.Raw           // as the command has them
	Max    bson.Raw
	Back   bool
	// Several says that a document may have several keys within the bounds although no field leads
	// to an array: those of a wildcard index are also of fields below the path.
	Several bool
	Skip    int // a DISTINCT_SCAN goes on behind the keys with the same values of the fields up to this one

	First, Last bson.RawValue // the bounds of _id, of a stage that reads a part of a clustered collection

	Filter *query.Filter // nil: everything
	Sort   *query.Sort
	Spec   bson.Raw // of the order or the projection, as the command has it
	Type   string   // of a sort: simple or default
	N      int64    // of a limit or skip; of a sort the limit, 0 for none

	Search *fts.Search // of a stage that searches a text index
	Term   string      // of its scans

	// Near is what a stage looks for by distance; Skip is the field of the index, and Bounds are
	// those of the others.
	Near   *query.Near
	search *nearSearch

	Figures
	scan   *store.Scan
	seen   map[string]struct{}
	at     int    // the input that it reads, or how many it has passed on
	heads  []head // of a merge, and of an intersection
	failed []int64
	sorted []sortedItem
	opened bool
}

// Figures are what a stage has done.
type Figures struct {
	Works, Advanced, NeedTime int64
	EOF                       bool
	Keys, Docs, Seeks         int64 // what it looked at
	Tested, Dropped           int64 // documents that may have come before, and that had
	Had                       int64 // documents that were there before it fetched them
	Skipped                   int64 // what belongs to other shards
	Counted                   int64
	// Of a stage that writes: what it would do.
	Matched, Modified, Upserted int64
	Bytes                       int64 // that it sorted
}

// sortedItem is a document that a sort holds.
type sortedItem struct {
	key []bson.RawValue
	row row
}

// head is what an input of a merge has next.
type head struct {
	key []bson.RawValue
	row row
	has bool
	end bool
}

// row is what a stage yields.
type row struct {
	rid    string
	doc    bson.Raw // nil: it was not fetched, and lies in scan
	scan   *store.Scan
	entry  string // of the index that it comes from
	index  *Stage // which read that
	keyed  bool   // it comes from the index, and nothing has fetched the document
	orphan bool   // belongs to another shard
}

// document returns the row's document, fetched or not.
func (r *row) document() bson.Raw {
	if r.doc == nil && r.scan != nil {
		r.doc = r.scan.Doc()
	}
	return r.doc
}

// state is what a step of a stage came to.
type state uint8

const (
	advanced state = iota
	needTime
	isEOF
)

// Clone returns a plan that has not run.
func (s *Stage) Clone() *Stage {
	out := *s
	out.Figures = Figures{}
	out.scan, out.seen, out.at, out.heads, out.sorted, out.opened = nil, nil, 0, nil, nil, false
	out.failed, out.search = nil, nil
	if out.Inputs = nil; s.Near != nil {
		return &out // it makes its inputs
	}
	out.Inputs = make([]*Stage, len(s.Inputs))
	for i, in := range s.Inputs {
		out.Inputs[i] = in.Clone()
	}
	return &out
}

// Walk calls f for the stage and all below it.
func (s *Stage) Walk(f func(s *Stage)) {
	f(s)
	for _, in := range s.Inputs {
		in.Walk(f)
	}
}

// Examined returns how many keys and documents the plan has looked at.
func (s *Stage) Examined() (keys, docs int64) {
	s.Walk(func(s *Stage) { keys, docs = keys+s.Keys, docs+s.Docs })
	return keys, docs
}

// fetched reports whether the stage yields whole documents.
func (s *Stage) fetched() bool {
	switch s.Name {
	case "RECORD_STORE_FAST_COUNT":
		return true
	case "COLLSCAN", "CLUSTERED_IXSCAN", "FETCH", "IDHACK", "EOF", "TEXT", "EXPRESS_IXSCAN", "EXPRESS_CLUSTERED_IXSCAN",
		nearSphere, nearPlane:
		return true
	case "IXSCAN", "COUNT_SCAN", "DISTINCT_SCAN":
		return false
	}
	for _, in := range s.Inputs {
		if !in.fetched() {
			return false
		}
	}
	return true
}

// env is what a plan runs on.
type env struct {
	coll    *store.Coll
	only    []int // shards; nil: all
	orphans bool  // are shown to a stage that filters them
	merge   bool  // what the shards have is merged in the order of the index
	direct  bool  // a scan of the collection yields with its first step
	meta    func(doc bson.Raw, name string) bson.RawValue
	// sortMemory is how many bytes a sort may hold, 0 for any number.
	sortMemory int64
}

// open opens the scan of a stage that reads.
func (s *Stage) open(e *env) {
	switch {
	case s.scan != nil:
	case s.Name == "COLLSCAN" || s.Name == "CLUSTERED_IXSCAN":
		s.scan = store.NewScan(e.coll, s.Back, nil)
	case s.Index == nil:
		return
	default:
		ix := e.coll.Index(s.Index.Name)
		if ix == nil {
			ix = s.Index
		}
		if !ix.Ordered() {
			s.scan = store.NewIndexScan(e.coll, ix, false, nil)
			break
		}
		b := store.Bounds{}
		if s.Range != nil {
			b = store.RangeBounds(*s.Range)
		} else {
			b = ix.Bounds(s.Bounds)
		}
		s.scan = store.NewBoundsScan(e.coll, ix, s.Back, &b)
	}
	if e.only != nil {
		s.scan.Only(e.only)
	}
	if e.merge && s.Index != nil {
		s.scan.Merge()
	}
	s.scan.ShowOrphans = e.orphans
}

// work does one step.
func (s *Stage) work(e *env, r *row) (st state, err error) {
	s.Works++
	st, err = s.step(e, r)
	switch st {
	case advanced:
		s.Advanced++
	case needTime:
		s.NeedTime++
	default:
		s.EOF = true
	}
	return st, err
}

func (s *Stage) step(e *env, r *row) (state, error) {
	switch s.Name {
	case "EOF":
		return isEOF, nil
	case "COLLSCAN", "CLUSTERED_IXSCAN":
		return s.stepCollection(e, r)
	case "TEXT":
		if len(s.Inputs) == 0 {
			return s.stepCollection(e, r)
		}
	case "IXSCAN", "COUNT_SCAN", "DISTINCT_SCAN":
		if s.Search != nil {
			return s.stepTerm(e, r)
		}
		return s.stepIndex(e, r)
	case nearSphere, nearPlane:
		return s.stepNear(e, r)
	case "TEXT_OR":
		return s.stepTextOr(e, r)
	case "TEXT_MATCH":
		return s.stepTextMatch(e, r)
	case "IDHACK":
		return s.stepID(e, r)
	case "EXPRESS_IXSCAN", "EXPRESS_CLUSTERED_IXSCAN":
		return s.stepExpress(e, r)
	case "FETCH":
		return s.stepFetch(e, r)
	case "OR":
		return s.stepOr(e, r)
	case "SORT_MERGE":
		return s.stepMerge(e, r)
	case "AND_SORTED":
		return s.stepAnd(e, r)
	case "SORT":
		return s.stepSort(e, r)
	case "LIMIT":
		if int64(s.at) >= s.N {
			return isEOF, nil
		}
		st, err := s.Inputs[0].work(e, r)
		if st == advanced {
			s.at++
		}
		return st, err
	case "SKIP":
		st, err := s.Inputs[0].work(e, r)
		if st == advanced && int64(s.at) < s.N {
			s.at++
			return needTime, err
		}
		return st, err
	case "SHARDING_FILTER":
		st, err := s.Inputs[0].work(e, r)
		if st == advanced && r.orphan {
			s.Skipped++
			return needTime, err
		}
		return st, err
	case "COUNT":
		return s.stepCount(e, r)
	case "RECORD_STORE_FAST_COUNT":
		s.Counted = max(0, e.coll.Count()-int64(s.Skip))
		s.Skipped = min(int64(s.Skip), e.coll.Count())
		if s.N > 0 {
			s.Counted = min(s.Counted, s.N)
		}
		return isEOF, nil
	}
	return s.Inputs[0].work(e, r)
}

// stepCount counts, with what Spec-less stages keep in N (a limit) and at (what is still skipped).
func (s *Stage) stepCount(e *env, r *row) (state, error) {
	if s.N > 0 && s.Counted >= s.N {
		return isEOF, nil
	}
	st, err := s.Inputs[0].work(e, r)
	switch {
	case st != advanced:
		return st, err
	case s.Skipped < int64(s.Skip):
		s.Skipped++
	default:
		s.Counted++
	}
	return needTime, nil
}

func (s *Stage) stepCollection(e *env, r *row) (state, error) {
	if s.scan == nil {
		s.open(e)
	}
	if !s.opened && !e.direct {
		s.opened = true
		return needTime, nil
	}
	if s.scan.Step() != store.StepHit {
		return isEOF, nil
	}
	doc := s.scan.Doc()
	for s.First.Type != 0 && query.Compare(doc.Lookup("_id"), s.First, e.coll.Collation) < 0 {
		if s.scan.Step() != store.StepHit {
			return isEOF, nil
		}
		doc = s.scan.Doc()
	}
	if s.Last.Type != 0 && query.Compare(doc.Lookup("_id"), s.Last, e.coll.Collation) > 0 {
		return isEOF, nil
	}
	s.Docs++
	if s.Filter != nil {
		ok, err := s.Filter.Match(doc)
		if err != nil || !ok {
			return needTime, err
		}
	}
	*r = row{rid: s.scan.RID(), doc: doc, scan: s.scan, orphan: s.scan.ShowOrphans && s.scan.Orphan()}
	return advanced, nil
}

func (s *Stage) stepIndex(e *env, r *row) (state, error) {
	if s.scan == nil {
		s.open(e)
	}
	got := s.scan.Step()
	s.Keys, s.Seeks = s.scan.KeysSeen, s.scan.Seeks
	if s.Name == "COUNT_SCAN" && got == store.StepEnd && !s.opened {
		s.opened = true
		s.at++ // it looks at the key at which it ends
	}
	if s.Name == "COUNT_SCAN" {
		s.Keys += int64(s.at)
	}
	switch got {
	case store.StepEnd:
		return isEOF, nil
	case store.StepMiss:
		return needTime, nil
	}
	rid := s.scan.RID()
	if (s.Index.Multikey || s.Several) && s.Name != "DISTINCT_SCAN" {
		s.Tested++
		if s.seen == nil {
			s.seen = map[string]struct{}{}
		}
		if _, ok := s.seen[rid]; ok {
			s.Dropped++
			return needTime, nil
		}
		s.seen[rid] = struct{}{}
	}
	*r = row{rid: rid, scan: s.scan, entry: s.scan.Entry(), index: s, keyed: true,
		orphan: s.scan.ShowOrphans && s.scan.Orphan()}
	if s.Filter != nil {
		ok, err := s.Filter.Match(r.scan.Doc())
		if err != nil || !ok {
			return needTime, err
		}
	}
	if s.Name == "DISTINCT_SCAN" {
		r.document()
		s.scan.SkipPrefix(s.Skip + 1)
	}
	return advanced, nil
}

func (s *Stage) stepID(e *env, r *row) (state, error) {
	if s.opened {
		return isEOF, nil
	}
	s.opened = true
	id, _ := s.Filter.IDEquality()
	c, shard := e.coll, ""
	if len(e.only) == 1 && c.Sharded() {
		c, shard = c.Part(e.only[0]), string([]byte{byte(e.only[0])})
	}
	if c == nil {
		return isEOF, nil
	}
	rid, doc, ok := c.ByID(id)
	if !ok {
		return isEOF, nil
	}
	s.Docs = 1
	if s.Name != "EXPRESS_CLUSTERED_IXSCAN" { // which has no index
		s.Keys = 1
	}
	*r = row{rid: shard + rid, doc: doc, index: s}
	return advanced, nil
}

func (s *Stage) stepFetch(e *env, r *row) (state, error) {
	st, err := s.Inputs[0].work(e, r)
	if st != advanced || err != nil {
		return st, err
	}
	s.Docs++
	if s.Inputs[0].fetched() {
		s.Had++
	}
	doc := r.document()
	if doc == nil {
		return needTime, nil
	}
	r.keyed = false
	if s.Filter != nil {
		ok, err := s.Filter.Match(doc)
		if err != nil || !ok {
			return needTime, err
		}
	}
	return advanced, nil
}

// stepOr yields what its inputs yield, one after the other, each document once.
func (s *Stage) stepOr(e *env, r *row) (state, error) {
	if s.at >= len(s.Inputs) {
		return isEOF, nil
	}
	st, err := s.Inputs[s.at].work(e, r)
	switch st {
	case isEOF:
		if s.at++; s.at >= len(s.Inputs) {
			return isEOF, err
		}
		return needTime, err
	case advanced:
		s.Tested++
		if s.seen == nil {
			s.seen = map[string]struct{}{}
		}
		if _, ok := s.seen[r.rid]; ok {
			s.Dropped++
			return needTime, err
		}
		s.seen[r.rid] = struct{}{}
		if ok, err := s.passes(r); err != nil || !ok {
			return needTime, err
		}
	}
	return st, err
}

// passes reports whether a row fulfills the stage's filter.
func (s *Stage) passes(r *row) (bool, error) {
	if s.Filter == nil {
		return true, nil
	}
	return s.Filter.Match(r.document())
}

// stepMerge yields the next of what its inputs yield in order.
func (s *Stage) stepMerge(e *env, r *row) (state, error) {
	if s.heads == nil {
		s.heads = make([]head, len(s.Inputs))
		s.seen = map[string]struct{}{}
	}
	for i := range s.heads {
		h := &s.heads[i]
		if h.has || h.end {
			continue
		}
		st, err := s.Inputs[i].work(e, &h.row)
		if err != nil {
			return st, err
		}
		switch st {
		case isEOF:
			h.end = true
		case advanced:
			s.Tested++
			if _, ok := s.seen[h.row.rid]; ok {
				s.Dropped++
				return needTime, nil
			}
			s.seen[h.row.rid] = struct{}{}
			if h.key, err = s.Sort.Key(h.row.document(), nil); err != nil {
				return needTime, err
			}
			h.key = slices.Clone(h.key)
			h.has = true
		}
		return needTime, nil
	}
	best := -1
	for i := range s.heads {
		if h := &s.heads[i]; h.has && (best < 0 || s.Sort.CompareKeys(h.key, s.heads[best].key) < 0) {
			best = i
		}
	}
	if best < 0 {
		return isEOF, nil
	}
	*r = s.heads[best].row
	s.heads[best].has = false
	return advanced, nil
}

// stepAnd yields the documents that all inputs yield, which have them in the order of the records:
// an input is moved on until it is where the one that is ahead is.
func (s *Stage) stepAnd(e *env, r *row) (state, error) {
	if s.heads == nil {
		s.heads, s.failed = make([]head, len(s.Inputs)), make([]int64, len(s.Inputs))
	}
	var ahead *head
	for i := range s.heads {
		if h := &s.heads[i]; h.has && (ahead == nil || h.row.rid > ahead.row.rid) {
			ahead = h
		}
	}
	for i := range s.heads {
		h := &s.heads[i]
		if ahead != nil && h.has && h.row.rid == ahead.row.rid {
			continue
		}
		st, err := s.Inputs[i].work(e, &h.row)
		if err != nil || st != advanced {
			return st, err
		}
		h.has = true
		if ahead == nil || h.row.rid != ahead.row.rid {
			if ahead != nil {
				s.failed[i]++
			}
			return needTime, nil
		}
		if i < len(s.heads)-1 {
			return needTime, nil
		}
	}
	*r = s.heads[0].row
	for i := range s.heads {
		s.heads[i].has = false
	}
	return advanced, nil
}

func (s *Stage) stepSort(e *env, r *row) (state, error) {
	if !s.opened {
		st, err := s.Inputs[0].work(e, r)
		switch {
		case err != nil || st == needTime:
			return needTime, err
		case st == advanced:
			doc := r.document()
			var meta func(string) bson.RawValue
			if e.meta != nil {
				meta = func(name string) bson.RawValue { return e.meta(doc, name) }
			}
			key, err := s.Sort.Key(doc, meta)
			if err != nil {
				return needTime, err
			}
			s.Bytes += int64(len(doc))
			s.sorted = append(s.sorted, sortedItem{key, *r})
			if s.N == 0 && e.sortMemory > 0 && s.Bytes > e.sortMemory {
				return needTime, errSortMemory(e.sortMemory)
			}
			return needTime, nil
		}
		s.opened = true
		query.SortByKey(s.Sort, s.sorted, func(i *sortedItem) []bson.RawValue { return i.key })
		if s.N > 0 && int64(len(s.sorted)) > s.N {
			s.sorted = s.sorted[:s.N]
		}
		return needTime, nil
	}
	if s.at >= len(s.sorted) {
		return isEOF, nil
	}
	*r = s.sorted[s.at].row
	s.at++
	return advanced, nil
}

// reset moves the plan on to another state of the collection; ok is false, with the name of the
// index, if one that it reads is gone.
func (s *Stage) reset(c *store.Coll) (index string, ok bool) {
	if s.scan != nil && !s.scan.Reset(c) {
		return s.scan.Index(), false
	}
	for _, in := range s.Inputs {
		if index, ok := in.reset(c); !ok {
			return index, false
		}
	}
	return "", true
}

func (s *Stage) rest() {
	if s.scan != nil {
		s.scan.Rest()
	}
	for _, in := range s.Inputs {
		in.rest()
	}
}
