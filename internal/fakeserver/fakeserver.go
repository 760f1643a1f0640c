// Package fakeserver is a network of servers in memory, for the tests of connection pools and monitors, and a SOCKS5 proxy
// on loopback. The network's connections are net.Pipes, so that tests with timeouts run in no time under testing/synctest.
// What a server answers is up to the test.
package fakeserver

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

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
	// Handle answers a request; it is called for one request of a connection at a time. It must be set before the
	// first connection.
	Handle func(*Request)
	// Accept is called with the number of the connection, from 1, before it is accepted, if it is not nil. An error
	// refuses the connection; blocking makes the dial take time.
	Accept func(ctx context.Context, n int64) error

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
	s.conns = map[*Conn]struct{}{}
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
	c := &Conn{ID: id, nc: server}
	s.mu.Lock()
	if s.down {
		s.mu.Unlock()
		return nil, refused
	}
	s.conns[c] = struct{}{}
	s.open.Add(1)
	s.mu.Unlock()
	n.wg.Go(func() {
		defer func() {
			server.Close()
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
	})
	return client, nil
}

// Accepted returns how many connections were tried, Open how many are open.
func (s *Server) Accepted() int64 { return s.accepted.Load() }
func (s *Server) Open() int64     { return s.open.Load() }

// SetDown makes the server refuse connections, and closes those that are open, or lets it answer again.
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
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c.nc, head); err != nil {
		return nil, err
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		return nil, err
	}
	msg := append(head, make([]byte, int(h.Length)-len(head))...)
	if _, err := io.ReadFull(c.nc, msg[wire.HeaderLen:]); err != nil {
		return nil, err
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		return nil, err
	}
	r := &Request{Conn: c, Msg: m, id: h.RequestID}
	for key := range m.Body.All() {
		r.Command = key
		break
	}
	return r, nil
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
	msg := wire.FinishMessage(append(wire.AppendMsg(nil, id, r.id, flags), doc...), 0)
	r.id = id
	_, err := r.Conn.nc.Write(msg)
	if errors.Is(err, io.ErrClosedPipe) {
		return net.ErrClosed
	}
	return err
}

// Doc builds a document out of functions that append its elements.
func Doc(elements ...func([]byte) []byte) bson.Raw {
	at, dst := bson.BeginDocument(nil)
	for _, e := range elements {
		dst = e(dst)
	}
	return bson.EndDocument(dst, at)
}

// Hello returns the reply to hello of a standalone server, with further elements.
func Hello(elements ...func([]byte) []byte) bson.Raw {
	return Doc(append([]func([]byte) []byte{func(dst []byte) []byte {
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
		dst = bson.AppendBool(dst, "helloOk", true)
		dst = bson.AppendInt32(dst, "maxBsonObjectSize", 16<<20)
		dst = bson.AppendInt32(dst, "maxMessageSizeBytes", wire.DefaultMaxMessageSize)
		dst = bson.AppendInt32(dst, "maxWriteBatchSize", 100000)
		dst = bson.AppendInt32(dst, "minWireVersion", 0)
		dst = bson.AppendInt32(dst, "maxWireVersion", 25)
		return bson.AppendDouble(dst, "ok", 1)
	}}, elements...)...)
}

// OK is the reply {ok: 1}.
func OK() bson.Raw {
	return Doc(func(dst []byte) []byte { return bson.AppendDouble(dst, "ok", 1) })
}

// Message returns the message of a command.
func Message(name string, elements ...func([]byte) []byte) []byte {
	doc := Doc(append([]func([]byte) []byte{
		func(dst []byte) []byte { return bson.AppendInt32(dst, name, 1) },
		func(dst []byte) []byte { return bson.AppendString(dst, "$db", "admin") },
	}, elements...)...)
	return wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc...), 0)
}

// WriteRaw sends bytes that need not be a message.
func (c *Conn) WriteRaw(b []byte) { c.nc.Write(b) }
