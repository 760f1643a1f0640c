package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/clock"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/store"
)

// Data is what the members of one replica set (or one standalone, or all nodes of a sharded
// cluster) have in common: the clock, the logical sessions, and the store with its hooks.
type Data struct {
	Clock   *clock.Clock
	storage storage

	defaults atomic.Pointer[DefaultConcerns]
	// writeBlock is why users may not write: see WriteBlock.
	writeBlock atomic.Pointer[string]
	settings   planner.QuerySettings
	sampler    Sampler
	sessions   *session.Catalog
	accounts   account.Registry
	cluster    cluster
	ttl        ttlMonitor
	set        *replica.Set // nil for a standalone

	mu         sync.Mutex
	fsyncLocks atomic.Int64        // of a cluster: fsync with lock through its mongoses
	parameters map[string]bson.Raw // that were set with setClusterParameter
	committed  []func(bson.Timestamp)
	compatible string // the feature compatibility version that was set; empty: that of the servers
	shards     int
	born       bson.Timestamp // when the shards were added
	parts      []*Data        // of a cluster: those of its shards, then that of its config servers
	whole      *Data          // of such a part: the cluster's
	number     int            // of such a part
	nodes      []*Node        // the members of a shard, or the mongoses of a cluster
	// dropPending is the database whose drop could not be replicated as its client wanted; empty:
	// none.
	dropPending string
}

// NewData returns an empty data set.
func NewData() *Data {
	d := &Data{Clock: &clock.Clock{}, sessions: session.NewCatalog()}
	return d
}

// Close ends what runs in the background for the data set.
func (d *Data) Close() {
	d.ttl.stop()
	d.cluster.balancer.stop()
	d.cluster.deleter.stop()
	d.sessions.AbortAll()
	for _, part := range slices.Concat(d.parts, []*Data{d}) {
		if s := part.storage.s; s != nil {
			s.Close()
		}
	}
}

// SetShards says how many shards the cluster has. Adding them is its first write: from then on
// replies tell the time.
func (d *Data) SetShards(n int) {
	d.shards, d.born = n, d.Clock.Tick()
	for i := range n + 1 {
		p := &Data{Clock: d.Clock, number: i, sessions: session.NewCatalog(), whole: d}
		d.parts = append(d.parts, p)
	}
}

// QuerySettings are those of the whole deployment.
func (d *Data) QuerySettings() *planner.QuerySettings {
	if d.whole != nil {
		d = d.whole
	}
	return &d.settings
}

// Shards returns how many shards the cluster has.
func (d *Data) Shards() int { return d.shards }

// Shard returns the data set of a shard, or with the number of shards that of the config servers.
func (d *Data) Shard(i int) *Data { return d.parts[i] }

// OnCommit registers a function that is called when the majority commit point moves. It must not
// block.
func (d *Data) OnCommit(f func(bson.Timestamp)) {
	d.mu.Lock()
	d.committed = append(d.committed, f)
	d.mu.Unlock()
}

// NotifyCommit tells everybody who watches that the majority commit point has moved.
func (d *Data) NotifyCommit(ts bson.Timestamp) {
	d.mu.Lock()
	list := d.committed
	d.mu.Unlock()
	for _, f := range list {
		f(ts)
	}
}

// Wrote tells the replica set that a write at ts is visible now. The store calls it after every
// write, outside of its locks.
func (d *Data) Wrote(ts bson.Timestamp) {
	if d.set != nil {
		d.set.Wrote(ts)
	}
	for _, p := range d.parts {
		if p.set != nil {
			if ts := p.made().Latest().TS; ts.Compare(p.set.Newest()) > 0 {
				p.set.Wrote(ts)
			}
		}
	}
}

// show tells the replica sets of what is in a state that somebody is about to read: see
// replica.Set.Show.
func (d *Data) show(st *store.State) {
	if d.set != nil {
		d.set.Show(st.TS)
	}
	for i, p := range d.parts {
		if p.set != nil {
			p.set.Show(st.ShardTime(i))
		}
	}
}

// terms returns a number that changes when a replica set elects a primary, and so may undo writes.
func (d *Data) terms() int64 {
	n := int64(0)
	if d.set != nil {
		n = d.set.Terms()
	}
	for _, p := range d.parts {
		if p.set != nil {
			n += p.set.Terms()
		}
	}
	return n
}

// KeepSince returns the oldest time that a member or the commit point is at: versions that were
// current then must be kept. ok is false while everybody is at the newest write, so that nothing
// needs to be kept for replication.
func (d *Data) KeepSince() (ts bson.Timestamp, ok bool) {
	if d.set == nil {
		return bson.Timestamp{}, false
	}
	return d.set.KeepSince()
}

// Committed returns the majority commit point, zero on a standalone.
func (d *Data) Committed() bson.Timestamp {
	if d.set == nil {
		return bson.Timestamp{}
	}
	return d.set.Committed()
}

// Accounts returns the users and roles.
func (d *Data) Accounts() *account.Registry { return &d.accounts }

// Sessions returns the logical sessions.
func (d *Data) Sessions() *session.Catalog { return d.sessions }

// Compatibility returns the feature compatibility version that was set, empty if none was.
func (d *Data) Compatibility() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compatible
}

// SetCompatibility sets the feature compatibility version. It is shown; what the servers have stays
// that of their version.
func (d *Data) SetCompatibility(series string) {
	d.mu.Lock()
	d.compatible = series
	d.mu.Unlock()
}

// AddUser adds or replaces a user.
func (d *Data) AddUser(u *account.User) { d.accounts.Add(u) }

// Now returns the wall clock as the deployment sees it.
func (d *Data) Now() time.Time { return d.Clock.Now() }

// Tick returns the timestamp for a new write.
func (d *Data) Tick() bson.Timestamp { return d.Clock.Tick() }

// AbortTransactions aborts every open transaction, a shard also those that mongoses have brought to
// it.
func (d *Data) AbortTransactions() {
	d.sessions.AbortAll()
	if d.whole != nil {
		d.made().AbortTransactions()
	}
}

// Dropping reports whether an attempt to drop the database is unfinished, and notes whether it is
// from now on.
func (d *Data) Dropping(db string, unfinished bool) (before bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before = d.dropPending == db
	switch {
	case unfinished:
		d.dropPending = db
	case before:
		d.dropPending = ""
	}
	return before
}

// Born returns when the cluster was made.
func (d *Data) Born() bson.Timestamp { return d.born }

// newest returns the time of the newest write.
func (d *Data) newest() bson.Timestamp {
	if d.set == nil {
		return d.Clock.Last()
	}
	return d.set.Newest()
}
