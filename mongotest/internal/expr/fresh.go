package expr

// Operators that make a new value for each document, and $subtype.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerFresh("$createObjectId", func(*State) bson.RawValue {
		id := bson.NewObjectID()
		return bson.RawValue{Type: bson.TypeObjectID, Value: id[:]}
	})
	registerFresh("$currentDate", func(st *State) bson.RawValue { return bsondoc.DateValue(int64(st.env.Now)) })
	registerNary(&naryOp{name: "$subtype", arity: exactly(1),
		eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			b, ok := args[0].Binary()
			switch {
			case nullish(args[0]):
				return null, nil
			case !ok:
				return missing,
					srverr.New(srverr.TypeMismatch, "$subtype only supports BinData, not %s", typeName(args[0]))
			}
			return bsondoc.Int32Value(int32(b.Subtype)), nil
		}})
}

// fresh is an operator without operands whose values are not computed beforehand.
type fresh struct{ value func(st *State) bson.RawValue }

func registerFresh(name string, value func(st *State) bson.RawValue) {
	registerParser(name, func(_ string, v bson.RawValue, _ *Scope, _ int) (Expr, error) {
		if doc, ok := v.Document(); !ok || !doc.IsEmpty() {
			return nil, srverr.New(srverr.FailedToParse, "%s takes an empty object, found: %s", name, Text(v))
		}
		return &fresh{value}, nil
	}, shownAsWritten)
}

func (f *fresh) eval(st *State) (bson.RawValue, error) { return f.value(st), nil }
func (f *fresh) optimize(*Env) (Expr, error)           { return f, nil }
