package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"allium/internal/nightly"
	"allium/internal/spectest"
)

// published is the path under which TestPublished publishes the driver.
const published = "example.com/garden/allium"

// version is that of a candidate, of which the changelog may say that it is not released.
const version = "v0.1.0-rc.1"

// traced is a file of a user's program that imports a module beside the driver's.
func traced(path string) string {
	return "package shop\n\nimport (\n\t\"" + path + "\"\n\t\"" + path + "/otel\"\n)\n\nvar Tracing = allium.Tracing{Tracer: otel.NewTracer(nil)}\n"
}

// wrong is a file of a user's program with a mistake that allium-vet finds.
const wrong = `package shop

import (
	"context"

	"PATH"
	"PATH/bson"
)

func Find(ctx context.Context, c *allium.Collection[bson.D]) error {
	_, err := c.FindOne(ctx, bson.M{"price": bson.M{"$gtte": 5}})
	return err
}
`

// program is a user's test: it imports the driver, under a path, and runs it against mongotest.
func program(path string) string { return strings.ReplaceAll(test, "PATH", path) }

const test = `package shop

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

// TestUnpublished runs what README.md has for as long as nothing is published: each block of its
// section Install in the folder of a program of its own, with the clone beside it, and what it has
// to try in the clone.
func TestUnpublished(t *testing.T) {
	root := repository(t)
	readme := read(t, filepath.Join(root, "README.md"))
	blocks := blocks(section(readme, "Install"))
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d ways to install, want 2", len(blocks))
	}
	dir := t.TempDir()
	clone := filepath.Join(dir, "allium")
	copyTree(t, root, clone) // as it is in the work tree: git would clone the last commit
	for i, block := range blocks {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			shop := filepath.Join(dir, "shop"+strconv.Itoa(i+1))
			writeTree(t, shop, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": program("allium"), "traced.go": traced("allium")})
			shell(t, shop, []string{"GOFLAGS=" + goflags()}, strings.Replace(block, "git clone REPOSITORY ../allium", "test -d ../allium", 1))
			run(t, shop, []string{"GOFLAGS=" + goflags()}, "go", "test", "./...")
		})
	}
	t.Run("try", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(strings.Join(commands(section(readme, "Try it")), "\n")), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], "allium serve") || lines[2] != "go test ./..." {
			t.Fatalf("README.md has other things to try: %q", lines)
		}
		// With the flags of the two above nothing is compiled twice.
		env := []string{"GOFLAGS=" + goflags()}
		shell(t, clone, env, "env -u MONGODB_URI "+lines[0])
		// It serves until it is interrupted, or what started it ends; that it is ready is enough.
		shell(t, clone, env, strings.Replace(lines[1], "--port 27017", "--port "+strconv.Itoa(port(t))+" --ready-file ready --parent", 1)+
			` >serve.log 2>&1 </dev/null & serve=$!; trap 'kill $serve' EXIT
			for i in $(seq 1200); do [ ! -s ready ] || exit 0; sleep 0.1; done; cat serve.log; exit 1`)
	})
}

// section returns the text below a heading of a page, to the next one.
func section(page, heading string) string {
	_, text, _ := strings.Cut(page, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return hidden.ReplaceAllString(text, "")
}

// hidden is what a page does not show.
var hidden = regexp.MustCompile(`(?s)<!--.*?-->`)

// blocks returns the blocks of code without a language.
func blocks(text string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// commands returns the lines of the blocks, without comments.
func commands(text string) (list []string) {
	for line := range strings.Lines(strings.Join(blocks(text), "")) {
		line, _, _ = strings.Cut(line, " #")
		list = append(list, strings.TrimSpace(line))
	}
	return list
}

// shell runs lines as somebody would who copies them, and stops at the first that fails.
func shell(t *testing.T, dir string, env []string, script string) string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	return run(t, dir, env, bash, "-euo", "pipefail", "-c", script)
}

// goflags are those of this test, without what the folder of a build would change.
func goflags() string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " -trimpath") }

func port(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
	{get: "PATH/bson/decimals", program: `import "PATH/bson/decimals"

func main() { decimals.APD(); fmt.Println(true, error(nil)) }`},
	{get: "PATH/bson/protobuf", program: `import "PATH/bson/protobuf"

func main() { protobuf.Messages(protobuf.Options{}); fmt.Println(true, error(nil)) }`},
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
	nightly.Only(t, "builds the driver under another path")
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
	tried := []string{published + "/cmd/allium-vet"} // below
	for _, m := range modules {
		tried = append(tried, path(m.get))
		for _, r := range strings.Fields(path(m.replace)) {
			_, to, _ := strings.Cut(r, "=")
			tried = append(tried, to)
		}
	}
	for _, module := range proxied(t, filepath.Join(dist, "modules")) {
		if !slices.Contains(tried, module) {
			t.Errorf("no program gets the module %s", module)
		}
	}
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
			if len(edit) > 2 {
				run(t, dir, env, "go", edit...)
			}
			run(t, dir, env, "go", "mod", "tidy")
			if out := run(t, dir, env, "go", "run", "."); out != "true <nil>\n" {
				t.Errorf("it prints %q", out)
			}
		})
	}
	t.Run("readme", func(t *testing.T) {
		// README's lines, as they stand in a repository that has a path.
		blocks := blocks(section(read(t, filepath.Join(copied, "README.md")), "Install"))
		if len(blocks) != 1 || !strings.Contains(blocks[0], "go get "+published+"@latest") {
			t.Fatalf("README.md says how to install: %q", blocks)
		}
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": program(published), "traced.go": traced(published)})
		shell(t, dir, env, blocks[0])
		run(t, dir, env, "go", "test", "./...")
	})
	t.Run("vet", func(t *testing.T) {
		install := blocks(read(t, filepath.Join(copied, "docs", "vet.md")))[0]
		if !strings.HasPrefix(install, "go install "+published+"/cmd/allium-vet@latest") {
			t.Fatalf("docs/vet.md says how to install: %s", install)
		}
		bin := t.TempDir()
		shell(t, t.TempDir(), append(env, "GOBIN="+bin), install)
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": program(published),
			"wrong.go": strings.ReplaceAll(wrong, "PATH", published)})
		run(t, dir, env, "go", "mod", "tidy")
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "allium-vet"), "./...")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || !strings.Contains(string(out), "$gtte") {
			t.Errorf("allium-vet: %v\n%s", err, out)
		}
	})
	t.Run("test", func(t *testing.T) {
		dir := tree(t, map[string]string{"go.mod": "module shop\n\ngo 1.26\n", "shop_test.go": program(published)})
		run(t, dir, env, "go", "get", "-t", published+"@"+version)
		run(t, dir, env, "go", "mod", "tidy")
		run(t, dir, env, "go", "test", "./...")
		run(t, dir, append(env, "GOFLAGS=-modcacherw -trimpath -mod=mod"), "go", "build", published+"/...")
	})
}

// proxied returns the modules that a folder has for the command go.
func proxied(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "@v" {
			module, err := filepath.Rel(dir, filepath.Dir(name))
			list = append(list, filepath.ToSlash(module))
			return err
		}
		return err
	})
	if err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	return list
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
