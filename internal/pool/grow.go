package pool

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/flight"
	"allium/mongoerr"
)

// grow begins to make as many connections as are needed and allowed. The lock is held.
//
// An attempt counts for one waiter, which has it as its own. One that takes longer than usual, or
// that a checkout has waited for in vain, counts for nobody, since it may hang; neither does a
// connection that reads off an owed reply. So nobody waits without an attempt of its own while
// another connection may be made. And each attempt that is made for want of connections is some
// waiter's, which hears of its failure: otherwise a server that refuses at once would be asked
// again and again, as long as that waiter has time.
func (p *Pool) grow() {
	for p.state == ready && len(p.attempts) < p.maxConnecting() {
		switch {
		case p.queue.n > p.coming && p.makeRoom():
			w := cmp.Or(p.unserved(), p.doubting())
			p.make(w, w.patience.operation)
		case p.belowMinimum() && !p.full():
			p.make(nil, nil)
		default:
			p.adopt()
			return
		}
	}
	p.adopt()
}

// adopt gives the attempts that count, and that nobody waits for, to waiters without one. The lock
// is held.
func (p *Pool) adopt() {
	for _, c := range p.attempts {
		if c.owner != nil || c.doubtful || !c.making {
			continue
		}
		w := p.unserved()
		if w == nil {
			return
		}
		w.making, c.owner = c, w
	}
}

func (p *Pool) maxConnecting() int {
	if p.cfg.MaxConnecting == 0 {
		return DefaultMaxConnecting
	}
	return p.cfg.MaxConnecting
}

// makeRoom reports whether the pool may have another connection for an operation. If it is full,
// but a connection reads off a reply that its operation has not waited for, that is closed: it is
// kept to spare a new one, not to let others wait (specification: Client Side Operations Timeout,
// "Command Execution", which has every such connection closed). The lock is held.
func (p *Pool) makeRoom() bool {
	if !p.full() {
		return true
	}
	if p.draining == 0 {
		return false
	}
	var first *Conn
	for _, c := range p.all {
		if c.draining && (first == nil || c.since.Before(first.since)) {
			first = c
		}
	}
	p.remove(first, event.ClosedError, errReplyOwed)
	return true
}

var errReplyOwed = errors.New(
	"the reply to an operation that has ended had not come when another operation needed the connection's place")

// belowMinimum reports whether there are too few connections, unless making one has just failed:
// then the next run in the background tries again.
func (p *Pool) belowMinimum() bool {
	return len(p.all) < p.minimum() && p.cfg.background >= 0 && !p.resting
}

// doubt notes that an attempt may hang, so that nobody counts on it. The lock is held.
func (p *Pool) doubt(c *Conn) {
	if !c.doubtful && slices.Contains(p.attempts, c) {
		c.doubtful = true
		p.coming--
	}
}

// settle takes an attempt that has ended, or was given up, off the books. The lock is held.
func (p *Pool) settle(c *Conn) {
	i := slices.Index(p.attempts, c)
	if i < 0 {
		return
	}
	p.attempts = slices.Delete(p.attempts, i, i+1)
	p.tellWarm()
	c.alarm.Stop()
	if !c.doubtful {
		p.coming--
	}
}

// make begins to make a connection on behalf of w, which may be nil. operation is the timeoutMS of
// the operation that needs it, nil if there is none. The lock is held.
func (p *Pool) make(w *waiter, operation *time.Duration) {
	p.lastID++
	c := &Conn{ID: p.lastID, pool: p, generation: &p.own, Generation: p.own.n, index: len(p.all), owner: w,
		making: true}
	if w != nil {
		if old := w.making; old != nil { // it may hang
			old.owner, old.replaced = nil, true
		}
		w.making = c
	}
	p.all = append(p.all, c)
	p.attempts = append(p.attempts, c)
	p.coming++
	c.alarm = time.AfterFunc(usual, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.doubt(c)
		p.grow()
	})
	ctx, cancel := context.WithCancel(p.life)
	c.cancel = cancel
	c.created = time.Now()
	p.connCreated(c)
	cfg := p.conn
	cfg.Operation, cfg.Greeted = operation, func(hello *event.ServerDescription) { p.greeted(c, hello) }
	cfg.Ahead, p.ahead = p.ahead, nil
	flight.Go(&p.work, func() {
		var err error
		c.Conn, err = conn.Dial(ctx, p.addr, &cfg)
		cancel()
		if err != nil {
			p.failed(c, err)
			return
		}
		p.made(c)
	}, func(err error) {
		cancel()
		p.failed(c, &mongoerr.ConnectionError{Addr: p.addr, Op: "connect", Wrapped: err})
	})
}

// greeted takes over what the server said in the hello of a new connection. Behind a load balancer
// that is when the connection learns which service it goes to, and whose generation is its own
// (specification: Load Balancers, "Initial Handshake Errors").
func (p *Pool) greeted(c *Conn, hello *event.ServerDescription) {
	if p.cfg.LoadBalanced {
		p.mu.Lock()
		p.join(c, *hello.ServiceID)
		p.mu.Unlock()
	}
	if p.cfg.Handshaken != nil {
		p.cfg.Handshaken(hello)
	}
}

// join counts a connection that is being made among those to a service. The lock is held.
func (p *Pool) join(c *Conn, id bson.ObjectID) {
	if c.removed {
		return
	}
	g := p.services[id]
	if g == nil {
		g = &generation{}
		if p.services == nil {
			p.services = map[bson.ObjectID]*generation{}
		}
		p.services[id] = g
	}
	g.conns++
	c.ServiceID, c.generation, c.Generation = &id, g, g.n
}

// made puts a new connection into use.
func (p *Pool) made(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.making = false
	if c.removed { // by Clear
		p.closeSocket(c)
		return
	}
	p.unmadeBy = nil
	if !c.stale() && p.state != closed {
		p.connReady(c)
	}
	// The connection is offered before the slot of the attempt becomes free, so that nobody makes
	// another one needlessly.
	w := c.owner
	if w != nil {
		w.making, c.owner = nil, nil
	}
	p.take(c)
	p.settle(c)
	p.grow()
	p.deserted(w)
}

// failed gives up a connection that could not be made.
func (p *Pool) failed(c *Conn, err error) {
	p.mu.Lock()
	w := c.owner
	gaveUp := c.removed || p.state == closed
	if failure.OutOfTime(err) && !gaveUp {
		p.outOfTime(c, err)
		p.mu.Unlock()
		return
	}
	if w == nil && c.replaced {
		w = cmp.Or(p.doubting(), p.queue.first)
	}
	if w != nil { // its checkout must get this error, not that of the pool being cleared because of it
		if w.making != nil {
			w.making.owner, w.making = nil, nil
		}
		p.queue.remove(w)
	}
	c.making = false
	p.mu.Unlock()
	if !gaveUp && p.cfg.ConnectFailed != nil {
		p.cfg.ConnectFailed(Failure{Err: err, Generation: c.Generation, ServiceID: c.ServiceID})
	}
	p.unmade(c, w, err)
}

// unmade takes a connection that could not be made out of the pool, and tells w, for which it was
// made.
func (p *Pool) unmade(c *Conn, w *waiter, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := event.ClosedError
	switch {
	case p.state == closed:
		reason, err = event.ClosedPoolClosed, errClosed
	case c.removed:
		err = &mongoerr.PoolClearedError{Addr: p.addr, Interrupted: true}
	}
	p.unmadeBy = failure.Detach(err)
	p.remove(c, reason, err)
	if w != nil {
		w.result <- result{err: err}
	} else {
		p.rest()
	}
	p.settle(c)
	p.grow()
}

// outOfTime gives up a connection that was not made within the timeoutMS of the operation that it
// was meant for. That says nothing about the server, and nothing to whoever waits for it now, who
// may have more time. The lock is held.
func (p *Pool) outOfTime(c *Conn, err error) {
	w := c.owner
	if w != nil {
		w.making, c.owner = nil, nil
	} else {
		p.rest()
	}
	c.making = false
	p.remove(c, event.ClosedError, err)
	p.settle(c)
	p.grow()
	p.deserted(w)
}

// rest puts off the next attempt to reach the minimum. The lock is held.
func (p *Pool) rest() {
	p.resting = true
	interval := p.cfg.background
	if interval == 0 {
		interval = retryInterval
	}
	p.plan(interval)
}

// plan makes sure that a run in the background begins in d or earlier. The lock is held.
func (p *Pool) plan(d time.Duration) {
	if p.cfg.background < 0 || p.state == closed {
		return
	}
	due := time.Now().Add(d)
	switch {
	case p.timer == nil:
		p.timer = time.AfterFunc(d, p.run)
	case p.due.IsZero() || due.Before(p.due):
		p.timer.Reset(d)
	default:
		return
	}
	p.due = due
}

// run removes connections that have been idle for too long and makes new ones up to the minimum.
func (p *Pool) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = time.Time{}
	if p.state == closed {
		return
	}
	p.resting = false
	if limit := p.cfg.MaxIdleTime; limit > 0 {
		// Those that were returned first are at the front.
		n := 0
		for n < len(p.idle) && elapsed(p.idle[n].since) > limit {
			p.remove(p.idle[n], event.ClosedIdle, nil)
			n++
		}
		p.idle = slices.Delete(p.idle, 0, n)
		if len(p.idle) > 0 {
			p.plan(limit - time.Since(p.idle[0].since) + time.Millisecond)
		}
	}
	p.grow()
}
