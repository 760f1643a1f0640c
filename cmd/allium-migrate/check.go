package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The statuses of -check and -dropin, for scripts.
const (
	statusFine    = 0 // the drop-in has all, or the module does not use the official driver
	statusFailure = 1 // something went wrong
	statusUsage   = 2
	statusMissing = 3 // the drop-in lacks something
	statusUndone  = 4 // go build or go vet failed with the drop-in: nothing has changed
)

// officialPaths are the module paths of the official driver, by version, with the folders of the
// drop-in.
var officialPaths = []struct{ path, folder string }{
	{"go.mongodb.org/mongo-driver", "dropin/driver1"}, {"go.mongodb.org/mongo-driver/v2", "dropin/v2"},
}

// moduleOf returns the module of the official driver that a package is in, "" if it is in none.
func moduleOf(pkg string) string {
	const first, second = "go.mongodb.org/mongo-driver", "go.mongodb.org/mongo-driver/v2"
	switch {
	case pkg == second || strings.HasPrefix(pkg, second+"/"):
		return second
	case pkg == first || strings.HasPrefix(pkg, first+"/"):
		return first
	}
	return ""
}

// uses is what a module uses of the official driver.
type uses struct {
	module   string            // its own path
	root     string            // its folder
	versions map[string]string // of the official driver's modules, by path
	by       []*usedBy
	symbols  map[string]symbol // by text
}

// usedBy is a package that uses the official driver.
type usedBy struct {
	path, module string // module is "path@version" of another module, "" for the module itself
	symbols      map[string]bool
}

// symbol is an exported name of the official driver: pkg.Name, or pkg.Type.Member.
type symbol struct {
	pkg, typ, name string
	at             token.Position // where it is used
	in             string         // the package that uses it
}

func (s symbol) String() string {
	if s.typ != "" {
		return s.pkg + "." + s.typ + "." + s.name
	}
	return s.pkg + "." + s.name
}

// goOutput runs the go command in a folder and returns what it prints.
func goOutput(dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if env != nil {
		cmd.Env = append(os.Environ(), env...)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// findUses reads the packages of a module that match the patterns, with their tests and all that
// they import, and returns what of that uses the official driver.
func findUses(dir string, patterns []string) (*uses, error) {
	out, err := goOutput(dir, nil, "list", "-m", "-json=Path,Dir,Main")
	var untidy []string // what makes the go command work with a go.mod that it would change
	if err != nil {
		copied, remove, copyErr := copyMod(dir)
		if copyErr != nil {
			return nil, err
		}
		defer remove()
		untidy = []string{"-mod=mod", "-modfile=" + copied}
		if out, err = goOutput(dir, nil,
			append([]string{"list", "-m", "-json=Path,Dir,Main"}, untidy...)...); err != nil {
			return nil, err
		}
	}
	list := func() ([]byte, error) {
		return goOutput(dir, nil, slices.Concat([]string{"list", "-e", "-test", "-deps", "-export", "-json"}, untidy,
			patterns)...)
	}
	u := &uses{versions: map[string]string{}, symbols: map[string]symbol{}}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; { // several in a workspace
		var m struct{ Path, Dir string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(m.Dir, abs); err == nil && !strings.HasPrefix(rel, "..") &&
			len(m.Dir) > len(u.root) {
			u.module, u.root = m.Path, m.Dir
		}
	}
	if u.root == "" {
		return nil, errors.New("there is no go.mod here")
	}
	if out, err = list(); err != nil && untidy == nil {
		copied, remove, copyErr := copyMod(dir)
		if copyErr != nil {
			return nil, err
		}
		defer remove()
		untidy = []string{"-mod=mod", "-modfile=" + copied}
		out, err = list()
	}
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var importers []*listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if m := moduleOf(l.ImportPath); m != "" {
			if l.Module != nil && l.Module.Path == m {
				u.versions[m] = l.Module.Version
				if l.Module.Replace != nil {
					u.versions[m] = "replaced by " + l.Module.Replace.Path
				}
			}
			continue
		}
		if !l.Standard && slices.ContainsFunc(l.Imports, func(path string) bool { return moduleOf(path) != "" }) {
			importers = append(importers, &l)
		}
	}
	for _, l := range importers {
		p, err := check(l, exports)
		if err != nil {
			return nil, err
		}
		path, _, _ := strings.Cut(l.ImportPath, " ")
		by := &usedBy{path: path, symbols: map[string]bool{}}
		if at := slices.IndexFunc(u.by, func(b *usedBy) bool { return b.path == path }); at >= 0 {
			by = u.by[at] // with and without its tests
		} else {
			u.by = append(u.by, by)
		}
		if l.Module != nil && l.Module.Path != u.module {
			by.module = l.Module.Path
			if l.Module.Version != "" {
				by.module += "@" + l.Module.Version
			}
		}
		for id, obj := range p.info.Uses {
			s, ok := symbolOf(obj)
			if !ok {
				continue
			}
			by.symbols[s.String()] = true
			if _, known := u.symbols[s.String()]; !known {
				s.at, s.in = p.fset.Position(id.Pos()), path
				u.symbols[s.String()] = s
			}
		}
	}
	return u, nil
}

// copyMod copies go.mod and go.sum, for the go command to change, and returns the copy's name.
func copyMod(dir string) (name string, remove func(), err error) {
	out, err := goOutput(dir, nil, "env", "GOMOD", "GOWORK")
	if err != nil {
		return "", nil, err
	}
	mod, work, _ := strings.Cut(string(out), "\n")
	if work = strings.TrimSpace(work); filepath.Base(mod) != "go.mod" || work != "" && work != "off" {
		return "", nil, errors.New("no go.mod that counts alone")
	}
	temp, err := os.MkdirTemp("", "allium-migrate-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(temp) }
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(mod), file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(temp, file), content, 0o644)
		}
		if err != nil {
			remove()
			return "", nil, err
		}
	}
	return filepath.Join(temp, "go.mod"), remove, nil
}

// symbolOf returns the symbol of the official driver that an object is. Members of types are named
// by the type that declares them.
func symbolOf(obj types.Object) (symbol, bool) {
	if obj == nil || obj.Pkg() == nil || moduleOf(obj.Pkg().Path()) == "" || !obj.Exported() {
		return symbol{}, false
	}
	s := symbol{pkg: obj.Pkg().Path(), name: obj.Name()}
	switch obj := obj.(type) {
	case *types.PkgName:
		return symbol{}, false
	case *types.Func:
		if recv := obj.Signature().Recv(); recv != nil {
			s.typ = typeName(recv.Type())
			if s.typ == "" {
				return symbol{}, false // of an interface without a name
			}
		}
	case *types.Var:
		if obj.IsField() {
			s.typ = ownerOf(obj)
			if s.typ == "" {
				return symbol{}, false
			}
		}
	}
	return s, true
}

// ownerOf returns the name of the exported struct type that has a field.
func ownerOf(field *types.Var) string {
	scope := field.Pkg().Scope()
	for _, name := range scope.Names() {
		t, ok := scope.Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		s, ok := t.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for f := range s.Fields() {
			if f == field || f.Origin() == field.Origin() {
				return name
			}
		}
	}
	return ""
}

// alliumFolder returns the folder of Allium's sources: the one that is given, or the one beside the
// module.
func alliumFolder(given, root, module string) (string, error) {
	dir := given
	if dir == "" {
		dir = filepath.Join(root, "..", "allium")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		return "", fmt.Errorf("no sources of Allium in %s: name their folder with -allium", dir)
	}
	return dir, nil
}

// missing returns the symbols that the drop-in in Allium's folder does not have, in order.
func (u *uses) missing(allium string) ([]symbol, error) {
	var gone []symbol
	for _, module := range officialPaths {
		var paths []string
		for _, s := range u.symbols {
			if moduleOf(s.pkg) == module.path && !slices.Contains(paths, s.pkg) {
				paths = append(paths, s.pkg)
			}
		}
		if len(paths) == 0 {
			continue
		}
		slices.Sort(paths)
		dir := filepath.Join(allium, filepath.FromSlash(module.folder))
		out, err := goOutput(dir, []string{"GOWORK=off", "GOFLAGS=" + flagsWithoutMod()},
			append([]string{"list", "-e", "-deps", "-export", "-json=ImportPath,Export"}, paths...)...)
		if err != nil {
			return nil, err
		}
		exports := map[string]string{}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var l listed
			if err := dec.Decode(&l); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			exports[l.ImportPath] = l.Export
		}
		imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
			if exports[path] == "" {
				return nil, fmt.Errorf("no types of %s", path)
			}
			return os.Open(exports[path])
		})
		packages := map[string]*types.Package{}
		for _, path := range paths {
			if exports[path] == "" {
				continue // the drop-in does not have the package
			}
			if packages[path], err = imp.Import(path); err != nil {
				return nil, err
			}
		}
		for _, s := range u.symbols {
			if moduleOf(s.pkg) == module.path && !hasSymbol(packages[s.pkg], s) {
				gone = append(gone, s)
			}
		}
	}
	slices.SortFunc(gone, func(a, b symbol) int { return strings.Compare(a.String(), b.String()) })
	return gone, nil
}

// flagsWithoutMod returns $GOFLAGS without what says how the program's modules are found.
func flagsWithoutMod() string {
	var kept []string
	for f := range strings.FieldsSeq(os.Getenv("GOFLAGS")) {
		if name := strings.TrimLeft(f, "-"); !strings.HasPrefix(name, "mod=") && !strings.HasPrefix(name, "modfile=") {
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}

// hasSymbol reports whether a package has a symbol.
func hasSymbol(pkg *types.Package, s symbol) bool {
	if pkg == nil {
		return false
	}
	name := s.name
	if s.typ != "" {
		name = s.typ
	}
	obj := pkg.Scope().Lookup(name)
	if obj == nil || s.typ == "" {
		return obj != nil
	}
	member, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, s.name)
	return member != nil
}

// print writes what is used, by whom, and what is missing.
func (u *uses) print(w io.Writer, missing []symbol) {
	for _, module := range officialPaths {
		if v := u.versions[module.path]; v != "" {
			fmt.Fprintf(w, "%s uses %s %s\n", u.module, module.path, v)
		}
	}
	for _, by := range u.by {
		in := ""
		if by.module != "" {
			in = ", of " + by.module
		}
		fmt.Fprintf(w, "  %s: %d names%s\n", by.path, len(by.symbols), in)
	}
	if len(missing) == 0 {
		fmt.Fprintf(w, "the drop-in has all %d names\n", len(u.symbols))
		return
	}
	fmt.Fprintf(w, "of %d names the drop-in lacks %d:\n", len(u.symbols), len(missing))
	for _, s := range missing {
		file := s.at.Filename
		if rel, err := filepath.Rel(u.root, file); err == nil && !strings.HasPrefix(rel, "..") {
			file = rel
		}
		fmt.Fprintf(w, "  %s: %s:%d\n", s, file, s.at.Line)
	}
}

// edits are the arguments of go mod edit that put the drop-in in the official driver's place.
func (u *uses) edits(allium, module string) (require string, replace [][2]string) {
	path := func(folder string) string {
		dir := filepath.Join(allium, filepath.FromSlash(folder))
		if rel, err := filepath.Rel(u.root, dir); err == nil && strings.Count(filepath.ToSlash(rel), "../") <= 2 {
			return filepath.ToSlash(rel)
		}
		return filepath.ToSlash(dir)
	}
	replace = [][2]string{{module, path("")}}
	first := u.versions[officialPaths[0].path] != ""
	for i, m := range officialPaths {
		if i == 0 && !first {
			continue // the first version stands on the second
		}
		replace = append(replace, [2]string{m.path, path(m.folder)})
	}
	return module + " v0.0.0", replace
}

func (u *uses) printEdits(w io.Writer, allium, module string) {
	require, replace := u.edits(allium, module)
	fmt.Fprintf(w, "\nrequire %s\n\nreplace (\n", require)
	for _, r := range replace {
		fmt.Fprintf(w, "\t%s => %s\n", r[0], r[1])
	}
	fmt.Fprintln(w, ")")
}

// checkModule is -check and, with write, -dropin.
func checkModule(dir string, patterns []string, folder, module string, write bool, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "allium-migrate:", err)
		return statusFailure
	}
	u, err := findUses(dir, patterns)
	if err != nil {
		return fail(err)
	}
	if len(u.by) == 0 {
		fmt.Fprintf(stdout, "%s does not use the official driver\n", u.module)
		return statusFine
	}
	allium, err := alliumFolder(folder, u.root, module)
	if err != nil {
		return fail(err)
	}
	missing, err := u.missing(allium)
	if err != nil {
		return fail(err)
	}
	u.print(stdout, missing)
	if len(missing) > 0 {
		return statusMissing
	}
	if !write {
		fmt.Fprint(stdout, "\nadd to go.mod:\n")
		u.printEdits(stdout, allium, module)
		return statusFine
	}
	for _, m := range officialPaths {
		if v := u.versions[m.path]; strings.HasPrefix(v, "replaced by ") {
			return fail(fmt.Errorf("%s is replaced already: take that line out first", m.path))
		}
	}
	undone, err := u.install(dir, patterns, allium, module)
	if err != nil {
		if undone {
			fmt.Fprintf(stderr, "allium-migrate: %v\nnothing has changed\n", err)
			return statusUndone
		}
		return fail(err)
	}
	fmt.Fprint(stdout, "go build and go vet pass with the drop-in; go.mod has:\n")
	u.printEdits(stdout, allium, module)
	fmt.Fprintln(stdout, "\nto go back, delete these lines")
	return statusFine
}
