package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWorkflowsArePinned wants what a hosted workflow takes from elsewhere to be named by a commit:
// a tag or a branch can be moved to other code.
func TestWorkflowsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.y*ml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range unpinned(string(text)) {
			t.Errorf("%s: %q is not pinned to a commit", filepath.Base(file), line)
		}
	}
}

var (
	uses       = regexp.MustCompile(`(?m)^\s*-?\s*uses:\s*(\S+).*$`)
	repository = regexp.MustCompile(`(?m)^( *)repository:.*\n((?: *\w+:.*\n)*)`)
	commit     = regexp.MustCompile(`(^|@|ref: )[0-9a-f]{40}\b`)
)

// unpinned returns the lines of a workflow that name code without its commit.
func unpinned(text string) []string {
	var out []string
	for _, m := range uses.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "./") && !commit.MatchString(m[1]) {
			out = append(out, strings.TrimSpace(m[0]))
		}
	}
	for _, m := range repository.FindAllStringSubmatch(text, -1) {
		if !commit.MatchString(m[2]) {
			out = append(out, strings.TrimSpace(m[0]))
		}
	}
	return out
}

func TestWorkflowsArePinnedFinds(t *testing.T) {
	hash := strings.Repeat("0a", 20)
	for text, want := range map[string]int{
		"      - uses: actions/checkout@v4\n":                                                      1,
		"        uses: actions/checkout@" + hash + " # v4\n":                                       0,
		"        uses: ./local\n":                                                                  0,
		"          repository: a/b\n          path: c\n":                                           1,
		"          repository: a/b\n          ref: main\n":                                         1,
		"          repository: a/b\n          path: c\n          ref: " + hash + " # of today\n\n": 0,
	} {
		if got := unpinned(text); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
