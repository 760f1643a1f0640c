package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forTests are internal packages that only tests use.
var forTests = []string{
	"internal/anystate", "internal/archtest", "internal/campaign", "internal/drivertest", "internal/fakekms", "internal/fakeserver", "internal/hostile", "internal/leaks", "internal/mistakes",
	"internal/nightly", "internal/norace", "internal/ocsptest", "internal/owncode", "internal/requirements", "internal/spantest", "internal/spectest", "internal/testdeploy", "internal/testuse", "internal/unified",
	"kerberos/internal/kdctest", "mongotest/internal/golden", "mongotest/internal/args/argstest", "mongotest/internal/randcmd",
	"mongotest/internal/soak", "mongotest/internal/jstests",
}

// observed are methods that only tests call, and why they are there.
var observed = map[string]string{
	"WithAttrs": "slog calls the methods of a handler",
	"WithGroup": "slog calls the methods of a handler",
}

// TestNothingIsForTestsAlone finds what internal packages export and only tests use. It compares
// names: one that something else has, too, hides it.
func TestNothingIsForTestsAlone(t *testing.T) {
	used := map[string]bool{}
	declared := map[string]token.Position{} // by name: the last one suffices
	fset := token.NewFileSet()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			return err
		}
		names := declaredFuncs(f)
		if dir := filepath.ToSlash(rel); strings.Contains(dir+"/", "internal/") && !isForTests(dir) {
			for id := range names {
				if id.IsExported() {
					declared[id.Name] = fset.Position(id.Pos())
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !names[id] {
				used[id.Name] = true
			}
			return true
		})
		return nil
	})
	if err != nil || len(declared) < 500 {
		t.Fatalf("%d functions found, %v", len(declared), err)
	}
	for name, at := range declared {
		if !used[name] && observed[name] == "" {
			t.Errorf("%s: nothing but tests can use %s: move it into one of them", at, name)
		}
	}
	for name := range observed {
		if _, there := declared[name]; !there || used[name] {
			t.Errorf("%s need not be an exception", name)
		}
	}
}

func isForTests(dir string) bool {
	return slices.ContainsFunc(forTests, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") })
}

// declaredFuncs returns the names in the declarations of a file's functions and methods.
func declaredFuncs(f *ast.File) map[*ast.Ident]bool {
	names := map[*ast.Ident]bool{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			names[fn.Name] = true
		}
	}
	return names
}
