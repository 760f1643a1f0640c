package interop

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"allium/internal/nightly"
)

// checked is a module that TestMigrateCheck and TestMigrateDropin look at. Files whose names begin
// with a folder belong to other modules.
type checked struct {
	name   string
	files  map[string]string
	before []string // go commands that prepare it
	status int
	says   []string
}

const (
	usesFind = `package app

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func Find(ctx context.Context, c *mongo.Collection) (m bson.M, err error) {
	err = c.FindOne(ctx, bson.D{}).Decode(&m)
	return m, err
}
`
	usesAuth = `package app

import "go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"

var Plain = auth.PLAIN
`
	usesFirst = `package store

import (
	"context"

	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/mongo"
)

func Insert(ctx context.Context, c *mongo.Collection) (id primitive.ObjectID, err error) {
	res, err := c.InsertOne(ctx, primitive.M{"x": 1})
	if err != nil {
		return id, err
	}
	return res.InsertedID.(primitive.ObjectID), nil
}
`
	badly = "package app\n\nimport \"fmt\"\n\nfunc Print() { fmt.Printf(\"%d\\n\", \"text\") }\n"
	dirty = "// the module of the program\nmodule   example.com/app\n\n\ngo 1.26.0\n\nrequire go.mongodb.org/mongo-driver/v2 v2.9.3 // pinned\n"
)

// prepare writes the module and returns its folder. Its checksums are those of this module.
func (c checked) prepare(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "app")
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, filepath.Join(dir, "go.sum"), string(sums))
	for name, text := range c.files {
		if strings.HasPrefix(name, "../") && strings.HasSuffix(name, "/go.mod") {
			c.write(t, filepath.Join(dir, filepath.Dir(name), "go.sum"), string(sums))
		}
		c.write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	for _, command := range c.before {
		cmd := exec.CommandContext(t.Context(), "go", strings.Fields(command)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", command, err, out)
		}
	}
	return dir
}

func (checked) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// state returns all files below a folder.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		info, statErr := d.Info()
		if err = errors.Join(err, statErr); err == nil {
			files[path] = info.Mode().String() + "\n" + string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestMigrateCheck looks with -check and -dropin at small modules: what they use directly, in
// tests and through other modules, and what the drop-in lacks. Where it is not put in the official
// driver's place, every file is as before, byte for byte.
func TestMigrateCheck(t *testing.T) {
	nightly.Only(t, "compiles modules that use both drivers")
	root, tool := migrateTool(t)
	const second = "module example.com/app\n\ngo 1.26.0\n\nrequire go.mongodb.org/mongo-driver/v2 v2.9.3\n"
	const through = "module example.com/app\n\ngo 1.26.0\n\nrequire example.com/store v0.0.0\n\nrequire go.mongodb.org/mongo-driver v1.16.0 // indirect\n\nreplace example.com/store => ../store\n"
	const store = "module example.com/store\n\ngo 1.26.0\n\nrequire go.mongodb.org/mongo-driver v1.16.0\n"
	const usesStore = "package app\n\nimport _ \"example.com/store\"\n"
	for _, c := range []checked{
		{name: "all", files: map[string]string{"go.mod": second, "app.go": usesFind}, before: []string{"mod tidy"}, says: []string{
			"example.com/app uses go.mongodb.org/mongo-driver/v2 v2.9.3", "example.com/app: 5 names", "the drop-in has all 5 names", "go.mongodb.org/mongo-driver/v2 => "}},
		{name: "none", files: map[string]string{"go.mod": "module example.com/app\n\ngo 1.26.0\n", "app.go": "package app\n"}, says: []string{"example.com/app does not use the official driver"}},
		{name: "lacks", files: map[string]string{"go.mod": second, "app.go": usesFind, "auth.go": usesAuth}, before: []string{"mod tidy"}, status: 3, says: []string{
			"of 6 names the drop-in lacks 1:", "x/mongo/driver/auth.PLAIN: auth.go:5"}},
		{name: "lacks in a test", files: map[string]string{"go.mod": second, "app.go": usesFind, "auth_test.go": usesAuth}, before: []string{"mod tidy"}, status: 3, says: []string{"auth.PLAIN: auth_test.go:5"}},
		{name: "through a module", files: map[string]string{"go.mod": through, "app.go": usesStore, "../store/go.mod": store, "../store/store.go": usesFirst},
			before: []string{"mod tidy"}, says: []string{"example.com/app uses go.mongodb.org/mongo-driver v1.16.0", "example.com/store: 5 names, of example.com/store", "dropin/driver1", "dropin/v2"}},
		{name: "dirty", files: map[string]string{"go.mod": dirty, "app.go": usesFind}, says: []string{"the drop-in has all 5 names"}},
		{name: "vendor", files: map[string]string{"go.mod": second, "app.go": usesFind}, before: []string{"mod tidy", "mod vendor"}, says: []string{"the drop-in has all 5 names"}},
		{name: "workspace", files: map[string]string{"go.mod": second, "app.go": usesFind, "../go.work": "go 1.26.0\n\nuse ./app // this one\n"}, before: []string{"mod tidy"}, says: []string{"the drop-in has all 5 names"}},
		{name: "vet complains before", files: map[string]string{"go.mod": second, "app.go": usesFind, "print.go": badly}, before: []string{"mod tidy"}, says: []string{"the drop-in has all 5 names"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.prepare(t)
			run := func(args ...string) (int, string) {
				cmd := exec.CommandContext(t.Context(), tool, append(args, "-allium", root)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				return cmd.ProcessState.ExitCode(), string(out)
			}
			before := state(t, filepath.Dir(dir))
			same := func(after string) {
				t.Helper()
				now := state(t, filepath.Dir(dir))
				for path, text := range before {
					if now[path] != text {
						t.Errorf("%s: %s is changed", after, path)
					}
				}
				for path := range now {
					if _, ok := before[path]; !ok {
						t.Errorf("%s: %s is new", after, path)
					}
				}
			}
			status, out := run("-check")
			if status != c.status {
				t.Errorf("-check: status %d\n%s", status, out)
			}
			for _, words := range c.says {
				if !strings.Contains(out, words) {
					t.Errorf("-check does not say %q:\n%s", words, out)
				}
			}
			same("-check")
			if c.status == 0 && c.name != "none" {
				// A package that does not compile with the drop-in, though all names are there.
				c.write(t, filepath.Join(dir, "only.go"), "//go:build !broken\n\npackage app\n\nimport \"go.mongodb.org/mongo-driver/v2/mongo\"\n\nvar _ = mongo.Client.NoSuchMethod\n")
				before[filepath.Join(dir, "only.go")] = state(t, dir)[filepath.Join(dir, "only.go")]
				if status, out := run("-dropin"); status != 4 && status != 1 || !strings.Contains(out, "go ") {
					t.Errorf("-dropin of what does not compile: status %d\n%s", status, out)
				}
				same("-dropin that failed")
				if err := os.Remove(filepath.Join(dir, "only.go")); err != nil {
					t.Fatal(err)
				}
				delete(before, filepath.Join(dir, "only.go"))
			}
			status, out = run("-dropin")
			if status != c.status {
				t.Errorf("-dropin: status %d\n%s", status, out)
			}
			if c.status != 0 || c.name == "none" {
				same("-dropin")
				return
			}
			list, err := goOnly(t, dir, "list", "-deps", "./...")
			if err != nil || !strings.Contains(list, "\nallium\n") {
				t.Errorf("the packages are not built on Allium: %v\n%s", err, list)
			}
		})
	}
	if status := exec.CommandContext(t.Context(), tool, "-check", "-w").Run(); status == nil {
		t.Error("-check with -w is taken")
	}
}

// goOnly is goIn with the workspace that there is.
func goOnly(t *testing.T, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
