package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// ErrCompare finds errors of a driver's that are compared by ==, which a wrapped error is not.
var ErrCompare = &analysis.Analyzer{
	Name:     "errcompare",
	Doc:      "find comparisons of a driver's errors by ==\n\nerr == mongoerr.ErrNoDocuments is false where the error is wrapped: errors.Is finds it.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runErrCompare,
}

func runErrCompare(pass *analysis.Pass) (any, error) {
	files := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	if !imports(pass.Pkg) {
		return nil, nil
	}
	files.WithStack([]ast.Node{(*ast.BinaryExpr)(nil), (*ast.SwitchStmt)(nil)},
		func(n ast.Node, push bool, stack []ast.Node) bool {
			if !push || inIs(stack) {
				return true
			}
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op != token.EQL && n.Op != token.NEQ {
					return true
				}
				err, sentinel := n.X, n.Y
				if name := sentinelName(pass.TypesInfo, err); name != "" {
					err, sentinel = sentinel, err
				}
				name := sentinelName(pass.TypesInfo, sentinel)
				if name == "" || !isError(pass.TypesInfo.TypeOf(err)) || sentinelName(pass.TypesInfo, err) != "" {
					return true
				}
				report(pass, n, isFix(pass, n, err, sentinel), "an error that wraps %s is not == to it: use errors.Is",
					name)
			case *ast.SwitchStmt:
				if n.Tag == nil || !isError(pass.TypesInfo.TypeOf(n.Tag)) {
					return true
				}
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						if name := sentinelName(pass.TypesInfo, x); name != "" {
							report(pass, x, nil,
								"an error that wraps %s is not == to it, as a switch compares: use errors.Is", name)
						}
					}
				}
			}
			return true
		})
	return nil, nil
}

// inIs reports whether a node is in a method Is, which errors.Is calls with each error of a chain.
func inIs(stack []ast.Node) bool {
	for _, n := range stack {
		if fn, ok := n.(*ast.FuncDecl); ok && fn.Name.Name == "Is" && fn.Recv != nil {
			return true
		}
	}
	return false
}

// sentinelName returns the name of a driver's error that x is, "" if it is none.
func sentinelName(info *types.Info, x ast.Expr) string {
	var id *ast.Ident
	switch x := ast.Unparen(x).(type) {
	case *ast.SelectorExpr:
		id = x.Sel
	case *ast.Ident:
		id = x
	default:
		return ""
	}
	v, ok := info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || !isDriver(v.Pkg()) ||
		!strings.HasPrefix(v.Name(), "Err") || !isError(v.Type()) {
		return ""
	}
	return v.Pkg().Name() + "." + v.Name()
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(types.Unalias(t), types.Universe.Lookup("error").Type())
}

// isFix calls errors.Is, and imports errors if the file does not.
func isFix(pass *analysis.Pass, n *ast.BinaryExpr, err, sentinel ast.Expr) []analysis.SuggestedFix {
	file := fileOf(pass, n.Pos())
	if file == nil {
		return nil
	}
	name, edits := importName(file, "errors")
	if name == "" {
		return nil
	}
	if _, obj := pass.TypesInfo.Scopes[file].Innermost(n.Pos()).LookupParent(name, n.Pos()); obj != nil {
		if p, ok := obj.(*types.PkgName); !ok || p.Imported().Path() != "errors" {
			return nil // something else has this name here
		}
	}
	not := ""
	if n.Op == token.NEQ {
		not = "!"
	}
	src := func(x ast.Expr) string { return types.ExprString(x) }
	return fix("Use errors.Is", append(edits, replace(n, not+name+".Is("+src(err)+", "+src(sentinel)+")"))...)
}

// importName returns the name that a file has of a package, and the edit that imports it.
func importName(file *ast.File, path string) (string, []analysis.TextEdit) {
	var block *ast.GenDecl
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.IMPORT {
			continue
		}
		if block == nil && gen.Lparen.IsValid() {
			block = gen
		}
		for _, spec := range gen.Specs {
			s := spec.(*ast.ImportSpec)
			if p, _ := strconv.Unquote(s.Path.Value); p != path {
				continue
			}
			switch {
			case s.Name == nil:
				return path[strings.LastIndex(path, "/")+1:], nil
			case s.Name.Name == "_" || s.Name.Name == ".":
				return "", nil
			}
			return s.Name.Name, nil
		}
	}
	if block == nil {
		return "", nil
	}
	return path[strings.LastIndex(path, "/")+1:],
		[]analysis.TextEdit{insert(block.Lparen+1, "\n\t"+strconv.Quote(path))}
}
