package norace

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const head = "package x\n\nimport (\n\t\"testing\"\n\n\t\"allium/internal/norace\"\n)\n\n"

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTestsFinds(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod":             "module x\n",
		"a_test.go":          head + "func TestB(t *testing.T) { norace.Skip(t, \"dear\") }\n\nfunc TestA(t *testing.T) { _ = func() bool { return norace.Detecting } }\n\nfunc TestC(t *testing.T) {}\n",
		"in/b_test.go":       head + "func FuzzB(f *testing.F) { norace.Skip(f, \"dear\") }\n\nfunc BenchmarkB(b *testing.B) { norace.Skip(b, \"dear\") }\n",
		"in/c_test.go":       "package x\n\ntype n struct{ x int }\n\nfunc TestD(t *T) { var norace n; norace.x++ }\n",
		"module/go.mod":      "module y\n",
		"module/a_test.go":   head + "func TestElsewhere(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"testdata/a_test.go": "no Go\n",
	})
	found, err := Tests(root)
	if want := map[string][]string{".": {"TestA", "TestB"}, "in": {"FuzzB"}}; err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
}

func TestTestsRefusesOtherUses(t *testing.T) {
	for name, text := range map[string]string{
		"a function":   "func dear(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"a method":     "type x int\n\nfunc (x) TestX(t *testing.T) { norace.Skip(t, \"dear\") }\n",
		"a variable":   "var on = norace.Detecting\n",
		"an example":   "func Example() { _ = norace.Detecting }\n",
		"the TestMain": "var f = norace.Skip\n\nfunc TestMain(m *testing.M) {}\n",
	} {
		root := tree(t, map[string]string{"a_test.go": head + text})
		if found, err := Tests(root); err == nil || !strings.Contains(err.Error(), "outside of a test") {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// The project's own uses are where command norace finds them.
func TestProject(t *testing.T) {
	found, err := Tests("../..")
	if err != nil || len(found["internal/drivertest/operations"]) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A package is for the race detector if a goroutine is started anywhere below its tests.
func TestPackages(t *testing.T) {
	const empty = "package x\n"
	root := tree(t, map[string]string{
		"go.mod":                   "module m\n",
		"quiet/a.go":               empty,
		"quiet/a_test.go":          empty,
		"untested/a.go":            "package x\n\nfunc F() { go F() }\n",
		"above/a.go":               "package x\n\nimport _ \"m/untested\"\n",
		"above/a_test.go":          empty,
		"far/a.go":                 "package x\n\nimport _ \"m/above\"\n",
		"far/a_test.go":            empty,
		"bytest/a_test.go":         "package x\n\nimport _ \"m/far\"\n",
		"itself/a_test.go":         "package x\n\nfunc F() { func() { go F() }() }\n",
		"group/a_test.go":          "package x\n\nfunc F() { w.Go(F) }\n",
		"parallel/a_test.go":       "package x\n\nfunc F(t T) { t.Parallel() }\n",
		"server/a_test.go":         "package x\n\nimport _ \"net/http\"\n",
		"othertests/a_test.go":     "package x\n\nimport _ \"m/itself\"\n", // whose tests are not there
		"othermodule/a_test.go":    "package x\n\nimport _ \"mm/untested\"\n",
		"module/go.mod":            "module m/module\n",
		"module/a_test.go":         "package x\n\nfunc F() { go F() }\n",
		"quiet/testdata/a_test.go": "no Go\n",
	})
	concurrent, sequential, err := Packages(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"above", "bytest", "far", "group", "itself", "parallel", "server"}; !reflect.DeepEqual(concurrent, want) {
		t.Errorf("concurrent are %v, want %v", concurrent, want)
	}
	if want := []string{"othermodule", "othertests", "quiet"}; !reflect.DeepEqual(sequential, want) {
		t.Errorf("sequential are %v, want %v", sequential, want)
	}
	if _, _, err := Packages(t.TempDir()); err == nil {
		t.Error("a folder without a module has packages")
	}
}

// What a reader expects of the project's own packages.
func TestProjectPackages(t *testing.T) {
	concurrent, sequential, err := Packages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "gridfs", "internal/pool", "internal/topology", "internal/session", "mongotest", "mongotest/internal/store", "internal/unified"} {
		if !slices.Contains(concurrent, dir) {
			t.Errorf("%s is not for the race detector", dir)
		}
	}
	for _, dir := range []string{"mongotest/internal/query", "mongotest/internal/pcre"} {
		if !slices.Contains(sequential, dir) {
			t.Errorf("%s is for the race detector", dir)
		}
	}
}
