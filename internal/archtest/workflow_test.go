package archtest

import (
	"os"
	"path"
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

// TestUpdatesOfDependencies wants the bot that updates dependencies to know of each module.
func TestUpdatesOfDependencies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)package-ecosystem: gomod\r?\n\s+directory: /(\S*)`).FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = true
	}
	modules := 0
	for file := range readTree(t).paths {
		if path.Base(file) != "go.mod" || strings.Contains(file, "testdata/") {
			continue
		}
		modules++
		dir := strings.TrimPrefix(path.Dir(file), ".")
		if !listed[dir] {
			t.Errorf(".github/dependabot.yml does not know of the module in /%s", dir)
		}
		delete(listed, dir)
	}
	for dir := range listed {
		t.Errorf(".github/dependabot.yml: there is no module in /%s", dir)
	}
	if modules < 8 {
		t.Errorf("%d modules found, want more", modules)
	}
}

// TestWorkflowsCallScripts finds scripts that a hosted workflow calls, and that are not there.
func TestWorkflowsCallScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*.y*ml"))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:bash|go run) (\.?/?[\w./-]+)`).FindAllStringSubmatch(string(text), -1) {
			calls++
			if _, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
	if calls < 6 {
		t.Errorf("%d calls found, want more", calls)
	}
}
