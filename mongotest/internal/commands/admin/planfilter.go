package admin

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The commands on the plan cache and on index filters.

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

// planCollection returns the command's collection, nil if there is none.
func planCollection(r *server.Request) (c *store.Coll, ns string, err error) {
	if ns, err = r.Collection(srverr.InvalidNamespace); err != nil {
		return nil, ns, err
	}
	st, err := r.Snapshot()
	if err != nil {
		return nil, ns, err
	}
	c = st.Coll(ns)
	if c != nil && (c.View || c.TimeSeries) {
		return nil, ns, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return c, ns, nil
}

func runPlanCacheClear(r *server.Request, dst []byte) ([]byte, error) {
	c, ns, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	if c == nil {
		return dst, nil // whatever the arguments are
	}
	_, a, err := queryShape(r, ns, c)
	switch {
	case r.Body.Lookup("query").IsZero():
		if !r.Body.Lookup("sort").IsZero() || !r.Body.Lookup("projection").IsZero() ||
			!r.Body.Lookup("collation").IsZero() {
			return dst, srverr.New(srverr.BadValue, "sort, projection or collation provided without query")
		}
		a = nil
	case err != nil:
		return dst, err
	}
	r.Node.Memory.Forget(c, a)
	return dst, nil
}

func runListFilters(r *server.Request, dst []byte) ([]byte, error) {
	c, _, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArrayElement(dst, "filters")
	if c != nil {
		for i, f := range r.Node.Memory.Filters.List(c) {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), f.Entry...)
		}
	}
	return bson.EndDocument(dst, at), nil
}

// queryShape returns the query, sort, projection and collation that a command names, as it has them
// and as the planner does.
func queryShape(r *server.Request, ns string, c *store.Coll) (bson.Raw, *planner.Access, error) {
	at, shape := bson.BeginDocument(nil)
	for _, k := range []string{"query", "sort", "projection", "collation"} {
		v := r.Body.Lookup(k)
		switch {
		case k == "query" && v.IsZero():
			return nil, nil, srverr.New(srverr.BadValue, "required field query missing")
		case v.IsZero() && k == "collation":
			continue
		case v.IsZero():
			v = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bsondoc.OrEmpty(nil)}
		case v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray:
			return nil, nil, srverr.New(srverr.BadValue, "required field %s must be an object", k)
		case k == "collation" && bson.Raw(v.Value).IsEmpty():
			return nil, nil, srverr.New(srverr.BadValue, "required field collation cannot be empty")
		}
		shape = bson.AppendRawValue(shape, k, v)
	}
	doc := bson.Raw(bson.EndDocument(shape, at))
	part := func(name string) bson.Raw { return bsondoc.Copy(doc.Lookup(name).Value) }
	op := server.Selection{Q: part("query"), Sort: part("sort"), Collation: part("collation")}
	if op.Collation.IsEmpty() {
		op.Collation = nil
	}
	if err := op.Parse(r, ns, c); err != nil {
		return nil, nil, err
	}
	if op.Collation != nil && op.Coll != nil { // it is shown with all of its fields
		rest := bsondoc.Without(doc, "collation")
		doc = bsondoc.Build(func(d *bsondoc.Builder) {
			d.B = append(d.B, rest.Elements()...)
			d.Doc("collation", op.Coll.Spec())
		})
	}
	a := &planner.Access{Coll: c, Filter: op.Filter, Sort: op.Order, Collation: op.Coll}
	a.Wants.SortSpec, a.Wants.Projected, a.Wants.Collated = op.Sort, part("projection"), op.Collation
	return doc, a, nil
}

func runSetFilter(r *server.Request, dst []byte) ([]byte, error) {
	c, ns, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	if c == nil {
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
	shape, a, err := queryShape(r, ns, c)
	if err != nil {
		return dst, err
	}
	at, entry := bson.BeginDocument(nil)
	entry = append(entry, shape.Elements()...)
	entry = bson.EndDocument(bson.AppendRawValue(entry, "indexes", list), at)
	r.Node.Memory.Filters.Set(c, planner.IndexFilter{Shape: a.Shape(), Entry: entry})
	r.Node.Memory.Forget(c, a)
	return dst, nil
}

func runClearFilters(r *server.Request, dst []byte) ([]byte, error) {
	c, ns, err := planCollection(r)
	if err != nil {
		return dst, err
	}
	if c == nil {
		return dst, nil // whatever the arguments are
	}
	shape, a := "", (*planner.Access)(nil)
	if !r.Body.Lookup("query").IsZero() {
		if _, a, err = queryShape(r, ns, c); err != nil {
			return dst, err
		}
		shape = a.Shape()
	}
	r.Node.Memory.Filters.Clear(c, shape)
	r.Node.Memory.Forget(c, a)
	return dst, nil
}
