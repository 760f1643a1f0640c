package catalog

import (
	"strings"
	"testing"

	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/release"
)

// TestFeatures compares the table of features with the arguments of this package's commands: names
// that only one of them has decide nothing.
func TestFeatures(t *testing.T) {
	inTable := map[string]bool{}
	for _, f := range release.Features {
		if f.Kind == release.Argument && f.State != release.NotBuilt {
			for _, name := range strings.Fields(f.Names) {
				inTable[name] = true
			}
		}
	}
	for _, s := range []*idl.Struct{createStruct, renameStruct} {
		for field, f := range s.Fields {
			if name := s.Name + "." + field; f.Gated != inTable[name] {
				t.Errorf("%s: its parser asks for its versions: %t; the table of features has it: %t", name, f.Gated, inTable[name])
			}
		}
		for name := range inTable {
			if field, ours := strings.CutPrefix(name, s.Name+"."); ours {
				if _, known := s.Fields[field]; !known {
					t.Errorf("no parser knows the argument %s", name)
				}
			}
		}
	}
}
