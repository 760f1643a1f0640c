package conn

import (
	"context"
	"sync"
	"time"

	"allium/internal/flight"
)

// Ahead is a network connection, with its TLS, that is dialed before it is known whether the server
// can be used. Nothing was sent on it: whoever takes it begins with the handshake. One that nobody
// takes stays until Close.
type Ahead struct {
	end context.CancelFunc
	// made hands the connection over. It is closed when there is none, or none any more.
	made chan *Conn
}

// DialAhead begins to dial addr as DialMonitor does, on a goroutine that counts in work and ends
// with ctx.
func DialAhead(ctx context.Context, work *sync.WaitGroup, addr string, cfg *Config) *Ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &Ahead{end: cancel, made: make(chan *Conn)}
	flight.Go(work, func() {
		defer close(a.made) // also if the program's dialer panics
		defer cancel()
		c, err := DialMonitor(ctx, addr, cfg)
		if err != nil {
			return // the monitor, or who dials again, finds out and tells
		}
		select {
		case a.made <- c:
		case <-ctx.Done():
			c.Close()
		}
	}, nil)
	return a
}

// Close gives up the connection if nobody has taken it. It does nothing on nil, and may be called
// more than once.
func (a *Ahead) Close() {
	if a != nil {
		a.end()
	}
}

// take returns the connection, for which it waits as long as a step of cfg may take. It returns nil
// if there is none, or none that is any good: then one is to be dialed. The error is that of the
// end of its time.
func (a *Ahead) take(ctx context.Context, addr string, cfg *Config) (*Conn, error) {
	if a == nil {
		return nil, nil
	}
	defer a.Close()
	start, step := time.Now(), ctx
	if limit := cfg.steps(); limit > 0 {
		var cancel context.CancelFunc
		step, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	select {
	case c := <-a.made:
		if c == nil {
			return nil, nil
		}
		if c.HungUp() {
			c.Close()
			return nil, nil
		}
		c.cfg, c.limit = cfg, cfg.steps()
		return c, nil
	case <-step.Done():
		return nil, connectError(ctx, start, addr, cfg, stepDial, step.Err())
	}
}
