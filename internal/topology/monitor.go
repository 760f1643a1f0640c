package topology

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/internal/hello"
	"allium/mongoerr"
)

// monitor checks one server again and again, on a connection of its own, and tells the topology
// (specification: Server Monitoring). Its run is one goroutine; a second one measures round trip
// times while the first one streams.
type monitor struct {
	server *Server
	rtt    rttStats
	wake   chan struct{} // a request for a check; has room for one

	life context.Context // ends with the topology, or when the server is removed
	end  context.CancelFunc

	mu     sync.Mutex
	cancel context.CancelFunc // ends the check in progress, nil if there is none
	drop   bool               // the connection must not be used for another check

	// Used by run only.
	conn     *conn.Conn
	connID   int64
	serverID *int64
	last     *event.ServerDescription
	measures bool       // the goroutine that measures round trip times was started
	beat     *heartbeat // the check in progress, nil if there is none
	streamed allowance
	retried  allowance
}

// An allowance is how often something may happen within MinHeartbeatInterval. The specification
// Server Monitoring has a client read a stream of hellos as it comes, and check again at once when
// a connection to a known server breaks: a server could keep the client busy with either, and
// several that name each other with their first checks.
type allowance struct {
	since time.Time
	n     int
}

const (
	maxStreamed   = 5   // hellos of a stream: an election makes a server send a few
	maxRetried    = 1   // checks right after a connection has broken
	maxDiscovered = 100 // first checks of servers that others have named
)

// take counts an event, and returns how long it must wait.
func (a *allowance) take(most int) time.Duration {
	now := time.Now()
	if now.Sub(a.since) >= MinHeartbeatInterval {
		*a = allowance{since: now}
	}
	if a.n >= most {
		*a = allowance{since: a.since.Add(MinHeartbeatInterval)}
	}
	a.n++
	return max(0, a.since.Sub(now))
}

func newMonitor(s *Server) *monitor {
	m := &monitor{server: s, wake: make(chan struct{}, 1), last: &event.ServerDescription{Addr: s.addr}}
	m.life, m.end = context.WithCancel(s.topo.life)
	return m
}

// requestCheck makes a monitor that sleeps check its server, as soon as half a second has passed
// since the last check. While a check is in progress it does nothing.
func (m *monitor) requestCheck() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// cancelCheck ends the check in progress and has the connection closed: an operation has found out
// that the server cannot be reached.
func (m *monitor) cancelCheck() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop = true
	if m.cancel != nil {
		m.cancel()
	}
}

// overtaken reports whether an operation has found out that the server cannot be reached, after the
// last check began.
func (m *monitor) overtaken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drop
}

// start runs the monitor on a goroutine of its own, after a delay. What a dialer or other code of
// the program's does to the goroutine is the failure of the check, and the monitor goes on with the
// next.
func (m *monitor) start(delay time.Duration) {
	t := m.server.topo
	flight.Go(&t.work, func() { m.run(delay) }, func(err error) {
		beat, failure := m.beat, &mongoerr.ConnectionError{Addr: m.server.addr, Op: "check", Wrapped: err}
		if beat != nil {
			beat.failed(time.Since(beat.since), failure)
		}
		if m.life.Err() != nil {
			flight.Report(err)
			return
		}
		defer m.start(MinHeartbeatInterval)
		if beat == nil {
			flight.Report(err) // a pool's listener has been told of a change, which has been made
			return
		}
		m.rtt.reset()
		m.last = &event.ServerDescription{Addr: m.server.addr, LastUpdate: time.Now(), LastError: failure}
		m.server.checked(m.last)
	})
}

// run checks the server until the end of the monitor's life, after a delay.
func (m *monitor) run(delay time.Duration) {
	t := m.server.topo
	defer m.close()
	m.pause(delay)
	for m.life.Err() == nil {
		before := m.last
		d, cancelled := m.check()
		ended := time.Now()
		if m.life.Err() != nil {
			return
		}
		m.last = d
		if cancelled { // the server was marked unknown by whoever cancelled the check
			m.sleep(ended)
			continue
		}
		// A request during the check is served by it; one that comes after its outcome is known
		// counts. A selection that waits asks again then.
		asked := false
		select {
		case <-m.wake:
			asked = true
		default:
		}
		if !m.server.checked(d) && asked {
			m.requestCheck()
		}
		streams := t.streaming &&
			(d.TopologyVersion != nil && d.LastError == nil || m.conn != nil && m.conn.Streaming())
		if streams && !m.measures {
			m.measures = true
			m.startMeasuring(0)
		}
		switch {
		case streams:
			m.pause(m.streamed.take(maxStreamed))
		case failure.Connection(d.LastError) && before.Kind != event.UnknownServer &&
			!conn.IsProtocolError(d.LastError):
			m.pause(m.retried.take(maxRetried))
		default:
			m.sleep(ended)
		}
	}
}

// pause waits, if there is anything to wait for, until the monitor's life ends.
func (m *monitor) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.life.Done():
	}
}

// sleep waits for the time of the next check: the heartbeat interval, or less if a check is asked
// for.
func (m *monitor) sleep(since time.Time) {
	timer := time.NewTimer(m.server.topo.cfg.HeartbeatInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-m.life.Done():
		return
	case <-m.wake:
	}
	timer.Reset(max(0, MinHeartbeatInterval-time.Since(since)))
	select {
	case <-timer.C:
	case <-m.life.Done():
	}
}

func (m *monitor) close() {
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// check checks the server once. cancelled reports that cancelCheck has ended it.
func (m *monitor) check() (d *event.ServerDescription, cancelled bool) {
	ctx, cancel := context.WithCancel(m.life)
	defer cancel()
	m.mu.Lock()
	drop := m.drop
	m.drop, m.cancel = false, cancel
	m.mu.Unlock()
	if drop {
		m.close()
	}
	d, err := m.hello(ctx)
	m.mu.Lock()
	m.cancel = nil
	cancelled = m.drop && ctx.Err() != nil && err != nil
	m.mu.Unlock()
	if err != nil {
		m.close()
		m.rtt.reset()
		d = &event.ServerDescription{Addr: m.server.addr, LastError: err, LastUpdate: time.Now()}
		if e, ok := errors.AsType[*mongoerr.ServerError](err); ok {
			d.TopologyVersion = hello.TopologyVersion(e.Raw)
		}
	}
	return d, cancelled
}

// hello gets a hello from the server: in the handshake of a new connection, as the next reply of a
// stream, or in answer to a request.
func (m *monitor) hello(ctx context.Context) (*event.ServerDescription, error) {
	t := m.server.topo
	stream := m.conn != nil && t.streaming && (m.conn.Streaming() || m.last.TopologyVersion != nil)
	hb := &heartbeat{monitor: m, awaited: stream, since: time.Now()}
	if m.conn == nil {
		m.connID, m.serverID = t.lastConn.Add(1), nil
	}
	hb.started()
	start := time.Now()
	var reply bson.Raw
	var err error
	switch {
	case m.conn == nil:
		m.conn, err = conn.DialMonitor(ctx, m.server.addr, t.cfg.Pool.Conn)
		if err == nil {
			start = time.Now() // the round trip is that of the hello
			reply, err = m.conn.Handshake(ctx)
		}
	case stream:
		reply, err = m.next(ctx)
	default:
		reply, err = m.ask(ctx, conn.AwaitHello{})
	}
	took := time.Since(start)
	var d *event.ServerDescription
	if err == nil {
		if d = hello.Parse(m.server.addr, reply); d.LastError != nil {
			err = d.LastError
		}
	}
	if err != nil {
		hb.failed(took, err)
		return nil, err
	}
	m.serverID = d.ServerConnectionID
	if !stream {
		m.rtt.add(took)
	}
	d.AverageRTT, d.MinRTT = m.rtt.get()
	d.LastUpdate = time.Now()
	hb.succeeded(took, reply)
	return d, nil
}

// next returns the next reply of a stream, which it begins if there is none.
func (m *monitor) next(ctx context.Context) (bson.Raw, error) {
	heartbeat := m.server.topo.cfg.HeartbeatInterval
	if limit := m.server.topo.cfg.Pool.Conn.ConnectTimeout; limit > 0 {
		m.conn.SetTimeout(limit + heartbeat)
	}
	if !m.conn.Streaming() {
		return m.ask(ctx, conn.AwaitHello{TopologyVersion: m.last.TopologyVersion, MaxAwait: heartbeat, Exhaust: true})
	}
	r, err := m.conn.Receive(ctx)
	return take(r, err)
}

// ask sends a hello.
func (m *monitor) ask(ctx context.Context, await conn.AwaitHello) (bson.Raw, error) {
	r, err := m.conn.RoundTrip(ctx, m.conn.AppendHello(nil, await))
	return take(r, err)
}

// take copies what a reply says, so that listeners may keep it.
func take(r *conn.Reply, err error) (bson.Raw, error) {
	if err != nil {
		return nil, err
	}
	body := slices.Clone(r.Body)
	r.Release()
	return body, nil
}

func (m *monitor) startMeasuring(delay time.Duration) {
	t := m.server.topo
	flight.Go(&t.work, func() { m.measure(delay) }, func(err error) {
		flight.Report(err)
		m.startMeasuring(t.cfg.HeartbeatInterval)
	})
}

// measure measures the round trip time every heartbeat interval on a connection of its own, while
// the monitor's own one waits for the server to have something to say. Its failures have no
// other effect.
func (m *monitor) measure(delay time.Duration) {
	m.pause(delay)
	t := m.server.topo
	var c *conn.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	timer := time.NewTimer(t.cfg.HeartbeatInterval)
	defer timer.Stop()
	for {
		took, err := m.ping(&c)
		switch {
		case err == nil:
			m.rtt.add(took)
		case c != nil:
			c.Close()
			c = nil
		}
		select {
		case <-m.life.Done():
			return
		case <-timer.C:
			timer.Reset(t.cfg.HeartbeatInterval)
		}
	}
}

// ping measures one round trip on *c, which it makes if it is nil.
func (m *monitor) ping(c **conn.Conn) (time.Duration, error) {
	if *c == nil {
		made, err := conn.DialMonitor(m.life, m.server.addr, m.server.topo.cfg.Pool.Conn)
		if err != nil {
			return 0, err
		}
		*c = made
		start := time.Now()
		_, err = made.Handshake(m.life)
		return time.Since(start), err
	}
	start := time.Now()
	r, err := (*c).RoundTrip(m.life, (*c).AppendHello(nil, conn.AwaitHello{}))
	took := time.Since(start)
	if err == nil {
		r.Release()
	}
	return took, err
}
