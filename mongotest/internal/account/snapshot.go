package account

import "maps"

// Snapshot is the users and roles of a registry at one moment. It never changes.
type Snapshot struct {
	byName map[Role]*User
	roles  map[Role]*CustomRole
}

// Snapshot returns the users and roles.
func (g *Registry) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Snapshot{maps.Clone(g.byName), maps.Clone(g.roles)}
}

// Restore makes those of a snapshot the registry's.
func (g *Registry) Restore(s Snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byName, g.roles = maps.Clone(s.byName), maps.Clone(s.roles)
}
