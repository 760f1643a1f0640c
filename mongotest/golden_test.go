package mongotest_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"allium/mongotest"
	"allium/mongotest/internal/golden"
)

var updateKnown = flag.Bool("golden.known", false, "rewrite the lists of known failures of the golden files that run")

// goldenTopologies are the deployments that the recordings were made on.
var goldenTopologies = map[string]func() []mongotest.Option{
	"standalone": func() []mongotest.Option { return []mongotest.Option{mongotest.Standalone()} },
	"standalone-auth": func() []mongotest.Option {
		return []mongotest.Option{mongotest.Standalone(), mongotest.Auth("root", "root")}
	},
	"replicaset": func() []mongotest.Option { return []mongotest.Option{mongotest.ReplicaSet(3)} },
	"sharded":    func() []mongotest.Option { return []mongotest.Option{mongotest.Sharded(2, 2)} },
}

// TestGolden replays what a real server answered. testdata/golden/known lists the cases that differ
// and why, one file per golden file; a case that is listed and passes fails the test, so that the
// lists only get shorter. `go test ./mongotest -run Golden -golden.known` writes the lists anew,
// `-v` shows every known difference.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*/*.json*")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings")
	}
	for _, file := range files {
		topology := filepath.Base(filepath.Dir(file))
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		name = topology + "/" + name
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayGolden(t, topology, file, filepath.Join("testdata/golden/known", strings.ReplaceAll(name, "/", "-")+".txt"))
		})
	}
}

// replayGolden replays a file on the clock of a bubble: the recorded server was idle, and time
// passes here only while all wait for it. No limit that a recording knows can be up because the
// machine is busy.
func replayGolden(t *testing.T, topology, file, knownFile string) {
	cases, err := golden.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	known, err := readKnown(knownFile)
	if err != nil {
		t.Fatal(err)
	}
	diffs := make([]string, len(cases))
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, append(goldenTopologies[topology](), mongotest.Version("4.4.0"), mongotest.NoScripting(), mongotest.InMemory())...)
		r := &golden.Runner{Topology: topology, Nodes: d.Hosts(), Dial: d.DialContext}
		for i, c := range cases {
			if replies, err := r.Run(c); err != nil {
				diffs[i] = err.Error()
			} else {
				diffs[i] = golden.Compare(c, replies)
			}
		}
	})
	failures := map[string]string{}
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			reason, listed := known[c.Name]
			switch diff := diffs[i]; {
			case diff == "" && listed && !*updateKnown:
				t.Errorf("passes, but is listed in %s: remove the line", knownFile)
			case diff == "":
			case listed || *updateKnown:
				t.Logf("known: %s: %s", reason, diff)
				if reason == "" {
					reason = "not built yet"
				}
				failures[c.Name] = reason
			default:
				t.Error(diff)
			}
		})
	}
	if *updateKnown {
		if err := writeKnown(knownFile, cases, failures); err != nil {
			t.Fatal(err)
		}
	}
}

// readKnown reads a list of known failures: per line the case's name, a tab, the reason.
func readKnown(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if s.Text() == "" {
			continue
		}
		name, reason, ok := strings.Cut(s.Text(), "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("%s: %q has no reason", path, name)
		}
		known[name] = reason
	}
	return known, nil
}

func writeKnown(path string, cases []golden.Case, failures map[string]string) error {
	if len(failures) == 0 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	var b strings.Builder
	for _, c := range cases {
		if reason, ok := failures[c.Name]; ok {
			fmt.Fprintf(&b, "%s\t%s\n", c.Name, reason)
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
