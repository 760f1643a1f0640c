package main

import (
	"cmp"
	"fmt"
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

// official matches the packages of the official driver, with what comes behind the version.
var official = regexp.MustCompile(`^go\.mongodb\.org/mongo-driver(?:/v2)?/(.*)$`)

// where returns the package of the official driver that a path is, "" if it is none, without the
// driver's own path: "mongo", "bson/primitive".
func where(path string) string {
	if m := official.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}

// rewriter rewrites one file.
type rewriter struct {
	*loaded
	module  string
	file    *ast.File
	src     []byte
	stats   *statistics
	helpers map[string]bool // that the package needs
	imports map[string]bool // packages of Allium and the standard library that are used now
	names   map[string]string
	notes   map[int][]string // comments, by the offset of the statement that they stand before
	parents map[ast.Node]ast.Node
	// pointers are the results of writes that are used as pointers.
	pointers map[types.Object]bool
	defined  map[types.Object]bool // variables that are declared by an assignment of a call
	// settings are how the program's client encodes and decodes, nil if it has no such options.
	settings map[string]bool
	told     *notices
}

// rewrite returns the new contents of the files of a package that use the official driver.
func rewrite(p *loaded, module string, settings map[string]bool, stats *statistics, told *notices) map[string][]byte {
	out := map[string][]byte{}
	helpers := map[string]bool{}
	p.keepHelpers(helpers)
	had := len(helpers)
	dir := ""
	for _, f := range p.files {
		uses := false
		for _, spec := range f.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			uses = uses || where(path) != "" || isContainer(path)
		}
		if !uses {
			continue
		}
		dir = filepath.Dir(p.paths[f])
		r := &rewriter{loaded: p, module: module, file: f, src: p.source[f], stats: stats, helpers: helpers,
			imports: map[string]bool{}, notes: map[int][]string{}, parents: map[ast.Node]ast.Node{},
			pointers: map[types.Object]bool{}, settings: settings, told: told}
		out[p.paths[f]] = r.run()
	}
	if len(helpers) > had {
		file := "allium_migrate.go"
		if slices.ContainsFunc(p.files, func(f *ast.File) bool { return strings.HasSuffix(p.paths[f], "_test.go") }) &&
			strings.HasSuffix(p.name, "_test") {
			file = "allium_migrate_test.go"
		}
		out[filepath.Join(dir, file)] = helperFile(p.name, module, helpers,
			bridging{first: p.first(), settings: settings, taken: p.taken(helpers)})
	}
	return out
}

func (r *rewriter) run() []byte {
	var stack []ast.Node
	ast.Inspect(r.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			r.parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	r.names = map[string]string{}
	for _, spec := range r.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil {
			r.names[path] = spec.Name.Name
		}
	}
	r.findPointers()
	body := r.text(r.file)
	// Comments are put before the statements by markers that no program holds.
	return r.finish(body)
}

// offset returns where a position is in the source.
func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }

// raw returns the source of a node.
func (r *rewriter) raw(n ast.Node) string { return string(r.src[r.offset(n.Pos()):r.offset(n.End())]) }

// text returns the source of a node with everything in it rewritten.
func (r *rewriter) text(n ast.Node) string {
	type edit struct {
		at, end int
		text    string
	}
	var edits []edit
	ast.Inspect(n, func(c ast.Node) bool {
		if c == nil {
			return true
		}
		if _, ok := c.(*ast.ImportSpec); ok {
			return false
		}
		if s, ok := r.node(c); ok {
			edits = append(edits, edit{r.offset(c.Pos()), r.offset(c.End()), s})
			return false
		}
		return true
	})
	start, end := r.offset(n.Pos()), r.offset(n.End())
	if n == ast.Node(r.file) {
		start, end = 0, len(r.src)
	}
	// A comment goes where its statement begins, into the text of what holds the statement.
	for at, texts := range r.notes {
		inside := slices.ContainsFunc(edits, func(e edit) bool { return e.at < at && at < e.end })
		if at <= start && start > 0 || at >= end || inside {
			continue
		}
		edits = append(edits, edit{at, at, "// allium-migrate: " + strings.Join(texts, "\n// allium-migrate: ") + "\n"})
		delete(r.notes, at)
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.end, b.end))
	})
	var b strings.Builder
	for _, e := range edits {
		b.Write(r.src[start:e.at])
		b.WriteString(e.text)
		start = e.end
	}
	b.Write(r.src[start:end])
	return b.String()
}

// args returns the arguments of a call, rewritten.
func (r *rewriter) args(call *ast.CallExpr) []string {
	var out []string
	for _, a := range call.Args {
		out = append(out, r.text(a))
	}
	return out
}

// use notes that a package of Allium is used and returns its name.
func (r *rewriter) use(pkg string) string {
	r.imports[pkg] = true
	if i := strings.LastIndexByte(pkg, '/'); i >= 0 {
		return pkg[i+1:]
	}
	return pkg
}

// help notes that a helper is used and returns its name.
func (r *rewriter) help(name string) string {
	r.helpers[name] = true
	return r.named(name)
}

// named returns the name that something in a helper has in this package.
func (r *rewriter) named(name string) string { return cmp.Or(r.taken(nil)[name], name) }

// done counts something that was rewritten.
func (r *rewriter) done(s string) (string, bool) {
	r.stats.rewritten++
	return s, true
}

// leave puts a comment before the statement that holds n, and leaves n as it is.
func (r *rewriter) leave(n ast.Node, advice string) {
	r.stats.left++
	var stmt ast.Node = n
	for c := n; c != nil; c = r.parents[c] {
		switch p := r.parents[c].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.File:
			stmt = c
			c = nil
		case *ast.FieldList:
			if _, ok := r.parents[p].(*ast.StructType); ok {
				stmt = c
				c = nil
			}
		}
		if c == nil {
			break
		}
	}
	at := r.offset(stmt.Pos())
	if d, ok := stmt.(*ast.FuncDecl); ok && d.Doc != nil {
		at = r.offset(d.Pos())
	}
	if !slices.Contains(r.notes[at], advice) {
		r.notes[at] = append(r.notes[at], advice)
	}
}

// object returns the package, the type that it is a method of, and the name that an expression
// refers to, if that is the official driver's.
func (r *rewriter) object(e ast.Expr) (pkg, recv, name string) {
	var id *ast.Ident
	switch e := e.(type) {
	case *ast.SelectorExpr:
		id = e.Sel
	case *ast.Ident:
		id = e
	case *ast.IndexExpr:
		return r.object(e.X)
	default:
		return "", "", ""
	}
	obj := r.info.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return "", "", ""
	}
	pkg = where(obj.Pkg().Path())
	if pkg == "" && isContainer(obj.Pkg().Path()) {
		pkg = "container"
	}
	if pkg == "" {
		return "", "", ""
	}
	if f, ok := obj.(*types.Func); ok {
		if sig := f.Signature(); sig.Recv() != nil {
			recv = typeName(sig.Recv().Type())
		}
	}
	if s, ok := e.(*ast.SelectorExpr); ok && recv == "" {
		if sel := r.info.Selections[s]; sel != nil && sel.Kind() == types.FieldVal {
			recv = typeName(sel.Recv())
		}
	}
	return pkg, recv, obj.Name()
}

// typeName returns the name of a type without its package and pointers.
func typeName(t types.Type) string {
	for {
		switch u := t.(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Alias:
			t = types.Unalias(u)
		case *types.Named:
			return u.Obj().Name()
		default:
			return ""
		}
	}
}

// officialType returns the package and name of an official type that an expression has.
func (r *rewriter) officialType(e ast.Expr) (pkg, name string) {
	t := r.info.TypeOf(e)
	for {
		switch u := t.(type) {
		case *types.Pointer:
			t = u.Elem()
			continue
		case *types.Alias:
			t = types.Unalias(u)
			continue
		case *types.Named:
			if u.Obj().Pkg() != nil {
				return where(u.Obj().Pkg().Path()), u.Obj().Name()
			}
		}
		return "", ""
	}
}

// findPointers finds the variables that hold results of writes and are used otherwise than by their
// fields.
func (r *rewriter) findPointers() {
	ast.Inspect(r.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		obj := r.info.Uses[id]
		if obj == nil || r.info.Uses[id] == nil {
			return true
		}
		if _, isVar := obj.(*types.Var); !isVar || !results[typeName(obj.Type())] {
			return true
		}
		if sel, ok := r.parents[id].(*ast.SelectorExpr); ok && sel.X == id {
			return true
		}
		if a, ok := r.parents[id].(*ast.AssignStmt); ok && slices.Contains(a.Lhs, ast.Expr(id)) {
			return true
		}
		r.pointers[obj] = true
		return true
	})
}

// results are the types of what writes return.
var results = map[string]bool{"InsertOneResult": true, "InsertManyResult": true, "UpdateResult": true,
	"DeleteResult": true, "BulkWriteResult": true}

// finish adds comments and imports and formats the file.
func (r *rewriter) finish(body string) []byte {
	body = dropUnused(r.importLines(body))
	body = dropImports(body, r.packageNames())
	out, err := format.Source([]byte(body))
	if err != nil {
		r.errors = append(r.errors, fmt.Errorf("%s: the rewritten file does not parse: %w", r.paths[r.file], err))
		return []byte(body)
	}
	return out
}

// packageNames returns the names of the packages that the program imports, by path.
func (r *rewriter) packageNames() map[string]string {
	names := map[string]string{}
	for _, spec := range r.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if p := r.info.PkgNameOf(spec); p != nil {
			names[path] = p.Name()
		}
	}
	return names
}

// importLines replaces the imports of the official driver by those that are used now.
func (r *rewriter) importLines(body string) string {
	var lines []string
	removed := regexp.MustCompile(
		`(?m)^(\s*)(import\s+)?(?:[\w.]+\s+)?"(go\.mongodb\.org/mongo-driver[^"]*|github\.com/testcontainers/testcontainers-go(?:/modules/mongodb)?)"[ \t]*(//.*)?\n`)
	body = removed.ReplaceAllStringFunc(body, func(line string) string {
		m := removed.FindStringSubmatch(line)
		name := strings.TrimSuffix(m[3][strings.LastIndexByte(m[3], '/')+1:], "-go")
		spec := r.names[m[3]]
		if spec != "" && spec != "_" && spec != "." {
			name = spec
		}
		if m[3] == "go.mongodb.org/mongo-driver/v2" || stillUsed(body, name) && !r.isTaken(name) {
			return line
		}
		return ""
	})
	std, own := []string{}, []string{}
	for _, pkg := range slices.Sorted(mapKeys(r.imports)) {
		path := pkg
		if pkg == "allium" {
			path = r.module
		} else if rest, ok := strings.CutPrefix(pkg, "allium/"); ok {
			path = r.module + "/" + rest
		}
		line := "\t" + strconv.Quote(path)
		if regexp.MustCompile(`(?m)^\s*(import\s+)?` + regexp.QuoteMeta(strconv.Quote(path)) +
			`\s*$`).MatchString(body) {
			continue
		}
		if strings.HasPrefix(pkg, "allium") {
			own = append(own, line)
		} else {
			std = append(std, line)
		}
	}
	lines = append(std, own...)
	if len(std) > 0 && len(own) > 0 {
		lines = slices.Concat(std, []string{""}, own)
	}
	body = regexp.MustCompile(`(?m)^import \(\s*\)\n`).ReplaceAllString(body, "")
	if len(lines) == 0 {
		return body
	}
	block := "import (\n" + strings.Join(lines, "\n") + "\n)\n"
	if loc := regexp.MustCompile(`(?m)^import \(\n`).FindStringIndex(body); loc != nil {
		insert := strings.Join(std, "\n")
		if len(std) > 0 {
			insert += "\n"
		}
		end := strings.Index(body[loc[1]:], "\n)") + loc[1]
		body = body[:loc[1]] + insert + body[loc[1]:end] + "\n\n" + strings.Join(own, "\n") + body[end:]
		return body
	}
	at := strings.Index(body, "\n") // after the package clause
	if m := regexp.MustCompile(`(?m)^package \w+.*\n`).FindStringIndex(body); m != nil {
		at = m[1]
	}
	return body[:at] + "\n" + block + body[at:]
}

// isTaken reports whether a name is now that of a package of Allium.
func (r *rewriter) isTaken(name string) bool {
	return name == "bson" && r.imports["allium/bson"] || name == "event" && r.imports["allium/event"]
}

// stillUsed reports whether a package is named in a program.
func stillUsed(body, name string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", body, parser.SkipObjectResolution)
	if err != nil {
		return true
	}
	used := false
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			used = used || ok && id.Name == name && ast.IsExported(sel.Sel.Name)
		}
		return !used
	})
	return used
}
