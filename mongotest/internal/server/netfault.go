package server

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// NetFaults describes faults of a node's connections. The zero value is no fault.
type NetFaults struct {
	Latency   time.Duration // every reply comes that much later
	Trickle   time.Duration // replies are sent byte by byte, with this pause between bytes
	Jitter    time.Duration // and up to this much later again
	DropAfter int           // connections close after this many bytes of the next reply; 0: they do not
	CutAfter  int           // a connection closes after this many bytes, of requests and replies together; 0: it does not
	Garbage   int           // this many random bytes are sent instead of each reply; 0: none
	Reset     bool          // new connections are closed at once
	Times     int           // DropAfter and Garbage hit this many replies, CutAfter this many connections; 0: all
}

// netFault is a node's current fault with what is left of it.
type netFault struct {
	mu sync.Mutex
	NetFaults
	held    chan struct{} // not nil: replies wait until it is closed
	hung    chan struct{} // not nil: nothing is handled or answered until it is closed
	limited bool
	set     int // how often the faults have been set: CutAfter counts from then on
}

// SetNetFaults replaces what goes wrong on the node's connections.
func (n *Node) SetNetFaults(f NetFaults) {
	n.net.mu.Lock()
	n.net.NetFaults, n.net.limited = f, f.Times > 0
	n.net.set++
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
	if d := f.Latency + c.jitter(f.Jitter); d > 0 && !c.pause(nil, d) {
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

// jitter returns a time below most. It follows from the numbers of the connection and of its reply,
// so that a run which sends the same is delayed the same.
func (c *Conn) jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	c.replies++
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(c.id))
	binary.LittleEndian.PutUint32(b[4:], c.replies)
	h := fnv.New64a()
	h.Write(b[:])
	return time.Duration(h.Sum64() % uint64(most))
}

// pause waits for the channel or the time; it reports false if the node stops or the client
// disconnects meanwhile.
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

// Hang makes the process stop: connections are accepted and stay open, as the operating system of a
// process that does not run keeps them, but nothing is read or answered until Resume or Restart.
func (n *Node) Hang() {
	n.net.mu.Lock()
	if n.net.hung == nil {
		n.net.hung = make(chan struct{})
	}
	n.net.mu.Unlock()
	n.hung.Store(true)
}

// Resume ends Hang: the node handles what arrived meanwhile and sends the replies that it held
// back.
func (n *Node) Resume() {
	n.net.mu.Lock()
	if n.net.hung != nil {
		close(n.net.hung)
		n.net.hung = nil
	}
	n.net.mu.Unlock()
	n.hung.Store(false)
}

// Hangs reports whether Hang is in effect.
func (n *Node) Hangs() bool { return n.hung.Load() }

// runs waits while the process hangs; it reports false if the process ends instead.
func (n *Node) runs() bool {
	for n.hung.Load() {
		n.net.mu.Lock()
		hung := n.net.hung
		n.net.mu.Unlock()
		if hung == nil {
			return true
		}
		select {
		case <-hung:
		case <-n.shutdownChan():
			return false
		}
	}
	return true
}

// cutConn is a connection that breaks after as many bytes as NetFaults.CutAfter says.
type cutConn struct {
	net.Conn
	node *Node
	mu   sync.Mutex
	set  int // of netFault
	left int // only if doomed
	doom bool
}

// budget returns how many of n bytes may pass, and whether the connection breaks after them.
func (c *cutConn) budget(n int) (int, bool) {
	f := &c.node.net
	f.mu.Lock()
	defer f.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set != f.set {
		c.set, c.doom = f.set, false
		if f.CutAfter > 0 {
			c.doom, c.left = true, f.CutAfter
			if f.limited {
				if f.Times--; f.Times <= 0 {
					f.CutAfter, f.Times, f.limited = 0, 0, false
				}
			}
		}
	}
	if !c.doom {
		return n, false
	}
	return min(n, c.left), c.left <= n
}

func (c *cutConn) spend(n int) (broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doom {
		c.left -= n
	}
	return c.doom && c.left <= 0
}

func (c *cutConn) Read(p []byte) (int, error) {
	if !c.node.faulty.Load() {
		return c.Conn.Read(p)
	}
	most, _ := c.budget(len(p))
	if most <= 0 && len(p) > 0 {
		c.Conn.Close()
		return 0, errDropped
	}
	n, err := c.Conn.Read(p[:most])
	if c.spend(n) {
		c.Conn.Close()
		return n, errDropped
	}
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !c.node.faulty.Load() {
		return c.Conn.Write(p)
	}
	most, last := c.budget(len(p))
	n, err := c.Conn.Write(p[:max(most, 0)])
	if c.spend(n) || last {
		c.Conn.Close()
		if err == nil {
			err = errDropped
		}
	}
	return n, err
}

// reset closes a TCP connection so that the client sees a reset.
func reset(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetLinger(0)
	}
	nc.Close()
}

// Call is a command as a hook sees it, before it runs. A hook must not keep any of it: it lies in
// the connection's buffer.
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
