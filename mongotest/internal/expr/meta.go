package expr

// $meta.

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

func init() { registerParser("$meta", parseMeta) }

// metaExpr is $meta. Metadata other than the score of a text search is missing.
type metaExpr struct{ name string }

func parseMeta(_ string, v bson.RawValue, s *Scope, _ int) (Expr, error) {
	name, ok := v.StringValue()
	if !ok {
		return nil, srverr.New(17307, "$meta only supports string arguments")
	}
	switch name {
	case "textScore":
		s.env.WantsTextScore = true
		return &metaExpr{name}, nil
	case "indexKey", "recordId", "randVal", "searchScore", "searchHighlights", "geoNearDistance", "geoNearPoint", "sortKey":
		return &metaExpr{name}, nil
	}
	return nil, srverr.New(17308, "Unsupported argument to $meta: %s", name)
}

func (m *metaExpr) eval(st *State) (bson.RawValue, error) {
	if m.name == "textScore" {
		return st.env.TextScore, nil
	}
	return missing, nil
}

func (m *metaExpr) optimize(*Env) (Expr, error) { return m, nil }
