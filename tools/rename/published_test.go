package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"allium/internal/spectest"
)

// published is the path under which TestPublished publishes the driver.
const published = "example.com/garden/allium"

// version is that of a candidate, of which the changelog may say that it is not released.
const version = "v0.1.0-rc.1"

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
	checkPages(t, copied)
	return copied
}

func TestRenamed(t *testing.T) { renamed(t) }

// checkPages finds what pages of a renamed repository still say of one that nobody can get.
func checkPages(t *testing.T, dir string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(dir, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`(?m)^.*(<!--rename:|import "allium["/]|\ballium(/\w+)?@|=allium\b|-replace=|\.\./allium|not published|no published path|\bMODULE\b).*$`)
	got := false
	for _, page := range append(pages, filepath.Join(dir, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range old.FindAllString(string(text), -1) {
			if !strings.Contains(line, published) && !slices.Contains([]string{"history.md", "releasing.md"}, filepath.Base(page)) {
				t.Errorf("%s still says: %s", filepath.Base(page), line)
			}
		}
		got = got || strings.Contains(string(text), "go get "+published+"@latest")
	}
	if !got {
		t.Error("no page says how to get the driver")
	}
}

// modules are those of the repository that others can get, each with a program that uses it.
var modules = []struct{ get, replace, program string }{
	{get: "PATH", program: `import "PATH"

func main() { client, err := allium.Open("mongodb://localhost"); fmt.Println(client != nil, err) }`},
	{get: "PATH/otel", program: `import "PATH/otel"

func main() { fmt.Println(otel.NewTracer(nil) != nil, error(nil)) }`},
	{get: "PATH/kerberos", program: `import "PATH/kerberos"

func main() { fmt.Println(kerberos.New() != nil, error(nil)) }`},
	{get: "PATH/libmongocrypt", program: `import _ "PATH/libmongocrypt"

func main() { fmt.Println(true, error(nil)) }`},
	{replace: "go.mongodb.org/mongo-driver/v2=PATH/dropin/v2", program: `import "go.mongodb.org/mongo-driver/v2/mongo"

func main() { client, err := mongo.Connect(); fmt.Println(client != nil, err) }`},
	{replace: "go.mongodb.org/mongo-driver/v2=PATH/dropin/v2 go.mongodb.org/mongo-driver=PATH/dropin/driver1", program: `import "go.mongodb.org/mongo-driver/mongo"

func main() { client, err := mongo.NewClient(); fmt.Println(client != nil, err) }`},
}

// TestPublished renames a copy of the repository and makes a release of it; then programs of
// somebody else get each module from the release's proxy, each alone, and a test of somebody else's
// gets the driver and builds all of it.
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
	git := []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "all"}} {
		run(t, copied, git, "git", args...)
	}
	dist := filepath.Join(t.TempDir(), "dist")
	host := runtime.GOOS + "/" + runtime.GOARCH
	t.Log(run(t, copied, git, "go", "run", "./tools/release", "-out", dist, "-platforms", host, version))
	// What else the programs need is in the module cache already, which is a proxy, too.
	cache := strings.TrimSpace(run(t, copied, nil, "go", "env", "GOMODCACHE"))
	others := strings.TrimSpace(run(t, copied, nil, "go", "env", "GOPROXY"))
	env := []string{"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GONOSUMDB=example.com", "GOWORK=off",
		"GOPROXY=" + fileURL(filepath.Join(dist, "modules")) + "," + fileURL(filepath.Join(cache, "cache", "download")) + "," + others}
	path := func(s string) string { return strings.ReplaceAll(s, "PATH", published) }
	for _, m := range modules {
		t.Run(path(m.get+m.replace), func(t *testing.T) {
			dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "main.go": path("package main\n\nimport \"fmt\"\n\n" + m.program + "\n")})
			if m.get != "" {
				run(t, dir, env, "go", "get", path(m.get)+"@"+version)
			}
			// All at once: a go.mod with a version that is still to be found is not edited again.
			edit := []string{"mod", "edit"}
			for _, r := range strings.Fields(path(m.replace)) {
				edit = append(edit, "-replace="+r+"@latest")
			}
			run(t, dir, env, "go", edit...)
			run(t, dir, env, "go", "mod", "tidy")
			if out := run(t, dir, env, "go", "run", "."); out != "true <nil>\n" {
				t.Errorf("it prints %q", out)
			}
		})
	}
	t.Run("test", func(t *testing.T) {
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": path(program)})
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
