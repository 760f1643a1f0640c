package server

import (
	"strings"
	"time"

	"allium/mongotest/internal/args"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// How a mongos gets at the shards. Each shard is a replica set with a process of its own: what goes
// wrong there, a mongos notices when a command needs the shard.

const (
	// shardTimeout is how long a mongos looks for a shard's primary
	// (defaultFindReplicaSetHostTimeoutMS).
	shardTimeout = 15 * time.Second
	// shardRetries is how often a mongos sends a read or a retryable write to a shard again.
	shardRetries = 3
)

// ServeShard makes a node a member of a shard, or with the number of shards of the config servers,
// and returns that as a replica set.
func (d *Data) ServeShard(i int, n *Node, cfg replica.MemberConfig) *replica.Set {
	p := d.parts[i]
	p.nodes = append(p.nodes, n)
	if p.set == nil {
		NewSet(d.partName(i), p)
	}
	n.JoinSet(p.set, cfg)
	return p.set
}

// partName returns the name of a part's replica set.
func (d *Data) partName(i int) string {
	if i == d.shards {
		return "config"
	}
	return ShardName(i)
}

// first returns the first member of a shard, nil if it has no process.
func (d *Data) first() *Node {
	if len(d.nodes) == 0 {
		return nil
	}
	return d.nodes[0]
}

// HasPrimary reports whether a shard takes writes. It never waits.
func (d *Data) HasPrimary() bool { return d.primary() != nil || d.set == nil }

// primary returns the primary of a shard, nil if it has none.
func (d *Data) primary() *Node {
	if d.set == nil {
		return d.first()
	}
	n, _ := d.set.Lead()
	if n == nil {
		return nil
	}
	return n.(*Node)
}

// connString returns the address of a shard as the cluster's metadata has it: name/host,host.
func (d *Data) connString() string {
	s := d.whole.partName(d.number)
	for i, n := range d.nodes {
		if s += ","; i == 0 {
			s = s[:len(s)-1] + "/"
		}
		s += n.addr
	}
	return s
}

// Reach checks that the command gets at some shards. While a shard has no primary, a command that
// may wait does so; in the middle of a write, the error is the store's Blocked one, and
// [Request.Write] waits. Every other error is final.
func (x *Routing) Reach(shards ...int) error {
	if x == nil {
		return nil
	}
	for _, i := range shards {
		for {
			err := x.tryShard(i)
			if err == nil {
				break
			}
			if x.r.writing || !IsBlocked(err) {
				return err
			}
			waited := x.awaited != nil
			if err := x.settle(); err != nil {
				return err
			}
			if waited && x.lost[i] == nil && !x.r.InTxn() && x.written == nil && !x.r.Cmd.Continues {
				return x.startOver() // another primary may have undone what was read
			}
		}
	}
	return nil
}

// ReachSome returns those of some shards that the command gets at, and why it does not get at the
// others. Blocked errors are as of Reach.
func (x Route) ReachSome(shards []int) (some []int, lost, err error) {
	for _, i := range shards {
		switch err := x.Reach(i); {
		case err == nil:
			some = append(some, i)
		case IsBlocked(err) || IsStale(err) || x.via.r.InTxn():
			return nil, nil, err
		default:
			lost = err
		}
	}
	return some, lost, nil
}

// tryShard checks one shard. What a Blocked error waits for, settle knows.
func (x *Routing) tryShard(i int) error {
	p := x.r.Node.data.parts[i]
	n := x.member(i)
	switch {
	case p.set == nil:
		return nil
	case x.lost[i] != nil:
		return x.lost[i]
	case n == nil:
		x.awaited, x.awaitedPrimary = p, x.needsPrimary(i)
		return &store.Blocked{Done: closedChan}
	case x.passed&(1<<i) == 0 && n.faults.Active():
		if err := x.shardFault(n); err != nil {
			return err
		}
	}
	if !x.r.writing {
		if err := x.readable(p, n); err != nil {
			return err
		}
	}
	x.passed |= 1 << i
	if x.r.Txn != nil {
		if t, _ := x.r.txn(); t != nil {
			t.Touch(i)
		}
	}
	return nil
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// settle waits for what the last Blocked error of Reach was about.
func (x *Routing) settle() error {
	if x == nil {
		return nil
	}
	p, pause := x.awaited, x.pause
	x.awaited, x.pause = nil, 0
	if pause > 0 {
		_, err := x.r.Wait(nil, pause)
		return err
	}
	if p == nil {
		return nil
	}
	pref := &replica.ReadPreference{}
	if !x.awaitedPrimary {
		pref = &x.r.preference
	}
	ok, err := p.set.AwaitMember(x.r, pref, shardTimeout)
	if err != nil || ok {
		return err
	}
	if x.lost == nil {
		x.lost = map[int]error{}
	}
	x.lost[p.number] = srverr.New(srverr.FailedToSatisfyReadPreference,
		"Could not find host matching read preference %s for set %s", pref, p.set.Name())
	return nil
}

// shardFault lets failCommand on a shard have its way with what a mongos sends there.
func (x *Routing) shardFault(n *Node) error {
	r := x.r
	for tries := 0; ; tries++ {
		data, ok := n.fire("failCommand", r.failCommandMatches)
		if !ok {
			return nil
		}
		if x.paused == nil && data.Lookup("blockConnection").AsBool() {
			ms, _ := args.NumberOf(data.Lookup("blockTimeMS"))
			x.pause, x.paused = time.Duration(ms)*time.Millisecond, data
			return &store.Blocked{Done: closedChan}
		}
		x.paused = nil
		code, fails := data.Lookup("errorCode").AsInt64()
		if fails && (code == int64(srverr.StaleConfig) || code == int64(srverr.StaleDbVersion)) {
			return x.staleByFault(int32(code))
		}
		var e *srverr.Error
		switch {
		case data.Lookup("closeConnection").AsBool():
			e = srverr.New(srverr.HostUnreachable, "network error while attempting to run command '%s' on host '%s' ",
				r.Cmd.Name, n.addr)
		case fails:
			e = n.failedCommand(int32(code))
		default:
			return nil
		}
		again := r.Cmd.Where != OnPrimary || r.IsRetryable()
		if again && !r.InTxn() && tries < shardRetries && (retriableCodes[e.Code] || networkCodes[e.Code]) {
			continue
		}
		if r.IsRetryable() && (retriableCodes[e.Code] || networkCodes[e.Code]) {
			e.Labels = append(e.Labels, "RetryableWriteError")
		}
		return e
	}
}

// reachCatalog checks that a command about a collection as a whole gets at the shards that have it.
func (x *Routing) reachCatalog() error {
	r := x.r
	if r.Cmd.Mongos.Catalog == nil {
		return nil
	}
	d := r.Node.data
	ns := r.Cmd.Mongos.Catalog(r)
	db, _, _ := strings.Cut(ns, ".")
	if _, err := x.reachPrimary(db); err != nil {
		return err
	}
	home := d.Place(ns)
	var shards []int
	if c := r.Node.Store().Latest().Coll(ns); c != nil {
		for i := range d.shards {
			if i != home && c.Part(i) != nil {
				shards = append(shards, i)
			}
		}
	}
	return x.Reach(shards...)
}

// movedAlone is Node.MovedAlone of a collection as the command sees it, which in a transaction may
// be older than how it is now.
func (x Route) movedAlone(c *store.Coll) bool {
	n := x.via.r.Node
	if !n.MovedAlone(c) {
		return false
	}
	now := n.Store().Latest().Coll(x.ns)
	return now != nil && now.UUID == c.UUID && now.Shard() == c.Shard() && n.MovedAlone(now)
}

// ReachUnsharded checks that a command gets at the shard of a collection that is not sharded. It
// does nothing if the route has a table.
func (x Route) ReachUnsharded(c *store.Coll) error {
	if x.via == nil || x.Table != nil || c != nil && c.Derived() {
		return nil
	}
	if c != nil && x.movedAlone(c) {
		return x.via.Reach(c.Shard()) // the shard that its database is on has no part in it
	}
	db, _, _ := strings.Cut(x.ns, ".")
	shard, err := x.via.reachPrimary(db)
	if err != nil || c == nil || c.Shard() == shard {
		return err
	}
	return x.via.Reach(c.Shard()) // elsewhere if somebody has made it there past the mongoses
}

// prepareCommit is what comes before the commit of a transaction on a mongos: the shards that it
// wrote to must be there, and if they are several, they prepare it: from then on no failover aborts
// it, and it is committed on all of them (two-phase commit). The first one is the coordinator.
func (x *Routing) prepareCommit() error {
	if x == nil {
		return nil
	}
	t, err := x.r.txn()
	if err != nil || t == nil {
		return err
	}
	shards := t.Participants()
	x.r.Txn.Shards = shards
	if err := x.Reach(shards...); err != nil || len(shards) < 2 {
		return err
	}
	if err := t.Prepare(); err != nil {
		return err
	}
	if n := x.r.Node.data.parts[shards[0]].primary(); n != nil {
		const point = "hangBeforeWritingDecision"
		_, on := n.fire(point, nil)
		for on {
			var changed <-chan struct{}
			if on, changed = n.faults.Standing(point); !on {
				break
			}
			if _, err := x.r.Wait(changed, 0); err != nil {
				break // the coordinator goes on, whatever becomes of who asked
			}
		}
	}
	return nil
}
