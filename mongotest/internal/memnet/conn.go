package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// window is how many bytes one direction holds before a writer has to wait.
const window = 1 << 20

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	data    []byte
	off     int
	eof     bool          // the writer is done
	broken  bool          // the reader is gone
	changed chan struct{} // closed when any of it changes and somebody waits
	waiting bool
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

// wakeLocked wakes whoever waits for a change.
func (s *stream) wakeLocked() {
	if s.waiting {
		s.waiting = false
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *stream) waitLocked() <-chan struct{} {
	s.waiting = true
	return s.changed
}

func (s *stream) read(p []byte, d *deadline, closed <-chan struct{}) (int, error) {
	for {
		if d.passed() {
			return 0, os.ErrDeadlineExceeded
		}
		s.mu.Lock()
		if isDone(closed) {
			s.mu.Unlock()
			return 0, net.ErrClosed
		}
		if n := copy(p, s.data[s.off:]); n > 0 || len(p) == 0 {
			if s.off += n; s.off == len(s.data) {
				s.data, s.off = s.data[:0], 0
			}
			s.wakeLocked()
			s.mu.Unlock()
			return n, nil
		}
		if s.eof {
			s.mu.Unlock()
			return 0, io.EOF
		}
		changed := s.waitLocked()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-closed:
		case <-d.wait():
		}
	}
}

func (s *stream) write(p []byte, d *deadline, closed <-chan struct{}) (n int, err error) {
	for {
		if d.passed() {
			return n, os.ErrDeadlineExceeded
		}
		s.mu.Lock()
		if isDone(closed) || s.eof {
			s.mu.Unlock()
			return n, net.ErrClosed
		}
		if s.broken {
			s.mu.Unlock()
			return n, io.ErrClosedPipe
		}
		if room := window - (len(s.data) - s.off); room > 0 && len(p) > 0 {
			step := min(room, len(p))
			s.data = append(s.data, p[:step]...)
			p, n = p[step:], n+step
			s.wakeLocked()
		}
		if len(p) == 0 {
			s.mu.Unlock()
			return n, nil
		}
		changed := s.waitLocked()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-closed:
		case <-d.wait():
		}
	}
}

func (s *stream) end(reader bool) {
	s.mu.Lock()
	if reader {
		s.broken = true
	} else {
		s.eof = true
	}
	s.wakeLocked()
	s.mu.Unlock()
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote addr
	once          sync.Once
	closed        chan struct{}
	readDeadline  deadline
	writeDeadline deadline
}

// Pipe returns the two ends of a buffered connection between these addresses.
func Pipe(client, server string) (net.Conn, net.Conn) {
	up, down := newStream(), newStream()
	a := &conn{in: down, out: up, local: addr(client), remote: addr(server), closed: make(chan struct{})}
	b := &conn{in: up, out: down, local: addr(server), remote: addr(client), closed: make(chan struct{})}
	return a, b
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p, &c.readDeadline, c.closed)
	return n, c.wrap("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p, &c.writeDeadline, c.closed)
	return n, c.wrap("write", err)
}

func (c *conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "memory", Source: c.local, Addr: c.remote, Err: err}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.in.end(true)
		c.out.end(false)
		c.readDeadline.set(time.Time{})
		c.writeDeadline.set(time.Time{})
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.readDeadline.set(t)
	c.writeDeadline.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.readDeadline.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.set(t)
	return nil
}

// deadline is a point in time that reads or writes must not wait beyond. The zero value is none.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when the deadline has passed, and when it is set anew
	past  bool
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.done != nil {
		close(d.done) // those who wait look at the new deadline
		d.done = nil
	}
	d.past = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.past = true
		return
	}
	done := make(chan struct{})
	d.done = done
	d.timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.done == done {
			d.past, d.done = true, nil
			close(done)
		}
	})
}

func (d *deadline) passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.past
}

// wait returns a channel that is closed when the deadline passes or changes.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.past {
		return closedChan
	}
	if d.done == nil {
		d.done = make(chan struct{})
	}
	return d.done
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
