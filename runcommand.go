package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// RunCommandOptions are the options of RunCommand.
type RunCommandOptions struct {
	// ReadPreference says where the command may run. Nil: on the primary; it is not inherited.
	ReadPreference *consistency.ReadPreference
	// Timeout bounds the operation from start to finish; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// RunCommand runs a command of the server that the driver has no method for (specification: Run Command). cmd must be
// a document whose first key is the command's name; the driver adds session, cluster time and the like, and changes nothing
// else. The command is not retried after a network error. With a timeout, the driver adds a maxTimeMS: do not write one into the
// command then, nor any other field that the driver adds, such as lsid.
//
// The reply is a copy that the caller may keep. A command that failed returns a *ServerError, which holds the reply. Where the
// command succeeded but the reply reports errors of a write, RunCommand returns both the reply and an error: a *BulkWriteError for
// statements that were rejected (writeErrors, and the errors that a bulkWrite counts in nErrors), a *WriteConcernError if there is
// a writeConcernError alone.
func (db *Database) RunCommand(ctx context.Context, cmd any, opts ...RunCommandOptions) (bson.Raw, error) {
	o, err := option.One(opts)
	if err == nil {
		err = db.err
	}
	if err != nil {
		return nil, fmt.Errorf("run command: %w", err)
	}
	run, err := newRun(db.bson, cmd)
	if err != nil {
		return nil, fmt.Errorf("run command: %w", err)
	}
	op, err := db.op(ctx, run, o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("run command: %w", err)
	}
	op.ReadPreference = o.ReadPreference
	res, err := db.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	return append(bson.Raw(nil), res.Reply...), writeOutcome(run, &op, &res)
}

// writeOutcome returns the errors of a write that the reply to a command of the user's reports although it says ok: 1.
func writeOutcome(run *command.Run, op *exec.Op, res *exec.Result) error {
	refused, err := res.WriteErrors()
	switch {
	case err != nil:
	case len(refused) > 0:
		bulk := &mongoerr.BulkWriteError{WriteErrors: refused, Labels: failure.Strings(res.Reply.Lookup("errorLabels"))}
		if res.Concern != nil {
			bulk.WriteConcernErrors = append(bulk.WriteConcernErrors, res.Concern)
			for _, l := range res.Concern.Labels {
				failure.AddTo(&bulk.Labels, l)
			}
		}
		err = bulk
	case res.Concern != nil:
		err = op.Explain(res.Concern)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("run command %s: %w", run.Name(), err)
}

func newRun(o *bson.Options, cmd any) (*command.Run, error) {
	if command.IsNil(cmd) {
		return nil, mongoerr.ErrNilDocument
	}
	if m, ok := cmd.(bson.M); ok && len(m) > 1 {
		return nil, fmt.Errorf("a bson.M with %d keys has no order, and a command's name must come first: use a bson.D", len(m))
	}
	raw, err := marshalAppend(o, nil, cmd)
	if err != nil {
		return nil, err
	}
	return command.NewRun(raw)
}

// RunCursorCommandOptions are the options of RunCursorCommand.
type RunCursorCommandOptions struct {
	// ReadPreference says where the command may run. Nil: on the primary; it is not inherited.
	ReadPreference *consistency.ReadPreference
	// BatchSize, MaxTime and Comment are for the getMores that fetch further batches; the command itself has what is written in
	// it. A MaxTime is only for cursors that wait for documents, and does not go with a timeout.
	BatchSize *int32
	MaxTime   time.Duration
	Comment   any
	// CursorType must be what the command asks for, as in {find: "log", tailable: true, awaitData: true}.
	CursorType CursorType
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode or CursorType says otherwise; a pointer to 0 means
	// no bound. Do not write a maxTimeMS into the command then.
	Timeout *time.Duration
}

// RunCursorCommand runs a command of the server whose reply opens a cursor, such as {checkMetadataConsistency: 1}, and returns the
// cursor (specification: Run Command). See RunCommand for cmd. A reply without a cursor is an error.
//
// Where the reply has a cursor and reports errors of a write as well, as RunCommand describes, RunCursorCommand returns both the
// cursor and the error; the cursor must then be closed, too.
func (db *Database) RunCursorCommand(ctx context.Context, cmd any, opts ...RunCursorCommandOptions) (*Cursor[bson.D], error) {
	return RunCursorCommand[bson.D](ctx, db, cmd, opts...)
}

// RunCursorCommand is Database.RunCursorCommand with documents that are decoded as T.
func RunCursorCommand[T any](ctx context.Context, db *Database, cmd any, opts ...RunCursorCommandOptions) (*Cursor[T], error) {
	cur := &Cursor[T]{}
	opened, err := db.runCursorCommand(ctx, &cur.cur, cmd, opts)
	if !opened {
		return nil, err
	}
	return cur, err
}

// runCursorCommand opens cur. An error beside an open cursor is one of a write.
func (db *Database) runCursorCommand(ctx context.Context, cur *cursor.Cursor, cmd any, opts []RunCursorCommandOptions) (opened bool, err error) {
	o, err := option.One(opts)
	if err == nil {
		err = db.err
	}
	var run *command.Run
	if err == nil {
		run, err = newRun(db.bson, cmd)
	}
	if err != nil {
		return false, fmt.Errorf("run cursor command: %w", err)
	}
	run.OpensCursor = true
	op, err := db.op(ctx, run, o.Timeout)
	op.ReadPreference = o.ReadPreference
	if err == nil && o.MaxTime < 0 {
		err = negative("MaxTime", o.MaxTime)
	}
	if err == nil && o.MaxTime > 0 && op.Timeout != nil && *op.Timeout > 0 {
		err = errors.New("options MaxTime and Timeout exclude each other")
	}
	if err == nil {
		err = cur.Prepare(&op, cursor.Reading{Type: cursor.Type(o.CursorType), TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), MaxAwait: o.MaxTime,
			BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
	}
	if err != nil {
		return false, fmt.Errorf("run cursor command: %w", err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return false, err
	}
	failed := writeOutcome(run, &op, &res)
	if err := cur.Open(db.client.cursors, &op, res); err != nil {
		if failed != nil {
			return false, failed // there is no cursor because the write failed
		}
		return false, fmt.Errorf("run cursor command: %w", err)
	}
	return true, failed
}
