package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known are the packages that snippets name besides those of the driver.
var known = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "os": "os", "slog": "log/slog", "strings": "strings",
	"testing": "testing", "synctest": "testing/synctest", "time": "time", "tls": "crypto/tls", "bytes": "bytes", "log": "log",
}

// left out of a snippet, for the reader to fill in
var ellipsis = regexp.MustCompile(`(?m)(^|[\s({])\.\.\.([\s)}]|$)`)

var qualified = regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`)

// forgiven are what a snippet may do and a program may not: use what stands before it on its page,
// leave out what a reader knows, return from a function that is not shown.
var forgiven = regexp.MustCompile(`^(undefined: \w+$|declared and not used|missing return|not enough return values|too many return values|"[^"]*" imported( as \w+)? and not used$)`)

// TestSnippetsCompile wants the Go code on the project's pages to be what the compiler takes, given
// what it does not show: packages have what it names, and calls have the arguments that it gives.
// The pages of errors have code that is wrong on purpose, which internal/mistakes runs.
func TestSnippetsCompile(t *testing.T) {
	top := root(t)
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(top, "README.md"))
	pages = slices.DeleteFunc(pages, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "errors") })

	from := map[string]string{}
	needs := map[string]bool{}
	for name, imp := range known {
		from[name], needs[imp] = imp, true
	}
	for _, pkg := range public(t) {
		imp := path.Join(module, pkg)
		from[path.Base(imp)], needs[imp] = imp, true
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exported(t, top, needs))
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range snippets(string(text)) {
			blocks++
			for _, problem := range compile(fset, imports, from, block) {
				t.Errorf("%s: %s\n%s", filepath.Base(page), problem, block)
			}
		}
	}
	if blocks < 40 {
		t.Errorf("%d snippets: the test looks in the wrong place", blocks)
	}
	for block, want := range map[string]string{
		"x := 1\nreturn x\n": "", "client, err := allium.Open(uri)\n": "", "allium.Opne(uri)\n": "undefined: allium.Opne",
		"allium.Open(1)\n": "cannot use 1", "client, _ := allium.Open(uri); client.Ping()\n": "not enough arguments", "if {\n": "missing condition",
	} {
		if got := compile(fset, imports, from, block); want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.Contains(got[0], want)) {
			t.Errorf("of %q it says %q, want %q", block, got, want)
		}
	}
}

// iterates reports whether a name in a block is a cursor's or a change stream's.
func iterates(block, name string) bool {
	for _, method := range []string{"Next", "Seq", "Current", "ResumeToken"} {
		if strings.Contains(block, name+"."+method+"(") {
			return true
		}
	}
	return false
}

// compile returns what is wrong with a snippet.
func compile(fset *token.FileSet, imports types.Importer, from map[string]string, block string) []string {
	block = ellipsis.ReplaceAllString(block, "$1$2")
	if _, rest, ok := strings.Cut(block, "import (\n"); ok {
		_, block, _ = strings.Cut(rest, ")\n")
	}
	var b strings.Builder
	b.WriteString("package p\nimport context \"context\"\n")
	seen := map[string]bool{"context": true}
	for _, m := range qualified.FindAllStringSubmatch(block, -1) {
		// A change stream is called as the package of that name: its methods tell.
		if imp, ok := from[m[1]]; ok && !seen[imp] && !iterates(block, m[1]) {
			seen[imp] = true
			fmt.Fprintf(&b, "import %s %q\n", m[1], imp)
		}
	}
	if strings.HasPrefix(block, "func ") {
		b.WriteString(block)
	} else {
		// What is open at its end, the reader closes.
		open := strings.Count(block, "{") - strings.Count(block, "}") + 1
		closing := strings.Repeat("}", max(open, 1))
		if strings.Count(block, "(")-strings.Count(block, ")") > 0 {
			closing = "})\n" + strings.Repeat("}", max(open-1, 1))
		}
		b.WriteString("func _(ctx context.Context) {\n" + block + "\n" + closing + "\n")
	}
	f, err := parser.ParseFile(fset, "", b.String(), parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	conf := types.Config{Importer: imports, Error: func(err error) {
		if msg := err.(types.Error).Msg; !forgiven.MatchString(msg) {
			out = append(out, msg)
		}
	}}
	_, _ = conf.Check("p", fset, []*ast.File{f}, nil)
	return out
}
