package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// ClientPerRequest finds clients that are opened for each request: each has connections and
// monitors of its own.
var ClientPerRequest = &analysis.Analyzer{
	Name:     "clientperrequest",
	Doc:      "find clients that are opened for each request\n\nA client is a pool: a program opens one for each deployment and shares it.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runClientPerRequest,
}

func runClientPerRequest(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	if !imports(pass.Pkg) {
		return nil, nil
	}
	openers := clientOpeners(u, pass)
	u.files.WithStack([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push || inTest(pass, n.Pos()) {
			return true
		}
		call := n.(*ast.CallExpr)
		m, ok := callee(pass.TypesInfo, call)
		name := m.name
		if !ok || !m.opensClient() {
			fn := calledFunc(pass.TypesInfo, call)
			if fn == nil || !openers[fn] {
				return true
			}
			name = fn.Name()
		}
		if guarded(stack) || keptElsewhere(pass.TypesInfo, stack) {
			return true
		}
		switch {
		case inHandler(pass.TypesInfo, stack) && fixed(u, call, 0):
			report(pass, call, nil, "%s opens a client for each request: open one when the program starts and share it",
				name)
		case inLoop(u, call, stack):
			report(pass, call, nil, "%s opens a client in each turn of the loop: open one before it", name)
		}
		return true
	})
	return nil, nil
}

// clientOpeners returns the functions of the package that open a client whenever they are called,
// and return it or what is made of it.
func clientOpeners(u *usage, pass *analysis.Pass) map[*types.Func]bool {
	openers := map[*types.Func]bool{}
	u.files.WithStack([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node, push bool, stack []ast.Node) bool {
		call := n.(*ast.CallExpr)
		m, ok := callee(pass.TypesInfo, call)
		if !push || !ok || !m.opensClient() || guarded(stack) || keptElsewhere(pass.TypesInfo, stack) ||
			!fixed(u, call, 0) {
			return true
		}
		for i := len(stack) - 1; i >= 0; i-- {
			switch fn := stack[i].(type) {
			case *ast.FuncLit:
				return true
			case *ast.FuncDecl:
				obj, _ := pass.TypesInfo.Defs[fn.Name].(*types.Func)
				if obj == nil || fn.Recv != nil {
					return true
				}
				for i := range obj.Signature().Results().Len() {
					if t := named(obj.Signature().Results().At(i).Type()); t != nil && isDriver(t.Obj().Pkg()) &&
						receivers[t.Obj().Name()] != "" {
						openers[obj] = true
					}
				}
			}
		}
		return true
	})
	return openers
}

// guarded reports whether a call is made once, or not always: in a function that sync.Once calls,
// or below an if that asks for something else than its own error.
func guarded(stack []ast.Node) bool {
	for i := len(stack) - 2; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.IfStmt:
			if within(n.Body, stack[i+1]) || n.Else != nil && n.Else == stack[i+1] {
				return true
			}
		case *ast.CaseClause, *ast.CommClause:
			return true
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Do" || sel.Sel.Name == "OnceValue" ||
				sel.Sel.Name == "OnceValues" || sel.Sel.Name == "OnceFunc") {
				return true
			}
		}
	}
	return false
}

func within(outer, n ast.Node) bool { return n.Pos() >= outer.Pos() && n.End() <= outer.End() }

// keptElsewhere reports whether the result of a call goes into a variable that outlives the
// function: one of a package, or a field.
func keptElsewhere(info *types.Info, stack []ast.Node) bool {
	for i := len(stack) - 2; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				id, ok := left.(*ast.Ident)
				if !ok {
					return true
				}
				if obj := info.ObjectOf(id); obj != nil && obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() {
					return true
				}
			}
			return false
		case *ast.BlockStmt:
			return false
		}
	}
	return false
}

// inHandler reports whether the innermost function around a call, or one around that, answers
// requests.
func inHandler(info *types.Info, stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncLit:
			if len(requests(info, n.Type)) > 0 {
				return true
			}
		case *ast.FuncDecl:
			return len(requests(info, n.Type)) > 0 && n.Name.Name != "init"
		}
	}
	return false
}

// fixed reports whether what a client is opened with is the same each time: constants, variables of
// the package, what functions without arguments return. A client for a deployment that the request
// names is another matter.
func fixed(u *usage, call *ast.CallExpr, depth int) bool {
	if depth > 6 {
		return false
	}
	same := true
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return same
		}
		obj, ok := u.info.ObjectOf(id).(*types.Var)
		if !ok || obj.IsField() || obj.Pkg() == nil || obj.Parent() == obj.Pkg().Scope() || isContext(obj.Type()) {
			return true
		}
		v := u.at(id)
		if v == nil || len(v.values) != 1 || v.values[0].expr == nil || depth > 4 {
			same = false
			return false
		}
		depth++
		ast.Inspect(v.values[0].expr, look)
		depth--
		return same
	}
	for _, arg := range call.Args {
		ast.Inspect(arg, look)
	}
	return same
}

// inLoop reports whether the call is in a loop over data that opens the same client in each turn
// and closes it there: one that is left by break or return may try until it succeeds.
func inLoop(u *usage, call *ast.CallExpr, stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.FuncLit, *ast.FuncDecl:
			return false
		case *ast.RangeStmt:
			if !fixed(u, call, 0) || u.info.TypeOf(n.X) == nil {
				return false
			}
			if b, ok := types.Unalias(u.info.TypeOf(n.X)).Underlying().(*types.Basic); ok &&
				b.Info()&types.IsInteger != 0 {
				return false // so many tries
			}
			closes, leaves := false, false
			ast.Inspect(n.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false
				case *ast.BranchStmt:
					leaves = leaves || n.Tok.String() == "break" || n.Tok.String() == "goto"
				case *ast.CallExpr:
					if m, ok := callee(u.info, n); ok && m.recv == "Client" &&
						(m.name == "Disconnect" || m.name == "Close") {
						closes = true
					}
				}
				return true
			})
			return closes && !leaves
		}
	}
	return false
}
