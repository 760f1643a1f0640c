package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// small is a repository with a module of each kind.
var small = map[string]string{
	"LICENSE":               "a licence\n",
	"CHANGELOG.md":          "# Changelog\n\n## 0.1, the first\n\n## 0.2.1\n\n## 0.3, not released yet\n",
	"go.mod":                "module example.com/Garden/allium\n\ngo 1.26\n",
	"allium.go":             "// Package allium is small.\npackage allium\n\nconst Name = \"small\"\n",
	"cmd/allium/main.go":    "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\t\"example.com/Garden/allium\"\n)\n\nfunc main() { fmt.Println(allium.Name, os.Args[1:]) }\n",
	"otel/go.mod":           "module example.com/Garden/allium/otel\n\ngo 1.26\n\nrequire example.com/Garden/allium v0.0.0-00010101000000-000000000000\n\nreplace example.com/Garden/allium => ../\n",
	"otel/otel.go":          "package otel\n\nimport \"example.com/Garden/allium\"\n\nconst Scope = allium.Name\n",
	"dropin/v2/go.mod":      "module go.mongodb.org/mongo-driver/v2\n\ngo 1.26\n\nrequire example.com/Garden/allium v0.0.0\n\nreplace example.com/Garden/allium => ../..\n",
	"dropin/v2/mongo/m.go":  "package mongo\n\nimport \"example.com/Garden/allium\"\n\nconst Driver = allium.Name\n",
	"dropin/one/go.mod":     "module go.mongodb.org/mongo-driver\n\ngo 1.26\n\nrequire go.mongodb.org/mongo-driver/v2 v2.10.0\n\nreplace go.mongodb.org/mongo-driver/v2 => ../v2\n",
	"dropin/one/one.go":     "package one\n",
	"bench/go.mod":          "module example.com/Garden/allium/bench // not published: for us\n\ngo 1.26\n",
	"bench/bench.go":        "package bench\n",
	"alone/go.mod":          "module example.com/Garden/allium/alone\n\ngo 1.26\n",
	"alone/alone.go":        "package alone\n",
	"alone/testdata/go.mod": "module of/a/test\n",
}

// repository makes a repository of files and returns its folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull,
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, nil, "git", "init", "-q", "-b", "main")
	run(t, dir, nil, "git", "add", "-A")
	run(t, dir, nil, "git", "commit", "-q", "-m", "all")
	return dir
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(dir, env, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A release of a small repository: its tags, its modules as the go command gets them, and what is
// told of the command.
func TestRelease(t *testing.T) {
	dir := repository(t, small)
	before := run(t, dir, nil, "git", "rev-parse", "HEAD")
	host := runtime.GOOS + "/" + runtime.GOARCH
	r := release{version: "v0.2.1", out: filepath.Join(t.TempDir(), "dist"), builder: "https://example.com/me", platforms: []string{host}, log: io.Discard}
	if err := r.run(dir); err != nil {
		t.Fatal(err)
	}
	if now := run(t, dir, nil, "git", "rev-parse", "main"); now != before || run(t, dir, nil, "git", "status", "--porcelain") != "" {
		t.Error("the branch has changed")
	}
	tags := strings.Fields(run(t, dir, nil, "git", "tag"))
	if want := []string{"alone/v0.2.1", "dropin/one/v0.2.1", "dropin/v2.2.1", "otel/v0.2.1", "v0.2.1"}; !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
	if parent := run(t, dir, nil, "git", "rev-parse", "v0.2.1^{commit}~"); parent != before {
		t.Error("the tag's commit does not follow the branch's")
	}

	proxy := []string{"GOPROXY=" + fileURL(filepath.Join(r.out, "modules")), "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOMODCACHE=" + t.TempDir(), "GOWORK=off"}
	program := func(lines ...string) string {
		p := t.TempDir()
		for name, content := range map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "main.go": "package main\n\n" + strings.Join(lines, "\n") + "\n"} {
			if err := os.WriteFile(filepath.Join(p, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	t.Run("nested", func(t *testing.T) {
		p := program(`import "example.com/Garden/allium/otel"`, `func main() { println(otel.Scope) }`)
		run(t, p, proxy, "go", "get", "example.com/Garden/allium/otel@v0.2.1")
		run(t, p, proxy, "go", "build", "-o", os.DevNull, ".")
		sums, err := os.ReadFile(filepath.Join(p, "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		// The sums that the tag has of the driver are those that the go command finds.
		for line := range strings.Lines(run(t, dir, nil, "git", "show", "otel/v0.2.1:otel/go.sum")) {
			if !strings.Contains(string(sums), strings.TrimSpace(line)) || !strings.HasPrefix(line, "example.com/Garden/allium v0.2.1") {
				t.Errorf("%s is not in\n%s", line, sums)
			}
		}
	})
	t.Run("drop-in", func(t *testing.T) {
		p := program(`import (
	_ "go.mongodb.org/mongo-driver"
	"go.mongodb.org/mongo-driver/v2/mongo"
)`, `func main() { println(mongo.Driver) }`)
		run(t, p, proxy, "go", "mod", "edit", "-replace=go.mongodb.org/mongo-driver/v2=example.com/Garden/allium/dropin/v2@latest",
			"-replace=go.mongodb.org/mongo-driver=example.com/Garden/allium/dropin/one@latest")
		run(t, p, proxy, "go", "mod", "tidy")
		run(t, p, proxy, "go", "build", "-o", os.DevNull, ".")
		if mod, _ := os.ReadFile(filepath.Join(p, "go.mod")); !strings.Contains(string(mod), "allium/dropin/v2 v2.2.1") {
			t.Errorf("%s", mod)
		}
	})
	t.Run("command", func(t *testing.T) { checkArtefacts(t, r.out, host, before) })
	t.Run("image", func(t *testing.T) { checkImage(t, r.out, host) })
	if err := r.run(dir); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("a second release in the same folder: %v", err)
	}
}

func checkArtefacts(t *testing.T, out, host, commit string) {
	if runtime.GOOS == "windows" {
		t.Skip("its archive is a zip")
	}
	subjects := 2 // the list of materials and the archive
	if runtime.GOOS == "linux" {
		subjects++ // the image, which sorts before the archive
	}
	name := "allium_0.2.1_" + strings.ReplaceAll(host, "/", "_")
	archive, err := os.ReadFile(filepath.Join(out, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Name {
		case name + "/allium":
			info, err := buildinfo.Read(bytes.NewReader(content))
			if err != nil || info.Main.Version != "v0.2.1" {
				t.Errorf("%v, %v", info, err)
			}
		case name + "/man/allium.1":
			if string(content) != "small [man]\n" {
				t.Errorf("%q", content)
			}
		}
	}
	if want := []string{name + "/allium", name + "/LICENSE", name + "/completions/_allium", name + "/completions/allium.bash", name + "/completions/allium.fish", name + "/man/allium.1"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	if sums, _ := os.ReadFile(filepath.Join(out, "checksums.txt")); !strings.Contains(string(sums), sum+"  "+name+".tar.gz\n") {
		t.Errorf("%s", sums)
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(out, "provenance.json"))
	if err == nil {
		err = json.Unmarshal(text, &statement)
	}
	if err != nil || len(statement.Subject) != subjects || statement.Subject[subjects-1].Digest["sha256"] != sum || statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != commit {
		t.Errorf("%s, %v", text, err)
	}
	var bill struct {
		BOMFormat  string
		Components []component
	}
	text, err = os.ReadFile(filepath.Join(out, "allium.cdx.json"))
	if err == nil {
		err = json.Unmarshal(text, &bill)
	}
	if err != nil || bill.BOMFormat != "CycloneDX" || len(bill.Components) != 1 || bill.Components[0].Name != "std" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestReleaseRefuses(t *testing.T) {
	with := func(name, content string) map[string]string {
		files := map[string]string{}
		for n, c := range small {
			files[n] = c
		}
		files[name] = content
		return files
	}
	for name, c := range map[string]struct {
		files         map[string]string
		version, want string
	}{
		"no version":        {small, "0.2.1", "no version"},
		"no such section":   {small, "v0.9.0", "no section"},
		"not released":      {small, "v0.3.0", "not released yet"},
		"no host":           {with("go.mod", "module allium\n\ngo 1.26\n"), "v0.1.0", "tools/rename"},
		"a folder v1":       {with("more/v1/go.mod", "module example.com/Garden/allium/more\n"), "v0.1.0", "wrong suffix"},
		"two that belong":   {with("b/go.mod", "module example.com/Garden/allium/b\n\nrequire example.com/Garden/allium/otel v0.0.0\n\nreplace example.com/Garden/allium/otel => ../otel\n"), "v0.1.0", "no other module"},
		"a replaced module": {with("b/go.mod", "module example.com/Garden/allium/b\n\nreplace example.com/x => example.com/y v1.0.0\n"), "v0.1.0", "replaces example.com/x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, c.files)
			r := release{version: c.version, out: filepath.Join(t.TempDir(), "dist"), platforms: []string{"linux/amd64"}, log: io.Discard}
			if err := r.run(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if tags := run(t, dir, nil, "git", "tag"); tags != "" {
				t.Errorf("tags %s", tags)
			}
		})
	}
	t.Run("not committed", func(t *testing.T) {
		dir := repository(t, small)
		if err := os.WriteFile(filepath.Join(dir, "new.go"), []byte("package allium\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := release{version: "v0.1.0", out: filepath.Join(t.TempDir(), "dist"), log: io.Discard}
		if err := r.run(dir); err == nil || !strings.Contains(err.Error(), "new.go") {
			t.Errorf("%v", err)
		}
	})
}

func TestVersionOf(t *testing.T) {
	for _, c := range []struct{ dir, version, want, tag string }{
		{".", "v0.1.0", "v0.1.0", "v0.1.0"}, {"otel", "v1.2.3", "v1.2.3", "otel/v1.2.3"}, {"dropin/v2", "v0.1.0", "v2.1.0", "dropin/v2.1.0"},
		{"dropin/v2", "v1.2.3-rc.1", "v2.1002.3-rc.1", "dropin/v2.1002.3-rc.1"}, {"v3", "v0.0.4", "v3.0.4", "v3.0.4"},
	} {
		got, err := versionOf(c.dir, c.version)
		if tag := (module{dir: c.dir, version: got}).tag(); got != c.want || tag != c.tag || err != nil {
			t.Errorf("%s %s: %s, tag %s, %v", c.dir, c.version, got, tag, err)
		}
	}
}
