package archtest

import (
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostTwice is how many packages the tests of one may have compiled a second time.
const mostTwice = 3

// TestTestsCompileNothingTwice finds tests that make the go command compile much of the module once
// more. A test in a package changes the package; if another test beside it imports something that
// stands above, all between the two is compiled against the changed one, for these tests alone.
// Tests that need a deployment or a client stand in internal/drivertest, or those beside them stand
// outside of the package.
func TestTestsCompileNothingTwice(t *testing.T) {
	imports := map[string][]string{}
	for pkg, files := range packages(t) {
		for _, list := range files {
			imports[pkg] = append(imports[pkg], list...)
		}
	}
	inside, fromTests := map[string]bool{}, map[string][]string{}
	eachFile(t, func(rel string, f *ast.File) {
		if !strings.HasSuffix(rel, "_test.go") {
			return
		}
		pkg := path.Dir(rel)
		inside[pkg] = inside[pkg] || !strings.HasSuffix(f.Name.Name, "_test")
		fromTests[pkg] = append(fromTests[pkg], importsOf(f)...)
	})
	for pkg := range inside {
		if !inside[pkg] {
			continue
		}
		if again := between(imports, pkg, fromTests[pkg]); len(again) > mostTwice {
			t.Errorf("the tests of %s compile %d packages once more: %s", pkg, len(again), strings.Join(again, " "))
		}
	}
}

// between returns the packages that depend on pkg and that one of from depends on, or is.
func between(imports map[string][]string, pkg string, from []string) []string {
	depends := map[string]bool{pkg: true}
	var visit func(p string) bool
	visit = func(p string) bool {
		if known, ok := depends[p]; ok {
			return known
		}
		depends[p] = false
		for _, imp := range imports[p] {
			if rel, ok := inModule(imp); ok && visit(rel) {
				depends[p] = true
			}
		}
		return depends[p]
	}
	for _, imp := range from {
		if rel, ok := inModule(imp); ok {
			visit(rel)
		}
	}
	maps.DeleteFunc(depends, func(p string, known bool) bool { return !known || p == pkg })
	return slices.Sorted(maps.Keys(depends))
}

func TestBetween(t *testing.T) {
	imports := map[string][]string{
		"low": {"fmt"}, "middle": {module + "/low"}, "beside": {"fmt"}, "high": {module + "/middle", module + "/beside"},
	}
	if got := between(imports, "low", []string{module + "/high", "testing"}); !slices.Equal(got, []string{"high", "middle"}) {
		t.Error(got)
	}
	if got := between(imports, "high", []string{module + "/low"}); len(got) != 0 {
		t.Error(got)
	}
}

// TestModulesAskForOneVersion finds a go.mod that asks for the driver beside it by another version
// than the rest. With -trimpath the version is a part of what the go command looks up in its cache,
// although a directory stands for it, and a second one compiles the whole driver once more.
func TestModulesAskForOneVersion(t *testing.T) {
	top, asked := root(t), 0
	err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if strings.HasPrefix(e.Name(), ".") && rel != "." || filepath.ToSlash(rel) == "testdata/specifications" {
				return filepath.SkipDir
			}
			return nil
		}
		if e.Name() != "go.mod" {
			return nil
		}
		data, err := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
			if len(f) < 2 || !strings.HasPrefix(f[1], "v") {
				continue
			}
			if _, ours := inModule(f[0]); !ours {
				continue
			}
			if asked++; f[1] != "v0.0.0" {
				t.Errorf("%s asks for %s %s, want v0.0.0 as in the other modules", rel, f[0], f[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked < 10 {
		t.Errorf("%d modules ask for the driver: where are the others?", asked)
	}
}
