package planner

import (
	"slices"
	"sync"

	"allium/bson"
)

// IndexFilters are the index filters of a node's collections: which indexes the plans of some
// queries may use. Safe for concurrent use; the zero value has none.
type IndexFilters struct {
	mu   sync.Mutex
	byNS map[string][]IndexFilter
}

// IndexFilter is a filter for the queries of one shape.
type IndexFilter struct {
	Shape string   // of the queries
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

// Clear removes the filter for a shape; an empty one: all of the collection's.
func (f *IndexFilters) Clear(ns, shape string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if shape == "" {
		delete(f.byNS, ns)
		return
	}
	if list := f.byNS[ns]; list != nil {
		f.byNS[ns] = withoutShape(list, shape)
	}
}

func withoutShape(list []IndexFilter, shape string) []IndexFilter {
	return slices.DeleteFunc(slices.Clone(list), func(f IndexFilter) bool { return f.Shape == shape })
}
