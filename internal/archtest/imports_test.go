package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "allium" //rename:module

// layers lists the packages of the driver from the ground up. A package may import those that stand
// before it. Test code may import anything.
var layers = []string{
	"bson",
	"bson/codecs",
	"field/expr",
	"field",
	"field/stage",
	"event",
	"internal/errcode",
	"stats",
	"internal/version",
	"tracing",
	"internal/option",
	"internal/redact",
	"internal/terminal",
	"internal/exchange",
	"internal/flight",
	"internal/scribble",
	"auth",
	"collation",
	"consistency",
	"mongoerr",
	"internal/failure",
	"internal/wire",
	"internal/hello",
	"internal/sigv4",
	"internal/fle",
	"internal/fle/analysis",
	"encryption/kms",
	"internal/crypt",
	"internal/logging",
	"internal/dns",
	"internal/uri",
	"uri",
	"internal/auth",
	"internal/keyservice",
	"internal/ocsp",
	"internal/conn",
	"internal/pool",
	"internal/topology",
	"internal/command",
	"internal/scope",
	"internal/session",
	"internal/exec",
	"internal/cursor",
	".", // the public API
	"field/typed",
	"stats/batch",
	"debug",
	"debug/advisor",
	"gridfs",
	"encryption",
	"patterns/internal/again",
	"patterns/internal/docid",
	"patterns/internal/settled",
	"patterns/lease",
	"patterns/paging",
	"patterns/stream",
	"patterns/queue",
	"patterns/schema",
	"patterns/joined",
	"patterns/cached",
	"patterns/migrate",
}

// aside lists what stands beside the driver, and what each of them may import of the module. A
// trailing slash means the packages below, "*" everything.
var aside = []struct {
	pkg     string
	imports []string
}{
	{"mongotest/internal/randcmd/cmd/", []string{"mongotest/"}},
	{"mongotest/internal/randcmd", []string{"bson", "internal/wire", "mongotest"}},
	{"mongotest/internal/jstests/cmd/", []string{"mongotest", "mongotest/"}},
	{"mongotest/internal/jstests", nil},
	{"mongotest/internal/soak/cmd/", []string{"mongotest", "mongotest/"}},
	{"mongotest/internal/soak", []string{"bson", "internal/wire", "mongotest", "mongotest/"}},
	{"mongotest/search", []string{"bson", "mongotest", "mongotest/"}}, // linked by those who search only
	{"mongotest/", []string{"bson", "internal/fle", "internal/sigv4", "internal/wire", "mongotest/"}},
	{"internal/fixture", []string{"bson", "internal/dump"}},
	{"mongotest", []string{"bson", "internal/dump", "internal/fixture", "internal/wire", "mongotest/"}},
	{"internal/dump", []string{"bson"}},
	{"internal/spectest/cmd/", []string{"*"}},
	{"internal/spectest", []string{"bson"}},
	{"internal/anystate", []string{".", "bson"}},
	{"internal/anystate/cmd/", []string{".", "bson", "internal/anystate"}},
	{"internal/fakekms", []string{"internal/sigv4"}},
	{"internal/fakeserver", []string{"bson", "internal/wire"}},
	{"internal/testdeploy", []string{"consistency", ".", "bson", "mongotest"}},
	{"encryption/encryptiontest", []string{".", "encryption", "encryption/kms", "mongotest"}},
	{"internal/ocsptest", nil},
	{"internal/owncode", nil},
	{"internal/spantest", []string{"tracing"}},
	{"internal/testuse", nil},
	{"internal/unified", []string{"*"}},
	{"internal/drivertest/", []string{"*"}},
	{"internal/hostile", []string{"*"}},
	{"internal/hostile/cmd/", nil},
	{"internal/mistakes", []string{"*"}},
	{"internal/nightly", nil},
	{"internal/nightly/cmd/", []string{"internal/nightly", "internal/testuse"}},
	{"internal/norace", []string{"internal/testuse"}},
	{"internal/norace/cmd/", []string{"internal/norace", "internal/testuse"}},
	{"internal/patch", nil},
	{"internal/requirements", nil},
	{"internal/requirements/cmd/", []string{"internal/patch", "internal/requirements", "internal/spectest"}},
	{"internal/trust", []string{"internal/requirements", "internal/spectest", "mongotest"}},
	{"internal/trust/cmd/", []string{"internal/trust"}},
	{"internal/leaks", nil},
	{"internal/leaks/cmd/", []string{"internal/leaks"}},
	{"internal/campaign", []string{".", "auth", "bson", "consistency", "encryption", "encryption/kms", "event", "gridfs", "patterns/lease", "patterns/migrate", "patterns/queue", "patterns/stream", "internal/errcode", "internal/fakekms", "internal/leaks", "mongoerr", "mongotest"}},
	{"internal/campaign/cmd/", []string{"internal/campaign", "internal/patch"}},
	{"internal/archtest", nil},
	{"cmd/", []string{"*"}},
	{"dropin/cmd/", []string{"mongotest"}},
	{"tools/pictures", []string{".", "bson", "encryption", "encryption/kms", "event", "mongotest"}},
	{"tools/realserver", []string{".", "bson", "mongoerr"}},
	{"tools/", nil},
	{"examples/", []string{"*"}},
}

// mongotestLayers lists the packages of mongotest from the ground up. A package may import those
// that stand before it: the families of commands know the server, which knows none of them.
var mongotestLayers = []string{
	"release", "srverr", "clock", "bsontext", "bsondoc", "decimal", "pcre", "memnet", "netfault", "column", "work", // know nothing of each other's insides
	"args", "args/argstest", "namespace", // the arguments of commands
	"fts", "expr", "js", "query", "pipeline", "qe", // filters, expressions, stages
	"vocabulary", "vocabulary/cmd/vocabulary", // what of them programs can write
	"flavour",                                     // what other servers refuse of them
	"shell",                                       // programs of a shell
	"store", "index", "validation", "searchindex", // documents and what is defined for collections
	"account", "session", "replica", "sharding", "change", "failpoint", // the state of a deployment
	"planner", // how a command reads a collection
	"series",  // time series collections and their buckets
	"server",
	"commands/login", "commands/users", "commands/admin", "commands/write", "commands/read", "commands/catalog", "commands/cluster", // families of commands
	"commands",
}

// TestMongotestImportsGoDown holds mongotest to its layers. What runs or records whole deployments
// stands above them.
func TestMongotestImportsGoDown(t *testing.T) {
	const under = "mongotest/internal/"
	for pkg, imports := range packages(t) {
		name, ok := strings.CutPrefix(pkg, under)
		if !ok || strings.HasPrefix(name, "soak") || strings.HasPrefix(name, "randcmd") || strings.HasPrefix(name, "golden") || strings.HasPrefix(name, "jstests") {
			continue
		}
		layer := slices.Index(mongotestLayers, name)
		if layer < 0 {
			t.Errorf("package %s has no layer: put it into the table in this test", pkg)
		}
		for file, list := range imports {
			for _, imp := range list {
				rel, _ := inModule(imp)
				below, ok := strings.CutPrefix(rel, under)
				if to := slices.Index(mongotestLayers, below); ok && (to < 0 || to >= layer) {
					t.Errorf("%s: package %s may not import %s: imports go down only, in the order of the table in this test", file, pkg, rel)
				}
			}
		}
	}
}

func TestImportsGoDown(t *testing.T) {
	seen := map[string]bool{}
	for pkg, imports := range packages(t) {
		seen[pkg] = true
		layer := slices.Index(layers, pkg)
		for file, list := range imports {
			for _, imp := range list {
				if imp == "C" || imp == "unsafe" && !strings.HasSuffix(file, "unsafe.go") {
					t.Errorf("%s imports %q: there is no cgo in this module, and unsafe only in files called unsafe.go", file, imp)
				}
				if layer >= 0 && (imp == "os/exec" || imp == "plugin") {
					t.Errorf("%s imports %q: the driver starts no process and loads no library", file, imp)
				}
				rel, ok := inModule(imp)
				if !ok {
					continue
				}
				switch {
				case layer >= 0:
					if to := slices.Index(layers, rel); to < 0 || to >= layer {
						t.Errorf("%s: package %s may not import %s: imports go down only, in the order of the table in this test", file, pkg, rel)
					}
				case !allowedAside(pkg, rel):
					t.Errorf("%s: package %s may not import %s", file, pkg, rel)
				}
			}
		}
		if layer < 0 && !isAside(pkg) {
			t.Errorf("package %s has no layer: put it into the table in this test", pkg)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d packages found: the test looks in the wrong place", len(seen))
	}
}

// javaScript is mongotest's interpreter: programs that do not import mongotest do not carry it.
const javaScript = "github.com/dop251/goja"

func TestOnlyMongotestRunsJavaScript(t *testing.T) {
	found := false
	for pkg, imports := range packages(t) {
		for file, list := range imports {
			for _, imp := range list {
				if imp != javaScript && !strings.HasPrefix(imp, javaScript+"/") {
					continue
				}
				if found = true; pkg != "mongotest/internal/js" {
					t.Errorf("%s imports %s, which only mongotest/internal/js may", file, imp)
				}
			}
		}
	}
	if !found {
		t.Errorf("nobody imports %s: take it out of this test", javaScript)
	}
}

// assembly lists the files of the public API that may import the layers below the executor, which
// are put together there. Everything else reaches them through internal/exec and internal/cursor.
var assembly = map[string][]string{
	"internal/conn":     {"client.go"},
	"internal/pool":     {"client.go"},
	"internal/topology": {"client.go"},
}

func TestRootImportsLayersWhereAClientIsAssembled(t *testing.T) {
	root := packages(t)["."]
	for file, list := range root {
		for _, bad := range unassembled(file, list) {
			t.Errorf("%s imports %s, which only %v may: go through internal/exec or internal/cursor", file, bad, assembly[bad])
		}
	}
	for layer, files := range assembly {
		for _, file := range files {
			if !slices.Contains(root[file], module+"/"+layer) {
				t.Errorf("%s no longer imports %s: take it out of the table in this test", file, layer)
			}
		}
	}
}

// unassembled returns the layers that a file of the public API imports and must not.
func unassembled(file string, imports []string) (bad []string) {
	for _, imp := range imports {
		rel, _ := inModule(imp)
		if files, ok := assembly[rel]; ok && !slices.Contains(files, file) {
			bad = append(bad, rel)
		}
	}
	return bad
}

// TestUnassembledImportsAreFound shows a violation that the test above must find.
func TestUnassembledImportsAreFound(t *testing.T) {
	imports := []string{"context", "allium/bson", "allium/internal/pool", "allium/internal/topology"}
	if got := unassembled("find.go", imports); !slices.Equal(got, []string{"internal/pool", "internal/topology"}) {
		t.Errorf("find.go: %v", got)
	}
	if got := unassembled("cursor.go", imports); !slices.Equal(got, []string{"internal/pool", "internal/topology"}) {
		t.Errorf("cursor.go: %v", got)
	}
	if got := unassembled("client.go", imports); got != nil {
		t.Errorf("client.go: %v", got)
	}
}

func inModule(imp string) (rel string, ok bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

func isAside(pkg string) bool {
	return slices.ContainsFunc(aside, func(a struct {
		pkg     string
		imports []string
	}) bool {
		return matches(a.pkg, pkg)
	})
}

func allowedAside(pkg, imp string) bool {
	for _, a := range aside {
		if matches(a.pkg, pkg) {
			return slices.ContainsFunc(a.imports, func(p string) bool { return p == "*" || matches(p, imp) })
		}
	}
	return false
}

func matches(pattern, pkg string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(pkg, pattern)
	}
	return pattern == pkg
}

// root returns the module's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}

// packages returns, per package of the module, the imports of each of its files but the tests.
func packages(t *testing.T) map[string]map[string][]string {
	t.Helper()
	pkgs := map[string]map[string][]string{}
	eachFile(t, func(rel string, f *ast.File) {
		if strings.HasSuffix(rel, "_test.go") {
			return
		}
		pkg := path.Dir(rel)
		if pkgs[pkg] == nil {
			pkgs[pkg] = map[string][]string{}
		}
		pkgs[pkg][rel] = importsOf(f)
	})
	return pkgs
}

// eachFile calls visit for every Go file of the module, of which the imports alone are parsed.
func eachFile(t *testing.T, visit func(rel string, f *ast.File)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || exists(filepath.Join(p, "go.mod"))) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(rel), f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importsOf(f *ast.File) []string {
	list := make([]string, 0, len(f.Imports))
	for _, s := range f.Imports {
		list = append(list, strings.Trim(s.Path.Value, "\"`"))
	}
	return list
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}
