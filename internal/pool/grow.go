package pool

import (
	"context"
	"slices"
	"time"

	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

// grow begins to make as many connections as are needed and allowed. The lock is held.
func (p *Pool) grow() {
	for p.state == ready && p.connecting < p.maxConnecting() && p.hasRoom() {
		switch {
		case p.queue.n > p.connecting+p.draining:
			p.make(p.unserved())
		case p.belowMinimum():
			p.make(nil)
		default:
			return
		}
	}
}

func (p *Pool) maxConnecting() uint64 {
	if p.cfg.MaxConnecting == 0 {
		return DefaultMaxConnecting
	}
	return p.cfg.MaxConnecting
}

func (p *Pool) hasRoom() bool {
	return p.cfg.MaxPoolSize == 0 || uint64(len(p.all)) < p.cfg.MaxPoolSize
}

// belowMinimum reports whether there are too few connections, unless making one has just failed:
// then the next run in the background tries again.
func (p *Pool) belowMinimum() bool {
	return uint64(len(p.all)) < p.cfg.MinPoolSize && p.cfg.background >= 0 && !p.resting
}

// make begins to make a connection on behalf of w, which may be nil. The lock is held.
func (p *Pool) make(w *waiter) {
	p.lastID++
	c := &Conn{ID: p.lastID, pool: p, generation: &p.own, Generation: p.own.n, index: len(p.all), owner: w, making: true}
	if w != nil {
		w.making = c
	}
	p.all = append(p.all, c)
	p.connecting++
	ctx, cancel := context.WithCancel(p.life)
	c.cancel = cancel
	c.created = time.Now()
	p.connCreated(c)
	p.work.Go(func() {
		var err error
		c.Conn, err = p.dial(ctx, func(hello *event.ServerDescription) { p.greeted(c, hello) })
		cancel()
		if err != nil {
			p.failed(c, err)
			return
		}
		p.made(c)
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
		p.connecting--
		p.closeSocket(c)
		p.grow()
		return
	}
	if !c.stale() && p.state != closed {
		p.connReady(c)
	}
	// The connection is offered before the slot of the attempt becomes free, so that nobody makes
	// another one needlessly.
	if w := c.owner; w != nil {
		w.making, c.owner = nil, nil
	}
	p.take(c)
	p.connecting--
	p.grow()
}

// failed gives up a connection that could not be made.
func (p *Pool) failed(c *Conn, err error) {
	p.mu.Lock()
	w := c.owner
	if w != nil { // its checkout must get this error, not that of the pool being cleared because of it
		w.making, c.owner = nil, nil
		p.queue.remove(w)
	}
	c.making = false
	gaveUp := c.removed || p.state == closed
	p.mu.Unlock()
	if !gaveUp && p.cfg.ConnectFailed != nil {
		p.cfg.ConnectFailed(Failure{Err: err, Generation: c.Generation, ServiceID: c.ServiceID})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	reason := event.ClosedError
	switch {
	case p.state == closed:
		reason, err = event.ClosedPoolClosed, errClosed
	case c.removed:
		err = &mongoerr.PoolClearedError{Addr: p.addr, Interrupted: true}
	}
	p.remove(c, reason, err)
	if w != nil {
		w.result <- result{err: err}
	} else {
		p.rest()
	}
	p.connecting--
	p.grow()
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
