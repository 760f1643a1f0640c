package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestTimeoutConstants wants every TimeoutError to say its phase and its limit by the constants of
// mongoerr, which programs compare with: a text that is written by hand is one that nobody finds.
func TestTimeoutConstants(t *testing.T) {
	top, found := root(t), 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !strings.HasSuffix(source(fset, lit.Type), "TimeoutError") {
				return true
			}
			found++
			for _, e := range lit.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key := source(fset, kv.Key); key == "Phase" || key == "Source" {
					if v, ok := kv.Value.(*ast.BasicLit); ok {
						t.Errorf("%s: %s is %s: use a constant of mongoerr", fset.Position(v.Pos()), key, v.Value)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("only %d TimeoutErrors found: the test looks in the wrong place", found)
	}
}
