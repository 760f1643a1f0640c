package conn

import (
	"context"
	"errors"
	"slices"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/hello"
	"allium/internal/mongoerr"
	"allium/internal/wire"
)

// backpressureVersion is the version of the client backpressure specification that the driver follows.
const backpressureVersion = "2"

// Handshake sends the hello that must be the first message on a connection, and returns the server's reply (specification:
// MongoDB Handshake). Dial has done it; a monitor does it as its first check. A reply that is an error is returned as the
// *mongoerr.ServerError; the other errors are those of Dial.
func (c *Conn) Handshake(ctx context.Context) (bson.Raw, error) {
	start := time.Now()
	out := getBuffer(0)
	msg := c.appendHandshake(out.b[:0])
	r, err := c.RoundTrip(ctx, msg)
	putBuffer(out)
	if err != nil {
		return nil, helloError(ctx, start, c.addr, err)
	}
	reply := slices.Clone(r.Body)
	r.Release()
	d := hello.Parse(c.addr, reply)
	if d.LastError != nil {
		return reply, d.LastError
	}
	c.setHello(d)
	return reply, nil
}

// helloError makes the error of a round trip one of the handshake.
func helloError(ctx context.Context, start time.Time, addr string, err error) error {
	if e, ok := errors.AsType[*mongoerr.ConnectionError](err); ok {
		err = e.Wrapped
	}
	return connectError(ctx, start, addr, stepHello, err)
}

// useHello reports whether the connection's first message is hello, not legacy hello.
func (c *Conn) useHello() bool { return c.cfg.ServerAPI != nil || c.cfg.LoadBalanced }

func (c *Conn) appendHandshake(dst []byte) []byte {
	start := len(dst)
	dst = wire.AppendMsg(dst, wire.NextRequestID(), 0, 0)
	body, dst := bson.BeginDocument(dst)
	if c.useHello() {
		dst = bson.AppendInt32(dst, "hello", 1)
	} else {
		dst = bson.AppendInt32(dst, "isMaster", 1)
		dst = bson.AppendBool(dst, "helloOk", true)
	}
	dst = bson.AppendString(dst, "backpressure", backpressureVersion)
	dst = bson.AppendDocument(dst, "client", c.cfg.Metadata.Document())
	list, dst := bson.BeginArrayElement(dst, "compression")
	n := 0
	for _, name := range c.cfg.Compressors {
		if _, ok := wire.CompressorByName(name); !ok {
			continue // refused with a warning where it was configured
		}
		dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, n), name)
		n++
	}
	dst = bson.EndDocument(dst, list)
	if c.cfg.LoadBalanced {
		dst = bson.AppendBool(dst, "loadBalanced", true)
	}
	dst = c.cfg.ServerAPI.Append(dst)
	dst = bson.AppendString(dst, "$db", "admin")
	dst = bson.EndDocument(dst, body)
	return wire.FinishMessage(dst, start)
}

// setHello takes over what the server said about itself.
func (c *Conn) setHello(d *event.ServerDescription) {
	c.hello = d
	c.legacy = !c.useHello() && !d.HelloOK
	c.maxMessage = max(wire.DefaultMaxMessageSize, d.MaxMessageSize)
	for _, name := range c.cfg.Compressors {
		if id, ok := wire.CompressorByName(name); ok && slices.Contains(d.Compressors, name) {
			c.compressor = id
			return
		}
	}
}

// AwaitHello are the parts of a hello that waits for a change of the topology (specification: Server Monitoring,
// streaming protocol). The zero value stands for a hello that is answered at once.
type AwaitHello struct {
	TopologyVersion *event.TopologyVersion
	MaxAwait        time.Duration
	Exhaust         bool // let the server send further replies by itself
}

// AppendHello appends the message of a hello, or legacy hello if the server does not know hello, for monitoring: one
// that is not the first on the connection.
func (c *Conn) AppendHello(dst []byte, await AwaitHello) []byte {
	start := len(dst)
	var flags wire.Flags
	if await.Exhaust {
		flags = wire.ExhaustAllowed
	}
	dst = wire.AppendMsg(dst, wire.NextRequestID(), 0, flags)
	body, dst := bson.BeginDocument(dst)
	if c.legacy {
		dst = bson.AppendInt32(dst, "isMaster", 1)
		dst = bson.AppendBool(dst, "helloOk", true)
	} else {
		dst = bson.AppendInt32(dst, "hello", 1)
	}
	if v := await.TopologyVersion; v != nil {
		doc, out := bson.BeginDocumentElement(dst, "topologyVersion")
		out = bson.AppendObjectID(out, "processId", v.ProcessID)
		out = bson.AppendInt64(out, "counter", v.Counter)
		dst = bson.EndDocument(out, doc)
		dst = bson.AppendInt64(dst, "maxAwaitTimeMS", await.MaxAwait.Milliseconds())
	}
	dst = c.cfg.ServerAPI.Append(dst)
	dst = bson.AppendString(dst, "$db", "admin")
	dst = bson.EndDocument(dst, body)
	return wire.FinishMessage(dst, start)
}
