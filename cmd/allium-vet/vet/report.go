package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

const ignoreComment = "//allium:ignore"

// report reports a finding, unless the line or the one above it has a comment that says not to, or
// the file is generated.
func report(pass *analysis.Pass, at ast.Node, fixes []analysis.SuggestedFix, format string, args ...any) {
	file := fileOf(pass, at.Pos())
	if file == nil || ast.IsGenerated(file) || ignored(pass, file, at.Pos()) {
		return
	}
	pass.Report(analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: pass.Analyzer.Name,
		Message: fmt.Sprintf(format, args...), SuggestedFixes: fixes})
}

func fileOf(pass *analysis.Pass, pos token.Pos) *ast.File {
	i := slices.IndexFunc(pass.Files, func(f *ast.File) bool { return f.FileStart <= pos && pos < f.FileEnd })
	if i < 0 {
		return nil
	}
	return pass.Files[i]
}

// ignored reports whether a comment lets the rule pass at a position:
//
//	//allium:ignore RULE REASON
//
// One without a reason does not count.
func ignored(pass *analysis.Pass, file *ast.File, pos token.Pos) bool {
	line := pass.Fset.Position(pos).Line
	for _, group := range file.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, ignoreComment+" ")
			if !ok {
				continue
			}
			if l := pass.Fset.Position(c.Pos()).Line; l != line && l != line-1 {
				continue
			}
			if words := strings.Fields(text); len(words) > 1 && words[0] == pass.Analyzer.Name {
				return true
			}
		}
	}
	return false
}

// inTest reports whether the position is in a test.
func inTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}

// fix is a suggested fix that puts texts into the place of nodes.
func fix(message string, edits ...analysis.TextEdit) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{Message: message, TextEdits: edits}}
}

func replace(n ast.Node, text string) analysis.TextEdit {
	return analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(text)}
}

func insert(at token.Pos, text string) analysis.TextEdit {
	return analysis.TextEdit{Pos: at, End: at, NewText: []byte(text)}
}

// typeName writes a type as an error text names it.
func typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

// functions calls f with each function of the files, literals included, and those around it, the
// innermost last.
func functions(u *usage, f func(fn ast.Node, typ *ast.FuncType, body *ast.BlockStmt, around []ast.Node)) {
	u.files.WithStack([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)},
		func(n ast.Node, push bool, stack []ast.Node) bool {
			if push {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Body != nil {
						f(n, n.Type, n.Body, stack)
					}
				case *ast.FuncLit:
					f(n, n.Type, n.Body, stack)
				}
			}
			return true
		})
}

// inTestdata reports whether a file is test data.
func inTestdata(pass *analysis.Pass, pos token.Pos) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(pass.Fset.Position(pos).Filename), "/"), "testdata")
}
