package commands

import (
	"slices"
	"strings"
	"testing"

	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
)

// TestFeatures compares the table of features with the commands that there are.
func TestFeatures(t *testing.T) {
	n := 0
	for _, f := range release.Features {
		if f.Kind != release.Command {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			n++
			if built := slices.Contains(server.CommandNames(), name); built != (f.State != release.NotBuilt) {
				t.Errorf("command %s is built: %t, and %v says the table", name, built, f.State)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names", n)
	}
}
