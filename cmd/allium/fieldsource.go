package main

// Packages as allium fields reads them: with their types, and without what it has written before.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sourcePackage is a package as the go command lists it.
type sourcePackage struct {
	Dir, ImportPath, Name, Export string
	GoFiles, CgoFiles             []string
	ImportMap                     map[string]string
	DepOnly                       bool
	Error                         *struct{ Err string }

	types *types.Package
	files []*ast.File
	// broken is the first error of the types, if there is one.
	broken error
}

// sources are the packages that a run of allium fields reads, and what they import.
type sources struct {
	fset   *token.FileSet
	byPath map[string]*sourcePackage
	export types.Importer
	output string // the name of the files that are written, and not read
}

// readSources returns the packages that match patterns. What they import is read as the compiler
// has exported it or, where it could not be compiled since the fields in it are out of date, from
// its source.
func readSources(ctx context.Context, patterns []string, output string) (*sources, []*sourcePackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-deps", "-export", "-json"}, patterns...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	s := &sources{fset: token.NewFileSet(), byPath: map[string]*sourcePackage{}, output: output}
	s.export = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		p := s.byPath[path]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("package %s could not be compiled", path)
		}
		return os.Open(p.Export)
	})
	var chosen []*sourcePackage
	for dec := json.NewDecoder(&stdout); ; {
		p := new(sourcePackage)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		s.byPath[p.ImportPath] = p
		if p.DepOnly {
			continue
		}
		if len(p.GoFiles) == 0 && p.Error != nil {
			return nil, nil, errors.New(p.Error.Err)
		}
		if len(p.GoFiles) > 0 {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	for _, p := range chosen {
		if err := s.check(p); err != nil {
			return nil, nil, err
		}
	}
	return s, chosen, nil
}

// check reads a package from its source.
func (s *sources) check(p *sourcePackage) error {
	if p.types != nil {
		return nil
	}
	for _, name := range append(slices.Clip(p.GoFiles), p.CgoFiles...) {
		if name == s.output {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
	}
	cfg := types.Config{Importer: importing{s, p}, FakeImportC: true, Error: func(err error) {
		if p.broken == nil {
			p.broken = err
		}
	}}
	p.types, _ = cfg.Check(p.ImportPath, s.fset, p.files, nil)
	return nil
}

// importing imports what a package of sources needs.
type importing struct {
	s *sources
	p *sourcePackage
}

func (i importing) Import(path string) (*types.Package, error) {
	if mapped, ok := i.p.ImportMap[path]; ok {
		path = mapped
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	dep := i.s.byPath[path]
	switch {
	case dep != nil && dep.types != nil:
		return dep.types, nil
	case dep != nil && (dep.Export == "" || !dep.DepOnly) && len(dep.GoFiles) > 0:
		if err := i.s.check(dep); err != nil {
			return nil, err
		}
		return dep.types, nil
	}
	return i.s.export.Import(path)
}
