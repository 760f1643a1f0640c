package conn

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"allium/event"
	"allium/internal/auth"
	"allium/internal/flight"
	"allium/internal/wire"
)

// Conn is a connection to a server. It is used by one goroutine at a time; Close may be called at
// any time from any.
type Conn struct {
	nc   net.Conn // what is read and written: a *tls.Conn on raw, or raw itself
	raw  net.Conn
	addr string
	cfg  *Config

	hello      *event.ServerDescription
	legacy     bool          // the server does not know hello
	maxMessage int32         // the greatest message that is read
	limit      time.Duration // the connection's own bound on the time of a round trip
	compressor wire.CompressorID
	auth       *auth.Attempt // nil if it was not authenticated

	// The reading side. partial holds what was read of a message that is not complete yet, or of
	// messages that follow the last one. readHint is how much the last reply would have needed.
	partial  *buffer
	readHint int

	// responseTo is the request id that the next message must answer. owed says that this is a
	// reply that no operation waits for, exhaust that the request lets the server send further
	// replies by itself, streaming that it does.
	responseTo int32
	behind     int32 // the request that was written behind one whose reply is owed
	isBehind   bool
	owed       bool
	exhaust    bool
	streaming  bool
	drainLeft  time.Duration

	// The socket's deadline. interrupt is called by watch when a context ends, and reports on
	// interrupted.
	hasDeadline bool
	watch       watch
	interrupt   func()
	interrupted chan struct{}

	dead   atomic.Bool
	closed atomic.Bool
}

const (
	// maxHandshakeMessage bounds what a server may send before it has authenticated, and to
	// monitors: it is far more than the hello of a replica set of fifty members with their tags.
	maxHandshakeMessage = 256 << 10
	// maxServerMessage bounds what it may send afterwards, whatever it says that its limit is.
	maxServerMessage = 4 * wire.DefaultMaxMessageSize
)

func newConn(nc net.Conn, addr string, cfg *Config) *Conn {
	c := &Conn{
		nc:          nc,
		raw:         nc,
		addr:        addr,
		cfg:         cfg,
		maxMessage:  maxHandshakeMessage,
		limit:       cfg.steps(),
		interrupted: make(chan struct{}, 1),
	}
	c.interrupt = func() {
		defer func() { c.interrupted <- struct{}{} }()
		// The network connection may be the program's own.
		if err := flight.Call(func() error { c.nc.SetDeadline(time.Unix(1, 0)); return nil }); err != nil {
			_ = flight.Call(func() error { c.Abandon(); return nil })
		}
	}
	return c
}

// Addr returns the address of the server as the connection was dialed.
func (c *Conn) Addr() string { return c.addr }

// Hello returns what the server said about itself in the handshake, nil before there was one.
func (c *Conn) Hello() *event.ServerDescription { return c.hello }

// Mechanism returns the name of the mechanism that the connection was authenticated with, "" if it
// was not.
func (c *Conn) Mechanism() string {
	if c.auth == nil {
		return ""
	}
	return string(c.auth.Mechanism())
}

// SetTimeout bounds the time of each round trip from now on, in addition to its context; when it
// passes, the connection is broken. Zero: no bound. A monitor that waits for a change of the server
// needs another bound than its handshake.
func (c *Conn) SetTimeout(d time.Duration) { c.limit = d }

// TLS returns the state of TLS, nil if the connection does not use it.
func (c *Conn) TLS() *tls.ConnectionState {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	state := t.ConnectionState()
	return &state
}

// Alive reports whether the connection can still be used: it was not closed and nothing on it
// failed.
func (c *Conn) Alive() bool { return !c.dead.Load() }

// Owed reports whether a reply is outstanding that no operation waits for any more; Drain reads it
// off.
func (c *Conn) Owed() bool { return c.owed && c.Alive() }

// Abandon closes a connection without taking time: it does not say goodbye, which TLS would wait
// for if nobody reads any more. It is safe to call it more than once.
func (c *Conn) Abandon() {
	c.dead.Store(true)
	if !c.closed.Swap(true) {
		c.raw.Close()
	}
}

// Close closes the connection. An operation that is underway on another goroutine fails. It is safe
// to call it more than once.
func (c *Conn) Close() error {
	c.dead.Store(true)
	if c.closed.Swap(true) {
		return nil
	}
	return c.nc.Close()
}
