package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"allium"
	"allium/bson"
)

// Decl is a function, a method or a type of the standard library.
type Decl struct {
	ID       bson.ObjectID `bson:"_id,omitempty"`
	Package  string        `bson:"package"`
	File     string        `bson:"file"` // below $GOROOT/src
	Line     int           `bson:"line"`
	Kind     string        `bson:"kind"` // "func", "method" or "type"
	Name     string        `bson:"name"`
	Receiver string        `bson:"receiver,omitempty"`
	Params   []string      `bson:"params,omitempty"`
	Results  []string      `bson:"results,omitempty"`
	Arity    int           `bson:"arity"`
	Doc      string        `bson:"doc,omitempty"`
	Exported bool          `bson:"exported"`
}

// String returns the declaration as a Go developer would name it.
func (d Decl) String() string {
	name := d.Package + "." + d.Name
	if d.Receiver != "" {
		name = fmt.Sprintf("%s (%s).%s", d.Package, d.Receiver, d.Name)
	}
	return fmt.Sprintf("%s  %s:%d", name, d.File, d.Line)
}

func (d Decl) withoutID() Decl {
	d.ID = bson.NilObjectID
	return d
}

// tally is the program's own count of what it imports.
type tally struct {
	total, deprecated, mostParams int64
	errorsOf                      map[string]int64 // exported functions that return an error, by package
}

var deprecated = regexp.MustCompile(`\bDeprecated: `)

func (t *tally) add(d Decl) {
	t.total++
	if deprecated.MatchString(d.Doc) {
		t.deprecated++
	}
	if !d.Exported || d.Kind == "type" {
		return
	}
	t.mostParams = max(t.mostParams, int64(d.Arity))
	for _, r := range d.Results {
		if r == "error" {
			t.errorsOf[d.Package]++
			break
		}
	}
}

const batchSize = 1000

// load parses the standard library and inserts its declarations, batch by batch.
func load(ctx context.Context, decls *allium.Collection[Decl], p *progress) (*tally, error) {
	defer p.end()
	root, err := goroot(ctx)
	if err != nil {
		return nil, err
	}
	src := filepath.Join(root, "src")
	files, err := sources(src)
	if err != nil {
		return nil, err
	}
	t := &tally{errorsOf: map[string]int64{}}
	var batch []Decl
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := decls.InsertMany(ctx, batch)
		batch = batch[:0]
		return err
	}
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := parse(src, file)
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			t.add(d)
		}
		if batch = append(batch, found...); len(batch) >= batchSize {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		p.show(i+1, len(files), t.total)
	}
	return t, flush()
}

// goroot returns where Go is installed. A program that was built with -trimpath has to ask.
func goroot(ctx context.Context) (string, error) {
	if build.Default.GOROOT != "" {
		return build.Default.GOROOT, nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("where is Go installed? set GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// skipped are folders that hold no packages for everybody to import.
var skipped = map[string]bool{"testdata": true, "cmd": true, "internal": true, "vendor": true, "_asm": true}

// sources lists the Go files of the standard library's public packages, without tests.
func sources(src string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped[d.Name()]:
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go"):
			rel, err := filepath.Rel(src, p)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no Go files below %s: is GOROOT right?", src)
	}
	return files, err
}

// parse returns the declarations of one file.
func parse(src, file string) ([]Decl, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(src, filepath.FromSlash(file)), nil,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []Decl
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			d := describe(fset, file, decl.Name, "func", decl.Doc)
			if decl.Recv != nil && len(decl.Recv.List) > 0 {
				d.Kind, d.Receiver = "method", text(fset, decl.Recv.List[0].Type)
			}
			d.Params, d.Results = types(fset, decl.Type.Params), types(fset, decl.Type.Results)
			d.Arity = len(d.Params)
			out = append(out, d)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					doc := s.Doc
					if doc == nil {
						doc = decl.Doc
					}
					out = append(out, describe(fset, file, s.Name, "type", doc))
				}
			}
		}
	}
	return out, nil
}

func describe(fset *token.FileSet, file string, name *ast.Ident, kind string, doc *ast.CommentGroup) Decl {
	return Decl{
		Package: path.Dir(file), File: file, Line: fset.Position(name.Pos()).Line, Kind: kind, Name: name.Name,
		Doc: doc.Text(), Exported: name.IsExported(),
	}
}

// types lists the types of parameters or results, one for each name.
func types(fset *token.FileSet, fields *ast.FieldList) []string {
	if fields == nil {
		return nil
	}
	var out []string
	for _, f := range fields.List {
		typ := text(fset, f.Type)
		for range max(len(f.Names), 1) {
			out = append(out, typ)
		}
	}
	return out
}

func text(fset *token.FileSet, e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	var b strings.Builder
	if err := printer.Fprint(&b, fset, e); err != nil {
		return err.Error()
	}
	return b.String()
}
