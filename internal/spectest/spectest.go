// Package spectest finds the JSON tests of the MongoDB driver specifications.
//
// They are not part of this repository. A folder with the public repository mongodb/specifications
// is looked for in $ALLIUM_SPECIFICATIONS, in testdata/specifications at the root of this
// repository, and beside the repository in ../shared/specifications. Without one the tests are
// skipped with one loud line, and with $CI set they fail.
package spectest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Find returns the folder that holds the specifications (with "source" in it). If there is none, it
// skips or fails the test.
func Find(t testing.TB) string {
	t.Helper()
	if dir := Folder(); dir != "" {
		return dir
	}
	const message = "NO SPECIFICATIONS: the JSON tests of the driver specifications DO NOT RUN." +
		" Set ALLIUM_SPECIFICATIONS or clone github.com/mongodb/specifications into testdata/specifications."
	if os.Getenv("CI") != "" {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}

// Files returns the files that match a pattern below source, for example
// "bson-corpus/tests/*.json", sorted by name. That there are none fails the test: a suite must not
// vanish unseen.
func Files(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Find(t), "source", filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no specification tests match %s", pattern)
	}
	return files
}

// Read returns the contents of a file that Files named.
func Read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Decode reads a JSON file that Files named. A field that the suite's format does not have, or that
// its runner does not know, fails the test: what a file asks for must not be passed over.
func Decode(t testing.TB, file string, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(Read(t, file)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
}

// Given is an expectation of a file. It may be null, which is not the same as not to be there.
type Given[T any] struct {
	There bool
	Value *T // nil: null
}

// UnmarshalJSON notes that the expectation is there.
func (g *Given[T]) UnmarshalJSON(text []byte) error {
	g.There = true
	return json.Unmarshal(text, &g.Value)
}

// Folder returns the folder that holds the specifications, "" if there is none.
var Folder = sync.OnceValue(func() string {
	if dir := os.Getenv("ALLIUM_SPECIFICATIONS"); dir != "" {
		return dir // if it is wrong, Files says so
	}
	dir, err := os.Getwd() // a test runs in its package's folder
	if err != nil {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		for _, found := range []string{
			filepath.Join(dir, "testdata", "specifications"),
			filepath.Join(dir, "..", "shared", "specifications"),
		} {
			if _, err := os.Stat(filepath.Join(found, "source")); err == nil {
				return found
			}
		}
	}
	return ""
})
