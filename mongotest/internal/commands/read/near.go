package read

// What queries need of indexes without ordered keys: $text, $geoNear.

import (
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
	a := &planner.Access{Coll: c, Filter: filter, Collation: c.Collation}
	a.Text = func() string { return planner.Describe(c.NS, filter, nil, nil, server.ExplicitCollation(c.Collation)) }
	p, err := e.plan(a, ns)
	if err != nil {
		return nil, err
	}
	return p.Scan(e.run, c.NS), nil
}
