package session

import (
	"slices"
	"testing"
	"time"

	"allium/bson"
)

// The server forgets ended sessions when it next looks through its sessions, every five minutes,
// and those that nobody has used for half an hour.
func TestEndedSessionsGo(t *testing.T) {
	c := NewCatalog()
	start := time.Unix(1_000_000, 0)
	clock, ended, kept, observer := NewID(), NewID(), NewID(), NewID()
	use := func(id ID, at time.Duration) []*Session {
		t.Helper()
		_, gone, err := c.Use(id, start.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		return gone
	}
	known := func() (ids []ID) {
		for _, s := range c.All(func(ID) bool { return true }) {
			ids = append(ids, s.ID)
		}
		return ids
	}
	use(clock, 0)
	use(ended, time.Minute)
	use(kept, time.Minute)
	c.End([]ID{ended, kept, NewID()}, start.Add(2*time.Minute))
	use(kept, 3*time.Minute) // it is needed after all
	if gone := use(observer, 4*time.Minute); len(gone) != 0 || !slices.Contains(known(), ended) {
		t.Errorf("%d sessions have gone before the server looked", len(gone))
	}
	gone := use(observer, 7*time.Minute)
	if len(gone) != 1 || gone[0].ID != ended || slices.Contains(known(), ended) || !slices.Contains(known(), kept) {
		t.Errorf("%d sessions have gone after an end, want the one", len(gone))
	}
	// It ended after the server had to look, though nobody came by before.
	c.End([]ID{kept}, start.Add(11*time.Minute))
	if gone := use(observer, 12*time.Minute); len(gone) != 0 {
		t.Errorf("%d sessions have gone too early", len(gone))
	}
	if gone := use(observer, 16*time.Minute); len(gone) != 1 || gone[0].ID != kept {
		t.Errorf("%d sessions have gone, want the second", len(gone))
	}
	if gone := use(observer, 41*time.Minute); len(gone) != 1 || gone[0].ID != clock {
		t.Errorf("%d sessions have expired, want the first", len(gone))
	}
}

// A session that ends takes its open transaction with it.
func TestEndedTransactionAborts(t *testing.T) {
	c := NewCatalog()
	start := time.Unix(1_000_000, 0)
	id := NewID()
	s, _, _ := c.Use(id, start)
	writes := &storeTxn{}
	s.State = State{Phase: TxnInProgress, Txn: &Txn{Store: writes}}
	c.End([]ID{id}, start)
	if _, gone, _ := c.Use(NewID(), start.Add(6*time.Minute)); len(gone) != 1 || !writes.aborted || s.State.Phase != TxnAborted {
		t.Errorf("%d sessions have gone, aborted %v, phase %v", len(gone), writes.aborted, s.State.Phase)
	}
}

type storeTxn struct{ aborted bool }

func (*storeTxn) Commit() (bson.Timestamp, error) { return bson.Timestamp{}, nil }
func (t *storeTxn) Abort()                        { t.aborted = true }
