package mongotest

import (
	"fmt"
	"slices"
	"time"

	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/server"
)

// Shard is a shard of a sharded cluster: a replica set of one member, or of as many as
// [ShardMembers] says. Its members serve its part of the data also to clients that bypass the
// mongoses. Its methods are safe for concurrent use.
//
// While a shard has no primary (after [Node.Kill], [Node.Hang] or [Node.StepDown] of its only
// member, or until the others have elected one: see [ElectionDelay]), commands that need it wait
// at the mongos for up to 15 seconds, then fail with FailedToSatisfyReadPreference (133); the
// others go on. A statement that goes to several shards writes where it can. Transactions that
// have used the shard are aborted, except while they are being committed on several shards.
type Shard struct {
	name  string
	set   *replica.Set
	nodes []*Node
}

// Name returns the shard's name, as config.shards has it: sh0, sh1 and so on; of the config servers
// it is "config". It is that of the replica set, too.
func (s *Shard) Name() string { return s.name }

// Node returns the shard's first member, which is its primary until an election.
// [Node.FailCommand] on the primary fails the commands that mongoses send to this shard: they send
// reads and retryable writes again up to three times.
func (s *Shard) Node() *Node { return s.nodes[0] }

// Nodes returns the shard's members.
func (s *Shard) Nodes() []*Node { return slices.Clone(s.nodes) }

// Primary returns the member that takes writes, or nil if there is none now.
func (s *Shard) Primary() *Node {
	p := s.set.Primary()
	for _, n := range s.nodes {
		if p == replica.Peer(n.n) {
			return n
		}
	}
	return nil
}

// Secondaries returns the members except the primary.
func (s *Shard) Secondaries() []*Node {
	p := s.Primary()
	return slices.DeleteFunc(s.Nodes(), func(n *Node) bool { return n == p })
}

// StepDown makes the shard's primary step down for a minute; another member takes its place if one
// can, after [ElectionDelay]. StepDown does nothing without a primary. See [Deployment.StepDown].
func (s *Shard) StepDown() {
	if p := s.Primary(); p != nil {
		p.StepDown(time.Minute)
	}
}

// Shards returns the shards of a sharded cluster, in the order of their numbers; of other
// deployments none.
func (d *Deployment) Shards() []*Shard { return d.shards }

// ConfigServers returns the replica set of a cluster's config servers: it has the methods of a
// shard, and the cluster's metadata in place of documents. It has as many members as each shard;
// other deployments have none (nil).
//
// While it has no primary, mongoses go on with what they know. Commands that change the metadata,
// and reads of the config and admin databases, wait for up to 15 seconds, then fail with
// FailedToSatisfyReadPreference (133).
func (d *Deployment) ConfigServers() *Shard { return d.config }

// sets returns the replica sets of a cluster.
func (d *Deployment) sets() []*Shard {
	if d.config == nil {
		return d.shards
	}
	return append(d.shards[:len(d.shards):len(d.shards)], d.config)
}

// startShards makes the processes of the shards and of the config servers. first is the number of
// their first port.
func (d *Deployment) startShards(first int) error {
	members := d.opts.shardMembers
	if members == nil {
		members = make([]Member, 1)
	}
	if len(members) == 0 || len(members) > 50 {
		return fmt.Errorf("a shard has 1 to 50 members, not %d", len(members))
	}
	for i := range d.data.Shards() + 1 {
		s := &Shard{}
		if i < d.data.Shards() {
			d.shards = append(d.shards, s)
		} else {
			d.config = s
		}
		for j, m := range members {
			l, addr, err := d.listen(first + i*len(members) + j)
			if err != nil {
				return err
			}
			n := &Node{d: d, index: j, n: server.NewNode(d.cfg, server.Member, addr, d.data.Shard(i))}
			for _, p := range d.opts.parameters {
				if err := n.n.SetParameter(p.name, p.value); err != nil {
					l.Close()
					return err
				}
			}
			s.set = d.data.ServeShard(i, n.n, m.config())
			n.set, s.name, s.nodes = s.set, s.set.Name(), append(s.nodes, n)
			if err := n.serve(l); err != nil {
				return err
			}
		}
		if !s.set.Elect() {
			return fmt.Errorf("no member of %s can become primary", s.name)
		}
		s.set.SetElectionDelay(d.opts.electionDelay)
		for _, n := range s.nodes {
			n.SetLag(d.opts.lag)
		}
	}
	return nil
}
