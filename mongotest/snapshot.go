package mongotest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
)

// Snapshot is what a deployment held at one moment: the collections with their documents, indexes
// and options, users and roles, cluster parameters and default concerns, and of a sharded cluster
// which shard has what, and its zones. It shares memory with the
// deployment, and costs nothing until that changes. It never changes itself: any number of
// deployments can be restored from it, also at the same time.
type Snapshot struct {
	s       *server.Snapshot
	version release.Version
}

// Snapshot returns what the deployment holds now, in microseconds. It is an error for a replica set
// without a primary, and for a cluster one of whose shards has none.
func (d *Deployment) Snapshot() (*Snapshot, error) {
	p := d.Primary()
	if p == nil {
		return nil, errors.New("mongotest: snapshot: there is no primary")
	}
	s, err := p.n.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("mongotest: snapshot: %w", err)
	}
	return &Snapshot{s, d.cfg.Version}, nil
}

// Restore makes the deployment hold what it, or another one of the same version, held when the
// snapshot was taken. That takes microseconds, whatever there is. Connections stay open;
// transactions that are open are aborted, and cursors closed. Change streams that are resumed go on
// behind it, and see nothing of it: it is no event. Fail points, server parameters and profiling
// stay as they are, and so do the clock and whether a cluster's balancer runs. It is an error for a
// snapshot of another number of shards, for a replica set without a primary, and for a cluster one
// of whose shards has none.
func (d *Deployment) Restore(s *Snapshot) error {
	p := d.Primary()
	switch {
	case p == nil:
		return errors.New("mongotest: restore: there is no primary")
	case s.version != d.cfg.Version:
		return fmt.Errorf("mongotest: restore: want a snapshot of version %v, and not of %v", d.cfg.Version, s.version)
	}
	for _, n := range d.nodes {
		n.n.Cursors().Kill(func(*server.Cursor) bool { return true })
	}
	if err := p.n.Restore(s.s); err != nil {
		return fmt.Errorf("mongotest: restore: %w", err)
	}
	return nil
}

// From makes the deployment begin with what another one of the same version held when the snapshot
// was taken, as a copy: each of several tests that run in parallel has one. The user of [Auth] is
// added if the snapshot does not have it.
func From(s *Snapshot) Option {
	return prepared(func(d *Deployment) error {
		if err := d.Restore(s); err != nil {
			return err
		}
		if o := &d.opts; o.user != "" && d.data.Accounts().Find(o.user, "admin") == nil {
			return d.AddUser(User{Name: o.user, Password: o.password, DB: "admin", Roles: []string{"root"}})
		}
		return nil
	})
}

// SnapshotCommands lets clients in any language keep snapshots by name in the deployment, with
// commands on the database admin: {saveSnapshot: "name"}, {restoreSnapshot: "name"}, {dropSnapshot:
// "name"} and {listSnapshots: 1}. They do what [Deployment.Snapshot] and [Deployment.Restore] do;
// no server has them. Users need the privilege to shut the cluster down, as root has.
func SnapshotCommands() Option { return func(o *options) { o.snapshotCommands = true } }

// snapshots are those that clients keep.
type snapshots struct {
	d      *Deployment
	mu     sync.Mutex
	byName map[string]*Snapshot
}

func (all *snapshots) Save(name string) error {
	s, err := all.d.Snapshot()
	if err != nil {
		return err
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byName[name] = s
	return nil
}

func (all *snapshots) Restore(name string) error {
	all.mu.Lock()
	s := all.byName[name]
	all.mu.Unlock()
	if s == nil {
		return fmt.Errorf("there is no snapshot %q: saveSnapshot makes one", name)
	}
	return all.d.Restore(s)
}

func (all *snapshots) Drop(name string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	_, ok := all.byName[name]
	delete(all.byName, name)
	return ok
}

func (all *snapshots) Names() []string {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Sorted(maps.Keys(all.byName))
}
