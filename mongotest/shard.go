package mongotest

import "allium/mongotest/internal/server"

// Shard is a shard of a sharded cluster: a replica set of one member, which serves its part of the
// data also to clients that bypass the mongoses. Its methods are safe for concurrent use.
//
// While a shard has no primary (after [Node.Kill], [Node.Hang] or [Node.StepDown] of its node),
// commands that need it wait at the mongos for up to 15 seconds, then fail with
// FailedToSatisfyReadPreference (133); the others go on. A statement that goes to several shards
// writes where it can. Transactions that have used the shard are aborted, except while they are
// being committed on several shards.
type Shard struct {
	name string
	node *Node
}

// Name returns the shard's name, as config.shards has it: sh0, sh1 and so on.
func (s *Shard) Name() string { return s.name }

// Node returns the shard's process. [Node.FailCommand] on it fails the commands that mongoses send
// to this shard: they send reads and retryable writes again up to three times.
func (s *Shard) Node() *Node { return s.node }

// Shards returns the shards of a sharded cluster, in the order of their numbers; of other
// deployments none.
func (d *Deployment) Shards() []*Shard { return d.shards }

// startShards makes the processes of the shards. first is the number of their first port.
func (d *Deployment) startShards(first int) error {
	for i := range d.data.Shards() {
		l, addr, err := d.listen(first + i)
		if err != nil {
			return err
		}
		n := &Node{d: d, index: i, n: server.NewNode(d.cfg, server.Member, addr, d.data.Shard(i))}
		for _, p := range d.opts.parameters {
			if err := n.n.SetParameter(p.name, p.value); err != nil {
				l.Close()
				return err
			}
		}
		n.set = d.data.ServeShard(i, n.n)
		d.shards = append(d.shards, &Shard{n.set.Name(), n})
		if err := n.serve(l); err != nil {
			return err
		}
		n.set.Elect()
	}
	return nil
}
