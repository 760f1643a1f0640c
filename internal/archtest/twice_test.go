package archtest

import (
	"go/ast"
	"maps"
	"path"
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
