package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMistakesAreFound wants each row of the table of mistakes in docs/vet.md to name where a test
// shows that the compiler, a rule of allium-vet or a strict test finds it: a file of the test, and
// a text that stands in it.
func TestMistakesAreFound(t *testing.T) {
	top := root(t)
	page, err := os.ReadFile(filepath.Join(top, "docs", "vet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| mistake | found by | shown in |\n|---|---|---|\n")
	if !ok {
		t.Fatal("there is no table")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	missing := []string{"wrong field", "operator", "another type", "deadline", "outer context", "keys whose order", "cleared", "index"}
	place := regexp.MustCompile("`([\\w/.-]+\\.go)`: `` ([^`]*(?:`[^`]+)*) ``")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		if len(cells) != 3 {
			t.Errorf("a row has %d cells: %s", len(cells), row)
			continue
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return strings.Contains(cells[0], m) })
		places := place.FindAllStringSubmatch(cells[2], -1)
		if len(places) == 0 {
			t.Errorf("a row does not say where a test shows it: %s", row)
		}
		for _, p := range places {
			text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(p[1])))
			if err != nil || !strings.Contains(string(text), p[2]) {
				t.Errorf("%s does not have %q, %v", p[1], p[2], err)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no row is about %q", missing)
	}
}
