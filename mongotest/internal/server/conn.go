package server

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// Conn is one client connection. Its messages are handled one after the other on one goroutine.
type Conn struct {
	node *Node
	nc   net.Conn
	id   int32
	br   *bufio.Reader
	in   []byte // the message being handled
	out  []byte // its reply
	req  Request

	lastDB string // the database of the last command: see dbName

	client clientState

	mu      sync.Mutex
	running opInfo // for currentOp and killOp
}

// clientState is what a client told about itself in hello.
type clientState struct {
	metadata     bson.Raw
	appName      string
	sawHello     bool
	loadBalanced bool
	compressors  []string
	lastOp       bson.Timestamp // the client's newest write
}

// keepBuffer is how much of a connection's buffers survives a message, so that one big insert does not hold memory
// for the connection's life.
const keepBuffer = 256 << 10

func newConn(n *Node, nc net.Conn) *Conn {
	c := &Conn{node: n, nc: nc, id: n.lastConn.Add(1), br: bufio.NewReaderSize(nc, 16<<10)}
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetNoDelay(true)
	}
	return c
}

// ID returns the connection's number on its node, as hello reports it.
func (c *Conn) ID() int32 { return c.id }

// serve handles messages until the client goes, breaks the protocol, or the node stops.
func (c *Conn) serve() {
	defer c.nc.Close()
	defer c.ended()
	for {
		h, err := c.readMessage()
		if err != nil {
			return
		}
		if !c.handle(h) {
			return
		}
		if cap(c.in) > keepBuffer {
			c.in = nil
		}
		if cap(c.out) > keepBuffer {
			c.out = nil
		}
	}
}

// readMessage reads the next message, header included, into c.in.
func (c *Conn) readMessage() (wire.Header, error) {
	head, err := c.br.Peek(wire.HeaderLen)
	if err != nil {
		return wire.Header{}, err
	}
	h, err := wire.ParseHeader(head, MaxMessageSize)
	if err != nil {
		return h, err
	}
	n := int(h.Length)
	if cap(c.in) < n {
		// A client that announces 48 MB and sends nothing must not cost 48 MB.
		c.in = make([]byte, 0, min(n, 64<<10))
	}
	c.in = c.in[:0]
	for len(c.in) < n {
		step := min(n-len(c.in), max(cap(c.in)-len(c.in), 64<<10))
		at := len(c.in)
		if cap(c.in) < at+step {
			grown := make([]byte, at, min(n, 2*cap(c.in)+step))
			copy(grown, c.in)
			c.in = grown
		}
		c.in = c.in[:at+step]
		if _, err := io.ReadFull(c.br, c.in[at:]); err != nil {
			return h, err
		}
	}
	return h, nil
}

// handle answers the message in c.in. It reports whether the connection may go on.
func (c *Conn) handle(h wire.Header) bool {
	r := &c.req
	r.reset(c)
	switch h.OpCode {
	case wire.OpMsg:
		m, err := wire.ParseMsg(c.in)
		if err != nil {
			return c.refuse(h, err)
		}
		r.Body, r.Sequences, r.flags = m.Body, m.Sequences, m.Flags
	case wire.OpQuery:
		if err := r.parseQuery(c.in); err != nil {
			return false
		}
	default:
		return false
	}
	for {
		c.out = c.out[:0]
		start := c.beginReply(h)
		c.out = c.node.dispatch(r, c.out)
		if r.hangUp {
			return false
		}
		if r.flags&wire.MoreToCome != 0 {
			return true
		}
		more := r.more && r.flags&wire.ExhaustAllowed != 0
		c.finishReply(start, more)
		if err := c.write(c.out); err != nil {
			return false
		}
		if !more {
			return true
		}
		h.RequestID = int32(binary.LittleEndian.Uint32(c.out[4:])) // replies of a stream answer each other
	}
}

// beginReply starts the reply up to where its document begins.
func (c *Conn) beginReply(h wire.Header) (start int) {
	start = len(c.out)
	if c.req.legacy {
		c.out = wire.AppendHeader(c.out, wire.NextRequestID(), h.RequestID, wire.OpReply)
		c.out = append(c.out, 8, 0, 0, 0) // await capable
		c.out = append(c.out, make([]byte, 12)...)
		c.out = append(c.out, 1, 0, 0, 0)
		return start
	}
	var flags wire.Flags
	if c.req.flags&wire.ChecksumPresent != 0 {
		flags = wire.ChecksumPresent
	}
	c.out = wire.AppendMsg(c.out, wire.NextRequestID(), h.RequestID, flags)
	return start
}

func (c *Conn) finishReply(start int, more bool) {
	if more {
		flags := c.out[start+wire.HeaderLen:]
		binary.LittleEndian.PutUint32(flags, binary.LittleEndian.Uint32(flags)|uint32(wire.MoreToCome))
	}
	if !c.req.legacy && c.req.flags&wire.ChecksumPresent != 0 {
		c.out = wire.AppendChecksum(c.out, start)
		return
	}
	c.out = wire.FinishMessage(c.out, start)
}

// refuse answers a message that could not be parsed, as far as the server does so, and reports whether the connection goes on.
func (c *Conn) refuse(h wire.Header, err error) bool { return false }

func (c *Conn) write(b []byte) error {
	_, err := c.nc.Write(b)
	return err
}

// watch calls gone when the client hangs up while an operation waits. The function it returns ends the watch; nothing
// is lost of what the client sends meanwhile.
func (c *Conn) watch(gone func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := c.br.Peek(1)
		var timeout net.Error
		if err != nil && !(asNetError(err, &timeout) && timeout.Timeout()) {
			gone()
		}
	}()
	return func() {
		c.nc.SetReadDeadline(time.Unix(1, 0))
		<-done
		c.nc.SetReadDeadline(time.Time{})
	}
}

// ended tells the rest of the node that the connection is gone.
func (c *Conn) ended() {}

func asNetError(err error, target *net.Error) bool {
	ne, ok := err.(net.Error)
	if ok {
		*target = ne
	}
	return ok
}
