package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/errcode"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/internal/settled"
	"allium/patterns/lease"
)

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	// Drop makes the changes that drop or rebuild something: what is not declared, of the declared
	// collections or with Whole of the database, goes.
	Drop bool
	// DropOnly chooses among those changes. Nil: all of them, if Drop is set, or else none.
	DropOnly func(Change) bool
	// Whole is as in PlanOptions.
	Whole bool
	// Report is called with each change when it has been made or has failed.
	Report func(Change, error)
	// Wait is how long Apply waits for another program that applies a schema to this database.
	// Zero: until the context ends.
	Wait time.Duration
}

// ApplyError says which changes could not be made. The others were.
type ApplyError struct {
	// Failed are the changes, and Errs why each failed.
	Failed Changes
	Errs   []error
}

// Error returns the changes with their errors.
func (e *ApplyError) Error() string {
	s := fmt.Sprintf("schema: %d changes failed", len(e.Failed))
	if len(e.Failed) == 1 {
		s = "schema: a change failed"
	}
	for i, c := range e.Failed {
		s += fmt.Sprintf("; %s %s (%s): %v", c.Action, c.Name(), c.What, e.Errs[i])
	}
	return s
}

// Unwrap returns the errors.
func (e *ApplyError) Unwrap() []error { return e.Errs }

// Apply makes the changes that lead from a database to what is declared, and returns them. What
// drops or rebuilds something is left out unless the options say otherwise, and so is what is
// impossible: both are not errors, and Plan shows them afterwards.
//
// If there is nothing to do it writes nothing. Else it holds a lease, in the collection
// "allium_leases" of the database, so that of several programs which start at once one makes the
// changes, while the others wait and find nothing left to do. Changes that fail because a server
// goes away are tried again; other failures do not keep the rest from being made, but for those of
// the same collection if it could not be created. The error is then an *ApplyError.
//
// Index builds take as long as they take: the Timeout of the client does not bound them, ctx does.
func Apply(ctx context.Context, db *allium.Database, declared Schema, opts ...ApplyOptions) (Changes, error) {
	o := option.Merge(opts)
	db = settled.Database(db)
	todo, err := o.todo(ctx, db, declared)
	if err != nil || len(todo) == 0 {
		return nil, err
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if o.Wait > 0 {
		waiting, cancel = context.WithTimeout(ctx, o.Wait)
	}
	defer cancel()
	l, err := lease.Acquire(waiting, db.Collection(leases), "schema")
	if err != nil {
		return nil, err
	}
	defer again.Lastly(ctx, l.Release)
	held, end := context.WithCancelCause(ctx) // the lease's context ends with the waiting's
	defer end(nil)
	defer context.AfterFunc(l.Context(), func() {
		if cause := context.Cause(l.Context()); errors.Is(cause, lease.ErrLost) {
			end(cause)
		}
	})()
	var made Changes
	const passes = 10
	for pass := 1; ; pass++ {
		var done Changes
		if todo, err = o.todo(held, db, declared); err == nil {
			done, err = o.pass(held, db, todo)
			made = append(made, done...)
		}
		// What was made may have been in the way of what failed.
		if err == nil || held.Err() != nil || pass == passes || done == nil && !worthAgain(err) {
			return made, err
		}
		again.Pause(held, again.Backoff(100*time.Millisecond, time.Second, pass))
	}
}

// todo returns the changes that are to be made.
func (o *ApplyOptions) todo(ctx context.Context, db *allium.Database, declared Schema) (Changes, error) {
	changes, err := plan(ctx, db, declared, o.Whole)
	return slices.DeleteFunc(changes, func(c Change) bool {
		if c.Action == Impossible {
			return true
		}
		if o.DropOnly != nil {
			return c.Told() && !o.DropOnly(c)
		}
		return c.Told() && !o.Drop
	}), err
}

// pass makes changes once, and returns those that were made.
func (o *ApplyOptions) pass(ctx context.Context, db *allium.Database, todo Changes) (made Changes, err error) {
	var failed ApplyError
	missing := map[string]error{} // collections that could not be created
	for _, c := range todo {
		err := missing[c.Collection]
		if err != nil {
			err = fmt.Errorf("the collection could not be created: %w", err)
		} else if err = ctx.Err(); err != nil {
			err = context.Cause(ctx)
		} else {
			err = c.apply(ctx, db)
		}
		if err != nil {
			if c.Action == Create && c.Index == "" {
				missing[c.Collection] = err
			}
			failed.Failed, failed.Errs = append(failed.Failed, c), append(failed.Errs, err)
		} else {
			made = append(made, c)
		}
		if o.Report != nil {
			o.Report(c, err)
		}
	}
	if failed.Failed != nil {
		return made, &failed
	}
	return made, nil
}

// Codes of the server that say that somebody else was faster, which the next plan knows, or that
// an index build was interrupted.
const (
	namespaceExists   = 48
	indexNotFound     = 27
	indexBuildAborted = 276
)

// worthAgain reports whether changes that failed are worth another try: one of them failed for a
// reason that passes.
func worthAgain(err error) bool {
	failed, ok := errors.AsType[*ApplyError](err)
	if !ok {
		return passing(err)
	}
	return slices.ContainsFunc(failed.Errs, passing)
}

func passing(err error) bool {
	for _, code := range []int32{namespaceExists, errcode.NamespaceNotFound, indexNotFound, indexBuildAborted} {
		if mongoerr.HasCode(err, code) {
			return true
		}
	}
	return again.Transient(err)
}

// step makes a change.
type step func(ctx context.Context, db *allium.Database) error

// unbounded is the Timeout of what takes as long as there are documents.
func unbounded() *time.Duration { return new(time.Duration) }

func createCollection(c *Collection) step {
	return func(ctx context.Context, db *allium.Database) error {
		o := c.Options
		o.Comment, o.Timeout = nil, nil
		return db.CreateCollection(ctx, c.Name, o)
	}
}

func dropCollection(name string) step {
	return func(ctx context.Context, db *allium.Database) error { return db.Collection(name).Drop(ctx) }
}

func recreateView(c *Collection) step {
	return func(ctx context.Context, db *allium.Database) error {
		if err := db.Collection(c.Name).Drop(ctx); err != nil {
			return err
		}
		return createCollection(c)(ctx, db)
	}
}

func modify(name string, m allium.ModifyCollectionOptions) step {
	return func(ctx context.Context, db *allium.Database) error { return db.ModifyCollection(ctx, name, m) }
}

// coarsen changes the granularity of a time series collection: some servers go from each to the
// next alone.
func coarsen(name string, levels []string) step {
	return func(ctx context.Context, db *allium.Database) error {
		for _, l := range levels {
			if err := modify(name, allium.ModifyCollectionOptions{TimeSeries: bson.D{{Key: "granularity",
				Value: l}}})(ctx, db); err != nil {
				return err
			}
		}
		return nil
	}
}

func createIndex(name string, m *allium.IndexModel) step {
	return func(ctx context.Context, db *allium.Database) error {
		_, err := db.Collection(name).CreateIndex(ctx, *m, allium.CreateIndexOptions{Timeout: unbounded()})
		return err
	}
}

func dropIndex(name, index string) step {
	return func(ctx context.Context, db *allium.Database) error {
		return db.Collection(name).DropIndex(ctx, index)
	}
}

func rebuildIndex(name, old string, m *allium.IndexModel) step {
	return func(ctx context.Context, db *allium.Database) error {
		if err := dropIndex(name, old)(ctx, db); err != nil {
			return err
		}
		return createIndex(name, m)(ctx, db)
	}
}

// modifyIndex changes an index in place, one setting after the other: servers refuse some of them
// together. To be unique it has to be prepared first, so that nobody adds duplicates meanwhile; if
// there are some, the preparation is undone.
func modifyIndex(name string, x allium.IndexChange) step {
	return func(ctx context.Context, db *allium.Database) error {
		change := func(set func(*allium.IndexChange)) error {
			one := allium.IndexChange{Name: x.Name}
			set(&one)
			return db.ModifyCollection(ctx, name, allium.ModifyCollectionOptions{Index: &one, Timeout: unbounded()})
		}
		var errs []error
		if x.Hidden != nil {
			errs = append(errs, change(func(c *allium.IndexChange) { c.Hidden = x.Hidden }))
		}
		if x.ExpireAfter != nil {
			errs = append(errs, change(func(c *allium.IndexChange) { c.ExpireAfter = x.ExpireAfter }))
		}
		if x.Unique != nil {
			err := change(func(c *allium.IndexChange) { c.PrepareUnique = new(true) })
			if err == nil {
				if err = change(func(c *allium.IndexChange) { c.Unique = x.Unique }); err != nil {
					err = errors.Join(err, change(func(c *allium.IndexChange) { c.PrepareUnique = new(false) }))
				}
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

func createSearch(name string, m allium.SearchIndexModel) step {
	return func(ctx context.Context, db *allium.Database) error {
		_, err := db.Collection(name).CreateSearchIndex(ctx, m)
		return err
	}
}

func updateSearch(name string, m allium.SearchIndexModel) step {
	return func(ctx context.Context, db *allium.Database) error {
		return db.Collection(name).UpdateSearchIndex(ctx, m.Name, m.Definition)
	}
}

func dropSearch(name, index string) step {
	return func(ctx context.Context, db *allium.Database) error {
		return db.Collection(name).DropSearchIndex(ctx, index)
	}
}

func recreateSearch(name string, m allium.SearchIndexModel) step {
	return func(ctx context.Context, db *allium.Database) error {
		if err := dropSearch(name, m.Name)(ctx, db); err != nil {
			return err
		}
		return createSearch(name, m)(ctx, db)
	}
}
