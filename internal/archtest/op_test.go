package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// executor is the package whose operations follow from the traits of commands.
const executor = module + "/internal/exec"

// TestOperationsFollowFromCommands refuses an exec.Op that is written out above the executor:
// exec.NewOp makes it from the traits that the command declares, so that no caller has to remember
// them.
func TestOperationsFollowFromCommands(t *testing.T) {
	for _, dir := range []string{".", "gridfs", "internal/cursor"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if dir == "." && len(files) == 0 {
			t.Fatal("no files")
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range writtenOps(t, file, src) {
				t.Errorf("%s: an exec.Op is written out: make it with exec.NewOp, and declare what it says in the command's Traits", at)
			}
		}
	}
}

// writtenOps returns where a file writes out an exec.Op, alone or in a slice or map, or allocates
// one.
func writtenOps(t *testing.T, file string, src []byte) (places []token.Position) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, imp := range f.Imports {
		if strings.Trim(imp.Path.Value, `"`) == executor {
			if name = path.Base(executor); imp.Name != nil {
				name = imp.Name.Name
			}
		}
	}
	if name == "" {
		return nil
	}
	isOp := func(e ast.Expr) (found bool) {
		if e == nil {
			return false
		}
		ast.Inspect(e, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Op" {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == name {
					found = true
				}
			}
			_, function := n.(*ast.FuncType)
			return !function
		})
		return found
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if _, ok := n.Type.(*ast.StructType); !ok && isOp(n.Type) {
				places = append(places, set.Position(n.Pos()))
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && fn.Name == "new" && len(n.Args) == 1 && isOp(n.Args[0]) {
				places = append(places, set.Position(n.Pos()))
			}
		}
		return true
	})
	return places
}

// TestWrittenOpsAreFound shows violations that the test above must find, and neighbours that it
// must not.
func TestWrittenOpsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`var op = exec.Op{Command: cmd, Kind: exec.Write}`:                        1,
		`var op = &exec.Op{}`:                                                     1,
		`var ops = []exec.Op{{Command: cmd}}`:                                     1,
		`var op = new(exec.Op)`:                                                   1,
		`func f() exec.Op { return exec.Op{Retryable: true} }`:                    1,
		`var op = exec.NewOp(cmd)`:                                                0,
		`func f(op *exec.Op) (exec.Op, error) { var o exec.Op; return o, nil }`:   0,
		`var call = struct { op exec.Op; cmd command.Find }{cmd: command.Find{}}`: 0,
		`var l = exec.Limit{}`:                                                    0,
	} {
		src := "package allium\n\nimport \"" + executor + "\"\n\n" + body + "\n"
		if got := writtenOps(t, "violation.go", []byte(src)); len(got) != want {
			t.Errorf("%s: %d findings, want %d", body, len(got), want)
		}
	}
	if got := writtenOps(t, "renamed.go", []byte("package allium\n\nimport x \""+executor+"\"\n\nvar op = x.Op{}\n")); len(got) != 1 {
		t.Errorf("a renamed import: %d findings, want 1", len(got))
	}
}
