package unified

import (
	"path"
	"path/filepath"
	"testing"

	"allium/internal/spectest"
)

// TestSpecifications runs all suites that are meant to pass.
func TestSpecifications(t *testing.T) {
	suites, err := spectest.Suites(spectest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, suite := range suites {
		if !suite.Passing() {
			continue
		}
		ran++
		for _, file := range suite.Files {
			t.Run(path.Join(suite.Name, filepath.Base(file)), func(t *testing.T) {
				t.Parallel()
				runFile(t, suite.Name, file)
			})
		}
	}
	if ran == 0 {
		t.Error("there are no suites")
	}
}

// runFile runs the tests of a file that is meant to pass.
func runFile(t *testing.T, suite, file string) {
	ran, why := 0, "the file has no tests"
	RunFile(t, Where{}, suite, file, func(o Outcome) {
		if o.Skip == "" {
			ran++
		} else {
			why = o.Skip
		}
		if o.Err != nil {
			t.Errorf("%v: %s: %v", o.Target, o.Test, o.Err)
		}
	})
	if ran == 0 {
		t.Skip(why)
	}
}
