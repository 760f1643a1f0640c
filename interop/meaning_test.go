package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"allium/internal/nightly"
	"allium/mongotest"
)

// TestMigrateKeepsMeaning runs small pieces of programs that are written for the official driver,
// version 1 and 2, with it and, after allium-migrate has rewritten them, with Allium. What they
// print is the same, unless the tool has said what differs: each piece that does not print the
// same stands in a file whose first line has the words in which it was told.
func TestMigrateKeepsMeaning(t *testing.T) {
	nightly.Only(t, "compiles programs with three drivers")
	root, tool := migrateTool(t)
	count := map[string]int{}
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			p := newProgram(t, root, version)
			before := p.run(t)
			told, left := p.migrate(t, tool)
			after := p.run(t)
			for name, want := range before {
				file := p.fileOf[name]
				if left[file] {
					continue // it does not compile any more, or is not as before, and says so
				}
				count[version]++
				got, ran := after[name]
				switch {
				case !ran:
					t.Errorf("%s did not run again", name)
				case got != want && p.told[file] == "":
					t.Errorf("%s printed\n%s\nand prints\n%s", name, want, got)
				}
			}
			for file, words := range p.told {
				if !strings.Contains(told[file], words) {
					t.Errorf("%s: %q is not told, but %q", file, words, told[file])
				}
			}
			for file := range left {
				if p.told[file] == "" {
					t.Errorf("%s: something is left with a comment: %s", file, told[file])
				}
			}
		})
	}
	if len(count) == 2 && (count["v1"] < 60 || count["v2"] < 60) {
		t.Errorf("%v pieces were compared", count)
	}
}

// program is a module with pieces of programs in files.
type program struct {
	dir    string
	uri    string
	told   map[string]string // by file: the words of what is told
	fileOf map[string]string // the file of each piece
}

func newProgram(t *testing.T, root, version string) *program {
	p := &program{dir: t.TempDir(), uri: mongotest.Start(t, mongotest.ReplicaSet(1)).URI(), told: map[string]string{}, fileOf: map[string]string{}}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module allium/interop", "module program", 1)
	text = strings.Replace(text, "replace allium => ../", "replace allium => "+root, 1)
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "go.mod", text)
	p.write(t, "go.sum", string(sum))
	piece := regexp.MustCompile(`\badd\("([^"]+)"`)
	for _, folder := range []string{"both", version} {
		files, err := filepath.Glob(filepath.Join("testdata", "migrate", "meaning", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(content)
			if folder == "both" && version == "v1" {
				text = strings.ReplaceAll(text, "go.mongodb.org/mongo-driver/v2/", "go.mongodb.org/mongo-driver/")
			}
			base := filepath.Base(file)
			p.write(t, base, text)
			if rest, ok := strings.CutPrefix(text, "// told: "); ok {
				p.told[base], _, _ = strings.Cut(rest, "\n")
			}
			for _, m := range piece.FindAllStringSubmatch(text, -1) {
				p.fileOf[m[1]] = base
			}
		}
	}
	return p
}

func (p *program) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs the program and returns what each piece prints.
func (p *program) run(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "MONGODB_URI="+p.uri, "GOWORK=off", "TZ=America/New_York")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, out)
	}
	printed := map[string]string{}
	for _, piece := range strings.Split(string(out), "== ")[1:] {
		name, text, _ := strings.Cut(piece, "\n")
		printed[name] = text
	}
	return printed
}

// migrate rewrites the program and takes out what does not compile any more. It returns what is
// told of each file, and the files that have something left with a comment.
func (p *program) migrate(t *testing.T, tool string) (told map[string]string, left map[string]bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool, "-w")
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("allium-migrate: %v\n%s", err, out)
	}
	told, left = map[string]string{}, map[string]bool{}
	notice := regexp.MustCompile(`^(\w+\.go):\d+: (.*)`)
	for line := range strings.Lines(string(out)) {
		if m := notice.FindStringSubmatch(line); m != nil {
			told[m[1]] += m[2] + "\n"
		}
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		comments := regexp.MustCompile(`(?m)// allium-migrate: .*`).FindAllString(string(content), -1)
		if len(comments) == 0 {
			continue
		}
		base := filepath.Base(file)
		told[base] += fmt.Sprintln(strings.Join(slices.Compact(comments), "\n"))
		left[base] = true
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	return told, left
}

// migrateTool builds allium-migrate, and returns where the driver and the program are.
func migrateTool(t *testing.T) (root, tool string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	tool = filepath.Join(t.TempDir(), "allium-migrate.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "./cmd/allium-migrate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root, tool
}
