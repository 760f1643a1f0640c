package event

import (
	"fmt"
	"strings"
	"time"

	"allium/bson"
)

// TopologyKind is the kind of the deployment.
type TopologyKind uint8

// The kinds of topologies.
const (
	UnknownTopology TopologyKind = iota
	Single
	ReplicaSetNoPrimary
	ReplicaSetWithPrimary
	Sharded
	LoadBalanced
)

var topologyKindNames = [...]string{
	UnknownTopology:       "Unknown",
	Single:                "Single",
	ReplicaSetNoPrimary:   "ReplicaSetNoPrimary",
	ReplicaSetWithPrimary: "ReplicaSetWithPrimary",
	Sharded:               "Sharded",
	LoadBalanced:          "LoadBalanced",
}

// String returns the specification's name, for example "ReplicaSetWithPrimary".
func (k TopologyKind) String() string {
	if int(k) < len(topologyKindNames) {
		return topologyKindNames[k]
	}
	return fmt.Sprintf("TopologyKind(%d)", uint8(k))
}

// TopologyDescription is what the driver knows about a deployment at one moment. It is immutable.
type TopologyDescription struct {
	Kind    TopologyKind
	SetName string // the replica set, if its name is known
	// Servers are in the order in which they became known.
	Servers []*ServerDescription

	// MaxElectionID and MaxSetVersion are the greatest that a primary has reported, nil if none
	// has.
	MaxElectionID *bson.ObjectID
	MaxSetVersion *int64

	// SessionTimeoutMinutes is the least of all data-bearing servers, nil if there is none or one
	// does not support sessions.
	SessionTimeoutMinutes *int64

	// CompatibilityErr is not nil if a server and the driver have no version of the wire protocol
	// in common.
	CompatibilityErr error
}

// Server returns the description of the server at an address, nil if it is not part of the
// topology.
func (t *TopologyDescription) Server(addr string) *ServerDescription {
	for _, s := range t.Servers {
		if s.Addr == addr {
			return s
		}
	}
	return nil
}

// Primary returns the description of the primary, nil if there is none.
func (t *TopologyDescription) Primary() *ServerDescription {
	for _, s := range t.Servers {
		if s.Kind == RSPrimary {
			return s
		}
	}
	return nil
}

// HasWritableServer reports whether the topology has a server that takes writes.
func (t *TopologyDescription) HasWritableServer() bool {
	switch t.Kind {
	case Single, Sharded:
		for _, s := range t.Servers {
			if s.Kind != UnknownServer {
				return true
			}
		}
	case ReplicaSetWithPrimary, LoadBalanced:
		return true
	}
	return false
}

// Equal reports whether two descriptions are equal for a listener (see ServerDescription.Equal).
func (t *TopologyDescription) Equal(o *TopologyDescription) bool {
	if t == o {
		return true
	}
	if t.Kind != o.Kind || t.SetName != o.SetName || len(t.Servers) != len(o.Servers) ||
		!samePointee(t.MaxElectionID, o.MaxElectionID) || !samePointee(t.MaxSetVersion, o.MaxSetVersion) ||
		!samePointee(t.SessionTimeoutMinutes, o.SessionTimeoutMinutes) ||
		errorText(t.CompatibilityErr) != errorText(o.CompatibilityErr) {
		return false
	}
	for i, s := range t.Servers {
		other := o.Servers[i] // mostly in the same order
		if other.Addr != s.Addr {
			other = o.Server(s.Addr)
		}
		if other == nil || !s.Equal(other) {
			return false
		}
	}
	return true
}

// String returns a text for logs and error messages, for example
//
//	ReplicaSetWithPrimary rs0 [a:27017: RSPrimary; b:27017: RSSecondary]
func (t *TopologyDescription) String() string {
	var b strings.Builder
	b.WriteString(t.Kind.String())
	if t.SetName != "" {
		b.WriteString(" " + t.SetName)
	}
	b.WriteString(" [")
	for i, s := range t.Servers {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.String())
	}
	b.WriteByte(']')
	if t.CompatibilityErr != nil {
		b.WriteString(" " + t.CompatibilityErr.Error())
	}
	return b.String()
}

// ServerMonitor listens to server discovery and monitoring. Each function may be nil. Events of one
// topology are delivered one at a time, in their order, heartbeats among them. The package comment
// says what becomes of those behind a function that does not return.
type ServerMonitor struct {
	TopologyOpening            func(*TopologyOpening)
	TopologyDescriptionChanged func(*TopologyDescriptionChanged)
	TopologyClosed             func(*TopologyClosed)

	ServerOpening            func(*ServerOpening)
	ServerDescriptionChanged func(*ServerDescriptionChanged)
	ServerClosed             func(*ServerClosed)

	ServerHeartbeatStarted   func(*ServerHeartbeatStarted)
	ServerHeartbeatSucceeded func(*ServerHeartbeatSucceeded)
	ServerHeartbeatFailed    func(*ServerHeartbeatFailed)
}

// TopologyOpening is the first event of a topology.
type TopologyOpening struct {
	TopologyID bson.ObjectID
}

// TopologyDescriptionChanged says that what the driver knows about the deployment changed.
type TopologyDescriptionChanged struct {
	TopologyID          bson.ObjectID
	PreviousDescription *TopologyDescription
	NewDescription      *TopologyDescription
}

// TopologyClosed is the last event of a topology.
type TopologyClosed struct {
	TopologyID bson.ObjectID
}

// ServerOpening says that a server was added to the topology, before it is checked for the first
// time.
type ServerOpening struct {
	Addr       string
	TopologyID bson.ObjectID
}

// ServerDescriptionChanged says that what the driver knows about a server changed, apart from its
// round trip time.
type ServerDescriptionChanged struct {
	Addr                string
	TopologyID          bson.ObjectID
	PreviousDescription *ServerDescription
	NewDescription      *ServerDescription
}

// ServerClosed says that a server was removed from the topology.
type ServerClosed struct {
	Addr       string
	TopologyID bson.ObjectID
}

// ServerHeartbeatStarted is published before a monitor sends a hello, or opens the connection for
// it, or starts to wait for the next reply of a stream.
type ServerHeartbeatStarted struct {
	Addr       string
	TopologyID bson.ObjectID
	// DriverConnectionID numbers the client's monitoring connections from 1, in the order in which
	// they are opened.
	DriverConnectionID int64
	// ServerConnectionID is the server's number for the connection, nil before its first reply.
	ServerConnectionID *int64
	Awaited            bool // the server may hold its reply back until something changes
}

// ServerHeartbeatSucceeded says that the server replied to a hello.
type ServerHeartbeatSucceeded struct {
	Addr               string
	TopologyID         bson.ObjectID
	DriverConnectionID int64
	ServerConnectionID *int64
	Awaited            bool
	// Duration is the round trip time unless Awaited is true.
	Duration time.Duration
	Reply    bson.Raw
}

// ServerHeartbeatFailed says that a hello failed, or the connection for it.
type ServerHeartbeatFailed struct {
	Addr               string
	TopologyID         bson.ObjectID
	DriverConnectionID int64
	ServerConnectionID *int64
	Awaited            bool
	Duration           time.Duration
	Failure            error
}
