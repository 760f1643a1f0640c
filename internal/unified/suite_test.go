package unified

import (
	"path"
	"path/filepath"
	"testing"

	"allium/internal/spectest"
)

// TestSpecifications runs all suites.
func TestSpecifications(t *testing.T) {
	for _, suite := range Suites {
		for _, file := range spectest.Files(t, suite+"/*.json") {
			t.Run(path.Join(suite, filepath.Base(file)), func(t *testing.T) {
				t.Parallel()
				ran, why := 0, "the file has no tests"
				RunFile(t, nil, suite, file, func(o Outcome) {
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
			})
		}
	}
}
