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

// checkText refuses $text on a collection without a text index.
func (a *access) checkText() error {
	if a.filter != nil && a.filter.NeedsTextIndex() && len(specialFields(a.coll, "text")) == 0 {
		return srverr.New(srverr.IndexNotFound, "text index required for $text query")
	}
	return nil
}

// GeoIndex finds the field that $geoNear measures: the one it names, or that of the only geo index.
func (e *pipelineEnv) GeoIndex(ns pipeline.Namespace, key string) (string, error) {
	none := srverr.New(srverr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
	c := e.state().Coll(ns.String())
	if c == nil {
		return "", none
	}
	fields := specialFields(c, "2d", "2dsphere")
	switch {
	case key != "":
		for _, f := range fields {
			if f == key {
				return key, nil
			}
		}
		return "", srverr.New(srverr.BadValue, "unable to find index for $geoNear query")
	case len(fields) == 0:
		return "", none
	case len(fields) > 1:
		return "", srverr.New(srverr.IndexNotFound, "There is more than one 2d index on %s; unsure which to use for $geoNear", ns)
	}
	return fields[0], nil
}
