package vet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// variables says of the variables of a package what they are given.
type variables struct {
	info *types.Info
	of   map[*types.Var]*variable
}

// variable is what happens to one.
type variable struct {
	values []value
	// shared: something else may change what is in it. It was stored into, its address was taken,
	// it was handed to a function that is none of a driver's, or it is of a package and exported.
	shared bool
}

// value is one that a variable is given: result number of an expression with several.
type value struct {
	expr   ast.Expr // nil: not known
	number int      // -1: the expression itself
}

func collectVariables(info *types.Info, files []*ast.File) *variables {
	vs := &variables{info, map[*types.Var]*variable{}}
	for _, f := range files {
		ast.Inspect(f, vs.note)
	}
	return vs
}

// at returns what is known of the variable that e names, nil if it names none.
func (vs *variables) at(e ast.Expr) *variable {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	obj, ok := vs.info.ObjectOf(id).(*types.Var)
	if !ok || obj.IsField() {
		return nil
	}
	v := vs.of[obj]
	if v == nil {
		v = &variable{}
		vs.of[obj] = v
	}
	return v
}

// root returns the variable that e is a part of.
func (vs *variables) root(e ast.Expr) *variable {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return vs.at(e)
		}
	}
}

func (vs *variables) note(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			v := vs.at(left)
			if v == nil {
				if v = vs.root(left); v != nil {
					v.shared = true // a part of it
				}
				continue
			}
			switch {
			case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
				v.values = append(v.values, value{nil, -1})
			case len(n.Lhs) == len(n.Rhs):
				v.values = append(v.values, value{n.Rhs[i], -1})
			default:
				v.values = append(v.values, value{n.Rhs[0], i})
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			v := vs.at(name)
			if v == nil {
				continue
			}
			switch {
			case len(n.Values) == len(n.Names):
				v.values = append(v.values, value{n.Values[i], -1})
			case len(n.Values) > 0:
				v.values = append(v.values, value{n.Values[0], i})
			}
		}
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if e != nil {
				if v := vs.at(e); v != nil {
					v.values = append(v.values, value{nil, -1})
				}
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			if v := vs.root(n.X); v != nil {
				v.shared = true
			}
		}
	case *ast.CallExpr:
		if _, ok := callee(vs.info, n); ok || isConversion(vs.info, n) {
			break
		}
		if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok {
			if b, ok := vs.info.Uses[id].(*types.Builtin); ok && b.Name() != "delete" && b.Name() != "clear" &&
				b.Name() != "copy" {
				break
			}
		}
		for _, arg := range n.Args {
			if v := vs.at(arg); v != nil {
				v.shared = true
			}
		}
	case *ast.FuncType:
		for _, list := range []*ast.FieldList{n.Params, n.Results} {
			if list == nil {
				continue
			}
			for _, f := range list.List {
				for _, name := range f.Names {
					if v := vs.at(name); v != nil {
						v.values = append(v.values, value{nil, -1})
					}
				}
			}
		}
	}
	return true
}

// only returns the single expression that the variable of e is given, nil if there is none or it
// has several. whole tells that nothing changes what is in it.
func (vs *variables) only(e ast.Expr) (x ast.Expr, whole bool) {
	v := vs.at(e)
	if v == nil || len(v.values) != 1 || v.values[0].number >= 0 {
		return nil, false
	}
	if obj := vs.info.ObjectOf(ast.Unparen(e).(*ast.Ident)); obj.Exported() && obj.Parent() == obj.Pkg().Scope() {
		return v.values[0].expr, false
	}
	return v.values[0].expr, !v.shared
}

func isConversion(info *types.Info, call *ast.CallExpr) bool {
	tv, ok := info.Types[call.Fun]
	return ok && tv.IsType()
}
