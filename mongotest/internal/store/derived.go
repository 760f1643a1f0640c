package store

import (
	"strings"
	"sync/atomic"

	"allium/bson"
)

// NewDerived returns a collection that shows documents which are not stored like this: they are
// made for one reader.
func NewDerived(ns string, uuid [16]byte, set Settings, docs []bson.Raw) *Coll {
	db, name, _ := strings.Cut(ns, ".")
	const edit = 1
	c := newColl(&Info{NS: ns, DB: db, Name: name, UUID: uuid, Settings: set, lastRecord: new(atomic.Uint64),
		derived: true}, edit)
	for _, doc := range docs {
		c.recs.set(edit, c.newRecord(doc.Lookup("_id")), refer(doc))
		c.bytes += int64(len(doc))
	}
	return c
}

// Derived reports whether NewDerived made the collection.
func (c *Coll) Derived() bool { return c.derived }

// With returns the state with a derived collection, which takes the place of a stored one.
func (st *State) With(c *Coll) *State {
	out := *st
	out.shown = map[string]*Coll{c.NS: c}
	for ns, other := range st.shown {
		if ns != c.NS {
			out.shown[ns] = other
		}
	}
	return &out
}
