package planner

import (
	"allium/bson"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
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
	Run    Running
	NS     string
	Scan   *store.Scan
	Filter *query.Filter
	At     int // the array element that made it match, or -1

	seen int
}

func (s *ScanIter) Next() (bson.Raw, error) {
	for {
		doc, ok := s.Scan.NextDoc()
		if !ok {
			return nil, nil
		}
		if s.seen++; s.seen%checkAfter == 0 {
			if err := s.Run.Interrupted(); err != nil {
				return nil, err
			}
		}
		if s.Filter != nil {
			ok, at, err := s.Filter.MatchIndex(doc)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			s.At = at
		}
		return doc, nil
	}
}

func (s *ScanIter) Close() {}

// RID returns the record id of the last document that the scan has looked at.
func (s *ScanIter) RID() string { return s.Scan.RID() }

// Open returns an iterator over the plan's documents, and the scan that it begins with.
func (p *Plan) Open(run Running, ns string) (pipeline.Iterator, *ScanIter) {
	s := &ScanIter{Run: run, NS: ns, Scan: p.Scan, Filter: p.Filter, At: -1}
	if p.Sort == nil {
		return s, s
	}
	return &SortIter{src: s, sort: p.Sort, scan: s}, s
}

// IndexKey returns the document's key in the plan's index, empty without one.
func (p *Plan) IndexKey(doc bson.Raw) bson.Raw {
	start, b := bson.BeginDocument(nil)
	if p.Index != nil && p.Index.Ordered() {
		var paths []string
		for _, f := range p.Index.Fields {
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
