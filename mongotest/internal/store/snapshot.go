package store

import "allium/bson"

// Snapshot is the content of a store that stands alone, without its past. It never changes, and any
// number of stores can be restored from it at the same time.
type Snapshot struct {
	colls tree[string, *Coll]
	TS    bson.Timestamp // of its newest write
}

// Snapshot returns the content of a state. It takes no time, whatever there is.
func (st *State) Snapshot() Snapshot { return Snapshot{st.colls, st.TS} }

// Restore makes the content of a snapshot what there is, in time that does not depend on the number
// of documents. Nothing of it goes to the change log. A group has no snapshots.
func (tx *Tx) Restore(s Snapshot) {
	for it := tx.colls.first(); it.valid(); it.next() {
		if now, _ := s.colls.get(it.key()); now != it.value() {
			tx.freed += it.value().bytes
		}
	}
	tx.tick()
	tx.colls, tx.dirty = s.colls, true
}
