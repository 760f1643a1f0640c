package server

import (
	"errors"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// storage is the part of Data that holds the documents.
type storage struct {
	once sync.Once
	s    *store.Store
}

// store returns the data set's store, which is made when it is first needed.
func (n *Node) store() *store.Store {
	d := n.data
	d.storage.once.Do(func() {
		o := store.Options{Now: d.Clock.Now}
		if n.role != Standalone {
			o.Tick = d.Clock.Tick
		}
		d.storage.s = store.New(o)
	})
	return d.storage.s
}

// snapshot returns what the command reads.
func (r *Request) snapshot() (*store.State, error) {
	return r.Node.store().Latest(), nil
}

// write runs fn with the right to write: in the command's transaction if it is in one. If a transaction is in the way of
// what fn writes (it returns the store's Blocked error, and is undone), write waits and runs it again.
func (r *Request) write(fn func(tx *store.Tx) error) error {
	for {
		err := r.writeOnce(fn)
		var blocked *store.Blocked
		if !errors.As(err, &blocked) {
			return err
		}
		if _, err := r.Wait(blocked.Done, 0); err != nil {
			return err
		}
	}
}

func (r *Request) writeOnce(fn func(tx *store.Tx) error) error {
	s := r.Node.store()
	var ts bson.Timestamp
	err := s.Write(func(tx *store.Tx) error {
		err := fn(tx)
		ts = tx.TS()
		return err
	})
	if err == nil && !ts.IsZero() {
		r.wrote(ts)
	}
	return err
}

// wrote tells the replica set and the client's connection about a write.
func (r *Request) wrote(ts bson.Timestamp) {
	if r.Node.set != nil {
		r.Node.set.Wrote(ts)
	}
	r.Wrote(ts)
}

// queryOptions returns what filters, projections and sorts are parsed with.
func (r *Request) queryOptions(coll *query.Collation) *query.Options {
	return &query.Options{Collation: coll, Version: r.Node.cfg.Version.number()}
}

// number returns the version as major*100+minor.
func (v Version) number() int { return v.Major*100 + v.Minor }
