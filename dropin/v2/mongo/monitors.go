package mongo

import (
	"bytes"
	"context"
	"fmt"

	abson "allium/bson"
	aevent "allium/event"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

func connectionID(addr string, id int64) string { return fmt.Sprintf("%s[-%d]", addr, id) }

func commandMonitor(m *event.CommandMonitor) *aevent.CommandMonitor {
	if m == nil {
		return nil
	}
	out := &aevent.CommandMonitor{}
	if f := m.Started; f != nil {
		out.Started = func(ctx context.Context, e *aevent.CommandStarted) {
			f(ctx, &event.CommandStartedEvent{
				Command: shown(e.Command, nil), DatabaseName: e.DatabaseName, CommandName: e.CommandName,
				RequestID:    e.RequestID,
				ConnectionID: connectionID(e.Addr, e.DriverConnectionID), ServerConnectionID: e.ServerConnectionID,
				ServiceID: e.ServiceID,
			})
		}
	}
	if f := m.Succeeded; f != nil {
		out.Succeeded = func(ctx context.Context, e *aevent.CommandSucceeded) {
			finished := finishedEvent(&e.CommandInfo)
			finished.Duration = e.Duration
			f(ctx, &event.CommandSucceededEvent{CommandFinishedEvent: finished, Reply: shown(e.Reply, bson.Raw{})})
		}
	}
	if f := m.Failed; f != nil {
		out.Failed = func(ctx context.Context, e *aevent.CommandFailed) {
			finished := finishedEvent(&e.CommandInfo)
			finished.Duration = e.Duration
			f(ctx, &event.CommandFailedEvent{CommandFinishedEvent: finished, Failure: failure(e.Failure)})
		}
	}
	return out
}

// shown returns a command or a reply, which belongs to the program, or what stands for one that is
// not shown since it has secrets: in Allium's events that is a document without fields.
func shown(doc abson.Raw, secret bson.Raw) bson.Raw {
	if doc.IsEmpty() {
		return secret
	}
	return bson.Raw(bytes.Clone(doc))
}

func finishedEvent(e *aevent.CommandInfo) event.CommandFinishedEvent {
	return event.CommandFinishedEvent{
		CommandName: e.CommandName, DatabaseName: e.DatabaseName, RequestID: e.RequestID,
		ConnectionID: connectionID(e.Addr, e.DriverConnectionID), ServerConnectionID: e.ServerConnectionID,
		ServiceID: e.ServiceID,
	}
}

func poolMonitor(m *event.PoolMonitor) *aevent.PoolMonitor {
	if m == nil || m.Event == nil {
		return nil
	}
	tell := func(e event.PoolEvent) { m.Event(&e) }
	return &aevent.PoolMonitor{
		PoolCreated: func(e *aevent.PoolCreated) {
			tell(event.PoolEvent{Type: event.ConnectionPoolCreated, Address: e.Addr,
				PoolOptions: &event.MonitorPoolOptions{
					MaxPoolSize: uint64(e.Options.MaxPoolSize), MinPoolSize: uint64(e.Options.MinPoolSize),
					WaitQueueTimeoutMS: uint64(e.Options.WaitQueueTimeout.Milliseconds()),
				}})
		},
		PoolReady: func(e *aevent.PoolReady) {
			tell(event.PoolEvent{Type: event.ConnectionPoolReady, Address: e.Addr})
		},
		PoolCleared: func(e *aevent.PoolCleared) {
			tell(event.PoolEvent{Type: event.ConnectionPoolCleared, Address: e.Addr, ServiceID: e.ServiceID,
				Interruption: e.InterruptInUseConnections, Error: failure(e.Err)})
		},
		PoolClosed: func(e *aevent.PoolClosed) {
			tell(event.PoolEvent{Type: event.ConnectionPoolClosed, Address: e.Addr})
		},
		ConnectionCreated: func(e *aevent.ConnectionCreated) {
			tell(event.PoolEvent{Type: event.ConnectionCreated, Address: e.Addr, ConnectionID: e.ConnectionID})
		},
		ConnectionReady: func(e *aevent.ConnectionReady) {
			tell(event.PoolEvent{Type: event.ConnectionReady, Address: e.Addr, ConnectionID: e.ConnectionID,
				Duration: e.Duration})
		},
		ConnectionClosed: func(e *aevent.ConnectionClosed) {
			tell(event.PoolEvent{Type: event.ConnectionClosed, Address: e.Addr, ConnectionID: e.ConnectionID,
				Reason: e.Reason, Error: failure(e.Err)})
		},
		ConnectionCheckOutStarted: func(e *aevent.ConnectionCheckOutStarted) {
			tell(event.PoolEvent{Type: event.ConnectionCheckOutStarted, Address: e.Addr})
		},
		ConnectionCheckOutFailed: func(e *aevent.ConnectionCheckOutFailed) {
			tell(event.PoolEvent{Type: event.ConnectionCheckOutFailed, Address: e.Addr, Duration: e.Duration,
				Reason: e.Reason, Error: failure(e.Err)})
		},
		ConnectionCheckedOut: func(e *aevent.ConnectionCheckedOut) {
			tell(event.PoolEvent{Type: event.ConnectionCheckedOut, Address: e.Addr, ConnectionID: e.ConnectionID,
				Duration: e.Duration})
		},
		ConnectionCheckedIn: func(e *aevent.ConnectionCheckedIn) {
			tell(event.PoolEvent{Type: event.ConnectionCheckedIn, Address: e.Addr, ConnectionID: e.ConnectionID})
		},
	}
}

// serverMonitor returns Allium's monitor for one. Where states has a function for a kind of events,
// that is called in its place.
func serverMonitor(m *event.ServerMonitor, states *coding.States) *aevent.ServerMonitor {
	if m == nil {
		return nil
	}
	if states == nil {
		states = new(coding.States)
	}
	out := &aevent.ServerMonitor{}
	if f := m.TopologyOpening; f != nil {
		out.TopologyOpening = func(e *aevent.TopologyOpening) {
			f(&event.TopologyOpeningEvent{TopologyID: e.TopologyID})
		}
	}
	if f := m.TopologyClosed; f != nil {
		out.TopologyClosed = func(e *aevent.TopologyClosed) { f(&event.TopologyClosedEvent{TopologyID: e.TopologyID}) }
	}
	if f := m.TopologyDescriptionChanged; f != nil {
		out.TopologyDescriptionChanged = func(e *aevent.TopologyDescriptionChanged) {
			changed := &event.TopologyDescriptionChangedEvent{TopologyID: e.TopologyID,
				PreviousDescription: topologyEvent(e.PreviousDescription),
				NewDescription:      topologyEvent(e.NewDescription)}
			if states.Topology != nil {
				states.Topology(changed, serverStates(e.PreviousDescription), serverStates(e.NewDescription))
				return
			}
			f(changed)
		}
	}
	if f := m.ServerOpening; f != nil {
		out.ServerOpening = func(e *aevent.ServerOpening) {
			f(&event.ServerOpeningEvent{Address: address.Address(e.Addr), TopologyID: e.TopologyID})
		}
	}
	if f := m.ServerClosed; f != nil {
		out.ServerClosed = func(e *aevent.ServerClosed) {
			f(&event.ServerClosedEvent{Address: address.Address(e.Addr), TopologyID: e.TopologyID})
		}
	}
	if f := m.ServerDescriptionChanged; f != nil {
		out.ServerDescriptionChanged = func(e *aevent.ServerDescriptionChanged) {
			changed := &event.ServerDescriptionChangedEvent{Address: address.Address(e.Addr), TopologyID: e.TopologyID,
				PreviousDescription: serverEvent(e.PreviousDescription), NewDescription: serverEvent(e.NewDescription)}
			if states.Server != nil {
				states.Server(changed, serverState(e.PreviousDescription), serverState(e.NewDescription))
				return
			}
			f(changed)
		}
	}
	if f := m.ServerHeartbeatStarted; f != nil {
		out.ServerHeartbeatStarted = func(e *aevent.ServerHeartbeatStarted) {
			f(&event.ServerHeartbeatStartedEvent{ConnectionID: connectionID(e.Addr, e.DriverConnectionID),
				Awaited: e.Awaited})
		}
	}
	if f := m.ServerHeartbeatSucceeded; f != nil {
		out.ServerHeartbeatSucceeded = func(e *aevent.ServerHeartbeatSucceeded) {
			f(&event.ServerHeartbeatSucceededEvent{Duration: e.Duration, Reply: helloEvent(e.Addr, e.Reply),
				ConnectionID: connectionID(e.Addr, e.DriverConnectionID), Awaited: e.Awaited})
		}
	}
	if f := m.ServerHeartbeatFailed; f != nil {
		out.ServerHeartbeatFailed = func(e *aevent.ServerHeartbeatFailed) {
			f(&event.ServerHeartbeatFailedEvent{Duration: e.Duration, Failure: checkFailed(e.Failure),
				ConnectionID: connectionID(e.Addr, e.DriverConnectionID), Awaited: e.Awaited})
		}
	}
	return out
}

// serverState is what is known of a server besides what version 2's events have.
func serverState(d *aevent.ServerDescription) coding.ServerState {
	if d == nil {
		return coding.ServerState{}
	}
	return coding.ServerState{AverageRTT: d.AverageRTT, HeartbeatInterval: d.HeartbeatInterval,
		LastError: checkFailed(d.LastError), LastUpdateTime: d.LastUpdate}
}

func serverStates(d *aevent.TopologyDescription) []coding.ServerState {
	if d == nil {
		return nil
	}
	out := make([]coding.ServerState, len(d.Servers))
	for i, s := range d.Servers {
		out[i] = serverState(s)
	}
	return out
}

func serverEvent(d *aevent.ServerDescription) event.ServerDescription {
	if d == nil {
		return event.ServerDescription{}
	}
	out := event.ServerDescription{
		Addr: address.Address(d.Addr), Arbiters: d.Arbiters, Compression: d.Compressors,
		CanonicalAddr: address.Address(d.Me), IsCryptd: d.Cryptd,
		HelloOK: d.HelloOK, Hosts: d.Hosts, Kind: d.Kind.String(), LastWriteTime: d.LastWriteDate,
		MaxBatchCount:   uint32(d.MaxWriteBatchSize),
		MaxDocumentSize: uint32(d.MaxBSONObjectSize), MaxMessageSize: uint32(d.MaxMessageSize),
		MaxWireVersion: d.MaxWireVersion, MinWireVersion: d.MinWireVersion,
		Members: addresses(d.Members()), Passives: d.Passives, Primary: address.Address(d.Primary),
		ServiceID:             d.ServiceID,
		SessionTimeoutMinutes: d.SessionTimeoutMinutes, SetName: d.SetName, Tags: tagSet(d.Tags),
	}
	if d.Kind == aevent.UnknownServer {
		out.Kind = description.UnknownStr
	}
	if d.ElectionID != nil {
		out.ElectionID = *d.ElectionID
	}
	if d.SetVersion != nil {
		out.SetVersion = uint32(*d.SetVersion)
	}
	if v := d.TopologyVersion; v != nil {
		out.TopologyVersionProcessID, out.TopologyVersionCounter = v.ProcessID, v.Counter
	}
	return out
}

func addresses(hosts []string) []address.Address {
	var out []address.Address
	for _, h := range hosts {
		out = append(out, address.Address(h).Canonicalize())
	}
	return out
}

func topologyEvent(d *aevent.TopologyDescription) event.TopologyDescription {
	if d == nil {
		return event.TopologyDescription{}
	}
	out := event.TopologyDescription{SetName: d.SetName, Kind: d.Kind.String(),
		SessionTimeoutMinutes: d.SessionTimeoutMinutes, CompatibilityErr: d.CompatibilityErr,
		Servers: make([]event.ServerDescription, 0, len(d.Servers))}
	for _, s := range d.Servers {
		out.Servers = append(out.Servers, serverEvent(s))
	}
	return out
}

// helloEvent describes a server by its reply to a hello.
func helloEvent(addr string, reply []byte) event.ServerDescription {
	d := event.ServerDescription{Addr: address.Address(addr), Kind: description.UnknownStr}
	var hello struct {
		Hosts       []string
		Passives    []string
		Arbiters    []string
		Me          string
		Primary     string
		SetName     string `bson:"setName"`
		SetVersion  uint32 `bson:"setVersion"`
		Writable    bool   `bson:"isWritablePrimary"`
		Master      bool   `bson:"ismaster"`
		Secondary   bool
		ArbiterOnly bool `bson:"arbiterOnly"`
		Hidden      bool
		Passive     bool
		ReadOnly    bool `bson:"readOnly"`
		HelloOK     bool `bson:"helloOk"`
		Msg         string
		ReplicaSet  bool          `bson:"isreplicaset"`
		MaxBatch    uint32        `bson:"maxWriteBatchSize"`
		MaxDocument uint32        `bson:"maxBsonObjectSize"`
		MaxMessage  uint32        `bson:"maxMessageSizeBytes"`
		MaxWire     int32         `bson:"maxWireVersion"`
		MinWire     int32         `bson:"minWireVersion"`
		Timeout     *int64        `bson:"logicalSessionTimeoutMinutes"`
		ElectionID  bson.ObjectID `bson:"electionId"`
		Compression []string
		Tags        map[string]string
		LastWrite   struct {
			Date bson.DateTime `bson:"lastWriteDate"`
		} `bson:"lastWrite"`
		Version struct {
			ProcessID bson.ObjectID `bson:"processId"`
			Counter   int64
		} `bson:"topologyVersion"`
	}
	if bson.Unmarshal(reply, &hello) != nil {
		return d
	}
	switch {
	case hello.ReplicaSet:
		d.Kind = "RSGhost"
	case hello.SetName != "" && (hello.Writable || hello.Master):
		d.Kind = "RSPrimary"
	case hello.SetName != "" && hello.Hidden:
		d.Kind = "RSOther"
	case hello.SetName != "" && hello.Secondary:
		d.Kind = "RSSecondary"
	case hello.SetName != "" && hello.ArbiterOnly:
		d.Kind = "RSArbiter"
	case hello.SetName != "":
		d.Kind = "RSOther"
	case hello.Msg == "isdbgrid":
		d.Kind = "Mongos"
	default:
		d.Kind = "Standalone"
	}
	d.Hosts, d.Passives, d.Arbiters, d.CanonicalAddr, d.Primary = hello.Hosts, hello.Passives, hello.Arbiters,
		address.Address(hello.Me), address.Address(hello.Primary)
	d.SetName, d.SetVersion, d.HelloOK, d.Passive, d.ReadOnly, d.Compression = hello.SetName, hello.SetVersion,
		hello.HelloOK, hello.Passive, hello.ReadOnly, hello.Compression
	d.MaxBatchCount, d.MaxDocumentSize, d.MaxMessageSize, d.MaxWireVersion, d.MinWireVersion = hello.MaxBatch,
		hello.MaxDocument, hello.MaxMessage, hello.MaxWire, hello.MinWire
	d.SessionTimeoutMinutes, d.ElectionID, d.Tags = hello.Timeout, hello.ElectionID, tagSet(hello.Tags)
	d.TopologyVersionProcessID, d.TopologyVersionCounter = hello.Version.ProcessID, hello.Version.Counter
	if hello.LastWrite.Date != 0 {
		d.LastWriteTime = hello.LastWrite.Date.Time()
	}
	d.Members = addresses(append(append(append([]string{}, hello.Hosts...), hello.Passives...), hello.Arbiters...))
	return d
}

// topologyDescription is what is known of a deployment, for an error of server selection.
func topologyDescription(d *aevent.TopologyDescription) description.Topology {
	if d == nil {
		return description.Topology{}
	}
	out := description.Topology{SetName: d.SetName, Kind: description.TopologyKindOf(d.Kind.String()),
		SessionTimeoutMinutes: d.SessionTimeoutMinutes, CompatibilityErr: d.CompatibilityErr}
	for _, s := range d.Servers {
		e := serverEvent(s)
		out.Servers = append(out.Servers, description.Server{
			Addr: e.Addr, Arbiters: e.Arbiters, AverageRTT: s.AverageRTT, AverageRTTSet: s.AverageRTT > 0,
			Compression: e.Compression, CanonicalAddr: e.CanonicalAddr,
			ElectionID: e.ElectionID, HeartbeatInterval: s.HeartbeatInterval, HelloOK: e.HelloOK, Hosts: e.Hosts,
			IsCryptd: e.IsCryptd, LastError: checkFailed(s.LastError),
			LastUpdateTime: s.LastUpdate, LastWriteTime: e.LastWriteTime, MaxBatchCount: e.MaxBatchCount,
			MaxDocumentSize: e.MaxDocumentSize,
			MaxMessageSize:  e.MaxMessageSize, Members: e.Members, Passives: e.Passives, Primary: e.Primary,
			ServiceID:             e.ServiceID,
			SessionTimeoutMinutes: e.SessionTimeoutMinutes, SetName: e.SetName, SetVersion: e.SetVersion, Tags: e.Tags,
			Kind:        description.ServerKindOf(e.Kind),
			WireVersion: &description.VersionRange{Min: e.MinWireVersion, Max: e.MaxWireVersion},
		})
	}
	return out
}
