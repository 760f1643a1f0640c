package event

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"allium/bson"
)

// ServerKind is the kind of the server at an address.
type ServerKind uint8

// The kinds of servers. The names are those of the Server Discovery and Monitoring specification;
// its PossiblePrimary is UnknownServer here.
const (
	UnknownServer ServerKind = iota // not checked yet, or the last check failed
	Standalone
	Mongos
	RSPrimary
	RSSecondary
	RSArbiter
	RSOther // a member that is hidden, starting up or recovering
	RSGhost // not, not yet, or no longer part of a replica set
	LoadBalancer
)

var serverKindNames = [...]string{
	UnknownServer: "Unknown",
	Standalone:    "Standalone",
	Mongos:        "Mongos",
	RSPrimary:     "RSPrimary",
	RSSecondary:   "RSSecondary",
	RSArbiter:     "RSArbiter",
	RSOther:       "RSOther",
	RSGhost:       "RSGhost",
	LoadBalancer:  "LoadBalancer",
}

// String returns the specification's name, for example "RSPrimary".
func (k ServerKind) String() string {
	if int(k) < len(serverKindNames) {
		return serverKindNames[k]
	}
	return fmt.Sprintf("ServerKind(%d)", uint8(k))
}

// DataBearing reports whether a server of this kind holds or routes application data.
func (k ServerKind) DataBearing() bool {
	switch k {
	case Standalone, Mongos, RSPrimary, RSSecondary, LoadBalancer:
		return true
	}
	return false
}

// TagSet is a set of replica set member tags, for example {"dc": "ny", "rack": "1"}.
type TagSet map[string]string

// Contains reports whether every tag of want is in s with the same value. Every set contains an
// empty want.
func (s TagSet) Contains(want TagSet) bool {
	for name, value := range want {
		if got, ok := s[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// String returns the tags in the order of their names, as {dc: ny, rack: 1}.
func (s TagSet) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ": " + s[name])
	}
	b.WriteByte('}')
	return b.String()
}

// TopologyVersion orders the replies in which one server process describes itself.
type TopologyVersion struct {
	ProcessID bson.ObjectID
	Counter   int64
}

// Compare returns -1, 0 or +1 when v is older than, the same as or newer than other. If the
// versions cannot be compared, because one is nil or another process made it, other counts as
// newer.
func (v *TopologyVersion) Compare(other *TopologyVersion) int {
	switch {
	case v == nil || other == nil || v.ProcessID != other.ProcessID || v.Counter < other.Counter:
		return -1
	case v.Counter > other.Counter:
		return 1
	}
	return 0
}

// OpTime is a position in the oplog of a replica set member.
type OpTime struct {
	Timestamp bson.Timestamp
	Term      int64
}

// ServerDescription is what the driver knows about one server: the outcome of its most recent
// check, or of the handshake of a connection. It is immutable. The fields are those of the Server
// Discovery and Monitoring specification. A field that the server did not send has its zero value.
type ServerDescription struct {
	Addr string // host:port as the driver connects to it, in lower case, or the path of a Unix domain socket
	Kind ServerKind

	// LastError is why the server is unknown, nil if it is known or was not checked yet.
	LastError error

	MinWireVersion int32
	MaxWireVersion int32

	Me       string   // the server's own name in the replica set configuration
	Hosts    []string // the members of the replica set, as this server sees it
	Passives []string // members with priority 0
	Arbiters []string
	Tags     TagSet
	SetName  string
	// SetVersion and ElectionID are nil if the server did not send them.
	SetVersion *int64
	ElectionID *bson.ObjectID
	Primary    string // the primary, as this server sees it

	// LastWriteDate is the zero time and OpTime nil if the server did not send them.
	LastWriteDate time.Time
	OpTime        *OpTime

	// SessionTimeoutMinutes is nil if the server does not support sessions.
	SessionTimeoutMinutes *int64
	TopologyVersion       *TopologyVersion

	// AverageRTT is the moving average of the round trip time, MinRTT the least of the most recent
	// ten. Both are 0 while the server is unknown, MinRTT also before there are two samples.
	AverageRTT time.Duration
	MinRTT     time.Duration
	// LastUpdate is when the server was last checked, the zero time if it never was.
	LastUpdate time.Time
	// HeartbeatInterval is the client's heartbeatFrequencyMS, used to estimate the staleness of
	// secondaries.
	HeartbeatInterval time.Duration

	MaxBSONObjectSize int32
	MaxMessageSize    int32
	MaxWriteBatchSize int32

	Compressors []string // those of the client's that the server accepts too
	HelloOK     bool     // the server answers hello
	Cryptd      bool     // the server is a mongocryptd

	// ServerConnectionID and ServiceID belong to the connection of a handshake. ServerConnectionID
	// is nil if the server did not send it, ServiceID unless the connection goes through a load
	// balancer.
	ServerConnectionID *int64
	ServiceID          *bson.ObjectID
}

// DataBearing reports whether the server is known and holds or routes application data.
func (d *ServerDescription) DataBearing() bool { return d.Kind.DataBearing() }

// Members returns the hosts, the passives and the arbiters of the server's replica set.
func (d *ServerDescription) Members() []string {
	return slices.Concat(d.Hosts, d.Passives, d.Arbiters)
}

// Equal reports whether two descriptions of one server are equal for a listener: round trip times
// and the times of updates and writes are ignored.
func (d *ServerDescription) Equal(o *ServerDescription) bool {
	if d == o {
		return true
	}
	return d.Addr == o.Addr && d.Kind == o.Kind && errorText(d.LastError) == errorText(o.LastError) &&
		d.MinWireVersion == o.MinWireVersion && d.MaxWireVersion == o.MaxWireVersion &&
		d.Me == o.Me && sameSet(d.Hosts, o.Hosts) && sameSet(d.Passives, o.Passives) &&
		sameSet(d.Arbiters, o.Arbiters) &&
		maps.Equal(d.Tags, o.Tags) && d.SetName == o.SetName && samePointee(d.SetVersion, o.SetVersion) &&
		samePointee(d.ElectionID, o.ElectionID) && d.Primary == o.Primary &&
		samePointee(d.SessionTimeoutMinutes, o.SessionTimeoutMinutes) &&
		samePointee(d.TopologyVersion, o.TopologyVersion) && d.Cryptd == o.Cryptd
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func samePointee[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameSet(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// String returns a short text for logs and error messages, for example
//
//	a:27017: RSSecondary, tags {dc: ny}, 1.2ms
func (d *ServerDescription) String() string {
	var b strings.Builder
	b.WriteString(d.Addr + ": " + d.Kind.String())
	if len(d.Tags) > 0 {
		b.WriteString(", tags " + d.Tags.String())
	}
	if d.AverageRTT > 0 {
		b.WriteString(", " + d.AverageRTT.Round(10*time.Microsecond).String())
	}
	if d.LastError != nil {
		b.WriteString(", last error: " + d.LastError.Error())
	}
	return b.String()
}
