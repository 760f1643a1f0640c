// Command official runs the official driver's own tests with the drop-in, and compares what becomes
// of each with a list:
//
//	go run ./dropin/cmd/official            # all packages of both versions
//	go run ./dropin/cmd/official v2/bson    # those whose names have this in them
//	go run ./dropin/cmd/official -update    # write the lists anew
//
// The tests lie in the module cache, and stay there: "go test -overlay" lays them over the
// drop-in's packages. A test that needs unexported names of the official driver is cut out first,
// and so is what only such tests use: what type-checks against the drop-in stays. The lists,
// testdata/v2.txt and v1.txt, have a row for each function: it passes, or fails, or is cut out, and
// why. The command fails if a row says otherwise.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"allium/mongotest"
)

var (
	update  = flag.Bool("update", false, "write the lists anew; reasons of failures that are listed stay")
	verbose = flag.Bool("v", false, "print what the tests print that fail")
	keep    = flag.Bool("keep", false, "keep the temporary folder, and print its name")
	limit   = flag.Duration("timeout", 3*time.Minute, "how long the tests of a package may run")
)

// A version is a module of the official driver and the drop-in for it.
type version struct {
	name           string // of the list
	path, official string // the module's path, and its version
	dropin         string // a folder of Allium's
	besides        []string
}

var versions = []version{
	{name: "v2", path: "go.mongodb.org/mongo-driver/v2", official: "v2.10.0", dropin: "dropin/v2",
		besides: []string{"internal/integration", "internal/docexamples"}},
	{name: "v1", path: "go.mongodb.org/mongo-driver", official: "v1.17.10", dropin: "dropin/driver1",
		besides: []string{"mongo/integration", "examples/documentation_examples"}},
}

func main() {
	flag.Parse()
	ok, err := run(context.Background(), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "official:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run runs the tests of the packages with these names, and reports whether all is as listed.
func run(ctx context.Context, names []string) (bool, error) {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "allium")
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp("", "official")
	if err != nil {
		return false, err
	}
	if *keep {
		fmt.Println(temp)
	} else {
		defer os.RemoveAll(temp)
	}
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		return false, err
	}
	defer d.Stop()
	ok, ran := true, 0
	for _, v := range versions {
		m, err := prepare(ctx, v, strings.TrimSpace(string(root)), filepath.Join(temp, v.name))
		if err != nil {
			return false, fmt.Errorf("%s: %w", v.name, err)
		}
		file := filepath.Join(m.allium, "dropin", "cmd", "official", "testdata", v.name+".txt")
		listed, err := readList(file)
		if err != nil {
			return false, err
		}
		for _, pkg := range m.packages {
			name := v.name + "/" + pkg
			if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(name, n) }) {
				continue
			}
			ran++
			rows, err := m.test(ctx, pkg, d.URI())
			if err != nil {
				return false, fmt.Errorf("%s: %w", name, err)
			}
			fmt.Printf("%s: %s\n", name, sum(rows))
			if !listed.replace(pkg, rows, *update) {
				ok = false
			}
			if *update {
				if err := os.WriteFile(file, []byte(listed.String()), 0o644); err != nil {
					return false, err
				}
			}
		}
	}
	if ran == 0 {
		return false, errors.New("no package has such a name")
	}
	return ok, nil
}

// A module is a version made ready: the overlay has the official tests, and the helpers that they
// import, where the drop-in's packages are.
type module struct {
	version
	allium, source, temp string // folders: Allium's, the official module's, one of ours
	modfile              string
	packages             []string          // with tests
	overlay              map[string]string // a file that the go command shall see -> where it lies
	exports              map[string]string // import path -> compiled package
}

// prepare finds the packages with tests, and makes a go.mod that has what they import besides.
func prepare(ctx context.Context, v version, root, temp string) (*module, error) {
	m := &module{version: v, allium: root, temp: temp, modfile: filepath.Join(temp, "go.mod"),
		overlay: make(map[string]string)}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return nil, err
	}
	out, err := output(ctx, "", "go", "mod", "download", "-json", v.path+"@"+v.official)
	if err != nil {
		return nil, err
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return nil, err
	}
	m.source = downloaded.Dir
	if err := m.writeModfile(ctx); err != nil {
		return nil, err
	}
	return m, m.selectPackages(ctx)
}

// writeModfile writes the drop-in's go.mod with the requirements of the official module that it has
// not, and both modules' sums.
func (m *module) writeModfile(ctx context.Context) error {
	home := filepath.Join(m.allium, m.dropin)
	var files [2]struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path string }
		}
	}
	for i, dir := range []string{home, m.source} {
		out, err := output(ctx, "", "go", "mod", "edit", "-json", filepath.Join(dir, "go.mod"))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &files[i]); err != nil {
			return err
		}
	}
	edits := []string{"mod", "edit"}
	has := make(map[string]bool)
	for _, r := range files[0].Require {
		has[r.Path] = true
	}
	for _, r := range files[0].Replace {
		edits = append(edits, "-replace="+r.Old.Path+"="+filepath.Join(home, r.New.Path))
	}
	for _, r := range files[1].Require {
		if !has[r.Path] {
			edits = append(edits, "-require="+r.Path+"@"+r.Version)
		}
	}
	var sums []byte
	for _, dir := range []string{home, m.source, filepath.Join(m.allium, "dropin", "compare")} {
		sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil {
			return err
		}
		sums = append(sums, sum...)
	}
	mod, err := os.ReadFile(filepath.Join(home, "go.mod"))
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(m.modfile, mod, 0o644),
		os.WriteFile(strings.TrimSuffix(m.modfile, ".mod")+".sum", sums, 0o644))
	if err != nil {
		return err
	}
	_, err = output(ctx, "", "go", append(edits, m.modfile)...)
	return err
}

// tool runs the go command in the drop-in's module, with the overlay.
func (m *module) tool(ctx context.Context, verb string, args ...string) ([]byte, error) {
	overlay, err := json.Marshal(struct{ Replace map[string]string }{m.overlay})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(m.temp, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return nil, err
	}
	flags := []string{verb, "-mod=mod", "-modfile=" + m.modfile, "-overlay=" + file}
	return output(ctx, filepath.Join(m.allium, m.dropin), "go", append(flags, args...)...)
}

// output runs a program, and returns what it writes to its standard output.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var problems strings.Builder
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &problems, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return out, nil
}
