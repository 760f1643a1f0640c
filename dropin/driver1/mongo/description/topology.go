package description

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// A TopologyKind is the kind of a deployment.
type TopologyKind uint32

// The kinds of deployments.
const (
	Single                TopologyKind = 1
	ReplicaSet            TopologyKind = 2
	ReplicaSetNoPrimary   TopologyKind = 4 + ReplicaSet
	ReplicaSetWithPrimary TopologyKind = 8 + ReplicaSet
	Sharded               TopologyKind = 256
	LoadBalanced          TopologyKind = 512
)

// String returns the name.
func (kind TopologyKind) String() string { return description.TopologyKind(kind).String() }

// A Topology is what is known of a deployment.
type Topology struct {
	Servers []Server
	SetName string
	Kind    TopologyKind
	// Deprecated: use SessionTimeoutMinutesPtr.
	SessionTimeoutMinutes    uint32
	SessionTimeoutMinutesPtr *int64
	CompatibilityErr         error
}

// String returns the kind and the servers.
func (t Topology) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Type: %s, Servers: [", t.Kind)
	for _, s := range t.Servers {
		fmt.Fprintf(&b, "{ %s }, ", s)
	}
	b.WriteString("]")
	return b.String()
}

// Equal reports whether both have the same kind and servers.
func (t Topology) Equal(other Topology) bool {
	return t.Kind == other.Kind && len(t.Servers) == len(other.Servers) &&
		!slices.ContainsFunc(t.Servers, func(s Server) bool {
			return !slices.ContainsFunc(other.Servers, func(o Server) bool {
				return o.Addr.String() == s.Addr.String() && s.Equal(o)
			})
		})
}

// HasReadableServer reports whether there is a server that suits a mode.
func (t Topology) HasReadableServer(mode readpref.Mode) bool {
	switch t.Kind {
	case Single, Sharded:
		return slices.ContainsFunc(t.Servers, Server.available)
	case ReplicaSetWithPrimary:
		return t.has(mode)
	case ReplicaSetNoPrimary, ReplicaSet:
		return mode != readpref.PrimaryMode && t.has(mode)
	}
	return false
}

func (t Topology) has(mode readpref.Mode) bool {
	rp, err := readpref.New(mode)
	return err == nil && len(suited(rp, t.Servers)) > 0
}

func (s Server) available() bool { return s.Kind != Unknown }

// HasWritableServer reports whether there is a server that takes writes.
func (t Topology) HasWritableServer() bool { return t.HasReadableServer(readpref.PrimaryMode) }
