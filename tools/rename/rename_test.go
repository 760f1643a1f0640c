package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files into a folder of their own and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, files)
	return dir
}

func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// before and after are a repository and what becomes of it.
var before = map[string]string{
	"go.mod":      "module allium\n\ngo 1.26\n\nrequire example.com/allium v1.0.0 // not allium/bson\n",
	"otel/go.mod": "module allium/otel\n\nrequire (\n\tallium v0.0.0\n\tgo.opentelemetry.io/otel v1.0.0 // indirect\n)\n\nreplace allium => ../\n",
	"client.go": `// Package allium is a driver. Package allium/bson encodes; see [allium/bson.Marshal] and allium/nothing.
package allium

import (
	"zeta"

	"allium/bson"
	alias "allium/otel"
	"example.com/allium/bson"
)

const module = "allium" //rename:module

// DriverName is what servers are told.
const DriverName = "allium"

var paths = []string{"allium/bson", "x/allium/bson", "allium/unknown", "allium"}

const program = ` + "`" + `package main

import (
	"allium"
	"allium/bson"
)
` + "`" + `
`,
	"bson/bson.go":         "package bson\n",
	"bson/bson_test.go":    "package bson_test\n\nimport \"allium\"\n\nvar _ = allium.DriverName\n",
	"bson/testdata/bad.go": "package {",
	"vet/x.go.golden":      "package x\n\nimport \"allium/bson\"\n",
	"README.md": "Module `allium/otel`, package allium/bson, example.com/allium/bson, allium-bson, `allium serve`.\n\n```go\nimport \"allium\"\n\n\t\"allium\"\n\tx \"allium/bson\"\n" +
		"```\n\nThe word \"allium\" stays.\n\"allium\"\n",
	"notes.txt": "allium/bson\n",
}

var after = map[string]string{
	"go.mod": "module example.com/x/driver\n\ngo 1.26\n\nrequire example.com/allium v1.0.0 // not allium/bson\n",
	"otel/go.mod": "module example.com/x/driver/otel\n\nrequire (\n\texample.com/x/driver v0.0.0\n\tgo.opentelemetry.io/otel v1.0.0 // indirect\n)\n\n" +
		"replace example.com/x/driver => ../\n",
	"client.go": `// Package allium is a driver. Package example.com/x/driver/bson encodes; see [example.com/x/driver/bson.Marshal] and allium/nothing.
package allium

import (
	"zeta"

	"example.com/allium/bson"
	"example.com/x/driver/bson"
	alias "example.com/x/driver/otel"
)

const module = "example.com/x/driver" //rename:module

// DriverName is what servers are told.
const DriverName = "allium"

var paths = []string{"example.com/x/driver/bson", "x/allium/bson", "allium/unknown", "allium"}

const program = ` + "`" + `package main

import (
	"example.com/x/driver"
	"example.com/x/driver/bson"
)
` + "`" + `
`,
	"vet/x.go.golden":   "package x\n\nimport \"example.com/x/driver/bson\"\n",
	"bson/bson_test.go": "package bson_test\n\nimport \"example.com/x/driver\"\n\nvar _ = allium.DriverName\n",
	"README.md": "Module `example.com/x/driver/otel`, package example.com/x/driver/bson, example.com/allium/bson, allium-bson, `allium serve`.\n\n```go\nimport \"example.com/x/driver\"\n\n" +
		"\t\"example.com/x/driver\"\n\tx \"example.com/x/driver/bson\"\n```\n\nThe word \"allium\" stays.\n\"allium\"\n",
}

func TestRename(t *testing.T) {
	dir := tree(t, before)
	changed, err := Rename(dir, "example.com/x/driver")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(changed)
	want := slices.Sorted(maps.Keys(after))
	for i, name := range want {
		want[i] = filepath.FromSlash(name)
	}
	if !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}
	check := func(want map[string]string) {
		t.Helper()
		for name, content := range want {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != content {
				t.Errorf("%s is\n%s\nwant\n%s", name, got, content)
			}
		}
	}
	check(after)
	for name, content := range before {
		if _, ok := after[name]; !ok {
			check(map[string]string{name: content})
		}
	}
	if changed, err := Rename(dir, "example.com/x/driver"); err != nil || len(changed) > 0 {
		t.Errorf("a second time it changes %q, %v", changed, err)
	}
	// And back again: imports of the other path stand where they belong by then.
	if _, err := Rename(dir, "allium"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "otel/go.mod", "README.md", "bson/bson_test.go"} {
		check(map[string]string{name: before[name]})
	}
}

func TestRenameRefuses(t *testing.T) {
	for _, to := range []string{"", "/x", "x/", "x//y", "x y", "x/../y", "https://x.org/y", "x.", "std", "-x", "$1"} {
		dir := tree(t, before)
		if changed, err := Rename(dir, to); err == nil || len(changed) > 0 {
			t.Errorf("%q: changed %q, %v", to, changed, err)
		}
	}
	broken := maps.Clone(before)
	broken["bson/broken.go"] = "package {"
	dir := tree(t, broken)
	if changed, err := Rename(dir, "example.com/x"); err == nil || len(changed) > 0 || !strings.Contains(err.Error(), "broken.go") {
		t.Errorf("a file that does not parse: changed %q, %v", changed, err)
	}
	if _, err := Rename(t.TempDir(), "example.com/x"); err == nil {
		t.Error("a folder without a go.mod: no error")
	}
	if _, err := Rename(tree(t, map[string]string{"go.mod": "go 1.26\n"}), "example.com/x"); err == nil {
		t.Error("a go.mod without a module: no error")
	}
}

// What a page says about installing becomes what it is to say, and follows the path from then on.
func TestInstallLines(t *testing.T) {
	const page = "a\n<!--rename:unpublished-->\nclone\n<!--rename:published\n`go get MODULE@latest`, `MODULE/bson`\n-->\nz allium\n"
	dir := tree(t, map[string]string{"go.mod": "module allium\n", "README.md": page, "bson/bson.go": "package bson\n"})
	for _, to := range []string{"example.com/garden/allium", "example.org/allium"} {
		if _, err := Rename(dir, to); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if want := "a\n`go get " + to + "@latest`, `" + to + "/bson`\nz allium\n"; string(got) != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
