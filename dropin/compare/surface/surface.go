// Package surface compares what two modules export: the official driver, and the one that takes
// its place.
package surface

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Report is what a comparison found.
type Report struct {
	Total   int               // how many exported names there are, members included
	Missing []string          // the names that are not there, members of missing types left out
	Lacking int               // how many names are missing, members of missing types included
	Differs []string          // the names that are there and mean something else, with what
	By      map[string][2]int // by package: lacking, total
}

// Compare compares the packages of want, by path, with those of have. only names what is compared
// of some packages; without an entry it is all. The names in the report are without prefix.
func Compare(want, have map[string]*types.Package, prefix string, only map[string][]string) Report {
	r := Report{By: make(map[string][2]int)}
	c := comparer{report: &r, alias: make(map[*types.TypeName]string)}
	for _, path := range slices.Sorted(maps.Keys(have)) {
		c.aliases(want[path], have[path])
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		c.pkg = strings.TrimPrefix(path, prefix)
		lacking, total := r.Lacking, r.Total
		scope := want[path].Scope()
		for _, name := range scope.Names() {
			if names, ok := only[c.pkg]; ok && !slices.Contains(names, name) {
				continue
			}
			if obj := scope.Lookup(name); obj.Exported() {
				var in types.Object
				if p := have[path]; p != nil {
					in = p.Scope().Lookup(name)
				}
				c.object(obj, in)
			}
		}
		r.By[c.pkg] = [2]int{r.Lacking - lacking, r.Total - total}
	}
	slices.Sort(r.Missing)
	slices.Sort(r.Differs)
	return r
}

// A comparer compares one package after the other.
type comparer struct {
	report *Report
	pkg    string
	// alias has the names under which the compared packages offer types of others.
	alias map[*types.TypeName]string
}

func (c *comparer) aliases(want, p *types.Package) {
	for _, name := range p.Scope().Names() {
		obj, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || !obj.IsAlias() {
			continue
		}
		if w, ok := want.Scope().Lookup(name).(*types.TypeName); ok && w.IsAlias() {
			continue // the name is another's there, too
		}
		if n, ok := types.Unalias(obj.Type()).(*types.Named); ok && n.Obj().Pkg() != nil && c.alias[n.Obj()] == "" {
			c.alias[n.Obj()] = p.Path() + "." + name
		}
	}
}

func (c *comparer) missing(name string) {
	c.report.Missing = append(c.report.Missing, c.pkg+" "+name)
}

func (c *comparer) differs(name, format string, args ...any) {
	c.report.Differs = append(c.report.Differs, c.pkg+" "+name+": "+fmt.Sprintf(format, args...))
}

// object compares one name of a package. have is nil if it is not there.
func (c *comparer) object(want, have types.Object) {
	c.report.Total++
	if have == nil {
		c.report.Lacking++
		c.missing(want.Name())
	}
	switch want := want.(type) {
	case *types.TypeName:
		h, ok := have.(*types.TypeName)
		if have != nil && !ok {
			c.differs(want.Name(), "want a type")
		}
		c.typeName(want, h)
	case *types.Const:
		h, ok := have.(*types.Const)
		switch {
		case have == nil:
		case !ok:
			c.differs(want.Name(), "want a constant")
		case !constant.Compare(want.Val(), token.EQL, h.Val()):
			c.differs(want.Name(), "is %s, want %s", h.Val(), want.Val())
		default:
			c.sameType(want.Name(), want.Type(), h.Type())
		}
	default:
		if have == nil {
			return
		}
		if reflect.TypeOf(want) != reflect.TypeOf(have) {
			c.differs(want.Name(), "want a %T, have a %T", want, have)
			return
		}
		c.sameType(want.Name(), want.Type(), have.Type())
	}
}

func (c *comparer) sameType(name string, want, have types.Type) {
	if w, h := c.text(want), c.text(have); w != h {
		c.differs(name, "is %s, want %s", h, w)
	}
}

// typeName compares a type with all that hangs on it. have is nil if it is not there.
func (c *comparer) typeName(want, have *types.TypeName) {
	named, ok := types.Unalias(want.Type()).(*types.Named)
	if !ok || want.IsAlias() {
		if have != nil {
			c.sameType(want.Name(), want.Type(), have.Type())
		}
		if want.IsAlias() {
			return
		}
	}
	var h types.Type
	if have != nil {
		h = types.Unalias(have.Type())
		if named.TypeParams().Len() != typeParams(h) {
			c.differs(want.Name(), "has %d type parameters, want %d", typeParams(h), named.TypeParams().Len())
		}
	}
	c.members(want.Name(), named, h)
	c.methods(want.Name(), named, h)
}

func typeParams(t types.Type) int {
	if n, ok := t.(*types.Named); ok {
		return n.TypeParams().Len()
	}
	return 0
}

// members compares the underlying types.
func (c *comparer) members(name string, want, have types.Type) {
	s, ok := want.Underlying().(*types.Struct)
	if !ok {
		if _, ok := want.Underlying().(*types.Interface); !ok && have != nil {
			c.sameType(name, want.Underlying(), have.Underlying())
		}
		return
	}
	var h *types.Struct
	if have != nil {
		if h, ok = have.Underlying().(*types.Struct); !ok {
			c.differs(name, "is %s, want a struct", c.text(have.Underlying()))
			have = nil
		} else if hidden(s) != hidden(h) && hidden(h) {
			c.differs(name, "has fields that are not exported, and want none")
		}
		if have != nil && types.Comparable(want) && !types.Comparable(have) {
			c.differs(name, "cannot be compared with ==")
		}
	}
	last := -1
	for i := range s.NumFields() {
		f := s.Field(i)
		if !f.Exported() {
			continue
		}
		c.report.Total++
		j := -1
		if h != nil {
			for k := range h.NumFields() {
				if h.Field(k).Name() == f.Name() {
					j = k
				}
			}
		}
		if j < 0 {
			c.report.Lacking++
			if have != nil {
				c.missing(name + "." + f.Name())
			}
			continue
		}
		switch {
		case j < last && !hidden(s):
			c.differs(name+"."+f.Name(), "stands in another order")
		case h.Field(j).Embedded() != f.Embedded():
			c.differs(name+"."+f.Name(), "embedded: %t, want %t", h.Field(j).Embedded(), f.Embedded())
		case s.Tag(i) != h.Tag(j):
			c.differs(name+"."+f.Name(), "has the tag %q, want %q", h.Tag(j), s.Tag(i))
		default:
			c.sameType(name+"."+f.Name(), f.Type(), h.Field(j).Type())
		}
		last = j
	}
}

// hidden reports whether a struct has fields that are not exported.
func hidden(s *types.Struct) bool {
	for i := range s.NumFields() {
		if !s.Field(i).Exported() {
			return true
		}
	}
	return false
}

// methods compares method sets, promoted methods included, and those of interfaces both ways: a
// further method there would be one that implementations do not have.
func (c *comparer) methods(name string, want, have types.Type) {
	iface := types.IsInterface(want)
	w := methodSet(want)
	h := map[string]method{}
	if have != nil {
		if types.IsInterface(have) != iface {
			c.differs(name, "is %s, want %s", c.text(have.Underlying()), c.text(want.Underlying()))
		}
		h = methodSet(have)
	}
	for _, m := range slices.Sorted(maps.Keys(w)) {
		c.report.Total++
		in, ok := h[m]
		if !ok {
			c.report.Lacking++
			if have != nil {
				c.missing(name + "." + m)
			}
			continue
		}
		if !w[m].pointer && in.pointer {
			c.differs(name+"."+m, "has a pointer receiver")
		}
		c.sameType(name+"."+m, w[m].sig, in.sig)
	}
	if !iface || have == nil {
		return
	}
	for _, m := range slices.Sorted(maps.Keys(h)) {
		if _, ok := w[m]; !ok {
			c.differs(name+"."+m, "is a method too much for an interface")
		}
	}
}

type method struct {
	sig     types.Type
	pointer bool // it is in the method set of the pointer only
}

func methodSet(t types.Type) map[string]method {
	all := t
	if !types.IsInterface(t) {
		all = types.NewPointer(t)
	}
	out := make(map[string]method)
	value := types.NewMethodSet(t)
	for sel := range types.NewMethodSet(all).Methods() {
		f := sel.Obj().(*types.Func)
		if f.Exported() {
			out[f.Name()] = method{sel.Type(), value.Lookup(f.Pkg(), f.Name()) == nil}
		}
	}
	return out
}
