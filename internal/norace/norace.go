// Package norace is for the tests that do not run under the race detector: it falsifies what they
// measure, or makes them many times as dear and finds nothing, as in the copying of messages of
// 48 MB. A test says so with [Skip] or by [Detecting], and command norace runs those tests without
// the detector, so that each test runs in one step of CI at least.
package norace

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Skip skips a test under the race detector. It is called in the test's own function, where command
// norace finds it.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Detecting {
		t.Skip("not under the race detector: " + why)
	}
}

// Tests returns, by the package's folder below root ("." for root itself), the names of the tests
// that look at this package. A use outside of a test, a benchmark or a fuzz target is an error:
// whoever calls it would be missed. Modules below root are left out.
func Tests(root string) (map[string][]string, error) {
	found := map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != root && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") ||
			exists(filepath.Join(file, "go.mod"))):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil || !imports(f) {
			return err
		}
		for _, d := range f.Decls {
			name := ""
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				name = fn.Name.Name
			}
			switch at := use(d); {
			case !at.IsValid() || strings.HasPrefix(name, "Benchmark"):
			case !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz"):
				return fmt.Errorf("%s: package norace is used outside of a test", fset.Position(at))
			default:
				found[dir] = append(found[dir], name)
			}
		}
		return nil
	})
	for _, names := range found {
		slices.Sort(names)
	}
	return found, err
}

func exists(file string) bool {
	found, _ := filepath.Glob(file)
	return len(found) > 0
}

// imports reports whether a file imports this package, which has the same last element wherever the
// module is published.
func imports(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return i.Name == nil && path.Base(strings.Trim(i.Path.Value, `"`)) == "norace"
	})
}

// use returns where a declaration uses this package, or no position.
func use(d ast.Decl) (at token.Pos) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && !at.IsValid() {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "norace" {
				at = x.Pos()
			}
		}
		return true
	})
	return at
}
