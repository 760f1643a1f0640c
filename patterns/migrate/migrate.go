// Package migrate changes the data of a database step by step, each step once, however many copies
// of a program start and however often they die on the way.
//
//	var steps = []migrate.Step{
//		{Name: "2026-11 split names", Up: migrate.Each("users", splitName)},
//		{Name: "2026-12 close carts", Up: migrate.InTransaction(close)},
//	}
//
//	report, err := migrate.Run(ctx, db, steps)
//
// The steps have an order and names that never change. What was done is recorded in the collection
// "allium_migrations" of the database. Run holds a lease (package lease, in "allium_leases"):
// others wait and find nothing left to do, and if the holder dies another one goes on where it was.
//
// What is promised depends on the kind of a step, and on whether the deployment has transactions,
// which replica sets and sharded clusters have, and a standalone has not:
//
//   - Each, with transactions: each document is changed exactly once. The changes of a batch and
//     the record of how far the step is are one transaction, which also fences the lease.
//   - Each, on a standalone: each document is changed at least once. If the program dies within a
//     batch, the step's function sees the documents of that batch again, of which some are changed.
//   - InTransaction: the function takes effect exactly once, together with its record. It is an
//     error on a standalone.
//   - Once: the function is called at least once, and again if the program dies before the record
//     is written. It must be one that may be called twice. It is for what has no transactions, such
//     as renaming a collection.
//
// Functions may be called more often than they take effect: a transaction that conflicts with
// another one is repeated. They should do nothing outside of the database.
//
// It needs MongoDB 4.2 or newer. All functions are safe for concurrent use.
package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"allium"
	"allium/bson"
	"allium/patterns/internal/settled"
	"allium/patterns/lease"
)

// The collections that this package uses, and the name of its lease.
const (
	records   = "allium_migrations"
	leases    = "allium_leases"
	leaseName = "migrate"
)

var (
	// ErrChanged is returned if a step that was run is not what it was: its kind, its collection,
	// its filter or its Revision differs, or it is not among the steps any more, as after it was
	// renamed.
	ErrChanged = errors.New("a step that was run has changed")
	// ErrOutOfOrder is returned if a step that was not run stands before one that was.
	ErrOutOfOrder = errors.New("a step was added before one that was run")
	// ErrNoDown is returned by Down for a step that says nothing of how it is undone.
	ErrNoDown = errors.New("the step cannot be undone")
)

// A StepError says in which step a migration stopped. The steps before it are done; the next Run
// goes on with it.
type StepError struct {
	// Step is the step's name.
	Step string
	// Wrapped is what failed.
	Wrapped error
}

// Error returns the step's name and what failed.
func (e *StepError) Error() string { return fmt.Sprintf("migrate: step %q: %v", e.Step, e.Wrapped) }

// Unwrap returns what failed.
func (e *StepError) Unwrap() error { return e.Wrapped }

// Step is one change of the data.
type Step struct {
	// Name is unique among the steps, and stays what it is.
	Name string
	// Revision says which edition of the functions this is. If it is not what it was when the step
	// was run, the step has changed, which is an error: nobody can see that in functions. Empty:
	// the only one.
	Revision string
	// Up does the step, and Down undoes it. Down is optional.
	Up, Down Work
}

// Work is what a step does: Each, InTransaction or Once.
type Work struct {
	kind       string // "" is none
	collection string
	filter     any
	run        func(ctx context.Context, j *job) error
}

// State says where a step is.
type State string

// The states of a step.
const (
	Pending State = "pending" // it was not run
	Running State = "running" // it has begun, or was interrupted
	Done    State = "done"
	Undoing State = "undoing" // Down has begun it, or was interrupted
)

// Status is what is known of a step.
type Status struct {
	// Name is the step's.
	Name string
	// State says where it is.
	State State
	// Changed says that the step is not what it was when it was run. Unknown says that it was run
	// and is not among the steps.
	Changed, Unknown bool
	// OutOfOrder says that it was not run, and stands before one that was.
	OutOfOrder bool
	// Started and Finished are when it began first, and when it was done.
	Started, Finished time.Time
	// Documents is how many documents an Each has read, and Modified how many of them it has
	// changed.
	Documents, Modified int64
	// Last is the _id of the last of them.
	Last bson.RawValue
	// Error is why it stopped the last time, if it did.
	Error string
}

// Options are the options of Run and Down.
type Options struct {
	// Steps is how many steps are run or undone at most. Zero: with Run all, with Down one.
	Steps int
	// OutOfOrder runs steps that stand before some that were run, as after two branches were
	// merged. Otherwise they are an error, ErrOutOfOrder.
	OutOfOrder bool
	// AllowNewer lets a program whose last steps are fewer than were run go on, such as one that is
	// being replaced by the next version. Otherwise they are an error, ErrChanged.
	AllowNewer bool
	// DryRun writes nothing: the functions of Each are called for all documents as they are, one
	// step after the other without what earlier ones would have changed, and other steps are not
	// run. It holds no lease.
	DryRun bool
	// Wait is how long to wait for another program that runs steps. Zero: until the context ends.
	Wait time.Duration
	// TTL is how long a program that died keeps others from going on. Zero: 30 seconds.
	TTL time.Duration
	// Report is called after each batch of an Each and at the end of each step.
	Report func(Status)
}

// Run runs the steps that were not run, in their order, and returns what it has run. If a step
// fails it stops, with a *StepError; the next Run goes on there.
func Run(ctx context.Context, db *allium.Database, steps []Step, opts ...Options) ([]Status, error) {
	return walk(ctx, db, steps, opts, func(r *runner) error { return r.up() })
}

// Down undoes steps that were run, the last first, and returns what it has undone. Each needs a
// Down. A step that was interrupted has to be run or undone to its end first.
func Down(ctx context.Context, db *allium.Database, steps []Step, opts ...Options) ([]Status, error) {
	return walk(ctx, db, steps, opts, func(r *runner) error { return r.down() })
}

// List returns where each step is: those of the program in their order, then those that are only
// recorded.
func List(ctx context.Context, db *allium.Database, steps []Step) ([]Status, error) {
	if err := check(steps); err != nil {
		return nil, err
	}
	recorded, err := read(ctx, settled.Database(db))
	if err != nil {
		return nil, err
	}
	var list []Status
	last := -1 // the last that was run
	for i, s := range steps {
		st := Status{Name: s.Name, State: Pending}
		if r, ok := recorded[s.Name]; ok {
			st = r.status()
			st.Changed = r.Sum != s.sum()
			last = i
			delete(recorded, s.Name)
		}
		list = append(list, st)
	}
	for i := range list {
		list[i].OutOfOrder = list[i].State == Pending && i < last
	}
	var rest []record
	for _, r := range recorded {
		rest = append(rest, r)
	}
	slices.SortFunc(rest, func(a, b record) int { return a.Started.Compare(b.Started) })
	for _, r := range rest {
		st := r.status()
		st.Unknown = true
		list = append(list, st)
	}
	return list, nil
}

// Unlock ends the lease of a program that runs steps, for people who know that it has died: it
// would end by itself after its TTL. A program that is alive stops before it writes more.
func Unlock(ctx context.Context, db *allium.Database) error {
	return lease.Break(ctx, settled.Database(db).Collection(leases), leaseName)
}

// Holder returns who runs steps at the moment, or did last.
func Holder(ctx context.Context, db *allium.Database) (lease.Info, error) {
	return lease.Read(ctx, settled.Database(db).Collection(leases), leaseName)
}

// WriteJSON writes the names of steps and what they are recorded by, for "allium migrate status".
func WriteJSON(w io.Writer, steps []Step) error {
	if err := check(steps); err != nil {
		return err
	}
	list := []listed{}
	for _, s := range steps {
		list = append(list, listed{s.Name, s.sum()})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// listed is a step as WriteJSON writes it.
type listed struct {
	Name string `json:"name"`
	Sum  string `json:"sum"`
}

// ReadJSON reads what WriteJSON writes. The steps can be listed, and not run.
func ReadJSON(r io.Reader) ([]Step, error) {
	var list []listed
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	var steps []Step
	for _, l := range list {
		steps = append(steps, Step{Name: l.Name, Up: Work{kind: "listed", filter: l.Sum}})
	}
	return steps, check(steps)
}

// check finds what steps cannot be.
func check(steps []Step) error {
	seen := map[string]bool{}
	for i, s := range steps {
		switch {
		case s.Name == "":
			return fmt.Errorf("migrate: step %d has no name", i)
		case seen[s.Name]:
			return fmt.Errorf("migrate: two steps are called %q", s.Name)
		case s.Up.kind == "":
			return fmt.Errorf("migrate: step %q does nothing: it has no Up", s.Name)
		}
		if _, err := bson.MarshalValue(s.Up.filter); err != nil {
			return fmt.Errorf("migrate: step %q: filter: %w", s.Name, err)
		}
		seen[s.Name] = true
	}
	return nil
}

// sum is what a step is recorded by, beside its name.
func (s *Step) sum() string {
	if s.Up.kind == "listed" {
		sum, _ := s.Up.filter.(string)
		return sum
	}
	filter, err := bson.MarshalValue(s.Up.filter)
	if err != nil {
		return "" // check has refused it
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %x %d", s.Revision, s.Up.kind, s.Up.collection, filter.Value,
		filter.Type))
	return hex.EncodeToString(h[:8])
}

// record is a step as it is recorded.
type record struct {
	Name      string        `bson:"_id"`
	Sum       string        `bson:"sum"`
	State     State         `bson:"state"`
	Started   time.Time     `bson:"started"`
	Finished  time.Time     `bson:"finished,omitempty"`
	Last      bson.RawValue `bson:"last,omitempty"`
	Documents int64         `bson:"documents"`
	Modified  int64         `bson:"modified"`
	Token     int64         `bson:"token"` // of the lease's holder that wrote it last
	Error     string        `bson:"error,omitempty"`
}

func (r *record) status() Status {
	return Status{Name: r.Name, State: r.State, Started: r.Started, Finished: r.Finished, Documents: r.Documents,
		Modified: r.Modified, Last: r.Last, Error: r.Error}
}

func read(ctx context.Context, db *allium.Database) (map[string]record, error) {
	list, err := allium.CollectionOf[record](db, records).All(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	out := map[string]record{}
	for _, r := range list {
		out[r.Name] = r
	}
	return out, nil
}
