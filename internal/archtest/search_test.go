package archtest

import (
	"strings"
	"testing"
)

// TestSearchIsLinkedByWhoSearches holds that mongotest's search, which brings the stemmers of many
// languages, is linked by the command and by who asks for it, not by mongotest.
func TestSearchIsLinkedByWhoSearches(t *testing.T) {
	const search = "mongotest/search"
	n := 0
	for pkg, imports := range packages(t) {
		for file, list := range imports {
			for _, imp := range list {
				rel, _ := inModule(imp)
				if rel != search && !strings.HasPrefix(rel, search+"/") {
					continue
				}
				n++
				if pkg != search && !strings.HasPrefix(pkg, search+"/") && pkg != "cmd/allium" {
					t.Errorf("%s imports %s", file, rel)
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("%d imports of %s, want more", n, search)
	}
}
