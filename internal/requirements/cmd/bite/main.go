// Command bite shows that tests notice when a requirement is not kept: it breaks the code and runs
// the tests that the requirement's row names.
//
//	go run ./internal/requirements/cmd/bite            # all breaks
//	go run ./internal/requirements/cmd/bite CSOT- RW-7 # those of rows whose ids begin so
//	go run ./internal/requirements/cmd/bite -draw 200  # those of rows that -seed draws
//	go run ./internal/requirements/cmd/bite -draw 200 -list  # which of them have breaks
//
//	go run ./internal/requirements/cmd/bite -mutate 300      # mutants of functions that rows name
//
// A draw also names the rows that have no break yet. A mutant is a small change that a generator
// makes in a function: conditions turned round, statements left out, numbers one off. It is held
// against the tests of all rows that name the function. One that survives is no failure by itself:
// some mean nothing, and some show a test that is missing.
//
// Breaks are in internal/requirements/breaks. The folder's files stay as they are: the compiler is
// handed the broken ones. bite exits with status 1 if a break goes unnoticed, or can no longer be
// made because the code has changed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"allium/internal/patch"
	"allium/internal/requirements"
	"allium/internal/spectest"
)

func main() {
	limit := flag.String("timeout", "2m", "how `long` the tests of one package may take: a test that hangs has noticed")
	draw := flag.Int("draw", 0, "make the breaks of so `many` rows that are drawn, in place of all")
	seed := flag.Int64("seed", 1, "the `seed` of the draw")
	mutate := flag.Int("mutate", 0, "make so `many` mutants of functions that rows name, in place of breaks")
	only := flag.Bool("list", false, "print the rows that are drawn, and run nothing")
	flag.Parse()
	b, err := newBiter(*limit)
	if err == nil && *draw > 0 {
		b.draw(os.Stdout, *draw, *seed, *only)
	}
	switch {
	case err != nil:
	case *mutate > 0:
		err = b.mutants(os.Stdout, *mutate, *seed, flag.Args())
	case !*only:
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
		if len(prefixes) > 0 &&
			!slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(br.ID, p) }) {
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
	broken, err := patch.Once(text, br.Old, br.New)
	if err != nil {
		return "", fmt.Errorf("%s: %w", br.File, err)
	}
	return b.noticed(file, broken, tests)
}

// errCompile says that a change is none that compiles.
var errCompile = errors.New("it does not compile")

// noticed runs tests with other text in place of a file's, and returns the first one that fails, ""
// if none does.
func (b *biter) noticed(file string, text []byte, tests []string) (by string, err error) {
	dir, err := os.MkdirTemp("", "bite")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	broken, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(broken, text, 0o644); err != nil {
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
		module, pkg := b.source.Module(r.pkg)
		cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout", b.limit, "-run",
			r.pattern, pkg)
		cmd.Dir = filepath.Join(b.root, module)
		cmd.Env = append(os.Environ(), "ALLIUM_SPECIFICATIONS="+spectest.Folder())
		out, err := cmd.CombinedOutput()
		switch {
		case strings.Contains(string(out), "no tests to run"):
			return "", fmt.Errorf("%s has no test %s", r.pkg, r.pattern)
		case err == nil:
		case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
			return "", fmt.Errorf("%w:\n%s", errCompile, out)
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

// mutants makes n mutants, at most one of each function as long as there are others, of functions
// whose names begin with one of the prefixes, and prints those that survive.
func (b *biter) mutants(w io.Writer, n int, seed int64, prefixes []string) error {
	tests, rows := map[string][]string{}, map[string][]string{}
	for _, f := range b.files {
		for _, r := range f.Rows {
			for _, name := range r.Where {
				if r.Kind != requirements.Behaviour || len(r.Tests) == 0 || len(prefixes) > 0 &&
					!slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
					continue
				}
				rows[name] = append(rows[name], r.ID)
				for _, t := range r.Tests {
					if !slices.Contains(tests[name], t) {
						tests[name] = append(tests[name], t)
					}
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	left := map[string][]requirements.Mutant{}
	names := slices.Sorted(maps.Keys(tests))
	for _, name := range names {
		found, err := b.source.Mutants(b.root, name)
		if err != nil {
			return err
		}
		random.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		left[name] = found
	}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	made, noticed := 0, 0
	for made < n && len(names) > 0 {
		name := names[0]
		if names = names[1:]; len(left[name]) == 0 {
			continue
		}
		m := left[name][0]
		left[name] = left[name][1:]
		by, err := b.noticed(filepath.Join(b.root, filepath.FromSlash(m.File)), m.Text, tests[name])
		if errors.Is(err, errCompile) {
			names = append([]string{name}, names...)
			continue
		}
		names = append(names, name)
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", name, err)
			continue
		}
		if made++; by != "" {
			noticed++
			fmt.Fprintf(w, "noticed by %s: %s:%d: %s\n", by, m.File, m.Line, m.What)
			continue
		}
		fmt.Fprintf(w, "SURVIVES %s:%d: %s: %s (%s)\n", m.File, m.Line, name, m.What, strings.Join(rows[name], " "))
	}
	fmt.Fprintf(w, "%d mutants, %d noticed\n", made, noticed)
	return nil
}

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
	"server-selection": "./internal/topology", "max-staleness": "./internal/topology",
	"server-discovery-and-monitoring":   "./internal/topology",
	"connection-monitoring-and-pooling": "./internal/pool", "connection-string": "./internal/uri",
	"uri-options": "./internal/uri",
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
