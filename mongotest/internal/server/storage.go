package server

import (
	"errors"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// storage is the part of Data that holds the documents.
type storage struct {
	once sync.Once
	s    *store.Store
}

// Store returns the data set's store, which is made when it is first needed.
func (n *Node) Store() *store.Store {
	d := n.data
	if d.whole != nil {
		return d.made()
	}
	d.storage.once.Do(func() {
		if len(d.parts) > 0 {
			d.makeGroup()
			return
		}
		o := store.Options{Now: d.Clock.Now, KeepSince: d.KeepSince, Window: n.historyWindow}
		if n.role != Standalone {
			o.Tick = d.Clock.Tick
		}
		d.storage.s = store.New(o)
		d.ttl.data = d
		expire := func() {
			d.ttl.pass()
			d.storage.s.Settle()
		}
		d.Clock.Shifted.Store(&expire)
		d.OnCommit(func(bson.Timestamp) { d.storage.s.Wake() })
	})
	return d.storage.s
}

// made returns the store, nil if nothing has needed it yet; a shard's is made by that.
func (d *Data) made() *store.Store {
	if d.whole != nil {
		d.whole.storage.once.Do(d.whole.makeGroup)
	}
	return d.storage.s
}

// makeGroup makes the stores of a cluster: one for each shard and one for the config servers.
func (d *Data) makeGroup() {
	var shards []*store.Store
	for _, p := range d.parts {
		p.storage.s = store.New(store.Options{Now: d.Clock.Now, Tick: d.Clock.Tick, KeepSince: p.KeepSince})
		p.OnCommit(func(bson.Timestamp) { p.storage.s.Wake() })
		shards = append(shards, p.storage.s)
	}
	d.storage.s = store.NewGroup(store.Options{Now: d.Clock.Now, Tick: d.Clock.Tick}, shards, d.Place)
	d.ttl.data = d
	expire := func() {
		d.ttl.pass()
		d.deleteOrphans()
		for _, s := range append(shards, d.storage.s) {
			s.Settle()
		}
	}
	d.Clock.Shifted.Store(&expire)
}

// RollBack undoes every write after the one time and before the other: a new primary never had
// them. Writes made during the election are undone, too.
func (d *Data) RollBack(after, before bson.Timestamp) {
	if s := d.made(); s != nil {
		from, last, err := s.Rollback(after)
		if err == nil {
			after = from
		}
		if last.Compare(before) >= 0 {
			before = bson.Timestamp{T: last.T, I: last.I + 1}
		}
	}
	d.sessions.RollBack(after, before)
}

// storeSide begins the store's side of the transaction whose first command is r.
func (r *Request) storeSide() session.StoreTxn {
	t := &storeTxn{data: r.Node.data, session: r.Session, number: r.TxnNumber}
	st, err := r.stateToRead()
	if t.err = err; err == nil {
		t.t = r.Node.Store().Begin(st)
	}
	return t
}

// storeTxn connects a session's transaction with the store's.
type storeTxn struct {
	data    *Data
	session *session.Session
	number  int64
	t       *store.Txn
	err     error // why there is none
}

func (t *storeTxn) Commit() (bson.Timestamp, error) {
	if t.err != nil {
		return bson.Timestamp{}, t.err
	}
	at, lsid := bson.BeginDocument(nil)
	lsid = bson.AppendBinary(lsid, "id", bson.BinaryUUID, t.session.ID.ID[:])
	lsid = bson.AppendBinary(lsid, "uid", bson.BinaryGeneric, t.session.ID.UID[:])
	ts, err := t.t.Commit(bson.EndDocument(lsid, at), t.number)
	if err == nil && !ts.IsZero() {
		t.data.Wrote(ts)
	}
	return ts, err
}

func (t *storeTxn) Abort() {
	if t.t != nil {
		t.t.Abort()
	}
}

// txn returns the store's side of the transaction that the command runs in, nil if it runs in none.
func (r *Request) txn() (*store.Txn, error) {
	if r.Txn == nil {
		return nil, nil
	}
	t, ok := r.Txn.Store.(*storeTxn)
	if !ok {
		return nil, srverr.New(srverr.NoSuchTransaction, "Transaction %d has been aborted.", r.Txn.Number)
	}
	return t.t, t.err
}

// stateToRead returns what a command outside of transactions reads, by its read concern and the
// node's position.
//
// A write is visible a moment before its replica set knows of it. So the set hears of what is about
// to be read, and then says how far its members are; if a new primary was elected meanwhile, what
// was about to be read may be gone.
func (r *Request) stateToRead() (*store.State, error) {
	d := r.Node.data
	for {
		terms := d.terms()
		newest := r.Node.Store().Latest()
		d.show(newest)
		st, err := r.stateUpTo(newest)
		if d.terms() == terms {
			return st, err
		}
	}
}

// stateUpTo returns what stateToRead does, and nothing that is newer than the given state.
func (r *Request) stateUpTo(newest *store.State) (*store.State, error) {
	n, at := r.Node, r.rc.at
	if r.Txn != nil && !r.Txn.ReadTime.IsZero() {
		at = r.Txn.ReadTime
	}
	switch {
	case r.rc.level == "snapshot" && !r.InTxn():
		return r.snapshotToRead(newest, at)
	case !at.IsZero():
	case r.Routing != nil:
		return r.Routing.stateOfShards(newest)
	case n.set == nil || !n.set.Behind():
		return newest, nil
	default:
		v := n.set.View(n, r.rc.level)
		if v.Newest {
			return newest, nil
		}
		at = v.At
	}
	st, ok := n.Store().At(at)
	if !ok {
		return nil, tooOld(at)
	}
	return st, nil
}

// snapshotToRead returns what a command with read concern snapshot reads outside of transactions:
// the state at the time that the client names, or at one that is chosen now (specification:
// snapshot sessions). That time can be read again for as long as the server's
// minSnapshotHistoryWindowInSeconds.
func (r *Request) snapshotToRead(newest *store.State, at bson.Timestamp) (*store.State, error) {
	n := r.Node
	switch {
	case !r.AtTime.IsZero():
		at = r.AtTime // chosen before
	case !at.IsZero():
	case r.Routing != nil:
		at = n.data.snapshotTime(newest.TS)
	case n.set != nil && n.set.Behind():
		at = n.set.View(n, "snapshot").At
	default:
		at = newest.TS
	}
	if at.IsZero() { // nothing was written yet
		at = n.Store().Note()
		n.data.Wrote(at)
	}
	st, ok := n.Store().Pin(at, n.historyWindow())
	if !ok {
		return nil, tooOld(at)
	}
	r.AtTime = at
	return st, nil
}

// historyWindow returns how long the states of the past can be read.
func (n *Node) historyWindow() time.Duration {
	return time.Duration(n.IntParameter("minSnapshotHistoryWindowInSeconds")) * time.Second
}

func tooOld(at bson.Timestamp) error {
	return srverr.New(srverr.SnapshotTooOld,
		"Read timestamp Timestamp(%d, %d) is older than the oldest available timestamp.", at.T, at.I)
}

// AppendAtTime appends atClusterTime, if the command reads a snapshot outside of transactions.
func (r *Request) AppendAtTime(dst []byte) []byte {
	if r.AtTime.IsZero() {
		return dst
	}
	return bson.AppendTimestamp(dst, "atClusterTime", r.AtTime)
}

// Snapshot returns what the command reads. In a transaction the namespaces it reads are noted.
func (r *Request) Snapshot(namespaces ...string) (*store.State, error) {
	st, err := r.storedSnapshot(namespaces)
	if err != nil {
		return nil, err
	}
	for _, ns := range namespaces {
		c := st.Coll(ns)
		if err := r.checkExpected(st, ns); err != nil {
			return nil, err
		}
		x, err := r.Route(c, ns)
		if err == nil {
			err = x.ReachUnsharded(c)
		}
		if err != nil {
			return nil, err
		}
		st = r.showAuth(r.ShowBuckets(st, ns), ns)
	}
	return st, nil
}

func (r *Request) storedSnapshot(namespaces []string) (*store.State, error) {
	t, err := r.txn()
	if err != nil {
		return nil, err
	}
	if t == nil {
		st, err := r.stateToRead()
		if err == nil && !r.AtTime.IsZero() && !r.Version().AtLeast(7, 0) {
			err = r.sameCatalog(st, namespaces)
		}
		return st, err
	}
	for _, ns := range namespaces {
		if err := t.Use(ns); err != nil {
			return nil, err
		}
	}
	return t.State(), nil
}

// sameCatalog refuses to read a snapshot in which a collection was not what it is now, as servers
// do that keep no history of the catalog.
func (r *Request) sameCatalog(st *store.State, namespaces []string) error {
	for _, ns := range namespaces {
		old, now := st.Coll(ns), r.Node.Store().Latest().Coll(ns)
		if now != nil && now.Since.Compare(st.TS) > 0 || old != nil && now == nil {
			return store.CatalogChanged()
		}
	}
	return nil
}

// Write runs fn with the right to write: in the command's transaction if it is in one. If a
// transaction is in the way of what fn writes (it returns the store's Blocked error, and is
// undone), Write waits and runs it again.
func (r *Request) Write(fn func(tx *store.Tx) error) error {
	t, err := r.txn()
	if err != nil {
		return err
	}
	counted := func(tx *store.Tx) error {
		tx.Count(r.Meter())
		tx.Guard(r.guard())
		r.Routing.reloadTable()
		before := tx.KeyCounts()
		err := fn(tx)
		r.keys = r.keys.Plus(tx.KeyCounts().Minus(before))
		return err
	}
	for {
		r.writing = true
		if t != nil {
			err = t.Write(counted)
		} else {
			err = r.writeOnce(counted)
		}
		r.writing = false
		if err == nil {
			if r.Routing != nil {
				r.Routing.stale = 0
			}
			return nil
		}
		if stale := staleError(err); stale != nil {
			if err := r.Routing.Retarget(stale); err != nil {
				return err
			}
			continue
		}
		var blocked *store.Blocked
		if !errors.As(err, &blocked) {
			return err
		}
		if _, err := r.Wait(blocked.Done, 0); err != nil {
			return err
		}
		if err := r.Routing.settle(); err != nil {
			return err
		}
	}
}

func (r *Request) writeOnce(fn func(tx *store.Tx) error) error {
	var ts bson.Timestamp
	wrote := false
	err := r.Node.Store().Write(func(tx *store.Tx) error {
		err := fn(tx)
		if ts, wrote = tx.TS(), tx.Dirty(); err == nil && wrote {
			err = r.failTransactionalWrite()
		}
		if err == nil && wrote && r.Routing != nil {
			r.Routing.wrote(tx)
		}
		return err
	})
	if err == nil && wrote && !ts.IsZero() {
		r.Node.data.Wrote(ts)
		r.Wrote(ts)
	}
	return err
}

// queryOptions returns what filters, projections and sorts are parsed with.
func (r *Request) queryOptions(coll *query.Collation) query.Options {
	return query.Options{Collation: coll, Version: r.Version()}
}

// ParseIndex checks what can be checked of an index's specification by itself. alone says that it
// is not in a list of several.
func (r *Request) ParseIndex(doc bson.Raw, alone bool) (*index.Spec, error) {
	lax := r.Body.Lookup("ignoreUnknownIndexOptions").AsBool()
	return index.Parse(r.Version(), doc, alone, lax, r.Meter())
}

// FinishIndex makes the index's definition for a collection.
func (r *Request) FinishIndex(s *index.Spec, c *store.Coll) (*store.IndexInfo, error) {
	return s.Define(r.Version(), c)
}

// IsBlocked returns the error that makes a write wait for a transaction, if it is one.
func IsBlocked(err error) bool {
	if err == nil {
		return false
	}
	var b *store.Blocked
	return errors.As(err, &b)
}
