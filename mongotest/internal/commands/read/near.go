package read

// $geoNear: the index that it needs, its query, and what explain shows of it.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// GeoIndex finds the field that $geoNear measures: the one it names, or that of the only geo index.
func (e *pipelineEnv) GeoIndex(ns pipeline.Namespace, key string) (string, error) {
	none := srverr.New(srverr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	c := e.state().Coll(ns.String())
	if c == nil {
		return "", srverr.New(srverr.NamespaceNotFound, "$geoNear requires a geo index to run, but %s does not exist",
			ns)
	}
	plane, sphere := planner.SpecialFields(c, "2d"), planner.SpecialFields(c, "2dsphere")
	switch {
	case key != "":
		return key, nil
	case len(plane) > 1:
		return "", srverr.New(srverr.IndexNotFound,
			"There is more than one 2d index on %s; unsure which to use for $geoNear", ns)
	case len(plane) == 1: // goes before 2dsphere
		return plane[0], nil
	case len(sphere) > 1:
		return "", srverr.New(srverr.IndexNotFound,
			"There is more than one 2dsphere index on %s; unsure which to use for $geoNear", ns)
	case len(sphere) == 1:
		return sphere[0], nil
	}
	return "", none
}

// FindNear opens the documents that match a filter with $near.
func (e *pipelineEnv) FindNear(ns pipeline.Namespace, filter *query.Filter) (pipeline.Iterator, error) {
	c := e.state().Coll(ns.String())
	a := &planner.Access{Coll: c, Filter: filter, Collation: c.Collation, Version: e.run.Request.Version()}
	if ns == e.hinted {
		a.Hint = e.hint
	}
	a.Text = func() string { return planner.Describe(c.NS, filter, nil, nil, server.ExplicitCollation(c.Collation)) }
	p, err := e.plan(a, ns)
	if err != nil {
		return nil, err
	}
	return e.run.Open(p, c.NS), nil
}

// takeNear makes a $geoNear in front the query, as versions from 4.4 on show it.
func (e *explainTarget) takeNear(r *server.Request) bool {
	if !r.Version().AtLeast(4, 4) || len(e.rest) == 0 {
		return false
	}
	name, v := bsondoc.FirstElement(e.rest[0])
	spec, ok := v.Document()
	if !ok || name != "$geoNear" {
		return false
	}
	st, err := r.Snapshot(e.q.ns)
	if err != nil {
		return false
	}
	db, coll := namespace.Split(e.q.ns)
	key, _ := spec.Lookup("key").StringValue()
	env := &pipelineEnv{run: &server.Running{Request: r, State: st}}
	field, err := env.GeoIndex(pipeline.Namespace{DB: db, Coll: coll}, key)
	if err != nil {
		return false
	}
	e.q.filter, err = pipeline.NearQuery(spec, field, func(v bson.RawValue) (bson.RawValue, error) {
		x, err := r.FullOptions(e.q.ns, nil, e.q.let).Expr.ParseExpr(v)
		if err != nil {
			return v, err
		}
		return x.Eval(bsondoc.OrEmpty(nil))
	})
	if err != nil {
		e.q.filter = nil
		return false
	}
	e.front, e.rest, e.nearest = e.rest[:1], e.rest[1:], true
	return true
}

// cursorName is what stands for the query among the stages.
func (e *explainTarget) cursorName() string {
	if e.nearest {
		return "$geoNearCursor"
	}
	return "$cursor"
}
