package trust

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"allium/internal/requirements"
	"allium/internal/spectest"
	"allium/mongotest"
)

// Facts counts what the pages tell of the source below root. The values are as the pages print
// them.
func Facts(root string) (map[string]string, error) {
	c := counter{root: root, facts: map[string]string{}}
	c.specifications()
	c.requirements()
	c.recordings()
	c.servers()
	c.tests()
	c.faults()
	c.number("campaign bugs", c.elements("internal/campaign/cmd/bite/bugs.go", "bugs"))
	c.number("drop-in suites", c.elements("dropin/cmd/accept/suites.go", "suites"))
	c.platforms()
	c.dropin()
	c.measured()
	c.limits()
	return c.facts, c.err
}

// counter collects facts, and the first error.
type counter struct {
	root  string
	facts map[string]string
	err   error
}

func (c *counter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// number is a fact that is a number, with commas between its thousands.
func (c *counter) number(name string, n int) {
	if n == 0 {
		c.fail(fmt.Errorf("%s: none found, the source has moved", name))
	}
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	c.facts[name] = s
}

func (c *counter) read(name string) string {
	text, err := os.ReadFile(filepath.Join(c.root, filepath.FromSlash(name)))
	if err != nil {
		c.fail(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// specifications takes the counts that the ledger has written.
func (c *counter) specifications() {
	counts, err := spectest.Counts(c.read(spectest.Page))
	if err != nil {
		c.fail(fmt.Errorf("%s: %w", spectest.Page, err))
	}
	c.number("unified tests", counts[spectest.Total].Tests)
	c.number("unified passed", counts[spectest.Total].Passed)
	c.number("unified skipped", counts[spectest.Total].Skipped)
}

func (c *counter) requirements() {
	files, err := requirements.Load()
	if err != nil {
		c.fail(err)
	}
	var all requirements.Count
	deviations := 0
	for _, f := range files {
		all.Add(f.Count())
		deviations += len(f.Deviations)
	}
	c.number("texts", len(files))
	c.number("sentences", all.Rows)
	c.number("tested sentences", all.Tested)
	c.number("deviations", deviations)
	c.facts["texts commit"] = requirements.Commit[:9]
	breaks, err := requirements.Breaks()
	if err != nil {
		c.fail(err)
	}
	c.number("broken requirements", len(breaks))
}

// recordings counts the cases of a real server's replies; the page beside them says which server.
func (c *counter) recordings() {
	cases, known := 0, 0
	top := filepath.Join(c.root, "mongotest", "testdata", "golden")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "known" {
			for line := range strings.Lines(string(text)) {
				if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
					known++
				}
			}
			return nil
		}
		if strings.HasSuffix(path, ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return err
			}
			if text, err = io.ReadAll(r); err != nil {
				return err
			}
		} else if !strings.HasSuffix(path, ".json") {
			return nil
		}
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		cases += len(list)
		return nil
	})
	if err != nil {
		c.fail(err)
	}
	c.number("recorded cases", cases)
	c.number("recorded cases that differ", known)
	readme := c.read("mongotest/testdata/golden/README.md")
	m := regexp.MustCompile(`replies of a real MongoDB (([0-9]+\.[0-9]+)\.[0-9]+) `).FindStringSubmatch(readme)
	if m == nil {
		c.fail(errors.New("the recordings do not say what server they are of"))
		return
	}
	c.facts["recorded server"], c.facts["recorded series"] = m[1], m[2]
}

func (c *counter) servers() {
	all := mongotest.Versions()
	series := func(v string) string { return v[:strings.LastIndexByte(v, '.')] }
	first, last := all[0], all[len(all)-1]
	if len(series(first)) > len(series(last)) || series(first) > series(last) {
		first, last = last, first
	}
	c.facts["oldest simulated"], c.facts["newest simulated"] = series(first), series(last)
	c.number("simulated servers", len(all))
}

// tests counts functions of tests below the root, and those of one folder apart.
func (c *counter) tests() {
	declared := regexp.MustCompile(`(?m)^func (Test|Example|Fuzz)\w*\(`)
	count := map[string]int{}
	err := filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == ".git" || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			count[string(m[1])]++
			count[filepath.Base(filepath.Dir(path))+" "+string(m[1])]++
		}
		return err
	})
	if err != nil {
		c.fail(err)
	}
	c.number("fuzz targets", count["Fuzz"])
	c.number("hostile tests", count["hostile Test"])
}

// faults counts the rows of the tables of guarantees.
func (c *counter) faults() {
	page := c.read("docs/guarantees.md") + c.read("docs/callbacks.md")
	c.number("promises", rows(page, "| Promise | Test |"))
	c.number("faults", rows(page, "| Fault | "))
	c.number("places of code", rows(page, "| Code | "))
}

// rows counts the rows of the table whose head begins so.
func rows(page, head string) int {
	_, table, _ := strings.Cut(page, "\n"+head)
	n := -2 // the rest of the head, and the line below it
	for line := range strings.Lines(table) {
		if n >= -1 && !strings.HasPrefix(line, "|") {
			break
		}
		n++
	}
	return max(n, 0)
}

// elements counts what a list of a Go file has: the elements of the literal of a variable.
func (c *counter) elements(file, variable string) int {
	f, err := parser.ParseFile(token.NewFileSet(), file, c.read(file), parser.SkipObjectResolution)
	if err != nil {
		c.fail(err)
		return 0
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && spec.Names[0].Name == variable && len(spec.Values) == 1 {
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
				n = len(list.Elts)
			}
		}
		return n == 0
	})
	return n
}

func (c *counter) platforms() {
	_, list, _ := strings.Cut(c.read(".ci/targets"), "\nall=\"")
	list, _, _ = strings.Cut(list, `"`)
	c.number("platforms", len(strings.Fields(list)))
}

// dropin adds up the tests of the suites that docs/dropin.md lists, each of which must be one that
// the command runs.
func (c *counter) dropin() {
	source := c.read("dropin/cmd/accept/suites.go")
	_, list, _ := strings.Cut(c.read("docs/dropin.md"), "\n| Suite | Version of the driver | Tests |\n|---|---|---|\n")
	suites, tests := 0, 0
	row := regexp.MustCompile("^\\| .*`([\\w./-]+)` (v[0-9]\\S*) \\| [12] \\| ([0-9]+) \\|\n$")
	for line := range strings.Lines(list) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			break
		}
		if !strings.Contains(source, m[1]) || !strings.Contains(source, `"`+m[2]+`"`) {
			c.fail(errors.New("docs/dropin.md: the command accept has no suite " + m[1] + " " + m[2]))
		}
		n, _ := strconv.Atoi(m[3])
		suites, tests = suites+1, tests+n
	}
	if want := c.elements("dropin/cmd/accept/suites.go", "suites"); suites != want {
		c.fail(fmt.Errorf("docs/dropin.md has %d suites, the command accept %d", suites, want))
	}
	c.number("drop-in tests", tests)
}

// found is a fact that is written elsewhere, as the group of a pattern.
func (c *counter) found(name, file, pattern string) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(c.read(file))
	if m == nil {
		c.fail(fmt.Errorf("%s: %s has nothing like %s", name, file, pattern))
		return
	}
	c.facts[name] = m[1]
}

// measured takes from the tables of benchmarks what other pages say of them.
func (c *counter) measured() {
	c.found("go version", "go.mod", `(?m)^go ([0-9]+\.[0-9]+)`)
	c.found("server binary", "docs/serve.md", "\\| `allium serve` \\| [^|]*\\| [^|]*\\| ([0-9]+) MB,")
	const cell = `[^|]*\|`
	row := `(?m)^\| single/find one by _id \|` + strings.Repeat(cell, 6)
	c.found("allocations of a find", "docs/performance.md", row+` ([0-9]+) \|`)
	c.found("allocations of the official find", "docs/performance.md", row+cell+` ([0-9]+) \|`)
	// The least and the greatest ratio of raw documents, and of values.
	least, most := [2]float64{1e9, 1e9}, [2]float64{}
	for _, m := range regexp.MustCompile(
		`(?m)^\| bson/[^|]* (\w+) \|(?:[^|]*\|){4} ([0-9.]+) \|`).FindAllStringSubmatch(
		c.read("docs/performance-bson.md"), -1) {
		kind := 0
		if m[1] == "Raw" {
			kind = 1
		}
		ratio, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			c.fail(err)
		}
		least[kind], most[kind] = min(least[kind], ratio), max(most[kind], ratio)
	}
	c.facts["least ratio of values"], c.facts["most ratio of values"] = fmt.Sprintf("%.0f", least[0]),
		fmt.Sprintf("%.0f", most[0])
	c.facts["least ratio of raw documents"], c.facts["most ratio of raw documents"] = fmt.Sprintf("%.1f", least[1]),
		fmt.Sprintf("%.0f", most[1])
}

// limits takes from the source the times and bounds that are promised.
func (c *counter) limits() {
	for name, in := range map[string][3]string{
		"time to unwind":   {"internal/exec/unwind.go", "unwindTime", "Millisecond"},
		"time to drain":    {"internal/pool/pool.go", "drainTimeout", "Second"},
		"time to select":   {"internal/topology/topology.go", "DefaultSelectionTimeout", "Second"},
		"time to connect":  {"client.go", "defaultConnectTimeout", "Second"},
		"time to transact": {"transaction.go", "transactTimeout", "Second"},
		"longest backoff":  {"internal/exec/retry.go", "maxBackoff", "Second"},
	} {
		c.found(name, in[0], in[1]+` *= ([0-9]+) \* time\.`+in[2])
	}
	c.found("goroutines of a hostile server", "internal/hostile/world_test.go", `var usual = .*goroutines: ([0-9]+)`)
	c.found("megabytes of a hostile server", "internal/hostile/world_test.go",
		`var usual = .*allocated: ([0-9]+) << 20`)
	c.found("connections left of a hostile server", "internal/hostile/world_test.go", `var usual = .*live: ([0-9]+) \*`)
	c.found("trusted megabytes", "internal/conn/reader.go", `trustedSize = ([0-9]+)<<20`)
}
