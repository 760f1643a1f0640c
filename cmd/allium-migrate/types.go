package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// tellTypes tells of the types of a package whose documents are others with Allium, whatever the
// options are.
func tellTypes(p *loaded, told *notices) {
	first := p.first()
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					p.tellField(field, first, told)
				}
			case *ast.FuncDecl:
				p.tellMethod(n, told)
			}
			return true
		})
	}
}

func (p *loaded) tellField(field *ast.Field, first bool, told *notices) {
	tag := ""
	if field.Tag != nil {
		text, _ := strconv.Unquote(field.Tag.Value)
		tag = reflect.StructTag(text).Get("bson")
		if tag == "" && !strings.Contains(text, ":") {
			tag = text
		}
	}
	if tag == "" || tag == "-" {
		return
	}
	tell := func(text string) { told.add(p.fset.Position(field.Pos()), text) }
	parts := strings.Split(tag, ",")
	t := p.info.TypeOf(field.Type)
	if t == nil {
		return
	}
	has := func(option string) bool { return slices.Contains(parts, option) }
	if has("inline") {
		if m, ok := t.Underlying().(*types.Map); ok && first && isAny(m.Elem()) {
			tell("Documents in an inline map become bson.D, not maps.")
		}
		if named := namedOf(t); len(field.Names) == 0 && named != nil && !named.Obj().Exported() {
			tell(fmt.Sprintf(
				"The exported fields of %s, an unexported type that is inline, are encoded and decoded; the official driver leaves them out.", named.Obj().Name()))
		}
	}
	if ptr, ok := t.Underlying().(*types.Pointer); ok && has("omitempty") && hasMethod(ptr.Elem(), "IsZero") {
		tell("With omitempty a pointer is left out if it is nil only, not if what it points to is zero: bson.Options has OmitZero, and the tag omitzero.")
	}
	elem := t
	if ptr, ok := elem.Underlying().(*types.Pointer); ok {
		elem = ptr.Elem()
	}
	if s, ok := elem.Underlying().(*types.Struct); ok && !isOfficial(elem) && elem.String() != "time.Time" &&
		hasMethod(elem, "MarshalText") &&
		!hasMethod(elem, "MarshalBSON") && !hasMethod(elem, "MarshalBSONValue") {
		open := false
		for v := range s.Fields() {
			open = open || v.Exported()
		}
		if !open {
			tell(fmt.Sprintf(
				"%s has no exported fields and MarshalText: it is stored as a string. The official driver makes an empty document of it.", elem))
		}
	}
}

func (p *loaded) tellMethod(n *ast.FuncDecl, told *notices) {
	if n.Recv == nil || len(n.Recv.List) != 1 {
		return
	}
	switch name := n.Name.Name; name {
	case "MarshalBSON", "MarshalBSONValue":
		if _, pointer := n.Recv.List[0].Type.(*ast.StarExpr); pointer {
			told.add(p.fset.Position(n.Pos()), name+
				" has a pointer receiver: methods with pointer receivers are found on values in maps and interfaces, too.")
		}
	case "UnmarshalBSON":
		told.add(p.fset.Position(n.Pos()), "A null gives the zero value without a call of UnmarshalBSON.")
	}
}

func isAny(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	return ok && i.Empty()
}

func isOfficial(t types.Type) bool {
	n := namedOf(t)
	return n != nil && n.Obj().Pkg() != nil && where(n.Obj().Pkg().Path()) != ""
}

func namedOf(t types.Type) *types.Named {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// hasMethod reports whether a type or a pointer to it has a method.
func hasMethod(t types.Type, name string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	_, ok := obj.(*types.Func)
	return ok
}

// valueMethod rewrites MarshalBSONValue and UnmarshalBSONValue of version 1, whose types are named:
// Allium would not know them. A method of another name has the old signature.
func (r *rewriter) valueMethod(n *ast.FuncDecl) (string, bool) {
	name := n.Name.Name
	if n.Recv == nil || len(n.Recv.List) != 1 || n.Body == nil ||
		name != "MarshalBSONValue" && name != "UnmarshalBSONValue" {
		return "", false
	}
	f, ok := r.info.Defs[n.Name].(*types.Func)
	if !ok {
		return "", false
	}
	sig := f.Signature()
	list := sig.Results()
	if name == "UnmarshalBSONValue" {
		list = sig.Params()
	}
	if list.Len() == 0 {
		return "", false
	}
	if t := namedOf(list.At(0).Type()); t == nil || t.Obj().Pkg() == nil || where(t.Obj().Pkg().Path()) == "" {
		return "", false
	}
	recv := r.raw(n.Recv.List[0].Type)
	old := strings.ToLower(name[:1]) + name[1:]
	var b strings.Builder
	if name == "MarshalBSONValue" {
		fmt.Fprintf(&b, "func (v %s) MarshalBSONValue() (byte, []byte, error) {\n\tt, data, err := v.%s()\n\treturn byte(t), data, err\n}\n\n", recv, old)
	} else {
		fmt.Fprintf(&b, "func (v %s) UnmarshalBSONValue(t byte, data []byte) error {\n\treturn v.%s(%s.Type(t), data)\n}\n\n", recv, old, r.use("allium/bson"))
	}
	fmt.Fprintf(&b, "func (%s) %s%s %s", strings.Trim(r.text(n.Recv), "()"), old,
		strings.TrimPrefix(r.text(n.Type), "func"), r.text(n.Body))
	return r.done(b.String())
}

// allAfterNext tells of a cursor that is read by Next and then by All.
func (r *rewriter) allAfterNext(n *ast.CallExpr, sel *ast.SelectorExpr) {
	id, ok := sel.X.(*ast.Ident)
	if !ok || r.info.Uses[id] == nil {
		return
	}
	for other, obj := range r.info.Uses {
		s, ok := r.parents[other].(*ast.SelectorExpr)
		if ok && obj == r.info.Uses[id] && s.X == ast.Expr(other) &&
			(s.Sel.Name == "Next" || s.Sel.Name == "TryNext") && other.Pos() < id.Pos() {
			r.tell(n, "All does not return documents that Next has returned; the official driver returns those of the current batch again.")
			return
		}
	}
}
