package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/api.txt")

// mostSymbols bounds the root package, which is what a user reads first: top level names and
// methods, fields apart. What is rarely needed belongs into the package that it is about.
const mostSymbols = 257

// public returns the packages that users import: all of the module but internal packages and
// programs.
func public(t *testing.T) []string {
	t.Helper()
	var out []string
	for pkg := range packages(t) {
		if !isInternal(pkg) && !strings.HasPrefix(pkg, "cmd/") && !strings.HasPrefix(pkg, "dropin/") && !strings.HasPrefix(pkg, "examples/") && !strings.HasPrefix(pkg, "tools/") {
			out = append(out, pkg)
		}
	}
	slices.Sort(out)
	if len(out) < 8 {
		t.Fatalf("only %v found: the test looks in the wrong place", out)
	}
	return out
}

// TestAPI compares the exported symbols of the public packages with the list in testdata/api.txt,
// so that every addition, change and removal is seen in review. After a change that is meant:
//
//	go test ./internal/archtest -run TestAPI -update
func TestAPI(t *testing.T) {
	top := root(t)
	var got []string
	for _, pkg := range public(t) {
		list := symbols(t, filepath.Join(top, pkg))
		if n := topLevel(list); pkg == "." && n > mostSymbols {
			t.Errorf("the root package has %d symbols, want at most %d", n, mostSymbols)
		}
		got = append(got, list...)
	}
	golden := filepath.Join("testdata", "api.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("gone: %s", s)
		}
	}
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Errorf("new: %s", s)
		}
	}
	if t.Failed() {
		t.Log("if that is meant: go test ./internal/archtest -run TestAPI -update")
	}
}

// topLevel counts the top level names and methods in a list of symbols.
func topLevel(symbols []string) int {
	n := 0
	for _, s := range symbols {
		if !strings.Contains(s, " struct, ") && !strings.Contains(s, " interface, ") {
			n++
		}
	}
	return n
}

func TestTopLevel(t *testing.T) {
	list := []string{"p type T struct", "p type T struct, F int", "p func (T) M()", "p type I interface, M func()", "p const C"}
	if n := topLevel(list); n != 3 {
		t.Errorf("%d symbols, want 3", n)
	}
}

// symbols lists the exported symbols of the package in dir, a line each, sorted.
func symbols(t *testing.T, dir string) []string {
	t.Helper()
	fset := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		pkg := f.Name.Name
		for _, d := range f.Decls {
			for _, s := range declared(fset, d) {
				out = append(out, pkg+" "+s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// declared lists the exported symbols of one declaration.
func declared(fset *token.FileSet, d ast.Decl) []string {
	var out []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return nil
		}
		recv := ""
		if d.Recv != nil {
			typ := source(fset, d.Recv.List[0].Type)
			if name := strings.TrimPrefix(typ, "*"); !ast.IsExported(name) {
				return nil
			}
			recv = "(" + typ + ") "
		}
		out = append(out, "func "+recv+d.Name.Name+strings.TrimPrefix(source(fset, d.Type), "func"))
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() {
						out = append(out, d.Tok.String()+" "+n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					out = append(out, typeLines(fset, s)...)
				}
			}
		}
	}
	return out
}

// typeLines lists a type and, for a struct or an interface, its exported fields or methods.
func typeLines(fset *token.FileSet, s *ast.TypeSpec) []string {
	name := "type " + s.Name.Name
	var fields *ast.FieldList
	kind := ""
	switch t := s.Type.(type) {
	case *ast.StructType:
		kind, fields = "struct", t.Fields
	case *ast.InterfaceType:
		kind, fields = "interface", t.Methods
	default:
		assign := " "
		if s.Assign.IsValid() {
			assign = " = "
		}
		return []string{name + assign + source(fset, s.Type)}
	}
	out := []string{name + " " + kind}
	for _, f := range fields.List {
		typ := source(fset, f.Type)
		if len(f.Names) == 0 {
			out = append(out, fmt.Sprintf("%s %s, embeds %s", name, kind, typ))
		}
		for _, n := range f.Names {
			if n.IsExported() {
				out = append(out, fmt.Sprintf("%s %s, %s %s", name, kind, n.Name, typ))
			}
		}
	}
	return out
}

// source prints a node on one line.
func source(fset *token.FileSet, n any) string {
	var b strings.Builder
	if err := printer.Fprint(&b, fset, n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
