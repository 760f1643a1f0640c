package interop

import (
	"os/exec"
	"strings"
	"testing"

	"allium/mongotest"
)

// TestPyMongo runs a script with pymongo, which is no relative of the Go drivers, against mongotest. On Debian the package
// python3-pymongo provides it.
func TestPyMongo(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import pymongo").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("no Python with pymongo is installed: this foreign client is not tested")
	}
	for name, opt := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replicaset": mongotest.ReplicaSet(1)} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), python, "scripts/crud.py", mongotest.Start(t, opt).URI()).CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "done\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{"insert_many 501", "find [501, 500, 499, 498]", "batches 501", "update_one 1 37", "update_many 101", "upsert new", "duplicate 11000", "count 403"} {
				if !strings.Contains(string(out), want+"\n") {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}
