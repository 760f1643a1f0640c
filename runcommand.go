package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/option"
)

// RunCommandOptions are the options of RunCommand.
type RunCommandOptions struct {
	// ReadPreference says where the command may run. Nil: on the primary; it is not inherited.
	ReadPreference *ReadPreference
	// Timeout bounds the operation from start to finish; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// RunCommand runs a command of the server that the driver has no method for (specification: Run Command). cmd must be
// a document whose first key is the command's name; the driver adds session, cluster time and the like, and changes nothing
// else. The command is not retried after a network error. With a timeout, the driver adds a maxTimeMS: do not write one into the
// command then, nor any other field that the driver adds, such as lsid.
//
// The reply is a copy that the caller may keep. A reply that says that the command failed is a *ServerError.
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
	op := exec.Op{Command: run, Kind: exec.Run, ReadPreference: o.ReadPreference, WriteErrors: true}
	if err := db.op(ctx, &op, o.Timeout); err != nil {
		return nil, fmt.Errorf("run command: %w", err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	return append(bson.Raw(nil), res.Reply...), nil
}

func newRun(o *bson.Options, cmd any) (*command.Run, error) {
	if cmd == nil {
		return nil, command.ErrNilDocument
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
	ReadPreference *ReadPreference
	// BatchSize, MaxTime and Comment are for the getMores that fetch further batches; the command itself has what is written in
	// it. A MaxTime is only for cursors that wait for documents, and does not go with a timeout.
	BatchSize int32
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
func (db *Database) RunCursorCommand(ctx context.Context, cmd any, opts ...RunCursorCommandOptions) (*Cursor[bson.D], error) {
	return RunCursorCommand[bson.D](ctx, db, cmd, opts...)
}

// RunCursorCommand is Database.RunCursorCommand with documents that are decoded as T.
func RunCursorCommand[T any](ctx context.Context, db *Database, cmd any, opts ...RunCursorCommandOptions) (*Cursor[T], error) {
	cur := &Cursor[T]{}
	if err := db.runCursorCommand(ctx, &cur.cursor, cmd, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

func (db *Database) runCursorCommand(ctx context.Context, cur *cursor, cmd any, opts []RunCursorCommandOptions) error {
	o, err := option.One(opts)
	if err == nil {
		err = db.err
	}
	var run *command.Run
	if err == nil {
		run, err = newRun(db.bson, cmd)
	}
	op := exec.Op{Command: run, Kind: exec.Run, ReadPreference: o.ReadPreference, WriteErrors: true}
	if err == nil {
		err = db.op(ctx, &op, o.Timeout)
	}
	if err == nil && o.MaxTime > 0 && op.Timeout != nil && *op.Timeout > 0 {
		err = errors.New("options MaxTime and Timeout exclude each other")
	}
	if err == nil {
		err = cur.prepare(&op, reading{kind: o.CursorType, mode: o.TimeoutMode, maxAwait: o.MaxTime, batchSize: o.BatchSize, comment: o.Comment})
	}
	if err != nil {
		return fmt.Errorf("run cursor command: %w", err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
	if err := cur.open(db.client, &op, res); err != nil {
		return fmt.Errorf("run cursor command: %w", err)
	}
	return nil
}
