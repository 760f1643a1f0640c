// Command guard notices a regression before it lands. With -table it counts allocations, system
// calls and instructions of operations against the null server, which do not depend on how busy the
// machine is, and fails if one takes more than guard.txt says; CI does that. Else it compares the
// benchmarks of two commits.
//
//	go -C bench run ./cmd/guard -table         # the working tree against guard.txt
//	go -C bench run ./cmd/guard -table -update # writes guard.txt
//	go -C bench run ./cmd/guard main           # main against the working tree
//	go -C bench run ./cmd/guard -bench FindOne -count 10 main HEAD
//
// It builds the test binaries of both, runs them in turns, so that what else the machine does hits
// both, and prints benchstat's comparison. It fails if a benchmark allocates more often than
// before. Benchmarks that only one of the two has are shown by benchstat and do not fail.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"allium/bench"
)

// The packages with benchmarks of a layer each.
const packages = "./internal/drivertest/operations ./bson ./internal/wire ./internal/conn ./internal/pool ./internal/topology ./internal/exec ./internal/crypt"

type settings struct {
	bench, length string
	packages      string
	count         int
	base, head    string // head "" is the working tree
	table, update bool
}

func main() {
	bench.Child()
	var s settings
	flag.StringVar(&s.bench, "bench", ".", "run the benchmarks that match this regular expression")
	flag.StringVar(&s.packages, "packages", packages, "the packages, separated by blanks")
	flag.StringVar(&s.length, "benchtime", "200ms", "how long each benchmark runs, as go test's -benchtime")
	flag.IntVar(&s.count, "count", 6, "how often each side takes its turn")
	flag.BoolVar(&s.table, "table", false, "count, and compare with "+tableFile+", in the current directory")
	flag.BoolVar(&s.update, "update", false, "with -table: write "+tableFile)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: guard [flags] BASE [HEAD]\n       guard -table [-update]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if s.table && flag.NArg() == 0 {
		if err := table(s.update); err != nil {
			fmt.Fprintln(os.Stderr, "guard:", err)
			os.Exit(1)
		}
		return
	}
	if s.table || flag.NArg() < 1 || flag.NArg() > 2 {
		flag.Usage()
		os.Exit(2)
	}
	s.base, s.head = flag.Arg(0), flag.Arg(1)
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

// A side is one of the two states of the code.
type side struct {
	name, root string
	binaries   map[string]string // by package
	output     bytes.Buffer
}

func run(s settings) (err error) {
	root, err := output("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "allium-guard-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sides := []*side{{name: "base"}, {name: "head"}}
	for i, commit := range []string{s.base, s.head} {
		if sides[i].root = root; commit == "" {
			continue
		}
		tree := filepath.Join(dir, sides[i].name)
		if _, err := output(root, "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
			return err
		}
		defer func() {
			_, e := output(root, "git", "worktree", "remove", "--force", tree)
			err = errors.Join(err, e)
		}()
		sides[i].root = tree
	}
	for _, side := range sides {
		if err := side.build(dir, strings.Fields(s.packages)); err != nil {
			return err
		}
	}
	for round := range s.count {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, s.count)
		for _, pkg := range strings.Fields(s.packages) {
			for _, side := range sides {
				if err := side.take(pkg, s); err != nil {
					return err
				}
			}
		}
	}
	if err := compare(dir, root, sides); err != nil {
		return err
	}
	return grown(allocations(&sides[0].output), allocations(&sides[1].output))
}

// build compiles the test binaries of the packages that this side has.
func (s *side) build(dir string, packages []string) error {
	s.binaries = make(map[string]string)
	for i, pkg := range packages {
		if _, err := os.Stat(filepath.Join(s.root, pkg)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		binary := filepath.Join(dir, fmt.Sprintf("%s-%d.test", s.name, i))
		if _, err := output(s.root, "go", "test", "-c", "-o", binary, pkg); err != nil {
			return err
		}
		s.binaries[pkg] = binary
	}
	return nil
}

// take runs a package's benchmarks once.
func (s *side) take(pkg string, o settings) error {
	binary := s.binaries[pkg]
	if binary == "" {
		return nil
	}
	text, err := output(filepath.Join(s.root, pkg), binary, "-test.run", "^$", "-test.bench", o.bench, "-test.benchmem",
		"-test.benchtime", o.length)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(&s.output, "pkg: %s\n%s\n", pkg, text)
	return err
}

// compare prints benchstat's tables.
func compare(dir, root string, sides []*side) error {
	args := []string{"tool", "-modfile=tools/tools.mod", "benchstat"}
	for _, s := range sides {
		path := filepath.Join(dir, s.name+".txt")
		if err := os.WriteFile(path, s.output.Bytes(), 0o600); err != nil {
			return err
		}
		args = append(args, s.name+"="+path)
	}
	text, err := output(root, "go", args...)
	if err != nil {
		return err
	}
	_, err = fmt.Println(text)
	return err
}

var line = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s.*\s(\d+) allocs/op`)

// allocations returns the median of each benchmark's allocations, by package and name.
func allocations(r io.Reader) map[string]int {
	all, pkg := make(map[string][]int), ""
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = name
		}
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			n, err := strconv.Atoi(m[2])
			if err == nil {
				all[pkg+" "+m[1]] = append(all[pkg+" "+m[1]], n)
			}
		}
	}
	medians := make(map[string]int, len(all))
	for name, n := range all {
		slices.Sort(n)
		medians[name] = n[len(n)/2]
	}
	return medians
}

// grown returns an error that names the benchmarks that allocate more often than before: by more
// than a hundredth, since those with goroutines vary.
func grown(before, after map[string]int) error {
	var errs []error
	for name, n := range after {
		if was, ok := before[name]; ok && n > was+was/100 {
			errs = append(errs, fmt.Errorf("%s: %d allocations, were %d", name, n, was))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// output runs a program and returns what it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
