package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// empty are names under which a reader looks for nothing, because anything could be there.
var empty = []string{
	"common", "data", "extra", "general", "generic", "helper", "helpers", "misc", "miscellany", "more",
	"other", "special", "stuff", "text", "times", "tools", "util", "utils",
}

// TestFileNames wants the name of a file to say what it has.
func TestFileNames(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(root(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		checked++
		if saysNothing(path) {
			t.Errorf("%s: the name does not say what the file has", path)
		}
		return nil
	})
	if err != nil || checked < 500 {
		t.Errorf("%d files checked, %v", checked, err)
	}
}

func saysNothing(path string) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".go"), "_test")
	return slices.Contains(empty, strings.TrimPrefix(name, "cmd_"))
}

func TestFileNamesFinds(t *testing.T) {
	for path, want := range map[string]bool{
		"bson/text.go": true, "a/util_test.go": true, "a/cmd_misc.go": true, "a/bsontext.go": false, "a/metadata.go": false, "a/textindex_test.go": false,
	} {
		if saysNothing(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// TestRootFitsOnAScreen: what a newcomer sees first is the API, on one screen. Tests that need no
// name that is not exported belong below internal/drivertest.
func TestRootFitsOnAScreen(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "testdata" { // where the specifications may be
			names = append(names, e.Name())
		}
	}
	if len(names) > 60 {
		t.Errorf("the root has %d names, want at most 60: %v", len(names), names)
	}
}

// TestExamplesAreShort wants the programs that README offers to begin from to be read in one go.
func TestExamplesAreShort(t *testing.T) {
	for _, name := range []string{"rest", "worker", "importer"} {
		files, err := filepath.Glob(filepath.Join(root(t), "examples", name, "*.go"))
		if err != nil || len(files) < 3 {
			t.Fatalf("examples/%s: %q, %v", name, files, err)
		}
		lines := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
		}
		if lines >= 300 {
			t.Errorf("examples/%s has %d lines, want less than 300", name, lines)
		}
	}
}
