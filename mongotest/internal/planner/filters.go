package planner

import (
	"slices"
	"sync"

	"allium/bson"
)

// IndexFilters are the index filters of a node's collections. They are kept and listed but not
// applied: every query is planned anew. Safe for concurrent use; the zero value has none.
type IndexFilters struct {
	mu   sync.Mutex
	byNS map[string][]IndexFilter
}

// IndexFilter is a filter for the queries of one shape.
type IndexFilter struct {
	Shape bson.Raw // query, sort, projection and collation
	Entry bson.Raw // as planCacheListFilters shows it
}

// List returns the filters of a collection in the order in which they were set.
func (f *IndexFilters) List(ns string) []IndexFilter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byNS[ns])
}

// Set adds a filter in place of that for the same shape.
func (f *IndexFilters) Set(ns string, filter IndexFilter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byNS == nil {
		f.byNS = map[string][]IndexFilter{}
	}
	f.byNS[ns] = append(withoutShape(f.byNS[ns], filter.Shape), filter)
}

// Clear removes the filter for a shape; nil: all of the collection's.
func (f *IndexFilters) Clear(ns string, shape bson.Raw) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if shape == nil {
		delete(f.byNS, ns)
		return
	}
	if list := f.byNS[ns]; list != nil {
		f.byNS[ns] = withoutShape(list, shape)
	}
}

func withoutShape(list []IndexFilter, shape bson.Raw) []IndexFilter {
	return slices.DeleteFunc(list, func(f IndexFilter) bool { return bson.Equal(f.Shape, shape) })
}
