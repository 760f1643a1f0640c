package admin

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The commands on the plan cache and on index filters. There is no plan cache, and filters are kept
// and listed but not applied: every query is planned anew.

func init() {
	for _, c := range []*server.Command{
		{Name: "planCacheClear", Needs: server.OnColl("planCacheWrite"), Run: runPlanCacheClear},
		{Name: "planCacheListFilters", Needs: server.OnColl("planCacheIndexFilter"), Run: runListFilters},
		{Name: "planCacheSetFilter", Needs: server.OnColl("planCacheIndexFilter"), Run: runSetFilter},
		{Name: "planCacheClearFilters", Needs: server.OnColl("planCacheIndexFilter"), Run: runClearFilters},
	} {
		c.Where = server.OptIn
		server.Register(c)
	}
}

// planCollection returns the command's collection, and whether it exists.
func planCollection(r *server.Request) (ns string, exists bool, err error) {
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

func runPlanCacheClear(r *server.Request, dst []byte) ([]byte, error) {
	_, _, err := planCollection(r)
	return dst, err
}

func runListFilters(r *server.Request, dst []byte) ([]byte, error) {
	ns, _, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArrayElement(dst, "filters")
	for i, f := range r.Node.IndexFilters.List(ns) {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), f.Entry...)
	}
	return bson.EndDocument(dst, at), nil
}

// queryShape returns the query, sort, projection and collation that a filter is for.
func queryShape(r *server.Request) (bson.Raw, error) {
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

func runSetFilter(r *server.Request, dst []byte) ([]byte, error) {
	ns, exists, err := planCollection(r)
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
	shape, err := queryShape(r)
	if err != nil {
		return dst, err
	}
	at, entry := bson.BeginDocument(nil)
	entry = append(entry, shape.Elements()...)
	entry = bson.EndDocument(bson.AppendRawValue(entry, "indexes", list), at)
	r.Node.IndexFilters.Set(ns, planner.IndexFilter{Shape: shape, Entry: entry})
	return dst, nil
}

func runClearFilters(r *server.Request, dst []byte) ([]byte, error) {
	ns, _, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	var shape bson.Raw
	if !r.Body.Lookup("query").IsZero() {
		if shape, err = queryShape(r); err != nil {
			return dst, err
		}
	}
	r.Node.IndexFilters.Clear(ns, shape)
	return dst, nil
}
