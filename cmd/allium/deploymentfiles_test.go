package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDeploymentFiles runs every command line of the files in examples/service through the flags of
// its verb, and the compose file's folders through a start.
func TestDeploymentFiles(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "service")
	lines := map[string][][]string{}
	array := regexp.MustCompile(`(?:CMD|ENTRYPOINT|command:) (\[.*\])`)
	shell := regexp.MustCompile(`(?:ExecStart=\S*/allium|^\s*(?:until )?allium|ALLIUM_SERVE:) ([^&;]*)`)
	for _, name := range []string{"Dockerfile", "compose.yaml", "workflow.yaml", "allium.service"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if m := array.FindStringSubmatch(line); m != nil {
				var args []string
				if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				}
				if args[0] == "/allium" {
					args = args[1:]
				}
				if len(args) > 0 {
					lines[name] = append(lines[name], args)
				}
			} else if m := shell.FindStringSubmatch(line); m != nil {
				args := strings.Fields(m[1])
				if strings.Contains(line, "ALLIUM_SERVE") {
					args = append([]string{"serve"}, args...)
				}
				lines[name] = append(lines[name], args)
			}
		}
	}
	for name, want := range map[string]int{"Dockerfile": 2, "compose.yaml": 1, "workflow.yaml": 3, "allium.service": 1} {
		if len(lines[name]) != want {
			t.Errorf("%s has the command lines %q, want %d", name, lines[name], want)
		}
		for _, args := range lines[name] {
			if args[0] != "serve" {
				if v, ok := find(args[0]); !ok {
					t.Errorf("%s: there is no verb %s", name, v.name)
				}
				continue
			}
			f, status, done := parseServe(args[1:], io.Discard, t.Output())
			if done || status != 0 {
				t.Errorf("%s: %q", name, args)
				continue
			}
			// Folders of a container are not here; who is let in is decided by what the files set.
			f.getenv = func(name string) string {
				return map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD": "x"}[name]
			}
			f.readyFile = ""
			if _, err := f.options(io.Discard); err != nil {
				t.Errorf("%s: %q: %v", name, args, err)
			}
		}
	}

	env := map[string]string{"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD_FILE": filepath.Join(dir, "root-password.txt"), "MONGO_INITDB_DATABASE": "shop"}
	line, stderr := service(t, env, "--bind", "0.0.0.0", "--replset", "rs0", "--advertise", "localhost", "--data", filepath.Join(t.TempDir(), "db.archive.gz"),
		"--seed", filepath.Join(dir, "seed"), "--init-scripts", filepath.Join(dir, "initdb"))
	web := "mongodb://web:apple@" + line.Hosts[0] + "/shop?replicaSet=rs0"
	for coll, want := range map[string]int64{"users": 2, "products": 2, "orders": 0} {
		if n := docsOf(t, web, "shop", coll); n != want {
			t.Errorf("%s has %d documents, want %d: %s", coll, n, want, stderr)
		}
	}
}

// TestServeVariable takes flags from the environment, before those of the command line.
func TestServeVariable(t *testing.T) {
	t.Setenv(serveVariable, "--replset rs9:2 --port 1")
	f, _, done := parseServe([]string{"--port", "0"}, io.Discard, io.Discard)
	if done || f.replset != "rs9:2" || f.port != 0 || !f.given["replset"] {
		t.Errorf("%+v", f)
	}
	for _, bad := range []string{"--nosuch", "serve"} {
		t.Setenv(serveVariable, bad)
		var errs output
		if _, status, _ := parseServe(nil, io.Discard, &errs); status != misused || !strings.Contains(errs.String(), "ALLIUM_SERVE: ") || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: %d, %s", bad, status, &errs)
		}
	}
}
