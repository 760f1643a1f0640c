package server

import (
	"errors"
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What each mongos knows of where the documents are. A mongos reads the metadata of a collection or
// a database from the config servers when it first needs them, and keeps them: it learns of a
// change by another mongos, or by the balancer, only when a shard refuses a command that comes with
// an outdated version (StaleConfig for a collection, StaleDbVersion for a database). Then it reads
// the metadata anew and sends the command again.
//
// A shard compares with what the statement works on, under the store's lock if it writes: what is
// accepted goes to the shards that the documents belong to.

const (
	// staleRetries is how often in a row a mongos sends a statement again because its table was
	// outdated.
	staleRetries = 10
	// maxTable bounds how many collections a mongos remembers; with more it begins anew.
	maxTable = 10_000
)

// tables are the routing tables of a mongos. Safe for concurrent use.
type tables struct {
	mu    sync.Mutex
	colls map[string]*sharding.Metadata // by namespace; nil: not sharded
	dbs   map[string]*database          // that exist
	stats tableStats
}

// tableStats count what became of the tables (serverStatus: shardingStatistics.catalogCache).
type tableStats struct {
	stale       int64 // answers that said so
	full        int64 // reads of a collection that was not known, or is another one by now
	incremental int64 // reads of a collection of which older chunks were known
}

// coll returns what the mongos knows of a collection, which it reads if it knows nothing.
func (t *tables) coll(s *store.Store, ns string) *sharding.Metadata {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.colls[ns]; ok {
		return m
	}
	return t.readLocked(s, ns)
}

// knows reports whether the mongos has what it needs to know of a collection, or of a database
// without a collection's name: what it has not, the config servers must tell it.
func (t *tables) knows(ns string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !strings.Contains(ns, ".") {
		return t.dbs[ns] != nil
	}
	_, ok := t.colls[ns]
	return ok
}

// readLocked reads the metadata of a collection from the config servers.
func (t *tables) readLocked(s *store.Store, ns string) *sharding.Metadata {
	m := metadataOf(s.Latest(), ns)
	old := t.colls[ns]
	switch {
	case m == nil:
	case old != nil && sharding.Same(old, m):
		t.stats.incremental++
	default:
		t.stats.full++
	}
	if t.colls == nil || len(t.colls) >= maxTable {
		t.colls = map[string]*sharding.Metadata{}
	}
	t.colls[ns] = m
	return m
}

// metadataOf returns the metadata of a collection in a state, nil if it is not sharded.
func metadataOf(st *store.State, ns string) *sharding.Metadata {
	m, _ := st.Sharding(ns).(*sharding.Metadata)
	return m
}

// database returns what the mongos knows of a database, nil if there is none.
func (t *tables) database(d *Data, db string) *database {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.dbs[db]; known != nil {
		return known
	}
	return t.readDatabaseLocked(d, db)
}

func (t *tables) readDatabaseLocked(d *Data, db string) *database {
	now := d.database(db)
	if t.dbs == nil || len(t.dbs) >= maxTable {
		t.dbs = map[string]*database{}
	}
	if t.dbs[db] = now; now == nil {
		delete(t.dbs, db)
	}
	return now
}

// read reads anew what a shard has found to be outdated.
func (t *tables) read(n *Node, e *StaleError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.db != "" {
		t.readDatabaseLocked(n.data, e.db)
	} else {
		t.readLocked(n.Store(), e.ns)
	}
}

// forget drops what the mongos knows of a collection, or of a database and its collections.
func (t *tables) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.colls, name)
	if strings.Contains(name, ".") {
		return
	}
	delete(t.dbs, name)
	for ns := range t.colls {
		if of, _, _ := strings.Cut(ns, "."); of == name {
			delete(t.colls, ns)
		}
	}
}

// clear drops everything.
func (t *tables) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.colls, t.dbs = nil, nil
}

// forgetChanged drops what the mongos knows of what one of its own commands has changed: it reads
// that anew when it next needs it.
func (x *Routing) forgetChanged() {
	if forgets := x.r.Cmd.Mongos.Forgets; forgets != nil {
		for _, name := range forgets(x.r) {
			x.r.Node.tables.forget(name)
		}
	}
}

// StaleError is the refusal of a shard because of a mongos's outdated table. [Request.Write] and
// the steps around a command answer it: nobody else must swallow it, and what has to be undone for
// the statement to run again must be.
type StaleError struct {
	ns, db string // what is outdated: a collection, or a database
	err    *srverr.Error
}

// Error returns the server's text.
func (e *StaleError) Error() string { return e.err.Error() }

// Unwrap returns the error that clients see.
func (e *StaleError) Unwrap() error { return e.err }

// staleError returns the StaleError that err is, or nil.
func staleError(err error) *StaleError {
	if err == nil {
		return nil // before e, which lies on the heap
	}
	var e *StaleError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// IsStale reports whether an error says that a mongos's table is outdated.
func IsStale(err error) bool { return staleError(err) != nil }

// Retarget reads anew what an error that is stale says is outdated; the caller then does the
// statement again. An error is the command's: it is in the middle of a transaction, or has tried
// too often. Every other error comes back as it is.
func (x *Routing) Retarget(err error) error {
	e := staleError(err)
	if e == nil {
		return err
	}
	n := x.r.Node
	n.tables.mu.Lock()
	n.tables.stats.stale++
	n.tables.mu.Unlock()
	if err := x.Reach(n.data.shards); err != nil {
		return err
	}
	n.tables.read(n, e)
	if x.stale++; x.stale > staleRetries || x.r.InTxn() && !x.r.startTxn {
		return e.err
	}
	x.reload, x.passed = e, 0
	return x.r.Check()
}

// reloadTable reads an outdated table once more, just before it is used again; for a write that is
// under the store's lock. So the next try does not meet a migration that was under way, as after
// the wait for its end that a real shard asks for.
func (x *Routing) reloadTable() {
	if x != nil && x.reload != nil {
		x.r.Node.tables.read(x.r.Node, x.reload)
		x.reload = nil
	}
}

// Route is how a mongos sends a statement to the shards of a collection: by its own table, with the
// versions that it has there. On other nodes it has no table, and checks nothing.
type Route struct {
	// Table says which shards have what; nil: the collection is not sharded.
	Table *sharding.Metadata

	via        *Routing // nil: on another node
	ns         string
	sent, want *sharding.Metadata // what the mongos goes by, and the shards
}

// Route finds out how to send a statement to a collection, as it is in the state that the statement
// works on; nil: it is not there. It fails if the mongos and the shards do not mean the same
// collection.
func (r *Request) Route(c *store.Coll, ns string) (x Route, err error) {
	x.Table, x.via, x.ns = sharding.Of(c), r.Routing, ns
	if x.via == nil || c != nil && c.Derived() {
		return x, nil
	}
	x.via.reloadTable()
	if !r.Node.tables.knows(ns) {
		if err := x.via.Reach(r.Node.data.shards); err != nil {
			return x, err
		}
	}
	s := r.Node.Store()
	sent := r.Node.tables.coll(s, ns)
	if sent == x.Table && !r.InTxn() {
		return x, nil // the state is the newest, or the table as old as it
	}
	now := metadataOf(s.Latest(), ns)
	if sent == now {
		return x, nil // the state is an older one, and so is where its documents are
	}
	if !sharding.Same(sent, now) {
		return x, x.refused(sent, now)
	}
	if x.Table == now {
		x.Table = sent
	}
	x.sent, x.want = sent, now
	return x, nil
}

// refused is the error of the first shard that a statement goes to when the mongos and the shards
// do not mean the same collection.
func (x *Route) refused(sent, now *sharding.Metadata) error {
	shard := x.via.FirstShard()
	if sent != nil {
		shard = sent.Chunks[0].Shard
	}
	return x.via.staleConfig(x.ns, shard, sent, now)
}

// staleConfig is the error of a shard that knows other chunks than the mongos, with the versions
// that the shard got and would have wanted.
func (x *Routing) staleConfig(ns string, shard int, sent, now *sharding.Metadata) error {
	if n := x.r.Node.data.parts[shard].primary(); n != nil {
		n.counters.stale.Add(1)
	}
	e := srverr.New(srverr.StaleConfig, "version mismatch detected for %s", ns)
	e.Extra = bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("ns", ns)
		for _, v := range []struct {
			name string
			m    *sharding.Metadata
		}{{"vReceived", sent}, {"vWanted", now}} {
			var version bson.Timestamp // (0, 0): not sharded
			var epoch bson.ObjectID
			if v.m != nil {
				version.T, version.I = v.m.ShardVersion(shard)
				epoch = v.m.Epoch
			}
			d.B = bson.AppendTimestamp(d.B, v.name, version)
			d.B = bson.AppendObjectID(d.B, v.name+"Epoch", epoch)
		}
		d.Str("shardId", ShardName(shard))
	})
	return &StaleError{ns: ns, err: e}
}

// Reach is [Routing.Reach] for shards that the table names: each of them must know the same chunks
// of its own as the mongos does.
func (x Route) Reach(shards ...int) error {
	if x.sent == x.want {
		return x.via.Reach(shards...)
	}
	for _, i := range shards {
		if err := x.via.Reach(i); err != nil {
			return err
		}
		if !x.want.Accepts(x.sent, i) {
			return x.via.staleConfig(x.ns, i, x.sent, x.want)
		}
	}
	return nil
}

// Reacher returns the method Reach as what a plan takes.
func (x Route) Reacher() func(shards ...int) error {
	if x.sent == x.want {
		return x.via.Reach
	}
	return x.Reach
}

// reachPrimary checks that a command gets at the shard of a database's collections that are not
// sharded, by what the mongos knows of the database, and returns the shard.
func (x *Routing) reachPrimary(db string) (shard int, err error) {
	r := x.r
	if db == "config" || db == "admin" {
		return r.Node.data.shards, x.Reach(r.Node.data.shards)
	}
	x.reloadTable()
	if !r.Node.tables.knows(db) {
		if err := x.Reach(r.Node.data.shards); err != nil {
			return 0, err
		}
	}
	sent := r.Node.tables.database(r.Node.data, db)
	if sent != nil {
		shard = sent.primary
	}
	if err := x.Reach(shard); err != nil {
		return shard, err
	}
	if now := r.Node.data.database(db); now != sent && sent != nil {
		if n := r.Node.data.parts[shard].primary(); n != nil {
			n.counters.stale.Add(1)
		}
		e := srverr.New(srverr.StaleDbVersion, "version mismatch for database %s", db)
		e.Extra = bsondoc.Build(func(d *bsondoc.Builder) { d.Str("db", db) })
		return shard, &StaleError{db: db, err: e}
	}
	return shard, nil
}

// staleByFault is the error of a shard whose fail point says that the mongos's table is outdated.
func (x *Routing) staleByFault(code int32) error {
	e := &StaleError{err: x.r.Node.failedCommand(code)}
	if code == srverr.StaleDbVersion {
		e.db = x.r.DB
	} else {
		e.ns = x.r.Namespace()
	}
	return e
}

// InCluster reports whether the node is a mongos, or the process of a shard.
func (n *Node) InCluster() bool { return n.role == Mongos || n.data.whole != nil }

// AppendShardingStatistics appends the section shardingStatistics of serverStatus.
func (n *Node) AppendShardingStatistics(dst []byte) []byte {
	if n.role != Mongos {
		return bson.AppendInt64(dst, "countStaleConfigErrors", n.counters.stale.Load())
	}
	t := &n.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	sharded := 0
	for _, m := range t.colls {
		if m != nil {
			sharded++
		}
	}
	at, dst := bson.BeginDocumentElement(dst, "catalogCache")
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"numDatabaseEntries", int64(len(t.dbs))}, {"numCollectionEntries", int64(sharded)},
		{"countStaleConfigErrors", t.stats.stale},
		{"totalRefreshWaitTimeMicros", 0}, {"numActiveIncrementalRefreshes", 0},
		{"countIncrementalRefreshesStarted", t.stats.incremental},
		{"numActiveFullRefreshes", 0}, {"countFullRefreshesStarted", t.stats.full}, {"countFailedRefreshes", 0},
	} {
		dst = bson.AppendInt64(dst, f.name, f.n)
	}
	return bson.EndDocument(dst, at)
}

// ForgetTables lets a mongos read again what it knows of a collection or database, or of all if the
// name is empty.
func (n *Node) ForgetTables(name string) {
	if name == "" {
		n.tables.clear()
		return
	}
	n.tables.forget(name)
}

// Sharding returns what a mongos knows of where a collection's documents are, nil if it is not
// sharded.
func (n *Node) Sharding(ns string) *sharding.Metadata { return n.tables.coll(n.Store(), ns) }

// ShardVersion returns the version of a collection on a shard, zero if it is not sharded; ok is
// false on a node that is no shard's.
func (n *Node) ShardVersion(ns string) (version bson.Timestamp, ok bool) {
	d := n.data
	if d.whole == nil {
		return version, false
	}
	n.Store()
	if s := metadataOf(d.whole.made().Latest(), ns); s != nil {
		version.T, version.I = s.ShardVersion(d.number)
	}
	return version, true
}
