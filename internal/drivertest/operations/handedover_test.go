package operations

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// handedOver returns the names of the structs that programs hand to the driver: those in the
// parameters of the exported functions and methods of the packages that programs import, and those
// that a parameter may hold whose interface only its own package implements. A struct without
// pointers, slices, maps and interfaces is not one of them: passing it copies it.
func handedOver(t *testing.T) []string {
	t.Helper()
	list := func(args ...string) []string {
		t.Helper()
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Dir = "../../.."
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	var paths []string
	for _, path := range list("./...") {
		_, below, _ := strings.Cut(path, "/")
		if part, _, _ := strings.Cut(below, "/"); !slices.Contains([]string{"internal", "mongotest", "cmd", "examples", "tools"}, part) && !strings.Contains(path, "/internal") {
			paths = append(paths, path)
		}
	}
	exports := map[string]string{}
	for _, line := range list(append([]string{"-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}, paths...)...) {
		path, file, _ := strings.Cut(line, "=")
		exports[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var pkgs []*types.Package
	for _, path := range paths {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, pkg)
	}
	found := map[string]bool{}
	for _, pkg := range pkgs {
		for _, name := range pkg.Scope().Names() {
			switch obj := pkg.Scope().Lookup(name).(type) {
			case *types.Func:
				if obj.Exported() {
					fromParams(found, pkgs, obj)
				}
			case *types.TypeName:
				if named, ok := obj.Type().(*types.Named); ok && obj.Exported() {
					for m := range named.Methods() {
						if m.Exported() {
							fromParams(found, pkgs, m)
						}
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func fromParams(found map[string]bool, pkgs []*types.Package, f *types.Func) {
	for p := range f.Signature().Params().Variables() {
		fromType(found, pkgs, p.Type())
	}
}

// fromType adds what a parameter of a type may bring.
func fromType(found map[string]bool, pkgs []*types.Package, typ types.Type) {
	switch typ := types.Unalias(typ).(type) {
	case *types.Pointer:
		fromType(found, pkgs, typ.Elem())
	case *types.Slice:
		fromType(found, pkgs, typ.Elem())
	case *types.Named:
		if !slices.Contains(pkgs, typ.Obj().Pkg()) {
			return
		}
		switch under := typ.Underlying().(type) {
		case *types.Struct:
			if fillable(under) && refers(typ, nil) {
				found[fmt.Sprintf("%s.%s", typ.Obj().Pkg().Path(), typ.Obj().Name())] = true
			}
		case *types.Interface:
			if !sealed(under) {
				return
			}
			for _, pkg := range pkgs {
				for _, name := range pkg.Scope().Names() {
					if obj, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && obj.Exported() && !types.IsInterface(obj.Type()) && types.Implements(obj.Type(), under) {
						fromType(found, pkgs, obj.Type())
					}
				}
			}
		}
	}
}

// fillable reports whether programs can fill a struct.
func fillable(s *types.Struct) bool {
	for f := range s.Fields() {
		if f.Exported() {
			return true
		}
	}
	return false
}

// sealed reports whether only its own package implements an interface.
func sealed(i *types.Interface) bool {
	for m := range i.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

// refers reports whether a value of the type can share something with a copy of it that could be
// changed.
func refers(typ types.Type, above []types.Type) bool {
	if slices.Contains(above, typ) {
		return false
	}
	switch under := typ.Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map, *types.Interface:
		return true
	case *types.Array:
		return refers(under.Elem(), above)
	case *types.Struct:
		for f := range under.Fields() {
			if refers(f.Type(), append(above, typ)) {
				return true
			}
		}
	}
	return false
}
