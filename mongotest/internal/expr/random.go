package expr

// $rand.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerParser("$rand", func(_ string, v bson.RawValue, s *Scope, _ int) (Expr, error) {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			if bson.Raw(v.Value).IsEmpty() {
				return &randomExpr{}, nil
			}
			return nil, srverr.New(3040501, "$rand does not currently accept arguments")
		case bson.TypeArray:
			if bson.Raw(v.Value).IsEmpty() {
				return &randomExpr{}, nil
			}
			if s.env.Version.AllParsed() {
				return nil, srverr.New(3040501, "$rand does not currently accept arguments")
			}
		}
		return nil, srverr.New(10065, "invalid parameter: expected an object ($rand)")
	})
}

type randomExpr struct{}

func (*randomExpr) eval(st *State) (bson.RawValue, error) {
	return bsondoc.DoubleValue(st.env.float64()), nil
}
func (r *randomExpr) optimize(*Env) (Expr, error) { return r, nil }
