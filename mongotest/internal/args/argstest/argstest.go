// Package argstest compares tables of arguments with the table of features, for tests.
package argstest

import (
	"strings"
	"testing"

	"allium/mongotest/internal/release"
)

// Table is a table of arguments.
type Table interface {
	Gates() (name string, gated map[string]bool)
}

// CompareFeatures fails for arguments that are gated by version in only one of the tables: these
// decide nothing.
func CompareFeatures(t *testing.T, tables ...Table) {
	t.Helper()
	inTable := map[string]bool{}
	for _, f := range release.Features {
		if f.Kind == release.Argument && f.State != release.NotBuilt {
			for _, name := range strings.Fields(f.Names) {
				inTable[name] = true
			}
		}
	}
	for _, s := range tables {
		within, fields := s.Gates()
		for field, gated := range fields {
			if name := within + "." + field; gated != inTable[name] {
				t.Errorf("%s: its parser asks for its versions: %t; the table of features has it: %t", name, gated,
					inTable[name])
			}
		}
		for name := range inTable {
			if field, ours := strings.CutPrefix(name, within+"."); ours && !strings.Contains(field, ".") {
				if _, known := fields[field]; !known {
					t.Errorf("no parser knows the argument %s", name)
				}
			}
		}
	}
}
