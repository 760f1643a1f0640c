// Package netfault breaks what a node does on the network, on demand: replies that are late, cut
// short or garbage, connections that break, a process that hangs.
package netfault

import (
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Faults describes faults of a node's connections. The zero value is no fault.
type Faults struct {
	Latency   time.Duration // every reply comes that much later
	Trickle   time.Duration // replies are sent byte by byte, with this pause between bytes
	Jitter    time.Duration // and up to this much later again
	DropAfter int           // connections close after this many bytes of the next reply; 0: they do not
	// a connection closes after this many bytes, of requests and replies together; 0: it does not
	CutAfter int
	Garbage  int  // this many random bytes are sent instead of each reply; 0: none
	Reset    bool // new connections are closed at once
	Times    int  // DropAfter and Garbage hit this many replies, CutAfter this many connections; 0: all
}

// Network is what goes wrong on one node's network. The zero value works as it should. Safe for
// concurrent use.
type Network struct {
	faulty atomic.Bool // there are faults, or replies are held
	hangs  atomic.Bool

	mu      sync.Mutex
	faults  Faults        // with what is left of them
	held    chan struct{} // not nil: replies wait until it is closed
	hung    chan struct{} // not nil: nothing is handled or answered until it is closed
	limited bool
	set     int // how often the faults have been set: CutAfter counts from then on
}

// Set replaces the faults, for open connections too.
func (n *Network) Set(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults, n.limited = f, f.Times > 0
	n.set++
	n.noteLocked()
}

// Hold makes all replies wait until Release.
func (n *Network) Hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held = make(chan struct{})
	}
	n.noteLocked()
}

// Release sends what Hold held back.
func (n *Network) Release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
	n.noteLocked()
}

func (n *Network) noteLocked() { n.faulty.Store(n.held != nil || n.faults != Faults{}) }

// Faulty reports whether replies have to go through [Network.Write].
func (n *Network) Faulty() bool { return n.faulty.Load() }

// Refuses reports whether new connections are closed at once.
func (n *Network) Refuses() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults.Reset
}

// take returns the faults that apply to the next reply, and what it waits for.
func (n *Network) take() (Faults, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.faults
	if n.limited && (now.DropAfter > 0 || now.Garbage > 0) {
		if n.faults.Times--; n.faults.Times <= 0 {
			n.faults.DropAfter, n.faults.Garbage, n.faults.Times, n.limited = 0, 0, 0, false
		}
	}
	return now, n.held
}

// Hang makes the process stop: connections are accepted and stay open, as the operating system of a
// process that does not run keeps them, but nothing is read or answered until Resume.
func (n *Network) Hang() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hung == nil {
		n.hung = make(chan struct{})
	}
	n.hangs.Store(true)
}

// Resume ends Hang: the node handles what arrived meanwhile and sends the replies that it held
// back.
func (n *Network) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hung != nil {
		close(n.hung)
		n.hung = nil
	}
	n.hangs.Store(false)
}

// Hangs reports whether Hang is in effect.
func (n *Network) Hangs() bool { return n.hangs.Load() }

// Await waits while the process hangs. It reports false if stop is closed first: the process ends.
func (n *Network) Await(stop <-chan struct{}) bool {
	for n.hangs.Load() {
		n.mu.Lock()
		hung := n.hung
		n.mu.Unlock()
		if hung == nil {
			return true
		}
		select {
		case <-hung:
		case <-stop:
			return false
		}
	}
	return true
}

// ErrDropped is the error of a connection that a fault has broken.
var ErrDropped = errors.New("connection dropped by a fault")

// Sender is the connection that a reply goes to.
type Sender interface {
	Write(b []byte) (int, error)
	// Pause waits for the channel or the time, 0 for the channel alone. It reports false if there
	// is nobody any more who waits for the reply.
	Pause(ready <-chan struct{}, d time.Duration) bool
	// Chance returns a number for each reply, from which the jitter follows. A run that sends the
	// same is delayed the same.
	Chance() uint64
}

// Write sends a reply as the faults have it.
func (n *Network) Write(to Sender, b []byte) error {
	f, held := n.take()
	if held != nil && !to.Pause(held, 0) {
		return ErrDropped
	}
	delay := f.Latency
	if f.Jitter > 0 {
		delay += time.Duration(to.Chance() % uint64(f.Jitter))
	}
	if delay > 0 && !to.Pause(nil, delay) {
		return ErrDropped
	}
	switch {
	case f.Garbage > 0:
		b = make([]byte, f.Garbage)
		rand.Read(b)
	case f.DropAfter > 0:
		to.Write(b[:min(f.DropAfter, len(b))])
		return ErrDropped
	}
	if f.Trickle > 0 {
		for i := range b {
			if _, err := to.Write(b[i : i+1]); err != nil {
				return err
			}
			if !to.Pause(nil, f.Trickle) {
				return ErrDropped
			}
		}
		return nil
	}
	_, err := to.Write(b)
	return err
}

// Wrap returns a connection that breaks when the faults say so.
func (n *Network) Wrap(nc net.Conn) net.Conn { return &cutConn{Conn: nc, n: n} }

// cutConn is a connection that breaks after as many bytes as Faults.CutAfter says.
type cutConn struct {
	net.Conn
	n    *Network
	mu   sync.Mutex
	set  int // of Network
	left int // only if doomed
	doom bool
}

// budget returns how many of some bytes may pass, and whether the connection breaks after them.
func (c *cutConn) budget(size int) (int, bool) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set != n.set {
		c.set, c.doom = n.set, false
		if n.faults.CutAfter > 0 {
			c.doom, c.left = true, n.faults.CutAfter
			if n.limited {
				if n.faults.Times--; n.faults.Times <= 0 {
					n.faults.CutAfter, n.faults.Times, n.limited = 0, 0, false
				}
			}
		}
	}
	if !c.doom {
		return size, false
	}
	return min(size, c.left), c.left <= size
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
	if !c.n.Faulty() {
		return c.Conn.Read(p)
	}
	most, _ := c.budget(len(p))
	if most <= 0 && len(p) > 0 {
		c.Conn.Close()
		return 0, ErrDropped
	}
	n, err := c.Conn.Read(p[:most])
	if c.spend(n) {
		c.Conn.Close()
		return n, ErrDropped
	}
	return n, err
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !c.n.Faulty() {
		return c.Conn.Write(p)
	}
	most, last := c.budget(len(p))
	n, err := c.Conn.Write(p[:max(most, 0)])
	if c.spend(n) || last {
		c.Conn.Close()
		if err == nil {
			err = ErrDropped
		}
	}
	return n, err
}

// Reset closes a TCP connection so that the client sees a reset.
func Reset(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetLinger(0)
	}
	nc.Close()
}
