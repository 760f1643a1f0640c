package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// notices are differences that no option undoes and that compile: each is told once for a file,
// with the first place in it.
type notices struct {
	dir   string
	order []*notice
	by    map[string]*notice // by file and text
}

type notice struct {
	text string
	at   token.Position
	seen map[int]bool // the offsets of all places: an expression may be looked at twice
}

func newNotices(dir string) *notices {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &notices{dir: dir, by: map[string]*notice{}}
}

// tell notes that something differs at a node.
func (r *rewriter) tell(n ast.Node, text string) { r.told.add(r.fset.Position(n.Pos()), text) }

func (t *notices) add(at token.Position, text string) {
	key := at.Filename + "\x00" + text
	n := t.by[key]
	if n == nil {
		n = &notice{text: text, at: at, seen: map[int]bool{}}
		t.by[key] = n
		t.order = append(t.order, n)
	}
	n.seen[at.Offset] = true
}

func (t *notices) print(w io.Writer) {
	for _, n := range t.order {
		at := n.at
		if rel, err := filepath.Rel(t.dir, at.Filename); err == nil && !strings.HasPrefix(rel, "..") {
			at.Filename = rel
		}
		more := ""
		if len(n.seen) > 1 {
			more = fmt.Sprintf(" (%d places in this file)", len(n.seen))
		}
		fmt.Fprintf(w, "%s:%d: %s%s\n", at.Filename, at.Line, n.text, more)
	}
}

// Values that are handed to a function of another package as an any may be printed or turned into
// JSON there.

const (
	aboutText   = "bson.%s prints otherwise than the official driver's: see \"What is different\" in docs/migrating.md."
	aboutJSON   = "JSON of a bson.%s is otherwise than the official driver's: see \"What is different\" in docs/migrating.md."
	aboutErrors = "The texts of errors are others: look into errors with errors.Is, errors.As and the functions of package mongoerr."
	aboutNoID   = "An empty string is no ObjectID in JSON; the official driver takes it for the one of zeros."
)

// otherText are the types whose %v differs, otherJSON those whose JSON does.
var (
	otherText = []string{"D", "M", "A", "Raw", "RawValue", "DateTime", "Binary", "Timestamp", "Regex", "DBPointer",
		"CodeWithScope", "Null", "MinKey", "MaxKey", "Undefined", "Vector"}
	otherJSON = []string{"Raw", "RawValue", "Binary", "Timestamp", "Regex", "DBPointer", "CodeWithScope", "Null",
		"MinKey", "MaxKey", "Undefined", "Vector"}
)

// handedOver tells of what a call hands over to a function that may print it or make JSON of it.
func (r *rewriter) handedOver(n *ast.CallExpr) {
	obj := r.callee(ast.Unparen(n.Fun))
	f, ok := obj.(*types.Func)
	if !ok || f.Pkg() == nil || where(f.Pkg().Path()) != "" {
		return
	}
	sig := f.Signature()
	pkg := f.Pkg().Path()
	for i, arg := range n.Args {
		var param types.Type
		switch {
		case sig.Variadic() && i >= sig.Params().Len()-1:
			param = sig.Params().At(sig.Params().Len() - 1).Type()
			if s, ok := param.(*types.Slice); ok && !n.Ellipsis.IsValid() {
				param = s.Elem()
			}
		case i < sig.Params().Len():
			param = sig.Params().At(i).Type()
		default:
			continue
		}
		iface, ok := param.Underlying().(*types.Interface)
		if !ok || !iface.Empty() {
			continue
		}
		t := r.info.TypeOf(arg)
		switch {
		case pkg == "fmt" || pkg == "log" || pkg == "log/slog":
			if types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface)) &&
				f.Name() != "Errorf" {
				r.tell(arg, aboutErrors)
			}
			if found := officialIn(t, otherText); found != "" {
				r.tell(arg, fmt.Sprintf(aboutText, found))
			}
		case pkg == "encoding/json" && (f.Name() == "Unmarshal" || f.Name() == "Decode"):
			if officialIn(t, []string{"ObjectID"}) != "" {
				r.tell(arg, aboutNoID)
			}
			if found := officialIn(t, otherJSON); found != "" {
				r.tell(arg, fmt.Sprintf(aboutJSON, found))
			}
		default:
			if found := officialIn(t, otherJSON); found != "" {
				r.tell(arg, fmt.Sprintf(aboutJSON, found))
			}
		}
	}
}

// errorText tells of texts of errors that a program looks into.
func (r *rewriter) errorText(n *ast.CallExpr) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Error" || len(n.Args) > 0 {
		return
	}
	t := r.info.TypeOf(sel.X)
	if t != nil && types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface)) {
		r.tell(n, aboutErrors)
	}
}

// officialIn returns the first of some types of package bson that values of a type may have in
// them.
func officialIn(t types.Type, names []string) string {
	seen := map[types.Type]bool{}
	var look func(t types.Type, depth int) string
	look = func(t types.Type, depth int) string {
		if t == nil || seen[t] || depth > 8 {
			return ""
		}
		seen[t] = true
		switch u := t.(type) {
		case *types.Alias:
			return look(types.Unalias(u), depth)
		case *types.Named:
			if p := u.Obj().Pkg(); p != nil {
				if in := where(p.Path()); strings.HasPrefix(in, "bson") {
					if slices.Contains(names, u.Obj().Name()) {
						return u.Obj().Name()
					}
					return ""
				} else if in != "" {
					return ""
				}
			}
			return look(u.Underlying(), depth+1)
		case *types.Pointer:
			return look(u.Elem(), depth+1)
		case *types.Slice:
			return look(u.Elem(), depth+1)
		case *types.Array:
			return look(u.Elem(), depth+1)
		case *types.Map:
			if found := look(u.Key(), depth+1); found != "" {
				return found
			}
			return look(u.Elem(), depth+1)
		case *types.Struct:
			for f := range u.Fields() {
				if found := look(f.Type(), depth+1); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return look(t, 0)
}
