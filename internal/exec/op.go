package exec

import (
	"allium/internal/failure"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
)

// Kind is the kind of an operation's command.
type Kind = command.Kind

// The kinds of operations.
const (
	Read  = command.KindRead
	Write = command.KindWrite
	Run   = command.KindRun
)

// NewOp returns the operation that runs a command, with what follows from the command's traits. The
// layers above make an Op in no other way, so that each command declares its traits in one place.
func NewOp(cmd command.Command) Op {
	t := cmd.Traits()
	return Op{Command: cmd, Kind: t.Kind, Retryable: t.Retryable, TakesConcern: t.Inherits.Has(command.ReadConcerns),
		WriteErrors: t.WriteErrors,
		OutputStage: t.OutputStage, EndsTransaction: t.EndsTransaction, KeepSession: t.OpensCursor,
		KeepConn: t.OpensCursor}
}

// Op is one operation: a command and everything that decides where and how it is sent. The zero
// value of a field is the common case.
type Op struct {
	Command command.Command
	DB      string
	// ID is the operationId that events and logs show: the commands of one operation share it. 0
	// takes a new one.
	ID int64
	// The fields of a byte or two lie together: FindOne allocates an Op and its command at once, in
	// 512 bytes.
	Kind Kind
	// Retryable says that the specifications let the driver try this operation again after a
	// network error: the read commands, and the writes that change at most one document per
	// statement. A command.Batch decides that for each message.
	Retryable bool
	// EndsTransaction marks commitTransaction and abortTransaction, which are retried whatever
	// retryWrites says. Their caller has entered the session.
	EndsTransaction bool
	// WriteErrors says that the caller reads writeErrors and writeConcernError out of the reply.
	// Without it, they become the operation's error.
	WriteErrors bool
	// OutputStage marks an aggregate that ends with $out or $merge: it writes, where its read
	// preference allows it on a secondary.
	OutputStage bool
	// TakesConcern says that the command takes a read concern.
	TakesConcern bool
	// Awaits marks a getMore that waits at the server for what is not there yet.
	Awaits bool
	// KeepSession leaves the implicit session in Result.Implicit: the operation opens a cursor. The
	// caller gives it back with Executor.PutSession.
	KeepSession bool
	// RetryConcern replaces WriteConcern in the attempts that follow an error other than overload:
	// a commit that is repeated must be a majority one.
	RetryConcern *consistency.WriteConcern

	// Extra are fields of the command that the program adds to it, nil if there are none.
	Extra *command.Extra

	ReadPreference *consistency.ReadPreference // nil: primary
	ReadConcern    consistency.ReadLevel       // its level
	WriteConcern   *consistency.WriteConcern   // nil: none is sent

	// BSON says how the user's values in the command are encoded; nil stands for the defaults of
	// package bson.
	BSON *bson.Options

	// Session is the explicit session, nil for an implicit one.
	Session *session.Session
	// Implicit is the implicit session of a cursor whose getMore or killCursors this is.
	Implicit *session.ServerSession

	// Server is where the operation must go, because its cursor lives there; nil selects a server.
	Server *topology.Server
	// Conn is the connection that the operation must use, because its cursor is pinned to it; nil
	// checks one out.
	Conn *pool.Conn
	// KeepConn leaves the connection checked out in Result.Conn if the server is a load balancer
	// and the reply holds an open cursor.
	KeepConn bool
	// Exhaust lets the server answer a getMore with batch after batch (specification: OP_MSG,
	// "exhaustAllowed"). While it does, the connection is left in Result.Conn, and the getMores
	// that follow on it only read what was sent.
	Exhaust bool
	// KeepLate leaves a connection that owes the reply in Result.Conn when time is up or the
	// context ends: the next getMore on it waits for that reply instead of sending anything, so
	// that nothing of the cursor is lost.
	KeepLate bool

	// Behind lets the command be sent on a Conn that owes a reply, behind the command that it owes
	// the reply to. It is tried once.
	Behind bool

	// Read takes what the caller wants out of the reply once an attempt has succeeded: it decodes
	// documents, and checks what else the reply says. Nothing is held meanwhile but the reply. Its
	// error is the operation's, also in its span; nothing is tried again, and the result is empty.
	Read func(*Op, Result) error

	Limit
	// Began is when the call began that this command is a part of; zero: now. Errors tell the time
	// since.
	Began time.Time
	// NoSession keeps an implicit session from being taken.
	NoSession bool
	// NoMaxTime keeps maxTimeMS from being derived from the time that is left.
	NoMaxTime bool
	// MaxAwait is the maxTimeMS of a getMore on a cursor that waits for data, or less if the time
	// that is left is less; 0 leaves the wait to the server.
	MaxAwait time.Duration
}

// Namespace returns what the command is about, as errors name it: a collection, such as
// "app.users", or a database. It is empty for a command about the deployment.
func (op *Op) Namespace() string { return commandNamespace(op.Command, op.DB) }

func commandNamespace(cmd command.Command, db string) string {
	coll := operationCollection(cmd)
	if run, ok := cmd.(*command.Run); ok && coll == "" {
		coll = commandCollection(run, run.Doc)
	}
	if db == adminDB && cmd.Name() == "renameCollection" {
		return coll // with its database
	}
	return namespace(db, coll)
}

func namespace(db, coll string) string {
	switch {
	case coll != "":
		return db + "." + coll
	case db == adminDB:
		return ""
	}
	return db
}

// Named says which command a client-side error is about.
func (op *Op) Named(err error) error { return named(op.Command.Name(), op.Namespace(), err) }

// Ahead says which command a client-side error is about that was found before there was an
// operation. Without a collection it is about the database. The error of an encoder that gave up
// because ctx has ended is a TimeoutError, as it is where the operation itself encodes.
func Ahead(ctx context.Context, command, db, coll string, err error) error {
	if ctx != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) { // that it is nil may be the error
		e := &mongoerr.TimeoutError{Phase: mongoerr.PhaseEncoding, Command: command, Namespace: namespace(db, coll),
			Wrapped: err}
		if !e.Canceled() {
			e.Source = mongoerr.SourceContext
		}
		return failure.Cause(ctx, e)
	}
	return named(command, namespace(db, coll), err)
}

// Named says which command a client-side error is about that is not one of an operation's.
func Named(command, db, coll string, err error) error {
	return named(command, namespace(db, coll), err)
}

func named(command, ns string, err error) error {
	if strings.ContainsFunc(ns, unicode.IsControl) {
		ns = strconv.Quote(ns) // a name that is refused for what it contains stays on one line
	}
	if ns == "" {
		return fmt.Errorf("%s: %w", command, err)
	}
	return fmt.Errorf("%s %s: %w", command, ns, err)
}

// streamed reports whether the server sends the reply by itself: the command itself was sent
// before.
func (op *Op) streamed() bool { return op.Conn != nil && op.Conn.Streaming() }

// late reports whether the reply is that of an earlier attempt, which the connection owes.
func (op *Op) late() bool { return op.KeepLate && op.Conn != nil && op.Conn.Owed() }

// unacknowledged reports whether the operation's own write concern asks for no reply.
func (op *Op) unacknowledged() bool { return op.Kind == Write && !op.WriteConcern.Acknowledged() }

// Result is the outcome of an operation. Release it once its documents have been decoded.
type Result struct {
	// Reply is the reply's document; nil for a write that asked for no answer. It is valid until
	// Release.
	Reply bson.Raw
	// Server is the server that answered, Addr its address.
	Server *topology.Server
	// Implicit is set with Op.KeepSession, Conn with Op.KeepConn and Op.Exhaust, and beside an
	// error with Op.KeepLate.
	Implicit *session.ServerSession
	Conn     *pool.Conn
	// WireVersion is the greatest of the server at the other end of the connection that the last
	// attempt used, also beside an error; 0 if no attempt came that far.
	WireVersion int32
	// Sent says beside an error that the command may have reached a server; Unsent that it ends a
	// transaction, and that time was up, or the context had ended, before anything was sent.
	Sent   bool
	Unsent bool

	// Sealed are the documents of the reply's batch that cannot be decrypted, and why. It is set
	// for cursors only; for other operations they are an error.
	Sealed failure.Sealed

	// Concern is the reply's write concern error, with the labels that the driver adds, nil if
	// there is none. It is set with Op.WriteErrors only.
	Concern *mongoerr.WriteConcernError
	// Ended is the operation's error beside Concern, if the reply with Concern is not the last that
	// was heard of the operation: it was tried again, and the retry could not be made. It has
	// Concern within.
	Ended error

	reply *conn.Reply
}

// Unconfirmed returns the error of a write that was done, though on fewer members than its write
// concern asks for; nil if there is none. It is set with Op.WriteErrors only.
func (r *Result) Unconfirmed() error {
	switch {
	case r.Ended != nil:
		return r.Ended
	case r.Concern != nil:
		return r.Concern
	}
	return nil
}

// Release gives the reply's buffer back. Without it the garbage collector takes it.
func (r *Result) Release() {
	if r.reply != nil {
		r.reply.Release()
		r.reply, r.Reply = nil, nil
	}
}
