package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// loaded is a package with its types.
type loaded struct {
	dir    string
	name   string
	fset   *token.FileSet
	files  []*ast.File
	source map[*ast.File][]byte
	paths  map[*ast.File]string
	info   *types.Info
	pkg    *types.Package
	errors []error

	renamed map[string]string // helpers that have another name, since the package has theirs
}

// listed is what the go command says of a package.
type listed struct {
	Dir, ImportPath, Name, Export, ForTest string
	GoFiles, CgoFiles                      []string
	TestGoFiles                            []string
	ImportMap                              map[string]string
	DepOnly                                bool
	Imports                                []string
	Standard                               bool
	Module                                 *struct {
		Path, Version, GoVersion string
		Replace                  *struct{ Path string }
	}
	Error *struct{ Err string }
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

// load reads packages and their tests. The go command compiles what they import and says where the
// types of that are, so that nothing but the packages themselves is read.
func load(dir string, patterns []string) ([]*loaded, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-test", "-deps", "-export", "-json"}, patterns...)...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	exports := map[string]string{}
	var chosen []*listed
	tested := map[string]bool{} // packages whose variant with tests is there
	dec := json.NewDecoder(&stdout)
	for {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if l.DepOnly || strings.HasSuffix(l.ImportPath, ".test") {
			continue
		}
		if l.ForTest != "" {
			tested[l.ForTest] = tested[l.ForTest] || !strings.HasSuffix(l.Name, "_test")
		}
		chosen = append(chosen, &l)
	}
	var pkgs []*loaded
	for _, l := range chosen {
		if l.ForTest == "" && tested[l.ImportPath] || len(l.GoFiles) == 0 {
			continue // its variant has the same files and more
		}
		p, err := check(l, exports)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	return pkgs, nil
}

func check(l *listed, exports map[string]string) (*loaded, error) {
	p := &loaded{dir: l.Dir, name: l.Name, fset: token.NewFileSet(), source: map[*ast.File][]byte{},
		paths: map[*ast.File]string{}}
	for _, name := range append(l.GoFiles, l.CgoFiles...) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.Dir, name)
		}
		if !strings.HasPrefix(path, l.Dir) {
			continue // the go command has made it
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(p.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		p.source[f], p.paths[f] = src, path
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if mapped, ok := l.ImportMap[path]; ok {
			path = mapped
		}
		file := exports[path]
		if file == "" {
			return nil, fmt.Errorf("package %s could not be compiled", path)
		}
		return os.Open(file)
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{}}
	cfg := types.Config{Importer: importer.ForCompiler(p.fset, "gc", lookup), Error: func(err error) {
		if len(p.errors) < 3 {
			p.errors = append(p.errors, err)
		}
	}, FakeImportC: true}
	p.pkg, _ = cfg.Check(strings.TrimSuffix(l.ImportPath, " ["+l.ForTest+".test]"), p.fset, p.files, p.info)
	return p, nil
}
