package vet

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
)

// MapOrder finds maps with two keys or more where the order of the keys means something: a map has
// none.
var MapOrder = &analysis.Analyzer{
	Name:     "maporder",
	Doc:      "find maps where the order of keys decides\n\nSorts, index keys, hints and commands need a bson.D: bson.M{\"city\": 1, \"name\": 1} sorts by either first.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runMapOrder,
}

func runMapOrder(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	done := map[ast.Node]bool{}
	w := &walker{usage: u}
	w.order = func(x ast.Expr, d document, what string) {
		switch {
		case done[d.lit]:
		case what == "stage" && d.first() != "" && d.entries[0].key[0] == '$':
			done[d.lit] = true
			report(pass, d.lit, nil, "a stage has one operator, not %d: each needs a document of its own",
				len(d.entries))
		case what != "stage" && d.isMap:
			done[d.lit] = true
			report(pass, d.lit, orderFix(x, d), "the order of the keys decides in %s, and a map has none: use a bson.D",
				what)
		}
	}
	for _, s := range u.sites {
		w.walk(s)
	}
	return nil, nil
}

// orderFix writes a bson.M as a bson.D, with its keys as they stand.
func orderFix(x ast.Expr, d document) []analysis.SuggestedFix {
	typ, ok := d.lit.Type.(*ast.SelectorExpr)
	if !ok || typ.Sel.Name != "M" || ast.Unparen(x) != d.lit {
		return nil
	}
	edits := []analysis.TextEdit{replace(typ.Sel, "D")}
	for _, elt := range d.lit.Elts {
		kv := elt.(*ast.KeyValueExpr)
		edits = append(edits, insert(kv.Pos(), "{Key: "), analysis.TextEdit{Pos: kv.Key.End(), End: kv.Value.Pos(),
			NewText: []byte(", Value: ")}, insert(kv.End(), "}"))
	}
	return fix("Write a bson.D", edits...)
}
