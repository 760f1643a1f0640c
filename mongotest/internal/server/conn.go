package server

import (
	"bufio"
	"encoding/binary"
	"hash/fnv"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/netfault"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/store"
)

// Conn is one client connection. Its messages are handled one after the other on one goroutine.
type Conn struct {
	node *Node
	nc   net.Conn
	id   int32
	br   *bufio.Reader
	in   []byte // the message being handled
	flat []byte // the same, decompressed
	out  []byte // its reply
	comp []byte // the same, compressed
	req  Request

	routing *Routing // of the requests; nil: the node is no mongos

	replies uint32 // that were delayed by chance: see sender

	spare *operation // for the next command: it was not killed

	lastDB string // the database of the last command: see dbName

	client ClientState
	user   *account.User // nil: not authenticated
	// trusted is set for the deployment's own connections, which may do everything.
	trusted bool
	txn     *session.Txn // the last one that a command began or continued

	// SASL is the conversation that has begun and is not finished: of package login. nil: none.
	SASL any

	uuid [16]byte // zero until somebody asks for it: see UUID

	mu      sync.Mutex
	running opInfo // for currentOp and killOp
}

// ClientState is what a client told about itself in hello.
type ClientState struct {
	metadata     bson.Raw
	appName      string
	sawHello     bool
	LoadBalanced bool
	Compressors  []string
	LastOp       bson.Timestamp // the client's newest write
}

// keepBuffer is how much of a connection's buffers survives a message, so that one big insert does
// not hold memory for the connection's life.
const keepBuffer = 256 << 10

func newConn(n *Node, nc net.Conn) *Conn {
	c := &Conn{node: n, nc: nc, id: n.lastConn.Add(1), br: bufio.NewReaderSize(nc, 16<<10)}
	if n.role == Mongos {
		c.routing = &Routing{}
	}
	return c
}

// ID returns the connection's number on its node, as hello reports it.
func (c *Conn) ID() int32 { return c.id }

// UUID returns what identifies the connection among those of all nodes. It belongs to the
// connection's goroutine.
func (c *Conn) UUID() [16]byte {
	if c.uuid == [16]byte{} {
		c.uuid = store.NewUUID()
	}
	return c.uuid
}

// NetConn returns the connection itself.
func (c *Conn) NetConn() net.Conn { return c.nc }

// User returns who has authenticated, nil if nobody has.
func (c *Conn) User() *account.User { return c.user }

// Trusted reports whether the connection is the deployment's own.
func (c *Conn) Trusted() bool { return c.trusted }

// Client returns what the client told about itself. It belongs to the connection's goroutine.
func (c *Conn) Client() *ClientState { return &c.client }

// serve handles messages until the client disconnects or breaks the protocol, or the node stops.
func (c *Conn) serve() {
	defer c.nc.Close()
	defer c.abandonTxn()
	if !c.node.establish() {
		return
	}
	for {
		h, err := c.readMessage()
		if err != nil {
			return
		}
		if !c.runs() || !c.handle(h) {
			return
		}
		for _, b := range []*[]byte{&c.in, &c.flat, &c.out, &c.comp} {
			if cap(*b) > keepBuffer {
				*b, c.req = nil, Request{} // the request has parts of the message
			}
		}
	}
}

// abandonTxn aborts the connection's transaction when a client behind a load balancer hangs up: no
// other connection can be sure to find this mongos (specification: Load Balancer Support,
// "Services"). One whose commit has come is no longer the connection's: the specification's tests
// repeat a commit whose connection was closed. A process that was killed aborts nothing.
func (c *Conn) abandonTxn() {
	if cmd := c.req.Cmd; cmd != nil && cmd.Name == "commitTransaction" {
		return
	}
	if c.txn == nil || !c.client.LoadBalanced || !c.runs() || c.node.Stopped() {
		return
	}
	s := c.txn.Session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.State.Txn == c.txn {
		s.Abort()
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

// handle answers the message in c.in. It reports whether the connection remains usable.
func (c *Conn) handle(h wire.Header) bool {
	r := &c.req
	r.reset(c)
	msg := c.in
	count := &c.node.counters
	count.requests.Add(1)
	count.wireIn.Add(int64(len(msg)))
	if h.OpCode == wire.OpCompressed {
		var err error
		if len(msg) < wire.HeaderLen+9 {
			return false
		}
		r.compressor = wire.CompressorID(msg[wire.HeaderLen+8])
		r.compressed = true
		if !c.mayUse(r.compressor) {
			return false
		}
		if c.flat, err = wire.AppendDecompressed(c.flat[:0], msg, MaxMessageSize); err != nil {
			return false
		}
		count.flattened[r.compressor].add(len(msg)-wire.HeaderLen-9, len(c.flat)-wire.HeaderLen)
		msg = c.flat
		if h, err = wire.ParseHeader(msg, MaxMessageSize); err != nil {
			return false
		}
	}
	count.in.Add(int64(len(msg)))
	switch h.OpCode {
	case wire.OpMsg:
		m, err := wire.ParseMsg(msg)
		if err != nil {
			return false
		}
		r.Body, r.Sequences, r.Flags = m.Body, m.Sequences, m.Flags
	case wire.OpQuery:
		if err := r.parseQuery(msg); err != nil {
			return false
		}
	case opGetMore:
		if err := r.parseGetMore(msg); err != nil {
			return false
		}
	default:
		return false
	}
	for {
		c.out = c.out[:0]
		start := c.beginReply(h)
		answered := false
		if hook := c.node.cfg.hook.Load(); hook != nil {
			c.out, answered = r.runHook(*hook, c.out)
		}
		if !answered {
			c.out = c.node.dispatch(r, c.out)
		}
		if c.node.cfg.Log != nil {
			r.log(c.out[min(start+replyHead(r.legacy), len(c.out)):])
		}
		if r.hangUp {
			r.endStream()
			return false
		}
		if r.Flags&wire.MoreToCome != 0 {
			return true
		}
		more := r.More && r.Flags&wire.ExhaustAllowed != 0
		c.finishReply(start, more)
		id := int32(binary.LittleEndian.Uint32(c.out[4:]))
		if err := c.send(); err != nil {
			r.endStream()
			return false
		}
		if !more {
			return true
		}
		h.RequestID = id // replies of a stream answer each other
		r.again()
	}
}

// mayUse reports whether the client has agreed on the compressor.
func (c *Conn) mayUse(id wire.CompressorID) bool {
	return id == 0 || slices.Contains(c.client.Compressors, id.String())
}

// send sends the reply, compressed if the request was.
func (c *Conn) send() error {
	msg := c.out
	if c.req.compressed && c.req.compressor != 0 {
		var err error
		if c.comp, err = wire.AppendCompressed(c.comp[:0], c.out, c.req.compressor, -1); err != nil {
			return err
		}
		msg = c.comp
		c.node.counters.compressed[c.req.compressor].add(len(c.out)-wire.HeaderLen, len(msg)-wire.HeaderLen-9)
	}
	c.node.counters.out.Add(int64(len(c.out)))
	c.node.counters.wireOut.Add(int64(len(msg)))
	return c.write(msg)
}

func replyHead(legacy bool) int {
	if legacy {
		return wire.HeaderLen + 20
	}
	return wire.HeaderLen + 5
}

// beginReply starts the reply up to where its document begins.
func (c *Conn) beginReply(h wire.Header) (start int) {
	start = len(c.out)
	if c.req.legacy {
		c.out = wire.AppendHeader(c.out, wire.NextRequestID(), h.RequestID, wire.OpReply)
		c.out = append(c.out, queryAwaitable, 0, 0, 0)
		c.out = append(c.out, make([]byte, 12)...)
		c.out = append(c.out, 1, 0, 0, 0)
		return start
	}
	var flags wire.Flags
	if c.req.Flags&wire.ChecksumPresent != 0 {
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
	if c.req.finds {
		c.out = finishDocuments(c.out, start)
	}
	if !c.req.legacy && c.req.Flags&wire.ChecksumPresent != 0 {
		c.out = wire.AppendChecksum(c.out, start)
		return
	}
	c.out = wire.FinishMessage(c.out, start)
}

func (c *Conn) write(b []byte) error {
	if !c.runs() {
		return netfault.ErrDropped
	}
	if c.node.Net.Faulty() {
		return c.node.Net.Write(sender{c}, b)
	}
	_, err := c.nc.Write(b)
	return err
}

// runs waits while the process hangs. It reports false if the process ends instead.
func (c *Conn) runs() bool {
	return !c.node.Net.Hangs() || c.node.Net.Await(c.node.shutdownChan())
}

// sender is the connection as a faulty network writes to it.
type sender struct{ c *Conn }

func (s sender) Write(b []byte) (int, error) { return s.c.nc.Write(b) }

// Chance follows from the numbers of the connection and of its reply.
func (s sender) Chance() uint64 {
	s.c.replies++
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(s.c.id))
	binary.LittleEndian.PutUint32(b[4:], s.c.replies)
	h := fnv.New64a()
	h.Write(b[:])
	return h.Sum64()
}

// Pause ends early if the node stops or the client disconnects.
func (s sender) Pause(ready <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	gone := make(chan struct{})
	stop := s.c.watch(func() { close(gone) })
	defer stop()
	select {
	case <-ready:
		return true
	case <-timer:
		return true
	case <-gone:
	case <-s.c.node.shutdownChan():
	}
	return false
}

// watch calls gone when the client hangs up while an operation waits. The function it returns ends
// the watch; the bytes that the client sends meanwhile stay in the buffer.
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

func asNetError(err error, target *net.Error) bool {
	ne, ok := err.(net.Error)
	if ok {
		*target = ne
	}
	return ok
}
