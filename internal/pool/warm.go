package pool

import (
	"context"
	"time"

	"allium/internal/conn"
	"allium/internal/failure"
	"allium/mongoerr"
)

// Warm waits until the pool has as many connections as it is to have at least. It makes none by
// itself: the pool does, in the background. A pool that is paused has no connections to wait for,
// which is an error that is mongoerr.ErrPoolCleared. If ctx ends, the *mongoerr.TimeoutError has
// why the last connection could not be made.
func (p *Pool) Warm(ctx context.Context) error {
	start := time.Now()
	for {
		changed, failed, err := p.warm()
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return timeout(p.addr, failure.SourceOf(ctx), time.Since(start), failure.Join(ctx.Err(), failed))
		}
	}
}

// warm returns what is closed when there is a reason to look again, with why the last connection
// could not be made; or how the wait has ended.
func (p *Pool) warm() (changed chan struct{}, failed, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == closed:
		return nil, nil, errClosed
	case p.state == paused:
		return nil, nil, &mongoerr.PoolClearedError{Addr: p.addr, Cause: p.cause}
	case len(p.all)-len(p.attempts) >= p.minimum():
		return nil, nil, nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed, p.unmadeBy, nil
}

// minimum returns how many connections the pool is to have at least: at first also those that keep
// the first operations from waiting. The lock is held.
func (p *Pool) minimum() int {
	if p.warmed {
		return p.cfg.MinPoolSize
	}
	return max(p.cfg.MinPoolSize, p.cfg.Warm)
}

// DialAhead begins to dial the network connection that the pool's first connection will be made of,
// beside the monitor's, so that the first operation need not wait for that. It does nothing unless
// the pool is new and makes connections before they are needed: elsewhere what is dialed might be
// for nothing, which costs a server that many clients start on.
//
// The specification Connection Monitoring and Pooling has a pool make no connection before it is
// ready ("Creating a Connection Pool", "Populating the Pool"). What is dialed here is none in its
// sense: it has no ID and no events, counts for neither maxPoolSize nor maxConnecting, and nothing
// is sent on it, no hello either. A pool that is ready makes its first connection of it, with all
// events of one; so there is no more than one socket for each connection that the pool may have.
// The monitor's own connection is never used for operations (Server Monitoring, "Servers are
// monitored with dedicated sockets").
func (p *Pool) DialAhead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == paused && p.own.n == 0 && p.ahead == nil && p.belowMinimum() {
		p.ahead = conn.DialAhead(p.life, &p.work, p.addr, &p.conn)
	}
}

// Unusable tells the pool that a check has found a server that operations do not use.
func (p *Pool) Unusable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveUpAhead()
}

// giveUpAhead closes what was dialed ahead. The lock is held.
func (p *Pool) giveUpAhead() {
	p.ahead.Close()
	p.ahead = nil
}

// tellWarm lets Warm look again, and notes that the pool has all connections that it was to have at
// first. The lock is held.
func (p *Pool) tellWarm() {
	p.warmed = p.warmed || len(p.all)-len(p.attempts) >= p.cfg.Warm
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}
