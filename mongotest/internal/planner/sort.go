package planner

import (
	"allium/bson"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// SortIter yields its source's documents in order.
type SortIter struct {
	src    pipeline.Iterator
	sort   *query.Sort
	Limit  int64 // only the first ones are of interest; 0: all
	Most   int64 // how many bytes it may hold; 0: any number
	loaded bool
	rows   []row
	scan   *ScanIter // tells what the documents are
	Meta   func(doc bson.Raw, name string) bson.RawValue
	last   row
	// Context is what the server puts before errors of sorting.
	Context string
}

func (s *SortIter) Next() (bson.Raw, error) {
	if !s.loaded {
		if err := s.load(); err != nil {
			return nil, err
		}
	}
	if len(s.rows) == 0 {
		return nil, nil
	}
	s.last, s.rows[0] = s.rows[0], row{}
	s.rows = s.rows[1:]
	return s.last.doc, nil
}

// RID returns the record id of the last document.
func (s *SortIter) RID() string { return s.last.rid }

// IndexKey returns the key that the last document was found by.
func (s *SortIter) IndexKey() bson.Raw { return s.last.key() }

// Covered returns what the index tells of the last document, nil if that was fetched.
func (s *SortIter) Covered() bson.Raw { return s.last.covered() }

func (s *SortIter) load() (err error) {
	defer work.Catch(&err)
	size := int64(0)
	type keyed struct {
		key []bson.RawValue
		row row
	}
	var list []keyed
	sorted := func() { query.SortByKey(s.sort, list, func(k *keyed) []bson.RawValue { return k.key }) }
	var doc bson.Raw
	var meta func(name string) bson.RawValue
	if s.Meta != nil {
		meta = func(name string) bson.RawValue { return s.Meta(doc, name) }
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
			if s.Context != "" {
				err = srverr.From(err).Prefix(s.Context + " :: caused by :: ")
			}
			return err
		}
		list = append(list, keyed{key, s.scan.current(doc)})
		size += int64(len(doc))
		full := s.Most > 0 && size > s.Most
		if n := int64(len(list)); s.Limit > 0 && n > s.Limit && (n >= 2*s.Limit+1000 || full) {
			sorted()
			clear(list[s.Limit:])
			list = list[:s.Limit]
			size = 0
			for _, k := range list {
				size += int64(len(k.row.doc))
			}
			full = s.Most > 0 && size > s.Most
		}
		if full {
			return errSortMemory(s.Most).Prefix("Executor error during find command :: caused by :: ")
		}
	}
	sorted()
	s.rows = make([]row, len(list))
	for i := range list {
		s.rows[i] = list[i].row
	}
	s.loaded = true
	return nil
}

// errSortMemory is the error of a sort that would hold more than it may.
func errSortMemory(most int64) *srverr.Error {
	return srverr.New(srverr.QueryExceededMemoryLimitNoDiskUseAllowed,
		"Sort exceeded memory limit of %d bytes, but did not opt in to external sorting.", most)
}

func (s *SortIter) Close() { s.rows = nil; s.src.Close() }
