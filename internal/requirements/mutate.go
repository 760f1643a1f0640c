package requirements

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mutant is a file with one small change in one function. A test of what the function decides
// notices it, unless the change means nothing.
type Mutant struct {
	File string // from the module's root
	Line int
	What string // "x == y becomes x != y"
	Text []byte // the whole file
}

// Mutants returns the small changes of a function such as "exec.(*run).choose": conditions turned
// round, halves of conditions and whole statements left out, numbers that are one off. Some do not
// compile. A name of something else than a function has none.
func (s *Source) Mutants(dir, name string) ([]Mutant, error) {
	pkg, err := s.one(s.decls, name)
	if err != nil {
		return nil, err
	}
	_, decl := cut(name)
	folder := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(pkg, root), "/")))
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []Mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return nil, err
		}
		found, err := mutants(text, decl)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			m.File = filepath.ToSlash(rel)
			out = append(out, m)
		}
	}
	return out, nil
}

func mutants(text []byte, decl string) ([]Mutant, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &mutator{text: text, fset: fset}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && names(d)[0] == decl {
			m.results = fn.Type.Results
			ast.Inspect(fn.Body, m.node)
		}
	}
	return m.found, nil
}

type mutator struct {
	text    []byte
	fset    *token.FileSet
	results *ast.FieldList
	found   []Mutant
}

// opposite are the operators that turn a comparison round, and those that move its edge.
var opposite = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.GEQ, token.LEQ}, token.LEQ: {token.GTR, token.LSS},
	token.GTR: {token.LEQ, token.GEQ}, token.GEQ: {token.LSS, token.GTR},
}

func (m *mutator) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		outer := m.results
		m.results = n.Type.Results
		ast.Inspect(n.Body, m.node)
		m.results = outer
		return false
	case *ast.IfStmt:
		m.put(n.Cond, "!("+m.source(n.Cond)+")")
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			m.put(n, m.source(n.X))
			m.put(n, m.source(n.Y))
		}
		for _, op := range opposite[n.Op] {
			m.put(n, m.source(n.X)+" "+op.String()+" "+m.source(n.Y))
		}
	case *ast.ExprStmt:
		m.put(n, "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && len(n.Lhs) == 1 {
			m.put(n, "")
		}
	case *ast.IncDecStmt:
		m.put(n, "")
	case *ast.ReturnStmt:
		if m.results != nil && len(m.results.List) == 1 && len(n.Results) == 1 {
			if id, ok := m.results.List[0].Type.(*ast.Ident); ok && id.Name == "bool" {
				m.put(n.Results[0], "!("+m.source(n.Results[0])+")")
			}
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			m.put(n, strconv.Itoa(i+1))
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			m.put(n, "false")
		case "false":
			m.put(n, "true")
		}
	}
	return true
}

func (m *mutator) source(n ast.Node) string {
	return string(m.text[m.fset.Position(n.Pos()).Offset:m.fset.Position(n.End()).Offset])
}

// put adds the mutant that has other text in place of a node's.
func (m *mutator) put(n ast.Node, with string) {
	from, to := m.fset.Position(n.Pos()), m.fset.Position(n.End())
	text := append([]byte(nil), m.text[:from.Offset]...)
	text = append(append(text, with...), m.text[to.Offset:]...)
	old := strings.Join(strings.Fields(m.source(n)), " ")
	what := fmt.Sprintf("%s becomes %s", old, strings.Join(strings.Fields(with), " "))
	if with == "" {
		what = old + " is left out"
	}
	m.found = append(m.found, Mutant{Line: from.Line, What: what, Text: text})
}
