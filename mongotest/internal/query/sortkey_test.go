package query

import (
	"strings"
	"testing"
)

// TestSortKey compares with what a real server showed, and with ICU's rules for counted weights.
func TestSortKey(t *testing.T) {
	for _, c := range []struct {
		collation, text, want string
	}{
		{`{"locale":"en","strength":2}`, "x", "W\x01\x05"},
		{`{"locale":"en","strength":2}`, "Point", "GE9CO\x01\x09"},
		{`{"locale":"en","strength":2}`, "nosuch", "CEMQ-7\x01\x0a"},
		{`{"locale":"en","strength":1}`, "aZ", ")["},
		{`{"locale":"en"}`, "ab", ")+\x01\x06\x01\x06"},
		{`{"locale":"en"}`, "aB", ")+\x01\x06\x01\xc5\xdc"},
		{`{"locale":"en","strength":2}`, strings.Repeat("a", 34), strings.Repeat(")", 34) + "\x01\x25\x05"},
		{`{"locale":"en","strength":2}`, "a1", ""},
		{`{"locale":"sv","strength":2}`, "a", ""},
		{`{"locale":"en","caseLevel":true}`, "a", ""},
	} {
		coll, err := ParseCollation(v44, parseJSON(t, c.collation))
		if err != nil {
			t.Fatal(err)
		}
		if key, ok := coll.SortKey(c.text); string(key) != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s %s: %q %v, want %q", c.collation, c.text, key, ok, c.want)
		}
	}
}
