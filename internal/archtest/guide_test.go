package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGuide wants every snippet of these pages to stand in code that a test runs, line by line: in
// an Example, or in the program of the guide.
func TestGuide(t *testing.T) {
	top := root(t)
	for page, sources := range map[string][]string{
		"guide.md":      {"examples/guide/*.go"},
		"fields.md":     {"field/example_test.go", "field/*/example_test.go"},
		"recipes.md":    {"example_recipes_test.go"},
		"scopes.md":     {"example_recipes_test.go"},
		"patterns.md":   {"patterns/*/example_test.go"},
		"production.md": {"example_*_test.go"},
		"encryption.md": {"encryption/example_test.go", "encryption/encryptiontest/example_test.go"},
	} {
		text, err := os.ReadFile(filepath.Join(top, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		var code []string
		for _, pattern := range sources {
			files, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v", pattern, err)
			}
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				code = append(code, trimmedLines(string(source))...)
			}
		}
		blocks := snippets(string(text))
		if len(blocks) == 0 {
			t.Errorf("%s has no snippets: the test looks in the wrong place", page)
		}
		for _, block := range blocks {
			if !stands(code, trimmedLines(block)) {
				t.Errorf("docs/%s: no code that is tested has the snippet\n%s", page, block)
			}
		}
	}
}

var step = regexp.MustCompile("(?m)^\\| `([\\w/]+\\.go)`, ([^|]*)\\|")

// TestTour wants every file and function that the tour leads to to be there.
func TestTour(t *testing.T) {
	top := root(t)
	page, err := os.ReadFile(filepath.Join(top, "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := step.FindAllStringSubmatch(string(page), -1)
	if len(steps) < 30 {
		t.Errorf("%d steps: the test looks in the wrong place", len(steps))
	}
	for _, m := range steps {
		source, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(m[1])))
		if err != nil {
			t.Errorf("docs/tour.md: %v", err)
			continue
		}
		for i, name := range strings.Split(m[2], "`") {
			if i%2 == 0 {
				continue // between two names
			}
			name = name[strings.LastIndexByte(name, '.')+1:]
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `[(\[]`).Match(source) {
				t.Errorf("docs/tour.md: %s has no function %s", m[1], name)
			}
		}
	}
}

// snippets returns the blocks of Go code on a page.
func snippets(page string) []string {
	var out []string
	for i, block := range strings.Split(page, "```go\n") {
		if i > 0 {
			block, _, _ = strings.Cut(block, "```")
			out = append(out, block)
		}
	}
	return out
}

// stands reports whether the lines follow each other somewhere in the code.
func stands(code, lines []string) bool {
	for i := range code {
		if i+len(lines) <= len(code) && slices.Equal(code[i:i+len(lines)], lines) {
			return true
		}
	}
	return false
}

// trimmedLines returns the lines of a text without indentation, and with single spaces: what gofmt
// aligns depends on the lines around.
func trimmedLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return out
}

// A snippet that differs from the code by a word is found.
func TestGuideFinds(t *testing.T) {
	code := trimmedLines("func f() {\n\ta := 1\n\tb := 2\n}\n")
	for block, want := range map[string]bool{"a := 1\nb := 2\n": true, "a := 1\nb := 3\n": false, "b := 2\na := 1\n": false, "}\n": true} {
		if stands(code, trimmedLines(block)) != want {
			t.Errorf("%q: want %v", block, want)
		}
	}
}
