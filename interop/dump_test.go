package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/internal/anystate"
	"allium/mongotest"
)

// build builds a command of one of the modules that this one knows.
func build(t *testing.T, dir, name, pkg string) string {
	t.Helper()
	tool := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		tool += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", tool, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return tool
}

func described(t *testing.T, uri string) map[string]string {
	t.Helper()
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	all, err := anystate.Describe(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var wildcardProjection = regexp.MustCompile(`wildcardProjection: \{[^{}]*\}`)

// unordered puts indexes, and the fields of a wildcardProjection, into one order: mongorestore
// makes them in any, since it reads the options of an index into a map. Of the other options that
// are documents, the server has an order of its own.
func unordered(all map[string]string) map[string]string {
	for what, text := range all {
		if strings.HasPrefix(what, "listIndexes") {
			text = wildcardProjection.ReplaceAllStringFunc(text, func(option string) string {
				name, fields, _ := strings.Cut(strings.TrimSuffix(option, "}"), "{")
				list := strings.Split(fields, ",")
				slices.Sort(list)
				return name + "{" + strings.Join(list, ",") + "}"
			})
			lines := strings.Split(text, "\n")
			slices.Sort(lines)
			all[what] = strings.Join(lines, "\n")
		}
	}
	return all
}

// TestDumps takes random states from one deployment to another: mongodump writes what `allium
// serve --data` reads, and mongorestore reads what that writes; in folders and archives, compressed
// or not.
func TestDumps(t *testing.T) {
	dir := t.TempDir()
	mongodump := build(t, dir, "mongodump", "github.com/mongodb/mongo-tools/mongodump/main")
	mongorestore := build(t, dir, "mongorestore", "github.com/mongodb/mongo-tools/mongorestore/main")
	tool := build(t, dir, "allium", "allium/cmd/allium")
	run := func(t *testing.T, tool string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(tool), args, err, out)
		}
	}
	for i, version := range []string{"8.0", "5.0", "7.0", "6.0", "4.4", "8.0", "7.0", "8.0"} {
		archive, zip := i&1 != 0, i&2 != 0
		t.Run(fmt.Sprintf("%d on %s, archive %v, gzip %v", i, version, archive, zip), func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Version(version))
			client, err := allium.Open(d.URI())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close(t.Context())
			opts := anystate.Options{Major: int(version[0] - '0'), Accounts: true, NoEmptyTimestamps: true}
			if err := anystate.Make(t.Context(), client, rand.New(rand.NewPCG(uint64(i), 3)), opts); err != nil {
				t.Fatal(err)
			}
			want := described(t, d.URI())
			same := func(what, uri string) {
				t.Helper()
				for _, line := range anystate.Differences(unordered(described(t, uri)), unordered(want)) {
					t.Errorf("%s: %s", what, line)
				}
			}
			place := filepath.Join(t.TempDir(), "kept")
			form := "--out=" + place
			if archive {
				form = "--archive=" + place
			}
			args := []string{form}
			if zip {
				args = append(args, "--gzip")
			}
			run(t, mongodump, append(args, "--uri", d.URI())...)

			serve := exec.Command(tool, "serve", "--version", version, "--port", "0", "--json", "--data", place)
			var stderr bytes.Buffer
			serve.Stderr = &stderr
			out, err := serve.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := serve.Start(); err != nil {
				t.Fatal(err)
			}
			defer serve.Process.Kill()
			line, err := bufio.NewReader(out).ReadBytes('\n')
			if err != nil {
				serve.Wait()
				t.Fatalf("allium serve: %v\n%s", err, &stderr)
			}
			var ready struct{ URI string }
			if err := json.Unmarshal(line, &ready); err != nil {
				t.Fatal(err)
			}
			same("what mongodump wrote", ready.URI)
			if err := interrupt(serve.Process); err != nil {
				t.Fatal(err)
			}
			if err := serve.Wait(); err != nil {
				t.Fatalf("allium serve: %v\n%s", err, &stderr)
			}

			restored := mongotest.Start(t, mongotest.Version(version))
			args = []string{"--bypassDocumentValidation", "--dir=" + place}
			if archive {
				args[1] = "--archive=" + place
			}
			if zip {
				args = append(args, "--gzip")
			}
			run(t, mongorestore, append(args, "--uri", restored.URI())...)
			same("what allium serve wrote", restored.URI())

			// The verbs, each against the other's tool.
			again := filepath.Join(t.TempDir(), "dump")
			verb := []string{"dump", "-out", again}
			if archive {
				verb[1] = "-archive"
			}
			if zip {
				verb = append(verb, "-gzip")
			}
			run(t, tool, append(verb, d.URI())...)
			restored = mongotest.Start(t, mongotest.Version(version))
			args[1] = "--dir=" + again
			if archive {
				args[1] = "--archive=" + again
			}
			run(t, mongorestore, append(args, "--uri", restored.URI())...)
			same("what allium dump wrote", restored.URI())
			dumped := filepath.Join(t.TempDir(), "dump")
			form = "--out=" + dumped
			if archive {
				form = "--archive=" + dumped
			}
			if args = []string{form}; zip {
				args = append(args, "--gzip")
			}
			run(t, mongodump, append(args, "--uri", d.URI())...)
			restored = mongotest.Start(t, mongotest.Version(version))
			run(t, tool, "restore", restored.URI(), dumped)
			same("what allium restore made", restored.URI())
		})
	}
}
