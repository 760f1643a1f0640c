package server

import (
	"bytes"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// StoreTxn is the store's side of a multi-document transaction.
type StoreTxn interface {
	// Commit makes the writes visible, all at once, and returns their time: zero if there were none.
	Commit() (bson.Timestamp, error)
	// Abort forgets the writes.
	Abort()
}

// Txn is a multi-document transaction (specification: transactions). It is used by one command at a time.
type Txn struct {
	Number int64
	Store  StoreTxn
	// ReadTime is the time of the snapshot that the transaction reads; zero: the newest when its first command began.
	ReadTime bson.Timestamp

	session  *Session
	api      string // the Stable API's parameters of its first command
	started  time.Time
	commitTS bson.Timestamp
	expiry   *time.Timer
}

// end lets go of the transaction's resources.
func (t *Txn) end(commit bool) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	if !commit && t.Store != nil {
		t.Store.Abort()
	}
	t.Store = nil
}

// InTxn reports whether the command runs in a multi-document transaction.
func (r *Request) InTxn() bool { return r.autocommit != nil }

// IsRetryable reports whether the command is a retryable write.
func (r *Request) IsRetryable() bool { return r.hasTxnNumber && r.autocommit == nil }

// Executed returns what an earlier attempt of this retryable write did for the statement.
func (r *Request) Executed(stmt int32) (Statement, bool) {
	if !r.IsRetryable() {
		return Statement{}, false
	}
	s, ok := r.Session.state.stmts[stmt]
	return s, ok
}

// Record notes what a statement of a retryable write did. It does nothing for other writes.
func (r *Request) Record(stmt int32, s Statement) {
	if !r.IsRetryable() {
		return
	}
	st := &r.Session.state
	if st.stmts == nil {
		st.stmts = map[int32]Statement{}
	}
	st.stmts[stmt] = s
}

// rollBack forgets what retryable writes did after a time: the new primary never had them, and a retry must do them again.
func (s *Session) rollBack(to bson.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, stmt := range s.state.stmts {
		if stmt.TS.Compare(to) > 0 {
			delete(s.state.stmts, id)
		}
	}
}

// checkOut takes the request's session for as long as the command runs and brings its transaction into the state that
// the command asks for.
func (r *Request) checkOut() error {
	s := r.Session
	if !s.mu.TryLock() {
		if err := r.waitSession(); err != nil {
			return err
		}
	}
	r.checkedOut = true
	st := &s.state
	if r.Node.set != nil && !r.Node.isPrimary() {
		return srverr.New(srverr.NotWritablePrimary, "Not primary so we cannot begin or continue a transaction")
	}
	if r.txnNumber < st.txnNumber {
		if r.autocommit == nil && r.Node.cfg.Version.AtLeast(5, 0) {
			return srverr.New(srverr.TransactionTooOld, "Retryable write with txnNumber %d is prohibited on session %s because a newer retryable write with txnNumber %d has already started on this session.", r.txnNumber, s.ID, st.txnNumber)
		}
		return srverr.New(srverr.TransactionTooOld, "Cannot start transaction %d on session %s because a newer transaction %d has already started.", r.txnNumber, s.ID, st.txnNumber)
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
		r.Session.mu.Unlock()
	}
}

// waitSession waits until another command is done with the session.
func (r *Request) waitSession() error {
	free := make(chan struct{})
	go func() {
		r.Session.mu.Lock()
		close(free)
	}()
	if _, err := r.Wait(free, 0); err != nil {
		s := r.Session
		go func() {
			<-free
			s.mu.Unlock()
		}()
		return err
	}
	return nil
}

func (r *Request) beginRetryable(st *sessionState) error {
	if r.txnNumber > st.txnNumber {
		r.Session.abort()
		*st = sessionState{txnNumber: r.txnNumber}
		return nil
	}
	if st.phase != retryableWrite {
		return srverr.New(srverr.IncompleteTransactionHistory, "Cannot retry a retryable write that has been converted into a transaction")
	}
	return nil
}

func (r *Request) beginTxn(st *sessionState) error {
	if r.txnNumber == st.txnNumber && (r.Node.role != Mongos || st.phase != txnAborted) {
		return srverr.New(srverr.ConflictingOperationInProgress, "Only servers in a sharded cluster can start a new transaction at the active transaction number")
	}
	if r.Cmd.Name == "killCursors" {
		return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot run killCursors as the first operation in a multi-document transaction.")
	}
	r.Session.abort()
	t := &Txn{Number: r.txnNumber, session: r.Session, api: r.apiText(), started: time.Now(), ReadTime: r.rc.at}
	*st = sessionState{txnNumber: r.txnNumber, phase: txnInProgress, txn: t}
	if begin := r.Node.data.Begin; begin != nil {
		t.Store = begin(r, t)
	}
	r.Txn = t
	r.Node.expireTxn(r.Session, t)
	return nil
}

func (r *Request) continueTxn(st *sessionState) error {
	if r.txnNumber != st.txnNumber || st.phase == retryableWrite {
		return srverr.New(srverr.NoSuchTransaction, "Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", r.txnNumber, st.txnNumber)
	}
	if st.txn != nil {
		if err := r.sameAPI("transaction-continuing command", st.txn.api, "transaction's first command"); err != nil {
			return err
		}
	}
	switch {
	case st.phase == txnAborted:
		return srverr.New(srverr.NoSuchTransaction, "Transaction %d has been aborted.", r.txnNumber)
	case st.phase == txnCommitted && r.Cmd.Name != "commitTransaction":
		return srverr.New(srverr.TransactionCommitted, "Transaction %d has been committed.", r.txnNumber)
	}
	r.Txn = st.txn
	return nil
}

// systemCollection refuses system collections in a transaction.
func (r *Request) systemCollection() error {
	name, ok := r.Arg().StringBytes()
	if !r.InTxn() || !ok || !bytes.HasPrefix(name, []byte("system.")) {
		return nil
	}
	switch r.Cmd.Name {
	case "insert", "update", "delete", "findAndModify", "bulkWrite":
		return srverr.New(50791, "Cannot write to system collection %s.%s within a transaction.", r.DB, name)
	}
	if string(name) == "system.views" {
		return srverr.New(51071, "Cannot query system.views within a transaction")
	}
	return nil
}

// spoilTxn makes sure that the transaction is aborted when the command ends, because a write in it has failed. It reports
// whether there is a transaction: the command must stop then, ordered or not.
func (r *Request) spoilTxn() bool {
	if r.InTxn() {
		r.spoilt = true
	}
	return r.spoilt
}

// failTxn aborts the transaction after an error of a command in it.
func (r *Request) failTxn() {
	if r.InTxn() && r.checkedOut {
		r.Session.abort()
	}
}

// expireTxn aborts the transaction when it has been open for too long (transactionLifetimeLimitSeconds).
func (n *Node) expireTxn(s *Session, t *Txn) {
	limit := time.Duration(n.intParameter("transactionLifetimeLimitSeconds")) * time.Second
	t.expiry = time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.state.txn == t {
			s.abort()
		}
	})
}

// abortAllTxns aborts every open transaction of the data set, as a step-down does.
func (d *Data) abortAllTxns() {
	for _, s := range d.sessions.all(func(SessionID) bool { return true }) {
		s.mu.Lock()
		s.abort()
		s.mu.Unlock()
	}
}

// String returns the id as the server's messages show it.
func (id SessionID) String() string {
	return uuidString(id.ID) + " - " + base64String(id.UID[:])
}
