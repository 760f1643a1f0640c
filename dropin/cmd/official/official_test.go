package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCut cuts a file of tests against a package: what uses an unexported name of it, or one that
// it has not, goes, and all that uses that; the rest stays, in its lines.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "p.go")
	const driver = "package p\n\nfunc Public() int { return hidden() }\nfunc hidden() int { return 1 }\n"
	if err := os.WriteFile(base, []byte(driver), 0o644); err != nil {
		t.Fatal(err)
	}
	const source = `package p

type T struct{ N int }

type whole int

func (whole) Keep() int { return Public() }

type crippled int

func (crippled) Keep() int { return 1 }
func (crippled) Lost() int { return hidden() }

func helper(t T) int { return missing(t) }

func TestPublic(t T)   { _ = Public() + whole(0).Keep() }
func TestHidden(t T)   { _ = hidden() }
func TestMissing(t T)  { _ = helper(t) }
func TestCrippled(t T) { _ = crippled(0).Keep() }
`
	tt := &tested{name: "p", sources: map[string][]byte{"p_test.go": []byte(source)}, cut: map[string]string{}}
	m := &module{exports: map[string]string{}}
	if err := m.cut(tt, []string{base}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tt.tests, []string{"TestPublic"}) {
		t.Errorf("kept %v, want TestPublic", tt.tests)
	}
	for _, name := range []string{"TestHidden", "TestMissing", "TestCrippled"} {
		if tt.cut[name] == "" {
			t.Errorf("%s is not among those cut: %v", name, tt.cut)
		}
	}
	left := string(tt.sources["p_test.go"])
	if strings.Count(left, "\n") != strings.Count(source, "\n") {
		t.Error("lines have moved")
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for name, src := range map[string]any{base: nil, "p_test.go": left} {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if _, err := new(types.Config).Check("p", fset, files, nil); err != nil {
		t.Errorf("what is left: %v\n%s", err, left)
	}
}

// TestReplace compares rows with a list.
func TestReplace(t *testing.T) {
	old := list{{"p", "TestA", passes, ""}, {"p", "TestB", fails, "why"}, {"q", "TestC", passes, ""}}
	for _, c := range []struct {
		name string
		rows []row
		same bool
		then string
	}{
		{"the same", []row{{"p", "TestA", passes, ""}, {"p", "TestB", fails, ""}}, true, "why"},
		{"one more", []row{{"p", "TestA", passes, ""}, {"p", "TestB", fails, ""}, {"p", "TestD", passes, ""}}, false, "why"},
		{"one less", []row{{"p", "TestB", fails, ""}}, false, "why"},
		{"passes now", []row{{"p", "TestA", passes, ""}, {"p", "TestB", passes, ""}}, false, ""},
		{"fails now", []row{{"p", "TestA", fails, ""}, {"p", "TestB", fails, ""}}, false, "why"},
	} {
		l := slices.Clone(old)
		if same := l.replace("p", c.rows, false); same != c.same {
			t.Errorf("%s: as listed: %v", c.name, same)
		}
		i := slices.IndexFunc(l, func(r row) bool { return r.test == "TestB" })
		if i < 0 || l[i].reason != c.then || !slices.Contains(l, old[2]) {
			t.Errorf("%s: the list is %v", c.name, l)
		}
	}
}

// TestLists reads the lists as they are: each failure has its reason.
func TestLists(t *testing.T) {
	for _, v := range versions {
		l, err := readList(filepath.Join("testdata", v.name+".txt"))
		if err != nil || len(l) == 0 {
			t.Fatalf("%s: %d rows, %v", v.name, len(l), err)
		}
		for _, r := range l {
			if r.outcome != passes && (r.reason == "" || r.reason == unexplained) {
				t.Errorf("%s: %s %s %s, and no reason", v.name, r.pkg, r.test, r.outcome)
			}
		}
	}
}
