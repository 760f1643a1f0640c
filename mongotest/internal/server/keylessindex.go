package server

// What queries need of indexes without ordered keys: $text, $geoNear.

import (
	"slices"
	"strings"

	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// specialFields returns the fields of a collection's indexes of some kinds, one per index.
func specialFields(c *store.Coll, kinds ...string) []string {
	var out []string
	for i := range c.Indexes() {
		for _, f := range c.Indexes()[i].Fields {
			if f.Special != "" && strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+f.Special+" ") {
				out = append(out, f.Path)
				break
			}
		}
	}
	return out
}

// useText makes $text search the collection's text index, and refuses it without one.
func (a *access) useText() error {
	if a.filter == nil || !a.filter.NeedsTextIndex() {
		return nil
	}
	switch {
	case a.hint.Type != 0:
		return srverr.New(srverr.BadValue, "text and hint not allowed in same query")
	case a.natural:
		return srverr.New(srverr.BadValue, "text expression not allowed with $natural sort order")
	case a.filter.NeedsGeoIndex():
		return srverr.New(srverr.BadValue, "text and geoNear not allowed in same query")
	}
	for i := range a.coll.Indexes() {
		if text := a.coll.Indexes()[i].Text; text != nil {
			return a.filter.SearchIn(text)
		}
	}
	return srverr.New(srverr.IndexNotFound, "text index required for $text query")
}

// GeoIndex finds the field that $geoNear measures: the one it names, or that of the only geo index.
func (e *pipelineEnv) GeoIndex(ns pipeline.Namespace, key string) (string, error) {
	none := srverr.New(srverr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	c := e.state().Coll(ns.String())
	if c == nil {
		return "", srverr.New(srverr.NamespaceNotFound, "$geoNear requires a geo index to run, but %s does not exist", ns)
	}
	plane, sphere := specialFields(c, "2d"), specialFields(c, "2dsphere")
	switch {
	case key != "":
		return key, nil
	case len(plane) > 1:
		return "", srverr.New(srverr.IndexNotFound, "There is more than one 2d index on %s; unsure which to use for $geoNear", ns)
	case len(plane) == 1: // goes before 2dsphere
		return plane[0], nil
	case len(sphere) > 1:
		return "", srverr.New(srverr.IndexNotFound, "There is more than one 2dsphere index on %s; unsure which to use for $geoNear", ns)
	case len(sphere) == 1:
		return sphere[0], nil
	}
	return "", none
}

// FindNear opens the documents that match a filter with $near.
func (e *pipelineEnv) FindNear(ns pipeline.Namespace, filter *query.Filter) (pipeline.Iterator, error) {
	c := e.state().Coll(ns.String())
	a := &access{coll: c, filter: filter, collation: c.Collation}
	a.text = func() string { return describe(c.NS, filter, nil, nil, explicitCollation(c.Collation)) }
	p, err := a.plan()
	if err != nil {
		return nil, err
	}
	return &scanIter{run: e.run, ns: c.NS, scan: p.scan, filter: p.filter, at: -1}, nil
}

// nearIndexed reports whether the collection has a geo index for the filter's $near.
func nearIndexed(c *store.Coll, n *query.Near) bool {
	for _, kind := range []string{"2d", "2dsphere"} {
		if n.Uses(kind) && slices.Contains(specialFields(c, kind), n.Path()) {
			return true
		}
	}
	return false
}
