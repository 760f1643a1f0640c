package server

import (
	"errors"
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// TestPassesEnd ends what runs in the background or over all documents of a collection: it looks
// for its end after a bounded number of steps.
func TestPassesEnd(t *testing.T) {
	const many = 3000
	s := store.New(store.Options{})
	err := s.Write(func(tx *store.Tx) error {
		c, err := tx.Create("t.c", store.Settings{}, store.IDIndex(nil, nil))
		for i := range many {
			if err == nil {
				c, err = tx.Insert(c, raw(t, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: i}, {Key: "at", Value: bson.NewDateTime(time.Unix(0, 0))}}))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	chunks := sharding.New(raw(t, bson.D{{Key: "x", Value: 1}}), false, true, 0, 2, 0)
	ended := errors.New("ended")
	for name, fn := range map[string]func(tx *store.Tx, c *store.Coll, m *work.Meter) error{
		"expired documents": func(tx *store.Tx, c *store.Coll, m *work.Meter) error {
			if _, n := (expiry{path: "at"}).run(tx, c, time.Now(), 0, m); n != many {
				t.Errorf("%d expired documents are deleted", n)
			}
			return errors.New("undo")
		},
		"documents without a shard key": func(_ *store.Tx, c *store.Coll, m *work.Meter) error { return chunks.CheckDocuments(c, m) },
		"the middle of a chunk": func(_ *store.Tx, c *store.Coll, m *work.Meter) error {
			if chunks.Median(c, 0, m) == nil {
				t.Error("there is none")
			}
			return nil
		},
	} {
		for _, end := range []error{ended, nil} {
			looks := 0
			err := s.Write(func(tx *store.Tx) error {
				return fn(tx, tx.Coll("t.c"), work.New(func() error { looks++; return end }))
			})
			if end != nil && (err != end || looks != 1) || end == nil && looks < 2 {
				t.Errorf("%s: %v after %d looks", name, err, looks)
			}
		}
	}
	monitor, bal, deleter := &ttlMonitor{}, &balancer{}, &rangeDeleter{}
	for name, x := range map[string]struct {
		check func() error
		stop  func()
	}{
		"TTL monitor":   {func() (err error) { defer work.Catch(&err); monitor.meter().Do(work.Interval); return nil }, monitor.stop},
		"balancer":      {bal.check, bal.stop},
		"range deleter": {deleter.check, deleter.stop},
	} {
		before := x.check()
		if x.stop(); before != nil || x.check() != errEnded {
			t.Errorf("%s: %v before its end, %v after it", name, before, x.check())
		}
	}
}
