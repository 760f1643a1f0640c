package unified

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"allium/internal/spectest"
)

// Tests wait more than they work: for the checks of servers that failed, which are at least half a second apart. So they run
// side by side, each against a deployment of its own, which the next one takes over.
var deployments = struct {
	sync.Mutex
	idle map[string][]*Deployment
	all  []*Deployment
}{idle: map[string][]*Deployment{}}

// borrow returns a deployment that nobody uses; giveBack makes it available again.
func borrow(t *testing.T, topology, version string) (d *Deployment, giveBack func()) {
	t.Helper()
	key := topology + " " + version
	deployments.Lock()
	defer deployments.Unlock()
	if idle := deployments.idle[key]; len(idle) > 0 {
		d = idle[len(idle)-1]
		deployments.idle[key] = idle[:len(idle)-1]
	} else {
		var err error
		if d, err = Start(topology, version); err != nil {
			t.Fatal(err)
		}
		deployments.all = append(deployments.all, d)
	}
	return d, func() {
		deployments.Lock()
		defer deployments.Unlock()
		deployments.idle[key] = append(deployments.idle[key], d)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, d := range deployments.all {
		d.Stop()
	}
	os.Exit(code)
}

const newest = "8.2"

func TestSuites(t *testing.T) {
	for _, suite := range []string{
		"crud/tests/unified", "retryable-reads/tests/unified", "retryable-writes/tests/unified", "transactions/tests/unified",
		"transactions-convenient-api/tests/unified", "sessions/tests", "collection-management/tests", "index-management/tests",
		"read-write-concern/tests/operation", "run-command/tests/unified", "versioned-api/tests", "causal-consistency/tests",
		"command-logging-and-monitoring/tests/monitoring", "client-backpressure/tests", "load-balancers/tests",
		"unified-test-format/tests/valid-pass",
	} {
		for _, path := range spectest.Files(t, suite+"/*.json") {
			f, err := Load(path)
			name := strings.ReplaceAll(suite, "/tests", "") + "/" + strings.TrimSuffix(filepath.Base(path), ".json")
			if err != nil {
				t.Run(name, func(t *testing.T) { t.Fatal(err) })
				continue
			}
			for _, topology := range []string{"single", "replicaset", "sharded", "load-balanced"} {
				for i := range f.Tests {
					test := &f.Tests[i]
					t.Run(name+"/"+topology+"/"+test.Description, func(t *testing.T) {
						t.Parallel()
						d, giveBack := borrow(t, topology, newest)
						defer giveBack()
						skip, err := Run(d, f, test)
						if skip != "" {
							t.Skip(skip)
						}
						if err != nil {
							t.Fatal(err)
						}
					})
				}
			}
		}
	}
}
