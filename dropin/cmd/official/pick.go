package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// selectPackages finds the packages that have tests, lays the helpers that these import over the
// drop-in, and compiles all that is imported.
func (m *module) selectPackages(ctx context.Context) error {
	imported := make(map[string]bool)
	var helpers []string
	add := func(paths []string) {
		for _, path := range paths {
			dir, ours := strings.CutPrefix(path, m.path+"/")
			if imported[path] {
				continue
			}
			imported[path] = true
			if ours && !m.exists(dir) {
				helpers = append(helpers, dir)
			}
		}
	}
	err := filepath.WalkDir(m.source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(m.source, path)
		if err != nil {
			return err
		}
		if d.Name() == "vendor" || d.Name() == "testdata" {
			return fs.SkipDir
		}
		besides := slices.Contains(m.besides, dir)
		if !besides && (strings.Contains(dir, "internal") || !m.exists(dir)) {
			return nil
		}
		p, err := build.ImportDir(path, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		} else if err != nil {
			return err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			return nil
		}
		m.packages = append(m.packages, dir)
		imported[m.path+"/"+dir] = true
		if besides && !m.exists(dir) {
			helpers = append(helpers, dir)
		}
		add(p.TestImports)
		add(p.XTestImports)
		return nil
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(helpers); i++ {
		p, err := build.ImportDir(filepath.Join(m.source, helpers[i]), 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			continue
		} else if err != nil {
			return err
		}
		for _, name := range p.GoFiles {
			m.overlay[filepath.Join(m.allium, m.dropin, helpers[i], name)] = filepath.Join(p.Dir, name)
		}
		add(p.Imports)
	}
	delete(imported, "C")
	paths := make([]string, 0, len(imported))
	for path := range imported {
		paths = append(paths, path)
	}
	return m.compile(ctx, paths)
}

// exists reports whether the drop-in has a package.
func (m *module) exists(dir string) bool {
	files, err := filepath.Glob(filepath.Join(m.allium, m.dropin, dir, "*.go"))
	return err == nil && len(files) > 0
}

// compile finds out where the compiled packages lie. A helper that does not compile against the
// drop-in is not there.
func (m *module) compile(ctx context.Context, paths []string) error {
	out, err := m.tool(ctx, "list", append([]string{"-e", "-export", "-deps", "-json=ImportPath,Export"}, paths...)...)
	if err != nil {
		return err
	}
	m.exports = make(map[string]string)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Export != "" {
			m.exports[p.ImportPath] = p.Export
		}
	}
}

// A tested is a package with the tests that are left of it.
type tested struct {
	name    string
	dir     string            // in the module
	sources map[string][]byte // the files of tests, as far as they type-check
	tests   []string          // those that are left
	cut     map[string]string // those that are not, and why
}

// pick returns the tests of a package that type-check against the drop-in. External tests are a
// package of their own.
func (m *module) pick(dir string) ([]*tested, error) {
	p, err := build.ImportDir(filepath.Join(m.source, dir), 0)
	if err != nil {
		return nil, err
	}
	own, err := build.ImportDir(filepath.Join(m.allium, m.dropin, dir), 0)
	if none := (*build.NoGoError)(nil); err != nil && !errors.As(err, &none) {
		if _, statErr := os.Stat(filepath.Join(m.allium, m.dropin, dir)); statErr == nil {
			return nil, err
		}
	}
	var base []string
	if own != nil {
		for _, name := range own.GoFiles {
			base = append(base, filepath.Join(own.Dir, name))
		}
	}
	if len(base) == 0 {
		for _, name := range p.GoFiles {
			base = append(base, filepath.Join(p.Dir, name))
		}
	}
	for _, pattern := range slices.Concat(p.TestEmbedPatterns, p.XTestEmbedPatterns) {
		files, err := filepath.Glob(filepath.Join(p.Dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name, err := filepath.Rel(p.Dir, file)
			if err != nil {
				return nil, err
			}
			m.overlay[filepath.Join(m.allium, m.dropin, dir, name)] = file
		}
	}
	var picked []*tested
	for _, half := range []struct {
		files, base []string
		path        string
	}{{p.TestGoFiles, base, m.path + "/" + dir}, {p.XTestGoFiles, nil, m.path + "/" + dir + "_test"}} {
		if len(half.files) == 0 {
			continue
		}
		t := &tested{dir: dir, name: half.path, sources: make(map[string][]byte), cut: make(map[string]string)}
		for _, name := range half.files {
			if t.sources[name], err = os.ReadFile(filepath.Join(p.Dir, name)); err != nil {
				return nil, err
			}
		}
		if err := m.cut(t, half.base); err != nil {
			return nil, err
		}
		picked = append(picked, t)
	}
	return picked, nil
}

// cut blanks the declarations of a package's tests that do not type-check, or that use an
// unexported name of the drop-in's, until all do. Lines stay where they are.
func (m *module) cut(t *tested, base []string) error {
	for {
		fset := token.NewFileSet()
		var files, own []*ast.File
		for _, name := range base {
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			own = append(own, f)
		}
		for name, source := range t.sources {
			f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		problems := m.check(fset, t, own, files)
		if len(problems) == 0 {
			t.tests = nil
			for _, f := range files {
				for _, d := range f.Decls {
					if name := testName(d); name != "" {
						t.tests = append(t.tests, name)
					}
				}
			}
			slices.Sort(t.tests)
			return nil
		}
		if !t.blank(fset, files, problems) {
			return fmt.Errorf("%s: cannot be mended: %s", t.name, problems[0].Msg)
		}
	}
}

// check returns what of a package's tests does not type-check.
func (m *module) check(fset *token.FileSet, t *tested, own, files []*ast.File) []types.Error {
	var problems []types.Error
	conf := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
			file := m.exports[path]
			if file == "" {
				return nil, fmt.Errorf("there is no package %s", path)
			}
			return os.Open(file)
		}),
		Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) && !strings.HasPrefix(e.Msg, "\t") {
				problems = append(problems, e)
			}
		},
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, _ := conf.Check(strings.TrimSuffix(t.name, "_test"), fset, append(slices.Clone(own), files...), info)
	ours := make(map[string]bool)
	for _, f := range own {
		ours[fset.File(f.Pos()).Name()] = true
	}
	for id, obj := range info.Uses {
		if obj.Pkg() == pkg && !obj.Exported() && ours[fset.Position(obj.Pos()).Filename] &&
			!ours[fset.Position(id.Pos()).Filename] {
			problems = append(problems, types.Error{Fset: fset, Pos: id.Pos(), Msg: "unexported: " + id.Name})
		}
	}
	// The first one is what a row says, and a map has no order.
	slices.SortFunc(problems, func(a, b types.Error) int { return cmp.Compare(a.Pos, b.Pos) })
	return slices.DeleteFunc(problems, func(e types.Error) bool { return ours[fset.Position(e.Pos).Filename] })
}

// blank takes the declarations with problems away, and reports whether there are any. A type goes
// with its methods: without one of them it may mean something else.
func (t *tested) blank(fset *token.FileSet, files []*ast.File, problems []types.Error) bool {
	done := false
	var crippled []string
	for _, f := range files {
		name := fset.File(f.Pos()).Name()
		for _, d := range f.Decls {
			for _, node := range parts(d) {
				i := slices.IndexFunc(problems, func(e types.Error) bool {
					return node.Pos() <= e.Pos && e.Pos < node.End()
				})
				if i < 0 {
					continue
				}
				done = true
				source := t.sources[name]
				for at := fset.Position(start(node)).Offset; at < fset.Position(node.End()).Offset; at++ {
					if source[at] != '\n' {
						source[at] = ' '
					}
				}
				if test := testName(d); test != "" {
					t.cut[test] = problems[i].Msg
				}
				if of := receiver(d); of != "" {
					crippled = append(crippled, of)
				}
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if ok && slices.Contains(crippled, spec.Name.Name) {
				source := t.sources[fset.File(f.Pos()).Name()]
				for at := spec.Name.Pos(); at < spec.Name.End(); at++ {
					if i := fset.Position(at).Offset; source[i] != ' ' { // unless it is gone itself
						source[i] = '_' // what uses it does not type-check now
					}
				}
			}
			return true
		})
	}
	return done
}

// receiver returns the type that a declaration is a method of, or "".
func receiver(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv.NumFields() != 1 {
		return ""
	}
	of := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && of == "" {
			of = id.Name
		}
		return true
	})
	return of
}

// parts returns what of a declaration can be taken away by itself.
func parts(d ast.Decl) []ast.Node {
	group, ok := d.(*ast.GenDecl)
	if !ok || group.Tok == token.CONST || !group.Lparen.IsValid() {
		return []ast.Node{d}
	}
	nodes := make([]ast.Node, len(group.Specs))
	for i, spec := range group.Specs {
		nodes[i] = spec
	}
	return nodes
}

// start returns where a declaration begins, with its comment: that may be a directive.
func start(node ast.Node) token.Pos {
	var doc *ast.CommentGroup
	switch n := node.(type) {
	case *ast.FuncDecl:
		doc = n.Doc
	case *ast.GenDecl:
		doc = n.Doc
	case *ast.ValueSpec:
		doc = n.Doc
	}
	if doc != nil {
		return doc.Pos()
	}
	return node.Pos()
}

// testName returns the name of a declaration that the go command runs as a test, or "".
func testName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv != nil || f.Name.Name == "TestMain" {
		return ""
	}
	if strings.HasPrefix(f.Name.Name, "Test") && f.Type.Params.NumFields() == 1 {
		return f.Name.Name
	}
	return ""
}
