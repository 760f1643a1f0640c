package conn

import (
	"context"
	"errors"
	"os"
	"time"

	"allium/mongoerr"
)

// guard is the hold of a context on the socket during one operation.
type guard struct {
	ctx   context.Context
	start time.Time
	// watched says that the context can be cancelled.
	watched bool
	// own is the connection's own deadline when it is earlier than the context's.
	own bool
}

// begin lets ctx, and limit if it is not zero, govern the socket until end is called.
func (c *Conn) begin(ctx context.Context, limit time.Duration) guard {
	g := guard{ctx: ctx}
	deadline, ok := ctx.Deadline()
	done := ctx.Done()
	if ok || done != nil || limit > 0 {
		g.start = time.Now()
	}
	if limit > 0 {
		if own := g.start.Add(limit); !ok || own.Before(deadline) {
			deadline, ok, g.own = own, true, true
		}
	}
	switch {
	case ok:
		c.nc.SetDeadline(deadline)
	case c.hasDeadline:
		c.nc.SetDeadline(time.Time{})
	}
	c.hasDeadline = ok
	if g.watched = done != nil; g.watched {
		c.watch.begin(ctx, c.interrupt)
	}
	return g
}

// end takes the context off the socket. No late call of interrupt can hit the next operation.
func (c *Conn) end(g *guard) {
	if g.watched && !c.watch.end() {
		<-c.interrupted
		c.hasDeadline = true
	}
}

// cause says whether err comes from the end of the operation's context, and if so returns the
// context's error.
func (g *guard) cause(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	if err := g.ctx.Err(); err != nil {
		return err
	}
	if _, ok := g.ctx.Deadline(); ok && !g.own {
		return context.DeadlineExceeded // the socket was quicker than the context's timer
	}
	return nil
}

// timeout returns the error of an operation that its context ended.
func (g *guard) timeout(addr string, phase mongoerr.Phase, cause error) error {
	return &mongoerr.TimeoutError{Phase: phase, Source: mongoerr.SourceCancel, Elapsed: time.Since(g.start), Addr: addr,
		Wrapped: cause}
}

// fail closes the connection and returns the error of a step of it.
func (c *Conn) fail(op string, sent bool, err error) *mongoerr.ConnectionError {
	c.Abandon()
	return &mongoerr.ConnectionError{Addr: c.addr, Op: op, Sent: sent, Wrapped: err}
}
