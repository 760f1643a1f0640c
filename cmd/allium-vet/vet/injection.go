package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Injection finds what a client can turn into operators or paths: values without a type that were
// decoded from a request and stand in a filter, and its texts in expressions.
var Injection = &analysis.Analyzer{
	Name: "injection",
	Doc: "find operators and paths that come from requests\n\n{\"password\": body[\"password\"]} matches any password if the client sends {\"$ne\": null}; " +
		"a text such as \"$secret\" in an expression reads that field.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runInjection,
}

func runInjection(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	if len(u.sites) == 0 {
		return nil, nil
	}
	functions(u, func(fn ast.Node, typ *ast.FuncType, body *ast.BlockStmt, around []ast.Node) {
		reqs := requests(pass.TypesInfo, typ)
		if len(reqs) == 0 {
			return
		}
		in := inputOf(u, reqs, body)
		for _, s := range u.sites {
			if s.expr.Pos() >= body.Pos() && s.expr.End() <= body.End() {
				in.check(pass, s)
			}
		}
	})
	return nil, nil
}

func (in *input) check(pass *analysis.Pass, s site) {
	w := &walker{usage: in.usage}
	w.filter = func(x ast.Expr) {
		if isOpen(pass.TypesInfo.TypeOf(x)) && in.isDecoded(x, 0) {
			report(pass, x, nil, "the client chooses the operators of this %s: read its fields into a struct with types", s.role)
		}
	}
	w.equal = func(d document, e entry) {
		if e.name != nil && !e.known && in.isInputText(e.name, 0) {
			report(pass, e.name, nil, "the client chooses the field, or an operator such as $where: compare the name with those that are allowed")
		}
		if e.value == nil || !isOpen(pass.TypesInfo.TypeOf(e.value)) || !in.isDecoded(e.value, 0) {
			return
		}
		var fixes []analysis.SuggestedFix
		if text := documentType(d, `"$eq"`, source(pass, e.value)); text != "" {
			fixes = fix("Compare with $eq", replace(e.value, text))
		}
		report(pass, e.value, fixes,
			"the client can send an operator for this value: {$eq: …} or a type makes it a value")
	}
	w.operand = func(x ast.Expr, d document) {
		if b, ok := ast.Unparen(x).(*ast.BinaryExpr); ok && b.Op == token.ADD {
			if left, ok := in.text(b.X); ok && strings.HasPrefix(left, "$") && in.isInputText(b.Y, 0) {
				report(pass, x, nil,
					"the client chooses the field that is read: compare the name with those that are allowed")
			}
			return
		}
		if !in.isInputText(x, 0) {
			return
		}
		var fixes []analysis.SuggestedFix
		if text := documentType(d, `"$literal"`, source(pass, x)); text != "" {
			fixes = fix("Write $literal", replace(x, text))
		}
		report(pass, x, fixes, "a text from the client that begins with $ is the path of a field here: {$literal: …} makes it a text")
	}
	if s.role == filterRole {
		if d, ok := in.document(s.expr); ok {
			if x := d.get("$where"); x != nil && in.inText(x, 0) {
				report(pass, x, nil, "the client writes a part of this JavaScript: use operators")
			}
		}
	}
	if s.role == updateRole && isOpen(pass.TypesInfo.TypeOf(s.expr)) && in.isDecoded(s.expr, 0) {
		report(pass, s.expr, nil, "the client chooses the operators of this %s: read its fields into a struct with types", s.role)
		return
	}
	w.walk(s)
}

// inText reports whether a text from the client is a part of x.
func (in *input) inText(x ast.Expr, depth int) bool {
	if depth > 6 {
		return false
	}
	if in.isInputText(x, 0) {
		return true
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.BinaryExpr:
		return in.inText(x.X, depth+1) || in.inText(x.Y, depth+1)
	case *ast.CallExpr:
		for _, arg := range x.Args {
			if in.inText(arg, depth+1) {
				return true
			}
		}
	case *ast.Ident:
		if only, _ := in.only(x); only != nil {
			return in.inText(only, depth+1)
		}
	}
	return false
}

// source returns an expression as it is written.
func source(pass *analysis.Pass, x ast.Expr) string {
	content, err := pass.ReadFile(pass.Fset.Position(x.Pos()).Filename)
	if err != nil {
		return types.ExprString(x)
	}
	from, to := pass.Fset.Position(x.Pos()).Offset, pass.Fset.Position(x.End()).Offset
	if from < 0 || to > len(content) {
		return types.ExprString(x)
	}
	return string(content[from:to])
}
