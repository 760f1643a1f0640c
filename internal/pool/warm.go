package pool

import (
	"context"
	"time"

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
	case len(p.all)-len(p.attempts) >= p.cfg.MinPoolSize:
		return nil, nil, nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed, p.unmadeBy, nil
}

// tellWarm lets Warm look again. The lock is held.
func (p *Pool) tellWarm() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}
