// Command licences writes the table of docs/dependencies.md: every module that is linked into a
// program with the driver, mongotest, the command allium or a published module of this repository,
// with its version and its licence:
//
//	go run ./tools/licences
//
// The licences are read from the modules' own files. One that is not known, or is not among those
// that the page allows, is an error.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const page = "docs/dependencies.md"

// mark stands before what is printed.
const mark = "<!-- From here on the page is printed: go run ./tools/licences -->\n"

func main() {
	err := update(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// update writes the page of the repository in dir.
func update(dir string) error {
	name := filepath.Join(dir, filepath.FromSlash(page))
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := fill(dir, string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// fill returns the page with the table of today.
func fill(dir, old string) (string, error) {
	before, _, ok := strings.Cut(old, mark)
	if !ok {
		return "", errors.New(page + " does not say where the printed part begins")
	}
	list, err := dependencies(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(before + mark + "\n| module | version | licence | linked by |\n|---|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(list)) {
		d := list[path]
		slices.SortFunc(d.by, func(a, b string) int {
			return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a, b))
		})
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", path, d.version, d.licence, strings.Join(d.by, ", "))
	}
	return b.String(), nil
}

// order puts the driver first and the modules last.
func order(by string) int {
	switch {
	case by == "the driver":
		return 0
	case strings.HasPrefix(by, "module "):
		return 2
	}
	return 1
}

type dependency struct {
	version, licence string
	by               []string
}

// private is a go.mod of a module that is of use in this repository alone.
var private = regexp.MustCompile(`(?m)^module .*// not published\b`)

// dependencies returns the modules that packages of this repository are linked with, by their
// paths.
func dependencies(dir string) (map[string]dependency, error) {
	all := map[string]dependency{}
	files, err := command(dir, "git", "ls-files", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Fields(files) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		if private.Match(text) || strings.Contains(file, "testdata/") {
			continue
		}
		folder := filepath.Dir(filepath.FromSlash(file))
		groups := map[string][]string{"module " + filepath.ToSlash(folder): {"./..."}}
		if folder == "." {
			if groups, err = ownGroups(dir); err != nil {
				return nil, err
			}
		}
		for _, by := range slices.Sorted(maps.Keys(groups)) {
			if err := collect(all, filepath.Join(dir, folder), by, groups[by]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// ownGroups divides the packages of the root module: the driver's, and those of mongotest and the
// command.
func ownGroups(dir string) (map[string][]string, error) {
	out, err := command(dir, "go", "list", "-f", "{{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	top, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return nil, err
	}
	groups := map[string][]string{}
	for line := range strings.Lines(out) {
		rel, err := filepath.Rel(top, strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		rel = filepath.ToSlash(rel)
		by := "the driver"
		switch first, _, _ := strings.Cut(rel, "/"); first {
		case "internal", "examples", "tools", "dropin":
			continue // what public packages link of these counts with them
		case "mongotest", "cmd":
			by = "mongotest, allium"
		}
		if rel == "encryption/encryptiontest" {
			by = "mongotest, allium"
		}
		groups[by] = append(groups[by], "./"+rel)
	}
	return groups, nil
}

// collect adds what some packages are linked with.
func collect(all map[string]dependency, dir, by string, packages []string) error {
	out, err := command(dir, "go", append([]string{"list", "-deps", "-f",
		"{{with .Module}}{{if and .Version (not .Replace)}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"},
		packages...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			continue
		}
		d, ok := all[fields[0]]
		if !ok {
			if d.licence, err = licenceOf(fields[2]); err != nil {
				return fmt.Errorf("%s: %w", fields[0], err)
			}
			d.version = fields[1]
		}
		if d.version != fields[1] {
			return fmt.Errorf("%s is required as %s and as %s", fields[0], d.version, fields[1])
		}
		if !slices.Contains(d.by, by) {
			d.by = append(d.by, by)
		}
		all[fields[0]] = d
	}
	return nil
}

// licenceOf reads the licence of the module in a folder: its file LICENSE, LICENCE or COPYING.
func licenceOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "[LlC][IiO][CcP][EeY][NnI][CcSsN][EeG]*"))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		if name := classify(string(text)); name != "" {
			return name, nil
		}
	}
	return "", fmt.Errorf("no licence that is known in %q", files)
}

// kinds are the licences that a dependency may have, by what their texts say.
var kinds = []struct{ name, says string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
}

// classify names the licences of a text, several if parts of the module have another one, and "" if
// it is none of those that are known.
func classify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	var names []string
	for _, k := range kinds {
		if strings.Contains(text, k.says) {
			names = append(names, k.name)
		}
	}
	if strings.Contains(text, "Redistribution and use in source and binary forms") {
		name := "BSD-2-Clause"
		if regexp.MustCompile(`(?i)neither the names? of`).MatchString(text) {
			name = "BSD-3-Clause"
		}
		names = append(names, name)
	}
	return strings.Join(slices.Compact(names), ", ")
}

// command runs a program and returns what it prints.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOOS=linux", "GOARCH=amd64")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.Bytes())
	}
	return string(out), nil
}
