// Command bite shows that tests notice when a requirement is not kept: it breaks the code and runs
// the tests that the requirement's row names.
//
//	go run ./internal/requirements/cmd/bite            # all breaks
//	go run ./internal/requirements/cmd/bite CSOT- RW-7 # those of rows whose ids begin so
//	go run ./internal/requirements/cmd/bite -draw 200  # those of rows that -seed draws
//	go run ./internal/requirements/cmd/bite -draw 200 -list  # which of them have breaks
//
// A draw also names the rows that have no break yet.
//
// Breaks are in internal/requirements/breaks. The folder's files stay as they are: the compiler is
// handed the broken ones. bite exits with status 1 if a break goes unnoticed, or can no longer be
// made because the code has changed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"allium/internal/requirements"
	"allium/internal/spectest"
)

func main() {
	limit := flag.String("timeout", "2m", "how `long` the tests of one package may take: a test that hangs has noticed")
	draw := flag.Int("draw", 0, "make the breaks of so `many` rows that are drawn, in place of all")
	seed := flag.Int64("seed", 1, "the `seed` of the draw")
	only := flag.Bool("list", false, "print the rows that are drawn, and run nothing")
	flag.Parse()
	b, err := newBiter(*limit)
	if err == nil && *draw > 0 {
		b.draw(os.Stdout, *draw, *seed, *only)
	}
	if err == nil && !*only {
		err = b.all(os.Stdout, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bite:", err)
		os.Exit(1)
	}
}

type biter struct {
	files  []requirements.File
	breaks []requirements.Break
	tests  map[string][]string // by id
	source *requirements.Source
	root   string
	limit  string
}

func newBiter(limit string) (*biter, error) {
	files, err := requirements.Load()
	if err != nil {
		return nil, err
	}
	b := &biter{files: files, tests: map[string][]string{}, limit: limit}
	for _, f := range files {
		for _, r := range f.Rows {
			b.tests[r.ID] = r.Tests
		}
	}
	if b.breaks, err = requirements.Breaks(); err != nil {
		return nil, err
	}
	if b.root, err = os.Getwd(); err != nil {
		return nil, err
	}
	b.source, err = requirements.ReadSource(b.root, spectest.Folder())
	return b, err
}

// draw keeps the breaks of rows that are drawn, and names the others.
func (b *biter) draw(w io.Writer, n int, seed int64, list bool) {
	breaks := map[string][]requirements.Break{}
	for _, br := range b.breaks {
		breaks[br.ID] = append(breaks[br.ID], br)
	}
	b.breaks = nil
	rows := requirements.Draw(b.files, n, seed)
	with := 0
	for _, r := range rows {
		switch of := breaks[r.ID]; {
		case len(of) == 0:
			fmt.Fprintf(w, "%s: no break: %s: %s\n", r.ID, strings.Join(r.Where, ", "), r.Words)
		default:
			with++
			b.breaks = append(b.breaks, of...)
			if list {
				fmt.Fprintf(w, "%s: %d breaks\n", r.ID, len(of))
			}
		}
	}
	fmt.Fprintf(w, "%d rows drawn with seed %d, %d of them with breaks\n", len(rows), seed, with)
}

// all makes the breaks of the rows that are asked for.
func (b *biter) all(w io.Writer, prefixes []string) error {
	made, noticed := 0, 0
	for _, br := range b.breaks {
		if len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(br.ID, p) }) {
			continue
		}
		made++
		by, err := b.bites(br)
		switch {
		case err != nil:
			fmt.Fprintf(w, "%s: cannot be broken: %v\n", br.ID, err)
		case by == "":
			fmt.Fprintf(w, "%s: NOT NOTICED: %s: %q -> %q\n", br.ID, br.File, br.Old, br.New)
		default:
			noticed++
			fmt.Fprintf(w, "%s: noticed by %s\n", br.ID, by)
		}
	}
	fmt.Fprintf(w, "%d breaks, %d noticed\n", made, noticed)
	if noticed < made {
		return fmt.Errorf("%d of %d breaks went unnoticed", made-noticed, made)
	}
	return nil
}

// bites makes one break and returns the first test that fails, "" if none does.
func (b *biter) bites(br requirements.Break) (by string, err error) {
	tests, ok := b.tests[br.ID]
	if !ok {
		return "", fmt.Errorf("there is no row %s", br.ID)
	}
	file := filepath.Join(b.root, filepath.FromSlash(br.File))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), br.Old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times", br.File, br.Old, n)
	}
	dir, err := os.MkdirTemp("", "bite")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	broken, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), br.Old, br.New, 1)), 0o644); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: broken}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return "", err
	}
	runs, err := b.runs(tests)
	if err != nil {
		return "", err
	}
	for _, r := range runs {
		cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout", b.limit, "-run", r.pattern, r.pkg)
		cmd.Dir = b.root
		cmd.Env = append(os.Environ(), "ALLIUM_SPECIFICATIONS="+spectest.Folder())
		out, err := cmd.CombinedOutput()
		switch {
		case strings.Contains(string(out), "no tests to run"):
			return "", fmt.Errorf("%s has no test %s", r.pkg, r.pattern)
		case err == nil:
		case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
			return "", fmt.Errorf("it does not compile:\n%s", out)
		default:
			if m := failed.FindSubmatch(out); m != nil {
				return r.pkg + " " + string(m[1]), nil
			}
			return r.pkg, nil
		}
	}
	return "", nil
}

var failed = regexp.MustCompile(`--- FAIL: (\S+)`)

// run is what is run of one package.
type run struct{ pkg, pattern string }

// runs returns how the tests of a row are run, those of small packages first.
func (b *biter) runs(tests []string) ([]run, error) {
	byPkg := map[string][]string{}
	var order []string
	add := func(pkg, pattern string) {
		if byPkg[pkg] == nil {
			order = append(order, pkg)
		}
		byPkg[pkg] = append(byPkg[pkg], pattern)
	}
	for _, t := range tests {
		if file, ok := strings.CutPrefix(t, "json:"); ok {
			file, err := b.source.JSON(file)
			if err != nil {
				return nil, err
			}
			add(jsonRun(file))
			continue
		}
		pkg, err := b.source.Package(t)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(t, "#")
		add(pkg, "^"+name[strings.LastIndexByte(name, '.')+1:]+"$")
	}
	slices.SortStableFunc(order, func(x, y string) int { return weight(x) - weight(y) })
	var out []run
	for _, pkg := range order {
		pattern := strings.Join(byPkg[pkg], "|")
		if pkg == unified {
			for _, p := range byPkg[pkg] { // a pattern with slashes has no alternatives
				out = append(out, run{pkg, p})
			}
			continue
		}
		out = append(out, run{pkg, pattern})
	}
	return out, nil
}

const unified = "./internal/unified"

// jsonRun returns what runs a JSON test. Those that are not in the unified format are run by the
// package that they are about.
func jsonRun(file string) (pkg, pattern string) {
	parts := strings.Split(file, "/")
	if own, ok := owners[parts[0]]; ok && !slices.Contains(parts, "unified") && !slices.Contains(parts, "logging") {
		return own, "."
	}
	pattern = "^TestSpecifications$"
	for _, p := range parts {
		pattern += "/^" + regexp.QuoteMeta(p) + "$"
	}
	return unified, pattern
}

// owners are the packages that run the tests of a folder by themselves.
var owners = map[string]string{
	"server-selection": "./internal/topology", "max-staleness": "./internal/topology", "server-discovery-and-monitoring": "./internal/topology",
	"connection-monitoring-and-pooling": "./internal/pool", "connection-string": "./internal/uri", "uri-options": "./internal/uri",
}

// weight puts small packages first: what they notice need not be asked of larger ones.
func weight(pkg string) int {
	switch {
	case pkg == unified:
		return 3
	case strings.HasPrefix(pkg, "./internal/drivertest"), pkg == ".":
		return 2
	}
	return 1
}
