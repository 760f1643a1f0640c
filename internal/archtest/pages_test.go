package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages that map the project name its files, packages and tests. What they name must be there,
// and what is there must be named where a page says that it has everything.

// tree is what the pages may name.
type tree struct {
	paths map[string]bool // folders and files, from the root, with slashes
	tests map[string]bool // functions of tests and examples
}

func readTree(t *testing.T) tree {
	r := tree{paths: map[string]bool{}, tests: map[string]bool{}}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example|Benchmark|Fuzz)\w+)\(`)
	top := root(t)
	err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git") {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		r.paths[filepath.ToSlash(rel)] = true
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			r.tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has reports whether there is a file or folder of a name, which may have stars.
func (r tree) has(pattern string) bool {
	if r.paths[strings.TrimSuffix(pattern, "/")] {
		return true
	}
	for p := range r.paths {
		if ok, err := path.Match(pattern, p); ok && err == nil {
			return true
		}
	}
	return false
}

// hasTest reports whether there is a test of a name, or one that begins with it if it ends with
// "…" or a star.
func (r tree) hasTest(name string) bool {
	begin := strings.TrimSuffix(strings.TrimSuffix(name, "…"), "*")
	if begin == name {
		return r.tests[name]
	}
	for test := range r.tests {
		if strings.HasPrefix(test, begin) {
			return true
		}
	}
	return false
}

var quoted = regexp.MustCompile("`([^`]+)`")

// TestPagesNameTests finds tests on any page that do not exist.
func TestPagesNameTests(t *testing.T) {
	r := readTree(t)
	test := regexp.MustCompile(`^(?:Test|Example|Benchmark|Fuzz)[A-Z_]\w*(?:…|\*)?$`)
	named := 0
	for _, page := range pages(t) {
		for _, m := range quoted.FindAllStringSubmatch(page.text, -1) {
			if !test.MatchString(m[1]) {
				continue
			}
			named++
			if !r.hasTest(m[1]) {
				t.Errorf("%s: there is no test %s", page.name, m[1])
			}
		}
	}
	if named < 150 {
		t.Errorf("%d tests are named, want more", named)
	}
}

// TestSpecificationsAreWhere finds files and packages in the last column of docs/specs.md's table
// that do not exist. A name without a folder is in the folder of the one before it.
func TestSpecificationsAreWhere(t *testing.T) {
	r := readTree(t)
	rows := 0
	for _, cells := range table(t, "docs/specs.md", "| text | state | tests | prose | where |") {
		dir := "."
		for _, m := range quoted.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			rows++
			switch {
			case r.has(m[1]):
				dir = path.Dir(m[1])
			case r.has(path.Join(dir, m[1])):
			default:
				t.Errorf("%s: there is no %s", cells[0], m[1])
			}
		}
	}
	if rows < 50 {
		t.Errorf("%d places found, want more", rows)
	}
}

// TestTestsHaveTheirRow wants each test file of the root and below internal/drivertest, and each
// other package with tests, on one of the pages that say what tests guard.
func TestTestsHaveTheirRow(t *testing.T) {
	r := readTree(t)
	page := ""
	for _, name := range []string{"tests.md", "tests-packages.md", "tests-mongotest.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		page += string(text)
	}
	var patterns []string
	dir := ""
	for _, m := range quoted.FindAllStringSubmatch(page, -1) {
		patterns = append(patterns, m[1])
		// `internal/auth`, `sigv4`: the second is in the folder of the first.
		if strings.Contains(m[1], "/") {
			dir = path.Dir(m[1])
		} else {
			patterns = append(patterns, path.Join(dir, m[1]))
		}
	}
	listed := func(name string) bool {
		for _, p := range patterns {
			if ok, err := path.Match(p, name); ok && err == nil {
				return true
			}
		}
		return false
	}
	checked := map[string]bool{}
	for file := range r.paths {
		if !strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		name := path.Dir(file)
		if name == "." || strings.HasPrefix(name, "internal/drivertest/") {
			name = file
		}
		if !checked[name] && !listed(name) {
			t.Errorf("docs/tests.md and docs/tests-*.md do not say what %s guards", name)
		}
		checked[name] = true
	}
	if len(checked) < 100 {
		t.Errorf("%d files and packages checked, want more", len(checked))
	}
}

// TestPagesAreShort wants no page that has to be read in two goes. In appendices things are
// looked up.
func TestPagesAreShort(t *testing.T) {
	appendices := []string{"history.md", "campaign-log.md", "specs-texts.md", "specs-not-asked.md"}
	for _, p := range pages(t) {
		if n := len(strings.Fields(p.text)); n > 3000 && !slices.Contains(appendices, p.name) {
			t.Errorf("%s has %d words, want at most 3,000: split it", p.name, n)
		}
	}
}

// page is a document of the project.
type page struct{ name, text string }

// pages returns README and what is below docs.
func pages(t *testing.T) []page {
	var list []page
	names, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, filepath.Join(root(t), "README.md"), filepath.Join(root(t), "DESIGN.md"), filepath.Join(root(t), "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page{filepath.Base(name), string(text)})
	}
	return list
}

// table returns the cells of the rows of a page's table with this head.
func table(t *testing.T, name, head string) (rows [][]string) {
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), head+"\n")
	if !ok {
		t.Fatalf("%s has no table %s", name, head)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
	}
	return rows
}
