package topology

import (
	"context"
	"log/slog"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/logging"
)

// Every function here queues one event for the listener and the log, and costs next to nothing
// without them. The topology calls its functions under its lock, so that the order of the events is
// the order of the changes (specification: SDAM Logging and Monitoring, "Event Order and
// Concurrency"); see flight.Deliveries.

// tell queues an event for the function of the listener that wants it, which may be nil.
func tell[E any](t *Topology, listener func(*E), e E) {
	if listener != nil {
		t.events.Add(func() { listener(&e) })
	}
}

// listener returns the program's, or one that wants nothing.
func (t *Topology) listener() *event.ServerMonitor {
	if t.cfg.Monitor == nil {
		return &event.ServerMonitor{}
	}
	return t.cfg.Monitor
}

// log queues a message, if there is a log. attrs is called when its turn has come, and if somebody
// wants to read it.
func (t *Topology) log(level slog.Level, message string, attrs func() []slog.Attr) {
	l := t.cfg.Log
	if l == nil {
		return
	}
	t.events.Add(func() {
		if ctx := context.Background(); l.Enabled(ctx, logging.Topology, level) {
			l.Log(ctx, logging.Topology, level, message,
				append([]slog.Attr{slog.String("topologyId", t.id.Hex())}, attrs()...)...)
		}
	})
}

// debug logs what the specification has logged.
func (t *Topology) debug(message string, attrs func() []slog.Attr) {
	t.log(slog.LevelDebug, message, attrs)
}

// warn logs a condition that a user should investigate.
func (t *Topology) warn(message string, attrs ...slog.Attr) {
	t.log(slog.LevelWarn, message, func() []slog.Attr { return attrs })
}

func nothing() []slog.Attr { return nil }

func at(addr string) func() []slog.Attr {
	return func() []slog.Attr { return logging.Server(nil, addr) }
}

func (t *Topology) topologyOpening() {
	t.recent.add("", "monitoring begins", nil)
	tell(t, t.listener().TopologyOpening, event.TopologyOpening{TopologyID: t.id})
	t.debug("Starting topology monitoring", nothing)
}

func (t *Topology) topologyChanged(old, now *event.TopologyDescription) {
	if old.Kind != now.Kind {
		t.recent.add("", old.Kind.String()+" -> "+now.Kind.String(), now.CompatibilityErr)
	}
	listener := t.listener().TopologyDescriptionChanged
	if listener == nil && t.cfg.Log == nil || old.Equal(now) {
		return
	}
	tell(t, listener, event.TopologyDescriptionChanged{TopologyID: t.id, PreviousDescription: old, NewDescription: now})
	t.debug("Topology description changed", func() []slog.Attr {
		return []slog.Attr{slog.String("previousDescription", old.String()),
			slog.String("newDescription", now.String())}
	})
}

func (t *Topology) topologyClosed() {
	t.recent.add("", "monitoring ends", nil)
	tell(t, t.listener().TopologyClosed, event.TopologyClosed{TopologyID: t.id})
	t.debug("Stopped topology monitoring", nothing)
}

func (t *Topology) serverOpening(addr string) {
	t.recent.add(addr, "joins", nil)
	tell(t, t.listener().ServerOpening, event.ServerOpening{Addr: addr, TopologyID: t.id})
	t.debug("Starting server monitoring", at(addr))
}

// serverChanged logs nothing: the topology's message says the same.
func (t *Topology) serverChanged(old, now *event.ServerDescription) {
	if text, changed := change(old, now); changed {
		t.recent.add(now.Addr, text, now.LastError)
	}
	if listener := t.listener().ServerDescriptionChanged; listener != nil && !old.Equal(now) {
		tell(t, listener, event.ServerDescriptionChanged{Addr: now.Addr, TopologyID: t.id, PreviousDescription: old,
			NewDescription: now})
	}
}

func (t *Topology) serverClosed(addr string) {
	t.recent.add(addr, "leaves", nil)
	tell(t, t.listener().ServerClosed, event.ServerClosed{Addr: addr, TopologyID: t.id})
	t.debug("Stopped server monitoring", at(addr))
}

// heartbeat publishes the events of one check.
type heartbeat struct {
	monitor *monitor
	awaited bool
	since   time.Time
	slow    bool // the listener is; see told
}

// debug queues a message about the check; more are the attributes that the others have not.
func (h *heartbeat) debug(message string, more func() []slog.Attr) {
	addr, connID, serverID, awaited := h.monitor.server.addr, h.monitor.connID, h.monitor.serverID, h.awaited
	h.monitor.server.topo.debug(message, func() []slog.Attr {
		attrs := logging.Server(make([]slog.Attr, 0, 8), addr)
		attrs = append(attrs, slog.Int64("driverConnectionId", connID))
		if serverID != nil {
			attrs = append(attrs, slog.Int64("serverConnectionId", *serverID))
		}
		return append(append(attrs, slog.Bool("awaited", awaited)), more()...)
	})
}

// told returns when the listener has been told, unless that takes long, which is waited for once in
// a check: it hears of the check before the server does, and of its end before a pool's listener
// hears of what follows from that.
func (h *heartbeat) told() {
	if t := h.monitor.server.topo; (t.cfg.Monitor != nil || t.cfg.Log != nil) && !h.slow {
		h.slow = !t.events.Pace(h.monitor.life, MinHeartbeatInterval)
	}
}

func (h *heartbeat) started() {
	m, t := h.monitor, h.monitor.server.topo
	m.beat = h
	tell(t, t.listener().ServerHeartbeatStarted, event.ServerHeartbeatStarted{
		Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID,
		Awaited: h.awaited,
	})
	h.debug("Server heartbeat started", nothing)
	h.told()
}

func (h *heartbeat) succeeded(took time.Duration, reply bson.Raw) {
	m, t := h.monitor, h.monitor.server.topo
	m.beat = nil
	tell(t, t.listener().ServerHeartbeatSucceeded, event.ServerHeartbeatSucceeded{
		Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID,
		Awaited: h.awaited, Duration: took, Reply: reply,
	})
	h.debug("Server heartbeat succeeded", func() []slog.Attr {
		return []slog.Attr{logging.Millis("durationMS", took), slog.String("reply", t.cfg.Log.Document(reply))}
	})
	h.told()
}

func (h *heartbeat) failed(took time.Duration, err error) {
	m, t := h.monitor, h.monitor.server.topo
	m.beat = nil
	tell(t, t.listener().ServerHeartbeatFailed, event.ServerHeartbeatFailed{
		Addr: m.server.addr, TopologyID: t.id, DriverConnectionID: m.connID, ServerConnectionID: m.serverID,
		Awaited: h.awaited, Duration: took, Failure: err,
	})
	h.debug("Server heartbeat failed", func() []slog.Attr {
		return []slog.Attr{logging.Millis("durationMS", took), slog.String("failure", err.Error())}
	})
	h.told()
}
