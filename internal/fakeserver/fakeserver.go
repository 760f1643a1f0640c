// Package fakeserver has servers that say what a test wants, where mongotest, which behaves, would
// not do: in a network in memory, whose connections are net.Pipes, so that tests with timeouts run
// in no time under testing/synctest, or on loopback. It also has a SOCKS5 proxy.
package fakeserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"allium/bson"
	"allium/internal/wire"
)

// Network is a set of servers by address. It is a conn.Dialer. The zero value has no servers.
type Network struct {
	mu      sync.Mutex
	servers map[string]*Server
	wg      sync.WaitGroup
}

// Server answers at one address.
type Server struct {
	// Handle answers a request; it is called for one request of a connection at a time. It must be
	// set before the first connection.
	Handle func(*Request)
	// Accept is called with the number of the connection, from 1, before a network in memory
	// accepts it, if it is not nil. An error refuses the connection; blocking makes the dial take
	// time.
	Accept func(ctx context.Context, n int64) error
	// TLS makes the server speak TLS only, if it is not nil.
	TLS *tls.Config

	accepted atomic.Int64
	open     atomic.Int64

	mu    sync.Mutex
	conns map[*Conn]struct{}
	down  bool
}

// Add makes a server answer at addr.
func (n *Network) Add(addr string, s *Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.servers == nil {
		n.servers = map[string]*Server{}
	}
	n.servers[addr] = s
}

// Wait waits for the end of all connections.
func (n *Network) Wait() { n.wg.Wait() }

// DialContext connects to the server at addr; network does not matter.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	s := n.servers[addr]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if s == nil {
		return nil, refused
	}
	id := s.accepted.Add(1)
	if s.Accept != nil {
		if err := s.Accept(ctx, id); err != nil {
			return nil, err
		}
	}
	client, server := net.Pipe()
	c, ok := s.accept(id, server)
	if !ok {
		return nil, refused
	}
	n.wg.Go(func() { s.serve(c) })
	return client, nil
}

// Listen makes the server answer on a port of loopback, too, until the test ends. It returns the
// address.
func (s *Server) Listen(t testing.TB) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	Accept(t, l, func(nc net.Conn) {
		if c, ok := s.accept(s.accepted.Add(1), nc); ok {
			s.serve(c)
		}
	})
	return l.Addr().String()
}

// Accept runs serve for each connection that is made to a listener. A connection is closed when
// serve returns or the test ends, which waits for all of them and closes the listener.
func Accept(t testing.TB, l net.Listener, serve func(net.Conn)) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { nc.Close() })
			wg.Go(func() {
				defer nc.Close()
				defer stop()
				serve(nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
}

// accept registers a connection, if the server is not down.
func (s *Server) accept(id int64, nc net.Conn) (c *Conn, ok bool) {
	if s.TLS != nil {
		nc = tls.Server(nc, s.TLS)
	}
	c = &Conn{ID: id, nc: nc}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, false
	}
	if s.conns == nil {
		s.conns = map[*Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	s.open.Add(1)
	return c, true
}

// serve answers the requests of a connection until it is closed.
func (s *Server) serve(c *Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.open.Add(-1)
		s.mu.Unlock()
	}()
	for {
		r, err := c.read()
		if err != nil {
			return
		}
		s.Handle(r)
	}
}

// Standing returns a Handle that answers hello with a document and what clients say when they close
// with an ok, and leaves the other commands to answer.
func Standing(hello bson.Raw, answer func(*Request)) func(*Request) {
	return func(r *Request) {
		switch {
		case r.IsHello():
			r.Reply(hello)
		case r.Command == "endSessions" || r.Command == "killCursors":
			r.Reply(OK())
		default:
			answer(r)
		}
	}
}

// Accepted returns how many connections were tried, Open how many are open.
func (s *Server) Accepted() int64 { return s.accepted.Load() }
func (s *Server) Open() int64     { return s.open.Load() }

// SetDown makes the server refuse connections, and closes those that are open, or lets it answer
// again.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	if down {
		for c := range s.conns {
			c.Close()
		}
	}
}

// Conn is the server's end of a connection.
type Conn struct {
	ID int64
	nc net.Conn
	// Data is the test's.
	Data any
}

// Close closes the connection.
func (c *Conn) Close() { c.nc.Close() }

func (c *Conn) read() (*Request, error) {
	name, id, m, err := Read(c.nc)
	if err != nil {
		return nil, err
	}
	return &Request{Command: name, Conn: c, Msg: m, id: id}, nil
}

// Request is a message from the client.
type Request struct {
	Command string // the name of the command
	Conn    *Conn
	wire.Msg
	id int32
}

// IsHello reports whether the command is hello in one of its forms.
func (r *Request) IsHello() bool {
	return r.Command == "hello" || r.Command == "isMaster" || r.Command == "ismaster"
}

// Reply answers the request.
func (r *Request) Reply(doc bson.Raw) error { return r.send(doc, 0) }

// ReplyMore answers the request and announces a further reply, which Reply or ReplyMore sends.
func (r *Request) ReplyMore(doc bson.Raw) error { return r.send(doc, wire.MoreToCome) }

func (r *Request) send(doc bson.Raw, flags wire.Flags) error {
	id := wire.NextRequestID()
	_, err := r.Conn.nc.Write(Reply(id, r.id, flags, doc))
	r.id = id
	if errors.Is(err, io.ErrClosedPipe) {
		return net.ErrClosed
	}
	return err
}

// Message returns the message that Reply sends.
func (r *Request) Message(doc bson.Raw) []byte { return Reply(wire.NextRequestID(), r.id, 0, doc) }

// WriteRaw sends bytes that need not be a message.
func (c *Conn) WriteRaw(b []byte) { c.nc.Write(b) }

// CloseWrite tells a client on loopback that nothing more comes.
func (c *Conn) CloseWrite() { c.nc.(*net.TCPConn).CloseWrite() }
