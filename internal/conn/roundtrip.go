package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"allium/internal/wire"
	"allium/mongoerr"
)

var (
	errClosed    = fmt.Errorf("connection is closed: %w", net.ErrClosed)
	errOwed      = errors.New("the reply to an earlier request is still outstanding")
	errNoReplies = errors.New("the server has no further replies to send")
)

// RoundTrip sends a message, a whole OP_MSG as package wire writes it, and returns the reply to it.
//
// When ctx ends before the reply is complete, the error is a *mongoerr.TimeoutError that says in
// which phase. If the message had been written whole by then, the connection stays alive and owes
// the reply, which Drain must read off before the next round trip; if the message allows more than
// one reply (exhaustAllowed), there is no end to what would have to be read off, and the connection
// is closed. Every other failure is a *mongoerr.ConnectionError and closes the connection.
func (c *Conn) RoundTrip(ctx context.Context, msg []byte) (*Reply, error) {
	g, err := c.write(ctx, msg)
	if err != nil {
		return nil, err
	}
	r, err := c.read(&g)
	c.end(&g)
	return r, err
}

// RoundTripBehind is RoundTrip on a connection that may owe a reply, which is dropped: a server
// runs the commands of one connection in turn, so that this one comes after the one that timed out
// or was cancelled.
func (c *Conn) RoundTripBehind(ctx context.Context, msg []byte) (*Reply, error) {
	if !c.Owed() {
		return c.RoundTrip(ctx, msg)
	}
	first := c.responseTo
	c.owed = false
	g, err := c.write(ctx, msg)
	if err != nil {
		c.owed = c.Alive() // nothing was written
		return nil, err
	}
	if c.isBehind { // there are two already, and nobody needs the last one
		c.end(&g)
		return nil, c.fail("write", true, errOwed)
	}
	c.responseTo, c.behind, c.isBehind = first, c.responseTo, true
	r, err := c.read(&g)
	c.end(&g)
	return r, err
}

// Send sends a message that will not be answered: it must have the flag moreToCome. The errors are
// those of RoundTrip.
func (c *Conn) Send(ctx context.Context, msg []byte) error {
	g, err := c.write(ctx, msg)
	if err != nil {
		return err
	}
	c.end(&g)
	return nil
}

// Receive returns the next reply of a server that said that more are to come (an exhaust reply).
// The errors are those of RoundTrip.
func (c *Conn) Receive(ctx context.Context) (*Reply, error) {
	switch {
	case !c.Alive():
		return nil, c.fail("read", false, errClosed)
	case c.owed:
		return nil, c.fail("read", false, errOwed)
	case !c.streaming:
		return nil, c.fail("read", false, errNoReplies)
	}
	if err := ctx.Err(); err != nil {
		g := guard{ctx: ctx, start: time.Now()}
		return nil, g.timeout(c.addr, mongoerr.PhaseRead, err)
	}
	g := c.begin(ctx, c.limit)
	r, err := c.read(&g)
	c.end(&g)
	return r, err
}

// Late returns the reply that the connection owes to a request that timed out or was cancelled:
// where Drain throws it away, Late hands it out. There must be one. If ctx ends first, the
// connection owes it still. The errors are those of RoundTrip.
func (c *Conn) Late(ctx context.Context) (*Reply, error) {
	switch {
	case !c.Alive():
		return nil, c.fail("read", false, errClosed)
	case !c.owed:
		return nil, c.fail("read", false, errNoReplies)
	}
	if err := ctx.Err(); err != nil {
		g := guard{ctx: ctx, start: time.Now()}
		return nil, g.timeout(c.addr, mongoerr.PhaseRead, err)
	}
	c.owed = false // until it turns out that it is later still
	g := c.begin(ctx, c.limit)
	r, err := c.read(&g)
	c.end(&g)
	return r, err
}

// Streaming reports whether the server sends further replies by itself, which Receive returns.
func (c *Conn) Streaming() bool { return c.streaming }

// write sends msg. If it succeeds, the guard is still on.
func (c *Conn) write(ctx context.Context, msg []byte) (guard, error) {
	switch {
	case !c.Alive():
		return guard{}, c.fail("write", false, errClosed)
	case c.owed || c.streaming:
		return guard{}, c.fail("write", false, errOwed)
	}
	if err := ctx.Err(); err != nil {
		g := guard{ctx: ctx, start: time.Now()}
		return g, g.timeout(c.addr, mongoerr.PhaseWrite, err)
	}
	exhaust := requestFlags(msg)&wire.ExhaustAllowed != 0
	var packed *buffer
	if c.compressor != wire.Noop && wire.Compressible(msg) {
		var err error
		if packed, err = c.compress(msg); err != nil {
			return guard{}, c.fail("write", false, err)
		}
		defer putBuffer(packed)
		msg = packed.b[:packed.n]
	}
	g := c.begin(ctx, c.limit)
	if n, err := c.nc.Write(msg); err != nil {
		cause := g.cause(err)
		c.end(&g)
		failed := c.fail("write", n > 0, err)
		if cause != nil {
			return g, g.timeout(c.addr, mongoerr.PhaseWrite, cause)
		}
		return g, failed
	}
	c.responseTo, c.exhaust = requestID(msg), exhaust
	return g, nil
}

// compress returns msg as an OP_COMPRESSED in a buffer of its own.
func (c *Conn) compress(msg []byte) (*buffer, error) {
	b := getBuffer(len(msg) + len(msg)/5 + 128) // what data that does not compress may grow by
	packed, err := wire.AppendCompressed(b.b[:0], msg, c.compressor, c.cfg.zlibLevel())
	if err != nil {
		putBuffer(b)
		return nil, err
	}
	b.b, b.n = packed[:cap(packed)], len(packed)
	return b, nil
}

// read reads the reply that is due.
func (c *Conn) read(g *guard) (*Reply, error) {
	r, err := c.readReply()
	if err == nil {
		return r, nil
	}
	if cause := g.cause(err); cause != nil {
		if c.exhaust {
			c.Abandon()
		} else {
			c.owed, c.drainLeft = true, c.drainTimeout()
		}
		return nil, g.timeout(c.addr, mongoerr.PhaseRead, cause)
	}
	return nil, c.fail("read", true, err)
}

func (c *Conn) drainTimeout() time.Duration {
	if c.cfg.DrainTimeout > 0 {
		return c.cfg.DrainTimeout
	}
	return DefaultDrainTimeout
}

// Drain reads off the reply that a timed-out or cancelled operation left behind. It does nothing if
// there is none.
//
// It takes no longer than Config.DrainTimeout, over all calls for the same reply: then the
// connection is closed and the error is a *mongoerr.ConnectionError, as it is for any other
// failure. If ctx ends first, the connection still owes the rest and the error is a
// *mongoerr.TimeoutError.
func (c *Conn) Drain(ctx context.Context) error {
	if !c.owed {
		return nil
	}
	if !c.Alive() {
		return c.fail("drain", false, errClosed)
	}
	start := time.Now()
	g := c.begin(ctx, c.drainLeft)
	err := c.drain()
	c.end(&g)
	c.drainLeft -= time.Since(start)
	if err == nil {
		c.owed = false
		return nil
	}
	if cause := g.cause(err); cause != nil && c.drainLeft > 0 {
		return g.timeout(c.addr, mongoerr.PhaseCheckout, cause)
	}
	return c.fail("drain", false, fmt.Errorf("reply to an earlier request: %w", err))
}

// drain reads up to the end of what the server sends by itself.
func (c *Conn) drain() error {
	for {
		r, err := c.readReply()
		if err != nil {
			return err
		}
		more := r.Flags&wire.MoreToCome != 0
		r.Release()
		if !more {
			return nil
		}
	}
}
