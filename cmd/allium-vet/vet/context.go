package vet

import (
	"go/ast"
	"go/types"
)

// origin is where a context comes from.
type origin struct {
	obj        types.Object // a variable, or a parameter: nil if that is not known
	background bool         // context.Background() or context.TODO()
}

// origin follows a context through variables and the functions of package context.
func (u *usage) origin(x ast.Expr) origin { return u.originAt(x, 0) }

func (u *usage) originAt(x ast.Expr, depth int) origin {
	if depth > 10 {
		return origin{}
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		obj := u.info.ObjectOf(x)
		v := u.at(x)
		if v == nil {
			return origin{}
		}
		if len(v.values) == 1 && v.values[0].expr != nil && v.values[0].number <= 0 {
			o := u.originAt(v.values[0].expr, depth+1)
			if o.obj == nil && !o.background {
				return origin{obj: obj} // made of something else: its own
			}
			return o
		}
		return origin{obj: obj}
	case *ast.CallExpr:
		fn := calledFunc(u.info, x)
		if fn == nil || fn.Pkg() == nil {
			return origin{}
		}
		if fn.Pkg().Path() == "context" {
			switch fn.Name() {
			case "Background", "TODO":
				return origin{background: true}
			}
			if len(x.Args) > 0 {
				return u.originAt(x.Args[0], depth+1)
			}
			return origin{}
		}
		// r.Context()
		if sel, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok && fn.Name() == "Context" && len(x.Args) == 0 {
			if id, ok := ast.Unparen(sel.X).(*ast.Ident); ok {
				return origin{obj: u.info.ObjectOf(id)}
			}
		}
	}
	return origin{}
}

// calledFunc returns the function that a call names, of whatever package.
func calledFunc(info *types.Info, call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	case *ast.IndexExpr:
		if sel, ok := f.X.(*ast.SelectorExpr); ok {
			id = sel.Sel
		} else {
			id, _ = f.X.(*ast.Ident)
		}
	}
	if id == nil {
		return nil
	}
	fn, _ := info.Uses[id].(*types.Func)
	if fn != nil {
		fn = fn.Origin()
	}
	return fn
}
