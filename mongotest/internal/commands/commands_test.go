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
			if built := slices.ContainsFunc(server.Commands(), func(c *server.Command) bool { return c.Name == name }); built != (f.State != release.NotBuilt) {
				t.Errorf("command %s is built: %t, and %v says the table", name, built, f.State)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names", n)
	}
}

// tables are the structures whose tables of arguments are compared with the table of features by a
// test beside them.
var tables = map[string]bool{
	"$changeStream": true, "create": true, "collMod": true, "renameCollection": true, "aggregate": true, "count": true, "distinct": true, "find": true,
	"insert": true, "update": true, "update.updates": true, "delete": true, "delete.deletes": true, "bulkWrite": true, "bulkWrite.nsInfo": true,
	"findAndModify": true,
}

// byHand are arguments whose versions a command's own parser looks up.
var byHand = map[string]bool{
	"setFeatureCompatibilityVersion.confirm": true, "getParameter.setAt": true, "$convert.format": true, "$convert.byteOrder": true, "$convert.base": true, "$filter.limit": true, "$out.timeseries": true,
	"configureCollectionBalancing.enableAutoMerger": true, "configureCollectionBalancing.enableBalancing": true,
	"$filter.arrayIndexAs": true, "$map.arrayIndexAs": true, "$reduce.arrayIndexAs": true,
}

// TestArguments: an argument in the table of features that no parser looks up decides nothing.
func TestArguments(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range release.Features {
		if f.Kind != release.Argument || f.State == release.NotBuilt {
			continue
		}
		for _, name := range strings.Fields(f.Names) {
			seen[name] = true
			if i := strings.LastIndexByte(name, '.'); i >= 0 && !tables[name[:i]] && !byHand[name] {
				t.Errorf("no parser asks in which versions there is the argument %s", name)
			}
		}
	}
	for name := range byHand {
		if !seen[name] {
			t.Errorf("the table of features does not have the argument %s", name)
		}
	}
}
