package expr

// $meta.

import (
	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() { registerParser("$meta", parseMeta, shownAsWritten) }

// metaExpr is $meta. What a search finds is not asked for beforehand: only a search engine has it.
type metaExpr struct{ name string }

func parseMeta(_ string, v bson.RawValue, s *Scope, _ int) (Expr, error) {
	name, ok := v.StringValue()
	if !ok {
		return nil, srverr.New(17307, "$meta only supports string arguments")
	}
	switch name {
	case "textScore", "indexKey", "recordId", "randVal", "geoNearDistance", "geoNearPoint", "sortKey":
		s.env.WantsMeta = append(s.env.WantsMeta, name)
		return &metaExpr{name}, nil
	case "score", "scoreDetails":
		if !s.env.Version.Has(release.Value, "$meta="+name) {
			break
		}
		s.env.WantsMeta = append(s.env.WantsMeta, name)
		return &metaExpr{name}, nil
	case "searchScore", "searchHighlights":
		s.env.WantsMeta = append(s.env.WantsMeta, name)
		return &metaExpr{name}, nil
	case "searchScoreDetails", "searchSequenceToken", "vectorSearchScore":
		if !s.env.Version.Has(release.Value, "$meta="+name) {
			break
		}
		s.env.WantsMeta = append(s.env.WantsMeta, name)
		return &metaExpr{name}, nil
	}
	return nil, srverr.New(17308, "Unsupported argument to $meta: %s", name)
}

func (m *metaExpr) eval(st *State) (bson.RawValue, error) {
	if st.env.Meta == nil {
		return missing, nil
	}
	return st.env.Meta(m.name), nil
}

func (m *metaExpr) optimize(*Env) (Expr, error) { return m, nil }
