package server

import (
	"slices"
	"strings"
	"testing"

	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/release"
)

// structs are the tables of arguments, by what the table of features calls them.
func structs() map[string]*idl.Struct {
	all := map[string]*idl.Struct{}
	for _, s := range []*idl.Struct{ChangeStreamStruct} {
		all[s.Name] = s
	}
	return all
}

// elsewhere are commands whose tables of arguments are in other packages, with a test of the same
// kind: commands/catalog, commands/read and commands/write.
var elsewhere = map[string]bool{
	"create": true, "renameCollection": true, "aggregate": true, "count": true, "distinct": true,
	"insert": true, "update": true, "update.updates": true, "delete": true, "delete.deletes": true, "bulkWrite": true, "bulkWrite.nsInfo": true,
}

// byHand are arguments whose versions a command's own parser looks up.
var byHand = map[string]bool{
	"find.allowDiskUse": true, "find.encryptionInformation": true, "find.let": true, "findAndModify.bypassEmptyTsReplacement": true, "findAndModify.hint": true, "findAndModify.let": true,
	"setFeatureCompatibilityVersion.confirm": true, "$convert.format": true, "$filter.limit": true, "$out.timeseries": true,
}

// TestFeatures compares the table of features with what there is: names that nothing looks up, or
// that something looks up and the table does not have, decide nothing.
func TestFeatures(t *testing.T) {
	inTable := map[string]bool{}
	for _, f := range release.Features {
		for _, name := range strings.Fields(f.Names) {
			switch f.Kind {
			case release.Argument:
				inTable[name] = true
				of, field, ok := cutLast(name)
				gated := ok && structs()[of] != nil && structs()[of].Fields[field].Gated || !ok && slices.Contains(idl.GatedGenerics(), name)
				if f.State != release.NotBuilt && !gated && !byHand[name] && !elsewhere[of] {
					t.Errorf("no parser asks in which versions there is the argument %s", name)
				}
			case release.IndexOption:
				if !index.Options[name] {
					t.Errorf("there is no index option %s", name)
				}
			}
		}
	}
	for _, name := range idl.GatedGenerics() {
		if !inTable[name] {
			t.Errorf("the table of features does not have the argument %s", name)
		}
	}
	for _, s := range structs() {
		for field, f := range s.Fields {
			if f.Gated && !inTable[s.Name+"."+field] {
				t.Errorf("the table of features does not have the argument %s.%s", s.Name, field)
			}
		}
	}
}

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
