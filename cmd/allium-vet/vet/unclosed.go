package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
)

// Unclosed finds cursors, change streams and sessions that are still open when the function ends
// that opened them.
var Unclosed = &analysis.Analyzer{
	Name: "unclosed",
	Doc: "find cursors, change streams and sessions that nobody closes\n\nOn some path from the call that opened it the function returns without Close, " +
		"All, Seq, or Next to the end. What is handed on is left to others.",
	URL:      "docs/vet.md",
	Requires: []*analysis.Analyzer{sites},
	Run:      runUnclosed,
}

// resources are the types that are closed, with the methods that do it. A cursor whose Next has
// said false is at its end: the server has closed it.
var resources = map[string]struct {
	closers []string
	ends    bool
}{
	"Cursor":       {[]string{"Close", "All", "Seq"}, true},
	"ChangeStream": {[]string{"Close", "Seq"}, false},
	"Session":      {[]string{"EndSession", "End"}, false},
}

func runUnclosed(pass *analysis.Pass) (any, error) {
	u := usageOf(pass)
	if !imports(pass.Pkg) {
		return nil, nil
	}
	functions(u, func(fn ast.Node, typ *ast.FuncType, body *ast.BlockStmt, around []ast.Node) {
		if decl, ok := fn.(*ast.FuncDecl); ok && decl.Name.Name == "main" && pass.Pkg.Name() == "main" ||
			inTest(pass, fn.Pos()) {
			return // ends the process
		}
		var graph *cfg.CFG
		ast.Inspect(body, func(n ast.Node) bool {
			if _, ok := n.(*ast.FuncLit); ok {
				return false // has its own turn
			}
			assign, ok := n.(*ast.AssignStmt)
			if !ok || len(assign.Rhs) != 1 {
				return true
			}
			call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
			if !ok {
				return true
			}
			m, ok := callee(pass.TypesInfo, call)
			if !ok || m.name == "SessionFromContext" || m.name == "SessionFrom" || oneDocument(u, m, call) {
				return true
			}
			id, ok := assign.Lhs[0].(*ast.Ident)
			if !ok || id.Name == "_" {
				return true
			}
			obj, ok := pass.TypesInfo.ObjectOf(id).(*types.Var)
			if !ok || obj.Pos() < body.Pos() || obj.Pos() >= body.End() {
				return true // of a function around this one, or of the package
			}
			t := named(obj.Type())
			if t == nil || !isDriver(t.Obj().Pkg()) {
				return true
			}
			kind, ok := resources[t.Obj().Name()]
			if !ok {
				return true
			}
			l := &life{u: u, obj: obj, closers: kind.closers, ends: kind.ends}
			if len(assign.Lhs) > 1 {
				if e, ok := assign.Lhs[len(assign.Lhs)-1].(*ast.Ident); ok {
					l.err = pass.TypesInfo.ObjectOf(e)
				}
			}
			if graph == nil {
				graph = cfg.New(body, func(call *ast.CallExpr) bool { return !endsProcess(pass.TypesInfo, call) })
			}
			if at := l.leak(graph, assign); at != nil {
				report(pass, call, nil, "%s is not closed where the function ends in line %d", id.Name,
					pass.Fset.Position(at.Pos()).Line)
			}
			return true
		})
	})
	return nil, nil
}

// oneDocument reports whether a call is an aggregation of one document at most, which the first
// batch has: its cursor is closed on the server when it comes.
func oneDocument(u *usage, m method, call *ast.CallExpr) bool {
	for i, r := range arguments[receivers[m.recv]][m.name] {
		if r != pipelineRole || i >= len(call.Args) {
			continue
		}
		stages, whole, ok := u.array(call.Args[i])
		if !ok || !whole || len(stages) == 0 {
			return false
		}
		last, ok := u.document(stages[len(stages)-1])
		if !ok {
			return false
		}
		switch last.first() {
		case "$count", "$facet", "$out", "$merge":
			return true
		case "$limit":
			tv := u.info.Types[last.entries[0].value]
			return tv.Value != nil && tv.Value.ExactString() == "1"
		case "$group":
			group, ok := u.document(last.entries[0].value)
			id := group.get("_id")
			return ok && id != nil && (isNil(u.info, id) ||
				u.info.Types[id].Value != nil && !strings.HasPrefix(constantText(u, id), "$"))
		}
	}
	return false
}

func constantText(u *usage, x ast.Expr) string {
	text, _ := u.text(x)
	return text
}

// endsProcess reports whether a call does not return.
func endsProcess(info *types.Info, call *ast.CallExpr) bool {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		_, ok := info.Uses[f].(*types.Builtin)
		return ok && f.Name == "panic"
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Fatal", "Fatalf", "Fatalln", "Exit", "Goexit", "FailNow", "Panic", "Panicf", "Panicln":
			return true
		}
	}
	return false
}

// life is that of a cursor, a stream or a session in a function.
type life struct {
	u       *usage
	obj     *types.Var
	err     types.Object // what says that there is none
	closers []string
	ends    bool
	seen    map[state]bool
}

// state is where a path is, and what is known there.
type state struct {
	block *cfg.Block
	used  bool // the cursor has been used: it is there
	// err is an error that says, if it is not nil, that nothing is open: what the call returned, or
	// the cursor's own.
	err types.Object
}

// leak returns where a path ends on which it is used, and neither closed nor handed on.
func (l *life) leak(graph *cfg.CFG, start ast.Node) ast.Node {
	l.seen = map[state]bool{}
	for _, b := range graph.Blocks {
		if i := slices.Index(b.Nodes, start); i >= 0 && b.Live {
			return l.follow(state{b, false, l.err}, i+1)
		}
	}
	return nil
}

func (l *life) follow(s state, from int) ast.Node {
	if from == 0 {
		if l.seen[s] {
			return nil
		}
		l.seen[s] = true
	}
	nodes := s.block.Nodes
	for i := from; i < len(nodes); i++ {
		n := nodes[i]
		switch l.use(n) {
		case closes:
			return nil
		case uses:
			s.used = true
		}
		s.err = l.reassigned(n, s.err)
		if _, ok := n.(*ast.ReturnStmt); ok {
			if s.used {
				return n
			}
			return nil
		}
	}
	succs := s.block.Succs
	if len(succs) == 0 {
		if len(nodes) > 0 && s.used && !l.stops(nodes[len(nodes)-1]) {
			return nodes[len(nodes)-1]
		}
		return nil
	}
	for i, next := range succs {
		if len(succs) == 2 && len(nodes) > 0 && l.gone(nodes[len(nodes)-1], i == 0, s.err) {
			continue
		}
		if at := l.follow(state{next, s.used, s.err}, 0); at != nil {
			return at
		}
	}
	return nil
}

func (l *life) stops(n ast.Node) bool {
	x, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	return ok && endsProcess(l.u.info, call)
}

// gone reports whether nothing is open on one side of a condition: there was an error, or the
// cursor is at its end.
func (l *life) gone(cond ast.Node, isTrue bool, err types.Object) bool {
	switch c := cond.(type) {
	case *ast.ParenExpr:
		return l.gone(c.X, isTrue, err)
	case *ast.UnaryExpr:
		return c.Op == token.NOT && l.gone(c.X, !isTrue, err)
	case *ast.BinaryExpr:
		switch either := (c.Op == token.LAND) == isTrue; {
		case c.Op != token.LAND && c.Op != token.LOR:
		case either: // one side tells
			return l.gone(c.X, isTrue, err) || l.gone(c.Y, isTrue, err)
		default:
			return l.gone(c.X, isTrue, err) && l.gone(c.Y, isTrue, err)
		}
		if !isNil(l.u.info, c.Y) || c.Op != token.EQL && c.Op != token.NEQ {
			return false
		}
		if l.isErr(c.X) {
			return isTrue == (c.Op == token.NEQ)
		}
		x, ok := ast.Unparen(c.X).(*ast.Ident)
		if !ok {
			return false
		}
		switch l.u.info.ObjectOf(x) {
		case err:
			return err != nil && isTrue == (c.Op == token.NEQ)
		case l.obj:
			return isTrue == (c.Op == token.EQL)
		}
	case *ast.CallExpr:
		return l.ends && l.isNext(c) && !isTrue
	}
	return false
}

func (l *life) isNext(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Next" && l.is(sel.X)
}

func isNil(info *types.Info, x ast.Expr) bool { return info.Types[x].IsNil() }

func (l *life) is(x ast.Expr) bool {
	id, ok := ast.Unparen(x).(*ast.Ident)
	return ok && l.u.info.ObjectOf(id) == l.obj
}

// isErr reports whether x asks the cursor for its error.
func (l *life) isErr(x ast.Expr) bool {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Err" && l.is(sel.X)
}

// reassigned returns the error that says that nothing is open, behind a node.
func (l *life) reassigned(n ast.Node, err types.Object) types.Object {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return err
	}
	for i, left := range assign.Lhs {
		id, ok := left.(*ast.Ident)
		if !ok {
			continue
		}
		obj := l.u.info.ObjectOf(id)
		switch {
		case len(assign.Lhs) == len(assign.Rhs) && l.isErr(assign.Rhs[i]):
			return obj
		case obj == err:
			err = nil
		}
	}
	return err
}

type usageKind uint8

const (
	unused usageKind = iota
	uses
	closes // or hands on
)

// use says what a node does with it.
func (l *life) use(n ast.Node) usageKind {
	kind := unused
	var visit func(n ast.Node, inFunc bool)
	mark := func(k usageKind) { kind = max(kind, k) }
	visit = func(root ast.Node, inFunc bool) {
		ast.Inspect(root, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				if n != root && !inFunc {
					visit(n.Body, true)
					return false
				}
			case *ast.BinaryExpr:
				if l.is(n.X) && isNil(l.u.info, n.Y) {
					return false
				}
			case *ast.AssignStmt:
				// What a variable says of the end is not followed.
				for _, x := range n.Rhs {
					if call, ok := ast.Unparen(x).(*ast.CallExpr); ok && l.ends && l.isNext(call) {
						mark(closes)
					}
				}
			case *ast.CallExpr:
				sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
				if ok && l.is(sel.X) {
					if slices.Contains(l.closers, sel.Sel.Name) || inFunc {
						mark(closes)
					} else {
						mark(uses)
					}
					for _, arg := range n.Args {
						visit(arg, inFunc)
					}
					return false
				}
				// The context of a session does not end it.
				if m, ok := callee(l.u.info, n); ok && (m.name == "WithSession" || m.name == "NewSessionContext") {
					for _, arg := range n.Args {
						if l.is(arg) {
							mark(uses)
						} else {
							visit(arg, inFunc)
						}
					}
					return false
				}
			case *ast.Ident:
				if l.u.info.ObjectOf(n) == l.obj {
					mark(closes)
				}
			}
			return true
		})
	}
	visit(n, false)
	return kind
}
