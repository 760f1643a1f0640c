package server

// What queries need of indexes without ordered keys: $text, $geoNear.

import (
	"strings"

	"allium/mongotest/internal/pipeline"
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
		return "", none
	}
	fields, plane, sphere := specialFields(c, "2d", "2dsphere"), specialFields(c, "2d"), specialFields(c, "2dsphere")
	switch {
	case key != "":
		for _, f := range fields {
			if f == key {
				return key, nil
			}
		}
		return "", srverr.New(srverr.BadValue, "unable to find index for $geoNear query")
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
