package args

import (
	"strings"
	"testing"

	"allium/mongotest/internal/release"
)

// TestFeatures compares the arguments of every command with the table of features: one that is
// gated by version in only one of them decides nothing.
func TestFeatures(t *testing.T) {
	inTable := map[string]bool{}
	for _, f := range release.Features {
		if f.Kind != release.Argument || f.State == release.NotBuilt {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			if !strings.Contains(name, ".") {
				inTable[name] = true
			}
		}
	}
	for name := range inTable {
		if !genericArgs[name].gated {
			t.Errorf("no parser asks in which versions there is the argument %s", name)
		}
	}
	for name, a := range genericArgs {
		if a.gated && !inTable[name] {
			t.Errorf("the table of features does not have the argument %s", name)
		}
	}
	if len(inTable) < 5 {
		t.Errorf("only %d names", len(inTable))
	}
}
