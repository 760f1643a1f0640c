package archtest

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// self lists the methods that a type has for others to call: for package fmt, package errors,
// codecs and the like.
var self = []string{"Error", "Unwrap", "Is", "Timeout", "String", "Format", "IsZero", "MarshalBSON", "UnmarshalBSON", "MarshalBSONValue", "UnmarshalBSONValue",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// TestExamples wants every exported function and method of the public packages to be called by a
// runnable Example of its package: one whose output is checked, or a function that stands beside
// one.
func TestExamples(t *testing.T) {
	top := root(t)
	fset := token.NewFileSet()
	examples := map[string][]*ast.File{}
	needs := map[string]bool{}
	public := public(t)
	for _, pkg := range public {
		needs[path.Join(module, pkg)] = true
		examples[pkg] = exampleFiles(t, fset, filepath.Join(top, pkg))
		for _, f := range examples[pkg] {
			for _, s := range f.Imports {
				imp, err := strconv.Unquote(s.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				needs[imp] = true
			}
		}
	}
	imports := importer.ForCompiler(fset, "gc", exported(t, top, needs))
	for _, pkg := range public {
		// Files of the same package that have no Example are not read, so that some names are not
		// known.
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		conf := types.Config{Importer: imports, Error: func(error) {}}
		_, _ = conf.Check(path.Join(module, pkg)+"_test", fset, examples[pkg], info)
		called := map[string]bool{}
		for _, f := range examples[pkg] {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !isTest(fn.Name.Name) {
					ast.Inspect(fn, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							if fn, ok := info.Uses[id].(*types.Func); ok {
								called[fn.Origin().FullName()] = true
							}
						}
						return true
					})
				}
			}
		}
		p, err := imports.Import(path.Join(module, pkg))
		if err != nil {
			t.Fatal(err)
		}
		all := functions(p)
		if len(p.Scope().Names()) == 0 {
			t.Errorf("package %s has no names: the test looks in the wrong place", pkg)
		}
		for _, name := range all {
			if !called[name] {
				t.Errorf("no Example with checked output calls %s", name)
			}
		}
	}
}

// TestExamplesReadAlone wants everything that an Example uses to stand in its file: documentation
// sites show an Example with what it uses from there, and nothing of what other files have.
func TestExamplesReadAlone(t *testing.T) {
	top := root(t)
	n := 0
	for _, pkg := range public(t) {
		for _, f := range exampleFiles(t, token.NewFileSet(), filepath.Join(top, pkg)) {
			for _, e := range doc.Examples(f) {
				n++
				if e.Play == nil || e.Play == f && len(unresolved(f)) > 0 {
					t.Errorf("%s: Example%s uses what stands in another file", cmp.Or(pkg, "."), e.Name)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("%d Examples: the test looks in the wrong place", n)
	}
}

// unresolved returns the names in a file that neither the file nor the language declares.
func unresolved(f *ast.File) []string {
	imported := map[string]bool{}
	for _, s := range f.Imports {
		name := path.Base(strings.Trim(s.Path.Value, `"`))
		if s.Name != nil {
			name = s.Name.Name
		}
		imported[name] = true
	}
	var out []string
	for _, id := range f.Unresolved {
		if !imported[id.Name] && types.Universe.Lookup(id.Name) == nil {
			out = append(out, id.Name)
		}
	}
	return out
}

// functions lists the exported functions of a package and the exported methods of its types.
func functions(p *types.Package) []string {
	var out []string
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Func:
			if o.Exported() {
				out = append(out, o.FullName())
			}
		case *types.TypeName:
			named, ok := o.Type().(*types.Named)
			if !ok || !o.Exported() || o.IsAlias() || types.IsInterface(named) {
				continue
			}
			for m := range named.Methods() {
				if m.Exported() && !slices.Contains(self, m.Name()) {
					out = append(out, m.FullName())
				}
			}
		}
	}
	return out
}

// isTest reports whether a function of a test file is no Example and no helper of one.
func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Fuzz")
}

// exampleFiles parses the test files in dir that have Examples. An Example that has no output to
// check does not run, and is an error.
func exampleFiles(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.File
	for _, file := range files {
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			found = true
			if !hasOutput(f, fn) {
				t.Errorf("%s: %s has no output to check, so that it does not run", fset.Position(fn.Pos()), fn.Name.Name)
			}
		}
		if found && !strings.HasSuffix(f.Name.Name, "_test") {
			t.Errorf("%s has Examples and is not of package %s_test: users could not write them", file, f.Name.Name)
		}
		if found {
			out = append(out, f)
		}
	}
	return out
}

// hasOutput reports whether an Example ends with a comment that says what it prints.
func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
		text := strings.ToLower(c.Text())
		return c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() && (strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:"))
	})
}

// exported asks the go command where the compiler has written what the packages export, and what
// those export that they import.
func exported(t *testing.T, top string, pkgs map[string]bool) importer.Lookup {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for pkg := range pkgs {
		args = append(args, pkg)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = top, os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	return func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) }
}
