package vet

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// EmptyFilter finds structs as filters of deletes and updates whose fields may all be left out: the
// filter is then empty, and matches every document.
var EmptyFilter = &analysis.Analyzer{
	Name:     "emptyfilter",
	Doc:      "find filters that may be empty in deletes and updates\n\nA struct whose fields are all omitempty is {} if none is set, and DeleteMany deletes everything.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runEmptyFilter,
}

func runEmptyFilter(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	for _, s := range u.sites {
		if s.role != filterRole || !changes(s.method) {
			continue
		}
		t := pass.TypesInfo.TypeOf(s.expr)
		str, _ := structOf(t)
		if str == nil || marshals(t) {
			continue
		}
		keys, certain := structKeys(str)
		mayBeEmpty := certain && len(keys) > 0
		for _, k := range keys {
			mayBeEmpty = mayBeEmpty && k.omits
		}
		if !mayBeEmpty || setsConstant(u, s.expr) {
			continue
		}
		report(pass, s.expr, nil, "if no field of the %s is set, the filter is empty and %s takes any document: all its fields are omitempty", typeName(t), s.method)
	}
	return nil, nil
}

func changes(method string) bool {
	for _, part := range []string{"Delete", "Update", "Replace"} {
		if strings.Contains(method, part) {
			return true
		}
	}
	return false
}

// setsConstant reports whether the struct is written here with a field that is not zero.
func setsConstant(u *usage, x ast.Expr) bool {
	lit, _ := u.literal(x)
	if lit == nil {
		return false
	}
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			elt = kv.Value
		}
		if tv := u.info.Types[elt]; tv.Value != nil && !isZero(tv.Value.ExactString()) {
			return true
		}
	}
	return false
}

func isZero(constant string) bool {
	return constant == `""` || constant == "0" || constant == "false"
}
