package unified

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"allium/bson"
)

// The runner's own tests, in the format itself: what the specifications' suites do not exercise of
// it. All tests of the folder pass pass, all of fail fail, and invalid.json holds files that are
// refused.

func TestOwnFilesPass(t *testing.T) {
	for _, file := range ownFiles(t, "pass") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			runFile(t, Where{}, "own", file)
		})
	}
}

func TestOwnFilesFail(t *testing.T) {
	for _, file := range ownFiles(t, "fail") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			RunFile(t, Where{}, "own", file, func(o Outcome) {
				if o.Err == nil {
					t.Errorf("%v: %s: passes (skip %q)", o.Target, o.Test, o.Skip)
				} else {
					t.Logf("%v: %s: %v", o.Target, o.Test, o.Err)
				}
			})
		})
	}
}

func ownFiles(t *testing.T, folder string) []string {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	return files
}

// Each of the files lacks one thing, or has one too many: its name says what.
func TestOwnInvalidFiles(t *testing.T) {
	text, err := os.ReadFile("testdata/invalid.json")
	if err != nil {
		t.Fatal(err)
	}
	var all bson.Raw
	if err := bson.UnmarshalExtJSON(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, v := range all.All() {
		doc, _ := v.Document()
		_, err := parse(doc)
		if valid := name == "valid"; valid != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a test leaves in its entities can be looked at when it ends.
func TestEntitiesAtTheEnd(t *testing.T) {
	f := file(t, `{"description": "d", "schemaVersion": "1.0", "createEntities": [{"client": {"id": "client"}}, {"database": {"id": "db", "client": "client", "databaseName": "x"}}],
		"tests": [{"description": "t", "operations": [
			{"name": "runCommand", "object": "db", "arguments": {"commandName": "ping", "command": {"ping": 1}}, "saveResultAsEntity": "pong"}]}]}`)
	synctest.Test(t, func(t *testing.T) {
		d, err := Start(Target{Topology: "single", Version: "8.2.1"}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Stop()
		var pong, nobody any
		var missing error
		d.ended = func(get func(string) (any, error)) {
			pong, _ = get("pong")
			nobody, missing = get("nobody")
		}
		if skip, err := Run(d, f, &f.Tests[0]); skip != "" || err != nil {
			t.Fatalf("skip %q, error %v", skip, err)
		}
		if v, ok := pong.(bson.RawValue); !ok || v.Type != bson.TypeEmbeddedDocument || nobody != nil || missing == nil {
			t.Errorf("got %v; %v, %v", pong, nobody, missing)
		}
	})
}
