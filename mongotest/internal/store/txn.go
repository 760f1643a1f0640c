package store

import (
	"sync/atomic"

	"allium/bson"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// intent is something that a transaction has written and nobody else may write until it ends: a
// record, or a key of a unique index (the index's name, a NUL, the key).
type intent struct {
	coll [16]byte
	key  string
}

// Txn is a multi-document transaction with snapshot isolation. It must be ended with Commit or
// Abort. It is not safe for concurrent use, except that Done may be waited for.
type Txn struct {
	s       *Store
	base    *State
	state   *State
	log     []*Entry
	intents []intent
	locked  map[string]bool
	done    chan struct{}
	ended   bool // guarded by s.mu

	parts    []*Txn        // of a group's: one in each shard
	touched  atomic.Uint64 // a bit for each shard that the transaction has been to
	prepared bool          // no shard may abort it any more
	whole    *Txn          // of such a part: the group's
}

// Begin starts a transaction that reads the given state.
func (s *Store) Begin(at *State) *Txn {
	if s.shards != nil {
		return s.beginTxn(at)
	}
	return &Txn{s: s, base: at, state: at, locked: map[string]bool{}, done: make(chan struct{})}
}

// State returns what the transaction sees.
func (t *Txn) State() *State { return t.state }

// Use must be called before a collection is read: it then cannot be dropped or changed until the
// transaction ends.
func (t *Txn) Use(ns string) error {
	if t.locked[ns] {
		return nil
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.use(ns)
}

func (t *Txn) use(ns string) error {
	if t.parts != nil {
		return t.useParts(ns)
	}
	if t.locked[ns] {
		return nil
	}
	old, now := t.base.Coll(ns), t.s.latest.Load().Coll(ns)
	if now != nil && now.Since.Compare(t.base.TS) > 0 || old != nil && now == nil {
		return CatalogChanged()
	}
	t.lock(ns)
	return nil
}

// CatalogChanged is the error of reading a snapshot of a collection that has come, gone or changed
// since.
func CatalogChanged() error {
	return srverr.New(
		srverr.SnapshotUnavailable, "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation.")
}

func (t *Txn) lock(ns string) {
	if !t.locked[ns] && !t.ended {
		t.locked[ns] = true
		t.s.locks[ns] = append(t.s.locks[ns], t)
	}
}

// Write runs fn with the right to write in the transaction. If fn fails, what it wrote is undone.
func (t *Txn) Write(fn func(tx *Tx) error) (err error) {
	defer work.Catch(&err)
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return srverr.New(srverr.NoSuchTransaction, "the transaction has ended")
	}
	if t.parts != nil {
		return t.writeParts(fn)
	}
	s.edit = edits.Add(1)
	tx := Tx{s: s, txn: t, edit: s.edit, colls: t.state.colls, ts: t.base.TS}
	if err := fn(&tx); err != nil {
		return err
	}
	t.state = &State{TS: t.base.TS, colls: tx.colls}
	t.log = append(t.log, tx.log...)
	return nil
}

// Commit publishes what the transaction wrote. lsid and number name it in the change log. It
// returns the time of the commit, zero if nothing was written.
func (t *Txn) Commit(lsid bson.Raw, number int64) (bson.Timestamp, error) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return bson.Timestamp{}, srverr.New(srverr.NoSuchTransaction, "the transaction has ended")
	}
	if t.parts != nil {
		return t.commitParts(lsid, number)
	}
	t.end()
	if len(t.log) == 0 {
		return bson.Timestamp{}, nil
	}
	st := s.latest.Load()
	s.edit = edits.Add(1)
	tx := Tx{s: s, edit: s.edit, colls: st.colls, ts: st.TS, dirty: true}
	tx.tick()
	for i, e := range t.log {
		if err := tx.replay(e); err != nil {
			return bson.Timestamp{}, err
		}
		tx.log = append(tx.log, e.committed(tx.ts, tx.wall, lsid, number, i))
	}
	s.publish(st, &tx)
	return tx.ts, nil
}

// replay does a transaction's write on top of the newest state.
func (tx *Tx) replay(e *Entry) error {
	c, more := tx.Coll(e.NS()), e.detail()
	if e.Op == OpCreate {
		if c != nil {
			return errWriteConflict()
		}
		if g := tx.s.group; g != nil && more.info.Sharding == nil && g.place(e.NS()) != tx.s.shard {
			return errWriteConflict() // the database has gone to another shard
		}
		more.info.Since = tx.ts
		c = newColl(more.info, tx.edit, more.idx...)
		tx.colls.set(tx.edit, e.NS(), c)
		return nil
	}
	if c == nil || c.UUID != e.UUID() {
		return errWriteConflict()
	}
	switch e.Op {
	case OpInsert:
		doc := e.After()
		keys, marks, multikey, err := tx.newKeys(c, more.rid, nil, doc)
		if err != nil {
			return err
		}
		c = tx.writable(c)
		c.recs.set(tx.edit, more.rid, e.after)
		c.bytes += int64(len(doc))
		tx.addKeys(c, doc, keys, marks, multikey)
	case OpUpdate, OpReplace:
		_, err := tx.put(c, more.rid, e.before.raw(), e.After())
		return err
	case OpDelete:
		tx.take(c, more.rid, e.before.raw())
	case OpCreateIndexes:
		for _, x := range more.idx {
			ix, err := tx.build(c, x)
			if err != nil {
				return err
			}
			c = tx.writable(c)
			c.idx = append(c.idx, ix)
		}
	}
	return nil
}

// Abort forgets the transaction.
func (t *Txn) Abort() {
	t.s.mu.Lock()
	t.stop()
	t.s.mu.Unlock()
}

// stop ends the transaction, or the group's that it is a part of.
func (t *Txn) stop() {
	switch {
	case t.whole != nil:
		t.whole.endParts()
	case t.parts != nil:
		t.endParts()
	default:
		t.end()
	}
}

// end gives everything free that the transaction holds.
func (t *Txn) end() {
	if t.ended {
		return
	}
	t.release()
	close(t.done)
}

// release does so without telling anybody.
func (t *Txn) release() {
	t.ended = true
	for _, i := range t.intents {
		delete(t.s.intents, i)
	}
	for ns := range t.locked {
		list := t.s.locks[ns]
		for i := range list {
			if list[i] == t {
				list = append(list[:i:i], list[i+1:]...)
				break
			}
		}
		if len(list) == 0 {
			delete(t.s.locks, ns)
		} else {
			t.s.locks[ns] = list
		}
	}
}

// use notes that the writer's transaction uses a collection, whose documents it changes.
func (tx *Tx) use(ns string) error {
	if err := tx.allowed(ns); err != nil {
		return err
	}
	if tx.txn == nil || tx.txn.whole != nil && tx.txn.locked[ns] {
		return nil
	}
	return tx.txn.use(ns)
}

// change checks that nobody else uses a collection that is to be created, dropped or changed.
func (tx *Tx) change(ns string) error {
	if err := tx.allowed(ns); err != nil {
		return err
	}
	for _, t := range tx.s.locks[ns] {
		if t == tx.txn {
			continue
		}
		if tx.txn != nil {
			return errWriteConflict()
		}
		return &Blocked{t.done}
	}
	return nil
}

// alone reports whether there is no transaction that locks could matter to.
func (tx *Tx) alone() bool { return len(tx.s.intents) == 0 && tx.txn == nil }

// lockRecord checks that the writer may change a record, and locks it for its transaction.
func (tx *Tx) lockRecord(c *Coll, rid string) error {
	if tx.alone() {
		return nil
	}
	return tx.hold(intent{c.UUID, rid}, func(now *Coll) bool {
		old, _ := tx.txn.base.Coll(c.NS).recs.get(rid)
		cur, _ := now.recs.get(rid)
		return old == cur && old.p != nil
	}, c)
}

// lockKey does the same for a key that is to be added to a unique index, or for a record id with
// index "".
func (tx *Tx) lockKey(c *Coll, uuid [16]byte, index, key string) error {
	if tx.alone() {
		return nil
	}
	return tx.hold(intent{uuid, index + "\x00" + key}, func(now *Coll) bool {
		if index == "" {
			_, exists := now.recs.get(key)
			return !exists
		}
		ix := now.Index(index)
		if ix == nil {
			return true
		}
		// Free for us if we have deleted the document that has it.
		rid, exists := ix.get(key)
		return !exists || tx.s.intents[intent{uuid, rid}] == tx.txn
	}, c)
}

// hold locks something for the writer's transaction. free tells whether it is still as in the
// transaction's snapshot.
func (tx *Tx) hold(i intent, free func(now *Coll) bool, c *Coll) error {
	owner := tx.s.intents[i]
	switch {
	case tx.txn == nil && owner == nil:
		return nil
	case tx.txn == nil:
		return &Blocked{owner.done}
	case owner == tx.txn:
		return nil
	case owner != nil:
		return errWriteConflict()
	}
	// A collection that the transaction has made is nobody else's, also if another one of that name
	// has been made since: then the commit fails.
	if tx.txn.base.Coll(c.NS) != nil {
		if now := tx.s.latest.Load().Coll(c.NS); now == nil || now.UUID != c.UUID || !free(now) {
			return errWriteConflict()
		}
	}
	tx.s.intents[i] = tx.txn
	tx.txn.intents = append(tx.txn.intents, i)
	return nil
}
