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
	limit  time.Duration   // 0 and less: no bound
	source mongoerr.Source // whose limit it is
	// operation is the operation's timeoutMS, nil without one. It bounds each step of a connection
	// that is made for the checkout, too.
	operation *time.Duration
}

// CheckOut returns a connection for the caller alone, which must give it back with Return.
//
// When ctx ends or the wait queue timeout passes before there is one, the error is a
// *mongoerr.TimeoutError; a connection that is being made meanwhile is not given up. The wait queue
// timeout is about the queue: once a connection is being made for the checkout, the limits of that
// count instead (specification: Connection Monitoring and Pooling, "Checking Out a Connection"). If
// the pool is paused or gets cleared, the error is a *mongoerr.PoolClearedError. If a connection
// could not be made, it is the error of that.
func (p *Pool) CheckOut(ctx context.Context) (*Conn, error) {
	return p.checkOut(ctx, patience{limit: p.cfg.WaitQueueTimeout, source: mongoerr.SourceWaitQueue})
}

// CheckOutWithin is CheckOut for an operation with a timeoutMS, for which the wait queue timeout
// does not count: it waits for what limit says is left of the time of server selection
// (specification: Client Side Operations Timeout, "Server Selection"). A limit of 0 and less is
// none. timeout is that timeoutMS, 0 if it is infinite: each step of a connection that is made for
// the operation takes no longer. The operation itself leaves earlier, when its context ends.
func (p *Pool) CheckOutWithin(ctx context.Context, limit, timeout time.Duration) (*Conn, error) {
	return p.checkOut(ctx, patience{limit, mongoerr.SourceServerSelection, &timeout})
}

func (p *Pool) checkOut(ctx context.Context, patience patience) (*Conn, error) {
	var start time.Time
	if p.listening() {
		start = time.Now()
		p.checkOutStarted(ctx)
	}
	p.operations.Add(1)
	var c *Conn
	settled := false
	defer func() {
		if !settled { // a listener has panicked
			p.unlend(c)
		}
	}()
	p.mu.Lock()
	if c = p.pop(); c != nil {
		p.mu.Unlock()
		c.Waited = 0
		p.lend(ctx, c, start)
		settled = true
		return c, nil
	}
	c, err := p.wait(ctx, patience) // unlocks
	if err != nil {
		p.operations.Add(-1)
		settled = true
		p.checkOutFailed(ctx, err, start)
		return nil, err
	}
	p.lend(ctx, c, start)
	settled = true
	return c, nil
}

// unlend ends a checkout that nobody will return from, because code that is told of it has failed.
// c is the connection that it got, or nil. Who has heard of the checkout hears of the check-in.
func (p *Pool) unlend(c *Conn) {
	if c != nil {
		c.lent.Store(kept)
		defer p.takeIn(c)
		p.checkedIn(c)
		return
	}
	p.operations.Add(-1)
}

// lend gives a connection to the operation that asked for one at start.
func (p *Pool) lend(ctx context.Context, c *Conn, start time.Time) {
	p.checkedOut(ctx, c, start)
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
		return nil, timeout(p.addr, mongoerr.SourceCancel, 0, ctx.Err())
	}
	w := &waiter{patience: patience, begun: time.Now(), result: make(chan result, 1)}
	p.queue.push(w)
	p.waits++
	p.grow()
	p.mu.Unlock()

	r := p.await(ctx, w)
	waited := time.Since(w.begun)
	p.waited.Add(int64(waited))
	if r.conn != nil {
		r.conn.Waited = waited
	}
	return r.conn, r.err
}

// await returns the result of a waiter in the queue, or of its giving up.
func (p *Pool) await(ctx context.Context, w *waiter) result {
	var expired <-chan time.Time
	if w.patience.limit > 0 {
		t := time.NewTimer(w.patience.limit)
		defer t.Stop()
		expired = t.C
	}
	for {
		var source mongoerr.Source
		var cause error
		select {
		case r := <-w.result:
			return r
		case <-ctx.Done():
			source, cause = mongoerr.SourceCancel, ctx.Err()
		case <-expired:
			source, cause = w.patience.source, errWaitQueueTimeout
		}
		p.mu.Lock()
		if cause == errWaitQueueTimeout && w.patience.operation == nil && w.making != nil {
			w.overdue, expired = true, nil
			p.mu.Unlock()
			continue
		}
		if !p.queue.remove(w) { // its result comes at the same moment
			p.mu.Unlock()
			r := <-w.result
			if cause != errWaitQueueTimeout && r.conn != nil {
				p.mu.Lock()
				p.take(r.conn)
				r = result{err: p.giveUp(w, source, cause)}
				p.mu.Unlock()
			}
			return r
		}
		if c := p.disown(w); c != nil {
			p.doubt(c)
		}
		r := result{err: p.giveUp(w, source, cause)}
		p.mu.Unlock()
		return r
	}
}

// giveUp returns the error of a waiter that leaves without a connection. The lock is held, and w is
// not in the queue any more.
func (p *Pool) giveUp(w *waiter, source mongoerr.Source, cause error) error {
	p.gaveUp++
	err := timeout(p.addr, source, time.Since(w.begun), cause)
	if !err.Canceled() && (p.cfg.LoadBalanced || p.full() || len(p.attempts) > 0) {
		err.Wrapped = p.crowded(err.Wrapped)
	}
	if waiting := p.cfg.Conn.Authenticator.Waiting(); waiting != "" {
		err.Wrapped = &crowdedError{class: err.Wrapped, message: fmt.Sprintf("%v; %s", err.Wrapped, waiting)}
	}
	return err
}

// deserted ends the wait of a waiter whose time in the queue is up, when the connection that was
// being made for it has gone to another one or was given up. The lock is held; w may be nil.
func (p *Pool) deserted(w *waiter) {
	if w != nil && w.queued && w.overdue && w.making == nil {
		p.queue.remove(w)
		w.result <- result{err: p.giveUp(w, w.patience.source, errWaitQueueTimeout)}
	}
}

func timeout(addr string, source mongoerr.Source, elapsed time.Duration, err error) *mongoerr.TimeoutError {
	return &mongoerr.TimeoutError{Phase: mongoerr.PhaseCheckout, Source: source, Elapsed: elapsed, Addr: addr,
		Wrapped: err}
}

// full reports whether the pool may make no further connections. The lock is held.
func (p *Pool) full() bool { return p.cfg.MaxPoolSize > 0 && len(p.all) >= p.cfg.MaxPoolSize }

// crowded says what holds the connections that a checkout did not get in time (specification:
// Load Balancers, "Connection Tracking"). The lock is held.
func (p *Pool) crowded(cause error) error {
	cursors, transactions := p.pinned[ForCursor], p.pinned[ForTransaction]
	others := p.inUse() - cursors - transactions
	if p.cfg.LoadBalanced {
		return &crowdedError{class: cause, message: fmt.Sprintf(
			"Timeout waiting for connection from the connection pool. maxPoolSize: %d, "+
				"connections in use by cursors: %d, connections in use by transactions: %d, connections in use by other operations: %d, "+
				"connections being made: %d, connections reading a late reply: %d",
			p.cfg.MaxPoolSize, cursors, transactions, others, len(p.attempts), p.draining)}
	}
	return &crowdedError{class: cause, message: fmt.Sprintf(
		"%v; maxPoolSize is %d, and of the connections %d are in use by cursors, "+
			"%d by transactions and %d by other operations, %d are being made and %d read a late reply; %d more operations wait", errWaitQueueTimeout,
		p.cfg.MaxPoolSize, cursors, transactions, others, len(p.attempts), p.draining, p.queue.n)}
}

// inUse returns how many connections are checked out. The lock is held.
func (p *Pool) inUse() int { return len(p.all) - len(p.idle) - len(p.attempts) - int(p.draining) }

// crowdedError is a cause with more to say.
type crowdedError struct {
	class   error
	message string
}

func (e *crowdedError) Error() string { return e.message }
func (e *crowdedError) Unwrap() error { return e.class }

// disown finds somebody else who learns of it if the connection that is being made for w cannot be
// made: the next waiter who has none. If there is no such waiter, it returns the connection. The
// lock is held, and w is not in the queue any more.
func (p *Pool) disown(w *waiter) *Conn {
	c := w.making
	if c == nil {
		return nil
	}
	w.making, c.owner = nil, nil
	if next := p.unserved(); next != nil {
		next.making, c.owner = c, next
		return nil
	}
	return c
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

// doubting returns the first waiter whose attempt may hang or has been given up, which is there
// whenever more wait than attempts count and each has one.
func (p *Pool) doubting() *waiter {
	for w := p.queue.first; w != nil; w = w.next {
		if c := w.making; c != nil && (c.doubtful || c.removed) {
			return w
		}
	}
	return nil
}
