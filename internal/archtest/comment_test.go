package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestComments wants what users can see of the public packages to be explained: a doc comment on every exported symbol, which begins
// with its name (that of several types together names each), and for a type that is an alias of an internal one, whose fields go doc does not show, the name of each field. Other
// internal types must not show.
func TestComments(t *testing.T) {
	top := root(t)
	for _, pkg := range public {
		fset := token.NewFileSet()
		for _, f := range sources(t, fset, filepath.Join(top, pkg)) {
			c := commentCheck{t: t, fset: fset, file: f, top: top, imports: internalImports(t, f)}
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

// internalImports returns the internal packages that a file imports, by their names.
func internalImports(t *testing.T, f *ast.File) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range f.Imports {
		imp, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if rel, ok := inModule(imp); ok && slices.Contains(strings.Split(rel, "/"), "internal") {
			out[path.Base(rel)] = rel
		}
	}
	return out
}

type commentCheck struct {
	t       *testing.T
	fset    *token.FileSet
	file    *ast.File
	top     string
	imports map[string]string
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
		c.hidden(d.Type)
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
	if sel, ok := s.Type.(*ast.SelectorExpr); ok && s.Assign.IsValid() {
		c.alias(s, doc, c.imports[sel.X.(*ast.Ident).Name], sel.Sel.Name)
		return
	}
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		c.hidden(s.Type)
		return
	}
	for _, f := range st.Fields.List {
		if slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.IsExported() }) {
			c.hidden(f.Type)
		}
	}
}

// named wants a doc comment that begins with a symbol's name or, if others share it, has it somewhere.
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

// alias wants the comment of an alias of an internal struct to name the fields.
func (c *commentCheck) alias(s *ast.TypeSpec, doc *ast.CommentGroup, pkg, name string) {
	if pkg == "" || doc == nil {
		return
	}
	for _, f := range sources(c.t, c.fset, filepath.Join(c.top, pkg)) {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				target, ok := spec.(*ast.TypeSpec)
				if !ok || target.Name.Name != name {
					continue
				}
				st, ok := target.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range fieldNames(st) {
					if !strings.Contains(doc.Text(), field) {
						c.errorf(s, "the comment of %s does not name the field %s, which go doc does not show", s.Name.Name, field)
					}
				}
			}
		}
	}
}

// fieldNames returns the names of the exported fields of a struct.
func fieldNames(st *ast.StructType) []string {
	var out []string
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				out = append(out, n.Name)
			}
		}
		if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && id.IsExported() {
			out = append(out, id.Name)
		}
	}
	return out
}

// hidden wants a type that users see to name no internal one, for which they have no name.
func (c *commentCheck) hidden(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && c.imports[x.Name] != "" {
			c.errorf(sel, "%s.%s has no name that users could write: publish it by an alias", x.Name, sel.Sel.Name)
		}
		return false
	})
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
