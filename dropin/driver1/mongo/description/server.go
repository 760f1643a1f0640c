// Package description has what is known of servers and deployments, and chooses servers by it.
package description

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/mongo/address"
	"go.mongodb.org/mongo-driver/tag"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// Unknown is the kind of what was not found out yet.
const Unknown = 0

// A ServerKind is the kind of a server.
type ServerKind uint32

// The kinds of servers.
const (
	Standalone   ServerKind = 1
	RSMember     ServerKind = 2
	RSPrimary    ServerKind = 4 + RSMember
	RSSecondary  ServerKind = 8 + RSMember
	RSArbiter    ServerKind = 16 + RSMember
	RSGhost      ServerKind = 32 + RSMember
	Mongos       ServerKind = 256
	LoadBalancer ServerKind = 512
)

// String returns the name.
func (kind ServerKind) String() string { return description.ServerKind(kind).String() }

// A Server is what is known of a server.
type Server struct {
	Addr address.Address

	Arbiters          []string
	AverageRTT        time.Duration
	AverageRTTSet     bool
	Compression       []string
	CanonicalAddr     address.Address
	ElectionID        primitive.ObjectID
	HeartbeatInterval time.Duration
	HelloOK           bool
	Hosts             []string
	IsCryptd          bool
	LastError         error
	LastUpdateTime    time.Time
	LastWriteTime     time.Time
	MaxBatchCount     uint32
	MaxDocumentSize   uint32
	MaxMessageSize    uint32
	Members           []address.Address
	Passives          []string
	Passive           bool
	Primary           address.Address
	ReadOnly          bool
	ServiceID         *primitive.ObjectID
	// Deprecated: use SessionTimeoutMinutesPtr.
	SessionTimeoutMinutes    uint32
	SessionTimeoutMinutesPtr *int64
	SetName                  string
	SetVersion               uint32
	Tags                     tag.Set
	TopologyVersion          *TopologyVersion
	Kind                     ServerKind
	WireVersion              *VersionRange
}

// NewDefaultServer returns what is known of a server before it has answered.
func NewDefaultServer(addr address.Address) Server { return NewServerFromError(addr, nil, nil) }

// NewServerFromError returns what is known of a server that has not answered.
func NewServerFromError(addr address.Address, err error, tv *TopologyVersion) Server {
	return Server{Addr: addr, LastError: err, Kind: Unknown, TopologyVersion: tv}
}

// NewServer returns what a server says of itself in its reply to hello.
func NewServer(addr address.Address, response bson.Raw) Server {
	s := Server{Addr: addr, CanonicalAddr: addr, LastUpdateTime: time.Now().UTC()}
	elements, err := response.Elements()
	if err != nil {
		s.LastError = err
		return s
	}
	var (
		ok, primary, secondary, arbiter, hidden, replicaSet bool
		message                                             string
		wire                                                VersionRange
	)
	for _, e := range elements {
		v := e.Value()
		good := true
		switch e.Key() {
		case "arbiters":
			s.Arbiters, good = texts(v)
		case "arbiterOnly":
			arbiter, good = v.BooleanOK()
		case "compression":
			s.Compression, good = texts(v)
		case "electionId":
			s.ElectionID, good = v.ObjectIDOK()
		case "iscryptd":
			s.IsCryptd, good = v.BooleanOK()
		case "helloOk":
			s.HelloOK, good = v.BooleanOK()
		case "hidden":
			hidden, good = v.BooleanOK()
		case "hosts":
			s.Hosts, good = texts(v)
		case "ismaster", "isWritablePrimary":
			primary, good = v.BooleanOK()
		case "isreplicaset":
			replicaSet, good = v.BooleanOK()
		case "lastWrite":
			var date time.Time
			if date, good = v.Document().Lookup("lastWriteDate").TimeOK(); good {
				s.LastWriteTime = date
			} else {
				good = true
			}
		case "logicalSessionTimeoutMinutes":
			var n int64
			if n, good = v.AsInt64OK(); good {
				s.SessionTimeoutMinutes, s.SessionTimeoutMinutesPtr = uint32(n), &n
			}
		case "maxBsonObjectSize":
			good = number(v, &s.MaxDocumentSize)
		case "maxMessageSizeBytes":
			good = number(v, &s.MaxMessageSize)
		case "maxWriteBatchSize":
			good = number(v, &s.MaxBatchCount)
		case "me":
			var me string
			me, good = v.StringValueOK()
			s.CanonicalAddr = address.Address(me).Canonicalize()
		case "maxWireVersion":
			wire.Max, good = v.AsInt32OK()
		case "minWireVersion":
			wire.Min, good = v.AsInt32OK()
		case "msg":
			message, good = v.StringValueOK()
		case "ok":
			var n int32
			n, good = v.AsInt32OK()
			ok = n == 1
		case "passives":
			s.Passives, good = texts(v)
		case "passive":
			s.Passive, good = v.BooleanOK()
		case "primary":
			var p string
			p, good = v.StringValueOK()
			s.Primary = address.Address(p)
		case "readOnly":
			s.ReadOnly, good = v.BooleanOK()
		case "secondary":
			secondary, good = v.BooleanOK()
		case "serviceId":
			var id primitive.ObjectID
			if id, good = v.ObjectIDOK(); good {
				s.ServiceID = &id
			}
		case "setName":
			s.SetName, good = v.StringValueOK()
		case "setVersion":
			good = number(v, &s.SetVersion)
		case "tags":
			tags := map[string]string{}
			if good = v.Unmarshal(&tags) == nil; good {
				s.Tags = tag.NewTagSetFromMap(tags)
			}
		case "topologyVersion":
			var doc bson.Raw
			if doc, good = v.DocumentOK(); good {
				s.TopologyVersion, err = NewTopologyVersion(doc)
				good = err == nil
			}
		}
		if !good {
			s.LastError = fmt.Errorf("the reply to hello has a field %q of the type %s", e.Key(), v.Type)
			return s
		}
	}
	for _, host := range slices.Concat(s.Hosts, s.Passives, s.Arbiters) {
		s.Members = append(s.Members, address.Address(host).Canonicalize())
	}
	s.Kind = Standalone
	switch {
	case !ok:
		s.LastError = errors.New("not ok")
		s.Kind = Unknown
		return s
	case replicaSet:
		s.Kind = RSGhost
	case message == "isdbgrid":
		s.Kind = Mongos
	case s.SetName == "":
	case primary:
		s.Kind = RSPrimary
	case hidden:
		s.Kind = RSMember
	case secondary:
		s.Kind = RSSecondary
	case arbiter:
		s.Kind = RSArbiter
	default:
		s.Kind = RSMember
	}
	s.WireVersion = &wire
	return s
}

func texts(v bson.RawValue) (list []string, ok bool) {
	array, ok := v.ArrayOK()
	if !ok {
		return nil, false
	}
	values, err := array.Values()
	if err != nil {
		return nil, false
	}
	for _, v := range values {
		s, ok := v.StringValueOK()
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

func number(v bson.RawValue, to *uint32) bool {
	n, ok := v.AsInt64OK()
	*to = uint32(n)
	return ok
}

// SetAverageRTT returns the description with a round-trip time.
func (s Server) SetAverageRTT(rtt time.Duration) Server {
	s.AverageRTT, s.AverageRTTSet = rtt, true
	return s
}

// DataBearing reports whether the server has data.
func (s Server) DataBearing() bool {
	switch s.Kind {
	case RSPrimary, RSSecondary, Mongos, Standalone:
		return true
	}
	return false
}

// LoadBalanced reports whether the server is a load balancer, or behind one.
func (s Server) LoadBalanced() bool { return s.Kind == LoadBalancer || s.ServiceID != nil }

// Equal reports whether what two descriptions say is the same, except for times.
func (s Server) Equal(other Server) bool {
	if (s.LastError == nil) != (other.LastError == nil) ||
		s.LastError != nil && s.LastError.Error() != other.LastError.Error() {
		return false
	}
	if !s.WireVersion.Equals(other.WireVersion) || len(s.Tags) != len(other.Tags) || !s.Tags.ContainsAll(other.Tags) {
		return false
	}
	if !equal(s.SessionTimeoutMinutesPtr, other.SessionTimeoutMinutesPtr) {
		return false
	}
	if s.TopologyVersion.CompareToIncoming(other.TopologyVersion) != 0 {
		return false
	}
	return s.CanonicalAddr.String() == other.CanonicalAddr.String() && same(s.Arbiters, other.Arbiters) &&
		same(s.Hosts, other.Hosts) &&
		same(s.Passives, other.Passives) && s.Primary == other.Primary && s.SetName == other.SetName &&
		s.Kind == other.Kind &&
		s.SetVersion == other.SetVersion && s.ElectionID == other.ElectionID
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// same reports whether both have the same texts, in whatever order.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
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

// A TopologyVersion orders what a server says of itself.
type TopologyVersion struct {
	ProcessID primitive.ObjectID
	Counter   int64
}

// NewTopologyVersion reads a TopologyVersion.
func NewTopologyVersion(doc bson.Raw) (*TopologyVersion, error) {
	var tv TopologyVersion
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		ok := true
		switch e.Key() {
		case "processId":
			tv.ProcessID, ok = e.Value().ObjectIDOK()
		case "counter":
			tv.Counter, ok = e.Value().Int64OK()
		}
		if !ok {
			return nil, fmt.Errorf("the topology version has a field %q of the type %s", e.Key(), e.Value().Type)
		}
	}
	return &tv, nil
}

// CompareToIncoming returns -1, 0 or +1 as tv is older than, as old as or newer than responseTV.
// Without both, or of different processes, it counts as older.
func (tv *TopologyVersion) CompareToIncoming(responseTV *TopologyVersion) int {
	switch {
	case tv == nil && responseTV == nil:
		return 0
	case tv == nil || responseTV == nil || tv.ProcessID != responseTV.ProcessID || tv.Counter < responseTV.Counter:
		return -1
	case tv.Counter > responseTV.Counter:
		return 1
	}
	return 0
}

// A VersionRange are the versions of the wire protocol that a server has.
type VersionRange struct {
	Min int32
	Max int32
}

// NewVersionRange returns a VersionRange.
func NewVersionRange(min, max int32) VersionRange { return VersionRange{Min: min, Max: max} }

// Includes reports whether v is one of the versions.
func (vr VersionRange) Includes(v int32) bool { return v >= vr.Min && v <= vr.Max }

// Equals reports whether both are the same.
func (vr *VersionRange) Equals(other *VersionRange) bool {
	return vr == other || vr != nil && other != nil && *vr == *other
}

// String returns both ends.
func (vr VersionRange) String() string { return fmt.Sprintf("[%d, %d]", vr.Min, vr.Max) }
