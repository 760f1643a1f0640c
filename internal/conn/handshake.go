package conn

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/failure"
	"allium/internal/hello"
	"allium/internal/wire"
	"allium/mongoerr"
)

// backpressureVersion is the version of the client backpressure specification that the driver
// follows.
const backpressureVersion = "2"

// Handshake sends the hello that must be the first message on a connection, and returns the
// server's reply (specification: MongoDB Handshake). Dial has done it; a monitor does it as its
// first check. A reply that is an error is returned as the *mongoerr.ServerError; the other errors
// are those of Dial.
func (c *Conn) Handshake(ctx context.Context) (bson.Raw, error) { return c.handshake(ctx, nil) }

func (c *Conn) handshake(ctx context.Context, attempt *auth.Attempt) (bson.Raw, error) {
	start := time.Now()
	out := getBuffer(0)
	msg := c.appendHandshake(out.b[:0], attempt)
	r, err := c.RoundTrip(ctx, msg)
	putBuffer(out)
	if err != nil {
		return nil, stepError(ctx, start, c.addr, c.cfg, stepHello, err)
	}
	reply := slices.Clone(r.Body)
	r.Release()
	d := hello.Parse(c.addr, reply)
	switch err := d.LastError.(type) {
	case nil:
	case *mongoerr.ServerError:
		if c.cfg.LoadBalanced && err.Code == commandNotFound {
			// a server older than hello
			return reply, connectError(ctx, start, c.addr, c.cfg, stepHello, errNotBalanced)
		}
		return reply, err
	case *mongoerr.ConnectionError:
		return reply, err
	default:
		return reply, connectError(ctx, start, c.addr, c.cfg, stepHello, &protocolError{err})
	}
	if c.cfg.LoadBalanced {
		if d.ServiceID == nil {
			return reply, connectError(ctx, start, c.addr, c.cfg, stepHello, errNotBalanced)
		}
		d.Kind = event.LoadBalancer
	}
	c.setHello(d)
	return reply, nil
}

// errNotBalanced is in the words of the specification Load Balancer Support.
var errNotBalanced = &unsupported{"Driver attempted to initialize in load balancing mode, but the server does not support this mode."}

// commandNotFound is the code of a command that the server does not have.
const commandNotFound = 59

type unsupported struct{ message string }

func (e *unsupported) Error() string { return e.message }

// stepError makes the error of a round trip one of a step of making the connection.
func stepError(ctx context.Context, start time.Time, addr string, cfg *Config, step string, err error) error {
	if e, ok := errors.AsType[*mongoerr.ConnectionError](err); ok {
		err = e.Wrapped
	}
	return connectError(ctx, start, addr, cfg, step, err)
}

// introduce is the handshake of a connection for operations: hello and authentication. Beside an
// error it returns the authentication if that had begun.
func (c *Conn) introduce(ctx context.Context) (*auth.Attempt, error) {
	c.limit = c.cfg.handshake()
	if c.cfg.Authenticator == nil {
		_, err := c.greet(ctx, nil)
		return nil, err
	}
	attempt, err := c.cfg.Authenticator.Attempt(ctx, c.addr)
	if err != nil {
		return nil, err
	}
	return attempt, c.authenticate(ctx, attempt)
}

// authenticate is the handshake of a connection that authenticates.
func (c *Conn) authenticate(ctx context.Context, attempt *auth.Attempt) error {
	if err := c.cfg.CheckCleartext(c.addr, attempt.Mechanism()); err != nil {
		return attempt.Error(attempt.Mechanism(), err)
	}
	reply, err := c.greet(ctx, attempt)
	if e, ok := err.(*mongoerr.ServerError); ok {
		// The hello is the first step of authentication (specification: Authentication,
		// "Authentication Handshake").
		return attempt.Error(attempt.Mechanism(), e)
	}
	if err != nil || c.hello.Kind == event.RSArbiter { // arbiters have no users
		return err
	}
	c.limit = c.cfg.authentication()
	var requests time.Duration
	if c.cfg.Operation != nil && *c.cfg.Operation > 0 {
		requests = c.cfg.steps()
	}
	if err := attempt.Finish(ctx, transport{c, requests}, reply); err != nil {
		return err
	}
	c.auth = attempt
	return nil
}

// greet is the handshake of a connection for operations, of which Config.Greeted is told.
func (c *Conn) greet(ctx context.Context, attempt *auth.Attempt) (bson.Raw, error) {
	reply, err := c.handshake(ctx, attempt)
	if err == nil && c.cfg.Greeted != nil {
		c.cfg.Greeted(c.hello)
	}
	return reply, err
}

// Reauthenticate authenticates the connection again, after the server answered a command with the
// error 391 (ReauthenticationRequired). Each step is bounded by the connection's limit and, as when
// the connection was made, by Config.ConnectTimeout. A credential that is refused is a
// *mongoerr.AuthError; the other errors are those of Dial. Every error closes the connection.
func (c *Conn) Reauthenticate(ctx context.Context) error {
	if c.auth == nil {
		return &mongoerr.AuthError{Addr: c.addr, Wrapped: errors.New("the connection was not authenticated")}
	}
	limit := c.limit
	c.limit = shorter(limit, c.cfg.ConnectTimeout)
	defer func() { c.limit = limit }()
	if err := c.auth.Reauthenticate(ctx, transport{c, 0}); err != nil {
		c.Abandon()
		return err
	}
	return nil
}

// transport runs the commands of authentication.
type transport struct {
	c        *Conn
	requests time.Duration
}

func (t transport) Addr() string { return t.c.addr }

func (t transport) Limit() time.Duration { return t.requests }

func (t transport) RunCommand(ctx context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	start := time.Now()
	out := getBuffer(0)
	msg := wire.AppendMsg(out.b[:0], wire.NextRequestID(), 0, 0)
	body, msg := bson.BeginDocument(msg)
	command := len(msg)
	msg = t.c.cfg.ServerAPI.Append(fill(msg))
	msg = bson.AppendString(msg, "$db", db)
	msg = wire.FinishMessage(bson.EndDocument(msg, body), 0)
	key, _, _ := bytes.Cut(msg[command+1:], []byte{0})
	name := string(key)
	r, err := t.c.RoundTrip(ctx, msg)
	clear(msg) // the password may be in it
	putBuffer(out)
	if err != nil {
		return nil, stepError(ctx, start, t.c.addr, t.c.cfg, stepAuth, err)
	}
	reply := slices.Clone(r.Body)
	r.Release()
	if ok, _ := reply.Lookup("ok").AsInt64(); ok != 1 {
		return nil, failure.NewServerError(name, t.c.addr, reply)
	}
	return reply, nil
}

// useHello reports whether the connection's first message is hello, not legacy hello.
func (c *Conn) useHello() bool { return c.cfg.ServerAPI != nil || c.cfg.LoadBalanced }

func (c *Conn) appendHandshake(dst []byte, attempt *auth.Attempt) []byte {
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
	if attempt != nil {
		dst = attempt.AppendHello(dst)
	}
	dst = c.cfg.ServerAPI.Append(dst)
	dst = bson.AppendString(dst, "$db", "admin")
	dst = bson.EndDocument(dst, body)
	return wire.FinishMessage(dst, start)
}

// setHello records what the server said about itself.
func (c *Conn) setHello(d *event.ServerDescription) {
	c.hello = d
	c.legacy = !c.useHello() && !d.HelloOK
	for _, name := range c.cfg.Compressors {
		if id, ok := wire.CompressorByName(name); ok && slices.Contains(d.Compressors, name) {
			c.compressor = id
			return
		}
	}
}

// AwaitHello are the parts of a hello that waits for a change of the topology (specification:
// Server Monitoring, streaming protocol). The zero value stands for a hello that is answered at
// once.
type AwaitHello struct {
	TopologyVersion *event.TopologyVersion
	MaxAwait        time.Duration
	Exhaust         bool // let the server send further replies by itself
}

// AppendHello appends the message of a hello, or legacy hello if the server does not know hello,
// for monitoring: one that is not the first on the connection.
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
		dst = bson.AppendInt64(dst, "maxAwaitTimeMS", min(await.MaxAwait.Milliseconds(), math.MaxInt32))
	}
	dst = c.cfg.ServerAPI.Append(dst)
	dst = bson.AppendString(dst, "$db", "admin")
	dst = bson.EndDocument(dst, body)
	return wire.FinishMessage(dst, start)
}
