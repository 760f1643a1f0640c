package query

import (
	"cmp"
	"testing"

	"allium/mongotest/internal/release"
)

// TestCollationLevels compares pairs of strings on the levels on which others' functional tests saw
// a server tell them apart, or not.
func TestCollationLevels(t *testing.T) {
	for _, q := range []struct {
		spec, a, b string
		want       int
	}{
		// What "shifted" ignores is told apart on the fourth level, and comes before letters there.
		{`{"locale": "en", "strength": 3, "alternate": "shifted"}`, "a-b", "ab", 0},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a-b", "ab", -1},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a_b", "a-b", -1},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a b", "a-b", -1},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "ab", "ab-", -1},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a-b", "ac", -1},
		{`{"locale": "en", "strength": 4}`, "ab", "a-b", 1},

		// What no level weighs makes no difference until the fifth.
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a\u200bb", "ab", 0},
		{`{"locale": "en", "strength": 4, "alternate": "shifted"}`, "a\ufeffb", "a\u200db", 0},
		{`{"locale": "en", "strength": 5, "alternate": "shifted"}`, "a\u200bb", "ab", 1},

		// A space that breaks no line is punctuation.
		{`{"locale": "en", "strength": 3, "alternate": "shifted", "maxVariable": "space"}`, "a b", "ab", 0},
		{`{"locale": "en", "strength": 3, "alternate": "shifted", "maxVariable": "space"}`, "a\u00a0b", "ab", -1},
		{`{"locale": "en", "strength": 3, "alternate": "shifted", "maxVariable": "punct"}`, "a\u00a0b", "ab", 0},

		// The syllabaries.
		{`{"locale": "ja", "strength": 3}`, "\u3042", "\u30a2", 0},
		{`{"locale": "ja", "strength": 4}`, "\u3042", "\u30a2", -1},
		{`{"locale": "ja", "strength": 4}`, "\u30a2", "\u3044", -1},

		// Numbers with zeros in front, which the fifth level compares as they are written.
		{`{"locale": "en", "numericOrdering": true}`, "007", "7", 0},
		{`{"locale": "en", "numericOrdering": true, "strength": 5}`, "007", "07", -1},
		{`{"locale": "en", "numericOrdering": true, "strength": 5}`, "07", "7", -1},
		{`{"locale": "en", "numericOrdering": true, "strength": 5}`, "10", "9", 1},
	} {
		c, err := ParseCollation(release.At(8, 2, 0), parseJSON(t, q.spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := cmp.Compare(c.CompareBytes([]byte(q.a), []byte(q.b)), 0); got != q.want {
			t.Errorf("%s: %+q and %+q compare %d, want %d", q.spec, q.a, q.b, got, q.want)
		}
		if got := cmp.Compare(c.CompareBytes([]byte(q.b), []byte(q.a)), 0); got != -q.want {
			t.Errorf("%s: %+q and %+q compare %d, want %d", q.spec, q.b, q.a, got, -q.want)
		}
	}
}
