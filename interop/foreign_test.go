package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"allium/mongotest"
)

// Clients that are no relatives of the Go drivers run a script each against mongotest.

// runScript runs a client's script against each kind of deployment and looks for lines in what it
// prints. Standalone servers have no sessions: the lines of cluster are not expected there.
// balanced tells whether the client knows load balancers.
func runScript(t *testing.T, dir string, balanced bool, command, lines, cluster []string) {
	kinds := append(replicated[:len(replicated):len(replicated)], struct {
		name string
		kind mongotest.Option
	}{"standalone", mongotest.Standalone()})
	for _, r := range kinds {
		t.Run(r.name, func(t *testing.T) {
			if r.name == "loadbalanced" && !balanced {
				t.Skip("this version of the client does not know load balancers")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := append(command[1:len(command):len(command)], mongotest.Start(t, r.kind).URI())
			cmd := exec.CommandContext(ctx, command[0], args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "\ndone\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			want := lines
			if r.name != "standalone" {
				want = append(want[:len(want):len(want)], cluster...)
			}
			for _, line := range want {
				if !strings.Contains(string(out), "\n"+line+"\n") {
					t.Errorf("no line %q in\n%s", line, out)
				}
			}
		})
	}
}

// pymongo finds a Python with pymongo; on Debian the package python3-pymongo provides it, and
// elsewhere pip, in $ALLIUM_PYTHON's environment or the usual one.
func pymongo(t *testing.T) string {
	t.Helper()
	for _, p := range []string{os.Getenv("ALLIUM_PYTHON"), "python3", "/usr/bin/python3"} {
		if p != "" && exec.Command(p, "-c", "import pymongo").Run() == nil {
			return p
		}
	}
	t.Skip("no Python with pymongo is installed: this foreign client is not tested")
	return ""
}

func TestPyMongo(t *testing.T) {
	python := pymongo(t)
	balanced := exec.Command(python, "-c", "import sys, pymongo; sys.exit(pymongo.version_tuple < (3, 12))").Run() == nil
	runScript(t, "scripts", balanced, []string{python, "pymongo_steps.py"},
		[]string{"insert_many 501", "find [501, 500, 499, 498]", "batches 501", "update_one 1 37", "update_many 101", "upsert new", "duplicate 11000", "count 403"},
		[]string{"committed [7, 13]", "inside 0 outside 2", "aborted 2", "event update a {'n': 7}", "event update b {'n': 13}", "event delete a {}"})
}

// npm installs the packages that scripts/package-lock.json names beside the programs that use them,
// and returns the folder. It needs node and npm, and the registry or npm's cache.
func npm(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s is installed: the npm driver is not tested", tool)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "npm.mjs", "topics.mjs", "mongoose.mjs", "service.mjs"} {
		text, err := os.ReadFile(filepath.Join("scripts", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		for _, code := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT", "ENOTCACHED"} {
			if strings.Contains(string(out), code) || ctx.Err() != nil {
				t.Skipf("npm's registry cannot be reached: the npm driver is not tested\n%s", out)
			}
		}
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

func TestNPM(t *testing.T) {
	dir := npm(t)
	runScript(t, dir, true, []string{"node", "npm.mjs"},
		[]string{"insertOne 1", "insertMany 500", `findOne {"_id":1,"name":"Ada","age":36}`, "find [501,500,499,498]", "batches 501", "updateOne 1 37", "upsert new",
			`findOneAndUpdate {"_id":1,"name":"Ada","age":37,"seen":true}`, "duplicate 11000", "bulkWrite 1 101 98", `aggregate [{"_id":null,"sum":45551}]`,
			`indexes ["_id_","name_1"]`, "count 405"},
		[]string{"committed [7,13]", "inside 0 outside 2", "aborted 2", `event update a {"n":7}`, `event update b {"n":13}`, "event delete a {}"})
}
