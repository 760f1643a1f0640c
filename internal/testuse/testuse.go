// Package testuse finds the tests that use a package of helpers, from their source. Commands run
// those tests where the helper skips them elsewhere: what a test says in its own function cannot
// differ from what a list says.
package testuse

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Of returns, by the package's folder below root ("." for root itself), the names of the tests that
// use the package whose name is helper. A use outside of a test, a benchmark or a fuzz target is an
// error: whoever calls it would be missed. Modules below root are left out.
func Of(root, helper string) (map[string][]string, error) {
	found := map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != root && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") ||
			IsModule(file)):
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
		if err != nil || !imports(f, helper) {
			return err
		}
		for _, d := range f.Decls {
			name := ""
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				name = fn.Name.Name
			}
			switch at := use(d, helper); {
			case !at.IsValid() || strings.HasPrefix(name, "Benchmark"):
			case !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz"):
				return fmt.Errorf("%s: package %s is used outside of a test", fset.Position(at), helper)
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

// IsModule reports whether a module has its root in a folder.
func IsModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// imports reports whether a file imports the helper, which has the same last element wherever the
// module is published.
func imports(f *ast.File, helper string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		return i.Name == nil && path.Base(strings.Trim(i.Path.Value, `"`)) == helper
	})
}

// use returns where a declaration uses the helper, or no position.
func use(d ast.Decl, helper string) (at token.Pos) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && !at.IsValid() {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == helper {
				at = x.Pos()
			}
		}
		return true
	})
	return at
}
