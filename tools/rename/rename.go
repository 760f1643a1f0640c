package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rename gives the module in the folder dir, and the modules below it, another path. It returns the
// files that it changed, and changes none if one of them cannot be read or parsed.
func Rename(dir, to string) (changed []string, err error) {
	if err := checkPath(to); err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	from := modulePath(mod)
	if from == "" {
		return nil, fmt.Errorf("%s has no module line", filepath.Join(dir, "go.mod"))
	}
	r := &renamer{from: from, to: to, rewritten: map[string][]byte{}}
	files, err := r.walk(dir)
	if err != nil {
		return nil, err
	}
	r.prepare()
	for _, file := range files {
		if err := r.file(dir, file); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		content, ok := r.rewritten[file]
		if !ok {
			continue
		}
		path := filepath.Join(dir, file)
		info, err := os.Stat(path)
		if err == nil {
			err = os.WriteFile(path, content, info.Mode().Perm())
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, file)
	}
	return changed, nil
}

// modulePath returns the path in a go.mod, "" if there is none.
func modulePath(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`)
		}
	}
	return ""
}

type renamer struct {
	from, to  string
	folders   []string // of packages and modules, without the root
	mention   *regexp.Regexp
	rewritten map[string][]byte
}

// walk lists the files that may name the module, and the folders that can be named.
func (r *renamer) walk(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == ".git" || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() && rel != ".":
			r.folders = append(r.folders, filepath.ToSlash(rel))
		case d.Type().IsRegular() && (slices.Contains([]string{".go", ".mod", ".md"}, filepath.Ext(name)) ||
			strings.HasSuffix(name, ".go.golden")):
			files = append(files, rel)
		}
		return nil
	})
	return files, err
}

// prepare makes the pattern of a mention in a text: the module's path with that of a folder behind
// it, which nothing stands before that would make it part of another path. The path alone is the
// name of the driver, too, and stays.
func (r *renamer) prepare() {
	// Longer folders first: the first alternative that matches is taken.
	slices.SortFunc(r.folders, func(a, b string) int { return len(b) - len(a) })
	quoted := make([]string, len(r.folders))
	for i, folder := range r.folders {
		quoted[i] = regexp.QuoteMeta(folder)
	}
	r.mention = regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(r.from) + `/(` + strings.Join(quoted, "|") +
		`)([^\w/-]|$)`)
}

// text rewrites the mentions in a text.
func (r *renamer) text(s string) string {
	if len(r.folders) == 0 {
		return s
	}
	// Two mentions may share the character between them.
	for range 2 {
		s = r.mention.ReplaceAllString(s, "${1}"+strings.ReplaceAll(r.to, "$", "$$")+"/${2}${3}")
	}
	return s
}

func (r *renamer) file(dir, file string) error {
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	var out []byte
	switch filepath.Ext(file) {
	case ".mod":
		out = r.mod(content)
	case ".md":
		out = r.markdown(content)
	default:
		if out, err = r.source(file, content); err != nil {
			return err
		}
	}
	if !bytes.Equal(out, content) {
		r.rewritten[file] = out
	}
	return nil
}

// path returns the new path of a package or module, and whether it is one of these.
func (r *renamer) path(p string) (string, bool) {
	if p == r.from {
		return r.to, true
	}
	rest, ok := strings.CutPrefix(p, r.from+"/")
	return r.to + "/" + rest, ok
}

// known is path for a text that may not be about a package at all: only the module itself and the
// folders that there are count.
func (r *renamer) known(p string) (string, bool) {
	rest, ok := strings.CutPrefix(p, r.from+"/")
	if p != r.from && !(ok && slices.Contains(r.folders, rest)) {
		return p, false
	}
	return r.path(p)
}

// mod rewrites a go.mod line by line: its module, and what is required and replaced.
func (r *renamer) mod(content []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(content)) {
		code, comment, _ := strings.Cut(line, "//")
		for _, field := range strings.Fields(code) {
			if p, ok := r.path(field); ok {
				at := indexField(code, field)
				code = code[:at] + p + code[at+len(field):]
			}
		}
		b.WriteString(code)
		if len(code) < len(line) && strings.Contains(line, "//") {
			b.WriteString("//" + comment)
		}
	}
	return []byte(b.String())
}

// indexField returns where a field of a line begins.
func indexField(line, field string) int {
	for at := 0; ; {
		i := strings.Index(line[at:], field)
		if i < 0 {
			return -1
		}
		i += at
		end := i + len(field)
		before := i == 0 || line[i-1] == ' ' || line[i-1] == '\t'
		if after := end == len(line) || strings.ContainsRune(" \t\r\n", rune(line[end])); before && after {
			return i
		}
		at = end
	}
}

// alone is a line of an import declaration in a document.
var alone = regexp.MustCompile(`^(\s*(?:import\s+)?(?:[\w.]+\s+)?")([^"]+)("\s*)$`)

// install is what a document says for as long as nothing can be got, and behind it, in a comment,
// what it is to say afterwards, in which MODULE stands for the path.
var install = regexp.MustCompile(`(?s)<!--rename:unpublished-->\n.*?<!--rename:published\n(.*?)-->\n`)

// markdown rewrites the mentions in a document, and the imports in its blocks of code.
func (r *renamer) markdown(content []byte) []byte {
	content = install.ReplaceAllFunc(content, func(marked []byte) []byte {
		return bytes.ReplaceAll(install.FindSubmatch(marked)[1], []byte("MODULE"), []byte(r.to))
	})
	if strings.Contains(r.from, ".") { // no other word is the module's old path
		content = regexp.MustCompile(`(^|[^\w./-])`+regexp.QuoteMeta(r.from)+`([^\w-]|$)`).ReplaceAll(content,
			[]byte("${1}"+strings.ReplaceAll(r.to, "$", "$$")+"${2}"))
	}
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(r.text(string(content))) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if m := alone.FindStringSubmatch(line); fenced && m != nil {
			if p, ok := r.known(m[2]); ok {
				line = m[1] + p + m[3]
			}
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}

// constant is a declaration that holds the module's path, marked for this tool.
const constant = "//rename:module"

// source rewrites a Go file: its imports, what comments and strings mention, and the constants that
// are marked. Where a test writes programs into strings, their imports are rewritten as well.
func (r *renamer) source(file string, content []byte) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, content, parser.ParseComments)
	if err != nil {
		if strings.Contains(filepath.ToSlash(file), "testdata/") {
			return content, nil // it may be wrong on purpose
		}
		return nil, err
	}
	var edits []edit
	replace := func(n ast.Node, text string) {
		at, end := fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset
		if string(content[at:end]) != text {
			edits = append(edits, edit{at, end, text})
		}
	}
	imports := map[*ast.BasicLit]bool{}
	for _, spec := range f.Imports {
		imports[spec.Path] = true
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			if p, ok := r.path(p); ok {
				replace(spec.Path, strconv.Quote(p))
			}
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			replace(c, r.text(string(content[fset.Position(c.Pos()).Offset:fset.Position(c.End()).Offset])))
		}
	}
	marked := r.marked(fset, f)
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || imports[lit] {
			return true
		}
		text := string(content[fset.Position(lit.Pos()).Offset:fset.Position(lit.End()).Offset])
		switch p, _ := strconv.Unquote(text); {
		case marked[fset.Position(lit.Pos()).Line] && p == r.from:
			text = strconv.Quote(r.to)
		case strings.HasPrefix(text, "`") && strings.Contains(text, "\n"):
			text = r.program(text)
		default:
			text = r.text(text)
		}
		replace(lit, text)
		return true
	})
	if len(edits) == 0 {
		return content, nil
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.at - a.at })
	out := slices.Clone(content)
	for _, e := range edits {
		out = slices.Concat(out[:e.at], []byte(e.text), out[e.end:])
	}
	formatted, err := format.Source(out) // the order of imports may be another one
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return formatted, nil
}

type edit struct {
	at, end int
	text    string
}

// marked returns the lines of the constants that hold the module's path.
func (r *renamer) marked(fset *token.FileSet, f *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, constant) {
				lines[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	return lines
}

// program rewrites a text of several lines that may be a program or a go.mod.
func (r *renamer) program(s string) string {
	var b strings.Builder
	for line := range strings.Lines(r.text(s)) {
		if m := alone.FindStringSubmatch(line); m != nil {
			if p, ok := r.known(m[2]); ok {
				line = m[1] + p + m[3]
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
