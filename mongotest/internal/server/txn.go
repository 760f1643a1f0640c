package server

import (
	"bytes"
	"time"

	"allium/bson"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// InTxn reports whether the command runs in a multi-document transaction.
func (r *Request) InTxn() bool { return r.autocommit != nil }

// IsRetryable reports whether the command is a retryable write.
func (r *Request) IsRetryable() bool { return r.HasTxnNumber && r.autocommit == nil }

// Executed returns what an earlier attempt of this retryable write did for the statement.
func (r *Request) Executed(stmt int32) (session.Statement, bool) {
	if !r.IsRetryable() {
		return session.Statement{}, false
	}
	if r.Routing != nil {
		return r.Routing.executed(stmt)
	}
	s, ok := r.Session.Recorded(r.TxnNumber, stmt)
	return s, ok && !r.Node.data.sessions.Undone(s.TS)
}

// Record notes what a statement of a retryable write did, at the shard that did it. It does nothing
// for other writes.
func (r *Request) Record(stmt int32, s session.Statement, shard int) {
	switch {
	case !r.IsRetryable():
	case r.Routing != nil:
		r.Routing.record(stmt, s, shard)
	default:
		r.Session.Record(r.TxnNumber, stmt, s)
	}
}

// checkOut takes the request's session for as long as the command runs and brings its transaction
// into the state that the command asks for.
func (r *Request) checkOut() error {
	s := r.Session
	if !s.Mu.TryLock() {
		if err := r.waitSession(); err != nil {
			return err
		}
	}
	r.checkedOut = true
	st := &s.State
	if r.Node.set != nil && !r.Node.IsPrimary() {
		return srverr.New(srverr.NotWritablePrimary, "Not primary so we cannot begin or continue a transaction")
	}
	if r.TxnNumber < st.TxnNumber {
		if r.autocommit == nil && r.Version().AtLeast(5, 0) {
			return srverr.New(srverr.TransactionTooOld,
				"Retryable write with txnNumber %d is prohibited on session %s because a newer retryable write with txnNumber %d has already started on this session.", r.TxnNumber, s.ID, st.TxnNumber)
		}
		return srverr.New(srverr.TransactionTooOld,
			"Cannot start transaction %d on session %s because a newer transaction %d has already started.",
			r.TxnNumber, s.ID, st.TxnNumber)
	}
	if st.TxnNumber < 0 {
		if err := r.failSessionLookup(); err != nil {
			return err
		}
	}
	switch {
	case r.autocommit == nil:
		return r.beginRetryable(st)
	case r.startTxn:
		return r.beginTxn(st)
	}
	return r.continueTxn(st)
}

func (r *Request) checkIn() {
	if r.checkedOut {
		r.checkedOut = false
		r.Session.Mu.Unlock()
	}
}

// waitSession waits until another command is done with the session.
func (r *Request) waitSession() error {
	_, err := r.Wait(r.Session.Mu.Free(), 0)
	return err
}

func (r *Request) beginRetryable(st *session.State) error {
	if r.TxnNumber > st.TxnNumber {
		r.Session.Abort()
		*st = session.State{TxnNumber: r.TxnNumber}
		return nil
	}
	if st.Phase != session.RetryableWrite {
		return srverr.New(srverr.IncompleteTransactionHistory,
			"Cannot retry a retryable write that has been converted into a transaction")
	}
	return nil
}

func (r *Request) beginTxn(st *session.State) error {
	if r.Cmd.Txn == TxnLater {
		return srverr.New(srverr.OperationNotSupportedInTransaction,
			"Cannot run %s as the first operation in a multi-document transaction.", r.Cmd.Name)
	}
	if r.TxnNumber == st.TxnNumber && (r.Routing == nil || st.Phase != session.TxnAborted) {
		return srverr.New(srverr.ConflictingOperationInProgress,
			"Only servers in a sharded cluster can start a new transaction at the active transaction number")
	}
	r.Session.Abort()
	t := &session.Txn{Number: r.TxnNumber, Session: r.Session, Api: r.apiText(), Started: time.Now(), ReadTime: r.rc.at,
		Level: r.rc.level}
	*st = session.State{TxnNumber: r.TxnNumber, Phase: session.TxnInProgress, Txn: t}
	t.Store = r.storeSide()
	r.Txn, r.Conn.txn = t, t
	r.Node.expireTxn(r.Session, t)
	return nil
}

func (r *Request) continueTxn(st *session.State) error {
	if r.TxnNumber != st.TxnNumber || st.Phase == session.RetryableWrite {
		return srverr.New(srverr.NoSuchTransaction,
			"Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", r.TxnNumber, st.TxnNumber)
	}
	if st.Txn != nil {
		if err := r.SameAPI("transaction-continuing command", st.Txn.Api, "transaction's first command"); err != nil {
			return err
		}
	}
	switch {
	case st.Phase == session.TxnAborted:
		return srverr.New(srverr.NoSuchTransaction, "Transaction %d has been aborted.", r.TxnNumber)
	case st.Phase == session.TxnCommitted && r.commitUndone(st.Txn):
		// The commit was rolled back, and this primary has never heard of the transaction.
		return srverr.New(srverr.NoSuchTransaction,
			"Given transaction number %d does not match any in-progress transactions. The active transaction number is -1", r.TxnNumber)
	case st.Phase == session.TxnCommitted && r.Cmd.Name != "commitTransaction":
		return srverr.New(srverr.TransactionCommitted, "Transaction %d has been committed.", r.TxnNumber)
	}
	r.Txn, r.Conn.txn = st.Txn, st.Txn
	return nil
}

// checkTxnConcern refuses commands that go only with read concern local in a transaction with
// another one.
func (r *Request) checkTxnConcern() error {
	if r.Txn == nil || r.Cmd.Txn != TxnLocal || r.Txn.Level == "" || r.Txn.Level == "local" {
		return nil
	}
	return srverr.New(
		srverr.InvalidOptions, "Command %s does not support this transaction's { readConcern: { level: \"%s\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", r.Cmd.Name, r.Txn.Level)
}

// systemCollection refuses system collections in a transaction.
func (r *Request) systemCollection() error {
	if !r.InTxn() {
		return nil
	}
	name, _ := r.Arg().StringBytes()
	if r.Arg().Type == bson.TypeBinary {
		if ns, err := r.Readable(srverr.InvalidNamespace); err == nil {
			_, coll := namespace.Split(ns)
			name = []byte(coll)
		}
	}
	if !bytes.HasPrefix(name, []byte("system.")) {
		return nil
	}
	if r.Cmd.Name == "create" {
		return errSystemInTxn(r.join(string(name)))
	}
	if r.Cmd.Retryable {
		code := int32(50791)
		if r.Cmd.Name == "findAndModify" && !r.Version().AtLeast(7, 0) {
			code = 50781
		}
		return srverr.New(code, "Cannot write to system collection %s.%s within a transaction.", r.DB, name)
	}
	if string(name) == "system.profile" {
		return srverr.New(srverr.OperationNotSupportedInTransaction,
			"Cannot query system.profile within a transaction")
	}
	if string(name) == "system.views" {
		code := int32(51071)
		if r.Arg().Type == bson.TypeBinary {
			code = 51070
		}
		err := srverr.New(code, "Cannot query system.views within a transaction")
		if r.Cmd.Name == "find" {
			return r.Routing.FromShard(err, "Encountered non-retryable error during query")
		}
		return err
	}
	return nil
}

// errSystemInTxn is the error of a transaction that would create a system collection.
func errSystemInTxn(ns string) error {
	return srverr.New(srverr.OperationNotSupportedInTransaction,
		"Cannot create system collection %s within a transaction.", ns)
}

// SpoilTxn makes sure that the transaction is aborted when the command ends, because a write in it
// has failed. It reports whether there is a transaction: the command must stop then, ordered or
// not.
func (r *Request) SpoilTxn() bool {
	if r.InTxn() {
		r.spoilt = true
	}
	return r.spoilt
}

// Spoilt reports whether a write of the command has spoilt its transaction.
func (r *Request) Spoilt() bool { return r.spoilt }

// failTxn aborts the transaction after an error of a command in it.
func (r *Request) failTxn() {
	if r.InTxn() && r.checkedOut {
		r.Session.Abort()
	}
}

// expireTxn aborts the transaction when it has been open for too long
// (transactionLifetimeLimitSeconds).
func (n *Node) expireTxn(s *session.Session, t *session.Txn) {
	limit := time.Duration(n.IntParameter("transactionLifetimeLimitSeconds")) * time.Second
	t.Expiry = time.AfterFunc(limit, func() {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		if s.State.Txn == t {
			s.Abort()
		}
	})
}

// CommitTransaction commits the request's transaction, or does again what a commit that is repeated
// has to.
func (r *Request) CommitTransaction() error {
	st, t := &r.Session.State, r.Txn
	if st.Phase == session.TxnCommitted {
		// The client's write concern now waits for everything there is, as the server's no-op write
		// makes it do.
		r.Wrote(t.CommitTS)
		r.Wrote(r.Node.data.newest())
		r.Routing.committedOn(t)
		return nil
	}
	if t.Store != nil {
		if err := r.Routing.prepareCommit(); err != nil {
			r.Session.Abort()
			return err
		}
		ts, err := t.Store.Commit()
		if err != nil {
			return err
		}
		t.CommitTS = ts
		r.Wrote(ts)
		r.Routing.committedOn(t)
		if ts.IsZero() {
			r.Wrote(r.Node.data.newest())
		}
	}
	st.Phase = session.TxnCommitted
	t.End(true)
	return nil
}
