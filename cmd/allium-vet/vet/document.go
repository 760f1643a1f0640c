package vet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// document is one that is written in the source: a bson.D, or a map with strings as keys.
type document struct {
	lit     *ast.CompositeLit
	isMap   bool
	entries []entry
	whole   bool // these are all its entries
}

// entry is a key of a document with its value.
type entry struct {
	node  ast.Node
	key   string
	known bool // the key is a constant
	name  ast.Expr
	value ast.Expr // nil: not known
}

// first returns the first key, "" if it is not known.
func (d document) first() string {
	if len(d.entries) == 0 || !d.entries[0].known {
		return ""
	}
	return d.entries[0].key
}

func (d document) get(key string) ast.Expr {
	for _, e := range d.entries {
		if e.known && e.key == key {
			return e.value
		}
	}
	return nil
}

func (d document) has(keys ...string) bool {
	return slices.ContainsFunc(d.entries, func(e entry) bool { return e.known && slices.Contains(keys, e.key) })
}

// hasOperator reports whether a key begins with a '$'.
func (d document) hasOperator() bool {
	return slices.ContainsFunc(d.entries, func(e entry) bool { return e.known && strings.HasPrefix(e.key, "$") })
}

// literal returns the composite literal that e is, or that its variable holds. whole tells that
// nothing changes it.
func (vs *variables) literal(e ast.Expr) (lit *ast.CompositeLit, whole bool) {
	whole = true
	for range 8 {
		switch x := ast.Unparen(e).(type) {
		case *ast.CompositeLit:
			return x, whole
		case *ast.UnaryExpr:
			if x.Op != token.AND {
				return nil, false
			}
			e = x.X
		case *ast.CallExpr:
			if len(x.Args) != 1 || !isConversion(vs.info, x) {
				return nil, false
			}
			e = x.Args[0]
		case *ast.Ident:
			only, w := vs.only(x)
			if only == nil {
				return nil, false
			}
			e, whole = only, whole && w
		default:
			return nil, false
		}
	}
	return nil, false
}

// document returns the document that e is written as.
func (vs *variables) document(e ast.Expr) (document, bool) {
	if e == nil {
		return document{}, false
	}
	lit, whole := vs.literal(e)
	if lit == nil {
		return document{}, false
	}
	d := document{lit: lit, whole: whole}
	t := vs.info.TypeOf(lit)
	switch {
	case isStringMap(t):
		d.isMap = true
		for _, elt := range lit.Elts {
			kv := elt.(*ast.KeyValueExpr)
			key, known := vs.text(kv.Key)
			d.entries = append(d.entries, entry{kv, key, known, kv.Key, kv.Value})
		}
		return d, true
	case isElements(t):
		for _, elt := range lit.Elts {
			inner, ok := ast.Unparen(elt).(*ast.CompositeLit)
			en := entry{node: elt}
			if !ok || len(inner.Elts) == 0 {
				d.whole = false
				d.entries = append(d.entries, en)
				continue
			}
			for i, f := range inner.Elts {
				kv, named := f.(*ast.KeyValueExpr)
				switch {
				case named && kv.Key.(*ast.Ident).Name == "Key":
					en.name = kv.Value
				case named && kv.Key.(*ast.Ident).Name == "Value":
					en.value = kv.Value
				case !named && i == 0:
					en.name = f
				case !named && i == 1:
					en.value = f
				}
			}
			if en.name != nil {
				en.key, en.known = vs.text(en.name)
			}
			d.entries = append(d.entries, en)
		}
		return d, true
	}
	return document{}, false
}

// array returns the elements of the array that e is written as. whole tells that there are no more.
func (vs *variables) array(e ast.Expr) (elems []ast.Expr, whole, ok bool) {
	if e == nil {
		return nil, false, false
	}
	lit, whole := vs.literal(e)
	if lit == nil || isElements(vs.info.TypeOf(lit)) {
		return nil, false, false
	}
	switch under(vs.info.TypeOf(lit)).(type) {
	case *types.Slice, *types.Array:
	default:
		return nil, false, false
	}
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			elt = kv.Value
		}
		elems = append(elems, elt)
	}
	return elems, whole, true
}

// text returns the constant string that e is.
func (vs *variables) text(e ast.Expr) (string, bool) {
	if tv, ok := vs.info.Types[e]; ok && tv.Value != nil && tv.Value.Kind() == constant.String {
		return constant.StringVal(tv.Value), true
	}
	return "", false
}

func under(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying()
}

// isStringMap reports whether t is a map that becomes a document.
func isStringMap(t types.Type) bool {
	m, ok := under(t).(*types.Map)
	return ok && isString(m.Key())
}

// isElements reports whether t is a list of keys and values: a bson.D.
func isElements(t types.Type) bool {
	var elem types.Type
	switch u := under(t).(type) {
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	default:
		return false
	}
	s, ok := types.Unalias(elem).Underlying().(*types.Struct)
	return ok && s.NumFields() == 2 && s.Field(0).Name() == "Key" && isString(s.Field(0).Type()) &&
		s.Field(1).Name() == "Value" && isAny(s.Field(1).Type())
}

func isString(t types.Type) bool {
	b, ok := types.Unalias(t).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isAny(t types.Type) bool {
	i, ok := types.Unalias(t).Underlying().(*types.Interface)
	return ok && i.NumMethods() == 0
}
