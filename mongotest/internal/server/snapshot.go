package server

import (
	"errors"
	"maps"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/store"
)

// Snapshot is what a data set holds at one moment: the collections, users and roles, and what
// somebody has set for the deployment as a whole. It never changes.
type Snapshot struct {
	content    store.Snapshot
	accounts   account.Snapshot
	parameters map[string]bson.Raw
	defaults   *DefaultConcerns
	compatible string
	settings   []planner.QuerySetting
}

// Snapshots keeps snapshots by name, for clients.
type Snapshots interface {
	Save(name string) error
	Restore(name string) error
	// Drop reports false if there is none of this name.
	Drop(name string) bool
	Names() []string
}

var errNoSnapshots = errors.New("a sharded cluster has no snapshots")

// Snapshot returns what the data set of a node holds.
func (n *Node) Snapshot() (*Snapshot, error) {
	d := n.data
	if d.shards > 0 || d.whole != nil {
		return nil, errNoSnapshots
	}
	content := n.Store().Latest().Snapshot() // the store wants the lock when it is made
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Snapshot{
		content: content, accounts: d.accounts.Snapshot(),
		parameters: maps.Clone(d.parameters), defaults: d.defaults.Load(), compatible: d.compatible,
		settings: d.settings.List(),
	}, nil
}

// Restore makes a snapshot what the node's data set holds. Open transactions are aborted.
func (n *Node) Restore(s *Snapshot) error {
	d := n.data
	if d.shards > 0 || d.whole != nil {
		return errNoSnapshots
	}
	d.AbortTransactions()
	d.Clock.Advance(s.content.TS)
	var ts bson.Timestamp
	err := n.Store().Write(func(tx *store.Tx) error {
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
	d.defaults.Store(s.defaults)
	d.accounts.Restore(s.accounts)
	if !ts.IsZero() {
		d.Wrote(ts)
	}
	n.ArmTTL(false)
	return nil
}
