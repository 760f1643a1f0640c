package store

import (
	"allium/bson"
)

// Range is a part of an index's order: the keys from Lo on and before Hi. An empty Hi is the end.
type Range struct{ Lo, Hi string }

// Scan walks over a collection's documents in the order of the records or of an index. It stays
// where it is when it is moved on to a newer state of the collection, so that a cursor sees what is
// written in front of it. Not safe for concurrent use.
type Scan struct {
	c        *Coll
	index    string // empty: in the order of the records
	backward bool
	ranges   []Range // in the order they are walked
	at       int
	dedupe   map[string]struct{}

	// Of a group's view: scans of the parts, and where documents belong.
	subs   []partScan
	place  Placement
	merged bool
	from   *partScan // of the last document
	none   bool      // no shard is left

	of *IndexInfo // an index without keys here, whose documents alone are wanted; nil: all

	recs    recordIter
	keys    keyIter
	started bool
	moved   bool   // the iterators have to be found again
	last    string // key of the last entry, unless number is
	number  uint64 // of the last record, if last was not made yet
	unmade  bool
	here    bool // which lies in the current range
	end     bool

	bounds *Bounds // of a scan by steps over an index
	goal   *target // where it goes on, if not at the next key
	doc    bson.Raw

	// ShowOrphans makes a scan by steps of a sharded collection yield what a shard has only left of
	// a migration.
	ShowOrphans bool

	KeysSeen, DocsSeen int64
	Seeks              int64 // how often a scan by steps looked for a key
}

// NewBoundsScan returns a scan by steps over the keys of an index that bounds are for. It may yield
// a document several times if the index is multikey.
func NewBoundsScan(c *Coll, ix *Index, backward bool, b *Bounds) *Scan {
	if c.parts != nil {
		return newPartScan(c, backward, ix.Name, func(part *Coll) *Scan {
			own := part.Index(ix.Name)
			if own == nil {
				own = &Index{IndexInfo: ix.IndexInfo}
			}
			return NewBoundsScan(part, own, backward, b)
		})
	}
	return &Scan{c: c, index: ix.Name, backward: backward, bounds: b, end: b.empty()}
}

// Stepped is what a step of a scan came to.
type Stepped uint8

const (
	StepEnd  Stepped = iota // there is no more
	StepMiss                // the key looked at is none of those wanted
	StepHit
)

// Step looks at one key of an index within bounds, or at one record.
func (s *Scan) Step() Stepped {
	switch {
	case s.subs != nil || s.none:
		return s.stepOfParts()
	case s.bounds != nil:
		return s.stepKey()
	}
	doc, ok := s.NextDoc()
	if !ok {
		return StepEnd
	}
	s.doc = doc
	return StepHit
}

func (s *Scan) stepKey() Stepped {
	if s.end {
		return StepEnd
	}
	var tree = &entries{}
	if ix := s.c.Index(s.index); ix != nil {
		tree = &ix.entries
	}
	switch {
	case !s.started:
		s.started = true
		s.seekTo(tree, s.bounds.start(s.backward))
	case s.goal != nil:
		s.seekTo(tree, *s.goal)
	case s.moved && !s.here:
		s.seekTo(tree, s.bounds.start(s.backward))
	case s.moved:
		s.keys = resume[keyIter](&tree.tree, s.last, s.backward)
	case s.backward:
		s.keys.prev()
	default:
		s.keys.next()
	}
	s.goal, s.moved = nil, false
	if !s.keys.valid() {
		s.stop()
		return StepEnd
	}
	key := s.keys.key()
	what, goal := s.bounds.check(key, s.backward)
	if what == passed && s.bounds.single {
		s.stop()
		return StepEnd
	}
	s.KeysSeen++
	s.last, s.here = key, true
	switch what {
	case passed:
		s.stop()
		return StepEnd
	case beyond:
		s.goal = &goal
		return StepMiss
	}
	return StepHit
}

func (s *Scan) seekTo(e *entries, t target) {
	s.Seeks++
	switch {
	case !s.backward:
		s.keys = e.tree.seek(t.at)
	case t.at == "":
		s.keys = e.tree.last()
	default:
		s.keys = e.tree.seekBefore(t.at)
	}
}

// Entry returns the entry of the index that the last step hit.
func (s *Scan) Entry() string {
	if s.from != nil {
		return s.from.scan.Entry()
	}
	return s.last
}

// Doc returns the document that the last step hit, nil if it is gone.
func (s *Scan) Doc() bson.Raw {
	switch {
	case s.from != nil:
		return s.from.scan.Doc()
	case s.bounds == nil:
		return s.doc
	}
	_, rid := splitEntry(s.last, s.c.Clustered)
	ref, ok := s.c.recs.get(rid)
	if !ok {
		return nil
	}
	return ref.raw()
}

// NewScan returns a scan over the documents in the order in which they were inserted (or of _id, if
// clustered). ranges of record ids may be nil.
func NewScan(c *Coll, backward bool, ranges []Range) *Scan {
	if c.parts != nil {
		return newPartScan(c, backward, "", func(part *Coll) *Scan { return NewScan(part, backward, ranges) })
	}
	if ranges == nil {
		ranges = []Range{{}}
	}
	return &Scan{c: c, backward: backward, ranges: ranges}
}

// NewIndexScan returns a scan over some ranges of an index, which must be in order and apart. Of an
// index without keys here it yields the documents that the index has on a server, in the order of
// the records.
func NewIndexScan(c *Coll, ix *Index, backward bool, ranges []Range) *Scan {
	if c.parts != nil {
		return newPartScan(c, backward, ix.Name, func(part *Coll) *Scan {
			own := part.Index(ix.Name)
			if own == nil {
				own = &Index{IndexInfo: ix.IndexInfo}
			}
			return NewIndexScan(part, own, backward, ranges)
		})
	}
	if ix.special {
		s := NewScan(c, backward, nil)
		s.of = ix.IndexInfo
		return s
	}
	if len(ranges) == 0 {
		ranges = []Range{{"\x00", "\x00"}} // nothing
	}
	s := &Scan{c: c, index: ix.Name, backward: backward, ranges: ranges}
	if ix.Multikey {
		s.dedupe = map[string]struct{}{}
	}
	if backward {
		s.ranges = make([]Range, 0, len(ranges))
		for i := len(ranges) - 1; i >= 0; i-- {
			s.ranges = append(s.ranges, ranges[i])
		}
	}
	return s
}

// Coll returns the state of the collection that the scan is on.
func (s *Scan) Coll() *Coll { return s.c }

// Index returns the index's name, empty for a scan of the records.
func (s *Scan) Index() string { return s.index }

// Lost reports whether the record that the scan stands on is gone, so that it cannot tell where to
// go on. That counts for capped collections, which lose records at their beginning.
func (s *Scan) Lost() bool {
	if s.index != "" || s.Position() == "" || s.subs != nil {
		return false
	}
	_, ok := s.c.recs.get(s.last)
	return !ok
}

// Position returns the record or index key of the last document.
func (s *Scan) Position() string {
	if s.unmade {
		s.last, s.unmade = recordID(s.number), false
	}
	return s.last
}

// RID returns the record id of the last document.
func (s *Scan) RID() string {
	switch {
	case s.from != nil:
		return string([]byte{byte(s.from.part.shard)}) + s.from.scan.RID()
	case s.index == "":
		return s.Position()
	case s.last == "":
		return ""
	}
	_, rid := splitEntry(s.last, s.c.Clustered)
	return rid
}

// Reset moves the scan on to another state of the same collection. It reports false if the index is
// gone.
func (s *Scan) Reset(c *Coll) bool {
	if c == s.c {
		return true
	}
	if s.subs != nil || s.none {
		return s.resetParts(c)
	}
	if s.index != "" {
		ix := c.Index(s.index)
		if ix == nil {
			return false
		}
		if ix.Multikey && s.dedupe == nil {
			s.dedupe = map[string]struct{}{}
		}
	}
	s.c = c
	s.moved = s.started
	s.end = false
	return true
}

// Next returns the next document and its record id; ok is false at the end, where the scan may be
// asked again after a Reset.
func (s *Scan) Next() (rid string, doc bson.Raw, ok bool) {
	if doc, ok = s.NextDoc(); ok {
		rid = s.RID()
	}
	return rid, doc, ok
}

// NextDoc is Next for those who do not need each record id.
func (s *Scan) NextDoc() (doc bson.Raw, ok bool) {
	if s.subs != nil || s.none {
		return s.nextOfParts()
	}
	if s.index == "" {
		for {
			doc, ok := s.nextRecord()
			if ok && s.of != nil && !s.of.holds(doc) {
				continue
			}
			if ok {
				s.DocsSeen++
			}
			return doc, ok
		}
	}
	for s.nextKey() {
		_, rid := splitEntry(s.last, s.c.Clustered)
		s.KeysSeen++
		if s.dedupe != nil {
			if _, seen := s.dedupe[rid]; seen {
				continue
			}
			s.dedupe[rid] = struct{}{}
		}
		if found, ok := s.c.recs.get(rid); ok {
			s.DocsSeen++
			return found.raw(), true
		}
	}
	return nil, false
}

func (s *Scan) nextRecord() (bson.Raw, bool) {
	for ; !s.end; s.skipRange() {
		r := s.ranges[s.at]
		switch {
		case !s.started:
			s.started = true
			s.recs = start[recordIter](&s.c.recs, r, s.backward)
		case s.moved && !s.here:
			s.moved = false
			s.recs = start[recordIter](&s.c.recs, r, s.backward)
		case s.moved:
			s.moved = false
			s.recs = resume[recordIter](&s.c.recs, s.Position(), s.backward)
		case s.backward:
			s.recs.prev()
		default:
			s.recs.next()
		}
		if s.recs.valid() && (r == Range{} || inside(s.recs.key(), r, s.backward)) {
			if s.here = true; s.recs.keys != nil {
				s.last = s.recs.keys.key()
			} else {
				s.number, s.unmade = s.recs.numbers.key(), true
			}
			return s.recs.value().raw(), true
		}
		if s.at == len(s.ranges)-1 {
			s.stop()
			break
		}
	}
	return nil, false
}

func (s *Scan) nextKey() bool {
	if s.end {
		return false
	}
	for ; ; s.skipRange() {
		r := s.ranges[s.at]
		switch {
		case !s.started:
			s.started = true
			s.keys = start[keyIter](&s.c.Index(s.index).tree, r, s.backward)
		case s.moved && !s.here:
			s.moved = false
			s.keys = start[keyIter](&s.c.Index(s.index).tree, r, s.backward)
		case s.moved:
			s.moved = false
			s.keys = resume[keyIter](&s.c.Index(s.index).tree, s.last, s.backward)
		case s.backward:
			s.keys.prev()
		default:
			s.keys.next()
		}
		if s.keys.valid() && inside(s.keys.key(), r, s.backward) {
			s.last, s.here = s.keys.key(), true
			return true
		}
		if s.at == len(s.ranges)-1 {
			s.stop()
			return false
		}
	}
}

// stop notes that the last range is used up; after a Reset the scan looks for what has come behind
// its last entry.
func (s *Scan) stop() {
	s.end, s.moved = true, true
}

// skipRange goes to the next range.
func (s *Scan) skipRange() {
	s.at++
	s.started, s.moved, s.here = false, false, false
}

// order returns what the last document has in the order of the scan.
func (s *Scan) order() string {
	if s.index == "" {
		return ""
	}
	key, _ := splitEntry(s.last, s.c.Clustered)
	return key
}

type keyIter = treeIter[string, struct{}]

// sorted is a tree, or records.
type sorted[I any] interface {
	seek(key string) I
	seekBefore(key string) I
	last() I
}

func start[I any](t sorted[I], r Range, backward bool) I {
	switch {
	case !backward:
		return t.seek(r.Lo)
	case r.Hi == "":
		return t.last()
	}
	return t.seekBefore(r.Hi)
}

func resume[I any](t sorted[I], last string, backward bool) I {
	if backward {
		return t.seekBefore(last)
	}
	return t.seek(last + "\x00")
}

func inside(key string, r Range, backward bool) bool {
	if backward {
		return key >= r.Lo
	}
	return r.Hi == "" || key < r.Hi
}

// Rest lets go of the collection's documents while nobody reads: a Reset has to come before the
// next document.
func (s *Scan) Rest() {
	if s.subs != nil || s.none {
		s.restParts()
		return
	}
	s.c = &Coll{Info: s.c.Info}
	s.recs, s.keys = recordIter{}, keyIter{}
	s.moved = s.started
}

// SkipPrefix makes a scan by steps go on behind the keys whose first n values are those of the key
// that it has hit last.
func (s *Scan) SkipPrefix(n int) {
	if s.from != nil {
		s.from.scan.SkipPrefix(n)
		return
	}
	ix := s.c.Index(s.index)
	if ix == nil {
		return
	}
	at := 0
	for i := range n {
		mask := byte(0)
		if ix.KeyFields[i].Descending {
			mask = 0xff
		}
		at = valueEnd(s.last, at, mask)
	}
	prefix := s.last[:at]
	if s.backward {
		s.goal = &target{prefix}
		return
	}
	s.goal = &target{successor(prefix)}
}
