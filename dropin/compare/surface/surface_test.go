package surface

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "take names that are there by now off the list of missing ones")

// TestSurface holds the drop-in for version 2 at what it has: every exported name of the official
// driver that is not there is on the list, and the list only gets shorter. What is there is the
// same to a program.
func TestSurface(t *testing.T) { hold(t, V2Report, "missing.txt", 2500) }

// TestSurface1 is TestSurface for version 1.
func TestSurface1(t *testing.T) { hold(t, V1Report, "missing1.txt", 2700) }

func hold(t *testing.T, report func(dir string) (Report, error), list string, least int) {
	r, err := report("..")
	if err != nil {
		t.Fatal(err)
	}
	if r.Total < least {
		t.Fatalf("the official driver exports %d names: it was not loaded whole", r.Total)
	}
	for _, d := range r.Differs {
		t.Error("differs:", d)
	}
	file := filepath.Join("testdata", list)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.FieldsFunc(string(text), func(c rune) bool { return c == '\n' })
	lost := false
	for _, name := range r.Missing {
		// Where a type was missing, so were its members.
		owner := name
		if dot := strings.LastIndexByte(name, '.'); dot > strings.IndexByte(name, ' ') {
			owner = name[:dot]
		}
		if !slices.Contains(listed, name) && !slices.Contains(listed, owner) {
			t.Error("is missing, and was there before:", name)
			lost = true
		}
	}
	if lost || slices.Equal(listed, r.Missing) {
		return
	}
	if !*update {
		t.Errorf("names on the list are there by now: go test -run %s -update", t.Name())
		return
	}
	if err := os.WriteFile(file, []byte(strings.Join(r.Missing, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPackages looks at the folders of the official modules: whatever is public outside of x is
// among the packages that are compared, so that none is forgotten.
func TestPackages(t *testing.T) {
	for _, version := range []struct {
		path     string
		compared []string
	}{{V2, V2Packages()}, {V1, V1Packages()}} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", version.path).Output()
		if err != nil {
			t.Fatal(err)
		}
		dir, found := strings.TrimSpace(string(out)), 0
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch rel, _ := filepath.Rel(dir, path); {
			case d.IsDir() && (slices.Contains([]string{"internal", "testdata", "vendor", "examples", "cmd"}, d.Name()) ||
				slices.Contains([]string{"x", "benchmark"}, rel)):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			case slices.Contains([]string{"mongo/integration", "mongo/integration/unified"}, filepath.ToSlash(filepath.Dir(rel))):
				// The driver's own tests, which no program imports.
			default:
				found++
				if pkg := version.path + "/" + filepath.ToSlash(filepath.Dir(rel)); !slices.Contains(version.compared, pkg) {
					t.Errorf("%s is not compared", pkg)
					return fs.SkipDir
				}
			}
			return nil
		})
		if err != nil || found < 50 {
			t.Errorf("%s: %d files of public packages; %v", version.path, found, err)
		}
	}
}

const official = `package p

import "io"

const N, S = 1, "a"

const L int = 3

var V int

type I interface{ M(int) error }

type T struct {
	A int
	B string ` + "`json:\"b\"`" + `
}

func (T) Value() int     { return 0 }
func (*T) Pointer() int  { return 0 }

type hidden struct{ io.Reader }

type O struct{ hidden }

type F func(x int, y ...T) (err error)

func G[K comparable](k K) map[K]T { return nil }
`

// TestCompare changes one thing after the other and asks that the comparison finds it.
func TestCompare(t *testing.T) {
	for _, c := range []struct{ old, new, missing, differs string }{
		{old: "x int, y", new: "a int, b"},
		{old: "A int", new: "A int; c int", differs: "p T: has fields that are not exported, and want none"},
		{old: "N, S = 1", new: "N, S = 2", differs: "p N: is 2, want 1"},
		{old: "L int", new: "L", differs: "p L: is untyped int, want int"},
		{old: `S = 1, "a"`, new: `_ = 1, "a"`, missing: "p S"},
		{old: "var V int", new: "const V = 1", differs: "p V: want a *types.Var, have a *types.Const"},
		{old: "M(int) error", new: "M(int) error; Q()", differs: "p I.Q: is a method too much for an interface"},
		{old: "M(int) error", new: "", missing: "p I.M"},
		{old: "A int", new: "A int64", differs: "p T.A: is int64, want int"},
		{old: "A int", new: "B2 int", missing: "p T.A"},
		{old: `json:"b"`, new: `json:"c"`, differs: `p T.B: has the tag "json:\"c\"", want "json:\"b\""`},
		{old: "(T) Value", new: "(*T) Value", differs: "p T.Value: has a pointer receiver"},
		{old: "(*T) Pointer() int ", new: "(*T) Pointer() int8 ", differs: "p T.Pointer: is func()(int8), want func()(int)"},
		{old: "struct{ io.Reader }", new: "struct{ r io.Reader }", missing: "p O.Read"},
		{old: "y ...T", new: "y []T", differs: "p F: is func(int, []p.T)(error), want func(int, []p.T)...(error)"},
		{old: "G[K comparable]", new: "G[K any]", differs: "p G"},
		{old: "type T struct {", new: "type T int; type T2 struct {", differs: "p T: is int, want a struct"},
	} {
		if !strings.Contains(official, c.old) {
			t.Fatalf("%q is not in the source", c.old)
		}
		have := strings.Replace(official, c.old, c.new, 1)
		if strings.Contains(c.new, "G[K any]") {
			have = strings.Replace(have, "map[K]T", "[]K", 1)
		}
		r := Compare(map[string]*types.Package{"p": check(t, official)}, map[string]*types.Package{"p": check(t, have)}, "", nil)
		if c.missing == "" && len(r.Missing) > 0 || c.missing != "" && !slices.Contains(r.Missing, c.missing) {
			t.Errorf("%q for %q: missing %q, want %q", c.new, c.old, r.Missing, c.missing)
		}
		found := slices.ContainsFunc(r.Differs, func(d string) bool { return strings.HasPrefix(d, c.differs) })
		if c.differs == "" && len(r.Differs) > 0 || c.differs != "" && !found {
			t.Errorf("%q for %q: differs %q, want %q", c.new, c.old, r.Differs, c.differs)
		}
	}
}

// TestCompareAlias takes a type of another package under its own name for the type.
func TestCompareAlias(t *testing.T) {
	want := check(t, "package p\n type Reader interface{ Read([]byte) (int, error) }\nfunc F(Reader) {}\n")
	have := check(t, "package p\n import \"io\"\n type Reader = io.Reader\nfunc F(io.Reader) {}\n")
	r := Compare(map[string]*types.Package{"p": want}, map[string]*types.Package{"p": have}, "", nil)
	if len(r.Missing)+len(r.Differs) > 0 || r.Total != 3 {
		t.Errorf("missing %q, differs %q of %d", r.Missing, r.Differs, r.Total)
	}
	if r = Compare(map[string]*types.Package{"p": want}, nil, "", nil); r.Lacking != 3 || len(r.Missing) != 2 {
		t.Errorf("without the package: %d lacking, listed %q", r.Lacking, r.Missing)
	}
}

func check(t *testing.T, src string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importerFunc(func(path string) (*types.Package, error) {
		io := types.NewPackage(path, path)
		bytes := types.NewTuple(types.NewVar(0, io, "p", types.NewSlice(types.Typ[types.Byte])))
		results := types.NewTuple(types.NewVar(0, io, "n", types.Typ[types.Int]), types.NewVar(0, io, "err", types.Universe.Lookup("error").Type()))
		reader := types.NewInterfaceType([]*types.Func{types.NewFunc(0, io, "Read", types.NewSignatureType(nil, nil, nil, bytes, results, false))}, nil)
		name := types.NewTypeName(0, io, "Reader", nil)
		types.NewNamed(name, reader.Complete(), nil)
		io.Scope().Insert(name)
		io.MarkComplete()
		return io, nil
	})}
	p, err := conf.Check("p", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
