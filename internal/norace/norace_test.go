package norace

import (
	"os"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"allium/internal/testuse"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, all := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(root, all); err != nil {
		t.Fatal(err)
	}
	return root
}

// The project's own uses are where command norace finds them.
func TestProject(t *testing.T) {
	found, err := testuse.Of("../..", "norace")
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
