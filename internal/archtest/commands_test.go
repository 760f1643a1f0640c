package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown is a command that a page shows.
type shown struct {
	dir, program string // the folder of -C, and what is run there: "./cmd/allium", or "test"
	words        []string
}

// goCommand matches what the go command runs or tests; what follows is cut off where a shell would,
// or where a page explains.
var goCommand = regexp.MustCompile(`\bgo (?:-C (\S+) )?(run|test) ([^\n|&;#…]*)`)

// commandsOf returns the commands of a page: those in quotes, and those in blocks.
func commandsOf(page string) (list []shown) {
	var code []string
	for i, block := range strings.Split(page, "```") {
		if i%2 == 1 {
			code = append(code, block)
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(block, -1) {
			code = append(code, strings.ReplaceAll(m[1], "\n", " "))
		}
	}
	for _, text := range code {
		for _, m := range goCommand.FindAllStringSubmatch(text, -1) {
			c := shown{dir: m[1], program: m[2], words: strings.Fields(m[3])}
			if m[2] == "run" && len(c.words) > 0 {
				c.program, c.words = c.words[0], c.words[1:]
			}
			list = append(list, c)
		}
	}
	return list
}

// sourceOf returns the text of the Go files of a folder, in which its flags stand.
func sourceOf(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

// ofGoTest are the flags of go test that pages use.
var ofGoTest = regexp.MustCompile(`^(args|bench|benchmem|benchtime|c|count|cpu|cpuprofile|exec|fuzz|fuzztime|json|o|overlay|p|race|run|short|skip|tags|timeout|v|vet)$`)

var flagOf = regexp.MustCompile(`^--?([a-z][a-zA-Z.-]*)(=.*)?$`)

// amiss returns what a command names and what is not there.
func (c shown) amiss(t *testing.T, top string, r tree) (problems []string) {
	at := filepath.Join(top, filepath.FromSlash(c.dir))
	if c.program != "test" {
		if !strings.HasPrefix(c.program, "./") && c.program != "." {
			return nil // a path of somebody else's
		}
		dir := filepath.Join(at, filepath.FromSlash(c.program))
		if _, err := os.Stat(dir); err != nil {
			return []string{"there is no " + c.program}
		}
		source := sourceOf(t, dir)
		for _, word := range c.words {
			if word == "go" || strings.HasPrefix(word, "bash") {
				break // a command for the command
			}
			if m := flagOf.FindStringSubmatch(word); m != nil && !strings.Contains(source, `"`+m[1]+`"`) {
				problems = append(problems, c.program+" has no flag "+word)
			}
		}
		return problems
	}
	for i, word := range c.words {
		path := strings.TrimSuffix(strings.TrimSuffix(word, "..."), "/")
		if strings.HasPrefix(word, "./") && !strings.ContainsAny(word, "*<") {
			if _, err := os.Stat(filepath.Join(at, filepath.FromSlash(path))); err != nil {
				problems = append(problems, "there is no "+word)
			}
		}
		if m := flagOf.FindStringSubmatch(word); m != nil && !ofGoTest.MatchString(m[1]) && !strings.Contains(m[1], ".") && m[1] != "update" {
			problems = append(problems, "go test has no flag "+word)
		}
		if i > 0 && c.words[i-1] == "-run" {
			name := strings.Trim(word, "'^$\"/")
			if regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`).MatchString(name) && !r.hasTest(name+"*") {
				problems = append(problems, "there is no test "+name)
			}
		}
	}
	return problems
}

// TestPagesNameCommands finds commands on pages whose package, flags or tests do not exist, and
// scripts of .ci that do not.
func TestPagesNameCommands(t *testing.T) {
	top := root(t)
	r := readTree(t)
	commands := 0
	for _, page := range pages(t) {
		if page.name == "history.md" {
			continue // what was, may be gone
		}
		for _, c := range commandsOf(page.text) {
			commands++
			for _, problem := range c.amiss(t, top, r) {
				t.Errorf("%s: %s", page.name, problem)
			}
		}
		for _, m := range regexp.MustCompile(`\bbash (\.ci/[\w-]+)`).FindAllStringSubmatch(page.text, -1) {
			if !r.paths[m[1]] {
				t.Errorf("%s: there is no %s", page.name, m[1])
			}
		}
	}
	if commands < 80 {
		t.Errorf("%d commands found, want more", commands)
	}
	for text, want := range map[string]int{
		"`go run ./cmd/allium serve --replset 1`": 0, "`go run ./cmd/allium serve --replicas 1`": 1, "`go run ./cmd/alium serve`": 1,
		"```\ngo test ./bson -run TestPagesNameCommands   # -x\n```": 0, "`go test ./bzon`": 1, "`go test ./bson -run TestOfNothing`": 1,
		"`go -C bench run ./cmd/compare -run bson`": 0, "`go -C bench run ./cmd/compare -ran bson`": 1, "`go test ./bson -benchmen`": 1,
	} {
		list := commandsOf(text)
		if len(list) != 1 || len(list[0].amiss(t, top, r)) != want {
			t.Errorf("%s: %+v, want %d amiss", text, list, want)
		}
	}
}

// TestPagesNameFiles finds files and folders of the repository in quotes on pages that do not
// exist. A name without its folder is one anywhere. A folder begins with one of the repository's.
func TestPagesNameFiles(t *testing.T) {
	r := readTree(t)
	anywhere, roots := map[string]bool{}, map[string]bool{}
	for p := range r.paths {
		if root, _, below := strings.Cut(p, "/"); below {
			roots[root] = true
		}
		for i := range p {
			if p[i] == '/' {
				anywhere[p[i+1:]] = true
			}
		}
		anywhere[p] = true
	}
	name := regexp.MustCompile(`^(?:[\w.-]+/)*\w[\w.-]*_?\w+\.(?:go|sh)$`)
	folder := regexp.MustCompile(`^[\w.-]+(?:/[\w.-]+)*/?$`)
	named := 0
	for _, page := range pages(t) {
		switch page.name {
		case "README.md", "trust.md", "specs.md", "guarantees.md", "tests.md", "tests-packages.md", "tests-mongotest.md":
		default:
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(page.text, -1) {
			root, _, below := strings.Cut(m[1], "/")
			if !name.MatchString(m[1]) && !(below && roots[root] && folder.MatchString(m[1])) {
				continue
			}
			named++
			if !anywhere[strings.TrimSuffix(m[1], "/")] {
				t.Errorf("%s: there is no %s", page.name, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("%d files are named, want more", named)
	}
}
