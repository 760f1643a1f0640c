package unified

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium/internal/spectest"
)

var update = flag.Bool("update", false, "write the list of files that fail")

// failing lists the files with tests that fail, one a line. It only gets shorter: a file on it that passes fails the test.
const failing = "testdata/failing.txt"

// TestSpecifications runs all suites.
func TestSpecifications(t *testing.T) {
	data, err := os.ReadFile(failing)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(data))
	var mu sync.Mutex
	var failed []string
	t.Run("files", func(t *testing.T) {
		for _, suite := range Suites {
			for _, file := range spectest.Files(t, suite+"/*.json") {
				name := path.Join(suite, filepath.Base(file))
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					listed := slices.Contains(known, name)
					ran, bad := 0, 0
					RunFile(t, nil, suite, file, func(o Outcome) {
						if o.Skip == "" {
							ran++
						}
						if o.Err != nil {
							bad++
							if !listed && !*update {
								t.Errorf("%v: %s: %v", o.Target, o.Test, o.Err)
							}
						}
					})
					if ran == 0 {
						t.Skip("no deployment that its tests need")
					}
					if bad > 0 {
						mu.Lock()
						failed = append(failed, name)
						mu.Unlock()
					} else if listed && !*update {
						t.Errorf("all tests pass: take the file off %s, or run with -update", failing)
					}
				})
			}
		}
	})
	if *update {
		slices.Sort(failed)
		if err := os.WriteFile(failing, []byte(strings.Join(append(failed, ""), "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
