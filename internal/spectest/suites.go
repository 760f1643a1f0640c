package spectest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Suite is a folder with JSON tests: "tests" or one below a folder of that name. Elsewhere there is
// data, such as the schemas of the unified format.
type Suite struct {
	Name   string   // below source, for example "crud/tests/unified"
	Files  []string // their paths
	Runner string   // the package, below this module, whose tests run them; "" if none is known to
	Reason string   // why none does, "" if there is no reason
}

// UnifiedRunner runs the tests in the unified format.
const UnifiedRunner = "internal/unified"

// runners are the packages that run what is not in the unified format, or not meant to pass, by the
// patterns that they hand to Files.
var runners = map[string]string{
	"unified-test-format/tests/invalid/*.json":                   UnifiedRunner,
	"unified-test-format/tests/valid-fail/*.json":                UnifiedRunner,
	"bson-corpus/tests/*.json":                                   "bson",
	"bson-binary-vector/tests/*.json":                            "bson",
	"connection-string/tests/*.json":                             "internal/uri",
	"uri-options/tests/*.json":                                   "internal/uri",
	"auth/tests/legacy/*.json":                                   "internal/uri",
	"read-write-concern/tests/connection-string/*.json":          "internal/uri",
	"read-write-concern/tests/document/*.json":                   "internal/drivertest/wire",
	"initial-dns-seedlist-discovery/tests/*/*.json":              "internal/dns",
	"connection-monitoring-and-pooling/tests/cmap-format/*.json": "internal/pool",
	"server-discovery-and-monitoring/tests/*/*.json":             "internal/topology",
	"server-selection/tests/server_selection/*/*/*.json":         "internal/topology",
	"server-selection/tests/rtt/*.json":                          "internal/topology",
	"server-selection/tests/in_window/*.json":                    "internal/topology",
	"max-staleness/tests/*/*.json":                               "internal/topology",
}

// unbuilt are the folders whose tests are not run, with the reason.
var unbuilt = map[string]string{
	"client-side-encryption/tests/legacy": "repeats client-side-encryption/tests/unified in an older format",
}

// Suites returns all folders with JSON tests below source of the specifications in a folder, by
// name. Which have the unified format their files tell, so that one that is new is run without
// anybody listing it.
func Suites(folder string) ([]Suite, error) {
	source := filepath.Join(folder, "source")
	byName := map[string]*Suite{}
	err := filepath.WalkDir(source, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(p) != ".json" {
			return err
		}
		dir, err := filepath.Rel(source, filepath.Dir(p))
		if err != nil {
			return err
		}
		name := filepath.ToSlash(dir)
		if !slices.Contains(strings.Split(name, "/"), "tests") {
			return nil
		}
		if byName[name] == nil {
			byName[name] = &Suite{Name: name}
		}
		byName[name].Files = append(byName[name].Files, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Suite
	for _, s := range byName {
		if s.Reason = unbuilt[s.Name]; s.Reason != "" {
			all = append(all, *s)
			continue
		}
		if s.Runner, err = s.runner(); err != nil {
			return nil, err
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Suite) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Passing reports whether the suite's tests are in the unified format and meant to pass.
func (s *Suite) Passing() bool { return s.Runner == UnifiedRunner && runners[s.Name+"/*.json"] == "" }

func (s *Suite) runner() (string, error) {
	if r := runners[s.Name+"/*.json"]; r != "" {
		return r, nil
	}
	for _, file := range s.Files {
		if is, err := isUnified(file); is || err != nil {
			return UnifiedRunner, err
		}
	}
	for pattern, r := range runners {
		if ok, _ := path.Match(pattern, s.Name+"/*.json"); ok {
			return r, nil
		}
	}
	return "", nil
}

// isUnified reports whether a file says which version of the unified format it has.
func isUnified(file string) (bool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(data, &top) != nil {
		return false, nil // its runner says so
	}
	return top["schemaVersion"] != nil, nil
}
