package session

import (
	"errors"
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
type TransactionState int

// The states of a session's transaction.
const (
	NoTransaction TransactionState = iota
	StartingTransaction
	TransactionInProgress
	TransactionCommitted
	TransactionAborted
)

func (s TransactionState) String() string {
	return [...]string{"no transaction", "starting transaction", "transaction in progress", "transaction committed", "transaction aborted"}[s]
}

// Pin pins a transaction to where it runs: to a mongos, or behind a load balancer to a connection.
type Pin struct {
	Mongos string     // its address; "" behind a load balancer
	Conn   *pool.Conn // nil in a sharded cluster
}

// Transaction is the transaction part of a Session. The caller holds the session (Enter).
type Transaction struct {
	state         TransactionState
	opts          TransactionOptions
	empty         bool // it was committed before any command was sent
	recoveryToken bson.Raw
	pin           *Pin
	failure       error // see Fail

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
	ErrNoTransaction         = errors.New("end transaction: No transaction started: call StartTransaction first, or use Transact")
	ErrCommitAfterAbort      = errors.New("commit transaction: Cannot call commitTransaction after calling abortTransaction")
	ErrAbortAfterCommit      = errors.New("abort transaction: Cannot call abortTransaction after calling commitTransaction")
	ErrAbortTwice            = errors.New("abort transaction: Cannot call abortTransaction twice")
	ErrSnapshotTransaction   = errors.New("start transaction: Transactions are not supported in snapshot sessions")
)

// StartTransaction begins a transaction; opts must have its inheritance done.
func (s *Session) StartTransaction(opts TransactionOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return ErrEnded
	case s.opts.Snapshot:
		return ErrSnapshotTransaction
	case s.txn.state == StartingTransaction || s.txn.state == TransactionInProgress:
		return ErrTransactionInProgress
	}
	s.txn.Unpin()
	s.txn = Transaction{state: StartingTransaction, opts: opts, Started: time.Now()}
	s.server().TxnNumber++
	return nil
}

// State returns the state.
func (t *Transaction) State() TransactionState { return t.state }

// Options returns the options that the transaction was started with.
func (t *Transaction) Options() TransactionOptions { return t.opts }

// Running reports whether commands belong to a transaction.
func (t *Transaction) Running() bool {
	return t.state == StartingTransaction || t.state == TransactionInProgress
}

// BeforeCommand moves the state on before a command other than commit and abort: after a commit or
// an abort the session is without a transaction again.
func (t *Transaction) BeforeCommand() {
	if t.state == TransactionCommitted || t.state == TransactionAborted {
		t.Unpin()
		t.state = NoTransaction
		t.recoveryToken = nil
	}
}

// Sent notes that a command of the transaction has been sent.
func (t *Transaction) Sent() {
	if t.state == StartingTransaction {
		t.state = TransactionInProgress
	}
}

// Fail notes an error that a server answered to a command of the transaction, other than its end:
// the server aborts the transaction with it, whether or not the user's code minds. The first error
// counts.
func (t *Transaction) Fail(err error) {
	if t.failure == nil {
		t.failure = err
	}
}

// Failure returns the first error of Fail, nil if there was none.
func (t *Transaction) Failure() error { return t.failure }

// Commit moves to committed. send is false if there is nothing to send, again is true if a commit
// was sent before.
func (t *Transaction) Commit() (send, again bool, err error) {
	switch t.state {
	case NoTransaction:
		return false, false, ErrNoTransaction
	case TransactionAborted:
		return false, false, ErrCommitAfterAbort
	case StartingTransaction:
		t.state, t.empty = TransactionCommitted, true
		return false, false, nil
	case TransactionCommitted:
		return !t.empty, true, nil
	}
	t.state = TransactionCommitted
	return true, false, nil
}

// Abort moves to aborted. send is false if there is nothing to send.
func (t *Transaction) Abort() (send bool, err error) {
	switch t.state {
	case NoTransaction:
		return false, ErrNoTransaction
	case TransactionCommitted:
		return false, ErrAbortAfterCommit
	case TransactionAborted:
		return false, ErrAbortTwice
	}
	send = t.state == TransactionInProgress
	t.state = TransactionAborted
	return send, nil
}

// RecoveryToken returns the token of the last reply of a mongos, nil if there is none.
func (t *Transaction) RecoveryToken() bson.Raw { return t.recoveryToken }

// Pinned returns what the transaction is tied to, or nil.
func (t *Transaction) Pinned() *Pin { return t.pin }

// PinTo ties the transaction to p.
func (t *Transaction) PinTo(p Pin) { t.pin = &p }

// Unpin ends the transaction's pin, and returns a pinned connection.
func (t *Transaction) Unpin() {
	if t.pin != nil && t.pin.Conn != nil {
		t.pin.Conn.Return()
	}
	t.pin = nil
}
