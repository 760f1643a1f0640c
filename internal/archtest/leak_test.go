package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestNoInternalTypes wants users to be able to read every type that they can name: no exported
// alias, signature, field, method, constant or variable of a public package leads into an internal
// package, and no method is promoted from a type that go doc does not show.
func TestNoInternalTypes(t *testing.T) {
	top := root(t)
	pkgs := public(t)
	needs := map[string]bool{}
	for _, pkg := range pkgs {
		needs[path.Join(module, pkg)] = true
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", exported(t, top, needs))
	for _, pkg := range pkgs {
		p, err := imports.Import(path.Join(module, pkg))
		if err != nil {
			t.Fatal(err)
		}
		for _, leak := range leaks(p) {
			t.Error(leak)
		}
	}
}

// isInternal reports whether an import path is that of an internal package.
func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }

// leaks lists what the exported symbols of a package show of types that users cannot read.
func leaks(p *types.Package) []string {
	var out []string
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		l := leakFinder{seen: map[types.Type]bool{}}
		where := p.Path() + "." + name
		tn, isType := o.(*types.TypeName)
		if !isType {
			l.look(where, o.Type())
			out = append(out, l.found...)
			continue
		}
		if alias, ok := tn.Type().(*types.Alias); ok {
			l.look(where, alias.Rhs())
			out = append(out, l.found...)
			continue
		}
		named := tn.Type().(*types.Named)
		for tp := range named.TypeParams().TypeParams() {
			l.look(where, tp.Constraint())
		}
		l.look(where, named.Underlying())
		if types.IsInterface(named) {
			out = append(out, l.found...)
			continue
		}
		set := types.NewMethodSet(types.NewPointer(named))
		for sel := range set.Methods() {
			m := sel.Obj().(*types.Func)
			if !m.Exported() {
				continue
			}
			l.look(where+"."+m.Name(), m.Type())
			if from := declaredOn(m); from != nil && (!from.Exported() || isInternal(from.Pkg().Path())) {
				l.found = append(l.found, fmt.Sprintf("%s.%s is promoted from %s, so that go doc does not show it", where, m.Name(), from.Name()))
			}
		}
		out = append(out, l.found...)
	}
	return out
}

// declaredOn returns the type that a method belongs to, nil for a method of an interface without a
// name.
func declaredOn(m *types.Func) *types.TypeName {
	t := m.Type().(*types.Signature).Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj()
	}
	return nil
}

type leakFinder struct {
	seen  map[types.Type]bool
	found []string
}

// look walks a type as far as it is written at this place: the definitions of named types are
// looked at where they stand.
func (l *leakFinder) look(where string, t types.Type) {
	if l.seen[t] {
		return
	}
	l.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		l.named(where, t.Obj(), t.TypeArgs())
		l.look(where, t.Rhs())
	case *types.Named:
		l.named(where, t.Obj(), t.TypeArgs())
	case *types.Pointer:
		l.look(where, t.Elem())
	case *types.Slice:
		l.look(where, t.Elem())
	case *types.Array:
		l.look(where, t.Elem())
	case *types.Chan:
		l.look(where, t.Elem())
	case *types.Map:
		l.look(where, t.Key())
		l.look(where, t.Elem())
	case *types.Signature:
		for tp := range t.TypeParams().TypeParams() {
			l.look(where, tp.Constraint())
		}
		l.look(where, t.Params())
		l.look(where, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			l.look(where, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				l.look(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				l.look(where+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			l.look(where, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			l.look(where, term.Type())
		}
	}
}

func (l *leakFinder) named(where string, o *types.TypeName, args *types.TypeList) {
	if o.Pkg() != nil && isInternal(o.Pkg().Path()) {
		l.found = append(l.found, fmt.Sprintf("%s shows %s.%s, which users cannot read: define it in a public package", where, o.Pkg().Path(), o.Name()))
	}
	for arg := range args.Types() {
		l.look(where, arg)
	}
}

// TestLeaksAreFound shows that each rule of TestNoInternalTypes fails where it is violated, and
// only there.
func TestLeaksAreFound(t *testing.T) {
	const inner = `package inner
		type T struct{ N int }
		func (T) Method() {}
		type G[E any] struct{}
		const C T2 = 1
		type T2 int`
	const outer = `package outer
		import "allium/internal/inner"

		type BadAlias = inner.T
		type BadPointerAlias = *inner.T
		type BadField struct{ F []inner.T }
		type BadDeepField struct{ F map[string]struct{ G chan inner.T } }
		type BadEmbedded struct{ *inner.T }
		type BadFunc func(x func() inner.T)
		type BadInterface interface{ M(...inner.T) }
		type BadEmbeddedInterface interface{ comparable; ~[]inner.T }
		type BadGeneric[E interface{ inner.T }] struct{}
		type BadMethod struct{}
		func (*BadMethod) M() (int, *inner.T) { return 0, nil }
		func BadResult() inner.G[int] { return inner.G[int]{} }
		func BadArgument(x GoodGeneric[inner.T]) {}
		var BadVariable inner.T
		const BadConstant = inner.C
		type hidden struct{}
		func (hidden) Promoted() {}
		type BadPromotion struct{ hidden }

		type GoodGeneric[E any] struct{ e E }
		type GoodField struct{ f inner.T; F GoodGeneric[int] }
		func (GoodField) m() inner.T { return inner.T{} }
		type GoodFunc func(GoodField) (error, any)
		func goodResult() inner.T { return inner.T{} }
		type goodAlias = inner.T`
	pkgs := map[string]*types.Package{}
	fset := token.NewFileSet()
	for _, src := range []struct{ path, text string }{{"allium/internal/inner", inner}, {"allium/outer", outer}} {
		f, err := parser.ParseFile(fset, src.path, src.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		conf := types.Config{Importer: importMap(pkgs)}
		if pkgs[src.path], err = conf.Check(src.path, fset, []*ast.File{f}, nil); err != nil {
			t.Fatal(err)
		}
	}
	found := leaks(pkgs["allium/outer"])
	for _, name := range pkgs["allium/outer"].Scope().Names() {
		got := slices.ContainsFunc(found, func(s string) bool {
			rest, ok := strings.CutPrefix(s, "allium/outer."+name)
			return ok && (rest[0] == ' ' || rest[0] == '.')
		})
		if want := strings.HasPrefix(name, "Bad"); got != want {
			t.Errorf("%s: found %v, want %v (%q)", name, got, want, found)
		}
	}
}

type importMap map[string]*types.Package

func (m importMap) Import(path string) (*types.Package, error) {
	if p := m[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
