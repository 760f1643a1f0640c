package mongotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumented wants every exported function and method on a page of docs, and in a runnable
// Example.
func TestDocumented(t *testing.T) {
	var page []byte
	for _, name := range []string{"mongotest", "serve", "mongotest-fidelity"} {
		text, err := os.ReadFile("../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	used := map[string]bool{} // what Examples and the functions beside them call
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(name, "example_"):
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					used[sel.Sel.Name] = true
				}
				return true
			})
		case !strings.HasSuffix(name, "_test.go"):
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && exportedReceiver(fn) {
					exported = append(exported, fn.Name.Name)
				}
			}
		}
	}
	if len(exported) < 40 {
		t.Fatalf("only %v found", exported)
	}
	for _, name := range exported {
		if !strings.Contains(string(page), name+"(") && !strings.Contains(string(page), name+"`") {
			t.Errorf("docs/mongotest.md and docs/serve.md do not mention %s", name)
		}
		if !used[name] {
			t.Errorf("no Example calls %s", name)
		}
	}
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, ok := t.(*ast.Ident)
	return ok && name.IsExported()
}
