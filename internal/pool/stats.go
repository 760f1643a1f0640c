package pool

import (
	"time"

	"allium/event"
	"allium/internal/failure"
	"allium/stats"
)

var stateNames = [...]string{paused: "paused", ready: "ready", closed: "closed"}

// Stats returns what the pool has and has had.
func (p *Pool) Stats() stats.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := stats.Pool{
		Addr: p.addr, State: stateNames[p.state], PausedBy: failure.Outline(p.cause), Generation: p.own.n,
		MaxOpen: p.cfg.MaxPoolSize, MinOpen: p.cfg.MinPoolSize, Open: len(p.all), Idle: len(p.idle),
		InUseByCursors: p.pinned[ForCursor], InUseByTransactions: p.pinned[ForTransaction],
		Waiting: int(p.queue.n), WaitCount: p.waits, WaitTimeouts: p.gaveUp,
		WaitDuration: time.Duration(p.waited.Load()),
		Created:      p.lastID, Closed: p.closings,
	}
	s.Connecting, s.Draining = len(p.attempts), int(p.draining)
	s.InUse = p.inUse()
	return s
}

// count counts a connection that is closed. The lock is held.
func (p *Pool) count(reason string) {
	switch reason {
	case event.ClosedStale:
		p.closings.Stale++
	case event.ClosedIdle:
		p.closings.Idle++
	case event.ClosedError:
		p.closings.Error++
	case event.ClosedPoolClosed:
		p.closings.PoolClosed++
	}
}
