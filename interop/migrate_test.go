package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"allium/mongotest"
)

// TestMigrate turns programs on versions 1 and 2 of the official driver into programs on Allium:
// their tests pass against mongotest before and after, and nothing is left with a comment.
func TestMigrate(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			mod, err := os.ReadFile("go.mod")
			if err != nil {
				t.Fatal(err)
			}
			root, err := filepath.Abs("..")
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(mod), "module allium/interop", "module program", 1)
			text = strings.Replace(text, "replace allium => ../", "replace allium => "+root, 1)
			write := func(name string, content []byte) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("go.mod", []byte(text))
			sum, err := os.ReadFile("go.sum")
			if err != nil {
				t.Fatal(err)
			}
			write("go.sum", sum)
			files, err := filepath.Glob(filepath.Join("testdata", "migrate", version, "*.go"))
			if err != nil || len(files) < 2 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				write(filepath.Base(file), content)
			}
			command := func(in string, args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir, cmd.Env = in, append(os.Environ(), "MONGODB_URI="+d.URI(), "GOWORK=off")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			tool := filepath.Join(t.TempDir(), "allium-migrate.exe")
			command(root, "build", "-o", tool, "./cmd/allium-migrate")
			migrate := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), tool, args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("allium-migrate %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			command(dir, "test", "-count=1", ".")
			before, err := os.ReadFile(filepath.Join(dir, "shop.go"))
			if err != nil {
				t.Fatal(err)
			}
			if out := migrate("-diff"); !strings.Contains(out, "-	goods  *mongo.Collection\n") || !strings.Contains(out, "+	goods  *allium.Collection[any]\n") ||
				!strings.Contains(out, "nothing is written without -w") {
				t.Errorf("the difference is\n%s", out)
			}
			if now, _ := os.ReadFile(filepath.Join(dir, "shop.go")); string(now) != string(before) {
				t.Error("something is written without -w")
			}
			out := migrate("-w")
			if !regexp.MustCompile(`[1-9]\d\d rewritten, 0 left`).MatchString(out) {
				t.Errorf("it says\n%s", out)
			}
			rest := command(dir, "list", "-test", "-deps", ".")
			if strings.Contains(rest, "go.mongodb.org") {
				t.Error("the official driver is still imported")
			}
			command(dir, "vet", ".")
			command(dir, "test", "-count=1", ".")
			if out := migrate("-w"); !strings.Contains(out, " 0 rewritten") {
				t.Errorf("a second time it says\n%s", out)
			}
		})
	}
}
