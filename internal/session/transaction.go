package session

import (
	"errors"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/pool"
	"allium/tracing"
)

// TransactionOptions are the options of a transaction as they were given; what is nil is inherited
// from the session's defaults and then from the client.
type TransactionOptions struct {
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	ReadPreference *consistency.ReadPreference
	MaxCommitTime  time.Duration
}

// Inherit returns o with what it leaves out taken from d.
func (o TransactionOptions) Inherit(d TransactionOptions) TransactionOptions {
	if o.ReadConcern == nil {
		o.ReadConcern = d.ReadConcern
	}
	if o.WriteConcern == nil {
		o.WriteConcern = d.WriteConcern
	}
	if o.ReadPreference == nil {
		o.ReadPreference = d.ReadPreference
	}
	if o.MaxCommitTime == 0 {
		o.MaxCommitTime = d.MaxCommitTime
	}
	return o
}

// TransactionState is one of the five states of the Transactions specification.
type TransactionState int32

// The states of a session's transaction.
const (
	NoTransaction TransactionState = iota
	StartingTransaction
	TransactionInProgress
	TransactionCommitted
	TransactionAborted

	// The end was asked for, and nothing of it has left: the server has the transaction open still.
	// Users see a committed and an aborted transaction, as the specification has it, but what was
	// not sent can be sent again, and a transaction whose commit was not sent can be aborted.
	commitUnsent
	abortUnsent
)

// seen returns the state that the specification knows.
func (s TransactionState) seen() TransactionState {
	switch s {
	case commitUnsent:
		return TransactionCommitted
	case abortUnsent:
		return TransactionAborted
	}
	return s
}

// open reports whether there is a transaction that no server was told to end.
func (s TransactionState) open() bool {
	return s == StartingTransaction || s == TransactionInProgress || s == commitUnsent || s == abortUnsent
}

func (s TransactionState) String() string {
	return [...]string{"no transaction", "starting transaction", "transaction in progress", "transaction committed",
		"transaction aborted"}[s.seen()]
}

// Pin pins a transaction to where it runs: to a mongos, or behind a load balancer to a connection.
type Pin struct {
	Mongos string     // its address; "" behind a load balancer
	Conn   *pool.Conn // nil in a sharded cluster
}

// Transaction is the transaction part of a Session. The caller holds the session (Enter), but for
// State, Running, Open, Revoked, Fail and Failed.
type Transaction struct {
	session       *Session
	state         atomic.Int32 // a TransactionState
	opts          TransactionOptions
	empty         bool        // it was committed before any command was sent
	revoked       atomic.Bool // for good: the client is closed
	recoveryToken bson.Raw
	pin           *Pin
	mongos        string                // where it ran, also when it is no longer pinned
	late          *pool.Conn            // see KeepLate
	failure       error                 // see Answered
	first         atomic.Pointer[error] // see Fail
	using         atomic.Pointer[pool.Conn]

	// Started is when it was started. Span, nil until the executor begins it, stands for the whole
	// transaction, also after its end in case the commit is repeated.
	Started time.Time
	Span    *TransactionSpan
}

// TransactionSpan is the span of a transaction.
type TransactionSpan struct {
	tracing.Span
	Ended bool
}

// Transaction returns the session's transaction.
func (s *Session) Transaction() *Transaction { return &s.txn }

// Errors of calling the transaction methods in the wrong state, with the words of the
// specification.
var (
	ErrTransactionInProgress = errors.New("start transaction: Transaction already in progress")
	ErrNoTransaction         = errors.New(
		"end transaction: No transaction started: call StartTransaction first, or use Transact")
	ErrCommitAfterAbort = errors.New(
		"commit transaction: Cannot call commitTransaction after calling abortTransaction")
	ErrAbortAfterCommit = errors.New(
		"abort transaction: Cannot call abortTransaction after calling commitTransaction")
	ErrAbortTwice          = errors.New("abort transaction: Cannot call abortTransaction twice")
	ErrSnapshotTransaction = errors.New("start transaction: Transactions are not supported in snapshot sessions")
)

// StartTransaction begins a transaction; opts must have its inheritance done.
func (s *Session) StartTransaction(opts TransactionOptions) error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	switch {
	case s.opts.Snapshot:
		return ErrSnapshotTransaction
	case s.txn.Running():
		return ErrTransactionInProgress
	}
	s.LeaveTransaction() // what ends it otherwise is the first command, which may never be sent
	s.txn.begin(opts)
	s.Server().TxnNumber++ // with it a server ends a transaction that it has open still
	return nil
}

// begin forgets the transaction before.
func (t *Transaction) begin(opts TransactionOptions) {
	t.Unpin()
	t.DropLate()
	t.opts, t.empty, t.recoveryToken, t.failure, t.mongos = opts, false, nil, nil, ""
	t.first.Store(nil)
	t.Started, t.Span = time.Now(), nil
	t.move(StartingTransaction)
}

// move changes the state, and tells the pool whether the client has to end the transaction when it
// is closed.
func (t *Transaction) move(to TransactionState) {
	from := TransactionState(t.state.Swap(int32(to)))
	if from.open() != to.open() {
		t.session.pool.noteOpen(t.session, to.open())
	}
}

// handOver moves a transaction whose end is Pending to another session, where it is to be aborted.
func (t *Transaction) handOver(to *Transaction, s *Session) {
	to.session, to.opts, to.Started, to.Span = s, t.opts, t.Started, t.Span
	to.recoveryToken, to.pin, to.mongos, to.late = t.recoveryToken, t.pin, t.mongos, t.late
	t.pin, t.late, t.Span = nil, nil, nil
	to.move(abortUnsent) // before, so that a client that is being closed finds one of them
	t.move(NoTransaction)
}

// forget makes the pool forget the transaction of a session that has ended.
func (t *Transaction) forget() {
	if t.Open() {
		t.session.pool.noteOpen(t.session, false)
	}
}

func (t *Transaction) now() TransactionState { return TransactionState(t.state.Load()) }

// State returns the state.
func (t *Transaction) State() TransactionState { return t.now().seen() }

// Open reports whether there is a transaction that no server was told to end: it is running, or it
// was ended and nothing of that has been sent.
func (t *Transaction) Open() bool { return t.now().open() }

// Pending reports whether the transaction was ended and nothing of that has been sent.
func (t *Transaction) Pending() bool { return t.now() != t.State() }

// begun reports whether a server may have the transaction open, and was not told to end it.
func (t *Transaction) begun() bool {
	now := t.now()
	return now.open() && now != StartingTransaction
}

// Options returns the options that the transaction was started with.
func (t *Transaction) Options() TransactionOptions { return t.opts }

// Running reports whether commands belong to a transaction.
func (t *Transaction) Running() bool {
	now := t.now()
	return now == StartingTransaction || now == TransactionInProgress
}

// BeforeCommand moves the state on before a command other than commit and abort: after a commit or
// an abort the session is without a transaction again.
func (t *Transaction) BeforeCommand() {
	switch t.State() {
	case TransactionCommitted, TransactionAborted:
		t.Unpin()
		t.DropLate()
		t.recoveryToken = nil
		t.move(NoTransaction)
	}
}

// Sending notes that a command of the transaction, or the one that ends it, is about to be written.
// It reports whether that changed the state, which NotSent takes back.
func (t *Transaction) Sending() bool {
	switch t.now() {
	case StartingTransaction:
		t.move(TransactionInProgress)
	case commitUnsent:
		t.move(TransactionCommitted)
	case abortUnsent:
		t.move(TransactionAborted)
	default:
		return false
	}
	return true
}

// NotSent takes back what Sending did: nothing has been written after all.
func (t *Transaction) NotSent() {
	switch t.now() {
	case TransactionInProgress:
		t.move(StartingTransaction)
	case TransactionCommitted:
		t.move(commitUnsent)
	case TransactionAborted:
		t.move(abortUnsent)
	}
}

// Fail notes that an operation of the transaction has failed, other than its end, if one is
// running. The first error counts. It may be called at any time.
func (t *Transaction) Fail(err error) {
	if t.Running() {
		t.first.CompareAndSwap(nil, &err)
	}
}

// Failed returns the first error of Fail, nil if there was none.
func (t *Transaction) Failed() error {
	if err := t.first.Load(); err != nil {
		return *err
	}
	return nil
}

// Answered notes an error that a server may have answered to a command of the transaction, other
// than its end: it aborts the transaction then, whether or not the user's code minds. The first
// error counts.
func (t *Transaction) Answered(err error) {
	if t.failure == nil {
		t.failure = err
	}
	t.Fail(err)
}

// Failure returns the first error of Answered, nil if there was none.
func (t *Transaction) Failure() error { return t.failure }

// Commit moves to committed. send is false if there is nothing to send, again is true if a commit
// was tried before.
func (t *Transaction) Commit() (send, again bool, err error) {
	switch t.now() {
	case NoTransaction:
		return false, false, ErrNoTransaction
	case TransactionAborted, abortUnsent:
		return false, false, ErrCommitAfterAbort
	case StartingTransaction:
		t.empty = true
		t.move(TransactionCommitted)
		return false, false, nil
	case TransactionCommitted, commitUnsent:
		return !t.empty, true, nil
	}
	t.move(commitUnsent)
	return true, false, nil
}

// Abort moves to aborted. send is false if there is nothing to send.
func (t *Transaction) Abort() (send bool, err error) {
	switch t.now() {
	case NoTransaction:
		return false, ErrNoTransaction
	case TransactionCommitted:
		return false, ErrAbortAfterCommit
	case TransactionAborted:
		return false, ErrAbortTwice
	case StartingTransaction:
		t.move(TransactionAborted)
		return false, nil
	}
	t.move(abortUnsent)
	return true, nil
}

// Revoke notes that the client is about to abort the transaction in place of the program, because
// the client is closed.
func (t *Transaction) Revoke() { t.revoked.Store(true) }

// Revoked reports whether the client has aborted the transaction in place of the program.
func (t *Transaction) Revoked() bool { return t.revoked.Load() }

// Use notes the connection that a command of the transaction runs on, nil once it does not.
func (t *Transaction) Use(c *pool.Conn) { t.using.Store(c) }

// Interrupt makes a command of the transaction that is running fail. It may be called at any time.
func (t *Transaction) Interrupt() {
	if c := t.using.Load(); c != nil {
		c.Interrupt()
	}
}

// RecoveryToken returns the token of the last reply of a mongos, nil if there is none.
func (t *Transaction) RecoveryToken() bson.Raw { return t.recoveryToken }

// Pinned returns what the transaction is tied to, or nil.
func (t *Transaction) Pinned() *Pin { return t.pin }

// PinTo ties the transaction to p.
func (t *Transaction) PinTo(p Pin) { t.pin, t.mongos = &p, p.Mongos }

// Mongos returns the address of the mongos that the transaction ran on, "" if it was not pinned to
// one. An abort that goes elsewhere ends nothing.
func (t *Transaction) Mongos() string { return t.mongos }

// KeepLate keeps a connection that owes the reply to a command of the transaction, so that the
// abort can be sent behind that command: on another connection it might come before it, and the
// command would begin the transaction anew.
func (t *Transaction) KeepLate(c *pool.Conn) {
	t.DropLate()
	if t.pin != nil && t.pin.Conn == c {
		t.pin = nil
	} else {
		c.Pin(pool.ForTransaction)
	}
	t.late = c
}

// TakeLate returns the connection of KeepLate, which the caller gives back, or nil.
func (t *Transaction) TakeLate() *pool.Conn {
	c := t.late
	t.late = nil
	return c
}

// DropLate gives the connection of KeepLate back.
func (t *Transaction) DropLate() {
	if c := t.TakeLate(); c != nil {
		c.Return()
	}
}

// Unpin ends the transaction's pin, and returns a pinned connection.
func (t *Transaction) Unpin() {
	p := t.pin
	t.pin = nil // a listener that hears of the connection may fail
	if p != nil && p.Conn != nil {
		p.Conn.Return()
	}
}
