package topology

import (
	"context"
	"log/slog"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/logging"
)

// Every function here publishes one event to the listener and the log, and costs next to nothing
// without them. The topology calls its functions under its lock, so that the order of the events is
// the order of the changes.

func (t *Topology) logs() bool {
	return t.cfg.Log != nil && t.cfg.Log.Enabled(context.Background(), logging.Topology, slog.LevelDebug)
}

// tell runs what may tell listeners while the topology's lock is held: whatever they do, the change
// that they are told of is made as a whole.
func (t *Topology) tell(f func()) {
	if t.cfg.Monitor != nil || t.cfg.Log != nil || t.cfg.Pool.Monitor != nil || t.cfg.Pool.Log != nil {
		t.mu.Tell(f)
	} else {
		f()
	}
}

func (t *Topology) log(message string, attrs ...slog.Attr) {
	all := make([]slog.Attr, 0, len(attrs)+1)
	all = append(append(all, slog.String("topologyId", t.id.Hex())), attrs...)
	t.cfg.Log.Log(context.Background(), logging.Topology, slog.LevelDebug, message, all...)
}

// warn logs a condition that a user should investigate.
func (t *Topology) warn(message string, attrs ...slog.Attr) {
	if ctx := context.Background(); t.cfg.Log != nil && t.cfg.Log.Enabled(ctx, logging.Topology, slog.LevelWarn) {
		all := append([]slog.Attr{slog.String("topologyId", t.id.Hex())}, attrs...)
		t.cfg.Log.Log(ctx, logging.Topology, slog.LevelWarn, message, all...)
	}
}

func (t *Topology) topologyOpening() {
	t.tell(func() { t.toldTopologyOpening() })
}

func (t *Topology) toldTopologyOpening() {
	t.recent.add("", "monitoring begins", nil)
	if m := t.cfg.Monitor; m != nil && m.TopologyOpening != nil {
		m.TopologyOpening(&event.TopologyOpening{TopologyID: t.id})
	}
	if t.logs() {
		t.log("Starting topology monitoring")
	}
}

func (t *Topology) topologyChanged(old, now *event.TopologyDescription) {
	t.tell(func() { t.toldTopologyChanged(old, now) })
}

func (t *Topology) toldTopologyChanged(old, now *event.TopologyDescription) {
	if old.Kind != now.Kind {
		t.recent.add("", old.Kind.String()+" -> "+now.Kind.String(), now.CompatibilityErr)
	}
	listens := t.cfg.Monitor != nil && t.cfg.Monitor.TopologyDescriptionChanged != nil
	logs := t.logs()
	if !listens && !logs || old.Equal(now) {
		return
	}
	if listens {
		t.cfg.Monitor.TopologyDescriptionChanged(&event.TopologyDescriptionChanged{
			TopologyID: t.id, PreviousDescription: old, NewDescription: now,
		})
	}
	if logs {
		t.log("Topology description changed",
			slog.String("previousDescription", old.String()), slog.String("newDescription", now.String()))
	}
}

func (t *Topology) topologyClosed() {
	t.tell(func() { t.toldTopologyClosed() })
}

func (t *Topology) toldTopologyClosed() {
	t.recent.add("", "monitoring ends", nil)
	if m := t.cfg.Monitor; m != nil && m.TopologyClosed != nil {
		m.TopologyClosed(&event.TopologyClosed{TopologyID: t.id})
	}
	if t.logs() {
		t.log("Stopped topology monitoring")
	}
}

func (t *Topology) serverOpening(addr string) {
	t.tell(func() { t.toldServerOpening(addr) })
}

func (t *Topology) toldServerOpening(addr string) {
	t.recent.add(addr, "joins", nil)
	if m := t.cfg.Monitor; m != nil && m.ServerOpening != nil {
		m.ServerOpening(&event.ServerOpening{Addr: addr, TopologyID: t.id})
	}
	if t.logs() {
		t.log("Starting server monitoring", logging.Server(nil, addr)...)
	}
}

// serverChanged logs nothing: the topology's message says the same.
func (t *Topology) serverChanged(old, now *event.ServerDescription) {
	t.tell(func() { t.toldServerChanged(old, now) })
}

func (t *Topology) toldServerChanged(old, now *event.ServerDescription) {
	if text, changed := change(old, now); changed {
		t.recent.add(now.Addr, text, now.LastError)
	}
	if m := t.cfg.Monitor; m != nil && m.ServerDescriptionChanged != nil && !old.Equal(now) {
		m.ServerDescriptionChanged(&event.ServerDescriptionChanged{
			Addr: now.Addr, TopologyID: t.id, PreviousDescription: old, NewDescription: now,
		})
	}
}

func (t *Topology) serverClosed(addr string) {
	t.tell(func() { t.toldServerClosed(addr) })
}

func (t *Topology) toldServerClosed(addr string) {
	t.recent.add(addr, "leaves", nil)
	if m := t.cfg.Monitor; m != nil && m.ServerClosed != nil {
		m.ServerClosed(&event.ServerClosed{Addr: addr, TopologyID: t.id})
	}
	if t.logs() {
		t.log("Stopped server monitoring", logging.Server(nil, addr)...)
	}
}

// heartbeat publishes the events of one check.
type heartbeat struct {
	monitor *monitor
	awaited bool
}

func (h *heartbeat) attrs(more ...slog.Attr) []slog.Attr {
	m := h.monitor
	attrs := logging.Server(make([]slog.Attr, 0, 8), m.server.addr)
	attrs = append(attrs, slog.Int64("driverConnectionId", m.connID))
	if m.serverID != nil {
		attrs = append(attrs, slog.Int64("serverConnectionId", *m.serverID))
	}
	return append(append(attrs, slog.Bool("awaited", h.awaited)), more...)
}

func (h *heartbeat) started() {
	m, t := h.monitor, h.monitor.server.topo
	if l := t.cfg.Monitor; l != nil && l.ServerHeartbeatStarted != nil {
		l.ServerHeartbeatStarted(&event.ServerHeartbeatStarted{
			Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID, Awaited: h.awaited,
		})
	}
	if t.logs() {
		t.log("Server heartbeat started", h.attrs()...)
	}
}

func (h *heartbeat) succeeded(took time.Duration, reply bson.Raw) {
	m, t := h.monitor, h.monitor.server.topo
	if l := t.cfg.Monitor; l != nil && l.ServerHeartbeatSucceeded != nil {
		l.ServerHeartbeatSucceeded(&event.ServerHeartbeatSucceeded{
			Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID,
			Awaited: h.awaited, Duration: took, Reply: reply,
		})
	}
	if t.logs() {
		t.log("Server heartbeat succeeded", h.attrs(logging.Millis("durationMS", took), slog.String("reply", t.cfg.Log.Document(reply)))...)
	}
}

func (h *heartbeat) failed(took time.Duration, err error) {
	m, t := h.monitor, h.monitor.server.topo
	if l := t.cfg.Monitor; l != nil && l.ServerHeartbeatFailed != nil {
		l.ServerHeartbeatFailed(&event.ServerHeartbeatFailed{
			Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID,
			Awaited: h.awaited, Duration: took, Failure: err,
		})
	}
	if t.logs() {
		t.log("Server heartbeat failed", h.attrs(logging.Millis("durationMS", took), slog.String("failure", err.Error()))...)
	}
}
