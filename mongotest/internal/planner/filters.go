package planner

import (
	"slices"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/store"
)

// IndexFilters are the index filters of a node's collections: which indexes the plans of some
// queries may use. A collection that is renamed keeps its filters, and one that is dropped leaves
// none to the next of its name. Safe for concurrent use; the zero value has none.
type IndexFilters struct {
	mu     sync.Mutex
	byUUID map[[16]byte][]IndexFilter // by the UUID of the collection
}

// IndexFilter is a filter for the queries of one shape.
type IndexFilter struct {
	Shape string   // of the queries
	Entry bson.Raw // as planCacheListFilters shows it
}

// List returns the filters of a collection in the order in which they were set.
func (f *IndexFilters) List(c *store.Coll) []IndexFilter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byUUID[c.UUID])
}

// Set adds a filter in place of that for the same shape.
func (f *IndexFilters) Set(c *store.Coll, filter IndexFilter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byUUID == nil {
		f.byUUID = map[[16]byte][]IndexFilter{}
	}
	f.byUUID[c.UUID] = append(withoutShape(f.byUUID[c.UUID], filter.Shape), filter)
}

// Clear removes the filter for a shape; an empty one: all of the collection's.
func (f *IndexFilters) Clear(c *store.Coll, shape string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if shape == "" {
		delete(f.byUUID, c.UUID)
		return
	}
	if list := f.byUUID[c.UUID]; list != nil {
		f.byUUID[c.UUID] = withoutShape(list, shape)
	}
}

func withoutShape(list []IndexFilter, shape string) []IndexFilter {
	return slices.DeleteFunc(slices.Clone(list), func(f IndexFilter) bool { return f.Shape == shape })
}
