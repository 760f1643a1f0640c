package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/event"
	"allium/mongoerr"
)

// patience bounds how long a checkout waits, besides its context.
type patience struct {
	limit  time.Duration // 0 and less: no bound
	source string        // whose limit it is
}

// CheckOut returns a connection for the caller alone, which must give it back with Return.
//
// When ctx ends or the wait queue timeout passes before there is one, the error is a
// *mongoerr.TimeoutError; a connection that is being made meanwhile is not given up. If the pool is
// paused or gets cleared, the error is a *mongoerr.PoolClearedError. If a connection could not be
// made, it is the error of that.
func (p *Pool) CheckOut(ctx context.Context) (*Conn, error) {
	return p.checkOut(ctx, patience{p.cfg.WaitQueueTimeout, "waitQueueTimeoutMS"})
}

// CheckOutWithin is CheckOut for an operation with a timeoutMS, for which the wait queue timeout
// does not count: it waits for what limit says is left of the time of server selection
// (specification: Client Side Operations Timeout, "Server Selection"). A limit of 0 and less is
// none.
func (p *Pool) CheckOutWithin(ctx context.Context, limit time.Duration) (*Conn, error) {
	return p.checkOut(ctx, patience{limit, "serverSelectionTimeoutMS"})
}

func (p *Pool) checkOut(ctx context.Context, patience patience) (*Conn, error) {
	var start time.Time
	if p.listening() {
		start = time.Now()
		p.checkOutStarted()
	}
	p.operations.Add(1)
	p.mu.Lock()
	c := p.pop()
	if c != nil {
		p.mu.Unlock()
		c.Waited = 0
		p.lend(c, start)
		return c, nil
	}
	c, err := p.wait(ctx, patience) // unlocks
	if err != nil {
		p.operations.Add(-1)
		p.checkOutFailed(err, start)
		return nil, err
	}
	p.lend(c, start)
	return c, nil
}

// lend gives a connection to the operation that asked for one at start.
func (p *Pool) lend(c *Conn, start time.Time) {
	p.checkedOut(c, start)
	c.lent.Store(lent)
	if c.interrupted.Load() { // just now, before it could be taken back
		p.mu.Lock()
		p.takeBack(c)
		p.mu.Unlock()
	}
}

// pop returns an idle connection that is neither stale nor idle for too long, nil if there is none.
// The lock is held.
func (p *Pool) pop() *Conn {
	for n := len(p.idle); n > 0; n-- {
		c := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		idle := elapsed(c.since)
		switch {
		case c.stale():
			p.remove(c, event.ClosedStale, nil)
		case p.cfg.MaxIdleTime > 0 && idle > p.cfg.MaxIdleTime:
			p.remove(c, event.ClosedIdle, nil)
		case idle > unwatched && c.HungUp():
			p.remove(c, event.ClosedError, errHungUp)
		default:
			return c
		}
	}
	return nil
}

// unwatched is how long a connection may be idle before it is looked at when it is checked out: the
// server may have closed it meanwhile, for example while the process was suspended.
const unwatched = time.Second

var errHungUp = errors.New("server closed the connection while it was idle")

// elapsed returns how long ago t was, by the clock that says more: a machine that was suspended
// does not count that time by the monotonic clock, and the wall clock may be set back.
func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// wait waits in the queue for a connection. It is called with the lock held and releases it.
func (p *Pool) wait(ctx context.Context, patience patience) (*Conn, error) {
	switch p.state {
	case closed:
		p.mu.Unlock()
		return nil, errClosed
	case paused:
		err := &mongoerr.PoolClearedError{Addr: p.addr, Cause: p.cause}
		p.mu.Unlock()
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		p.mu.Unlock()
		return nil, timeout(p.addr, "context", 0, ctx.Err())
	}
	w := p.waiters.Get().(*waiter)
	p.queue.push(w)
	p.waits++
	p.grow()
	p.mu.Unlock()

	var expired <-chan time.Time
	begun := time.Now()
	if patience.limit > 0 {
		t := time.NewTimer(patience.limit)
		defer t.Stop()
		expired = t.C
	}
	var err *mongoerr.TimeoutError
	select {
	case r := <-w.result:
		p.waiters.Put(w)
		waited := time.Since(begun)
		p.waited.Add(int64(waited))
		if r.conn != nil {
			r.conn.Waited = waited
		}
		return r.conn, r.err
	case <-ctx.Done():
		err = timeout(p.addr, "context", time.Since(begun), ctx.Err())
	case <-expired:
		err = timeout(p.addr, patience.source, time.Since(begun), errWaitQueueTimeout)
	}
	p.waited.Add(int64(err.Elapsed))
	p.mu.Lock()
	p.gaveUp++
	if !err.Canceled() && (p.cfg.LoadBalanced || p.full()) {
		err.Wrapped = p.crowded(err.Wrapped)
	}
	left := p.queue.remove(w)
	if left {
		p.disown(w)
	}
	p.mu.Unlock()
	if !left {
		if r := <-w.result; r.conn != nil { // it comes at the same moment
			p.mu.Lock()
			p.take(r.conn)
			p.mu.Unlock()
		}
	}
	p.waiters.Put(w)
	return nil, err
}

func timeout(addr, source string, elapsed time.Duration, err error) *mongoerr.TimeoutError {
	return &mongoerr.TimeoutError{Phase: "connection checkout", Source: source, Elapsed: elapsed, Addr: addr, Wrapped: err}
}

// full reports whether the pool may make no further connections. The lock is held.
func (p *Pool) full() bool { return p.cfg.MaxPoolSize > 0 && uint64(len(p.all)) >= p.cfg.MaxPoolSize }

// crowded says what holds the connections that a checkout did not get in time (specification:
// Load Balancers, "Connection Tracking"). The lock is held.
func (p *Pool) crowded(cause error) error {
	cursors, transactions := p.pinned[ForCursor], p.pinned[ForTransaction]
	if !p.cfg.LoadBalanced {
		return &crowdedError{class: cause, message: fmt.Sprintf("%v; maxPoolSize is %d, and of the connections %d are in use by cursors, "+
			"%d by transactions and %d by other operations; %d more operations wait", errWaitQueueTimeout, p.cfg.MaxPoolSize, cursors, transactions,
			len(p.all)-len(p.idle)-cursors-transactions, max(p.queue.n, 1)-1)}
	}
	return &crowdedError{class: cause, message: fmt.Sprintf("Timeout waiting for connection from the connection pool. maxPoolSize: %d, "+
		"connections in use by cursors: %d, connections in use by transactions: %d, connections in use by other operations: %d",
		p.cfg.MaxPoolSize, cursors, transactions, len(p.all)-len(p.idle)-cursors-transactions)}
}

// crowdedError is a cause with more to say.
type crowdedError struct {
	class   error
	message string
}

func (e *crowdedError) Error() string { return e.message }
func (e *crowdedError) Unwrap() error { return e.class }

// disown finds somebody else who learns of it if the connection that is being made for w cannot be
// made: the next waiter who has none, or nobody. The lock is held, and w is not in the queue any
// more.
func (p *Pool) disown(w *waiter) {
	c := w.making
	if c == nil {
		return
	}
	w.making, c.owner = nil, nil
	if next := p.unserved(); next != nil {
		next.making, c.owner = c, next
	}
}

// unserved returns the first waiter on whose behalf no connection is being made.
func (p *Pool) unserved() *waiter {
	for w := p.queue.first; w != nil; w = w.next {
		if w.making == nil {
			return w
		}
	}
	return nil
}
