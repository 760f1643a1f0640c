package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// SetStruct finds $set of whole documents whose empty fields are left out: such a field keeps its
// old value when the program clears it.
var SetStruct = &analysis.Analyzer{
	Name: "setstruct",
	Doc: "find $set of a whole document with omitempty\n\nbson.M{\"$set\": user} leaves out what is empty, so that a cleared name stays. " +
		"bson.Diff, allium.Save or ReplaceOne write it.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runSetStruct,
}

func runSetStruct(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	for _, s := range u.sites {
		if s.role != updateRole {
			continue
		}
		d, ok := u.document(s.expr)
		if !ok {
			continue
		}
		x := d.get("$set")
		if x == nil {
			continue
		}
		t := pass.TypesInfo.TypeOf(x)
		str, _ := structOf(t)
		if str == nil || marshals(t) {
			continue
		}
		keys, _ := structKeys(str)
		whole := s.call != nil && isElement(pass.TypesInfo, s.call, t)
		var lost []string
		for _, k := range keys {
			whole = whole || k.name == "_id"
			if k.name != "_id" && k.omits && clears(k.typ) {
				lost = append(lost, k.name)
			}
		}
		if !whole || len(lost) == 0 {
			continue
		}
		if len(lost) > 3 {
			lost = append(lost[:3], "…")
		}
		report(pass, x, nil, "$set of a whole %s cannot clear %s: omitempty leaves out what is empty", typeName(t),
			strings.Join(lost, ", "))
	}
	return nil, nil
}

// isElement reports whether t is what the collection of a call is of.
func isElement(info *types.Info, call *ast.CallExpr, t types.Type) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	coll, want := named(info.TypeOf(sel.X)), named(t)
	if coll == nil || want == nil || coll.TypeArgs().Len() != 1 {
		return false
	}
	return types.Identical(types.Unalias(coll.TypeArgs().At(0)), want)
}

// clears reports whether programs clear a field of the type by its zero value: a pointer that is
// nil says rather that nothing is to be done.
func clears(t types.Type) bool {
	switch types.Unalias(t).Underlying().(type) {
	case *types.Basic, *types.Slice, *types.Map:
		return true
	}
	return false
}
