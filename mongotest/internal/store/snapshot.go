package store

import "allium/bson"

// Snapshot is the content of a store, without its past: of a group, that of each of its stores. It
// never changes, and any number of stores can be restored from it at the same time.
type Snapshot struct {
	parts []tree[string, *Coll]
	TS    bson.Timestamp // of its newest write
}

// Snapshot returns the content of a state. It takes no time, whatever there is.
func (st *State) Snapshot() Snapshot {
	s := Snapshot{TS: st.TS}
	if st.group == nil {
		s.parts = append(s.parts, st.colls)
	}
	for _, shard := range st.shards {
		s.parts = append(s.parts, shard.colls)
	}
	return s
}

// Stores returns how many stores the snapshot is of: one, or those of a group.
func (s *Snapshot) Stores() int { return len(s.parts) }

// Restore makes the content of a snapshot what there is, in time that does not depend on the number
// of documents. Nothing of it goes to the change log, and no rollback undoes a part of it. The
// snapshot must be one of as many stores.
func (tx *Tx) Restore(s Snapshot) {
	tx.Together()
	if tx.sub == nil {
		tx.restore(s.parts[0])
	}
	for i := range tx.sub {
		tx.sub[i].restore(s.parts[i])
	}
}

func (tx *Tx) restore(colls tree[string, *Coll]) {
	for it := tx.colls.first(); it.valid(); it.next() {
		if now, _ := colls.get(it.key()); now != it.value() {
			tx.freed += it.value().bytes
		}
	}
	tx.tick()
	tx.colls, tx.dirty = colls, true
}
