package allium

import (
	"context"
	"errors"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/option"
)

// Database is a handle to a database. It is cheap to create and safe for concurrent use.
type Database struct {
	inherited
	err error // an invalid name, reported by every operation
}

// DatabaseOptions are settings of a database that differ from its client's. Nil fields are
// inherited.
type DatabaseOptions struct {
	// ReadPreference, ReadConcern and WriteConcern are inherited if they are nil.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// Timeout bounds each operation from start to finish; a pointer to 0 means no limit.
	Timeout *time.Duration
	// BSON configures encoding and decoding. Its UUID representation is inherited if it is not set.
	BSON *bson.Options
}

// Database returns the database of this name. It does no I/O, and the database need not exist.
func (c *Client) Database(name string, opts ...DatabaseOptions) *Database {
	db := &Database{inherited: c.inherited(), err: checkName("database", name)}
	db.db = name
	for _, o := range opts {
		db = db.With(o)
	}
	return db
}

// With returns a database that differs from db in the settings that are not nil.
func (db *Database) With(o DatabaseOptions) *Database {
	return &Database{inherited: db.inherited.inherit("database", o.ReadPreference, o.ReadConcern, o.WriteConcern,
		o.Timeout, o.BSON), err: db.err}
}

// Settings returns the settings that operations inherit from the database: its own, and those of
// its client. A field is nil if neither sets it. It is for packages that build on this one, such as
// allium/gridfs.
func (db *Database) Settings() DatabaseOptions {
	return option.Copy(DatabaseOptions{ReadPreference: db.readPreference, ReadConcern: db.readConcern,
		WriteConcern: db.writeConcern, Timeout: db.timeout, BSON: db.bson})
}

// Name returns the database's name.
func (db *Database) Name() string { return db.db }

// Client returns the client that the database belongs to.
func (db *Database) Client() *Client { return db.client }

// Drop deletes the database with all its collections.
func (db *Database) Drop(ctx context.Context, opts ...DropOptions) error {
	o := option.Merge(opts)
	return db.admin(ctx, &command.Named{Command: "dropDatabase", Fields: o.fields()}, o.Timeout)
}

// admin runs a write of the catalog, whose reply holds nothing of interest.
func (db *Database) admin(ctx context.Context, cmd command.Command, timeout *time.Duration) error {
	return db.adminWithin(ctx, cmd, nil, 0, timeout)
}

// adminWithin is admin for commands that take a maxTimeMS of the user's, which is put where
// maxTimeMS points to.
func (db *Database) adminWithin(ctx context.Context, cmd command.Command, maxTimeMS *int64, maxTimeOpt time.Duration,
	timeout *time.Duration) error {
	op, err := db.op(ctx, cmd, timeout)
	if db.err != nil {
		err = db.err
	}
	if err == nil && maxTimeMS != nil {
		err = maxTime(&op, maxTimeOpt, maxTimeMS)
	}
	if err != nil {
		return op.Named(err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
	res.Release()
	return nil
}

// RunCommandOptions are the options of RunCommand.
type RunCommandOptions struct {
	// ReadPreference selects the server. Nil: the primary; the database's preference is not
	// inherited.
	ReadPreference *consistency.ReadPreference
	// Timeout bounds the operation from start to finish; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// RunCommand runs a server command for which the driver has no method. cmd must be a document whose
// first key is the command's name. The driver adds session, cluster time and similar fields, with a
// timeout also maxTimeMS, and changes nothing else; cmd must not contain fields that the driver
// adds. The command is not retried after a network error.
//
// The reply is a copy that the caller may keep. If the command fails, the error is a
// *mongoerr.ServerError, which holds the reply. If it succeeds but the reply reports write errors,
// RunCommand returns both the reply and an error: a *mongoerr.BulkWriteError for rejected
// statements (writeErrors, and the errors that a bulkWrite counts in nErrors), a
// *mongoerr.WriteConcernError if there is only a writeConcernError.
func (db *Database) RunCommand(ctx context.Context, cmd any, opts ...RunCommandOptions) (bson.Raw, error) {
	o, err := option.Merge(opts), db.err
	if err != nil {
		return nil, db.failed(ctx, "runCommand", "", err)
	}
	run, err := command.NewRun(db.bson, cmd)
	if err != nil {
		return nil, db.failed(ctx, "runCommand", "", err)
	}
	op := newOp()
	defer releaseOp(op)
	*op = exec.NewOp(run)
	if err := db.inherits(ctx, op, o.Timeout); err != nil {
		return nil, op.Named(err)
	}
	op.ReadPreference = o.ReadPreference
	res, err := db.run(ctx, op)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	return append(bson.Raw(nil), res.Reply...), writeOutcome(op, &res)
}

// writeOutcome returns the errors of a write that the reply to a command of the user's reports
// although it says ok: 1.
func writeOutcome(op *exec.Op, res *exec.Result) error {
	rejected, err := res.WriteErrors(op)
	switch {
	case err != nil:
		err = op.Named(err)
	case len(rejected) > 0:
		err = exec.Refusal(rejected, res.Reply, res.Concern)
	default:
		err = op.Explain(res.Unconfirmed())
	}
	return err
}

// RunCursorCommandOptions are the options of RunCursorCommand.
type RunCursorCommandOptions struct {
	// ReadPreference selects the server. Nil: the primary; the database's preference is not
	// inherited.
	ReadPreference *consistency.ReadPreference
	// BatchSize, MaxTime and Comment apply to the getMores that fetch further batches, not to the
	// command itself. MaxTime is only for cursors that wait for documents, and excludes a timeout.
	BatchSize *int32
	MaxTime   time.Duration
	Comment   any
	// CursorType must match the command, such as CursorTailableAwait for {find: "log", tailable:
	// true, awaitData: true}.
	CursorType CursorType
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode or CursorType
	// says otherwise; a pointer to 0 means no limit. The command must then not contain maxTimeMS.
	Timeout *time.Duration
}

// RunCursorCommand runs a server command whose reply opens a cursor, such as
// {checkMetadataConsistency: 1}, and returns the cursor. See RunCommand for cmd. A reply without a
// cursor is [mongoerr.ErrNoCursor].
//
// If the reply has a cursor and also reports write errors, as RunCommand describes,
// RunCursorCommand returns both the cursor and the error; the cursor must then be closed.
func (db *Database) RunCursorCommand(ctx context.Context, cmd any,
	opts ...RunCursorCommandOptions) (*Cursor[bson.D], error) {
	return RunCursorCommand[bson.D](ctx, db, cmd, opts...)
}

// RunCursorCommand is like Database.RunCursorCommand, and decodes documents as T.
func RunCursorCommand[T any](ctx context.Context, db *Database, cmd any,
	opts ...RunCursorCommandOptions) (*Cursor[T], error) {
	cur := &Cursor[T]{}
	opened, err := db.runCursorCommand(ctx, &cur.cur, cmd, opts)
	if !opened {
		return nil, err
	}
	return cur, err
}

// runCursorCommand opens cur. An error beside an open cursor is one of a write.
func (db *Database) runCursorCommand(ctx context.Context, cur *cursor.Cursor, cmd any,
	opts []RunCursorCommandOptions) (opened bool, err error) {
	o, err := option.Merge(opts), db.err
	var run *command.Run
	if err == nil {
		run, err = command.NewRun(db.bson, cmd)
	}
	if err != nil {
		return false, db.failed(ctx, "runCommand", "", err)
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
		err = cur.Prepare(&op, cursor.Reading{Type: cursor.Type(o.CursorType),
			TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), MaxTime: o.MaxTime,
			BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
	}
	if err != nil {
		return false, op.Named(err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return false, err
	}
	failed := writeOutcome(&op, &res)
	if err := cur.Open(ctx, db.client.cursors, &op, res); err != nil {
		if failed != nil {
			return false, failed // there is no cursor because the write failed
		}
		return false, err
	}
	return true, failed
}
