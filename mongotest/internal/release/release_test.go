package release

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of features into docs/mongotest-versions.md")

// TestDocumented wants the table of features in docs/mongotest-versions.md as it is here. With
// -update it writes it there.
func TestDocumented(t *testing.T) {
	const file, begin, end = "../../../docs/mongotest-versions.md", "<!-- features -->\n", "<!-- end of features -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	before, rest, ok := strings.Cut(page, begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	if shown == markdown() {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the table of features: go test ./mongotest/internal/release -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+markdown()+end+after), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestHas(t *testing.T) {
	for _, tt := range []struct {
		version string
		kind    Kind
		name    string
		want    bool
	}{
		{"4.2", Command, "hello", true}, {"4.2.9", Command, "hello", false}, {"4.4.0", Command, "hello", false}, {"4.4.2", Command, "hello", true}, {"9.0", Command, "hello", true},
		{"4.4", Command, "bulkWrite", false}, {"8.0", Command, "bulkWrite", true}, {"4.2", Command, "find", true}, {"5.0", Command, "getLastError", true}, {"6.0", Command, "getLastError", false},
		{"8.2", QueryType, "prefixPreview", true}, {"9.0", QueryType, "prefixPreview", false}, {"8.0", Command, "moveCollection", true}, {"8.0", Command, "transitionToDedicatedConfigServer", false},
		{"6.0.16", Argument, "insert.bypassEmptyTsReplacement", false}, {"6.0.17", Argument, "insert.bypassEmptyTsReplacement", true}, {"8.1", Argument, "insert.bypassEmptyTsReplacement", true},
	} {
		v, err := ParseVersion(tt.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Has(tt.kind, tt.name); got != tt.want {
			t.Errorf("%s has %s: %t", tt.version, tt.name, got)
		}
	}
	if newest := (Version{}); !newest.Has(Stage, "$fill") || newest.Has(Command, "getLastError") || !newest.AtLeast(9, 9) {
		t.Error("the zero Version is not the newest")
	}
	if !At(8, 0, 0).Lacks(Command, "transitionToDedicatedConfigServer") || At(7, 0, 0).Lacks(Command, "transitionToDedicatedConfigServer") || At(8, 0, 0).Lacks(Command, "find") {
		t.Error("what is not built is not told from what a version does not have")
	}
}

// TestFeatures checks the table itself: no name has two rows for one version, and no bounds are the
// wrong way round.
func TestFeatures(t *testing.T) {
	for kind, names := range byName {
		for name, rows := range names {
			for _, v := range append(Versions(), At(4, 4, 0), At(5, 0, 0), At(6, 0, 0), At(7, 0, 0)) {
				n := 0
				for _, f := range rows {
					if f.In(v) {
						n++
					}
				}
				if n > 1 {
					t.Errorf("%s in %v is in %d rows for %v", name, Kind(kind), n, v)
				}
			}
			for _, f := range rows {
				if f.Since == (Version{}) && f.Until == (Version{}) || f.Until != (Version{}) && f.Since.AtLeastPatch(f.Until) && f.Since != (Version{}) {
					t.Errorf("%s in %v: from %v to %v", name, Kind(kind), f.Since, f.Until)
				}
			}
		}
	}
}
