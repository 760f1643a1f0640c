package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"allium"
	"allium/patterns/schema"
)

// schemaFlags are the command line of allium schema.
type schemaFlags struct {
	file     string
	db       string
	whole    bool
	noScan   bool
	drop     bool
	only     string
	json     bool
	format   string
	pkg      string
	variable string
}

func (f *schemaFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.file, "file", "", "plan and apply: the `file` with the declared schema, as schema.Main of package allium/patterns/schema writes it; - is the standard input")
	fs.StringVar(&f.db, "db", "", "the `database` (default: that of the connection string)")
	fs.BoolVar(&f.whole, "whole", false,
		"the schema is all that the database has: a collection that is not declared is a difference")
	fs.BoolVar(&f.noScan, "noscan", false, "plan: read no documents to look for what is in the way")
	fs.BoolVar(&f.drop, "drop", false, "apply: drop what is not declared, and rebuild what cannot be changed in place")
	fs.StringVar(&f.only, "only", "", "apply -drop: drop and rebuild these `names` alone, collection or collection.index, separated by commas")
	fs.BoolVar(&f.json, "json", false, "print each change as a JSON object on a line of its own")
	fs.StringVar(&f.format, "format", "go", "export: write go or json")
	fs.StringVar(&f.pkg, "package", "schema", "export: the `name` of the Go package")
	fs.StringVar(&f.variable, "variable", "Schema", "export: the `name` of the Go variable")
}

// schemaVerb compares what databases have beside their documents with what is declared, or with
// each other.
func schemaVerb(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium schema"
	var f schemaFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	actions := map[string]func(context.Context, *schemaFlags, []string, io.Writer, io.Writer) (int,
		error){"plan": planSchema, "apply": applySchema, "diff": diffSchema, "export": exportSchema}
	action := actions[fs.Arg(0)]
	arguments := 1
	if fs.Arg(0) == "diff" {
		arguments = 2
	}
	declared := fs.Arg(0) == "plan" || fs.Arg(0) == "apply"
	switch {
	case action == nil:
		return misuse(name, stderr, "want plan, apply, diff or export")
	case fs.NArg() != 1+arguments && arguments == 1:
		return misuse(name, stderr, fs.Arg(0)+" wants one connection string")
	case fs.NArg() != 1+arguments:
		return misuse(name, stderr, "diff wants two connection strings, or files with schemas")
	case declared && f.file == "":
		return misuse(name, stderr, fs.Arg(0)+" wants -file, with what schema.Main writes")
	case !declared && f.file != "":
		return misuse(name, stderr, "-file is for plan and apply")
	case f.format != "go" && f.format != "json":
		return misuse(name, stderr, "-format is go or json")
	case f.only != "" && !f.drop:
		return misuse(name, stderr, "-only says what -drop drops")
	}
	status, err := action(ctx, &f, fs.Args()[1:], stdout, stderr)
	if errors.Is(err, errNoDatabase) {
		return misuse(name, stderr, err.Error())
	}
	if err != nil {
		return fail(name, stderr, err)
	}
	return status
}

// database calls a function with the database that a connection string or -db names.
func (f *schemaFlags) database(ctx context.Context, connectionString string, use func(*allium.Database) error) error {
	return inDatabase(ctx, connectionString, f.db, 0, use)
}

// readSchema reads a schema from a file, or from the standard input.
func readSchema(file string) (schema.Schema, error) {
	r, err := input(file)
	if err != nil {
		return schema.Schema{}, err
	}
	defer r.Close()
	s, err := schema.ReadJSON(r)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return s, err
}

// changeJSON is a change as -json prints it.
type changeJSON struct {
	Action     schema.Action `json:"action"`
	Collection string        `json:"collection"`
	Index      string        `json:"index,omitempty"`
	Search     bool          `json:"search,omitempty"`
	What       string        `json:"what"`
	Cost       string        `json:"cost,omitempty"`
	Documents  int64         `json:"documents,omitempty"`
	Problem    string        `json:"problem,omitempty"`
	Sample     string        `json:"sample,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// print prints changes, and returns the exit status of a comparison.
func (f *schemaFlags) print(changes schema.Changes, stdout io.Writer) int {
	if f.json {
		for _, c := range changes {
			f.printOne(c, nil, stdout)
		}
	} else {
		fmt.Fprint(stdout, changes)
	}
	if len(changes) > 0 {
		return differs
	}
	return succeeded
}

func (f *schemaFlags) printOne(c schema.Change, err error, stdout io.Writer) {
	if !f.json {
		fmt.Fprintln(stdout, c)
		if err != nil {
			fmt.Fprintf(stdout, "  failed: %v\n", err)
		}
		return
	}
	out := changeJSON{c.Action, c.Collection, c.Index, c.Search, c.What, c.Cost, c.Documents, c.Problem, c.Sample, ""}
	if err != nil {
		out.Error = err.Error()
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	e.Encode(out)
}

// planSchema prints what differs between a database and what is declared.
func planSchema(ctx context.Context, f *schemaFlags, args []string, stdout, _ io.Writer) (status int, err error) {
	declared, err := readSchema(f.file)
	if err != nil {
		return failed, err
	}
	err = f.database(ctx, args[0], func(db *allium.Database) error {
		changes, err := schema.Plan(ctx, db, declared, schema.PlanOptions{Whole: f.whole, NoScan: f.noScan})
		if err == nil {
			status = f.print(changes, stdout)
		}
		return err
	})
	return status, err
}

// applySchema makes a database as it is declared, prints what it has made, and says what is left.
func applySchema(ctx context.Context, f *schemaFlags, args []string, stdout, stderr io.Writer) (status int, err error) {
	declared, err := readSchema(f.file)
	if err != nil {
		return failed, err
	}
	o := schema.ApplyOptions{Drop: f.drop, Whole: f.whole, Report: func(c schema.Change, err error) {
		f.printOne(c, err, stdout)
	}}
	if f.only != "" {
		names := strings.Split(f.only, ",")
		o.DropOnly = func(c schema.Change) bool { return slices.Contains(names, c.Name()) }
	}
	err = f.database(ctx, args[0], func(db *allium.Database) error {
		if _, err := schema.Apply(ctx, db, declared, o); err != nil {
			return err
		}
		left, err := schema.Plan(ctx, db, declared, schema.PlanOptions{Whole: f.whole, NoScan: true})
		if err == nil && left != nil {
			fmt.Fprintf(stderr, "allium schema: left as it is: -drop drops and rebuilds\n%v", left)
		}
		return err
	})
	return succeeded, err
}

// diffSchema compares two databases or files.
func diffSchema(ctx context.Context, f *schemaFlags, args []string, stdout, _ io.Writer) (int, error) {
	var both [2]schema.Schema
	for i, from := range args {
		var err error
		if strings.HasPrefix(from, "mongodb://") || strings.HasPrefix(from, "mongodb+srv://") {
			err = f.database(ctx, from, func(db *allium.Database) (err error) {
				both[i], err = schema.Read(ctx, db)
				return err
			})
		} else {
			both[i], err = readSchema(from)
		}
		if err != nil {
			return failed, err
		}
	}
	changes, err := schema.Diff(both[0], both[1], schema.DiffOptions{Whole: true})
	if err != nil {
		return failed, err
	}
	return f.print(changes, stdout), nil
}

// exportSchema writes what a database has, as Go or as JSON.
func exportSchema(ctx context.Context, f *schemaFlags, args []string, stdout, _ io.Writer) (int, error) {
	return succeeded, f.database(ctx, args[0], func(db *allium.Database) error {
		s, err := schema.Read(ctx, db)
		switch {
		case err != nil:
			return err
		case f.format == "json":
			return schema.WriteJSON(stdout, s)
		}
		return schema.WriteGo(stdout, s, schema.WriteGoOptions{Package: f.pkg, Variable: f.variable})
	})
}
