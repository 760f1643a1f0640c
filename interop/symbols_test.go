package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"allium/internal/nightly"
)

// symbolPackages are the packages of the official driver whose exported names
// TestMigrateKnowsSymbols goes through.
var symbolPackages = map[string][]string{
	"v1": {"bson", "bson/primitive", "bson/bsontype", "mongo", "mongo/options", "mongo/readpref", "mongo/readconcern", "mongo/writeconcern", "mongo/gridfs", "event"},
	"v2": {"bson", "mongo", "mongo/options", "mongo/readpref", "mongo/readconcern", "mongo/writeconcern", "event"},
}

// TestMigrateKnowsSymbols uses each exported function, method, field, type, constant and variable
// of the official driver in a function of its own and rewrites those: each compiles with Allium,
// or has a comment of the tool's that says what to do.
func TestMigrateKnowsSymbols(t *testing.T) {
	nightly.Only(t, "rewrites and compiles each name of the official driver")
	root, tool := migrateTool(t)
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			prefix := "go.mongodb.org/mongo-driver/"
			if version == "v2" {
				prefix += "v2/"
			}
			var paths []string
			for _, name := range symbolPackages[version] {
				paths = append(paths, prefix+name)
			}
			official := exportsOf(t, ".", paths)
			fset := token.NewFileSet()
			imp := importer.ForCompiler(fset, "gc", official.open)
			uses := map[string]string{} // by the name of the function: the symbol
			files := map[string]string{}
			for i, path := range paths {
				pkg, err := imp.Import(path)
				if err != nil {
					t.Fatal(err)
				}
				files[fmt.Sprintf("use%d.go", i)] = useSymbols(pkg, i, uses)
			}
			p := &program{dir: t.TempDir()}
			mod, err := os.ReadFile("go.mod")
			if err != nil {
				t.Fatal(err)
			}
			sum, err := os.ReadFile("go.sum")
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(mod), "module allium/interop", "module program", 1)
			p.write(t, "go.mod", strings.Replace(text, "replace allium => ../", "replace allium => "+root, 1))
			p.write(t, "go.sum", string(sum))
			for name, text := range files {
				p.write(t, name, text)
			}
			if out, err := goIn(t, p.dir, "build", "-o", os.DevNull, "."); err != nil {
				t.Fatalf("the uses do not compile: %s", out)
			}
			cmd := exec.CommandContext(t.Context(), tool, "-w")
			cmd.Dir = p.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("allium-migrate: %v\n%s", err, out)
			}
			both := exportsOf(t, p.dir, append(paths, "allium", "allium/bson", "allium/mongoerr", "allium/consistency", "allium/auth", "allium/event", "context", "errors", "fmt", "maps", "reflect",
				"slices", "strings", "time"))
			state := checkUses(t, p.dir, both)
			told, fine := 0, 0
			var wrong []string
			for name, symbol := range uses {
				switch s := state[name]; {
				case s == nil:
					wrong = append(wrong, symbol+" is gone")
				case s.comment:
					told++
				case s.err != "":
					wrong = append(wrong, symbol+": "+s.err+"\n\t"+s.text)
				default:
					fine++
				}
			}
			slices.Sort(wrong)
			for _, w := range wrong {
				t.Error(w)
			}
			t.Logf("of %d symbols %d are rewritten or the same and %d are left with a comment", len(uses), fine, told)
			if len(uses) < 800 || fine < 300 {
				t.Errorf("%d symbols, %d fine", len(uses), fine)
			}
		})
	}
}

func goIn(t *testing.T, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// exports are the files with the types of packages.
type exports map[string]string

func exportsOf(t *testing.T, dir string, paths []string) exports {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-deps", "-export", "-json=ImportPath,Export"}, paths...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	all := exports{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var l struct{ ImportPath, Export string }
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[l.ImportPath] = l.Export
	}
}

func (e exports) open(path string) (io.ReadCloser, error) {
	if e[path] == "" {
		return nil, fmt.Errorf("no types of %s", path)
	}
	return os.Open(e[path])
}

// useSymbols returns a file with a function for each exported symbol of a package.
func useSymbols(pkg *types.Package, number int, uses map[string]string) string {
	imports := map[string]string{pkg.Path(): pkg.Name()}
	qualify := func(p *types.Package) string {
		imports[p.Path()] = p.Name()
		return p.Name()
	}
	named := func(t types.Type) string { return types.TypeString(t, qualify) }
	var b strings.Builder
	n := 0
	// A type that has no exported name cannot stand in a parameter.
	nameable := func(t types.Type) bool {
		text := named(t)
		return !regexp.MustCompile(`\.[a-z]\w*\b`).MatchString(regexp.MustCompile(`interface\{.*\}`).ReplaceAllString(text, "")) && !strings.Contains(text, "/internal")
	}
	add := func(symbol, params, body string) {
		n++
		name := fmt.Sprintf("use%d_%d", number, n)
		uses[name] = pkg.Path()[len("go.mongodb.org/mongo-driver/"):] + "." + symbol
		fmt.Fprintf(&b, "func %s(%s) {\n\t%s\n}\n\n", name, params, body)
	}
	call := func(symbol, fn, recv string, sig *types.Signature) {
		var params, args []string
		if recv != "" {
			params = append(params, recv)
		}
		for i := range sig.Params().Len() {
			t := sig.Params().At(i).Type()
			if !nameable(t) {
				return
			}
			if sig.Variadic() && i == sig.Params().Len()-1 {
				break
			}
			params = append(params, fmt.Sprintf("a%d %s", i, named(t)))
			args = append(args, fmt.Sprintf("a%d", i))
		}
		body := fn + "(" + strings.Join(args, ", ") + ")"
		if results := sig.Results().Len(); results > 0 {
			body = strings.Repeat("_, ", results-1) + "_ = " + body
		}
		add(symbol, strings.Join(params, ", "), body)
	}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		q := pkg.Name() + "." + name
		switch obj := obj.(type) {
		case *types.Const, *types.Var:
			add(name, "", "_ = "+q)
		case *types.Func:
			if obj.Signature().TypeParams() != nil {
				continue
			}
			call(name, q, "", obj.Signature())
		case *types.TypeName:
			if g, ok := obj.Type().(interface{ TypeParams() *types.TypeParamList }); ok && g.TypeParams().Len() > 0 {
				continue
			}
			add(name, "v "+q, "_ = v")
			if s, ok := obj.Type().Underlying().(*types.Struct); ok {
				for f := range s.Fields() {
					if f.Exported() {
						add(name+"."+f.Name(), "v *"+q, "_ = v."+f.Name())
					}
				}
			}
			recv, t := "v "+q, obj.Type()
			if !types.IsInterface(t) {
				recv, t = "v *"+q, types.NewPointer(t)
			}
			set := types.NewMethodSet(t)
			for m := range set.Methods() {
				if f := m.Obj().(*types.Func); f.Exported() {
					call(name+"."+f.Name()+"()", "v."+f.Name(), recv, m.Type().(*types.Signature))
				}
			}
		}
	}
	var head strings.Builder
	head.WriteString("package program\n\nimport (\n")
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		name := imports[path]
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(b.String()) {
			fmt.Fprintf(&head, "\t%q\n", path)
		}
	}
	head.WriteString(")\n\n")
	return head.String() + b.String()
}

// use is what became of a function.
type use struct {
	comment   bool
	err, text string
}

// checkUses type-checks the package in a folder and returns what became of each function.
func checkUses(t *testing.T, dir string, all exports) map[string]*use {
	t.Helper()
	fset := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]*use{}
	type extent struct {
		file     string
		from, to int // lines
		use      *use
	}
	var extents []extent
	var parsed []*ast.File
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, file, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		lines := strings.Split(string(src), "\n")
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			if fn.Doc != nil {
				from = fset.Position(fn.Doc.Pos()).Line
			}
			text := strings.Join(lines[from-1:to], "\n\t")
			u := &use{comment: strings.Contains(text, "// allium-migrate: "), text: text}
			state[fn.Name.Name] = u
			extents = append(extents, extent{file, from, to, u})
		}
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", all.open), Error: func(err error) {
		var te types.Error
		if !errors.As(err, &te) {
			return
		}
		at := fset.Position(te.Pos)
		for _, e := range extents {
			if e.file == at.Filename && e.from <= at.Line && at.Line <= e.to {
				e.use.err = te.Msg
				return
			}
		}
		if !strings.Contains(te.Msg, "imported and not used") {
			t.Error(err)
		}
	}}
	config.Check("program", fset, parsed, nil)
	return state
}
