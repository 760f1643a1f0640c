package pool

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/flight"
	"allium/internal/logging"
	"allium/mongoerr"
	"allium/stats"
)

// Defaults of the specification.
const (
	DefaultMaxPoolSize   = 100
	DefaultMaxConnecting = 2
)

// How the pool goes about things that the specification leaves open.
const (
	// drainTimeout is how long a connection may read off an owed reply, unless conn.Config says
	// otherwise. Then it is closed; earlier if its place is needed.
	drainTimeout = 3 * time.Second
	// usual is how long an attempt to make a connection counts as one that a waiting operation will
	// get. One that takes longer may hang, and the pool makes another connection.
	usual = time.Second
	// retryInterval is how long the pool waits before it makes another attempt to reach
	// minPoolSize, after one failed.
	retryInterval = time.Second
)

// Config is what all pools of a client have in common, and what one server's topology wants to know
// of its pool.
type Config struct {
	Conn *conn.Config

	MaxPoolSize int // 0: no limit
	MinPoolSize int // 0: connections are made when operations need them only
	// how many are made at first, if that is more than MinPoolSize; they need not be replaced
	Warm             int
	MaxConnecting    int           // how many connections may be made at the same time; 0: DefaultMaxConnecting
	MaxIdleTime      time.Duration // 0: no limit
	WaitQueueTimeout time.Duration // how long a checkout may wait, deprecated; 0: no limit but the context's

	// LoadBalanced gives every service behind the load balancer a generation of its own. Such a
	// pool is never paused.
	LoadBalanced bool

	Monitor *event.PoolMonitor // may be nil
	Log     *logging.Logger    // may be nil

	// ConnectFailed is called when a connection could not be made, before anybody learns of it, on
	// the goroutine that tried. It may call Clear. It is not called for attempts that the pool
	// itself has given up.
	ConnectFailed func(Failure)
	// Handshaken is called with what the server said in the hello of a new connection, before it is
	// authenticated, on the goroutine that makes it. It may be nil.
	Handshaken func(*event.ServerDescription)
	// Cleared is called when connections are given up, under the pool's lock. It may be nil.
	Cleared func(cause error)
	// background is the interval of the retries to reach MinPoolSize; negative: neither that nor
	// removing idle connections happens in the background. Tests set it.
	background time.Duration
	// Dropped counts the events that were dropped because a listener does not return, if it is not
	// nil.
	Dropped *atomic.Int64
}

// Failure is a connection that could not be made.
type Failure struct {
	Err error
	// Generation is that of the pool when the attempt began, or of the service behind a load
	// balancer when its hello was answered.
	Generation uint64
	// ServiceID is the service behind a load balancer, if the attempt came so far as to learn it.
	ServiceID *bson.ObjectID
}

type state uint8

const (
	paused state = iota
	ready
	closed
)

// Pool is the connection pool of one server. It is safe for concurrent use.
type Pool struct {
	addr string
	cfg  *Config
	conn conn.Config // of its connections

	// operations counts the operations that have a connection or wait for one.
	operations atomic.Int64

	// over is set by Interrupt.
	over atomic.Bool
	// life ends when the pool is closed.
	life context.Context
	end  context.CancelFunc
	// work are the goroutines that make, drain and close connections.
	work sync.WaitGroup

	// events are those that are told of under the lock, to be delivered without it.
	events flight.Deliveries

	mu       sync.Mutex
	state    state
	cause    error // why the pool is paused
	own      generation
	services map[bson.ObjectID]*generation
	lastID   int64
	all      []*Conn   // made or being made
	idle     []*Conn   // those that can be checked out, the one that was returned last at the end
	attempts []*Conn   // those that are being made, without those that were given up meanwhile
	coming   uint64    // how many attempts waiting operations can count on
	draining uint64    // how many read off an owed reply
	pinned   [uses]int // how many are kept checked out, and for what; ForOperation is not counted
	queue    queue
	resting  bool // no further attempts to reach the minimum until the next run in the background
	closings stats.Closed
	waits    int64 // checkouts that had to wait
	gaveUp   int64 // those of them that left without a connection because their time was up

	ahead    *conn.Ahead   // what the first connection is made of, nil if it is dialed as the others are
	warmed   bool          // there were as many connections as there are to be at first
	changed  chan struct{} // is closed when Warm has to look again; nil if nobody waits
	unmadeBy error         // why the last connection could not be made; nil if it could

	waited atomic.Int64 // how long all checkouts waited, in nanoseconds

	timer *time.Timer // of the next run in the background
	due   time.Time   // when that is, the zero time if none is planned
}

// generation is how often the connections of the pool, or of one service behind a load balancer,
// were given up.
type generation struct {
	n     uint64
	conns int // for services: how many connections there are
}

// New returns a pool that is paused.
func New(addr string, cfg *Config) *Pool {
	p := &Pool{addr: addr, cfg: cfg}
	p.events.Dropped = cfg.Dropped
	p.life, p.end = context.WithCancel(context.Background())
	p.conn = *cfg.Conn
	if p.conn.DrainTimeout == 0 {
		p.conn.DrainTimeout = drainTimeout
	}
	p.created()
	return p
}

// Operations returns how many operations have a connection or wait for one.
func (p *Pool) Operations() int64 { return p.operations.Load() }

// Generation returns how often the pool was cleared.
func (p *Pool) Generation() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own.n
}

// Outdated reports whether the generation of an attempt that failed was given up meanwhile. It is
// meant for Config.ConnectFailed.
func (p *Pool) Outdated(f Failure) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := &p.own
	if f.ServiceID != nil {
		if g = p.services[*f.ServiceID]; g == nil {
			return false
		}
	}
	return g.n != f.Generation
}

// Stale reports whether a connection belongs to a generation that was given up.
func (p *Pool) Stale(c *Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.stale()
}

// Ready lets a paused pool make connections and check them out.
func (p *Pool) Ready() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != paused {
		return
	}
	p.state, p.cause, p.resting = ready, nil, false
	p.readied()
	p.grow()
}

// Clear gives up all connections that exist or are being made and pauses the pool. Waiting
// checkouts fail with an error that is mongoerr.ErrPoolCleared. With interrupt the connections in
// use are closed too, under their operations, which fail with such an error.
func (p *Pool) Clear(cause error, interrupt bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own.n++
	if p.state == closed {
		return
	}
	if p.state == ready {
		p.state, p.cause = paused, cause
		p.cleared(nil, interrupt, cause)
	}
	p.giveUpAhead()
	for _, c := range p.idle {
		p.remove(c, event.ClosedStale, nil)
	}
	clear(p.idle)
	p.idle = p.idle[:0]
	for _, c := range slices.Clone(p.all) {
		if c.making || interrupt {
			c.interrupted.Store(true)
		}
		switch {
		case c.making || c.draining && interrupt:
			p.remove(c, event.ClosedStale, nil)
		case interrupt:
			p.takeBack(c)
		}
	}
	p.queue.fail(func() error { return &mongoerr.PoolClearedError{Addr: p.addr, Cause: cause} })
	p.tellWarm()
}

// takeBack closes a connection under its operation. For those who follow the events it is checked
// in before it is closed, as any other. A connection that is on its way to an operation or back is
// left alone: lend and take see to it. The lock is held.
func (p *Pool) takeBack(c *Conn) {
	if c.lent.CompareAndSwap(lent, takenBack) {
		reason := event.ClosedStale
		if p.state == closed {
			reason = event.ClosedPoolClosed
		}
		p.tell(func() { p.checkedIn(c) })
		p.remove(c, reason, nil)
	}
}

// ClearService gives up the connections to one service behind a load balancer.
func (p *Pool) ClearService(id bson.ObjectID, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == closed {
		return
	}
	if g := p.services[id]; g != nil {
		g.n++
	}
	p.cleared(&id, false, cause)
	p.idle = slices.DeleteFunc(p.idle, func(c *Conn) bool {
		if c.stale() {
			p.remove(c, event.ClosedStale, nil)
			return true
		}
		return false
	})
	p.grow()
}

// Close closes the idle connections and waits for the goroutines of the pool, but not for
// listeners: see Told. Connections in use are closed when they are returned, or by Interrupt.
// Waiting checkouts fail.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.state == closed {
		p.mu.Unlock()
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	idle := p.idle
	p.idle = nil
	for _, c := range idle {
		p.remove(c, event.ClosedPoolClosed, nil)
	}
	p.state = closed
	p.end()
	p.queue.fail(func() error { return errClosed })
	p.tellWarm()
	p.mu.Unlock()
	p.work.Wait()
	p.ended()
}

// Told returns when the program has been told of all events so far. It waits for its listeners.
func (p *Pool) Told() { p.events.Wait() }

// Interrupt closes the connections of a closed pool that are still in use. Their operations fail
// with ErrClientClosed.
func (p *Pool) Interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over.Store(true)
	for _, c := range slices.Clone(p.all) {
		c.interrupted.Store(true)
		p.takeBack(c)
	}
}

// remove takes c out of the pool's count and closes its socket in the background. The lock is held,
// and c is not in idle any more.
func (p *Pool) remove(c *Conn, reason string, err error) {
	if c.removed {
		return
	}
	c.removed = true
	last := len(p.all) - 1
	p.all[c.index] = p.all[last]
	p.all[c.index].index = c.index
	p.all[last] = nil
	p.all = p.all[:last]
	if g := c.generation; g != &p.own {
		if g.conns--; g.conns == 0 {
			delete(p.services, *c.ServiceID)
		}
	}
	if c.draining {
		c.draining = false
		p.draining--
	}
	p.count(reason)
	p.connClosed(c, reason, err)
	switch {
	case c.making:
		c.cancel()
		p.settle(c)
	case c.Conn != nil:
		p.closeSocket(c)
	}
}

// closeSocket closes the socket of a connection. The lock is held, so it must not take time. Saying
// goodbye, as TLS asks, may take seconds if the server does not read, and is left to a goroutine.
func (p *Pool) closeSocket(c *Conn) {
	if p.state == closed { // Close may be waiting for the goroutines already, so that none may be added
		c.Abandon()
		return
	}
	flight.Go(&p.work, func() { c.Conn.Close() }, nil)
}

// The errors of a checkout from a closed pool and of one that waited too long, in the
// specification's words.
var (
	errClosed = &checkOutError{"Attempted to check out a connection from closed connection pool",
		mongoerr.ErrClientClosed}
	errWaitQueueTimeout = &checkOutError{"Timed out while checking out a connection from connection pool",
		context.DeadlineExceeded}
)

type checkOutError struct {
	message string
	class   error
}

func (e *checkOutError) Error() string        { return e.message }
func (e *checkOutError) Is(target error) bool { return target == e.class }
