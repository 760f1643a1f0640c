package norace

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"allium/internal/testuse"
)

// Packages returns the folders below root, "." for root itself, of the packages with tests:
// concurrent are those in which goroutines may meet, since code of this module starts one in the
// package, in its tests, or in a package that these import, however far away. In all others the
// race detector has nothing to find. Modules below root are left out.
func Packages(root string) (concurrent, sequential []string, err error) {
	module, err := modulePath(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	m := map[string]*folder{}
	err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != root && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") ||
			strings.HasPrefix(e.Name(), "_") || testuse.IsModule(file)):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if m[dir] == nil {
			m[dir] = new(folder)
		}
		return m[dir].read(file, module)
	})
	if err != nil {
		return nil, nil, err
	}
	for dir, f := range m {
		switch {
		case !f.tested:
		case f.tests.starts || reaches(m, append(slices.Clone(f.tests.imports), dir), map[string]bool{}):
			concurrent = append(concurrent, dir)
		default:
			sequential = append(sequential, dir)
		}
	}
	slices.Sort(concurrent)
	slices.Sort(sequential)
	return concurrent, sequential, nil
}

// modulePath returns the module's path as go.mod has it.
func modulePath(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("%s names no module", file)
}

// folder is a package with its tests.
type folder struct {
	code, tests files
	tested      bool
}

// files is what is known of some files of a package.
type files struct {
	imports []string // the folders of this module
	starts  bool     // a goroutine
}

func (f *folder) read(file, module string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	to := &f.code
	if strings.HasSuffix(file, "_test.go") {
		to, f.tested = &f.tests, true
	}
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(name+"/", module+"/"); ok {
			to.imports = append(to.imports, path.Clean(rest))
		}
		to.starts = to.starts || startingImports[name]
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			to.starts = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && startingCalls[s.Sel.Name] {
				to.starts = true
			}
		}
		return true
	})
	return nil
}

// What starts goroutines that run code of ours, without a go statement of ours.
var (
	startingImports = map[string]bool{"net/http": true, "net/http/httptest": true, "net/rpc": true,
		"testing/synctest": true}
	startingCalls = map[string]bool{"Go": true, "AfterFunc": true, "Parallel": true, "RunParallel": true}
)

// reaches reports whether code starts a goroutine in one of some folders, or in what these import.
func reaches(m map[string]*folder, dirs []string, seen map[string]bool) bool {
	for _, dir := range dirs {
		f := m[dir]
		if f == nil || seen[dir] {
			continue
		}
		seen[dir] = true
		if f.code.starts || reaches(m, f.code.imports, seen) {
			return true
		}
	}
	return false
}
