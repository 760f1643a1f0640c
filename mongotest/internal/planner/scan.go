package planner

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/store"
)

// Running is the command that pulls from an iterator at the moment.
type Running interface {
	// Interrupted returns the error that ends the command, nil while it may go on.
	Interrupted() error
}

// checkAfter is how many documents a scan looks at before it asks whether the command goes on.
const checkAfter = 128

// ScanIter yields the documents of a plan that match.
type ScanIter struct {
	Run Running
	NS  string

	plan *Plan
	env  *env
	row  row
	seen int
	at   int // the array element that made the last document match, or -1
	docs int64
}

// Scan returns an iterator over a plan's documents, in the order in which the plan has them.
func (p *Plan) Scan(run Running, ns string) *ScanIter {
	return &ScanIter{Run: run, NS: ns, plan: p, env: p.env(), at: -1}
}

func (s *ScanIter) check() error {
	if s.seen++; s.seen%checkAfter == 0 {
		return s.Run.Interrupted()
	}
	return nil
}

// Next returns the next document, nil at the end.
func (s *ScanIter) Next() (bson.Raw, error) {
	if s.plan.scan == nil {
		return s.step()
	}
	filter := s.plan.Filter
	for {
		doc, ok := s.plan.scan.NextDoc()
		if !ok {
			return nil, nil
		}
		if err := s.check(); err != nil {
			return nil, err
		}
		if filter != nil {
			ok, at, err := filter.MatchIndex(doc)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			s.at = at
		}
		s.docs++
		return doc, nil
	}
}

func (s *ScanIter) step() (bson.Raw, error) {
	for {
		st, err := s.plan.Root.work(s.env, &s.row)
		if err != nil || st == isEOF {
			return nil, err
		}
		if err := s.check(); err != nil {
			return nil, err
		}
		if st != advanced {
			continue
		}
		if doc := s.row.document(); doc != nil {
			return doc, nil
		}
	}
}

func (s *ScanIter) Close() {}

// RID returns the record id of the last document that the scan has looked at.
func (s *ScanIter) RID() string {
	if s.plan.scan != nil {
		return s.plan.scan.RID()
	}
	return s.row.rid
}

// At returns which element of an array made the last document match, -1 for none.
func (s *ScanIter) At() (int, error) {
	if s.plan.scan == nil && s.plan.Filter != nil {
		_, at, err := s.plan.Filter.MatchIndex(s.row.document())
		return at, err
	}
	return s.at, nil
}

// current returns the last document with what is known of it.
func (s *ScanIter) current(doc bson.Raw) row {
	if s.plan.scan != nil {
		return row{rid: s.plan.scan.RID(), doc: doc}
	}
	r := s.row
	r.doc, r.scan = doc, nil
	return r
}

// IndexKey returns the key of the index that the last document was found by, as a document with the
// index's fields; it is empty if there was no index.
func (s *ScanIter) IndexKey() bson.Raw {
	if s.plan.scan != nil {
		return (&row{}).key()
	}
	s.row.document()
	return s.row.key()
}

// Covered returns the document that the index's key tells of, with the paths that it has, if the
// plan yields what the keys have without a look at the documents; else nil. What a document lacks
// is null there, as in the key.
func (s *ScanIter) Covered() bson.Raw {
	if s.plan.scan != nil {
		return nil
	}
	s.row.document() // the key's values are read from it
	return s.row.covered()
}

func (r *row) covered() bson.Raw {
	if !r.keyed {
		return nil
	}
	doc := bsondoc.OrEmpty(nil)
	for path, v := range r.key().All() {
		doc = bsondoc.SetPath(doc, strings.Split(path, "."), v)
	}
	return doc
}

func (r *row) key() bson.Raw {
	start, b := bson.BeginDocument(nil)
	switch in := r.index; {
	case in == nil || in.Index == nil:
	case in.atOnce() && (in.Index == nil || in.Index.IsID):
		b = bson.AppendRawValue(b, "_id", r.doc.Lookup("_id"))
	case in.Index.Ordered():
		key, _ := in.Index.Key(r.doc, r.entry)
		for i, v := range key {
			b = bson.AppendRawValue(b, in.keyField(i), v)
		}
	}
	return bson.EndDocument(b, start)
}

// Ran returns the stages of the plan with what they have done so far.
func (s *ScanIter) Ran() *Stage {
	root := s.plan.Root
	if s.plan.scan != nil {
		root.Docs, root.Works, root.Advanced = s.plan.scan.DocsSeen, s.plan.scan.DocsSeen+1, s.docs
		root.NeedTime = root.Works - root.Advanced
	}
	if s.plan.blocks {
		return &Stage{Name: "SORT", Spec: s.plan.access.Wants.SortSpec, Type: "simple", Inputs: []*Stage{root},
			Figures: Figures{Advanced: root.Advanced}}
	}
	return root
}

// Plan returns the plan.
func (s *ScanIter) Plan() *Plan { return s.plan }

// Examined returns how many keys and documents the plan has looked at so far.
func (s *ScanIter) Examined() (keys, docs int64) {
	if s.plan.scan != nil {
		return 0, s.plan.scan.DocsSeen
	}
	return s.plan.Root.Examined()
}

// Coll returns the state of the collection that the scan is on.
func (s *ScanIter) Coll() *store.Coll { return s.env.coll }

// Reset moves the scan on to another state of the same collection. ok is false if an index, whose
// name it returns, is gone.
func (s *ScanIter) Reset(c *store.Coll) (index string, ok bool) {
	s.env.coll, s.plan.Coll = c, c
	if s.plan.scan != nil {
		return "", s.plan.scan.Reset(c)
	}
	return s.plan.Root.reset(c)
}

// Rest lets go of the collection's documents while nobody reads: a Reset has to come before the
// next document.
func (s *ScanIter) Rest() {
	at := &store.Coll{Info: s.env.coll.Info}
	was := s.plan.access
	wants := Wants{SortSpec: was.Wants.SortSpec, Tailable: was.Wants.Tailable}
	s.env.coll, s.plan.Coll, s.plan.access = at, at,
		&Access{Coll: at, Version: was.Version, Sort: was.Sort, Wants: wants}
	if s.plan.scan != nil {
		s.plan.scan.Rest()
		return
	}
	s.plan.Root.rest()
}

// Lost reports whether the record that a scan of the collection stands on is gone, and which it
// was.
func (s *ScanIter) Lost() (record int64, lost bool) {
	if s.plan.scan == nil || !s.plan.scan.Lost() {
		return 0, false
	}
	return store.RecordNumber(s.plan.scan.Position()), true
}

// Open returns an iterator over the plan's documents in the wanted order, and the scan that it
// begins with.
func (p *Plan) Open(run Running, ns string) (pipeline.Iterator, *ScanIter) {
	s := p.Scan(run, ns)
	if p.Sort == nil {
		return s, s
	}
	return &SortIter{src: s, sort: p.Sort, scan: s}, s
}
