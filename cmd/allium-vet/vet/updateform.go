package vet

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// UpdateForm finds updates without operators, and replacements with them.
var UpdateForm = &analysis.Analyzer{
	Name:     "updateform",
	Doc:      "find updates without operators, and replacements with them\n\nUpdateOne(ctx, f, bson.M{\"name\": n}) is refused: {\"$set\": …} is meant, or ReplaceOne.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runUpdateForm,
}

func runUpdateForm(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	for _, s := range u.sites {
		d, isDoc := u.document(s.expr)
		switch s.role {
		case updateRole:
			switch {
			case isDoc && d.whole && len(d.entries) == 0:
				report(pass, s.expr, nil, "an empty update is refused")
			case isDoc:
				for _, e := range d.entries {
					if e.known && !strings.HasPrefix(e.key, "$") {
						report(pass, e.node, nil, "%s needs operators: {$set: {%s: …}}", s.method, e.key)
						break
					}
				}
			case plainStruct(pass.TypesInfo.TypeOf(s.expr)):
				report(pass, s.expr, nil, "%s needs operators: {$set: …} around the %s, or ReplaceOne", s.method,
					typeName(pass.TypesInfo.TypeOf(s.expr)))
			}
		case replacementRole:
			for _, e := range d.entries {
				if e.known && strings.HasPrefix(e.key, "$") {
					report(pass, e.node, nil, "%s replaces the document: %s is for updates", s.method, e.key)
					break
				}
			}
		}
	}
	return nil, nil
}

// plainStruct reports whether values of the type become documents without operators.
func plainStruct(t types.Type) bool {
	s, n := structOf(t)
	if s == nil || marshals(t) || n != nil && n.Obj().Pkg() != nil &&
		(isDriver(n.Obj().Pkg()) || isBSON(n.Obj().Pkg()) || strings.HasPrefix(n.Obj().Pkg().Path(), module+"/")) {
		return false
	}
	keys, certain := structKeys(s)
	if !certain || len(keys) == 0 {
		return false
	}
	for _, k := range keys {
		if strings.HasPrefix(k.name, "$") {
			return false
		}
	}
	return true
}
