package session

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// StoreTxn is the store's side of a multi-document transaction.
type StoreTxn interface {
	// Commit makes the writes visible, all at once, and returns their time: zero if there were
	// none.
	Commit() (bson.Timestamp, error)
	// Abort forgets the writes.
	Abort()
}

// Txn is a multi-document transaction (specification: transactions). It is used by one command at a
// time.
type Txn struct {
	Number int64
	Store  StoreTxn
	// ReadTime is the time of the snapshot that the transaction reads; zero: the newest when its
	// first command began.
	ReadTime bson.Timestamp
	// Level is the read concern's level; empty: none was given.
	Level string

	Session  *Session
	Api      string // the Stable API's parameters of its first command
	Started  time.Time
	CommitTS bson.Timestamp
	Expiry   *time.Timer
}

// End lets go of the transaction's resources.
func (t *Txn) End(commit bool) {
	if t.Expiry != nil {
		t.Expiry.Stop()
	}
	if !commit && t.Store != nil {
		t.Store.Abort()
	}
	t.Store = nil
}

// RollBack forgets what retryable writes did after a time: the new primary never had them, and a
// retry must do them again.
func (s *Session) RollBack(to bson.Timestamp) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for id, stmt := range s.State.Stmts {
		if stmt.TS.Compare(to) > 0 {
			delete(s.State.Stmts, id)
		}
	}
}

// String returns the id as the server's messages show it.
func (id ID) String() string {
	return bsondoc.UUIDString(id.ID) + " - " + bsondoc.Base64String(id.UID[:])
}
