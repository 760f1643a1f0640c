package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/internal/settled"
	"allium/patterns/lease"
)

// runner runs or undoes steps under a lease.
type runner struct {
	ctx      context.Context
	db       *allium.Database // as the program has it
	own      *allium.Database // for this package's documents
	steps    []Step
	opts     Options
	lease    *lease.Lease
	txns     bool // the deployment has transactions
	recorded map[string]record
	done     []Status
}

// walk takes the lease, looks at what is recorded, and runs or undoes steps.
func walk(ctx context.Context, db *allium.Database, steps []Step, opts []Options,
	do func(*runner) error) ([]Status, error) {
	r := &runner{ctx: ctx, db: db, own: settled.Database(db), steps: steps, opts: option.Merge(opts)}
	if err := check(steps); err != nil {
		return nil, err
	}
	hello, err := r.own.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}})
	if err != nil {
		return nil, err
	}
	msg, _ := hello.Lookup("msg").StringValue()
	r.txns = msg == "isdbgrid" || !hello.Lookup("setName").IsZero()
	if !r.opts.DryRun {
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if r.opts.Wait > 0 {
			waiting, cancel = context.WithTimeout(ctx, r.opts.Wait)
		}
		defer cancel()
		if r.lease, err = lease.Acquire(waiting, r.own.Collection(leases), leaseName,
			lease.Options{TTL: r.opts.TTL}); err != nil {
			return nil, err
		}
		defer again.Lastly(ctx, r.lease.Release)
		var end context.CancelCauseFunc
		r.ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		defer context.AfterFunc(r.lease.Context(), func() {
			if cause := context.Cause(r.lease.Context()); errors.Is(cause, lease.ErrLost) {
				end(cause)
			}
		})()
	}
	if r.recorded, err = read(r.ctx, r.own); err == nil {
		err = do(r)
	}
	if cause := context.Cause(r.ctx); err != nil && errors.Is(cause, lease.ErrLost) && !errors.Is(err, lease.ErrLost) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return r.done, err
}

// agree compares what is recorded with the steps.
func (r *runner) agree() error {
	known, last := map[string]int{}, -1
	for i, s := range r.steps {
		known[s.Name] = i
		rec, ok := r.recorded[s.Name]
		if !ok {
			continue
		}
		if last = i; rec.Sum != s.sum() {
			return &StepError{s.Name, fmt.Errorf("%w: it was recorded as %s and is %s", ErrChanged, rec.Sum, s.sum())}
		}
	}
	for name := range r.recorded {
		if _, ok := known[name]; !ok && !(r.opts.AllowNewer && last == len(r.steps)-1) {
			return &StepError{name, fmt.Errorf(
				"%w: it is not among the steps: it was renamed or removed, or a newer program has run it", ErrChanged)}
		}
	}
	for i, s := range r.steps {
		if _, ok := r.recorded[s.Name]; !ok && i < last && !r.opts.OutOfOrder {
			return &StepError{s.Name, fmt.Errorf("%w, %q", ErrOutOfOrder, r.steps[last].Name)}
		}
	}
	return nil
}

func (r *runner) up() error {
	if err := r.agree(); err != nil {
		return err
	}
	for i := range r.steps {
		s := &r.steps[i]
		rec, ok := r.recorded[s.Name]
		switch {
		case ok && rec.State == Done:
			continue
		case ok && rec.State == Undoing:
			return &StepError{s.Name, errors.New("it is being undone: call Down to the end of that first")}
		case r.opts.Steps > 0 && len(r.done) == r.opts.Steps:
			return nil
		case s.Up.run == nil:
			return &StepError{s.Name, errors.New("it was read from a file, which has no functions")}
		}
		if err := r.step(s, &s.Up, Running, Done); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) down() error {
	if err := r.agree(); err != nil {
		return err
	}
	for i := len(r.steps) - 1; i >= 0; i-- {
		s := &r.steps[i]
		rec, ok := r.recorded[s.Name]
		switch {
		case !ok:
			continue
		case len(r.done) == max(r.opts.Steps, 1):
			return nil
		case rec.State == Running:
			return &StepError{s.Name, errors.New("it was interrupted: call Run to its end first")}
		case s.Down.run == nil:
			return &StepError{s.Name, ErrNoDown}
		}
		if err := r.step(s, &s.Down, Undoing, Pending); err != nil {
			return err
		}
	}
	return nil
}

// step does the work of a step, from one state to another.
func (r *runner) step(s *Step, w *Work, during, after State) error {
	j := &job{runner: r, step: s, work: w, during: during, after: after}
	err := j.begin()
	if err == nil {
		err = w.run(r.ctx, j)
	}
	if err != nil {
		j.failed(err)
		return &StepError{s.Name, err}
	}
	r.done = append(r.done, j.status)
	return nil
}

// job is the work of a step that is being done.
type job struct {
	*runner
	step          *Step
	work          *Work
	during, after State
	status        Status
}

func (j *job) records() *allium.Collection[record] {
	return allium.CollectionOf[record](j.own, records)
}

// mine selects the step's record as long as no later holder of the lease has written it.
func (j *job) mine() bson.D {
	return bson.D{{Key: "_id", Value: j.step.Name},
		{Key: "token", Value: bson.D{{Key: "$lte", Value: j.lease.Token()}}}}
}

// begin records that the step is in the state during, unless it is already: then it goes on.
func (j *job) begin() error {
	j.status = Status{Name: j.step.Name, State: j.during}
	if j.opts.DryRun {
		return nil
	}
	rec, ok := j.recorded[j.step.Name]
	if ok && rec.State == j.during {
		return j.write(j.ctx, bson.D{{Key: "$set", Value: bson.D{{Key: "token", Value: j.lease.Token()}}}}, nil)
	}
	now := time.Now()
	if ok { // it is to be undone
		return j.write(j.ctx, bson.D{
			{Key: "$set", Value: bson.D{{Key: "state", Value: j.during}, {Key: "token", Value: j.lease.Token()},
				{Key: "documents", Value: int64(0)}, {Key: "modified", Value: int64(0)}}},
			{Key: "$unset", Value: bson.D{{Key: "last", Value: 1}, {Key: "finished", Value: 1}}}}, nil)
	}
	_, err := j.records().UpdateOne(j.ctx, bson.D{{Key: "_id", Value: j.step.Name}},
		bson.D{{Key: "$setOnInsert", Value: record{Sum: j.step.sum(), State: j.during, Started: now,
			Token: j.lease.Token()}.fresh()}}, allium.UpdateOptions{Upsert: true})
	return err
}

// fresh returns a record's fields but its _id.
func (r record) fresh() bson.D {
	return bson.D{{Key: "sum", Value: r.Sum}, {Key: "state", Value: r.State}, {Key: "started", Value: r.Started},
		{Key: "documents", Value: int64(0)}, {Key: "modified", Value: int64(0)}, {Key: "token", Value: r.Token}}
}

// write updates the record, and returns it if into is not nil. The error is lease.ErrLost if a
// later holder has written it.
func (j *job) write(ctx context.Context, update bson.D, into *record) error {
	rec, err := j.records().FindOneAndUpdate(ctx, j.mine(), update, allium.FindOneAndUpdateOptions{ReturnNew: true})
	if errors.Is(err, mongoerr.ErrNoDocuments) {
		return fmt.Errorf("%w: another program runs the step", lease.ErrLost)
	}
	if err == nil && into != nil {
		*into = rec
	}
	return err
}

// finish records the end of the step's work.
func (j *job) finish(ctx context.Context) error {
	if j.after == Pending {
		res, err := j.records().DeleteOne(ctx, j.mine())
		if err == nil && res.DeletedCount == 0 {
			return fmt.Errorf("%w: another program undoes the step", lease.ErrLost)
		}
		j.status.State = Pending
		return err
	}
	var rec record
	err := j.write(ctx, bson.D{
		{Key: "$set", Value: bson.D{{Key: "state", Value: j.after}, {Key: "token", Value: j.lease.Token()},
			{Key: "finished", Value: time.Now()}}},
		{Key: "$unset", Value: bson.D{{Key: "error", Value: 1}, {Key: "last", Value: 1}}}}, &rec)
	if err == nil {
		j.status = rec.status()
	}
	return err
}

// failed records why the step stopped, as far as that is possible.
func (j *job) failed(why error) {
	if j.opts.DryRun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), time.Second)
	defer cancel()
	_ = j.write(ctx, bson.D{{Key: "$set", Value: bson.D{{Key: "error", Value: why.Error()},
		{Key: "token", Value: j.lease.Token()}}}}, nil)
}

func (j *job) report() {
	if j.opts.Report != nil {
		j.opts.Report(j.status)
	}
}

// transact runs f in a transaction that commits only while the lease is held.
func (j *job) transact(f func(ctx context.Context) error) error {
	return j.db.Client().Transact(j.ctx, func(ctx context.Context) error {
		if err := j.lease.Fence(ctx); err != nil {
			return err
		}
		return f(ctx)
	}, allium.TransactionOptions{ReadConcern: &consistency.ReadConcern{Level: consistency.ReadSnapshot},
		WriteConcern:   consistency.Majority(),
		ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary}})
}

// Once is work that is done by one call of a function, which may be called again if the program
// dies meanwhile.
func Once(f func(ctx context.Context, db *allium.Database) error) Work {
	return Work{kind: "once", run: func(ctx context.Context, j *job) error {
		if j.opts.DryRun {
			j.report()
			return nil
		}
		if err := f(ctx, j.db); err != nil {
			return err
		}
		if err := j.finish(ctx); err != nil {
			return err
		}
		j.report()
		return nil
	}}
}

// InTransaction is work that is done by one call of a function in a transaction, together with its
// record. The function must pass its context to all operations and return their errors, as with
// Client.Transact.
func InTransaction(f func(ctx context.Context, db *allium.Database) error) Work {
	return Work{kind: "transaction", run: func(_ context.Context, j *job) error {
		if j.opts.DryRun {
			j.report()
			return nil
		}
		if !j.txns {
			return errors.New("it needs a transaction, which a standalone server does not have")
		}
		err := j.transact(func(ctx context.Context) error {
			if err := f(ctx, j.db); err != nil {
				return err
			}
			return j.finish(ctx)
		})
		if err == nil {
			j.report()
		}
		return err
	}}
}
