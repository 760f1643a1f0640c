package main

import (
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../.."

// The pages of the repository make a site in which every link leads somewhere, and nothing is
// loaded from elsewhere.
func TestSite(t *testing.T) {
	v := version{Name: "main", current: true, files: os.DirFS(root)}
	s, err := newSite(v, []version{v})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range s.check() {
		t.Error(problem)
	}
	loads := regexp.MustCompile(`(?i)(?:<(?:script|link|img|iframe|source|video|audio|object|embed|use|image)\b[^>]*\b(?:src|href|data|srcset)=["']?|@import\s+|url\(["']?)(?:https?:)?//[^\s"')]*`)
	links := 0
	for name, text := range s.files {
		if m := loads.Find(text); m != nil && name != "search.js" {
			t.Errorf("%s loads %s", name, m)
		}
		if regexp.MustCompile(`\b(fetch|XMLHttpRequest|WebSocket|sendBeacon)\b`).Match(text) && name == "site.js" {
			t.Errorf("%s asks for something", name)
		}
		links += strings.Count(string(text), "<a href=")
	}
	if len(s.pages) < 40 || links < 1000 {
		t.Errorf("%d pages and %d links, want more", len(s.pages), links)
	}
}

// Each page of the repository stands in the contents, once.
func TestContents(t *testing.T) {
	listed := map[string]int{}
	names := map[string]string{}
	for _, c := range contents {
		for _, p := range c.pages {
			if listed[p]++; listed[p] > 1 {
				t.Errorf("%s is there twice", p)
			}
			if other, ok := names[pageName(p)]; ok {
				t.Errorf("%s and %s are both %s", p, other, pageName(p))
			}
			names[pageName(p)] = p
			if _, err := os.Stat(filepath.Join(root, p)); err != nil {
				t.Error(err)
			}
		}
	}
	files := os.DirFS(root)
	for _, pattern := range []string{"docs/*.md", "*.md"} {
		pages, err := fs.Glob(files, pattern)
		if err != nil || len(pages) == 0 {
			t.Fatal(err)
		}
		for _, p := range pages {
			if listed[p] == 0 {
				t.Errorf("%s is on no page of the site: add it to contents", p)
			}
		}
	}
}

// small makes a site of documents by their paths.
func small(t *testing.T, documents map[string]string) (*site, error) {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range documents {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	v := version{Name: "main", files: files}
	return newSite(v, []version{v})
}

func TestDeadLinks(t *testing.T) {
	for text, want := range map[string]string{
		"[a](docs/guide.md)": "", "[a](docs/guide.md#two-words)": "", "[a](#readme)": "", "[a](https://example.com/x#y)": "", "[a](LICENSE)": "", "[a](docs)": "",
		"[a](docs/gone.md)":         "README.md: there is no missing/docs/gone.md",
		"[a](docs/guide.md#gone)":   `README.md: docs/guide.md has no section "gone"`,
		"[a](#gone)":                `README.md: README.md has no section "gone"`,
		"`[a](gone.md)`":            "",
		"<!-- [a](gone.md) -->":     "",
		"```\n[a](gone.md)\n```":    "",
		"[a](docs/guide.md#no-one)": "README.md: ",
	} {
		s, err := small(t, map[string]string{"README.md": "# Readme\n\n" + text + "\n", "docs/guide.md": "# Guide\n\n## Two words\n\n[home](../README.md#readme)\n", "LICENSE": "free"})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := s.check()
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

// What would be left out is an error.
func TestRefused(t *testing.T) {
	for _, text := range []string{"# A\n\n<b>bold</b>\n", "# A\n\n<details>\nx\n</details>\n", "no title\n", "# A\n\n![a](gone.svg)\n"} {
		if _, err := small(t, map[string]string{"README.md": text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Anchors are those of GitHub.
func TestIDs(t *testing.T) {
	s, err := small(t, map[string]string{"README.md": "# A `code` title: it's new, \"quoted\"\n\n## Same\n\n## Same\n\n## 1. No scheme\n\n## What's in `internal/x_y/`\n\n## [Link](a.md#b) and more\n\n## Ümlaut – dash\n"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range s.pages[0].headings {
		got = append(got, h.ID)
	}
	want := []string{"a-code-title-its-new-quoted", "same", "same-1", "1-no-scheme", "whats-in-internalx_y", "link-and-more", "ümlaut--dash"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Colours change no character of the code on any page.
func TestColour(t *testing.T) {
	tags := regexp.MustCompile(`</?span[^>]*>`)
	plainly := func(language, code string) {
		if got := html.UnescapeString(tags.ReplaceAllString(colour(language, code), "")); got != code {
			t.Errorf("of %q it makes %q", code, got)
		}
	}
	blocks := 0
	pages, _ := fs.Glob(os.DirFS(root), "docs/*.md")
	for _, name := range append(pages, "README.md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			for _, language := range []string{"go", "sh", m[1]} { // what is no Go, too
				plainly(language, m[2])
			}
		}
	}
	if blocks < 300 {
		t.Errorf("%d blocks, want more", blocks)
	}
	for _, code := range []string{"", "\"open", "`open", "/* open", "a < b && c // \"x\"\n...\n'", "x\r\n`a\r\nb`", "\x00ü"} {
		plainly("go", code)
	}
	if got := colour("go", `return "x" // 1`); got != `<span class="k">return</span> <span class="s">&#34;x&#34;</span> <span class="c">// 1</span>` {
		t.Error(got)
	}
}

// A search finds sections by their texts, comments and code included, without what is not shown.
func TestSearch(t *testing.T) {
	s, err := small(t, map[string]string{"README.md": "# Top\n\nfirst <!--n-->12 words\n\n## Below\n\n| a | b |\n|---|---|\n| c | `d` |\n\n```go\nx := 1\n```\n<!--rename:published\nhidden\n-->\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{{"Top", "Top", "index.html#top", "first 12 words"}, {"Top", "Below", "index.html#below", "a b c d x := 1"}}
	if got := s.pages[0].search; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// Versions with a tag have a tree of their own, the newest first, and lead to each other's page.
func TestVersions(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	write("docs/old.md", "# Old\n\n[gone](nowhere.md)\n") // what is out is out
	for _, tag := range []string{"v0.2.0", "v0.10.0", "v0.11.0-rc.1", "otel/v0.2.0"} {
		write("README.md", "# Allium\n\nof "+tag+"\n")
		run("add", "-A")
		run("commit", "-q", "-m", tag)
		run("tag", tag)
	}
	if err := os.Remove(filepath.Join(dir, "docs/old.md")); err != nil {
		t.Fatal(err)
	}
	write("README.md", "# Allium\n\nof today\n")
	write("docs/guide.md", "# Guide\n\nnew\n")
	out := filepath.Join(t.TempDir(), "site")
	if n, err := build(dir, out); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	for name, want := range map[string][]string{
		"index.html":         {"of today", `<option value="index.html" selected>main</option><option value="v0.10.0/index.html">v0.10.0</option><option value="v0.2.0/index.html">v0.2.0</option></select>`},
		"guide.html":         {"new", `value="guide.html" selected`, `value="v0.10.0/index.html"`},
		"v0.10.0/index.html": {"of v0.10.0", `value="../index.html"`, `value="../v0.10.0/index.html" selected`},
		"v0.2.0/old.html":    {"Old", `value="../v0.10.0/old.html"`, `value="../index.html"`},
		"v0.2.0/search.js":   {"of v0.2.0"},
		"v0.10.0/site.css":   {"--paper"},
	} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %s:\n%s", name, want, text)
			}
		}
	}
	if _, err := build(dir, out); err == nil {
		t.Error("a folder with a site is written over")
	}
	write("docs/guide.md", "# Guide\n\n[gone](nowhere.md)\n")
	if _, err := build(dir, filepath.Join(t.TempDir(), "site")); err == nil || !strings.Contains(err.Error(), "nowhere.md") {
		t.Errorf("a dead link: %v", err)
	}
}

func ExamplepageName() {
	for _, name := range []string{"README.md", "docs/guide.md", ".github/SUPPORT.md", "mongotest/DESIGN.md"} {
		fmt.Println(pageName(name))
	}
	// Output:
	// index.html
	// guide.html
	// support.html
	// mongotest-design.html
}
