package server

import (
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// NetFaults is what goes wrong on a node's connections. The zero value: nothing.
type NetFaults struct {
	Latency   time.Duration // every reply comes that much later
	Trickle   time.Duration // replies are sent byte by byte, with this pause between bytes
	DropAfter int           // connections close after this many bytes of the next reply; 0: they do not
	Garbage   int           // this many random bytes are sent instead of each reply; 0: none
	Reset     bool          // new connections are closed at once
	Times     int           // DropAfter and Garbage hit this many replies; 0: all
}

// netFault is a node's current fault with what is left of it.
type netFault struct {
	mu sync.Mutex
	NetFaults
	held    chan struct{} // not nil: replies wait until it is closed
	limited bool
}

// SetNetFaults replaces what goes wrong on the node's connections.
func (n *Node) SetNetFaults(f NetFaults) {
	n.net.mu.Lock()
	n.net.NetFaults, n.net.limited = f, f.Times > 0
	n.net.mu.Unlock()
	n.faulty.Store(n.net.active())
}

// HoldReplies makes all replies of the node wait until ReleaseReplies.
func (n *Node) HoldReplies() {
	n.net.mu.Lock()
	if n.net.held == nil {
		n.net.held = make(chan struct{})
	}
	n.net.mu.Unlock()
	n.faulty.Store(true)
}

// ReleaseReplies sends what HoldReplies held back.
func (n *Node) ReleaseReplies() {
	n.net.mu.Lock()
	if n.net.held != nil {
		close(n.net.held)
		n.net.held = nil
	}
	n.net.mu.Unlock()
	n.faulty.Store(n.net.active())
}

func (f *netFault) active() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held != nil || f.NetFaults != NetFaults{}
}

// take returns the fault that applies to the next reply.
func (f *netFault) take() (NetFaults, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.NetFaults
	if f.limited && (now.DropAfter > 0 || now.Garbage > 0) {
		if f.Times--; f.Times <= 0 {
			f.DropAfter, f.Garbage, f.Times, f.limited = 0, 0, 0, false
		}
	}
	return now, f.held
}

var errDropped = errors.New("connection dropped by a fault")

// writeFaulty is write on a node where something goes wrong.
func (c *Conn) writeFaulty(b []byte) error {
	f, held := c.node.net.take()
	if held != nil {
		if !c.pause(held, 0) {
			return errDropped
		}
	}
	if f.Latency > 0 && !c.pause(nil, f.Latency) {
		return errDropped
	}
	switch {
	case f.Garbage > 0:
		b = make([]byte, f.Garbage)
		rand.Read(b)
	case f.DropAfter > 0:
		c.nc.Write(b[:min(f.DropAfter, len(b))])
		return errDropped
	}
	if f.Trickle > 0 {
		for i := range b {
			if _, err := c.nc.Write(b[i : i+1]); err != nil {
				return err
			}
			if !c.pause(nil, f.Trickle) {
				return errDropped
			}
		}
		return nil
	}
	_, err := c.nc.Write(b)
	return err
}

// pause waits for the channel or the time; it reports false if the node stops or the client goes
// meanwhile.
func (c *Conn) pause(ready <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	gone := make(chan struct{})
	stop := c.watch(func() { close(gone) })
	defer stop()
	select {
	case <-ready:
		return true
	case <-timer:
		return true
	case <-gone:
	case <-c.node.shutdownChan():
	}
	return false
}

// reset closes a TCP connection so that the client sees a reset.
func reset(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetLinger(0)
	}
	nc.Close()
}

// Call is a command as a hook sees it, before it runs. Nothing of it may be kept: it lies in the
// connection's buffer.
type Call struct {
	Node      *Node
	Conn      int32 // the connection's number on the node
	Name      string
	DB        string
	AppName   string
	Body      bson.Raw
	Sequences []wire.Sequence
}

// Hook sees every command before it runs, on the goroutine of its connection: by blocking it delays
// the command. A reply answers the command in the server's place; an error closes the connection
// without an answer.
type Hook func(*Call) (reply bson.Raw, err error)

// SetHook replaces the deployment's hook; nil for none.
func (cfg *Config) SetHook(h Hook) {
	if h == nil {
		cfg.hook.Store(nil)
		return
	}
	cfg.hook.Store(&h)
}

// runHook lets the hook look at the request. It reports whether the hook has answered.
func (r *Request) runHook(h Hook, dst []byte) (out []byte, answered bool) {
	if r.parseDB() != nil {
		r.dbSeen, r.dbTwice = false, false
		return dst, false
	}
	reply, err := h(&Call{Node: r.Node, Conn: r.Conn.id, Name: r.Name, DB: r.DB, AppName: r.Conn.client.appName, Body: r.Body, Sequences: r.Sequences})
	if !r.legacy {
		r.dbSeen, r.dbTwice = false, false
	}
	switch {
	case err != nil:
		r.hangUp = true
		return dst, true
	case reply != nil:
		return append(dst, reply...), true
	}
	return dst, false
}
