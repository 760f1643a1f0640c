package jstests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The list is well-formed, says of each test what is known, and survives being written.
func TestList(t *testing.T) {
	rows, err := List()
	if err != nil {
		t.Fatal(err)
	}
	count := map[Verdict]int{}
	for _, r := range rows {
		count[r.Verdict]++
		if strings.HasPrefix(r.Reason, "?") {
			t.Errorf("%s: nobody has said why it does not pass: %s", r.File, r.Reason)
		}
	}
	if len(rows) < 1400 || count[Passes] < 900 {
		t.Errorf("%d rows, of which %d pass", len(rows), count[Passes])
	}
	name := filepath.Join(t.TempDir(), "list.txt")
	if err := Write(name, rows); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != list {
		t.Error("written anew, the list is another one: run the command with -update")
	}
}

func TestListRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"a.js standalone":                          "want file",
		"a.js cluster passes":                      "want standalone or replset",
		"a.js replset fails":                       "want passes, cannot or open",
		"a.js replset open":                        "a reason stands",
		"a.js replset passes now":                  "a reason stands",
		"b.js replset passes\na.js replset passes": "in order",
		"a.js replset passes\n\n# text\na.js standalone open later": "line 4",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
