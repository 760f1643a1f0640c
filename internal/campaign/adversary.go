package campaign

import (
	"context"
	"slices"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// adversary does the plan's steps, each at its time, and undoes each after its length.
type adversary struct {
	w       *world
	busy    map[*mongotest.Node]int // steps that have a node in their hands
	pending []undo
}

type undo struct {
	due  time.Time
	what func()
}

// run returns when the plan's steps are done and undone.
func (a *adversary) run() {
	for _, s := range a.w.plan.Steps {
		a.until(a.w.start.Add(s.At))
		a.w.log("adversary: %v", s)
		a.w.mu.Lock()
		a.w.stats.Faults[s.Kind]++
		a.w.mu.Unlock()
		a.do(s)
	}
	a.until(a.w.start.Add(a.w.plan.Length))
	for len(a.pending) > 0 {
		a.until(a.pending[0].due)
	}
	a.heal()
}

// until waits for a time and undoes meanwhile what is due.
func (a *adversary) until(t time.Time) {
	for {
		next := -1
		for i, u := range a.pending {
			if !u.due.After(t) && (next < 0 || u.due.Before(a.pending[next].due)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		u := a.pending[next]
		a.pending = append(a.pending[:next:next], a.pending[next+1:]...)
		time.Sleep(time.Until(u.due))
		u.what()
	}
	time.Sleep(time.Until(t))
}

// after undoes something when the step is over.
func (a *adversary) after(s Step, what func()) {
	a.pending = append(a.pending, undo{time.Now().Add(s.For), what})
}

// members is what a step is about: the members of a replica set or of a shard, or the mongoses.
type members interface {
	Nodes() []*mongotest.Node
	Primary() *mongotest.Node
	Secondaries() []*mongotest.Node
}

// members returns what a step is about. On clusters the steps that are for replica sets hit a
// shard.
func (a *adversary) members(s Step) members {
	if shards := a.w.d.Shards(); len(shards) > 0 && slices.Contains(replicas, s.Kind) {
		return shards[s.Client%len(shards)]
	}
	return a.w.d
}

// node returns the node that a step is about: N after the primary, or after the first.
func (a *adversary) node(s Step) *mongotest.Node {
	set := a.members(s)
	nodes := set.Nodes()
	first := 0
	if p := set.Primary(); p != nil {
		for i, n := range nodes {
			if n == p {
				first = i
			}
		}
	}
	return nodes[(first+s.Node)%len(nodes)]
}

// take reserves a node for a step that has to be undone before another such one; it reports false
// if the node is taken.
func (a *adversary) take(n *mongotest.Node) bool {
	if n == nil || a.busy[n] > 0 {
		return false
	}
	a.busy[n]++
	return true
}

func (a *adversary) down(s Step, n *mongotest.Node, do, undo func()) {
	if !a.take(n) {
		return
	}
	a.w.log("adversary: %s %s, the primary is %s", s.Kind, n.Addr(), a.primary(s))
	do()
	a.after(s, func() {
		undo()
		a.busy[n]--
		a.w.log("adversary: end of %s %s, the primary is %s", s.Kind, n.Addr(), a.primary(s))
	})
}

// primary returns the address of the primary, for the trace.
func (a *adversary) primary(s Step) string {
	if p := a.members(s).Primary(); p != nil {
		return p.Addr()
	}
	return "nobody"
}

func (a *adversary) do(s Step) {
	d, set := a.w.d, a.members(s)
	n := a.node(s)
	kill := func(n *mongotest.Node) { a.down(s, n, n.Kill, func() { a.must(n.Restart()) }) }
	hang := func(n *mongotest.Node) { a.down(s, n, n.Hang, n.Resume) }
	net := func(f mongotest.NetFaults) {
		a.down(s, n, func() { n.SetNetFaults(f) }, func() { n.SetNetFaults(a.link()) })
	}
	switch s.Kind {
	case "stepDown":
		if p := set.Primary(); p != nil {
			period := time.Minute
			if a.w.plan.Real {
				period = time.Second // who has stepped down cannot be elected, and a history is short
			}
			p.StepDown(period)
		}
	case "stepUp":
		_ = n.StepUp() // the others may not vote for it
	case "kill":
		kill(n)
	case "killPrimary":
		if p := set.Primary(); p != nil {
			kill(p)
		}
	case "hang":
		hang(n)
	case "hangPrimary":
		if p := set.Primary(); p != nil {
			hang(p)
		}
	case "partition":
		a.down(s, n, n.Partition, n.Heal)
	case "partitionPrimary":
		if p := set.Primary(); p != nil {
			a.down(s, p, p.Partition, p.Heal)
		}
	case "lag":
		n.SetLag(s.For)
		a.after(s, func() { n.SetLag(a.w.plan.Lag) })
	case "holdBack":
		if n != set.Primary() {
			a.down(s, n, n.HoldBack, n.CatchUp)
		}
	case "rollBack":
		a.rollBack(s)
	case "closeConnections":
		n.CloseConnections()
	case "refuse":
		a.down(s, n, n.RefuseConnections, func() { a.must(n.AcceptConnections()) })
	case "reset":
		net(mongotest.NetFaults{Reset: true})
	case "cut":
		net(mongotest.NetFaults{CutAfter: s.N, Times: 1 + s.Node})
	case "drop":
		net(mongotest.NetFaults{DropAfter: s.N, Times: 1 + s.Node})
	case "garbage":
		net(mongotest.NetFaults{Garbage: s.N, Times: 1})
	case "slow":
		net(mongotest.NetFaults{Latency: s.For / 20, Jitter: s.For / 10})
	case "trickle":
		net(mongotest.NetFaults{Trickle: 100 * time.Microsecond})
	case "hold":
		a.down(s, n, n.HoldReplies, n.ReleaseReplies)
	case "error", "overload":
		d.FailCommand(mongotest.Fail{Commands: s.Cmds, Times: s.N, Code: s.Code, Labels: s.Labels})
		a.after(s, d.ClearFailures)
	case "writeConcernError":
		d.FailCommand(mongotest.Fail{Commands: s.Cmds, Times: s.N,
			WriteConcernError: bson.D{{Key: "code", Value: s.Code}, {Key: "errmsg", Value: "by the adversary"}}})
		a.after(s, d.ClearFailures)
	case "closeOnCommand":
		d.FailCommand(mongotest.Fail{Commands: s.Cmds, Times: s.N, CloseConnection: true})
		a.after(s, d.ClearFailures)
	case "slowCommand":
		d.FailCommand(mongotest.Fail{Commands: s.Cmds, Times: s.N, Block: s.For})
		a.after(s, d.ClearFailures)
	case "closeClient":
		if a.w.rotation.broken() {
			return // it could not be opened again
		}
		c := a.w.clients[s.Client]
		c.close()
		c.charges.disarm() // to open it again is the program's first step
		a.must(c.open())
	case "failure":
		c := a.w.clients[s.Client]
		c.charges.arm(s.Place, charge{s.N, s.Exits})
		a.after(s, func() { c.charges.arm(s.Place, charge{}) })
	case "rotate":
		a.rotate(s)
	case "renew":
		a.renew(s)
	case "cutOff":
		a.cutOff(s)
	case "certificate":
		if a.w.rotation != nil {
			a.spoil(s)
			return
		}
		a.must(d.ReplaceCertificate(s.certificate()))
		a.after(s, func() { a.must(d.ReplaceCertificate(mongotest.ValidCertificate)) })
	case "moveChunk":
		a.moveChunk(s)
	default:
		panic("campaign: no such step: " + s.Kind)
	}
}

// link is what the network is like when nothing is wrong with it.
func (a *adversary) link() mongotest.NetFaults { return mongotest.NetFaults{} }

// rollBack lets the primary alone write for a while, and ends it: what the others never had is
// lost.
func (a *adversary) rollBack(s Step) {
	set := a.members(s)
	p := set.Primary()
	if p == nil || !a.take(p) {
		return
	}
	var held []*mongotest.Node
	for _, n := range set.Secondaries() {
		if a.take(n) {
			n.HoldBack()
			held = append(held, n)
			a.w.log("adversary: holds back %s of the primary %s", n.Addr(), p.Addr())
		}
	}
	a.after(s, func() {
		p.Kill()
		a.w.log("adversary: killed %s, which was alone", p.Addr())
		// One of the others is elected with what it has, before they could get more.
		a.pending = append(a.pending, undo{time.Now().Add(a.w.plan.Election + time.Second/10), func() {
			for _, n := range held {
				n.CatchUp()
				a.busy[n]--
			}
			a.must(p.Restart())
			a.busy[p]--
			a.w.log("adversary: %s is back, the primary is %s", p.Addr(), a.primary(s))
		}})
	})
}

// rotate replaces the password, so that new connections of the clients fail, and restores it.
// Clients that ask for their password notice nothing: whoever asks after the servers have another
// one gets that.
func (a *adversary) rotate(s Step) {
	set := func(pw string) {
		a.w.mu.Lock()
		a.w.password = pw
		err := a.w.d.AddUser(mongotest.User{Name: user, Password: pw, DB: "admin", Roles: []string{"root"}})
		a.w.mu.Unlock()
		a.must(err)
	}
	set("another-" + password)
	a.after(s, func() { set(password) })
}

// certificate is the kind that the servers get: a renewed one, which nobody should notice, or one
// that clients reject.
func (s Step) certificate() mongotest.ServerCertificate {
	return []mongotest.ServerCertificate{mongotest.ValidCertificate, mongotest.ExpiredCertificate,
		mongotest.ForeignCertificate}[s.N%3]
}

// moveChunk moves a part of a sharded collection to another shard.
func (a *adversary) moveChunk(s Step) {
	coll := shardedColls[(s.Client+s.N)%len(shardedColls)]
	points := splitPoints[coll]
	find := bson.D{{Key: "_id", Value: points[s.N%len(points)]}}
	to := []string{"sh0", "sh1"}[s.Node%2]
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// It fails if a fault is in its way, or the chunk is there already.
	_ = a.w.request("moveChunk", func() error {
		_, err := a.w.clients[0].get().Database("admin").RunCommand(ctx,
			bson.D{{Key: "moveChunk", Value: dbName + "." + coll}, {Key: "find", Value: find}, {Key: "to", Value: to}})
		return err
	})
}

// heal ends all faults.
func (a *adversary) heal() {
	a.w.d.ClearFailures()
	for _, c := range a.w.clients {
		c.charges.disarm()
	}
	for _, n := range a.w.d.Nodes() {
		n.SetNetFaults(mongotest.NetFaults{})
		n.ReleaseReplies()
	}
}

func (a *adversary) must(err error) {
	if err != nil {
		a.w.violation("the adversary: %v", err)
	}
}
