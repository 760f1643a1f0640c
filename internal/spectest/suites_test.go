package spectest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nothing in the specifications may be passed over: every folder of tests has a package that runs
// it, or a reason.
func TestEverySuiteHasARunner(t *testing.T) {
	suites, err := Suites(Find(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if s.Runner == "" && s.Reason == "" {
			t.Errorf("%s: no package is known to run its %d files", s.Name, len(s.Files))
		}
	}
}

// A package that is said to run a suite asks for its files.
func TestRunnersRun(t *testing.T) {
	for pattern, pkg := range runners {
		files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no tests (%v)", pkg, err)
		}
		asks := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), `"`+pattern+`"`)
		})
		if !asks {
			t.Errorf("%s: its tests do not name %s", pkg, pattern)
		}
	}
}

// A folder that is new is found, and what has no runner is seen.
func TestSuites(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"new/tests/unified/a.json":                             `{"description": "a", "schemaVersion": "1.0", "tests": []}`,
		"new/tests/unified/broken.json":                        `{"description": "a"`,
		"new/tests/other/a.json":                               `{"tests": []}`,
		"new/tests/README.md":                                  ``,
		"unified-test-format/schema-1.0.json":                  `{}`,
		"client-side-encryption/etc/data/keys.json":            `{}`,
		"client-side-encryption/tests/legacy/a.json":           `{"tests": []}`,
		"client-side-encryption/tests/unified/a.json":          `{"schemaVersion": "1.8"}`,
		"connection-string/tests/a.json":                       `{"tests": []}`,
		"connection-string/tests/deeper/a.json":                `{"tests": []}`,
		"server-discovery-and-monitoring/tests/new/a.json":     `{"phases": []}`,
		"server-discovery-and-monitoring/tests/unified/a.json": `{"schemaVersion": "1.0"}`,
		"unified-test-format/tests/invalid/a.json":             `{"schemaVersion": "1.0"}`,
	} {
		file := filepath.Join(dir, "source", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	suites, err := Suites(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range suites {
		got[s.Name] = s.Runner
		if s.Passing() {
			got[s.Name] = "passing"
		}
		if s.Reason != "" {
			got[s.Name] = "has a reason"
		}
	}
	want := map[string]string{
		"new/tests/unified": "passing", "new/tests/other": "", "connection-string/tests": "internal/uri", "connection-string/tests/deeper": "",
		"server-discovery-and-monitoring/tests/new": "internal/topology", "server-discovery-and-monitoring/tests/unified": "passing",
		"unified-test-format/tests/invalid": "internal/unified", "client-side-encryption/tests/legacy": "has a reason",
		"client-side-encryption/tests/unified": "passing",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
