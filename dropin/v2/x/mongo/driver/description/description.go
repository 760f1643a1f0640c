// Package description has what is known of servers and deployments.
package description

import (
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/tag"
)

// Unknown is the kind of what was not found out yet, UnknownStr its name.
const (
	Unknown    = 0
	UnknownStr = "Unknown"
)

// A ServerKind is the kind of a server.
type ServerKind uint32

// The kinds of servers.
const (
	ServerKindStandalone   ServerKind = 1
	ServerKindRSMember     ServerKind = 2
	ServerKindRSPrimary    ServerKind = 4 + ServerKindRSMember
	ServerKindRSSecondary  ServerKind = 8 + ServerKindRSMember
	ServerKindRSArbiter    ServerKind = 16 + ServerKindRSMember
	ServerKindRSGhost      ServerKind = 32 + ServerKindRSMember
	ServerKindMongos       ServerKind = 256
	ServerKindLoadBalancer ServerKind = 512
)

var serverKinds = map[ServerKind]string{
	ServerKindStandalone: "Standalone", ServerKindRSMember: "RSOther", ServerKindRSPrimary: "RSPrimary",
	ServerKindRSSecondary: "RSSecondary",
	ServerKindRSArbiter:   "RSArbiter", ServerKindRSGhost: "RSGhost", ServerKindMongos: "Mongos",
	ServerKindLoadBalancer: "LoadBalancer",
}

// String returns the name.
func (kind ServerKind) String() string {
	if name, ok := serverKinds[kind]; ok {
		return name
	}
	return UnknownStr
}

// ServerKindOf returns the kind of a name.
func ServerKindOf(name string) ServerKind {
	for kind, n := range serverKinds {
		if n == name {
			return kind
		}
	}
	return Unknown
}

// A TopologyKind is the kind of a deployment.
type TopologyKind uint32

// The kinds of deployments.
const (
	TopologyKindSingle                TopologyKind = 1
	TopologyKindReplicaSet            TopologyKind = 2
	TopologyKindReplicaSetNoPrimary   TopologyKind = 4 + TopologyKindReplicaSet
	TopologyKindReplicaSetWithPrimary TopologyKind = 8 + TopologyKindReplicaSet
	TopologyKindSharded               TopologyKind = 256
	TopologyKindLoadBalanced          TopologyKind = 512
)

var topologyKinds = map[TopologyKind]string{
	TopologyKindSingle: "Single", TopologyKindReplicaSet: "ReplicaSet",
	TopologyKindReplicaSetNoPrimary:   "ReplicaSetNoPrimary",
	TopologyKindReplicaSetWithPrimary: "ReplicaSetWithPrimary", TopologyKindSharded: "Sharded",
	TopologyKindLoadBalanced: "LoadBalanced",
}

// String returns the name.
func (kind TopologyKind) String() string {
	if name, ok := topologyKinds[kind]; ok {
		return name
	}
	return UnknownStr
}

// TopologyKindOf returns the kind of a name.
func TopologyKindOf(name string) TopologyKind {
	for kind, n := range topologyKinds {
		if n == name {
			return kind
		}
	}
	return Unknown
}

// A VersionRange are the versions of the wire protocol that a server has.
type VersionRange struct {
	Min int32
	Max int32
}

// A TopologyVersion orders what a server says of itself.
type TopologyVersion struct {
	ProcessID bson.ObjectID
	Counter   int64
}

// A Server is what is known of a server.
type Server struct {
	Addr address.Address

	Arbiters              []string
	AverageRTT            time.Duration
	AverageRTTSet         bool
	Compression           []string
	CanonicalAddr         address.Address
	ElectionID            bson.ObjectID
	HeartbeatInterval     time.Duration
	HelloOK               bool
	Hosts                 []string
	IsCryptd              bool
	LastError             error
	LastUpdateTime        time.Time
	LastWriteTime         time.Time
	MaxBatchCount         uint32
	MaxDocumentSize       uint32
	MaxMessageSize        uint32
	Members               []address.Address
	Passives              []string
	Passive               bool
	Primary               address.Address
	ReadOnly              bool
	ServiceID             *bson.ObjectID
	SessionTimeoutMinutes *int64
	SetName               string
	SetVersion            uint32
	Tags                  tag.Set
	TopologyVersion       *TopologyVersion
	Kind                  ServerKind
	WireVersion           *VersionRange
}

// String returns the address, the kind, and the last error.
func (s Server) String() string {
	text := fmt.Sprintf("Addr: %s, Type: %s", s.Addr, s.Kind)
	if len(s.Tags) != 0 {
		text += fmt.Sprintf(", Tag sets: %s", s.Tags)
	}
	if s.AverageRTTSet {
		text += fmt.Sprintf(", Average RTT: %d", s.AverageRTT)
	}
	if s.LastError != nil {
		text += fmt.Sprintf(", Last error: %s", s.LastError)
	}
	return text
}

// A SelectedServer is a server, and the kind of its deployment.
type SelectedServer struct {
	Server
	Kind TopologyKind
}

// A Topology is what is known of a deployment.
type Topology struct {
	Servers               []Server
	SetName               string
	Kind                  TopologyKind
	SessionTimeoutMinutes *int64
	CompatibilityErr      error
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
