// Package store keeps a deployment's data in memory: collections, their documents and indexes, the
// history of all that, multi-document transactions and the change log.
//
// The whole content is one State, built of persistent trees: it never changes, a write makes a new
// one and publishes it. Readers take a State (Latest, or At a time) and use it for as long as they
// like, without locks. Writers take turns:
//
//	err := s.Write(func(tx *store.Tx) error { ... tx.Insert(c, doc) ... })
//
// A Txn is a multi-document transaction: it reads and writes a State of its own, and Commit does
// its writes once more on top of the newest one. What it has written is locked for everybody else
// until then.
package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Options says how a store is used.
type Options struct {
	// Tick returns the timestamp of a new write; each is greater than the one before. nil: writes
	// are not timed, there is no history and no change log (a standalone).
	Tick func() bson.Timestamp
	// Now is the wall clock.
	Now func() time.Time
	// KeepSince returns the time from which on states must be kept because somebody still reads
	// there; ok is false if nobody does.
	KeepSince func() (ts bson.Timestamp, ok bool)
	// Window returns how long states are kept that nobody needs for sure, as far as they are not
	// large. nil: five minutes.
	Window func() time.Duration
}

const initialEditing = 1

// edits numbers the writes of all stores: trees that two of them share, as after Tx.Restore, have
// nodes of both, and a write may change its own alone.
var edits atomic.Uint64

func init() { edits.Store(initialEditing) }

// Store is safe for concurrent use.
type Store struct {
	opts    Options
	latest  atomic.Pointer[State]
	changed atomic.Pointer[chan struct{}]

	mu      *sync.Mutex // all stores of a group have one
	history []past      // oldest first, the latest one included; empty without Tick
	pins    []pin       // the one read longest ago first
	edit    uint64
	tx      Tx // that Write uses again and again
	intents map[intent]*Txn
	locks   map[string][]*Txn // open transactions by the namespaces they use
	logSize int

	// What the past costs: see history.go.
	freed    int64       // by all writes
	returned int64       // of that, when the runtime was asked to give memory back
	quiet    uint64      // edit, when the timer looked last
	timer    *time.Timer // nil: nothing to be done later
	closed   bool

	floor bson.Timestamp // of the newest write that no rollback may undo

	group *Store // that it is part of, nil if it stands alone
	shard int    // its number there

	// Of a group.
	shards []*Store
	place  func(ns string) int
	fresh  []*Entry // of the shards' change logs, not in the group's yet
	batch  bool     // several shards write at once
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{opts: o, mu: new(sync.Mutex), edit: initialEditing, intents: map[intent]*Txn{},
		locks: map[string][]*Txn{}}
	first := &State{}
	s.latest.Store(first)
	if o.Tick != nil {
		s.history = []past{{wall: o.Now().UnixMilli()}}
	}
	return s
}

// Latest returns the newest state.
func (s *Store) Latest() *State { return s.latest.Load() }

// At returns the state as of a time, and false if the history does not reach back that far.
func (s *Store) At(ts bson.Timestamp) (*State, bool) {
	st := s.latest.Load()
	if s.opts.Tick == nil || st.TS.Compare(ts) <= 0 {
		return st, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards != nil {
		return s.joinAt(func(shard *Store) *State { return shard.stateOf(ts) })
	}
	old := s.stateOf(ts)
	return old, old != nil
}

// Changed returns a channel that is closed when the next state is published, or when Wake is
// called.
func (s *Store) Changed() <-chan struct{} {
	for {
		if p := s.changed.Load(); p != nil {
			return *p
		}
		ch := make(chan struct{})
		if s.changed.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// Wake wakes everybody who waits for Changed: something else than the data changed that they look
// at.
func (s *Store) Wake() {
	if p := s.changed.Swap(nil); p != nil {
		close(*p)
	}
}

// Write runs fn with the right to write. What it did is published when it returns nil and forgotten
// when it returns an error, or when the command ends whose steps it counts (see Tx.Count). fn must
// not wait for anything.
func (s *Store) Write(fn func(tx *Tx) error) (err error) {
	defer work.Catch(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards != nil {
		return s.writeGroup(fn)
	}
	st := s.latest.Load()
	s.edit = edits.Add(1)
	tx := &s.tx
	defer func() { *tx = Tx{} }() // it must not keep what it saw
	*tx = Tx{s: s, edit: s.edit, colls: st.colls, ts: st.TS}
	tx.keys, tx.log = tx.firstKeys[:0], tx.firstLog[:0]
	if err := fn(tx); err != nil {
		return err
	}
	s.publish(st, tx)
	return nil
}

// publish makes what the writer did the newest state.
func (s *Store) publish(old *State, tx *Tx) {
	if !tx.dirty {
		return
	}
	st := &State{TS: tx.ts, colls: tx.colls, log: old.log}
	if s.opts.Tick != nil {
		st.log = s.addToLog(st.log, tx.log)
		first := tx.ts
		if len(tx.log) > 0 {
			first = tx.log[0].TS
		}
		s.remember(st, first, tx.freed)
	} else if s.freed += tx.freed; s.freed-s.returned > giveBack {
		s.arm(settled)
	}
	s.latest.Store(st)
	s.Wake()
	if g := s.group; g != nil {
		for _, e := range tx.log {
			if e.shard = uint16(s.shard); e.flags&quiet == 0 {
				g.fresh = append(g.fresh, e)
			}
		}
		if !g.batch {
			g.refresh()
		}
	}
}

// Rollback forgets all writes after ts, as a member does that had them and is not primary any more,
// but none that is older than one which no rollback may undo (see Tx.Together). It returns the time
// after which, and the time up to which, writes have gone. Open transactions are aborted, but not
// prepared ones.
func (s *Store) Rollback(ts bson.Timestamp) (after, last bson.Timestamp, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.floor.Compare(ts) > 0 {
		ts = s.floor
	}
	after, last = ts, s.latest.Load().TS
	i := s.stateAt(ts)
	if i < 0 {
		return after, last, srverr.New(srverr.UnrecoverableRollbackError,
			"the history does not reach back to the point to roll back to")
	}
	for _, list := range s.locks {
		for _, t := range append([]*Txn(nil), list...) {
			if t.whole == nil || !t.whole.prepared {
				t.stop()
			}
		}
	}
	s.pins = slices.DeleteFunc(s.pins, func(p pin) bool { return p.ts.Compare(ts) > 0 })
	if i == len(s.history)-1 {
		return after, last, nil
	}
	s.history = slices.Clone(s.history[:i+1])
	st := s.history[i].state()
	st.log, s.logSize = prefix(s.latest.Load().log, st.TS), 0
	for _, e := range st.log {
		s.logSize += e.size()
	}
	s.freed = s.history[i].freed
	s.latest.Store(st)
	s.Wake()
	if s.group != nil {
		s.group.forget(s.shard, ts)
	}
	return after, last, nil
}

// Unchanged returns the last time at which the store was as it was at ts: just before the first
// change of its next write, and the end of time if nothing was written since.
func (s *Store) Unchanged(ts bson.Timestamp) bson.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	const end = 1<<32 - 1
	i := s.stateAt(ts) + 1
	if i == len(s.history) {
		return bson.Timestamp{T: end, I: end}
	}
	next := s.history[i].first
	if next.I > 0 {
		return bson.Timestamp{T: next.T, I: next.I - 1}
	}
	return bson.Timestamp{T: next.T - 1, I: end}
}

// Note adds an entry to the change log that changes no data, and so moves the newest timestamp on.
func (s *Store) Note() bson.Timestamp {
	var ts bson.Timestamp
	s.Write(func(tx *Tx) error {
		if tx.sub != nil {
			tx = &tx.sub[len(tx.sub)-1]
		}
		ts = tx.tick()
		tx.dirty = true
		return nil
	})
	return ts
}
