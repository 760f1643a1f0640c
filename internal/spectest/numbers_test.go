package spectest

import (
	"os"
	"strings"
	"testing"
)

// The counts on the page have names, and add up. That they are those of the tests is what the
// ledger's -page looks at.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../" + Page)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := Counts(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if c := counts[Total]; len(counts) < 25 || c.Tests < 7000 || c.Passed+c.Skipped != c.Tests {
		t.Errorf("%d counts, in all %+v", len(counts), c)
	}
	old := strings.ReplaceAll(string(page), "\r\n", "\n")
	if _, err := Rewrite(old, map[string]Count{"crud/tests/unified": {1, 1, 0}}); err == nil {
		t.Error("names without suites were written")
	}
}

func TestRewrite(t *testing.T) {
	const page = "all: `total` 3 of 4, 1 skipped\n| A | `crud` 1 of 1 | see `b` |\n| B | x; `sessions` 2 of 3, 1 skipped |\n"
	suites := map[string]Count{"crud/a": {5, 5, 0}, "crud/b": {1, 2, 1}, "sessions/tests": {3, 3, 0}}
	got, err := Rewrite(page, suites)
	want := "all: `total` 9 of 10, 1 skipped\n| A | `crud` 6 of 7, 1 skipped | see `b` |\n| B | x; `sessions` 3 of 3 |\n"
	if got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if again, err := Rewrite(got, suites); again != got || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	suites["sessions-more/tests"] = Count{1, 1, 0}
	if _, err := Rewrite(page, suites); err == nil {
		t.Error("a suite that the page does not count")
	}
}

func TestCountsRefuses(t *testing.T) {
	for page, want := range map[string]string{
		"`total` 2 of 2, `crud` 1 of 1":                                 "add up",
		"`total` 1 of 1 | `crud` 1 of 1; 7 of 9 |":                      "7 of 9",
		"`total` 1 of 1 | 2 of 3 | `crud` 1 of 1 |":                     "2 of 3",
		"`total` 2 of 2, `crud` 1 of 1, `crud` 1 of 1":                  "twice",
		"`total` 2 of 3, 1 skipped, `crud` 1 of 1, `gridfs` 1 of 2":     "add up",
		"`total` 2 of 2 | logging 1 of 1 | `crud` 1 of 1, `x` 1 of 1 |": "1 of 1",
	} {
		if got, err := Counts(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", page, got, err)
		}
	}
}
