package server

import (
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// BucketSource returns the time series collection whose buckets a namespace names, or nil. With the
// argument rawData, which older versions have refused before, the collection's own name does so,
// too.
func (r *Request) BucketSource(st series.Catalog, ns string) *store.Coll {
	return series.Source(st, ns, r.Body.Lookup("rawData").AsBool())
}

// Buckets returns the buckets of a time series collection, as a collection of this name has them.
func (r *Request) Buckets(source *store.Coll, ns string) *series.Buckets {
	return series.Of(source, ns, r.Version(), work.New(r.Check))
}

// ShowBuckets returns the state with the buckets of a namespace, if it names some.
func (r *Request) ShowBuckets(st *store.State, ns string) *store.State {
	if source := r.BucketSource(st, ns); source != nil {
		return st.With(r.Buckets(source, ns).Coll())
	}
	return st
}
