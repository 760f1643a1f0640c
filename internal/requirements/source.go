package requirements

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source is what a checkout of the driver declares.
type Source struct {
	decls map[string][]string // folders by name: "(*T).Method", "T", "run"
	tests map[string][]string
	// modules are the folders of other modules. A name stands for something of theirs only if the
	// driver's own module does not have it.
	modules []string
	json    []string // paths of JSON files below the specifications' source; nil: not at hand
}

// root is how a reference names the module's own folder.
const root = "allium"

// ReadSource reads the declarations of all packages below a folder, also of the modules in it.
// Specifications is a folder with the JSON tests, or "" for none: then their names are not checked.
func ReadSource(dir, specifications string) (*Source, error) {
	s := &Source{decls: map[string][]string{}, tests: map[string][]string{}}
	fset := token.NewFileSet()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != dir {
				rel, err := filepath.Rel(dir, name)
				if err != nil {
					return err
				}
				s.modules = append(s.modules, path.Join(root, filepath.ToSlash(rel)))
			}
			if base := e.Name(); name != dir &&
				(base == "testdata" || strings.HasPrefix(base, ".") || base == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := path.Join(root, filepath.ToSlash(rel))
		for _, d := range f.Decls {
			for _, n := range names(d) {
				into := s.decls
				if strings.HasSuffix(name, "_test.go") {
					into = s.tests
				}
				if !slices.Contains(into[n], pkg) {
					into[n] = append(into[n], pkg)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(s.decls) == 0 {
		return nil, fmt.Errorf("%s has no Go files: it is not the driver's folder", dir)
	}
	if specifications == "" {
		return s, nil
	}
	below := filepath.Join(specifications, "source")
	s.json = []string{}
	return s, filepath.WalkDir(below, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".json") {
			return err
		}
		rel, err := filepath.Rel(below, name)
		s.json = append(s.json, filepath.ToSlash(rel))
		return err
	})
}

func names(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || len(d.Recv.List) == 0 {
			return []string{d.Name.Name}
		}
		t, format := d.Recv.List[0].Type, "%s.%s"
		if star, ok := t.(*ast.StarExpr); ok {
			t, format = star.X, "(*%s).%s"
		}
		switch x := t.(type) {
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		}
		if id, ok := t.(*ast.Ident); ok {
			return []string{fmt.Sprintf(format, id.Name, d.Name.Name)}
		}
	case *ast.GenDecl:
		var out []string
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				out = append(out, spec.Name.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					out = append(out, id.Name)
				}
			}
		}
		return out
	}
	return nil
}

// Declared returns an error if a name such as "exec.(*Executor).Run" stands for no declaration
// outside of tests, or for several.
func (s *Source) Declared(name string) error {
	_, err := s.one(s.decls, name)
	return err
}

// Tested returns an error if a name stands for no Go test and no JSON test.
func (s *Source) Tested(name string) error {
	if strings.HasPrefix(name, "json:") {
		if s.json == nil {
			return nil
		}
		_, err := s.JSON(name)
		return err
	}
	name, _, _ = strings.Cut(name, "#")
	_, fn := cut(name)
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(fn, prefix) {
			_, err := s.one(s.tests, name)
			return err
		}
	}
	return fmt.Errorf("%s is not the name of a test", name)
}

// JSON returns the path of a JSON test's file below the specifications' folder source.
func (s *Source) JSON(test string) (string, error) {
	folder, rest, _ := strings.Cut(strings.TrimPrefix(test, "json:"), "/")
	for _, p := range s.json {
		if strings.HasPrefix(p, folder+"/") && strings.HasSuffix(p, "/"+rest+".json") {
			return p, nil
		}
	}
	return "", fmt.Errorf("there is no file %s.json below %s", rest, folder)
}

// Package returns the folder of the package that declares a test, "." for the root.
func (s *Source) Package(test string) (string, error) {
	name, _, _ := strings.Cut(test, "#")
	pkg, err := s.one(s.tests, name)
	if err != nil {
		return "", err
	}
	return "." + strings.TrimPrefix(pkg, root), nil
}

// Module returns the folder of the module that has a package such as "./otel/example", and the
// package as it is called there.
func (s *Source) Module(pkg string) (dir, below string) {
	dir = "."
	for _, m := range s.modules {
		m = "." + strings.TrimPrefix(m, root)
		if (pkg == m || strings.HasPrefix(pkg, m+"/")) && len(m) > len(dir) {
			dir = m
		}
	}
	if dir == "." {
		return dir, pkg
	}
	return dir, "." + strings.TrimPrefix(pkg, dir)
}

// cut takes "drivertest/wire.(*T).M" apart.
func cut(name string) (pkg, decl string) {
	slash := strings.LastIndexByte(name, '/') + 1
	before, decl, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + before, decl
}

func (s *Source) one(in map[string][]string, name string) (string, error) {
	pkg, decl := cut(name)
	var found, others []string
	for _, p := range in[decl] {
		if p != pkg && !strings.HasSuffix(p, "/"+pkg) {
			continue
		}
		if slices.ContainsFunc(s.modules, func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") }) {
			others = append(others, p)
		} else {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		found = others
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s does not exist", name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s may stand for several: %s", name, strings.Join(found, ", "))
}
