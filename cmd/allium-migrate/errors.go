package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// errorTypes are the errors of package mongo that have a bridge of the same form.
var errorTypes = map[string]string{
	"CommandError": "commandError", "WriteError": "writeError", "WriteErrors": "writeErrors",
	"WriteConcernError": "writeConcernError",
	"WriteException":    "writeException", "BulkWriteError": "bulkWriteError",
	"BulkWriteException": "bulkWriteException",
	"ServerError":        "serverError", "LabeledError": "labeledError",
}

// errorMethods are the methods by which programs tell these errors from others without their names.
var errorMethods = []string{"HasErrorLabel", "HasErrorCode", "HasErrorMessage", "HasErrorCodeWithMessage",
	"IsMaxTimeMSExpiredError", "ErrorCodes"}

// bridged reports whether a type is an error of package mongo's, a pointer to one, or an interface
// that such errors satisfy and Allium's do not.
func bridged(t types.Type) bool {
	if t == nil {
		return false
	}
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return bridged(u.Elem())
	case *types.Named:
		if p := u.Obj().Pkg(); p != nil && where(p.Path()) == "mongo" && errorTypes[u.Obj().Name()] != "" {
			return true
		}
	}
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for m := range i.Methods() {
		if slices.Contains(errorMethods, m.Name()) {
			return true
		}
	}
	return false
}

// errorAssertion rewrites err.(T), and the err of a type switch.
func (r *rewriter) errorAssertion(n *ast.TypeAssertExpr) (string, bool) {
	var kinds []ast.Expr
	if n.Type != nil {
		kinds = []ast.Expr{n.Type}
	} else {
		stmt := r.parents[r.parents[n]]
		if s, ok := r.parents[n].(*ast.TypeSwitchStmt); ok {
			stmt = s
		}
		s, ok := stmt.(*ast.TypeSwitchStmt)
		if !ok {
			return "", false
		}
		for _, clause := range s.Body.List {
			kinds = append(kinds, clause.(*ast.CaseClause).List...)
		}
	}
	if !slices.ContainsFunc(kinds, func(e ast.Expr) bool { return bridged(r.info.TypeOf(e)) }) {
		return "", false
	}
	t := r.info.TypeOf(n.X)
	if _, ok := t.Underlying().(*types.Interface); !ok {
		return "", false
	}
	operand := r.text(n.X)
	if !types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface)) {
		r.leave(n, "What is asserted here may be an error: errorItself(err) of allium_migrate.go has it in its old type.")
		r.help("errorItself")
		return "", false
	}
	kind := "type"
	if n.Type != nil {
		kind = r.text(n.Type)
	}
	return r.done(r.help("errorItself") + "(" + operand + ").(" + kind + ")")
}

// errorCall rewrites errors.As and errors.AsType for errors of package mongo's. What else gets the
// address of such an error cannot know of the bridge.
func (r *rewriter) errorCall(n *ast.CallExpr) (string, bool) {
	fun := ast.Unparen(n.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		if obj := r.callee(index.X); obj != nil && obj.Name() == "AsType" && obj.Pkg() != nil &&
			obj.Pkg().Path() == "errors" && bridged(r.info.TypeOf(index.Index)) {
			return r.done(r.help("errorAsType") + "[" + r.text(index.Index) + "](" + strings.Join(r.args(n), ", ") +
				")")
		}
		return "", false
	}
	obj := r.callee(fun)
	if obj == nil || obj.Pkg() == nil || where(obj.Pkg().Path()) != "" {
		return "", false
	}
	for i, arg := range n.Args {
		if !r.isTarget(arg) {
			continue
		}
		if obj.Name() == "As" && len(n.Args) == 2 && i == 1 {
			return r.done(r.help("errorAs") + "(" + strings.Join(r.args(n), ", ") + ")")
		}
		if sig, ok := obj.Type().(*types.Signature); ok && i < sig.Params().Len() {
			if _, open := sig.Params().At(i).Type().Underlying().(*types.Interface); open {
				r.leave(n, obj.Name()+
					" does not find the errors of Allium: use errorAs(err, &target) of allium_migrate.go.")
				r.help("errorAs")
			}
		}
	}
	return "", false
}

// isTarget reports whether an expression is the address of a variable of an error's type.
func (r *rewriter) isTarget(e ast.Expr) bool {
	p, ok := types.Unalias(r.info.TypeOf(e)).(*types.Pointer)
	if !ok || r.info.TypeOf(e) == nil {
		return false
	}
	return bridged(p.Elem())
}

// callee returns the function that an expression names, nil if it names none.
func (r *rewriter) callee(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return r.info.Uses[e]
	case *ast.SelectorExpr:
		return r.info.Uses[e.Sel]
	}
	return nil
}
