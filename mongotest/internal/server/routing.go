package server

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
)

// Routing is how a mongos takes a command to the shards, and what it learns of it there. A command
// of another node has none; the methods that such a command may call do nothing for nil.
type Routing struct {
	r *Request

	routed      *routedTxn  // what the mongos knows of the transaction
	shards      []int       // the shards that the command goes to, if they are known
	ShardCounts map[int]int // what a count found on each shard
	found       finding     // how a command of a transaction failed
	raw         bool        // the reply shows that of the shard

	stale  int         // how often a shard has refused the command because of an outdated table
	reload *StaleError // the newest such error, until the table is read anew

	// See Reach.
	passed         uint64 // a bit for each shard that it has got at
	awaited        *Data  // the shard that it waits for, or for the primary of
	awaitedPrimary bool
	pause          time.Duration // the time that a shard lets it wait
	paused         bson.Raw      // the fail point that did so
	lost           map[int]error // the shards that it does not get at any more

	written      []shardWrite // its newest write on each shard
	firstWritten [2]shardWrite
	wroteLast    int                // the first of the shards that it wrote to last
	homes        []*session.Session // its session, as the shards know it; nil: they were not asked
	firstHomes   [4]*session.Session
	homesUsed    uint64  // a bit for each shard that knows of its use
	members      []*Node // of the shards, where the command reads; nil: not chosen yet
	firstMembers [4]*Node
	// views are where reads of the shards' members see the data, as it was chosen; nil: all see the
	// newest.
	views      []replica.View
	startsOver bool // it runs again: see startOver
	undone     bool // a shard has rolled back what the command wrote: it runs again
}

// reset makes it the routing of a command that has not begun.
func (x *Routing) reset(r *Request) {
	if x != nil {
		*x = Routing{r: r}
	}
}

// redo prepares the command for another run: its writes were rolled back, or it starts over.
func (x *Routing) redo() {
	r := x.r
	r.checkIn()
	r.wrote, r.NoWrite, r.AtTime = false, false, bson.Timestamp{}
	x.shards, x.written, x.homes, x.homesUsed, x.members, x.views = nil, nil, nil, 0, nil, nil
	clear(x.firstMembers[:])
	if x.undone {
		x.passed, x.lost = 0, nil
	}
	x.undone, x.startsOver = false, false
}

// run runs the command until no shard refuses it because of an outdated table.
func (x *Routing) run(dst []byte) (out []byte, err error) {
	start := len(dst)
	for {
		out, err := x.runOnce(dst[:start])
		if !IsStale(err) {
			x.forgetChanged()
			return out, err
		}
		if err := x.Retarget(err); err != nil {
			return dst[:start], err
		}
		x.shards, x.ShardCounts, x.found, x.raw, x.r.IntegerOK = nil, nil, byShard, false, false
	}
}

func (x *Routing) runOnce(dst []byte) (out []byte, err error) {
	r := x.r
	if err := x.reachCatalog(); err != nil {
		return dst, err
	}
	if dst, done, err := x.missingDatabase(dst); done {
		return dst, err
	}
	start, run := len(dst), r.Cmd.Mongos.Run
	if run == nil {
		run = r.Cmd.Run
	}
	dst, err = run(r, dst)
	switch {
	case err == nil:
		return x.reshape(dst, start), nil
	case r.Cmd.Mongos.ShowsShards && !IsStale(err):
		err = x.shardError(err)
	}
	return dst, err
}

// Targeted notes which shards the command goes to, the first of which may be the one that knows a
// transaction's outcome.
func (x *Routing) Targeted(shards []int) {
	if x != nil && len(shards) > 0 {
		x.shards = shards
	}
}

// FirstShard returns the shard that the command went to. Unless it is known better, that is where
// its collection is, or the primary shard of its database; on other nodes 0.
func (x *Routing) FirstShard() int {
	switch {
	case x == nil:
		return 0
	case len(x.shards) > 0:
		return x.shards[0]
	}
	if c := x.r.Node.Store().Latest().Coll(x.r.Namespace()); c != nil && !c.Sharded() && !c.Derived() {
		return c.Shard()
	}
	i, _ := x.r.Node.data.PrimaryShard(x.r.DB)
	return i
}

// Reached returns the shards that the command went to.
func (x *Routing) Reached() []int {
	if len(x.shards) > 0 {
		return x.shards
	}
	return []int{x.FirstShard()}
}

// LastShard returns the shard that the command's last write went to, on other nodes 0.
func (x *Routing) LastShard() int {
	if x == nil {
		return 0
	}
	return x.wroteLast
}
