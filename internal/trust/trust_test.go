package trust

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// The numbers on the pages are those of the source, and docs/trust.md, docs/guarantees.md and
// README.md have no others.
func TestPages(t *testing.T) {
	facts, err := Facts(root)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Runs()
	if err != nil || len(runs) < 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.ReplaceAll(string(text), "\r\n", "\n")
		want, err := fillAll(page, facts, runs)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
		} else if want != page {
			t.Errorf("%s has other numbers than the source: go run ./internal/trust/cmd/trust", filepath.Base(name))
			for i, line := range strings.Split(want, "\n") {
				if old := strings.Split(page, "\n"); i < len(old) && old[i] != line {
					t.Errorf("line %d: %s\nwant: %s", i+1, old[i], line)
				}
			}
		}
		for _, m := range marked.FindAllStringSubmatch(page, -1) {
			told[m[1]] = true
		}
		if base := filepath.Base(name); base == "trust.md" || base == "README.md" || base == "guarantees.md" {
			for _, line := range loose(page) {
				t.Errorf("%s: a number that no fact is about: %s", base, line)
			}
		}
	}
	for name := range facts {
		if !told[name] {
			t.Errorf("no page tells the fact %q", name)
		}
	}
}

// The commands on docs/trust.md are there: their packages, their tests and their scripts.
func TestCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "trust.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	grep := exec.Command("git", "grep", "-h", "-E", "^func (Test|Fuzz|Example)", "--", "*_test.go")
	grep.Dir, grep.Stdout = root, &tests
	if err := grep.Run(); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, m := range regexp.MustCompile("`((?:go|bash) [^`]*)`").FindAllStringSubmatch(string(text), -1) {
		commands++
		words := strings.Fields(m[1])
		at := root
		for i, word := range words {
			switch {
			case words[max(i-1, 0)] == "-C":
				at = filepath.Join(root, word)
			case strings.HasPrefix(word, "./") || strings.HasPrefix(word, ".ci/"):
				if _, err := os.Stat(filepath.Join(at, strings.TrimSuffix(word, "/..."))); err != nil {
					t.Errorf("%s: %v", m[1], err)
				}
			case words[max(i-1, 0)] == "-run":
				if !strings.Contains(tests.String(), "func "+strings.Trim(word, "'^$")) {
					t.Errorf("%s: there is no such test", m[1])
				}
			}
		}
	}
	if commands < 12 {
		t.Errorf("%d commands found, want more", commands)
	}
}

func TestFill(t *testing.T) {
	facts := map[string]string{"fuzz targets": "1,079", "server": "4.4.0", "commit": "92b3c0b92"}
	got, err := Fill("a <!--fuzz targets-->7, b <!--server-->4.2. c <!--commit-->abc0 d", facts)
	if want := "a <!--fuzz targets-->1,079, b <!--server-->4.4.0. c <!--commit-->92b3c0b92 d"; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := Fill("<!--nothing-->7", facts); err == nil {
		t.Error("a fact that nobody knows")
	}
}

func TestLoose(t *testing.T) {
	page := "one <!--a-->12 of them\n12 more\n`x -n 3` and [a link](a.md#4)\n```\nrun 7\n```\nthen 5\nsince `5.0`\n" + runsBegin + "| 9 |\n" + runsEnd + "at the end\n"
	if got := loose(page); !slices.Equal(got, []string{"12 more", "then 5", "since `5.0`"}) {
		t.Errorf("%q", got)
	}
}

func TestRows(t *testing.T) {
	page := "\n| Fault | Test |\n|---|---|\n| a | b |\n| c | d |\n\n| e | f |\n"
	if n := rows(page, "| Fault | "); n != 2 {
		t.Error(n)
	}
	if n := rows(page, "| Nothing |"); n != 0 {
		t.Error(n)
	}
}

func TestRunsRefuse(t *testing.T) {
	for _, text := range []string{"a | b | c", "a | b | c | d | many | 1 | x", "a | b | c | d | 1,000 | none | x"} {
		if _, err := parseRuns(text); err == nil {
			t.Errorf("%q is no run", text)
		}
	}
	if list, err := parseRuns("# a\n\na | b | c | d | 1,000 | 2 | –\n"); len(list) != 1 || err != nil {
		t.Error(list, err)
	}
}

// loose returns the lines of a page with a number that no fact is about. What stands in quotes of
// code and in the targets of links is no number of the page's own, unless the code is nothing but a
// number: quotes make no fact of it.
func loose(page string) []string {
	page = marked.ReplaceAllString(page, "")
	before, rest, ok := strings.Cut(page, runsBegin)
	if ok {
		_, after, _ := strings.Cut(rest, runsEnd)
		page = before + after
	}
	var out []string
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && regexp.MustCompile(`[0-9]`).MatchString(aside.ReplaceAllString(line, "")) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// aside is code, the target of a link, or a name with a number, within a line.
var aside = regexp.MustCompile("`[^`]*[^`0-9.,][^`]*`|\\]\\([^)]*\\)|X\\.509|SOCKS5|Apache-2\\.0")
