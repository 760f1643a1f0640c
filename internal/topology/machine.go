package topology

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"allium/bson"
	"allium/event"
	"allium/internal/hello"
)

// machine is the state machine of the specification Server Discovery and Monitoring: how a
// description of a topology follows from the one before and what a server has just said. It holds
// only what never changes during the life of a client.
type machine struct {
	seeds int // how many servers the user named
}

// initial returns the description before anything is known: all seeds are unknown.
func initial(kind event.TopologyKind, setName string, seeds []string) *event.TopologyDescription {
	t := transition{TopologyDescription: &event.TopologyDescription{Kind: kind, SetName: setName}}
	t.add(seeds, 0)
	return t.TopologyDescription
}

// maxMembers is how many servers of a replica set are followed at most, unless the user names more:
// those of the configurations before and after a change. Members that contradict each other could
// make the topology grow without end while there is no primary.
const maxMembers = 2 * hello.MaxMembers

// transition is a topology description under construction.
type transition struct {
	*event.TopologyDescription
	// recheck are the servers that counted as primaries until another one appeared.
	recheck []string
}

// next returns the description that follows from td when a server was checked with the outcome sd,
// and the servers that should be checked at once. It returns td itself when the outcome must be
// ignored, because the server is not part of the topology or has said newer things already. It
// changes neither td nor sd.
func (m machine) next(td *event.TopologyDescription,
	sd *event.ServerDescription) (*event.TopologyDescription, []string) {
	old := td.Server(sd.Addr)
	if old == nil || old.TopologyVersion.Compare(sd.TopologyVersion) > 0 {
		return td, nil
	}
	copied := *td
	copied.Servers = slices.Clone(td.Servers)
	t := &transition{TopologyDescription: &copied}

	if t.Kind == event.Single && t.SetName != "" && sd.Kind != event.UnknownServer && sd.SetName != t.SetName {
		sd = unknown(sd, fmt.Errorf("server %s is in replica set %q, but %q is asked for", sd.Addr, sd.SetName,
			t.SetName))
	}
	t.replace(sd)
	if act := actions[t.Kind][sd.Kind]; act != nil {
		act(m, t, sd)
	}
	finish(t.TopologyDescription)
	return t.TopologyDescription, t.recheck
}

// unknown returns the description of the same server as an unknown one.
func unknown(sd *event.ServerDescription, err error) *event.ServerDescription {
	return &event.ServerDescription{Addr: sd.Addr, LastError: err, LastUpdate: sd.LastUpdate}
}

type action func(m machine, t *transition, sd *event.ServerDescription)

// actions is the specification's TopologyType table. Where the table has no
// entry, only the server's description is replaced. Single and LoadBalanced have no entries at all.
var actions = map[event.TopologyKind]map[event.ServerKind]action{
	event.UnknownTopology: {
		event.Standalone:  machine.unknownWithStandalone,
		event.Mongos:      machine.becomeSharded,
		event.RSPrimary:   machine.fromPrimary,
		event.RSSecondary: machine.withoutPrimary,
		event.RSArbiter:   machine.withoutPrimary,
		event.RSOther:     machine.withoutPrimary,
	},
	event.Sharded: {
		event.Standalone:  machine.remove,
		event.RSPrimary:   machine.remove,
		event.RSSecondary: machine.remove,
		event.RSArbiter:   machine.remove,
		event.RSOther:     machine.remove,
		event.RSGhost:     machine.remove,
	},
	event.ReplicaSetNoPrimary: {
		event.Standalone:  machine.remove,
		event.Mongos:      machine.remove,
		event.RSPrimary:   machine.fromPrimary,
		event.RSSecondary: machine.withoutPrimary,
		event.RSArbiter:   machine.withoutPrimary,
		event.RSOther:     machine.withoutPrimary,
	},
	event.ReplicaSetWithPrimary: {
		event.UnknownServer: machine.checkPrimary,
		event.Standalone:    machine.remove,
		event.Mongos:        machine.remove,
		event.RSPrimary:     machine.fromPrimary,
		event.RSSecondary:   machine.withPrimaryFromMember,
		event.RSArbiter:     machine.withPrimaryFromMember,
		event.RSOther:       machine.withPrimaryFromMember,
		event.RSGhost:       machine.checkPrimary,
	},
}

func (m machine) unknownWithStandalone(t *transition, sd *event.ServerDescription) {
	if m.seeds == 1 {
		t.Kind = event.Single
	} else {
		t.drop(sd.Addr)
	}
}

func (m machine) becomeSharded(t *transition, _ *event.ServerDescription) { t.Kind = event.Sharded }

// remove takes the server out of the topology, which may have been the primary.
func (m machine) remove(t *transition, sd *event.ServerDescription) {
	t.drop(sd.Addr)
	if t.Kind == event.ReplicaSetWithPrimary {
		t.checkPrimary()
	}
}

func (m machine) checkPrimary(t *transition, _ *event.ServerDescription) { t.checkPrimary() }

// withoutPrimary is updateRSWithoutPrimary.
func (m machine) withoutPrimary(t *transition, sd *event.ServerDescription) {
	t.Kind = event.ReplicaSetNoPrimary
	if t.SetName == "" {
		t.SetName = sd.SetName
	} else if t.SetName != sd.SetName {
		t.drop(sd.Addr)
		return
	}
	t.add(sd.Members(), max(maxMembers, m.seeds))
	if sd.Me != "" && sd.Me != sd.Addr {
		t.drop(sd.Addr)
	}
}

// withPrimaryFromMember is updateRSWithPrimaryFromMember.
func (m machine) withPrimaryFromMember(t *transition, sd *event.ServerDescription) {
	if t.SetName != sd.SetName || sd.Me != "" && sd.Me != sd.Addr {
		t.drop(sd.Addr)
	}
	t.checkPrimary()
}

// fromPrimary is updateRSFromPrimary.
func (m machine) fromPrimary(t *transition, sd *event.ServerDescription) {
	if t.SetName == "" {
		t.SetName = sd.SetName
	} else if t.SetName != sd.SetName {
		t.drop(sd.Addr)
		t.checkPrimary()
		return
	}
	if !t.trusts(sd) {
		t.replace(unknown(
			sd, fmt.Errorf("primary marked stale due to electionId/setVersion mismatch, %s is stale compared to %s",
				tuple(sd.ElectionID, sd.SetVersion), tuple(t.MaxElectionID, t.MaxSetVersion))))
		t.checkPrimary()
		return
	}
	for _, s := range t.Servers {
		if s.Kind == event.RSPrimary && s.Addr != sd.Addr {
			t.replace(&event.ServerDescription{Addr: s.Addr, LastError: errNewerPrimary})
			t.recheck = append(t.recheck, s.Addr)
		}
	}
	t.keep(sd.Members())
	t.add(sd.Members(), 0) // hello.MaxMembers at most
	t.checkPrimary()
}

var errNewerPrimary = errors.New("primary marked stale due to discovery of newer primary")

// trusts reports whether a primary is at least as new as the newest one known, by its electionId
// and setVersion, and if so it remembers them.
func (t *transition) trusts(sd *event.ServerDescription) bool {
	if sd.MaxWireVersion >= 17 { // from MongoDB 6.0 on the tuple is ordered as the servers order it
		c := cmp.Or(compareID(sd.ElectionID, t.MaxElectionID), compareInt(sd.SetVersion, t.MaxSetVersion))
		if c < 0 {
			return false
		}
		t.MaxElectionID, t.MaxSetVersion = sd.ElectionID, sd.SetVersion
		return true
	}
	if sd.SetVersion != nil && sd.ElectionID != nil {
		if t.MaxSetVersion != nil && t.MaxElectionID != nil &&
			cmp.Or(compareInt(sd.SetVersion, t.MaxSetVersion), compareID(sd.ElectionID, t.MaxElectionID)) < 0 {
			return false
		}
		t.MaxElectionID = sd.ElectionID
	}
	if sd.SetVersion != nil && compareInt(sd.SetVersion, t.MaxSetVersion) > 0 {
		t.MaxSetVersion = sd.SetVersion
	}
	return true
}

// compareID and compareInt treat a missing value as less than any other.
func compareID(a, b *bson.ObjectID) int {
	if a == nil || b == nil {
		return compareBool(a != nil, b != nil)
	}
	return bytes.Compare(a[:], b[:])
}

func compareInt(a, b *int64) int {
	if a == nil || b == nil {
		return compareBool(a != nil, b != nil)
	}
	return cmp.Compare(*a, *b)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func tuple(id *bson.ObjectID, version *int64) string {
	e, v := "none", "none"
	if id != nil {
		e = id.Hex()
	}
	if version != nil {
		v = fmt.Sprint(*version)
	}
	return fmt.Sprintf("(electionId: %s, setVersion: %s)", e, v)
}

func (t *transition) replace(sd *event.ServerDescription) {
	for i, s := range t.Servers {
		if s.Addr == sd.Addr {
			t.Servers[i] = sd
		}
	}
}

// add adds the missing servers as long as there are fewer than limit; 0 means no limit.
func (t *transition) add(addrs []string, limit int) {
	known := make(map[string]bool, len(t.Servers)+len(addrs))
	for _, s := range t.Servers {
		known[s.Addr] = true
	}
	for _, addr := range addrs {
		if known[addr] {
			continue
		}
		if limit > 0 && len(t.Servers) >= limit {
			return
		}
		known[addr] = true
		t.Servers = append(t.Servers, &event.ServerDescription{Addr: addr})
	}
}

// keep drops all servers but those at these addresses.
func (t *transition) keep(addrs []string) {
	kept := make(map[string]bool, len(addrs))
	for _, addr := range addrs {
		kept[addr] = true
	}
	t.Servers = slices.DeleteFunc(t.Servers, func(s *event.ServerDescription) bool { return !kept[s.Addr] })
}

func (t *transition) drop(addr string) {
	t.Servers = slices.DeleteFunc(t.Servers, func(s *event.ServerDescription) bool { return s.Addr == addr })
}

// checkPrimary is checkIfHasPrimary.
func (t *transition) checkPrimary() {
	t.Kind = event.ReplicaSetNoPrimary
	if t.Primary() != nil {
		t.Kind = event.ReplicaSetWithPrimary
	}
}

// finish derives what depends on all servers: compatibility and the session timeout.
func finish(t *event.TopologyDescription) {
	t.CompatibilityErr = nil
	t.SessionTimeoutMinutes = nil
	first := true
	for _, s := range t.Servers {
		if s.Kind == event.UnknownServer || s.Kind == event.LoadBalancer {
			continue
		}
		if t.CompatibilityErr == nil {
			t.CompatibilityErr = compatibility(s)
		}
		if !s.DataBearing() {
			continue
		}
		switch {
		case first:
			t.SessionTimeoutMinutes = s.SessionTimeoutMinutes
		case compareInt(s.SessionTimeoutMinutes, t.SessionTimeoutMinutes) < 0:
			t.SessionTimeoutMinutes = s.SessionTimeoutMinutes
		}
		first = false
	}
}

// CompatibilityError says that a server and this driver have no version of the wire protocol in
// common.
type CompatibilityError struct {
	Addr     string
	Min, Max int32 // what the server speaks
}

// Error uses the specification's words.
func (e *CompatibilityError) Error() string {
	if e.Min > hello.MaxWireVersion {
		return fmt.Sprintf("Server at %s requires wire version %d, but this version of Allium only supports up to %d.",
			e.Addr, e.Min, hello.MaxWireVersion)
	}
	return fmt.Sprintf(
		"Server at %s reports wire version %d, but this version of Allium requires at least %d (MongoDB %s).",
		e.Addr, e.Max, hello.MinWireVersion, hello.MinServerVersion)
}

func compatibility(s *event.ServerDescription) error {
	if s.MinWireVersion > hello.MaxWireVersion || s.MaxWireVersion < hello.MinWireVersion {
		return &CompatibilityError{Addr: s.Addr, Min: s.MinWireVersion, Max: s.MaxWireVersion}
	}
	return nil
}

// withHosts returns the description that follows when the DNS records of the deployment name these
// servers now (specification: Polling SRV Records for mongos Discovery). At most limit servers are
// kept, 0 meaning no limit; those to add are taken from the front of hosts.
func withHosts(td *event.TopologyDescription, hosts []string, limit int) *event.TopologyDescription {
	copied := *td
	copied.Servers = slices.Clone(td.Servers)
	t := &transition{TopologyDescription: &copied}
	t.keep(hosts)
	t.add(hosts, limit)
	finish(t.TopologyDescription)
	return t.TopologyDescription
}
