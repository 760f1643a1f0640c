package campaign

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the pages of guarantees and campaigns name exists, and every row of a promise or
// fault names one.
func TestGuarantees(t *testing.T) {
	var page []byte
	for _, name := range []string{"guarantees", "callbacks", "campaigns", "campaign-log"} {
		text, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Example)\\w+)`")
	rows := 0
	head := "" // of the table
	for line := range strings.Lines(string(page)) {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			if !there[m[1]] {
				t.Errorf("there is no test %s", m[1])
			}
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			head = ""
		case head == "":
			head = line
		case strings.Contains(head, "Test |") && !strings.HasPrefix(line, "|---"):
			rows++
			if !named.MatchString(line) {
				t.Errorf("a row names no test: %s", line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows found, want more", rows)
	}
}
