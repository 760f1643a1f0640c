package mongo

import (
	"context"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/event"
	"go.mongodb.org/mongo-driver/mongo/description"
	v2event "go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	v2description "go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// small returns a number of a connection as 32 bits, nil if it has more.
func small(n *int64) *int32 {
	if n == nil || *n > math.MaxInt32 || *n < math.MinInt32 {
		return nil
	}
	i := int32(*n)
	return &i
}

func finished(e *v2event.CommandFinishedEvent) event.CommandFinishedEvent {
	return event.CommandFinishedEvent{
		DurationNanos: int64(e.Duration), Duration: e.Duration, CommandName: e.CommandName,
		DatabaseName: e.DatabaseName, RequestID: e.RequestID,
		ConnectionID: e.ConnectionID, ServerConnectionID: small(e.ServerConnectionID),
		ServerConnectionID64: e.ServerConnectionID, ServiceID: e.ServiceID,
	}
}

func commandMonitor(m *event.CommandMonitor) *v2event.CommandMonitor {
	if m == nil {
		return nil
	}
	out := new(v2event.CommandMonitor)
	if f := m.Started; f != nil {
		out.Started = func(ctx context.Context, e *v2event.CommandStartedEvent) {
			f(ctx, &event.CommandStartedEvent{
				Command: bson.Raw(e.Command), DatabaseName: e.DatabaseName, CommandName: e.CommandName,
				RequestID: e.RequestID, ConnectionID: e.ConnectionID,
				ServerConnectionID: small(e.ServerConnectionID), ServerConnectionID64: e.ServerConnectionID,
				ServiceID: e.ServiceID,
			})
		}
	}
	if f := m.Succeeded; f != nil {
		out.Succeeded = func(ctx context.Context, e *v2event.CommandSucceededEvent) {
			f(ctx, &event.CommandSucceededEvent{CommandFinishedEvent: finished(&e.CommandFinishedEvent),
				Reply: bson.Raw(e.Reply)})
		}
	}
	if f := m.Failed; f != nil {
		out.Failed = func(ctx context.Context, e *v2event.CommandFailedEvent) {
			text := ""
			if e.Failure != nil {
				text = failure(e.Failure).Error()
			}
			f(ctx, &event.CommandFailedEvent{CommandFinishedEvent: finished(&e.CommandFinishedEvent), Failure: text})
		}
	}
	return out
}

func poolMonitor(m *event.PoolMonitor) *v2event.PoolMonitor {
	if m == nil || m.Event == nil {
		return nil
	}
	return &v2event.PoolMonitor{Event: func(e *v2event.PoolEvent) {
		m.Event(&event.PoolEvent{
			Type: e.Type, Address: e.Address, ConnectionID: uint64(e.ConnectionID),
			PoolOptions: (*event.MonitorPoolOptions)(e.PoolOptions),
			Duration:    e.Duration, Reason: e.Reason, ServiceID: e.ServiceID, Interruption: e.Interruption,
			Error: failure(e.Error),
		})
	}}
}

func serverMonitor(m *event.ServerMonitor) *v2event.ServerMonitor {
	if m == nil {
		return nil
	}
	out := new(v2event.ServerMonitor)
	if m.ServerDescriptionChanged != nil { // described has what is called
		out.ServerDescriptionChanged = func(*v2event.ServerDescriptionChangedEvent) {}
	}
	if f := m.ServerOpening; f != nil {
		out.ServerOpening = func(e *v2event.ServerOpeningEvent) {
			f(&event.ServerOpeningEvent{Address: e.Address, TopologyID: e.TopologyID})
		}
	}
	if f := m.ServerClosed; f != nil {
		out.ServerClosed = func(e *v2event.ServerClosedEvent) {
			f(&event.ServerClosedEvent{Address: e.Address, TopologyID: e.TopologyID})
		}
	}
	if m.TopologyDescriptionChanged != nil {
		out.TopologyDescriptionChanged = func(*v2event.TopologyDescriptionChangedEvent) {}
	}
	if f := m.TopologyOpening; f != nil {
		out.TopologyOpening = func(e *v2event.TopologyOpeningEvent) {
			f(&event.TopologyOpeningEvent{TopologyID: e.TopologyID})
		}
	}
	if f := m.TopologyClosed; f != nil {
		out.TopologyClosed = func(e *v2event.TopologyClosedEvent) {
			f(&event.TopologyClosedEvent{TopologyID: e.TopologyID})
		}
	}
	if f := m.ServerHeartbeatStarted; f != nil {
		out.ServerHeartbeatStarted = func(e *v2event.ServerHeartbeatStartedEvent) {
			f(&event.ServerHeartbeatStartedEvent{ConnectionID: e.ConnectionID, Awaited: e.Awaited})
		}
	}
	if f := m.ServerHeartbeatSucceeded; f != nil {
		out.ServerHeartbeatSucceeded = func(e *v2event.ServerHeartbeatSucceededEvent) {
			f(&event.ServerHeartbeatSucceededEvent{
				DurationNanos: int64(e.Duration), Duration: e.Duration,
				Reply:        serverOf(e.Reply, coding.ServerState{LastUpdateTime: time.Now()}),
				ConnectionID: e.ConnectionID, Awaited: e.Awaited,
			})
		}
	}
	if f := m.ServerHeartbeatFailed; f != nil {
		out.ServerHeartbeatFailed = func(e *v2event.ServerHeartbeatFailedEvent) {
			f(&event.ServerHeartbeatFailedEvent{
				DurationNanos: int64(e.Duration), Duration: e.Duration, Failure: failure(e.Failure),
				ConnectionID: e.ConnectionID, Awaited: e.Awaited,
			})
		}
	}
	return out
}

// described returns what tells the monitor of descriptions, nil if there is no monitor.
func described(m *event.ServerMonitor) *coding.States {
	if m == nil {
		return nil
	}
	out := new(coding.States)
	if f := m.ServerDescriptionChanged; f != nil {
		out.Server = func(changed any, previous, next coding.ServerState) {
			e := changed.(*v2event.ServerDescriptionChangedEvent)
			f(&event.ServerDescriptionChangedEvent{
				Address: e.Address, TopologyID: e.TopologyID,
				PreviousDescription: serverOf(e.PreviousDescription, previous),
				NewDescription:      serverOf(e.NewDescription, next),
			})
		}
	}
	if f := m.TopologyDescriptionChanged; f != nil {
		out.Topology = func(changed any, previous, next []coding.ServerState) {
			e := changed.(*v2event.TopologyDescriptionChangedEvent)
			f(&event.TopologyDescriptionChangedEvent{
				TopologyID: e.TopologyID, PreviousDescription: deploymentOf(e.PreviousDescription, previous),
				NewDescription: deploymentOf(e.NewDescription, next),
			})
		}
	}
	return out
}

func serverOf(s v2event.ServerDescription, state coding.ServerState) description.Server {
	out := description.Server{
		Addr: s.Addr, Arbiters: s.Arbiters, Compression: s.Compression, CanonicalAddr: s.CanonicalAddr,
		ElectionID: s.ElectionID, HelloOK: s.HelloOK,
		Hosts: s.Hosts, IsCryptd: s.IsCryptd, LastWriteTime: s.LastWriteTime, MaxBatchCount: s.MaxBatchCount,
		MaxDocumentSize: s.MaxDocumentSize,
		MaxMessageSize:  s.MaxMessageSize, Members: s.Members, Passives: s.Passives, Passive: s.Passive,
		Primary: s.Primary, ReadOnly: s.ReadOnly,
		ServiceID: s.ServiceID, SessionTimeoutMinutesPtr: s.SessionTimeoutMinutes, SetName: s.SetName,
		SetVersion: s.SetVersion, Tags: s.Tags,
		Kind:       description.ServerKind(v2description.ServerKindOf(s.Kind)),
		AverageRTT: state.AverageRTT, AverageRTTSet: state.AverageRTT > 0,
		HeartbeatInterval: state.HeartbeatInterval, LastError: failure(state.LastError),
		LastUpdateTime: state.LastUpdateTime,
	}
	if n := s.SessionTimeoutMinutes; n != nil {
		out.SessionTimeoutMinutes = uint32(*n)
	}
	if s.MaxWireVersion > 0 {
		out.WireVersion = &description.VersionRange{Min: s.MinWireVersion, Max: s.MaxWireVersion}
	}
	if !s.TopologyVersionProcessID.IsZero() {
		out.TopologyVersion = &description.TopologyVersion{ProcessID: s.TopologyVersionProcessID,
			Counter: s.TopologyVersionCounter}
	}
	return out
}

func deploymentOf(t v2event.TopologyDescription, states []coding.ServerState) description.Topology {
	out := description.Topology{
		SetName: t.SetName, Kind: description.TopologyKind(v2description.TopologyKindOf(t.Kind)),
		SessionTimeoutMinutesPtr: t.SessionTimeoutMinutes, CompatibilityErr: t.CompatibilityErr,
	}
	if n := t.SessionTimeoutMinutes; n != nil {
		out.SessionTimeoutMinutes = uint32(*n)
	}
	for i, s := range t.Servers {
		out.Servers = append(out.Servers, serverOf(s, states[i]))
	}
	return out
}
