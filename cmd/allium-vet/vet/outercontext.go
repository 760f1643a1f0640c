package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// OuterContext finds operations in a transaction that run outside it, since they are given another
// context than the function of the transaction has.
var OuterContext = &analysis.Analyzer{
	Name:     "outercontext",
	Doc:      "find operations of a transaction with the outer context\n\nWhat Transact's function does with the context from outside runs outside the transaction: it is not undone, and may wait for it for ever.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runOuterContext,
}

func runOuterContext(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	if !imports(pass.Pkg) {
		return nil, nil
	}
	helpers := contextHelpers(u, pass)
	u.files.Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
		call := n.(*ast.CallExpr)
		m, ok := callee(pass.TypesInfo, call)
		if !ok {
			return
		}
		i, ok := m.transaction()
		if !ok || i >= len(call.Args) {
			return
		}
		if lit := u.function(call.Args[i]); lit != nil {
			checkTransaction(pass, u, m.name, lit, helpers)
		}
	})
	return nil, nil
}

// function returns the function literal that x is, or that its variable holds.
func (vs *variables) function(x ast.Expr) *ast.FuncLit {
	for range 4 {
		switch y := ast.Unparen(x).(type) {
		case *ast.FuncLit:
			return y
		case *ast.Ident:
			only, _ := vs.only(y)
			if only == nil {
				return nil
			}
			x = only
		default:
			return nil
		}
	}
	return nil
}

// checkTransaction looks at the operations in the function of a transaction.
func checkTransaction(pass *analysis.Pass, u *usage, how string, fn *ast.FuncLit, helpers map[*types.Func]int) {
	inner := ""
	if params := fn.Type.Params.List; len(params) == 1 && len(params[0].Names) == 1 && params[0].Names[0].Name != "_" {
		inner = params[0].Names[0].Name
	}
	var look func(body ast.Node, within []*ast.FuncLit)
	look = func(body ast.Node, within []*ast.FuncLit) {
		ast.Inspect(body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			ctx, name := operationContext(u, call, helpers)
			if ctx == nil {
				// A function that is written outside and called here.
				if lit := u.function(call.Fun); lit != nil && !enclosed(lit, fn) && len(within) < 3 {
					look(lit.Body, append(within, lit))
				}
				return true
			}
			o := u.origin(ctx)
			switch {
			case o.background:
				report(pass, ctx, contextFix(u, ctx, inner, within),
					"%s runs outside the %s: its context is not that of the function of %s", name, scope(how), how)
			case o.obj == nil || o.obj.Pos() == 0 || o.obj.Parent() == nil ||
				o.obj.Pkg() != nil && o.obj.Parent() == o.obj.Pkg().Scope():
			case o.obj.Pos() >= fn.Pos() && o.obj.Pos() < fn.End():
			case inside(o.obj, within):
			case isContext(o.obj.Type()) && !u.made(o.obj) || isRequest(o.obj.Type()):
				report(pass, ctx, contextFix(u, ctx, inner, within),
					"%s runs outside the %s: %s is the context from outside the function of %s", name, scope(how),
					o.obj.Name(), how)
			}
			return true
		})
	}
	look(fn.Body, nil)
}

// scope is what the function of a method runs in.
func scope(method string) string {
	if strings.Contains(method, "Session") {
		return "session"
	}
	return "transaction"
}

// made reports whether the variable holds a context that was made of something else than contexts,
// such as a session: it may belong to the transaction.
func (u *usage) made(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	if !ok || u.of[v] == nil {
		return false
	}
	for _, value := range u.of[v].values {
		if value.expr == nil {
			continue // a parameter
		}
		if o := u.origin(value.expr); o.obj == nil && !o.background {
			return true
		}
	}
	return false
}

func enclosed(inner, outer *ast.FuncLit) bool {
	return inner.Pos() >= outer.Pos() && inner.End() <= outer.End()
}

func inside(obj types.Object, functions []*ast.FuncLit) bool {
	for _, f := range functions {
		if obj.Pos() >= f.Pos() && obj.Pos() < f.End() {
			return true
		}
	}
	return false
}

// contextFix puts the function's own context there. A variable that was made of the outer one would
// be left without use.
func contextFix(u *usage, ctx ast.Expr, inner string, within []*ast.FuncLit) []analysis.SuggestedFix {
	if inner == "" || len(within) > 0 {
		return nil
	}
	switch x := ast.Unparen(ctx).(type) {
	case *ast.Ident:
		if u.origin(x).obj != u.info.ObjectOf(x) {
			return nil
		}
	case *ast.CallExpr:
		if len(x.Args) > 0 {
			return nil
		}
	default:
		return nil
	}
	return fix("Use "+inner, replace(ctx, inner))
}

// operationContext returns the context that a call hands to an operation, itself or through a
// function of this package, and the name of what is called; nil if it does not.
func operationContext(u *usage, call *ast.CallExpr, helpers map[*types.Func]int) (ast.Expr, string) {
	if m, ok := callee(u.info, call); ok {
		if m.isOperation() && m.inTransactions() && len(call.Args) > 0 {
			return call.Args[0], m.name
		}
		return nil, ""
	}
	fn := calledFunc(u.info, call)
	if i, ok := helpers[fn]; ok && fn != nil && i < len(call.Args) {
		return call.Args[i], fn.Name()
	}
	return nil, ""
}

// contextHelpers returns the functions of the package that hand a context which they are given to
// an operation, with the number of that parameter.
func contextHelpers(u *usage, pass *analysis.Pass) map[*types.Func]int {
	helpers := map[*types.Func]int{}
	for range 4 { // through so many of each other
		before := len(helpers)
		for _, f := range pass.Files {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				obj, _ := pass.TypesInfo.Defs[fn.Name].(*types.Func)
				if obj == nil {
					continue
				}
				if _, done := helpers[obj]; done {
					continue
				}
				params := obj.Signature().Params()
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if ctx, _ := operationContext(u, call, helpers); ctx != nil {
						o := u.origin(ctx)
						for i := range params.Len() {
							if o.obj == params.At(i) && isContext(params.At(i).Type()) {
								helpers[obj] = i
							}
						}
					}
					return true
				})
			}
		}
		if len(helpers) == before {
			break
		}
	}
	return helpers
}
