package server

import (
	"errors"
	"fmt"
	"maps"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
)

// Snapshot is what a data set holds at one moment: the collections and, in a cluster, where they
// are, users and roles, and what somebody has set for the deployment as a whole. It never changes.
type Snapshot struct {
	content    store.Snapshot
	cluster    clusterSnapshot
	accounts   account.Snapshot
	parameters map[string]bson.Raw
	defaults   *DefaultConcerns
	compatible string
	settings   []planner.QuerySetting
	sampling   sampling
}

// Snapshots keeps snapshots by name, for clients.
type Snapshots interface {
	Save(name string) error
	Restore(name string) error
	// Drop reports false if there is none of this name.
	Drop(name string) bool
	Names() []string
}

// Snapshot returns what the data set of a node holds: of a mongos, that of the cluster.
func (n *Node) Snapshot() (*Snapshot, error) {
	d := n.data
	if err := d.restorable(); err != nil {
		return nil, err
	}
	var cluster clusterSnapshot
	var content store.Snapshot
	err := n.Store().Write(func(tx *store.Tx) error { // so that nothing changes between the two
		cluster, content = d.cluster.snapshot(), tx.State().Snapshot()
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Snapshot{
		content: content, cluster: cluster, accounts: d.accounts.Snapshot(),
		parameters: maps.Clone(d.parameters), defaults: d.defaults.Load(), compatible: d.compatible,
		settings: d.settings.List(), sampling: d.sampler.save(),
	}, nil
}

// Restore makes a snapshot what the node's data set holds. Open transactions are aborted.
func (n *Node) Restore(s *Snapshot) error {
	d := n.data
	if err := d.restorable(); err != nil {
		return err
	}
	if want, got := d.stores(), s.content.Stores(); want != got {
		return fmt.Errorf("want a snapshot of %s, and not of %s", kindOf(want), kindOf(got))
	}
	d.AbortTransactions()
	d.Clock.Advance(s.content.TS)
	var ts bson.Timestamp
	err := n.Store().Write(func(tx *store.Tx) error {
		d.restoreCluster(s.cluster) // by which the store finds collections, when it is done here
		tx.Restore(s.content)
		ts = tx.TS()
		return nil
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.parameters, d.compatible = maps.Clone(s.parameters), s.compatible
	d.mu.Unlock()
	d.settings.Replace(s.settings)
	d.sampler.restore(s.sampling)
	d.defaults.Store(s.defaults)
	d.accounts.Restore(s.accounts)
	if !ts.IsZero() {
		d.Wrote(ts)
	}
	if d.shards > 0 {
		for _, mongos := range d.nodes {
			mongos.ForgetTables("")
		}
	}
	n.ArmTTL(false)
	return nil
}

// stores returns how many stores the data set has.
func (d *Data) stores() int { return max(len(d.parts), 1) }

// kindOf says what has as many stores.
func kindOf(stores int) string {
	switch stores {
	case 1:
		return "a standalone server or a replica set"
	case 2:
		return "a cluster with one shard"
	}
	return fmt.Sprintf("a cluster with %d shards", stores-1) // the last one is that of the config servers
}

// restorable refuses the data set of a shard, of which a cluster is made, and one of a cluster
// whose shards could not be written to.
func (d *Data) restorable() error {
	if d.whole != nil {
		return errors.New("a shard has no snapshots of its own: those of a mongos are of the cluster")
	}
	for i, p := range d.parts {
		if p.set != nil && p.primary() == nil {
			return fmt.Errorf("the set %s has no primary", d.partName(i))
		}
	}
	return nil
}

// clusterSnapshot is what config servers know beside the collections' metadata. Whether the
// balancer runs is not part of it.
type clusterSnapshot struct {
	dbs     map[string]*database
	made    int
	zones   sharding.ZoneSet
	orphans []orphans // that migrations have left
}

func (c *cluster) snapshot() clusterSnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clusterSnapshot{maps.Clone(c.dbs), c.made, c.zones.Snapshot(), c.deleter.snapshot()}
}

func (d *Data) restoreCluster(s clusterSnapshot) {
	if d.shards == 0 {
		return
	}
	c := &d.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dbs, c.made = maps.Clone(s.dbs), s.made; c.dbs != nil && c.id.IsZero() {
		c.id = bson.NewObjectID()
	}
	c.publish()
	c.zones.Restore(s.zones)
	d.restoreOrphans(s.orphans)
}
