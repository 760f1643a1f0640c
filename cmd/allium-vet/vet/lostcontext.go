package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// LostContext finds operations that go on when the request that wants them has ended: they are
// given context.Background() in a function that has a context.
var LostContext = &analysis.Analyzer{
	Name:     "lostcontext",
	Doc:      "find operations that do not end with their request\n\ncontext.Background() in a function that was given a context or a request has no deadline, and nothing cancels it.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runLostContext,
}

func runLostContext(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	if !imports(pass.Pkg) {
		return nil, nil
	}
	u.files.WithStack([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push || inTest(pass, n.Pos()) {
			return true
		}
		call := n.(*ast.CallExpr)
		m, ok := callee(pass.TypesInfo, call)
		if !ok || !m.isOperation() || len(call.Args) == 0 {
			return true
		}
		direct, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr)
		if !ok || !u.origin(direct).background || len(direct.Args) > 0 {
			return true
		}
		if inTransaction(pass.TypesInfo, stack) {
			return true // outercontext tells
		}
		if name := contextAround(pass.TypesInfo, stack); name != "" {
			report(pass, call.Args[0], nil, "%s does not end with %s, and has no deadline", m.name, name)
		}
		return true
	})
	return nil, nil
}

// contextAround names the context of the innermost function around a call. There is none where the
// call is to go on: in a goroutine, or deferred.
func contextAround(info *types.Info, stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		var typ *ast.FuncType
		switch n := stack[i].(type) {
		case *ast.DeferStmt, *ast.GoStmt:
			return ""
		case *ast.FuncLit:
			typ = n.Type
		case *ast.FuncDecl:
			typ = n.Type
		default:
			continue
		}
		for _, f := range typ.Params.List {
			for _, id := range f.Names {
				if id.Name == "_" {
					continue
				}
				switch t := info.TypeOf(id); {
				case t != nil && isContext(t):
					if asks(info, stack[i], info.ObjectOf(id)) {
						return "" // goes on when it has ended
					}
					return id.Name
				case t != nil && isRequest(t) && named(t).Obj().Pkg().Path() == "net/http":
					return "the request " + id.Name
				}
			}
		}
		return ""
	}
	return ""
}

// asks reports whether a function asks whether its context has ended.
func asks(info *types.Info, fn ast.Node, ctx types.Object) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Done" || sel.Sel.Name == "Err") {
			id, ok := sel.X.(*ast.Ident)
			found = found || ok && info.ObjectOf(id) == ctx
		}
		return !found
	})
	return found
}

// inTransaction reports whether a call is in the function of a transaction.
func inTransaction(info *types.Info, stack []ast.Node) bool {
	for i := 1; i < len(stack); i++ {
		lit, ok := stack[i].(*ast.FuncLit)
		if !ok {
			continue
		}
		call, ok := stack[i-1].(*ast.CallExpr)
		if !ok {
			continue
		}
		if m, ok := callee(info, call); ok {
			if fn, ok := m.transaction(); ok && fn < len(call.Args) && call.Args[fn] == lit {
				return true
			}
		}
	}
	return false
}
