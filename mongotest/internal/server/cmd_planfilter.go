package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// The commands on the plan cache and on index filters. There is no plan cache, and filters are kept
// and listed but not applied: every query is planned anew.

func init() {
	Register(&Command{Name: "planCacheClear", Where: OptIn, Run: runPlanCacheClear})
	Register(&Command{Name: "planCacheListFilters", Where: OptIn, Run: runListFilters})
	Register(&Command{Name: "planCacheSetFilter", Where: OptIn, Run: runSetFilter})
	Register(&Command{Name: "planCacheClearFilters", Where: OptIn, Run: runClearFilters})
}

// indexFilter is an entry of planCacheListFilters.
type indexFilter struct{ shape, entry bson.Raw }

// planCollection returns the command's collection, and whether it exists.
func (r *Request) planCollection() (ns string, exists bool, err error) {
	if ns, err = r.Collection(srverr.InvalidNamespace); err != nil {
		return ns, false, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return ns, false, err
	}
	c := st.Coll(ns)
	if c != nil && c.View {
		return ns, false, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return ns, c != nil, nil
}

func runPlanCacheClear(r *Request, dst []byte) ([]byte, error) {
	_, _, err := r.planCollection()
	return dst, err
}

func runListFilters(r *Request, dst []byte) ([]byte, error) {
	ns, _, err := r.planCollection()
	if err != nil {
		return dst, err
	}
	n := r.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	at, dst := bson.BeginArrayElement(dst, "filters")
	for i, f := range n.indexFilters[ns] {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), f.entry...)
	}
	return bson.EndDocument(dst, at), nil
}

// queryShape returns the query, sort, projection and collation that a filter is for.
func (r *Request) queryShape() (bson.Raw, error) {
	at, shape := bson.BeginDocument(nil)
	for _, k := range []string{"query", "sort", "projection", "collation"} {
		v := r.Body.Lookup(k)
		switch {
		case k == "query" && v.IsZero():
			return nil, srverr.New(srverr.BadValue, "required field query missing")
		case v.IsZero() && k == "collation":
			continue
		case v.IsZero():
			v = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bsondoc.OrEmpty(nil)}
		case v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray:
			return nil, srverr.New(srverr.BadValue, "required field %s must be an object", k)
		}
		shape = bson.AppendRawValue(shape, k, v)
	}
	return bson.EndDocument(shape, at), nil
}

func runSetFilter(r *Request, dst []byte) ([]byte, error) {
	ns, exists, err := r.planCollection()
	if err != nil {
		return dst, err
	}
	if !exists {
		return dst, srverr.New(srverr.BadValue, "no such collection")
	}
	list := r.Body.Lookup("indexes")
	switch {
	case list.IsZero():
		return dst, srverr.New(srverr.BadValue, "required field indexes missing")
	case list.Type != bson.TypeArray:
		return dst, srverr.New(srverr.BadValue, "required field indexes must be an array")
	case bson.Raw(list.Value).IsEmpty():
		return dst, srverr.New(srverr.BadValue, "required field indexes must contain at least one index")
	}
	for v := range bson.Raw(list.Value).Values() {
		switch {
		case v.Type == bson.TypeEmbeddedDocument && bson.Raw(v.Value).IsEmpty():
			return dst, srverr.New(srverr.BadValue, "index specification cannot be empty")
		case v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeString:
			return dst, srverr.New(srverr.BadValue, "each item in indexes must be an object or string")
		}
	}
	shape, err := r.queryShape()
	if err != nil {
		return dst, err
	}
	at, entry := bson.BeginDocument(nil)
	entry = append(entry, shape.Elements()...)
	entry = bson.EndDocument(bson.AppendRawValue(entry, "indexes", list), at)
	n := r.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.indexFilters == nil {
		n.indexFilters = map[string][]indexFilter{}
	}
	n.indexFilters[ns] = append(withoutShape(n.indexFilters[ns], shape), indexFilter{shape, entry})
	return dst, nil
}

func runClearFilters(r *Request, dst []byte) ([]byte, error) {
	ns, _, err := r.planCollection()
	if err != nil {
		return dst, err
	}
	n := r.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Body.Lookup("query").IsZero() {
		delete(n.indexFilters, ns)
		return dst, nil
	}
	shape, err := r.queryShape()
	if err == nil && n.indexFilters[ns] != nil {
		n.indexFilters[ns] = withoutShape(n.indexFilters[ns], shape)
	}
	return dst, err
}

func withoutShape(list []indexFilter, shape bson.Raw) []indexFilter {
	return slices.DeleteFunc(list, func(f indexFilter) bool { return bson.Equal(f.shape, shape) })
}
