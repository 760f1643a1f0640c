package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
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

func isForTests(dir string) bool {
	return slices.ContainsFunc(forTests, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") })
}

// lookedAt are exported functions that tests of other packages alone use, and what for.
var lookedAt = map[string]string{
	"(*allium/internal/pool.Pool).Generation":  "package topology clears pools, and its tests look",
	"(*allium/internal/uri.Config).AuthSource": "package dns applies TXT records, and its tests look",
}

// TestExportsAreUsed finds functions and methods that internal packages export and nothing but
// tests names, by their types: a method of the same name that another type has hides none.
func TestExportsAreUsed(t *testing.T) {
	u := newCallers(t)
	if len(u.declared) < 500 {
		t.Fatalf("%d functions found", len(u.declared))
	}
	for name, d := range u.declared {
		if used := u.named[name] || u.required(d.name, d.beside); used == (lookedAt[name] != "") {
			t.Errorf("%s: nothing but tests can use %s: it moves into one of them; or it need not be an exception",
				d.at, name)
		}
	}
}

// callers are the functions of the module by their full names, as types.Func has them.
type callers struct {
	declared map[string]exportedFunc // exported by internal packages that are not for tests
	named    map[string]bool         // used by name
	asked    [][]string              // the methods of each interface
	noted    map[string]bool         // those that are there
}

type exportedFunc struct {
	at     token.Position
	name   string
	beside map[string]bool // all methods of its type, if it is one
}

// listed is a package as go list tells of it.
type listed struct {
	dir, path string
	files     []string
}

// newCallers reads the packages of all modules of the repository without their tests.
func newCallers(t *testing.T) *callers {
	t.Helper()
	u := &callers{declared: map[string]exportedFunc{}, named: map[string]bool{}, noted: map[string]bool{}}
	// What package errors asks of errors, by interfaces without names.
	u.asked = [][]string{{"Unwrap"}, {"Is"}, {"As"}}
	top := root(t)
	mods, err := filepath.Glob(filepath.Join(top, "*/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(filepath.Join(top, "*/*/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	u.read(t, top)
	for _, mod := range slices.Concat(mods, deeper) {
		// Other modules can use the internal packages, but what they export is not looked at here.
		u.read(t, filepath.Dir(mod))
	}
	return u
}

func (u *callers) read(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{if .Module}}{{.Module.Main}}{{end}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var own []listed
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[f[0]] = f[1]
		if f[2] == "true" {
			own = append(own, listed{f[3], f[0], strings.Fields(f[4])})
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		u.add(t, fset, imports, p)
	}
}

// add reads a package.
func (u *callers) add(t *testing.T, fset *token.FileSet, imports types.Importer, p listed) {
	t.Helper()
	var files []*ast.File
	for _, name := range p.files {
		f, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: imports, Error: func(error) {}}
	pkg, _ := conf.Check(p.path, fset, files, &info)
	if pkg == nil {
		t.Fatalf("%s cannot be read", p.path)
	}
	dir := strings.TrimPrefix(p.path, module+"/")
	ours := strings.Contains(dir+"/", "internal/") && !isForTests(dir) && strings.HasPrefix(p.path, module+"/")
	for id, o := range info.Defs {
		if f, ok := o.(*types.Func); ok && ours && id.IsExported() {
			u.declared[f.FullName()] = exportedFunc{fset.Position(id.Pos()), f.Name(), methods(f)}
		}
	}
	for _, o := range info.Uses {
		if f, ok := o.(*types.Func); ok {
			u.named[f.Origin().FullName()] = true
		}
	}
	u.ask(pkg, info)
}

// methods returns the names of all methods of a method's type, those that are promoted, too.
func methods(f *types.Func) map[string]bool {
	recv := f.Signature().Recv()
	if recv == nil {
		return nil
	}
	t := recv.Type()
	if _, ok := t.(*types.Pointer); !ok {
		t = types.NewPointer(t)
	}
	names := map[string]bool{}
	for m := range types.NewMethodSet(t).Methods() {
		names[m.Obj().Name()] = true
	}
	return names
}

// ask notes the methods of the interfaces that a package declares, imports or names: who has them
// all may be called by somebody who knows the interface alone.
func (u *callers) ask(pkg *types.Package, info types.Info) {
	note := func(t types.Type) {
		i, ok := t.Underlying().(*types.Interface)
		if !ok || i.NumMethods() == 0 {
			return
		}
		var names []string
		for m := range i.Methods() {
			names = append(names, m.Name())
		}
		if key := strings.Join(names, " "); !u.noted[key] {
			u.noted[key] = true
			u.asked = append(u.asked, names)
		}
	}
	for _, p := range append(pkg.Imports(), pkg) {
		for _, name := range p.Scope().Names() {
			if tn, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
				note(tn.Type())
			}
		}
	}
	for _, tv := range info.Types {
		if tv.Type != nil {
			note(tv.Type)
		}
	}
}

// required reports whether an interface that somebody knows asks for the method of a type with
// these methods.
func (u *callers) required(method string, has map[string]bool) bool {
	return slices.ContainsFunc(u.asked, func(names []string) bool {
		return slices.Contains(names, method) && !slices.ContainsFunc(names, func(n string) bool { return !has[n] })
	})
}
