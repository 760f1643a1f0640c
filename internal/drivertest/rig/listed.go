package rig

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TakingContext returns the exported functions and methods of the package in a folder whose first
// parameter is a context, by their receivers, or else the package, and names.
func TakingContext(t testing.TB, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || len(f.Type.Params.List) == 0 || !isContext(f.Type.Params.List[0].Type) {
				continue
			}
			of := file.Name.Name
			if f.Recv != nil {
				of = receiver(f.Recv.List[0].Type)
			}
			if f.Recv == nil || ast.IsExported(of) {
				names = append(names, of+"."+f.Name.Name)
			}
		}
	}
	return names
}

func isContext(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Context" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "context"
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	}
	return ""
}
