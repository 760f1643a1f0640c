package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bridging is what the helpers of a package depend on besides their names.
type bridging struct {
	first    bool              // the program is written for version 1 of the official driver
	settings map[string]bool   // the BSONOptions of its client
	taken    map[string]string // other names for helpers whose names the package has already
}

// first reports whether a package uses version 1 of the official driver.
func (p *loaded) first() bool {
	for _, f := range p.files {
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if rest, ok := strings.CutPrefix(path, "go.mongodb.org/mongo-driver/"); ok &&
				!strings.HasPrefix(rest, "v2/") {
				return true
			}
		}
	}
	return false
}

// taken returns other names for the helpers whose names the package, or something in it, has.
func (p *loaded) taken(map[string]bool) map[string]string {
	if p.renamed == nil {
		p.renamed = map[string]string{}
		have := map[string]bool{}
		for id, obj := range p.info.Defs {
			if isHelperFile(p.fset.Position(id.Pos()).Filename) {
				continue
			}
			if v, ok := obj.(*types.Var); ok && v.IsField() {
				continue
			}
			if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
				continue
			}
			have[id.Name] = true
		}
		for _, name := range helperNames() {
			if have[name] {
				other := name + "AsBefore"
				for have[other] {
					other += "_"
				}
				p.renamed[name] = other
			}
		}
	}
	return p.renamed
}

// isHelperFile reports whether a file is one that the tool has made.
func isHelperFile(path string) bool {
	base := filepath.Base(path)
	return base == "allium_migrate.go" || base == "allium_migrate_test.go"
}

// keepHelpers adds the helpers that an earlier run has written.
func (p *loaded) keepHelpers(helpers map[string]bool) {
	for _, f := range p.files {
		if !isHelperFile(p.paths[f]) {
			continue
		}
		for name, source := range helperSources {
			first, _, _ := strings.Cut(declared.FindString(source), "(")
			if first != "" && bytes.Contains(p.source[f], []byte(first)) {
				helpers[name] = true
			}
		}
	}
}

var declared = regexp.MustCompile(`(?m)^(?:func|type|var) (\w+)`)

// helperNames returns all names that the helpers declare.
func helperNames() []string {
	var names []string
	for _, source := range helperSources {
		for _, m := range declared.FindAllStringSubmatch(source, -1) {
			names = append(names, m[1])
		}
	}
	return append(names, "asBefore", "asClient", "inheriting")
}

// helperFile returns the file with the helpers of a package.
func helperFile(pkg, module string, needed map[string]bool, how bridging) []byte {
	all := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if all[name] {
			return
		}
		all[name] = true
		for _, other := range helperUses[name] {
			add(other)
		}
	}
	for name := range needed {
		add(name)
	}
	sources := map[string]string{}
	for name := range all {
		if source := helperSources[name]; source != "" {
			sources[name] = source
		}
	}
	client := len(how.settings) > 0
	own := regexp.MustCompile(`\basBefore\b`)
	for name, source := range sources { // what comes from a client is decoded as the client is told to
		if client && fromClient[name] {
			sources[name] = own.ReplaceAllString(source, "asClient")
		}
	}
	uses := func(name string) bool {
		if all[name] {
			return true
		}
		for _, source := range sources {
			if regexp.MustCompile(`\b` + name + `\b`).MatchString(source) {
				return true
			}
		}
		return false
	}
	inherits := false
	for _, name := range []string{"asBefore", "asClient"} {
		if uses(name) {
			settings := map[string]bool{}
			if name == "asClient" {
				settings = how.settings
			}
			text, codecs := bsonOptions(name, how.first, settings)
			sources[name], inherits = text, inherits || codecs
		}
	}
	if inherits {
		sources["inheriting"] = inheritingSource
	}
	var body strings.Builder
	for _, name := range slices.Sorted(mapKeys(sources)) {
		body.WriteString("\n" + sources[name] + "\n")
	}
	var std, own2 []string
	for _, i := range []struct{ name, path string }{
		{"context", "context"}, {"errors", "errors"}, {"fmt", "fmt"}, {"maps", "maps"}, {"reflect", "reflect"},
		{"slices", "slices"}, {"strings", "strings"},
		{"allium", module}, {"bson", module + "/bson"}, {"mongoerr", module + "/mongoerr"},
	} {
		if !regexp.MustCompile(`(?m)^[^/\n]*\b` + i.name + `\.[A-Z]`).MatchString(body.String()) {
			continue
		}
		if strings.HasPrefix(i.path, module) {
			own2 = append(own2, "\t\""+i.path+"\"")
		} else {
			std = append(std, "\t\""+i.path+"\"")
		}
	}
	text := "// This file was made by allium-migrate. Inline what is in it, or remove it, as the program moves on.\n\npackage " + pkg + "\n"
	if len(std)+len(own2) > 0 {
		text += "\nimport (\n" + strings.Join(slices.Concat(std, []string{""}, own2), "\n") + "\n)\n"
	}
	out, err := format.Source(rename([]byte(text+body.String()), how.taken))
	if err != nil {
		panic(err) // the sources above are wrong
	}
	return out
}

// rename gives functions, types and variables of a file other names.
func rename(src []byte, names map[string]string) []byte {
	if len(names) == 0 {
		return src
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return src
	}
	keep := map[*ast.Ident]bool{} // methods, fields and what is selected
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			keep[n.Sel] = true
		case *ast.FuncDecl:
			if n.Recv != nil {
				keep[n.Name] = true
			}
		case *ast.Field:
			for _, name := range n.Names {
				keep[name] = true
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok {
				keep[id] = true
			}
		case *ast.Comment:
			return false
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !keep[id] && names[id.Name] != "" {
			id.Name = names[id.Name]
		}
		return true
	})
	var out bytes.Buffer
	if err := format.Node(&out, fset, f); err != nil {
		return src
	}
	return out.Bytes()
}
