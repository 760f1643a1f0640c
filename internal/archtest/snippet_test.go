package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	opened   = regexp.MustCompile(`^\s*(\w+), err :?= `)
	deferred = regexp.MustCompile(`^\s*defer (\w+)\.Close\(`)
)

// TestSnippets wants the Go code on the project's pages to look at the error of what it opens
// before it defers closing it.
func TestSnippets(t *testing.T) {
	top := root(t)
	pages, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range append(pages, docs...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range snippets(string(text)) {
			blocks++
			unchecked := map[string]bool{}
			for line := range strings.Lines(block) {
				if m := opened.FindStringSubmatch(line); m != nil {
					unchecked[m[1]] = true
				}
				if strings.Contains(line, "if err != nil") {
					clear(unchecked)
				}
				if m := deferred.FindStringSubmatch(line); m != nil && unchecked[m[1]] {
					t.Errorf("%s: %q stands before the error is looked at", filepath.Base(page), strings.TrimSpace(line))
				}
			}
		}
	}
	if blocks == 0 {
		t.Error("no snippets found: the test looks in the wrong place")
	}
}
