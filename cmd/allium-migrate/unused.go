package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// What a rewritten call needs no more (the context and the image of a container) leaves
// variables and imports behind that nothing uses, and with them the program would not compile.

// dropUnused removes the local variables of a file that nothing uses. Before it was rewritten the
// file had none. What a variable was made of stays if it does something.
func dropUnused(src string) string {
	for { // what a variable was made of may have been the last use of another one
		next, changed := dropUnusedOnce(src)
		if !changed || next == src {
			return src
		}
		src = next
	}
}

// sourceEdit replaces src[at:end].
type sourceEdit struct {
	at, end int
	text    string
}

func applyEdits(src string, edits []sourceEdit) string {
	slices.SortFunc(edits, func(a, b sourceEdit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.at < at {
			continue // inside of what was removed
		}
		b.WriteString(src[at:e.at])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(src[at:])
	return b.String()
}

func dropUnusedOnce(src string) (string, bool) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return src, false // finish reports it
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// Other files and packages are not looked at: which variable a name stands for needs none of
	// them.
	config := types.Config{Error: func(error) {}, Importer: noPackages{}, FakeImportC: true}
	config.Check("p", fset, []*ast.File{f}, info)

	parents, assigned := assignments(f)
	used := map[types.Object]bool{}
	sets := map[types.Object][]*ast.Ident{} // assignments, which are no uses
	for id, obj := range info.Uses {
		if assigned[id] {
			sets[obj] = append(sets[obj], id)
		} else {
			used[obj] = true
		}
	}
	unused := func(e ast.Expr) types.Object {
		id, ok := e.(*ast.Ident)
		if !ok || id.Name == "_" {
			return nil
		}
		if v, ok := info.Defs[id].(*types.Var); ok && !used[v] {
			return v
		}
		return nil
	}
	var edits []sourceEdit
	blank := func(id ast.Node) {
		edits = append(edits, sourceEdit{fset.Position(id.Pos()).Offset, fset.Position(id.End()).Offset, "_"})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		var names, values []ast.Expr
		var whole ast.Node
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				return true
			}
			if _, ok := parents[n].(*ast.TypeSwitchStmt); ok {
				return true
			}
			names, values, whole = n.Lhs, n.Rhs, n
		case *ast.DeclStmt:
			d, ok := n.Decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR || len(d.Specs) != 1 {
				return true
			}
			spec := d.Specs[0].(*ast.ValueSpec)
			for _, id := range spec.Names {
				names = append(names, id)
			}
			values, whole = spec.Values, n
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if e != nil && unused(e) != nil {
						blank(e)
					}
				}
			}
			return true
		default:
			return true
		}
		gone, left, fresh := []ast.Expr{}, 0, 0
		for _, e := range names {
			if obj := unused(e); obj != nil {
				gone = append(gone, e)
				for _, id := range sets[obj] {
					blank(id)
				}
				continue
			}
			if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
				left++
				if ok && info.Defs[id] != nil {
					fresh++
				}
			}
		}
		if len(gone) == 0 {
			return true
		}
		if left == 0 && !slices.ContainsFunc(values, does) && isList(parents[whole]) {
			at, end := wholeLines(src, fset.Position(whole.Pos()).Offset, fset.Position(whole.End()).Offset)
			edits = append(edits, sourceEdit{at, end, ""})
			return true
		}
		for _, e := range gone {
			blank(e)
		}
		if a, ok := whole.(*ast.AssignStmt); ok && fresh == 0 {
			at := fset.Position(a.TokPos).Offset
			edits = append(edits, sourceEdit{at, at + len(":="), "="})
		}
		return true
	})
	return applyEdits(src, edits), len(edits) > 0
}

// noPackages imports every package as an empty one.
type noPackages struct{}

func (noPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}

// assignments returns the parent of every node, and the names that are only assigned to.
func assignments(f *ast.File) (parents map[ast.Node]ast.Node, assigned map[*ast.Ident]bool) {
	parents, assigned = map[ast.Node]ast.Node{}, map[*ast.Ident]bool{}
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		if a, ok := n.(*ast.AssignStmt); ok && (a.Tok == token.ASSIGN || a.Tok == token.DEFINE) {
			for _, e := range a.Lhs {
				if id, ok := e.(*ast.Ident); ok {
					assigned[id] = true
				}
			}
		}
		return true
	})
	return parents, assigned
}

// isList reports whether a node is a list of statements, from which one can be taken out.
func isList(n ast.Node) bool {
	switch n.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// does reports whether evaluating an expression may do more than give a value.
func does(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = found || !givesValue(n)
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

// givesValue reports whether a call is of a function that is known to do nothing.
func givesValue(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{"context.Background", "context.TODO", "os.Getenv", "fmt.Sprintf",
		"t.Context"}, pkg.Name+"."+sel.Sel.Name)
}

// wholeLines widens a part of a source to the lines that it is in, if it has them to itself.
func wholeLines(src string, at, end int) (int, int) {
	from := strings.LastIndexByte(src[:at], '\n') + 1
	to := len(src)
	if i := strings.IndexByte(src[end:], '\n'); i >= 0 {
		to = end + i + 1
	}
	if strings.TrimSpace(src[from:at]) != "" || strings.TrimSpace(src[end:to]) != "" {
		return at, end
	}
	return from, to
}

// dropImports removes the imports that nothing uses. names are those of packages that are not
// called as their paths end.
func dropImports(src string, names map[string]string) string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ImportsOnly)
	if err != nil {
		return src
	}
	var edits []sourceEdit
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		var gone []ast.Node
		for _, s := range g.Specs {
			spec := s.(*ast.ImportSpec)
			path, _ := strconv.Unquote(spec.Path.Value)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if n := names[path]; n != "" {
				name = n
			}
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if name != "_" && name != "." && path != "C" && !stillUsed(src, name) {
				gone = append(gone, spec)
			}
		}
		if len(gone) == len(g.Specs) {
			gone = []ast.Node{g}
		}
		for _, n := range gone {
			at, end := wholeLines(src, fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset)
			edits = append(edits, sourceEdit{at, end, ""})
		}
	}
	return applyEdits(src, edits)
}
