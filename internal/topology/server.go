package topology

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/errcode"
	"allium/internal/failure"
	"allium/internal/hello"
	"allium/internal/pool"
	"allium/mongoerr"
)

// Server is one server of a topology, with its pool and its monitor. It is safe for concurrent use.
// It stays usable, in the sense that its methods return errors, after it was removed from the
// topology.
type Server struct {
	addr    string
	topo    *Topology
	pool    *pool.Pool
	desc    atomic.Pointer[event.ServerDescription]
	monitor *monitor // nil behind a load balancer, and in tests that play the monitor
}

func newServer(t *Topology, d *event.ServerDescription) *Server {
	s := &Server{addr: d.Addr, topo: t}
	s.desc.Store(d)
	cfg := t.cfg.Pool
	cfg.LoadBalanced = t.cfg.LoadBalanced
	cfg.ConnectFailed = s.connectFailed
	cfg.Handshaken = s.handshaken
	cfg.Cleared = func(cause error) { t.recent.add(d.Addr, "pool cleared", cause) }
	cfg.Dropped = &t.dropped
	s.pool = pool.New(d.Addr, &cfg)
	if !t.cfg.LoadBalanced && !t.cfg.unmonitored {
		s.monitor = newMonitor(s)
	}
	return s
}

// admit makes the pool ready if a check has found that operations can use the server.
func (s *Server) admit(t *event.TopologyDescription, now *event.ServerDescription) {
	if now.DataBearing() || t.Kind == event.Single && now.Kind != event.UnknownServer {
		s.pool.Ready()
	} else {
		s.pool.Unusable()
	}
}

// Addr returns the server's address.
func (s *Server) Addr() string { return s.addr }

// Description returns what was last known of the server.
func (s *Server) Description() *event.ServerDescription { return s.desc.Load() }

// CheckOut returns a connection to the server, see pool.Pool.CheckOut.
func (s *Server) CheckOut(ctx context.Context) (*pool.Conn, error) { return s.pool.CheckOut(ctx) }

// CheckOutWithin is CheckOut for an operation with a timeoutMS, see pool.Pool.CheckOutWithin.
func (s *Server) CheckOutWithin(ctx context.Context, limit, timeout time.Duration) (*pool.Conn, error) {
	return s.pool.CheckOutWithin(ctx, limit, timeout)
}

// Operations returns how many operations have a connection to the server or wait for one.
func (s *Server) Operations() int64 { return s.pool.Operations() }

// checked records the outcome of a check. It reports whether the outcome counted: a reply that came
// before an operation lost its connection does not, though it is recorded after it. An operation
// that is tried again would go to the same server.
func (s *Server) checked(d *event.ServerDescription) bool {
	overtaken := func() bool { return d.LastError == nil && s.monitor != nil && s.monitor.overtaken() }
	return s.topo.update(d, overtaken, func(s *Server) {
		if d.LastError != nil {
			s.pool.Clear(d.LastError, failure.SocketTimeout(d.LastError))
		}
	})
}

// handshaken takes over what the server said when a connection for operations was made, if that is
// newer than what its monitor knows: after a failover it often is. Only topologyVersion can tell
// that, so servers before 4.4 are left to their monitors, and so is a server that is unknown.
func (s *Server) handshaken(hello *event.ServerDescription) {
	if s.topo.cfg.LoadBalanced {
		return
	}
	newer := func(known *event.ServerDescription) bool {
		return known.Kind != event.UnknownServer && hello.TopologyVersion.Compare(known.TopologyVersion) > 0
	}
	if !newer(s.desc.Load()) {
		return
	}
	t := s.topo
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := s.desc.Load(); t.servers[s.addr] == s && newer(known) {
		d := *hello
		d.AverageRTT, d.MinRTT, d.LastUpdate = known.AverageRTT, known.MinRTT, time.Now()
		t.apply(&d)
	}
}

// HandleError tells the topology that an operation failed on c, so that it can draw its conclusions
// for the server (specification: Server Discovery and Monitoring, error handling). It need not be
// called for errors of checkouts.
func (s *Server) HandleError(c *pool.Conn, err error) {
	s.handleError(err, c.ServiceID, func() bool { return s.pool.Stale(c) })
}

// handleError handles the error of an operation on a connection to service, if it goes through a
// load balancer. stale says whether the connection has been given up already.
func (s *Server) handleError(err error, service *bson.ObjectID, stale func() bool) {
	change := stateChange(err)
	e, network := errors.AsType[*mongoerr.ConnectionError](err)
	if network && (e.Timeout() || errors.Is(err, context.Canceled) || errors.Is(err, mongoerr.ErrPoolCleared) ||
		errors.Is(err, mongoerr.ErrClientClosed)) {
		network = false // what the client has broken off says nothing of the server
	}
	switch {
	case change == nil && !network || stale():
	case s.topo.cfg.LoadBalanced:
		if service != nil && (network || change.shutdown) {
			s.pool.ClearService(*service, failure.Detach(err))
		}
	case change != nil:
		s.stateChanged(err, change, stale)
	default:
		s.disconnected(err, stale)
	}
}

// HandleReauthError tells the topology that c could not be authenticated again. What went wrong
// with the connection counts as it does when one is made (specification: Server Discovery and
// Monitoring, "Network error when reading or writing": authentication step); a refused credential
// is the program's business, and so is the end of the operation's time.
func (s *Server) HandleReauthError(c *pool.Conn, err error) {
	s.reauthFailed(pool.Failure{Err: err, Generation: c.Generation, ServiceID: c.ServiceID})
}

func (s *Server) reauthFailed(f pool.Failure) {
	if (failure.Connection(f.Err) || stateChange(f.Err) != nil) && !failure.OutOfTime(f.Err) &&
		!errors.Is(f.Err, mongoerr.ErrPoolCleared) {
		s.connectFailed(f)
	}
}

// connectFailed handles the failure to make a connection for operations.
func (s *Server) connectFailed(f pool.Failure) {
	if mongoerr.HasLabel(f.Err, mongoerr.LabelSystemOverloaded) {
		return
	}
	if _, ok := errors.AsType[*mongoerr.AuthError](f.Err); ok && s.topo.cfg.Pool.Conn.Authenticator.Asks() {
		return // the program's business: connections that it had another credential for go on working
	}
	stale := func() bool { return s.pool.Outdated(f) }
	if s.topo.cfg.LoadBalanced {
		if f.ServiceID != nil && !stale() {
			s.pool.ClearService(*f.ServiceID, failure.Detach(f.Err))
		}
		return
	}
	if change := stateChange(f.Err); change != nil {
		s.stateChanged(f.Err, change, stale)
	} else {
		s.disconnected(f.Err, stale)
	}
}

// stateChanged handles an error that says that the server's state has changed.
func (s *Server) stateChanged(err error, change *stateChangeError, stale func() bool) {
	s.markUnknown(err, change.version, stale, change.shutdown, s.requestCheck)
}

// disconnected handles an error that says that the server cannot be reached, or not be used.
func (s *Server) disconnected(err error, stale func() bool) {
	s.markUnknown(err, nil, stale, true, s.cancelCheck)
}

// markUnknown replaces the server's description by one that knows nothing but an error, clears the
// pool if that is asked for, and tells the monitor: not if the error is older than what is known.
func (s *Server) markUnknown(err error, version *event.TopologyVersion, stale func() bool, clear bool, tell func()) {
	t := s.topo
	t.mu.Lock()
	defer t.mu.Unlock()
	if stale() || s.desc.Load().TopologyVersion.Compare(version) >= 0 {
		return
	}
	err = failure.Detach(err) // the operation that failed goes on to label its own
	unknown := &event.ServerDescription{Addr: s.addr, LastError: err, TopologyVersion: version, LastUpdate: time.Now()}
	if t.servers[s.addr] != s || !t.apply(unknown) {
		return
	}
	if clear {
		s.pool.Clear(err, false)
	}
	tell() // under the lock: no outcome of a check comes between
}

// stateChangeError is what the reply to a command says about the server's state.
type stateChangeError struct {
	shutdown bool // the server is shutting down
	version  *event.TopologyVersion
}

// stateChange returns what a command's error says about the server's state, nil if it says nothing.
func stateChange(err error) *stateChangeError {
	if e, ok := errors.AsType[*mongoerr.ServerError](err); ok && isStateChange(e.Code, e.Message) {
		return &stateChangeError{shutdown: errcode.Is(e.Code, errcode.ShuttingDown),
			version: hello.TopologyVersion(e.Raw)}
	}
	if e, ok := errors.AsType[*mongoerr.WriteConcernError](err); ok && isStateChange(e.Code, e.Message) {
		return &stateChangeError{shutdown: errcode.Is(e.Code, errcode.ShuttingDown),
			version: hello.ParseTopologyVersion(e.TopologyVersion)}
	}
	return nil
}

func isStateChange(code int32, message string) bool {
	if code != 0 {
		return errcode.Is(code, errcode.StateChange)
	}
	return strings.Contains(message, "node is recovering") || strings.Contains(message, "not master")
}

// startMonitor, stopMonitor, requestCheck and cancelCheck do nothing for a server that is not
// monitored.

func (s *Server) startMonitor(delay time.Duration) {
	if s.monitor != nil {
		s.monitor.start(delay)
	}
}

func (s *Server) stopMonitor() {
	if s.monitor != nil {
		s.monitor.end()
	}
}

func (s *Server) requestCheck() {
	if s.monitor != nil {
		s.monitor.requestCheck()
	}
}

func (s *Server) cancelCheck() {
	if s.monitor != nil {
		s.monitor.cancelCheck()
	}
}
