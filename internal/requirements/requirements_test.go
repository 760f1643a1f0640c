package requirements

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"allium/internal/patch"
	"allium/internal/spectest"
)

const top = "../.."

// TestRows holds the rows to the code: what they name exists. Parse sees to it that a row about the
// driver has tests.
func TestRows(t *testing.T) {
	files, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	source, err := ReadSource(top, spectest.Folder())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range source.Check(files) {
		t.Error(err)
	}
	if len(files) == 0 {
		t.Error("there are no files")
	}
}

// TestBreaks holds the breaks to the code: each can be made, once, and belongs to a row with tests.
func TestBreaks(t *testing.T) {
	files, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, f := range files {
		for _, r := range f.Rows {
			tested[r.ID] = len(r.Tests) > 0
		}
	}
	breaks, err := Breaks()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaks {
		if !tested[b.ID] {
			t.Errorf("%s: there is no such row, or it has no tests", b.ID)
		}
		text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(b.File)))
		if err != nil {
			t.Errorf("%s: %v", b.ID, err)
		} else if _, err := patch.Once(text, b.Old, b.New); err != nil {
			t.Errorf("%s: %s: %v: the code has changed, and so must the break", b.ID, b.File, err)
		}
		if b.Old == b.New {
			t.Errorf("%s changes nothing", b.ID)
		}
	}
}

const good = "spec A\ntext a/b.md\n\nsection One\nA-1 0123abcd behaviour | exec.run, exec.T | exec.TestA, json:a/b | our words\n" +
	"A-2 0123abcd~2 same | A-1 | | again\n"

func TestParse(t *testing.T) {
	f, err := Parse("a.txt", []byte(good))
	if err != nil || f.Spec != "A" || f.Text != "a/b.md" || len(f.Rows) != 2 || f.Lowercase {
		t.Fatalf("%+v, %v", f, err)
	}
	r := f.Rows[0]
	if r.ID != "A-1" || r.Section != "One" || r.Line != 5 || !slices.Equal(r.Where, []string{"exec.run", "exec.T"}) ||
		!slices.Equal(r.Tests, []string{"exec.TestA", "json:a/b"}) || r.Words != "our words" || !r.Applicable() {
		t.Errorf("%+v", r)
	}
	if c := f.Count(); c != (Count{Rows: 2, Tested: 1, Same: 1}) {
		t.Errorf("%+v", c)
	}
	for row, want := range map[string]string{
		"A-3 0123abcd other | | | x":                           "there already",
		"A-1 00000000 other | | | x":                           "there already",
		"A-3 0123 other | | | x":                               "no fingerprint",
		"a3 01234567 other | | | x":                            "no id",
		"A-3 01234567 thing | | | x":                           "none of the kinds",
		"A-3 01234567 other | | x":                             "three bars",
		"A-3 01234567 | | | x":                                 "begins with id",
		"A-3 01234567 other | | |":                             "no words",
		"A-3 01234567 behaviour | | exec.TestA | x":            "what decides",
		"A-3 01234567 behaviour | exec.run | | x":              "no test",
		"A-3 01234567 api | exec.run | | x":                    "no test",
		"A-3 01234567 same | exec.run | | x":                   "one row",
		" A-3 01234567 other | | | x":                          "begins with a space",
		">> A sentence of theirs.\nA-3 01234567 other | | | x": "three bars",
	} {
		if _, err := Parse("a.txt", []byte(good+row+"\n")); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.txt:") {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
	if _, err := Parse("a.txt", []byte("spec A\n")); err == nil {
		t.Error("a file without a text")
	}
}

// Each row in which the driver differs is one of a deviation's, and nothing else is.
func TestDeviations(t *testing.T) {
	const differs = good + "A-3 01234567 differs | | | x\n"
	f, err := Parse("a.txt", []byte("changed 2020-02-03\ndeviation A-3 | what | why\ndeviation | more | why\n"+differs))
	want := []Deviation{{[]string{"A-3"}, "what", "why"}, {nil, "more", "why"}}
	if err != nil || !reflect.DeepEqual(f.Deviations, want) || f.Changed != "2020-02-03" {
		t.Errorf("%+v, %v", f, err)
	}
	for _, bad := range []string{"", "deviation A-3 | what\n", "deviation A-3 | | why\n", "deviation A-3 | what | why\ndeviation A-3 | what | why\n",
		"deviation A-1, A-3 | what | why\n", "deviation A-3, A-9 | what | why\n"} {
		if f, err := Parse("a.txt", []byte(bad+differs)); err == nil {
			t.Errorf("%q: %+v", bad, f)
		}
	}
}

// The pages are what the data says.
func TestPage(t *testing.T) {
	files, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, print := range pages {
		page, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		want, err := fillPage(string(page), print(sorted(files)))
		if err != nil {
			t.Fatal(err)
		}
		if want != strings.ReplaceAll(string(page), "\r\n", "\n") {
			t.Errorf("%s is not what the data says: go run ./internal/requirements/cmd/trace -page", name)
		}
	}
	for _, f := range files {
		if !strings.Contains(printedTexts(files), "["+f.Spec+"](") {
			t.Errorf("the pages lack %s", f.Spec)
		}
	}
	if _, err := fillPage("no mark", ""); err == nil {
		t.Error("a page without the mark")
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range pages {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte("before\n"+pageMark+"old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := WritePages(root, files[:1]); err != nil {
		t.Fatal(err)
	}
	for name, print := range pages {
		got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if want := "before\n" + pageMark + print(files[:1]); string(got) != want || err != nil {
			t.Errorf("%s: %.200s, %v", name, got, err)
		}
	}
}

// The workflow tests with the texts that the rows are made of.
func TestWorkflowHasTheCommit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, ".github", "workflows", "ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	refs := regexp.MustCompile(`repository: mongodb/specifications\s+ref: (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(refs) == 0 {
		t.Error("the workflow does not fetch the texts")
	}
	for _, m := range refs {
		if m[1] != Commit {
			t.Errorf("the workflow fetches %s, the rows are of %s", m[1], Commit)
		}
	}
	if !strings.Contains(string(text), "cmd/trace -texts testdata/specifications") {
		t.Error("the workflow does not compare the texts with the rows")
	}
}

// A draw is the same for the same seed, another one for another, and nearly the same when rows
// come or go.
func TestDraw(t *testing.T) {
	files, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	ids := func(rows []Row) (list []string) {
		for _, r := range rows {
			if r.Kind != Behaviour {
				t.Errorf("%s is no behaviour", r.ID)
			}
			list = append(list, r.ID)
		}
		return list
	}
	first := ids(Draw(files, 100, 1))
	if again := ids(Draw(files, 100, 1)); len(first) != 100 || !slices.Equal(first, again) {
		t.Errorf("%q, then %q", first, again)
	}
	common := func(other []string) (n int) {
		for _, id := range other {
			if slices.Contains(first, id) {
				n++
			}
		}
		return n
	}
	if n := common(ids(Draw(files, 100, 2))); n > 50 {
		t.Errorf("another seed has %d rows in common", n)
	}
	if n := common(ids(Draw(files[:len(files)*9/10], 100, 1))); n < 50 {
		t.Errorf("without a tenth of the files there are %d rows in common", n)
	}
	if all := Draw(files, 1<<20, 1); len(all) < 1000 {
		t.Errorf("%d rows in all", len(all))
	}
}

func TestChanged(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "## Changelog\n\n- 2024-01-02: a\n- 2025-03-04: b\n- 2023-12-31: c\n": "2025-03-04", "## Part\n\n2030-01-01\n": "", "## Change Log\n\n- v1\n": "",
	} {
		if got := Changed(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzParse parses anything: an error names its line, and what is accepted keeps the rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("a.txt", text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, r := range file.Rows {
			if r.Applicable() && len(r.Tests) == 0 || seen[r.ID] || r.Words == "" {
				t.Errorf("%+v", r)
			}
			seen[r.ID] = true
		}
	})
}

const markdown = `# Title

The key words "MUST" and "SHOULD" are to be interpreted as described in [RFC 2119](https://x.y/z).

## First ` + "`part`" + `

A driver MUST do this, e.g. with ` + "`it`" + `. It may do
that. It SHOULD
do [one more](#thing) (see below)! Must it?

- An item that MUST
  go on.
    1. Another, which MUST NOT.

| Name | What |
| --- | --- |
| a | SHOULD be, or not. MUST be. |

` + "```go" + `
code := MUST // no
// A comment that MUST
// be read.
x()
` + "```" + `

Under
-----

It MUST do this, e.g. with it.

It MUST do this, e.g. with it.

## Changelog

- 2024: it MUST once.
`

func TestSentences(t *testing.T) {
	var got []string
	prints := map[string]bool{}
	for _, s := range Sentences(markdown, false) {
		got = append(got, s.Section+": "+s.Text)
		if prints[s.Print] || !printForm.MatchString(s.Print) {
			t.Errorf("fingerprint %s of %q", s.Print, s.Text)
		}
		prints[s.Print] = true
	}
	want := []string{
		"First part: A driver MUST do this, e.g. with it.",
		"First part: It SHOULD do one more (see below)!",
		"First part: An item that MUST go on.",
		"First part: Another, which MUST NOT.",
		"First part: SHOULD be, or not.",
		"First part: MUST be.",
		"First part: A comment that MUST be read.",
		"Under: It MUST do this, e.g. with it.",
		"Under: It MUST do this, e.g. with it.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(Sentences(markdown, true)); n != len(want)+1 {
		t.Errorf("in lower case, %d", n)
	}
	if a, b := Sentences("It MUST `be` so.", false), Sentences("It **MUST** be\nso.", false); a[0].Print != b[0].Print {
		t.Error("markup counts")
	}
	if a, b := Sentences("It MUST be so.", false), Sentences("It MUST be thus.", false); a[0].Print == b[0].Print {
		t.Error("words do not count")
	}
	rst := "Head\n====\n\nIt MUST be `so <http://x.y>`_::\n\n    It MUST not be read\n\nAgain it MUST.\n"
	if s := Sentences(rst, false); len(s) != 2 || s[1].Text != "Again it MUST." || s[0].Section != "Head" {
		t.Errorf("%+v", s)
	}
}

// FuzzSentences reads anything as a text: the sentences bind, and reading is deterministic.
func FuzzSentences(f *testing.F) {
	f.Add(markdown)
	f.Fuzz(func(t *testing.T, text string) {
		first := Sentences(text, false)
		if second := Sentences(text, false); !slices.Equal(first, second) {
			t.Error("reading twice gives two results")
		}
		for _, s := range first {
			if !binding.MatchString(s.Text) {
				t.Errorf("%q does not bind", s.Text)
			}
		}
	})
}

// TestCompare tells apart what is new, changed and gone.
func TestCompare(t *testing.T) {
	rows := func(prints ...string) (list []Row) {
		for _, p := range prints {
			list = append(list, Row{ID: p, Print: p})
		}
		return list
	}
	sentences := func(prints ...string) (list []Sentence) {
		for _, p := range prints {
			list = append(list, Sentence{Text: p, Print: p})
		}
		return list
	}
	for _, tc := range []struct {
		rows      []Row
		sentences []Sentence
		want      string
	}{
		{rows("a", "b"), sentences("a", "b"), ""},
		{rows("a", "b"), sentences("a", "x", "b"), "+x"},
		{rows("a", "b", "c"), sentences("a", "c"), "-b"},
		{rows("a", "b", "c"), sentences("a", "x", "c"), "b>x"},
		{rows("a", "b", "c"), sentences("a", "x", "y", "c"), "b>x +y"},
		{rows("a", "b", "c", "d"), sentences("a", "x", "d"), "b>x -c"},
		{rows("a", "b"), nil, "-a -b"},
		{nil, sentences("a"), "+a"},
		{rows("a", "b", "c"), sentences("c", "a", "b"), ""},
	} {
		var got []string
		for _, c := range Compare(tc.rows, tc.sentences) {
			switch {
			case c.Row == nil:
				got = append(got, "+"+c.Sentence.Print)
			case c.Sentence == nil:
				got = append(got, "-"+c.Row.ID)
			default:
				got = append(got, c.Row.ID+">"+c.Sentence.Print)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%v against %v: %q, want %q", tc.rows, tc.sentences, s, tc.want)
		}
	}
}

// TestSource finds declarations by the end of their package's path, and says what is wrong with a
// name.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go":              "package p\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}\nfunc (t T[K]) N() {}\nvar x, y int\nfunc f() {}\n",
		"a_test.go":         "package p\nfunc TestRoot() {}\n",
		"in/q/b.go":         "package q\nfunc f() {}\nfunc g() {}\n",
		"other/go.mod":      "module other\n",
		"other/q/b.go":      "package q\nfunc g() {}\nfunc only() {}\n",
		"other/q/b_test.go": "package q\nfunc TestQ() {}\n",
		"on/q/b.go":         "package q\nfunc f() {}\n",
		"on/q/b_test.go":    "package q\nfunc TestQ() {}\nfunc helper() {}\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	specs := t.TempDir()
	os.MkdirAll(filepath.Join(specs, "source", "crud", "tests"), 0o755)
	os.WriteFile(filepath.Join(specs, "source", "crud", "tests", "find.json"), nil, 0o644)
	s, err := ReadSource(dir, specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"allium.(*T).M", "allium.T.N", "allium.T", "allium.y", "allium.f", "q.g", "in/q.f", "q.only", "other/q.g"} {
		if err := s.Declared(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"q.f", "allium.g", "nowhere.f", "allium.TestRoot", "allium.(*T).N"} {
		if s.Declared(name) == nil {
			t.Errorf("%s was found", name)
		}
	}
	for _, name := range []string{"allium.TestRoot", "q.TestQ", "on/q.TestQ#a case", "json:crud/find"} {
		if err := s.Tested(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"q.helper", "q.TestNone", "json:crud/found", "json:find", "in/q.TestQ"} {
		if s.Tested(name) == nil {
			t.Errorf("%s was found", name)
		}
	}
	if pkg, err := s.Package("q.TestQ"); pkg != "./on/q" || err != nil {
		t.Errorf("%s, %v", pkg, err)
	}
	if pkg, err := s.Package("allium.TestRoot"); pkg != "." || err != nil {
		t.Errorf("%s, %v", pkg, err)
	}
	if _, err := ReadSource(specs, ""); err == nil {
		t.Error("a folder without Go files")
	}
}

func TestParseBreaks(t *testing.T) {
	const one = "A-1 a/b.go\n- x\\n\\ty\n+ z\n\n"
	list, err := parseBreaks("a.txt", []byte(one+"A-2 c.go\n- x\n+\n"))
	if want := []Break{{"A-1", "a/b.go", "x\n\ty", "z"}, {"A-2", "c.go", "x", ""}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%q, %v", list, err)
	}
	for _, bad := range []string{"A-1\n", "A-1 b.go\n+ x\n", "A-1 b.go\n- x\n- y\n", "A-1 b.go\n- x\n", "A-1 b.go\n- \n+ x\n"} {
		if _, err := parseBreaks("a.txt", []byte(one+bad)); err == nil || !strings.HasPrefix(err.Error(), "a.txt") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
