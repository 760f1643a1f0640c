package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"
	after := "a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n"
	want := "--- x\n+++ x\n@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n@@ -10,3 +10,4 @@\n j\n k\n l\n+m\n"
	if got := unified("x", before, after); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got, want := unified("x", "", "a\n"), "--- x\n+++ x\n@@ -1,0 +1,1 @@\n+a\n"; got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

// The official driver is not a dependency of this module: module interop rewrites programs that use
// it, and has them tested. Here is what does without.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module program\n\ngo 1.26\n")
	const program = "package program\n\nimport \"fmt\"\n\nfunc F() { fmt.Println(1) }\n"
	write("p.go", program)
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-w"}, dir, &stdout, &stderr); status != 0 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "0 uses") {
		t.Errorf("status %d, %q, %q", status, &stdout, &stderr)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "p.go")); string(got) != program {
		t.Errorf("a program without the driver becomes\n%s", got)
	}
	for _, args := range [][]string{{"-bad"}, {"./nothing"}} {
		if status := run(args, dir, &stdout, &stderr); status == 0 {
			t.Errorf("%v: status 0", args)
		}
	}
}

// Every helper is formatted, and what it imports is what it uses.
func TestHelpers(t *testing.T) {
	for name := range helperSources {
		file := string(helperFile("p", "example.com/allium", map[string]bool{name: true}, bridging{first: true}))
		if !strings.Contains(file, "package p\n") || strings.Contains(file, "\"allium") {
			t.Errorf("%s:\n%s", name, file)
		}
	}
	for name := range optionTypes {
		if optionType(name).Kind().String() != "struct" {
			t.Errorf("%s is no struct", name)
		}
	}
}

// What a container with MongoDB was started with goes with it: a context and the name of an image.
// The package for containers is a stand-in, of which only the signatures matter.
func TestContainerLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const containers = "github.com/testcontainers/testcontainers-go/modules/mongodb"
	write("go.mod", "module program\n\ngo 1.26\n\nrequire "+containers+" v0.0.0\n\nreplace "+containers+" => ./stand-in\n")
	write("stand-in/go.mod", "module "+containers+"\n\ngo 1.26\n")
	write("stand-in/mongodb.go", `package mongodb

import "context"

type MongoDBContainer struct{}

func Run(ctx context.Context, img string) (*MongoDBContainer, error) { return nil, nil }

func (c *MongoDBContainer) ConnectionString(ctx context.Context) (string, error) { return "", nil }
`)
	write("p.go", `package program

import (
	"context"
	"fmt"
	"os"

	"`+containers+`"
)

func F() error {
	ctx := context.Background()
	img := os.Getenv("MONGO_IMAGE")
	c, err := mongodb.Run(ctx, img)
	if err != nil {
		return err
	}
	uri, err := c.ConnectionString(ctx)
	if err != nil {
		return err
	}
	fmt.Println(uri)
	return nil
}
`)
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-w"}, dir, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d, %s", status, &stderr)
	}
	got, err := os.ReadFile(filepath.Join(dir, "p.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"ctx", "img", "\"context\"", "\"os\"", "testcontainers"} {
		if bytes.Contains(got, []byte(gone)) {
			t.Errorf("%s is left:\n%s", gone, got)
		}
	}
	if !bytes.Contains(got, []byte("mongotest.Open()")) {
		t.Errorf("no deployment is started:\n%s", got)
	}
}

// What go vet says anew is told from what it said before, whatever folder the go command names.
func TestNewLines(t *testing.T) {
	before := "# example.com/app\n./print.go:5:24: fmt.Printf format %d\nstore/a.go:7:2: unreachable code\n"
	for _, test := range []struct {
		after string
		want  []string
	}{
		{before, nil},
		{strings.ReplaceAll(strings.ReplaceAll(before, "./print", "../../other/print"), "store/", "../other/store/"), nil},
		{"./print.go:5:25: fmt.Printf format %d\n", []string{"./print.go:5:25: fmt.Printf format %d"}},
		{"./prints.go:5:24: fmt.Printf format %d\n", []string{"./prints.go:5:24: fmt.Printf format %d"}},
		{"# example.com/app\n\nstore/a.go:7:2: self-assignment\n", []string{"store/a.go:7:2: self-assignment"}},
		{"vet: ./print.go:5:24: undefined: x\n", []string{"vet: ./print.go:5:24: undefined: x"}},
	} {
		if got := newLines(before, test.after); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.after, got, test.want)
		}
	}
}
