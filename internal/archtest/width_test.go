package archtest

import (
	"bytes"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxComment is the width of a comment line, with four columns for a tab.
const maxComment = 100

// TestCommentWidth looks at the comments that have their lines to themselves. What an example
// prints is as wide as it is.
func TestCommentWidth(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(root(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		checked++
		for _, line := range wideLines(t, path) {
			t.Errorf("%s:%d: a comment line has at most %d columns", path, line, maxComment)
		}
		return nil
	})
	if err != nil || checked < 500 {
		t.Errorf("%d files checked, %v", checked, err)
	}
}

// wideLines returns the lines of a file with comments that are too wide.
func wideLines(t *testing.T, path string) (wide []int) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, group := range f.Comments {
		if strings.Contains(strings.ToLower(group.Text()), "output:") {
			continue
		}
		for _, c := range group.List {
			first := files.Position(c.Pos()).Line
			for i := range strings.Count(c.Text, "\n") + 1 {
				// Under the path that the module is published under, lines may be longer.
				line := strings.ReplaceAll(lines[first+i-1], module+"/", "allium/")
				comment := strings.HasPrefix(strings.TrimLeft(line, "\t"), "//") || i > 0
				columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
				if comment && columns > maxComment && !strings.HasPrefix(c.Text, "//go:") {
					wide = append(wide, first+i)
				}
			}
		}
	}
	return wide
}

// A comment of 101 columns is found, and code of any width with a comment behind it is not.
func TestCommentWidthFinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.go")
	text := "package x\n\n// " + strings.Repeat("a", 98) + "\nvar a = 1\n\n// " + strings.Repeat("a", 97) +
		"\nvar b = 1 // " + strings.Repeat("b", 120) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := wideLines(t, path); len(got) != 1 || got[0] != 3 {
		t.Errorf("lines %v", got)
	}
}

// maxCode is how wide a line of code may be, a tab counting four columns. A long text stands on one
// line, as who looks for it would type it.
const maxCode = 120

func TestCodeWidth(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(root(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.HasPrefix(text, []byte("// Code generated")) {
			return err
		}
		checked++
		for _, line := range wideCode(text) {
			t.Errorf("%s:%d: a line of code has at most %d columns", path, line, maxCode)
		}
		return err
	})
	if err != nil || checked < 500 {
		t.Errorf("%d files checked, %v", checked, err)
	}
}

// wideCode returns the lines that are too wide, and without a long text on them.
func wideCode(text []byte) (wide []int) {
	const long = 40
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	texts := map[int]bool{} // lines with a long text
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok != token.STRING || len(literal) < long {
			continue
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			texts[first+i] = true
		}
	}
	for i, line := range strings.Split(string(text), "\n") {
		// Under the path that the module is published under, lines may be longer.
		line = strings.ReplaceAll(line, module+"/", "allium/")
		if utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > maxCode && !texts[i+1] {
			wide = append(wide, i+1)
		}
	}
	return wide
}

func TestCodeWidthFinds(t *testing.T) {
	name := strings.Repeat("a", 118)
	text := "package x\n\nvar _ = " + name + "\n\n\tf(" + name[:114] + ")\n\tf(" + name[:113] + ")\nvar s = \"" + name + "\"\nvar r = `\n" + name + name + "`\n"
	if got := wideCode([]byte(text)); !slices.Equal(got, []int{3, 5}) {
		t.Errorf("lines %v", got)
	}
}
