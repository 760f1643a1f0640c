package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestComments wants what users can see of the public packages to be explained: a doc comment on
// every exported symbol, which begins with its name (that of several types together names each).
func TestComments(t *testing.T) {
	top := root(t)
	for _, pkg := range public(t) {
		fset := token.NewFileSet()
		for _, f := range sources(t, fset, filepath.Join(top, pkg)) {
			c := commentCheck{t: t, fset: fset}
			for _, d := range f.Decls {
				c.declaration(d)
			}
		}
	}
}

// sources parses the files of the package in dir, without its tests.
func sources(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

type commentCheck struct {
	t    *testing.T
	fset *token.FileSet
}

func (c *commentCheck) errorf(n ast.Node, format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: "+format, append([]any{c.fset.Position(n.Pos())}, args...)...)
}

func (c *commentCheck) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d)) {
			return
		}
		c.named(d, d.Name.Name, d.Doc, false)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				exported := slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.IsExported() })
				if exported && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					c.errorf(s, "%s has no comment", s.Names[0].Name)
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					c.typ(d, s)
				}
			}
		}
	}
}

func (c *commentCheck) typ(d *ast.GenDecl, s *ast.TypeSpec) {
	doc := s.Doc
	if doc == nil {
		doc = d.Doc
	}
	c.named(s, s.Name.Name, doc, len(d.Specs) > 1)
}

// named wants a doc comment that begins with a symbol's name or, if others share it, has it
// somewhere.
func (c *commentCheck) named(n ast.Node, name string, doc *ast.CommentGroup, shared bool) {
	if doc == nil {
		c.errorf(n, "%s has no comment", name)
		return
	}
	text := doc.Text()
	for _, article := range []string{"", "A ", "An "} {
		if strings.HasPrefix(text, article+name) {
			return
		}
	}
	if !shared || !strings.Contains(text, name) {
		c.errorf(n, "the comment of %s begins with another word", name)
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
