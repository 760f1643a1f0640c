package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/mongoerr"
)

// Conn is a connection of a pool. Whoever has checked it out uses it alone, and returns it once.
type Conn struct {
	*conn.Conn
	// ID is unique within the pool and counts from 1 in the order in which connections are made.
	ID int64
	// Generation is that of the pool, or of the service behind a load balancer, when the connection
	// was made.
	Generation uint64
	// ServiceID is the service behind a load balancer, nil without one.
	ServiceID *bson.ObjectID
	// Waited is how long the checkout waited that the connection is with now; 0 if it was idle.
	Waited time.Duration

	pool        *Pool
	generation  *generation // the one that Generation is a moment of
	created     time.Time
	interrupted atomic.Bool
	lent        atomic.Uint32 // kept, lent or takenBack
	use         Use           // what it is pinned for; of whoever uses it
	broken      error         // what broke the connection, if that was seen; of whoever uses it

	// Guarded by the pool's lock.
	index   int       // in Pool.all
	since   time.Time // idle since
	removed bool
	making  bool
	// draining: it reads off an owed reply, and nobody else knows it.
	draining bool
	cancel   context.CancelFunc // gives up the attempt to make the connection
	owner    *waiter            // the checkout that learns of it if the connection cannot be made
	doubtful bool               // the attempt to make the connection may hang
	// replaced: the waiter that it was made for has another attempt now, since this one may hang.
	// If it fails all the same, somebody who waits learns why.
	replaced bool
	alarm    *time.Timer // goes off when it takes longer than usual
}

// Whether a connection is checked out, as its events tell it.
const (
	kept      uint32 = iota // in the pool, or on its way to the checkout that gets it
	lent                    // an operation has it
	takenBack               // an operation has it, but the pool was cleared under it and has taken it back
)

// Use is what a connection is kept checked out for: by a cursor or a transaction behind a load
// balancer, or by a cursor that the server streams.
type Use uint8

// The uses of a connection.
const (
	ForOperation Use = iota // one command
	ForCursor
	ForTransaction
	uses
)

// Pin notes that the connection stays checked out for a cursor or a transaction until it is
// returned.
func (c *Conn) Pin(use Use) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.use != ForOperation {
		c.pool.pinned[c.use]--
	}
	c.use = use
	c.pool.pinned[use]++
}

func (c *Conn) stale() bool { return c.generation.n != c.Generation }

// RoundTrip is that of the connection. If the pool was cleared or closed and the connection closed
// under the operation, the error says so.
func (c *Conn) RoundTrip(ctx context.Context, msg []byte) (*conn.Reply, error) {
	r, err := c.Conn.RoundTrip(ctx, msg)
	if err != nil {
		err = c.explain(err)
	}
	return r, err
}

// RoundTripBehind is that of the connection, with the errors of RoundTrip.
func (c *Conn) RoundTripBehind(ctx context.Context, msg []byte) (*conn.Reply, error) {
	r, err := c.Conn.RoundTripBehind(ctx, msg)
	if err != nil {
		err = c.explain(err)
	}
	return r, err
}

// Send is that of the connection, with the errors of RoundTrip.
func (c *Conn) Send(ctx context.Context, msg []byte) error {
	err := c.Conn.Send(ctx, msg)
	if err != nil {
		err = c.explain(err)
	}
	return err
}

// Receive is that of the connection, with the errors of RoundTrip.
func (c *Conn) Receive(ctx context.Context) (*conn.Reply, error) {
	r, err := c.Conn.Receive(ctx)
	if err != nil {
		err = c.explain(err)
	}
	return r, err
}

// Late is that of the connection, with the errors of RoundTrip.
func (c *Conn) Late(ctx context.Context) (*conn.Reply, error) {
	r, err := c.Conn.Late(ctx)
	if err != nil {
		err = c.explain(err)
	}
	return r, err
}

// Reauthenticate is that of the connection, with the errors of RoundTrip.
func (c *Conn) Reauthenticate(ctx context.Context) error {
	err := c.Conn.Reauthenticate(ctx)
	if err != nil {
		err = c.explain(err)
	}
	return err
}

func (c *Conn) explain(err error) error {
	if e, ok := errors.AsType[*mongoerr.ConnectionError](err); ok && c.interrupted.Load() {
		e.Wrapped = &mongoerr.PoolClearedError{Addr: c.pool.addr, Interrupted: true}
		if c.pool.over.Load() {
			e.Wrapped = mongoerr.ErrClientClosed
		}
	}
	if !c.Alive() {
		c.broken = failure.Detach(err)
	}
	return err
}

// Interrupt closes the connection of a client that is being closed under its operation, which fails
// with ErrClientClosed.
func (c *Conn) Interrupt() {
	c.pool.over.Store(true)
	c.interrupted.Store(true)
	c.Abandon()
}

// Return gives the connection back to its pool. It must not be used any more. A connection that is
// broken, or that the pool has given up, is closed; one that owes a reply to its operation reads it
// off first.
func (c *Conn) Return() {
	p := c.pool
	switch {
	case c.lent.CompareAndSwap(lent, kept):
		defer p.takeIn(c) // whatever the listener does
		p.events.Settle(context.Background())
		p.checkedIn(c)
	case c.lent.CompareAndSwap(takenBack, kept):
		p.takeIn(c)
	default:
		panic("pool: connection returned twice")
	}
}

// takeIn takes a connection whose operation has ended.
func (p *Pool) takeIn(c *Conn) {
	p.operations.Add(-1)
	p.mu.Lock()
	if c.use != ForOperation {
		p.pinned[c.use]--
		c.use = ForOperation
	}
	p.take(c)
	p.mu.Unlock()
}

// take decides what to do with a connection that is no longer in use. The lock is held.
func (p *Pool) take(c *Conn) {
	switch {
	case c.removed: // interrupted
	case p.state == closed:
		p.remove(c, event.ClosedPoolClosed, nil)
	case !c.Alive() || c.Streaming(): // nobody reads the rest of a stream
		p.remove(c, event.ClosedError, c.broken)
		p.grow()
	case c.stale():
		p.remove(c, event.ClosedStale, nil)
		p.grow()
	case c.Owed():
		p.draining++
		c.draining, c.since = true, time.Now()
		flight.Go(&p.work, func() { p.drain(c) }, nil)
		p.grow() // somebody may need the place
	default:
		p.offer(c)
	}
}

// offer gives a connection to the checkout that has waited longest, or keeps it. The lock is held.
func (p *Pool) offer(c *Conn) {
	if w := p.queue.pop(); w != nil {
		p.disown(w)
		w.result <- result{conn: c}
		return
	}
	c.since = time.Now()
	if p.cfg.MaxIdleTime > 0 {
		if p.due.IsZero() { // a run that is planned plans the next one
			p.plan(p.cfg.MaxIdleTime)
		}
	}
	p.idle = append(p.idle, c)
}

// drain reads off the reply that c owes. Meanwhile nobody counts on the connection, and if its
// place is needed, it is closed (makeRoom).
func (p *Pool) drain(c *Conn) {
	err := c.Drain(p.life)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.removed {
		return
	}
	p.draining--
	c.draining = false
	if err != nil && p.state != closed {
		p.remove(c, event.ClosedError, err)
		p.grow()
		return
	}
	p.take(c)
}
