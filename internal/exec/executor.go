package exec

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/logging"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
	"allium/tracing"
)

// Config is what an executor needs.
type Config struct {
	Topology    *topology.Topology
	Sessions    *session.Pool
	RetryReads  bool
	RetryWrites bool
	// MaxAdaptiveRetries is how often an operation is tried again once a server said that it is
	// overloaded.
	MaxAdaptiveRetries int
	// OverloadRetargeting makes a retry after overload avoid the server that was overloaded.
	OverloadRetargeting bool
	ReadRetry           ReadRetryPolicy
	// SelectionTimeout bounds selection and checkout together in operations with a timeoutMS; 0 and
	// less: no bound.
	SelectionTimeout time.Duration
	// SocketTimeout bounds each round trip of operations without a timeoutMS; 0: no bound.
	SocketTimeout time.Duration
	ServerAPI     *conn.ServerAPI
	Monitor       *event.CommandMonitor
	// Cipher encrypts commands and decrypts replies. Nil: nothing is encrypted.
	Cipher Cipher
	Log    *logging.Logger
	// Tracer receives the spans of operations, commands and transactions. Nil: there are none.
	Tracer tracing.Tracer
	// QueryTextMaxLength is how much of a command its span shows, in bytes of Extended JSON; 0:
	// nothing.
	QueryTextMaxLength int
	// Slow says which operations are remembered and logged because they took long.
	Slow Slow
	// Unread takes over a cursor that a reply has opened, that nobody will read because code of the
	// program's has failed, and that the server could not be told to forget. Nil: it expires.
	Unread func(db, coll string, id int64, server *topology.Server)
	// Jitter returns a number from 0 to 1 that every backoff is multiplied by, also those between
	// attempts of a whole transaction. Nil: a random one.
	Jitter func() float64
}

// DefaultMaxAdaptiveRetries is the default of the specification Client Backpressure.
const DefaultMaxAdaptiveRetries = 2

// ReadRetryPolicy says how often a read is tried again. The zero policy is that of the
// specification Retryable Reads: once without a timeoutMS, without bound within one.
type ReadRetryPolicy struct {
	// UntilSuccess goes on until success, until an error that is not retryable, or until the second
	// socket timeout, which is returned (Retryable Reads of 2022).
	UntilSuccess bool
	// MaxAttempts bounds the attempts, the first one included, if it is not 0.
	MaxAttempts int
}

// Executor runs operations. It is safe for concurrent use.
type Executor struct {
	Config
	Clock session.Clock

	operations atomic.Int64
	closed     atomic.Bool
	flights    flights
	slow       slowOnes
}

// New returns an executor.
func New(cfg Config) *Executor {
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	return &Executor{Config: cfg}
}

// Inside returns the executor of a client of the root package, which sets it, for tests that
// measure backoffs.
var Inside func(client any) *Executor

// Close makes all later operations fail with ErrClientClosed.
func (x *Executor) Close() { x.closed.Store(true) }

// run is the state of one operation across its attempts.
type run struct {
	x           *Executor
	op          *Op
	flight      *flight
	tells       tells
	started     time.Time       // of the call that the operation is a part of
	deadline    time.Time       // the earlier of the context's and Op.Deadline; zero: none
	source      mongoerr.Source // which of the two
	operationID int64           // only with a monitor or a log

	closing   bool       // it belongs to the end of the client
	entered   bool       // the operation holds its explicit session
	conn      *pool.Conn // that the attempt has checked out, or the pinned one it uses
	talking   bool       // something of a message may be on its way on it
	reply     bson.Raw   // what a reply that has been read says
	server    *topology.Server
	inTxn     bool // the operation is part of a transaction, but does not end it
	startsTxn bool // its first command carries startTransaction

	buf        *buffer // what the operation's command was encoded into
	own        int     // where the command's own elements end in it
	long       bool    // it is from the pool of those for batches
	enciphered bool    // it has been through the cipher

	// mixed says that the message is a command.Batch with statements that must not be retried.
	mixed bool

	sent      bool       // a command may have reached a server
	unwritten bool       // nothing of the last one that was to be sent was written
	unsent    bool       // the end of a transaction, which time or the context kept from being sent
	late      *pool.Conn // owes the reply of an operation with Op.KeepLate

	span      tracing.Span // that is to be ended
	trace     *trace       // of the last command, nil if nobody listens
	implicit  *session.ServerSession
	txnNumber int64                     // of a retryable write, once an attempt took one
	concern   *consistency.WriteConcern // in place of the operation's, once a commit is tried again

	attempts       int // that failed
	overloaded     bool
	socketTimeouts int
	addr           string                   // the server of the last attempt
	selected       *event.ServerDescription // what was known of it when it was selected
	primary        bool                     // the read preference did not count for the selection
	wireVersion    int32                    // of its connection
	selecting      time.Time                // when its selection began; only with a timeoutMS
	avoid          []string                 // servers that a retry should not choose
}

// stage is how far an attempt came.
type stage uint8

const (
	stageSelect   stage = iota // no server was selected
	stageCheckOut              // no connection was checked out
	stageBuild                 // the driver itself refused to send the command
	stageSent                  // the command may have reached the server
)

// Run runs an operation. On success the caller must Release the result. An error is one of the
// types of package mongoerr, or a client-side error that kept anything from being sent.
func (x *Executor) Run(ctx context.Context, op *Op) (Result, error) {
	if x.closed.Load() {
		return Result{}, op.Named(mongoerr.ErrClientClosed)
	}
	return x.run(ctx, op, false)
}

// NewOperationID returns an Op.ID for operations of several commands. It is 0 while nobody listens.
func (x *Executor) NewOperationID() int64 {
	if x.Monitor == nil && x.Log == nil {
		return 0
	}
	return x.operations.Add(1)
}

// RunClosing is Run for what a client still has to do after Close.
func (x *Executor) RunClosing(ctx context.Context, op *Op) (Result, error) {
	return x.run(ctx, op, true)
}

func (x *Executor) run(ctx context.Context, op *Op, closing bool) (Result, error) {
	r := run{x: x, op: op, closing: closing, started: op.Began, implicit: op.Implicit, deadline: op.Deadline,
		source: op.Source}
	r.tells.began = time.Now()
	if r.started.IsZero() {
		r.started = r.tells.began
	}
	if d, ok := ctx.Deadline(); ok && (r.deadline.IsZero() || d.Before(r.deadline)) {
		r.deadline, r.source = d, mongoerr.SourceContext
	} else if !r.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.deadline)
		defer cancel()
	}
	if r.operationID = op.ID; r.operationID == 0 {
		r.operationID = x.NewOperationID()
	}
	r.flight = x.flights.begin(op.Command, op.DB, r.tells.began)
	var res Result
	returned := false
	defer x.flights.end(r.flight)
	defer func() {
		if !returned { // code of the program's has panicked, or ended the goroutine
			r.unwind(ctx, &res)
		}
	}()
	err := r.encode()
	if err == nil {
		err = r.enter(ctx)
	} else if ended := ctx.Err(); ended != nil && errors.Is(err, ended) { // an encoder has looked at it
		err = r.phase(ctx, mongoerr.PhaseEncoding, err)
		err = r.timedOut(ctx, err, err, stageBuild)
	}
	defer r.leave()
	var span tracing.Span
	if x.Tracer != nil {
		ctx, span = r.beginSpan(ctx)
		r.span = span
	}
	if err == nil && r.encrypts() {
		if err = r.encryptFree(ctx); err != nil {
			err = r.timedOut(ctx, err, err, stageBuild)
		}
	}
	if err == nil {
		res, err = r.loop(ctx)
	}
	putBuffer(r.buf, r.long)
	if x.Cipher != nil && err == nil {
		r.flight.phase.Store(&phaseDecryption)
		res, err = r.decrypt(ctx, res)
	}
	if err != nil {
		r.fail(err)
	} else if op.Read != nil {
		err = r.read(&res) // what does not decode has been done all the same
	}
	if span != nil {
		r.span = nil
		r.endSpan(span, &res, err)
	}
	r.tell(ctx, err)
	res.WireVersion = r.wireVersion
	if err != nil {
		failure.Name(err, op.Command.Name(), op.Namespace())
		err = failure.Cause(ctx, err)
		res.Conn, res.Sent, res.Unsent = r.late, r.sent, r.unsent
	}
	switch {
	case op.KeepSession && err == nil:
		res.Implicit = r.implicit
	case op.Implicit == nil:
		x.PutSession(r.implicit)
	}
	returned = true
	return res, err
}

// read hands the reply to the caller, who runs code of the program's, without the session: that
// code may use it.
func (r *run) read(res *Result) error {
	r.flight.phase.Store(&phaseDecoding)
	r.leave()
	err := r.op.Read(r.op, *res)
	if err == nil {
		return nil
	}
	res.Release()
	if res.Conn != nil {
		r.giveBack(res.Conn)
	}
	*res = Result{}
	return err
}

// fail notes that the operation has failed as part of a transaction, whether or not a command has
// left.
func (r *run) fail(err error) {
	if s := r.op.Session; s != nil && !r.op.EndsTransaction && !r.op.streamed() && !r.op.late() && !r.cleansUp() {
		s.Transaction().Fail(err)
	}
}

// cleansUp reports whether the operation is one of the driver's own, which nobody misses.
func (r *run) cleansUp() bool {
	_, ok := r.op.Command.(*command.KillCursors)
	return ok
}

// encryptFree encrypts the command without the session: code of the program's that the cipher asks
// for credentials may use it, but must not end the transaction that the command belongs to: outside
// of it the command would take effect at once.
func (r *run) encryptFree(ctx context.Context) error {
	was, number := r.inTxn, int64(0)
	if was {
		number = r.op.Session.Server().TxnNumber
	}
	r.leave()
	if err := r.encrypt(ctx); err != nil {
		return err
	}
	if err := r.enter(ctx); err != nil {
		return err
	}
	if was && (!r.inTxn || r.op.Session.Server().TxnNumber != number) {
		return r.op.Named(session.ErrConcurrent)
	}
	return nil
}

// leave gives an explicit session back if enter took it.
func (r *run) leave() {
	if r.entered {
		r.entered = false
		r.op.Session.Leave()
	}
}

// enter checks an explicit session and takes it for the operation.
func (r *run) enter(ctx context.Context) error {
	s := r.op.Session
	if s == nil || r.op.EndsTransaction { // who ends a transaction has entered its session
		return nil
	}
	if err := r.enterSession(ctx, s); err != nil {
		return r.op.Named(err)
	}
	r.entered = true
	return nil
}

// enter takes a session for an operation.
func (x *Executor) enter(s *session.Session) error { return x.InUse(s.Enter()) }

// InUse explains the error of a session that is in use: in a client that is closed it is Close that
// uses it.
func (x *Executor) InUse(err error) error {
	if err == session.ErrConcurrent && x.closed.Load() {
		return mongoerr.ErrClientClosed
	}
	return err
}

func (r *run) enterSession(ctx context.Context, s *session.Session) error {
	if err := r.x.enter(s); err != nil {
		return err
	}
	if r.x.closed.Load() && !r.closing { // the transaction may have been aborted since Run looked
		s.Leave()
		return mongoerr.ErrClientClosed
	}
	txn := s.Transaction()
	if r.op.unacknowledged() && !txn.Running() { // in a transaction the write concern is the transaction's
		s.Leave()
		return errors.New(
			"an unacknowledged write cannot use a session: the driver would not know when the session is free again")
	}
	if txn.Pending() {
		_ = r.x.abort(ctx, s, Limit{}) // a server has it open still, and nothing else would end it
		s.LeaveTransaction()           // if that could not be sent either
	}
	txn.BeforeCommand()
	if r.op.streamed() || r.op.late() {
		return nil // no command of a transaction that began since
	}
	r.inTxn = txn.Running()
	r.startsTxn = txn.State() == session.StartingTransaction
	if r.inTxn && r.op.Kind != Write {
		rp := txn.Options().ReadPreference
		if r.op.Kind == Run && r.op.ReadPreference != nil {
			rp = r.op.ReadPreference // the operation's own; that of reads is inherited, and does not count
		}
		if topology.ReadMode(rp) != consistency.Primary {
			s.Leave()
			return errors.New("read preference in a transaction must be primary")
		}
	}
	return nil
}

// PutSession gives the implicit session of a cursor back. A nil session is fine.
func (x *Executor) PutSession(s *session.ServerSession) {
	if s != nil {
		x.Sessions.Put(s, x.SessionTimeout())
	}
}

// SessionTimeout returns the deployment's logicalSessionTimeoutMinutes, or nil.
func (x *Executor) SessionTimeout() *int64 {
	return x.Topology.Description().SessionTimeoutMinutes
}

// drop releases a reply that the operation does not return.
func (r *run) drop(res Result) {
	r.reply = nil
	res.Release()
}

// loop makes attempts until one succeeds or no further one is allowed.
func (r *run) loop(ctx context.Context) (Result, error) {
	var first, sent error // the first error, and the last one of an attempt that may have had an effect
	var done Result       // of the last attempt that did the write, on too few members
	defer func() { done.Release() }()
	for {
		res, stage, err := r.attempt(ctx)
		if err == nil {
			r.unpin(nil, nil, false)
			return res, nil
		}
		r.attempts++
		r.flight.attempts.Add(1)
		r.label(err, stage)
		if first == nil {
			first = err
		}
		if stage == stageSent && !mongoerr.HasLabel(err, mongoerr.LabelNoWritesPerformed) {
			sent = err
		}
		if res.Concern != nil && r.op.WriteErrors {
			done, res = res, done
		}
		if r.retries(ctx, err, stage) && r.backoff(ctx, err) && r.pause(ctx, stage) {
			r.drop(res)
			r.unpin(err, nil, true)
			// what an overloaded server has not begun is not majority's yet
			if r.op.RetryConcern != nil && !isRetryableOverload(err) {
				r.concern = r.op.RetryConcern
			}
			continue
		}
		r.drop(res)
		if done.Concern != nil && err == error(done.Concern) {
			return r.take(&done), nil // the caller returns the error beside the results
		}
		// The rules of Retryable Writes, which those of Retryable Reads are a part of: an error
		// that says that an attempt was made wins over one that says that none was.
		if sent == nil {
			sent = first
		}
		last := err
		isDone := done.Concern != nil && sent == error(done.Concern)
		if refused, ok := errors.AsType[*mongoerr.AuthError](last); ok && !errors.As(sent, new(*mongoerr.AuthError)) {
			sent = &refusedRetry{sent, refused}
		}
		r.unsent = r.op.EndsTransaction && r.op.Session.Transaction().Pending() && failure.OutOfTime(last) &&
			(ctx.Err() != nil || errors.Is(last, errNoTimeLeft))
		err = r.timedOut(ctx, sent, last, stage)
		r.unpin(last, err, false)
		if r.inTxn && stage == stageSent && !r.cleansUp() {
			r.op.Session.Transaction().Answered(err)
		}
		if !isDone {
			return Result{}, err
		}
		// The retry that could not be made has changed nothing of what the write did.
		if err != error(done.Concern) {
			failure.Name(err, r.op.Command.Name(), r.op.Namespace())
			done.Ended = failure.Cause(ctx, err)
		}
		return r.take(&done), nil
	}
}

// take returns a result that was kept while the operation went on.
func (r *run) take(kept *Result) Result {
	res := *kept
	*kept, r.reply = Result{}, res.Reply
	return res
}

// refusedRetry is the error of an operation whose retry could not authenticate: the one that made
// the retry necessary, as the rules want, which alone would send whoever reads it the wrong way.
type refusedRetry struct {
	sent    error
	refused *mongoerr.AuthError
}

func (e *refusedRetry) Error() string {
	return e.sent.Error() + "; the retry failed: " + e.refused.Error()
}

func (e *refusedRetry) Unwrap() []error { return []error{e.sent, e.refused} }

// unpin unpins the transaction if unpins says so.
func (r *run) unpin(last, err error, again bool) {
	if r.unpins(last, err, again) {
		r.op.Session.Transaction().Unpin()
	}
}

// unpins decides whether a transaction is no longer tied to where it runs after an attempt that
// ended in last (specification: Transactions, "When to unpin"). again says that another attempt
// follows; else err is the operation's error. What a session does by itself is beside this: it
// unpins before another transaction, before the command after a transaction, and at its end.
func (r *run) unpins(last, err error, again bool) bool {
	ends, isEnd := r.op.Command.(*command.EndTransaction)
	switch {
	case !isEnd && !r.inTxn:
		return false
	case again && !isEnd:
		return false // what is tried again in a transaction must go to the same mongos
	case r.unsent:
		return false // where the transaction is may be reached next time
	case again && ends.Commit:
		// With the recovery token any mongos, and any connection through a load balancer, can tell
		// the outcome of a commit that has begun. An overloaded server has not begun it, and only
		// the server that the transaction ran on can.
		return mongoerr.HasLabel(last, mongoerr.LabelRetryableWrite)
	case isEnd && !ends.Commit:
		return true // any can abort it, and nothing is left to do afterwards, however the attempt ended
	case mongoerr.HasLabel(last, mongoerr.LabelTransientTransaction),
		mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction):
		return true
	}
	return isEnd && commitUnknown(err)
}

// timedOut turns the operation's error into a TimeoutError if it ended because its time was up, or
// was cancelled.
func (r *run) timedOut(ctx context.Context, err, last error, stage stage) error {
	var t *mongoerr.TimeoutError
	if errors.As(last, &t) {
		if (t.Source == "" || t.Source == mongoerr.SourceCancel) && !t.Canceled() {
			t.Source = r.source // the layers below see the one context only
		}
		t.Elapsed = r.elapsed(t.Source)
		if err != last && t.Wrapped != err {
			t.Wrapped = failure.Join(t.Wrapped, err)
		}
		return last
	}
	expired := ctx.Err()
	if expired == nil && !r.deadline.IsZero() && (isMaxTimeExpired(last) && (r.op.set() || r.boundsServer()) ||
		!time.Now().Before(r.deadline)) {
		expired = context.DeadlineExceeded
	}
	if expired == nil || stage == stageBuild {
		return err
	}
	t = &mongoerr.TimeoutError{Phase: stage.phase(), Elapsed: time.Since(r.started), Addr: r.addr, Wrapped: err}
	if errors.Is(expired, context.Canceled) {
		if !errors.Is(err, context.Canceled) {
			t.Wrapped = failure.Join(expired, err)
		}
	} else {
		t.Source = r.source
		t.Elapsed = r.elapsed(t.Source)
	}
	for _, l := range []string{mongoerr.LabelTransientTransaction, mongoerr.LabelUnknownTransactionCommit} {
		if mongoerr.HasLabel(err, l) {
			failure.AddTo(&t.Labels, l)
		}
	}
	return t
}

// elapsed returns the time since the call began. If the operation's own limit ended it, that is the
// time since the limit began: an operation of many commands, or a cursor, has one for all of them.
func (r *run) elapsed(source mongoerr.Source) time.Duration {
	if op := r.op; op.Timeout != nil && !op.Deadline.IsZero() && source == op.Source {
		return *op.Timeout - time.Until(op.Deadline)
	}
	return time.Since(r.started)
}

func (s stage) phase() mongoerr.Phase {
	switch s {
	case stageSelect:
		return mongoerr.PhaseSelection
	case stageCheckOut:
		return mongoerr.PhaseCheckout
	}
	return mongoerr.PhaseCommand
}
