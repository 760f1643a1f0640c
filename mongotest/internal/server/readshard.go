package server

import (
	"slices"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What a mongos reads: of each shard the state that the member has which it asks.

// toPrimary reports whether the command needs the primaries of shards.
func (x *Routing) toPrimary() bool {
	return x.r.writing || !x.r.optedIn || x.r.InTxn() || x.r.Cmd.Where == OnPrimary
}

// needsPrimary reports whether the command needs the primary of a shard, or of the config servers:
// a mongos reads its tables with a read preference of its own, whatever the command's is. The only
// member of a shard stands for the secondaries that a real one has.
func (x *Routing) needsPrimary(i int) bool {
	table := i == x.r.Node.data.shards && x.r.DB != "config" && x.r.DB != "admin"
	return table || x.toPrimary() || x.r.Node.data.parts[i].set.Size() == 1
}

// member returns the member of a shard that the command goes to, always the same one if it reads;
// nil if there is none at the moment.
func (x *Routing) member(i int) *Node {
	p := x.r.Node.data.parts[i]
	if x.r.writing || p.set == nil {
		return p.primary()
	}
	if x.members == nil {
		if x.members = x.firstMembers[:0]; len(x.r.Node.data.parts) > len(x.firstMembers) {
			x.members = make([]*Node, 0, len(x.r.Node.data.parts))
		}
		x.members = x.members[:len(x.r.Node.data.parts)]
	}
	switch n := x.members[i]; {
	case n != nil:
		return n
	case x.needsPrimary(i):
		x.members[i] = p.primary()
	default:
		if peer := p.set.Select(&x.r.preference); peer != nil {
			x.members[i] = peer.(*Node)
		}
	}
	return x.members[i]
}

// stateOfShards returns what a command of a mongos reads outside of transactions: of each shard
// what the member has that it asks. What the shards decided together is there in any case, so that
// all agree on who has which chunk.
func (x *Routing) stateOfShards(newest *store.State) (*store.State, error) {
	r := x.r
	d, s := r.Node.data, r.Node.Store()
	x.views = nil
	behind := slices.ContainsFunc(d.parts, func(p *Data) bool { return p.set != nil && p.set.Behind() })
	switch {
	case !behind, r.InTxn() && r.rc.level != "majority" && r.rc.level != "snapshot":
		return newest, nil
	case r.InTxn(): // all shards at one time
		at := d.snapshotTime(newest.TS)
		if st, ok := s.At(at); ok {
			return st, nil
		}
		return nil, tooOld(at)
	}
	at := make([]bson.Timestamp, len(d.parts)) // zero: the newest
	views := make([]replica.View, len(d.parts))
	for i, p := range d.parts {
		views[i].Newest = true
		if p.set == nil {
			continue
		}
		if n := x.member(i); n != nil {
			if views[i] = p.set.View(n, r.rc.level); !views[i].Newest {
				at[i] = views[i].At
			}
		}
	}
	st, ok := s.JoinAt(at)
	if !ok {
		return nil, srverr.New(srverr.SnapshotTooOld,
			"A shard's member has a state that is older than the oldest available one.")
	}
	x.views = views
	return st, nil
}

// snapshotTime returns the time of a snapshot of all shards that a majority of each has. The sets
// know of what was written until newest (see show).
func (d *Data) snapshotTime(newest bson.Timestamp) bson.Timestamp {
	for _, p := range d.parts {
		if p.set == nil {
			continue
		}
		if ts, behind := p.set.CommittedIfBehind(); behind {
			if ts = p.made().Unchanged(ts); ts.Compare(newest) < 0 {
				newest = ts
			}
		}
	}
	return newest
}

// Seen returns the time up to which a change stream of a mongos shows events: a majority of every
// shard has them.
func (n *Node) Seen() bson.Timestamp {
	for {
		terms := n.data.terms()
		newest := n.Store().Latest()
		n.data.show(newest)
		at := n.data.snapshotTime(newest.TS)
		if n.data.terms() == terms {
			return at
		}
	}
}

// errStartOver ends a run of a command that reads, and that runs again.
var errStartOver = srverr.New(srverr.InternalError, "the command starts over")

// startOver lets a command run again that reads, because what it has begun to read is not what it
// would choose now.
func (x *Routing) startOver() error {
	x.startsOver = true
	return errStartOver
}

// readable waits until a shard's member has what the read concern asks for.
func (x *Routing) readable(p *Data, n *Node) error {
	r := x.r
	if r.InTxn() || p.set == nil {
		return nil
	}
	after := r.rc.after
	if r.rc.at.Compare(after) > 0 {
		after = r.rc.at
	}
	waits := false
	switch {
	case after.IsZero():
	case x.views != nil: // the member may have caught up since it was chosen what to read
		waits = !x.views[p.number].Has(after)
	case p.set.Behind():
		waits = !p.set.View(n, r.rc.level).Has(after)
	}
	if waits {
		if err := p.set.WaitApplied(r, n, after, r.rc.level == "majority" || r.rc.level == "snapshot"); err != nil {
			return err
		}
		return x.startOver()
	}
	if r.rc.level == "linearizable" && p.set.Behind() {
		_, term := p.set.Lead()
		_, lost, err := p.set.AwaitWrite(r, term, p.set.Newest(),
			&replica.WriteConcern{Mode: "majority", NamedMode: true}, 0)
		if err == nil && lost {
			err = x.startOver()
		}
		return err
	}
	return nil
}

// source is a member of a shard that a mongos has a cursor on.
type source struct {
	shard   int
	node    *Node
	process bson.ObjectID
}

// reading is how and where the command of a cursor reads.
type reading struct {
	level      string
	optedIn    bool
	preference replica.ReadPreference
	sources    []source // of a mongos
}

// sources returns the members that the command has read from.
func (x *Routing) sources() (list []source) {
	if x == nil {
		return nil
	}
	for i, n := range x.members {
		if i == x.r.Node.data.shards && x.r.DB != "config" && x.r.DB != "admin" {
			continue // it only told where the documents are
		}
		if n != nil && x.passed&(1<<i) != 0 {
			list = append(list, source{i, n, n.ProcessID()})
		}
	}
	return list
}

// ReadOn makes a getMore read where its cursor does. On a mongos, the members that the cursor is
// open on have to be there still: a process that ends takes its cursors with it.
func (r *Request) ReadOn(c *Cursor) error {
	r.rc.level, r.optedIn, r.preference = c.reading.level, c.reading.optedIn, c.reading.preference
	for _, s := range c.reading.sources {
		switch {
		case s.node.Stopped():
			return srverr.New(srverr.HostUnreachable,
				"network error while attempting to run command 'getMore' on host '%s' ", s.node.addr)
		case s.node.ProcessID() != s.process:
			return srverr.New(srverr.CursorNotFound, "cursor id %d not found", c.ID)
		}
		r.Routing.member(s.shard)
		r.Routing.members[s.shard] = s.node
	}
	return nil
}

// ReachAll checks that a command gets at every shard.
func (x *Routing) ReachAll() error {
	if x == nil {
		return nil
	}
	for i := range x.r.Node.data.shards {
		if err := x.Reach(i); err != nil {
			return err
		}
	}
	return nil
}

// readPreferenceOf returns a read preference that parseReadPreference has accepted.
func readPreferenceOf(doc bson.Raw) (p replica.ReadPreference) {
	p.Mode, _ = doc.Lookup("mode").StringValue()
	if tags := doc.Lookup("tags"); tags.Type == bson.TypeArray {
		for e := range bson.Raw(tags.Value).Values() {
			set := map[string]string{}
			for k, v := range bson.Raw(e.Value).All() {
				set[string([]byte(k))], _ = v.StringValue()
			}
			p.Tags = append(p.Tags, set)
		}
	}
	n, _ := args.NumberOf(doc.Lookup("maxStalenessSeconds"))
	p.MaxStaleness = time.Duration(n) * time.Second
	return p
}
