package planner

import (
	"slices"
	"sync"
	"sync/atomic"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
)

// QuerySettings are what somebody has set for queries of some shapes, on all members of a
// deployment: which indexes their plans may use, or that they are refused. Safe for concurrent use;
// the zero value has none.
type QuerySettings struct {
	some atomic.Bool
	mu   sync.Mutex
	list []QuerySetting
}

// QuerySetting is what is set for the queries of one shape. It is not changed once it is kept.
type QuerySetting struct {
	Hash     string // of the shape, in hexadecimal
	Settings bson.Raw
	Query    bson.Raw // that the shape was taken from; nil: nobody has said one
	Shape    bson.Raw // nil with that
}

// Some reports whether anything is set: without, no shape has to be made.
func (q *QuerySettings) Some() bool { return q.some.Load() }

// List returns what is set, in the order in which it came.
func (q *QuerySettings) List() []QuerySetting {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Replace makes a list what is set, as after List.
func (q *QuerySettings) Replace(list []QuerySetting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = slices.Clone(list)
	q.some.Store(len(list) > 0)
}

// Find returns what is set for a shape, nil if nothing is.
func (q *QuerySettings) Find(hash string) *QuerySetting {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.at(hash); i >= 0 {
		s := q.list[i]
		return &s
	}
	return nil
}

func (q *QuerySettings) at(hash string) int {
	return slices.IndexFunc(q.list, func(s QuerySetting) bool { return s.Hash == hash })
}

// Set keeps a setting in place of that for the same shape.
func (q *QuerySettings) Set(s QuerySetting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.at(s.Hash); i >= 0 {
		q.list[i] = s
	} else {
		q.list = append(q.list, s)
	}
	q.some.Store(true)
}

// Remove removes what is set for a shape, if anything is.
func (q *QuerySettings) Remove(hash string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.at(hash); i >= 0 {
		q.list = slices.Delete(q.list, i, i+1)
	}
	q.some.Store(len(q.list) > 0)
}

// Rejects reports whether queries of the shape are refused. s may be nil.
func (s *QuerySetting) Rejects() bool { return s != nil && s.Settings.Lookup("reject").AsBool() }

// Allowed returns the indexes that the plans of a collection may use, by name or pattern; ok is
// false if nothing is said of the collection. s may be nil.
func (s *QuerySetting) Allowed(ns string) (indexes bson.RawValue, ok bool) {
	if s == nil {
		return indexes, false
	}
	db, coll := namespace.Split(ns)
	for _, hint := range bsondoc.Items(s.Settings.Lookup("indexHints")) {
		d, _ := bson.Raw(hint.Value).Lookup("ns", "db").StringValue()
		c, _ := bson.Raw(hint.Value).Lookup("ns", "coll").StringValue()
		if d == db && c == coll {
			return bson.Raw(hint.Value).Lookup("allowedIndexes"), true
		}
	}
	return indexes, false
}

// settled is what settings say about the plans of a query: a filter of the indexes, and whether the
// collection may be scanned.
func (a *Access) settled() (f *IndexFilter, scans, back bool) {
	indexes, ok := a.Settings.Allowed(a.Coll.NS)
	if !ok {
		return nil, false, false
	}
	for _, v := range bsondoc.Items(indexes) {
		if s, ok := v.StringValue(); ok && s == "$natural" {
			scans = true
		}
		if doc, ok := v.Document(); ok {
			if natural, down, _ := query.Natural(doc); natural {
				scans, back = true, down
			}
		}
	}
	return &IndexFilter{Entry: bsondoc.Single("indexes", indexes)}, scans, back
}
