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
	Shards   []int // of a cluster: those that it wrote to
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

// RollBack forgets what retryable writes did after the one time and before the other: the new
// primary never had them, and a retry must do them again. It does not touch the sessions, which
// commands may have checked out for long.
func (c *Catalog) RollBack(after, before bson.Timestamp) {
	c.mu.Lock()
	c.undone = append(c.undone, span{after, before})
	c.mu.Unlock()
}

// Undone reports whether a write at this time has been rolled back.
func (c *Catalog) Undone(ts bson.Timestamp) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.undone {
		if ts.Compare(u.after) > 0 && ts.Compare(u.before) < 0 {
			return true
		}
	}
	return false
}

// span is the time between two others.
type span struct{ after, before bson.Timestamp }

// String returns the id as the server's messages show it.
func (id ID) String() string {
	return bsondoc.UUIDString(id.ID) + " - " + bsondoc.Base64String(id.UID[:])
}
