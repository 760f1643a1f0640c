// Package idltest compares tables of arguments with the table of features, for tests.
package idltest

import (
	"strings"
	"testing"

	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/release"
)

// CompareFeatures fails for arguments that are gated by version in only one of the tables: these
// decide nothing.
func CompareFeatures(t *testing.T, structs ...*idl.Struct) {
	t.Helper()
	inTable := map[string]bool{}
	for _, f := range release.Features {
		if f.Kind == release.Argument && f.State != release.NotBuilt {
			for _, name := range strings.Fields(f.Names) {
				inTable[name] = true
			}
		}
	}
	for _, s := range structs {
		for field, f := range s.Fields {
			if name := s.Name + "." + field; f.Gated != inTable[name] {
				t.Errorf("%s: its parser asks for its versions: %t; the table of features has it: %t", name, f.Gated, inTable[name])
			}
		}
		for name := range inTable {
			if field, ours := strings.CutPrefix(name, s.Name+"."); ours && !strings.Contains(field, ".") {
				if _, known := s.Fields[field]; !known {
					t.Errorf("no parser knows the argument %s", name)
				}
			}
		}
	}
}
