package main

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"allium/internal/spectest"
)

// published is the path under which TestPublished publishes the driver.
const published = "example.com/garden/allium"

const version = "v0.1.0"

// program is a user's test: it imports the driver and runs it against mongotest.
const program = `package shop

import (
	"testing"

	"PATH"
	"PATH/bson"
	"PATH/mongotest"
)

func TestShop(t *testing.T) {
	d := mongotest.Start(t)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	goods := client.Database("shop").Collection("goods")
	if _, err := goods.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if n, err := goods.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}
`

// TestUnpublished follows the two ways that README.md shows for as long as nothing is published.
func TestUnpublished(t *testing.T) {
	root := repository(t)
	t.Run("workspace", func(t *testing.T) {
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": strings.ReplaceAll(program, "PATH", "allium")})
		run(t, dir, nil, "go", "work", "init", ".", root)
		run(t, dir, nil, "go", "test", "./...")
	})
	t.Run("replace", func(t *testing.T) {
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": strings.ReplaceAll(program, "PATH", "allium")})
		run(t, dir, nil, "go", "mod", "edit", "-require=allium@v0.0.0", "-replace=allium="+root)
		run(t, dir, nil, "go", "mod", "tidy")
		run(t, dir, nil, "go", "test", "./...")
	})
}

func repository(t *testing.T) string {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// renamed renames a copy of the repository, in which every import resolves, those of tests too.
func renamed(t *testing.T) string {
	copied := filepath.Join(t.TempDir(), "copy")
	copyTree(t, repository(t), copied)
	if _, err := Rename(copied, published); err != nil {
		t.Fatal(err)
	}
	if out := run(t, copied, nil, "gofmt", "-l", "."); out != "" {
		t.Errorf("gofmt would change:\n%s", out)
	}
	for _, module := range []string{".", "otel"} { // the latter has a replace directive
		run(t, filepath.Join(copied, module), nil, "go", "list", "-test", "-deps", "./...")
	}
	return copied
}

func TestRenamed(t *testing.T) { renamed(t) }

// TestPublished tests a renamed copy of the repository, puts it into a module proxy in the file
// system, and has a program of somebody else get it from there and build all of it.
func TestPublished(t *testing.T) {
	if os.Getenv("ALLIUM_RENAME") == "" {
		t.Skip("builds the driver under another path, which takes minutes: set ALLIUM_RENAME=1, as .ci/nightly does")
	}
	copied := renamed(t)
	t.Run("copy", func(t *testing.T) {
		// What is built without the path of the folder is found again by the next run of this test.
		trimmed := "GOFLAGS=" + os.Getenv("GOFLAGS") + " -trimpath"
		// The copy is elsewhere: it is told where the specifications are, if they are anywhere.
		specifications := "ALLIUM_SPECIFICATIONS=" + spectest.Folder()
		run(t, copied, []string{specifications, trimmed}, "go", "test", "./internal/archtest", "./bson", "./internal/uri")
	})
	t.Run("get", func(t *testing.T) {
		proxy := t.TempDir()
		publish(t, copied, proxy)
		// What else the program needs is in the module cache already, which is a proxy, too.
		cache := strings.TrimSpace(run(t, copied, nil, "go", "env", "GOMODCACHE"))
		others := strings.TrimSpace(run(t, copied, nil, "go", "env", "GOPROXY"))
		env := []string{"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GONOSUMDB=example.com", "GOWORK=off",
			"GOPROXY=" + fileURL(proxy) + "," + fileURL(filepath.Join(cache, "cache", "download")) + "," + others}
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": strings.ReplaceAll(program, "PATH", published)})
		run(t, dir, env, "go", "get", "-t", published+"@"+version)
		run(t, dir, env, "go", "mod", "tidy")
		run(t, dir, env, "go", "test", "./...")
		run(t, dir, append(env, "GOFLAGS=-modcacherw -trimpath -mod=mod"), "go", "build", published+"/...")
	})
}

func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return "file://" + path
}

// run runs a command and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// copyTree copies the files that git knows of, as they are in the work tree.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	for file := range strings.SplitSeq(strings.TrimRight(run(t, from, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, file))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// publish puts the module in a folder into a proxy, as GOPROXY=file:// wants it.
func publish(t *testing.T, module, proxy string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(published), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	err = filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(module, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		w, err := z.Create(published + "@" + version + "/" + filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version":"` + version + `"}`), version + ".mod": mod, version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
