package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"allium"
	"allium/patterns/migrate"
)

// migrateFlags are the command line of allium migrate.
type migrateFlags struct {
	steps string
	db    string
	json  bool
}

func (f *migrateFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.steps, "steps", "", "status: the `file` with the program's steps, as migrate.WriteJSON of package allium/patterns/migrate writes them; - is the standard input")
	fs.StringVar(&f.db, "db", "", "the `database` (default: that of the connection string)")
	fs.BoolVar(&f.json, "json", false, "print each step as a JSON object on a line of its own")
}

// migrateVerb looks at the migrations of a database, which programs run.
func migrateVerb(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	const name = "allium migrate"
	var f migrateFlags
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.register(fs)
	if status, done := parse(fs, args, stdout, stderr); done {
		return status
	}
	action := fs.Arg(0)
	switch {
	case action != "status" && action != "unlock":
		return misuse(name, stderr, "want status or unlock")
	case fs.NArg() != 2:
		return misuse(name, stderr, action+" wants one connection string")
	}
	status := succeeded
	err := inDatabase(ctx, fs.Arg(1), f.db, 30*time.Second, func(db *allium.Database) (err error) {
		if action == "status" {
			status, err = f.status(ctx, db, stdout, stderr)
			return err
		}
		return f.unlock(ctx, db, stdout)
	})
	switch {
	case errors.Is(err, errNoDatabase):
		return misuse(name, stderr, err.Error())
	case err != nil:
		return fail(name, stderr, err)
	}
	return status
}

// unlock ends the lease of a program that runs steps.
func (f *migrateFlags) unlock(ctx context.Context, db *allium.Database, stdout io.Writer) error {
	was, err := migrate.Holder(ctx, db)
	if err == nil && was.Holder == "" {
		fmt.Fprintln(stdout, "nobody runs steps")
		return nil
	}
	if err == nil {
		err = migrate.Unlock(ctx, db)
	}
	if err == nil {
		fmt.Fprintf(stdout, "the lease of %s has ended\n", was.Holder)
	}
	return err
}

// stepJSON is a step as -json prints it.
type stepJSON struct {
	Name       string        `json:"name"`
	State      migrate.State `json:"state"`
	Changed    bool          `json:"changed,omitempty"`
	Unknown    bool          `json:"unknown,omitempty"`
	OutOfOrder bool          `json:"outOfOrder,omitempty"`
	Documents  int64         `json:"documents,omitempty"`
	Modified   int64         `json:"modified,omitempty"`
	Started    *time.Time    `json:"started,omitempty"`
	Finished   *time.Time    `json:"finished,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// status prints where each step is. Its exit status says whether there is something to run, or
// something that would be refused.
func (f *migrateFlags) status(ctx context.Context, db *allium.Database, stdout, stderr io.Writer) (int, error) {
	var steps []migrate.Step
	if f.steps != "" {
		in, err := input(f.steps)
		if err != nil {
			return failed, err
		}
		defer in.Close()
		if steps, err = migrate.ReadJSON(in); err != nil {
			return failed, err
		}
	}
	list, err := migrate.List(ctx, db, steps)
	if err != nil {
		return failed, err
	}
	holder, err := migrate.Holder(ctx, db)
	if err != nil {
		return failed, err
	}
	status := succeeded
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	e := json.NewEncoder(stdout)
	for _, s := range list {
		if f.steps == "" {
			s.Unknown = false // it is not known what the program has
		}
		if s.State != migrate.Done || s.Changed || s.Unknown {
			status = differs
		}
		at := func(t time.Time) *time.Time {
			if t.IsZero() {
				return nil
			}
			return &t
		}
		if f.json {
			e.Encode(stepJSON{s.Name, s.State, s.Changed, s.Unknown, s.OutOfOrder, s.Documents, s.Modified,
				at(s.Started), at(s.Finished), s.Error})
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.State, s.Name, strings.Join(stepNotes(&s), ", "))
	}
	w.Flush()
	if holder.Held() {
		fmt.Fprintf(stderr, "allium migrate: %s runs steps, at least until %s\n", holder.Holder,
			holder.Until.UTC().Format(time.RFC3339))
	}
	return status, nil
}

// stepNotes says what is to be known of a step, for people.
func stepNotes(s *migrate.Status) (notes []string) {
	add := func(yes bool, format string, args ...any) {
		if yes {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(s.OutOfOrder, "OUT OF ORDER")
	add(s.Changed, "CHANGED since it was run")
	add(s.Unknown, "NOT AMONG THE STEPS")
	add(!s.Finished.IsZero(), "finished %s", s.Finished.UTC().Format(time.RFC3339))
	add(s.Finished.IsZero() && !s.Started.IsZero(), "started %s", s.Started.UTC().Format(time.RFC3339))
	add(s.Documents > 0, "%s read, %d modified", count(int(s.Documents), "document"), s.Modified)
	add(!s.Last.IsZero(), "behind _id %s", s.Last)
	add(s.Error != "", "stopped: %s", s.Error)
	return notes
}
