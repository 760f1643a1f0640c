package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A row is what becomes of a test.
type row struct {
	pkg, test string
	outcome   string // passes, fails, or cut
	reason    string
}

const (
	passes = "passes"
	fails  = "fails"
	isCut  = "cut"
)

// outcomes are what the tests print when they end. What a test skips is its own decision.
var outcomes = map[string]string{"--- PASS: ": passes, "--- SKIP: ": passes, "--- FAIL: ": fails}

// unexplained is the reason of a failure that nobody has looked at.
const unexplained = "?"

// A list has the rows of a version.
type list []row

// readList reads a list: a line for each row, with tabs between. There may be none yet.
func readList(file string) (list, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var l list
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(f) < 3 {
			return nil, fmt.Errorf("%s: no row: %q", file, line)
		}
		l = append(l, row{f[0], f[1], f[2], strings.Join(f[3:], "")})
	}
	return l, err
}

func (l list) String() string {
	var b strings.Builder
	for _, r := range l {
		fmt.Fprintln(&b, strings.TrimSuffix(strings.Join([]string{r.pkg, r.test, r.outcome, r.reason}, "\t"), "\t"))
	}
	return b.String()
}

// replace puts the rows of a package in the place of those that are there, and reports whether they
// say the same. Why a test fails is kept.
func (l *list) replace(pkg string, rows []row, update bool) bool {
	was := make(map[string]row)
	for _, r := range *l {
		if r.pkg == pkg {
			was[r.test] = r
		}
	}
	same := true
	for i, r := range rows {
		old, ok := was[r.test]
		delete(was, r.test)
		if r.outcome == fails {
			rows[i].reason = cmp.Or(old.reason, unexplained)
			if old.outcome != fails {
				rows[i].reason = unexplained
			}
		}
		if (!ok || old.outcome != r.outcome) && !update {
			same = false
			fmt.Fprintf(os.Stderr, "%s %s: %s, and the list has %s\n", pkg, r.test, r.outcome,
				cmp.Or(old.outcome, "nothing"))
		}
		if rows[i].reason == unexplained {
			same = false
			fmt.Fprintf(os.Stderr, "%s %s fails, and the list does not say why\n", pkg, r.test)
		}
	}
	for test := range was {
		if !update {
			same = false
			fmt.Fprintf(os.Stderr, "%s %s is listed, and is not there\n", pkg, test)
		}
	}
	*l = slices.DeleteFunc(*l, func(r row) bool { return r.pkg == pkg })
	*l = append(*l, rows...)
	slices.SortFunc(*l, func(a, b row) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test)) })
	return same
}

// sum tells how many rows have which outcome.
func sum(rows []row) string {
	n := make(map[string]int)
	for _, r := range rows {
		n[r.outcome]++
	}
	return fmt.Sprintf("%d pass, %d fail, %d cut out", n[passes], n[fails], n[isCut])
}

// test builds the tests of a package that type-check, runs them, and returns what became of all.
func (m *module) test(ctx context.Context, dir, uri string) ([]row, error) {
	before := maps.Clone(m.overlay)
	defer func() { m.overlay = before }()
	picked, err := m.pick(dir)
	if err != nil {
		return nil, err
	}
	var rows []row
	left := make(map[string]bool)
	for i, t := range picked {
		for test, why := range t.cut {
			rows = append(rows, row{dir, test, isCut, strings.Join(strings.Fields(why), " ")})
		}
		for name, source := range t.sources {
			file := filepath.Join(m.temp, strings.ReplaceAll(dir, "/", "-"), fmt.Sprint(i), name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(file, source, 0o644); err != nil {
				return nil, err
			}
			m.overlay[filepath.Join(m.allium, m.dropin, dir, name)] = file
		}
		for _, test := range t.tests {
			left[test] = true
		}
	}
	// The drop-in's own tests of the package may have the same names.
	own, err := filepath.Glob(filepath.Join(m.allium, m.dropin, dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range own {
		if _, laid := m.overlay[file]; !laid {
			m.overlay[file] = ""
		}
	}
	if len(left) > 0 {
		program := filepath.Join(m.temp, strings.ReplaceAll(dir, "/", "-")+".test")
		if _, err := m.tool(ctx, "test", "-c", "-vet=off", "-o", program, "./"+dir); err != nil {
			return nil, err
		}
		for len(left) > 0 {
			some, err := m.execute(ctx, program, dir, uri, left)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.test, b.test) })
	return rows, nil
}

// execute runs tests in the folder of the official package, where their data lies, and takes those
// from left that came to an end. A panic ends the process: then the test that ran has failed.
func (m *module) execute(ctx context.Context, program, dir, uri string, left map[string]bool) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	pattern := "^(" + strings.Join(slices.Sorted(maps.Keys(left)), "|") + ")$"
	cmd := exec.CommandContext(ctx, program, "-test.v", "-test.run="+pattern, "-test.timeout="+limit.String())
	cmd.Dir, cmd.Env = filepath.Join(m.source, dir), append(os.Environ(), "MONGODB_URI="+uri)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	var rows []row
	running := ""
	for line := range bytes.Lines(out) {
		text := strings.TrimSuffix(string(line), "\n")
		if name, ok := strings.CutPrefix(text, "=== RUN   "); ok {
			running, _, _ = strings.Cut(name, "/")
		}
		for prefix, outcome := range outcomes {
			if name, ok := strings.CutPrefix(text, prefix); ok {
				test := strings.Fields(name)[0]
				if left[test] {
					delete(left, test)
					rows = append(rows, row{dir, test, outcome, ""})
				}
			}
		}
	}
	if *verbose && err != nil {
		os.Stderr.Write(out)
	}
	if left[running] {
		delete(left, running)
		rows = append(rows, row{dir, running, fails, ""})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no test has run:\n%s", out)
	}
	return rows, nil
}
