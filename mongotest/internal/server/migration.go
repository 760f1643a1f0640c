package server

import (
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Migrations of chunks, and what they leave behind.

// orphans are documents that a shard has no more, though it still stores them.
type orphans struct {
	ns    string
	uuid  [16]byte
	shard int
	in    func(doc bson.Raw) bool
	due   time.Time // when the range deleter takes them
}

// rangeDeleter removes the orphans of a cluster some time after the migration, as
// orphanCleanupDelaySecs says. Safe for concurrent use.
type rangeDeleter struct {
	mu    sync.Mutex
	list  []orphans
	timer *time.Timer
	ended bool
}

// Migrate brings the documents of a chunk to another shard. The old one keeps its copies, which
// nobody sees through a mongos any more, until the range deleter takes them; with wait it loses
// them at once.
func (d *Data) Migrate(tx *store.Tx, c *store.Coll, s *sharding.Metadata, chunk, to int,
	wait bool) (*sharding.Metadata, error) {
	from, in := s.Chunks[chunk].Shard, s.Range(chunk)
	if err := tx.Move(c, from, to, in); err != nil {
		return nil, err
	}
	next := s.Move(chunk, to)
	if wait {
		return next, tx.Clean(tx.SetSharding(c, next, next.Paths(), nil), from, in)
	}
	delay := 900 * time.Second
	if n := d.parts[from].first(); n != nil {
		delay = time.Duration(n.IntParameter("orphanCleanupDelaySecs")) * time.Second
	}
	d.leave(orphans{ns: c.NS, uuid: c.UUID, shard: from, in: in, due: d.Clock.Now().Add(delay)}, delay)
	return next, nil
}

// leave tells the range deleter of orphans.
func (d *Data) leave(o orphans, delay time.Duration) {
	x := &d.cluster.deleter
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.list = append(x.list, o)
	if x.timer == nil {
		x.timer = time.AfterFunc(delay, d.deleteOrphans)
	}
}

// snapshot returns what is left to delete.
func (x *rangeDeleter) snapshot() []orphans {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// restoreOrphans gives the range deleter what was left to it at another moment, in place of what is
// now. Some may be due.
func (d *Data) restoreOrphans(list []orphans) {
	x := &d.cluster.deleter
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.list = slices.Clone(list)
	d.armDeleter(d.Clock.Now())
}

// armDeleter starts the timer of the range deleter for the first of its list. The caller has the
// mutex.
func (d *Data) armDeleter(now time.Time) {
	x := &d.cluster.deleter
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	if len(x.list) > 0 && !x.ended {
		x.timer = time.AfterFunc(x.list[0].due.Sub(now), d.deleteOrphans)
	}
}

// deleteOrphans removes the orphans whose time has come.
func (d *Data) deleteOrphans() {
	x, now := &d.cluster.deleter, d.Clock.Now()
	x.mu.Lock()
	var due []orphans
	x.list = slices.DeleteFunc(x.list, func(o orphans) bool {
		if o.due.After(now) {
			return false
		}
		due = append(due, o)
		return true
	})
	d.armDeleter(now)
	x.mu.Unlock()
	for _, o := range due {
		_ = d.storage.s.Write(func(tx *store.Tx) error {
			tx.Count(work.New(x.check))
			if c := tx.Coll(o.ns); c != nil && c.UUID == o.uuid {
				return tx.Clean(c, o.shard, o.in)
			}
			return nil
		})
	}
}

// check returns the error that ends a run of the range deleter.
func (x *rangeDeleter) check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return errEnded
	}
	return nil
}

// stop ends the range deleter.
func (x *rangeDeleter) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended, x.list = true, nil
	if x.timer != nil {
		x.timer.Stop()
	}
}
