package index

import (
	"strings"
	"testing"

	"allium/mongotest/internal/release"
)

// TestFeatures: there is every option that the table of features gives a version.
func TestFeatures(t *testing.T) {
	n := 0
	for _, f := range release.Features {
		if f.Kind != release.IndexOption {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			if n++; !Options[name] {
				t.Errorf("there is no index option %s", name)
			}
		}
	}
	if n == 0 {
		t.Error("the table of features has no options")
	}
}
