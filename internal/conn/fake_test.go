package conn

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"allium/bson"
	"allium/internal/fakeserver"
	"allium/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer accepts connections on loopback and runs serve on each; serve returns to close the
// connection.
func fakeServer(t testing.TB, serve func(*peer)) (addr string) {
	t.Helper()
	return serveOn(t, "tcp", "127.0.0.1:0", serve)
}

func serveOn(t testing.TB, network, address string, serve func(*peer)) (addr string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	fakeserver.Accept(t, l, func(nc net.Conn) { serve(&peer{t: t, Conn: nc}) })
	return l.Addr().String()
}

// peer is the server's end of a connection.
type peer struct {
	t testing.TB
	net.Conn
	lastID int32
}

// read returns the next message, or ok == false at the end of the connection.
func (p *peer) read() (id int32, m wire.Msg, ok bool) {
	msg, ok := p.readBytes()
	if !ok {
		return 0, m, false
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		p.t.Errorf("server got a malformed message: %v", err)
		return 0, m, false
	}
	return requestID(msg), m, true
}

func (p *peer) readBytes() ([]byte, bool) {
	msg, _, err := fakeserver.ReadMessage(p)
	if err != nil && msg != nil {
		p.t.Errorf("server got a malformed header: %v", err)
	}
	return msg, err == nil
}

// message returns an OP_MSG.
func message(id, responseTo int32, flags wire.Flags, doc bson.Raw) []byte {
	return fakeserver.Reply(id, responseTo, flags, doc)
}

// reply answers the request with this id.
func (p *peer) reply(responseTo int32, doc bson.Raw) {
	p.lastID = wire.NextRequestID()
	p.Write(message(p.lastID, responseTo, 0, doc))
}

// hello answers the handshake like a standalone server, and returns what the client sent.
func (p *peer) hello(extra ...func([]byte) []byte) (bson.Raw, bool) {
	id, m, ok := p.read()
	if ok {
		p.reply(id, helloReply(extra...))
	}
	return m.Body, ok
}

func helloReply(extra ...func([]byte) []byte) bson.Raw {
	return document(func(dst []byte) []byte {
		dst = bson.AppendBool(dst, "ismaster", true)
		dst = bson.AppendBool(dst, "helloOk", true)
		dst = bson.AppendInt32(dst, "maxBsonObjectSize", 16<<20)
		dst = bson.AppendInt32(dst, "maxMessageSizeBytes", wire.DefaultMaxMessageSize)
		dst = bson.AppendInt32(dst, "maxWriteBatchSize", 100000)
		dst = bson.AppendInt32(dst, "minWireVersion", 0)
		dst = bson.AppendInt32(dst, "maxWireVersion", 25)
		dst = bson.AppendInt64(dst, "connectionId", 7)
		for _, f := range extra {
			dst = f(dst)
		}
		return bson.AppendDouble(dst, "ok", 1)
	})
}

func document(fill func([]byte) []byte) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(fill(dst), start)
}

func okReply() bson.Raw { return fakeserver.OK() }

// command returns the message of a command without arguments.
func command(name string) []byte { return fakeserver.Message(name) }

// echo answers every message with ok: 1 after a handshake.
func echo(p *peer) {
	if _, ok := p.hello(); !ok {
		return
	}
	for {
		id, _, ok := p.read()
		if !ok {
			return
		}
		p.reply(id, okReply())
	}
}

func dial(t testing.TB, addr string, cfg *Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// cancelAfter returns a context that is cancelled when done is closed.
func cancelAfter(t testing.TB, done <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// shortContext is over soon: for the clock of a synctest bubble.
func shortContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
