package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/wire"
	"allium/mongoerr"
)

func TestDialAndRoundTrip(t *testing.T) {
	c := dial(t, fakeServer(t, echo), &Config{})
	d := c.Hello()
	if d == nil || d.Kind != event.Standalone || d.MaxWireVersion != 25 || d.ServerConnectionID == nil || *d.ServerConnectionID != 7 {
		t.Fatalf("hello = %+v", d)
	}
	for range 3 {
		r, err := c.RoundTrip(t.Context(), command("ping"))
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := r.Body.Lookup("ok").Double(); ok != 1 {
			t.Fatalf("reply %x", []byte(r.Body))
		}
		r.Release()
	}
}

func TestFirstHello(t *testing.T) {
	tests := []struct {
		name    string
		cfg     Config
		command string
		has     []string
		hasNot  []string
	}{
		{"plain", Config{}, "isMaster", []string{"helloOk", "backpressure", "client", "compression"}, []string{"loadBalanced", "apiVersion"}},
		{"stable API", Config{ServerAPI: &ServerAPI{Version: "1", Strict: true}}, "hello",
			[]string{"apiVersion", "apiStrict"}, []string{"helloOk", "apiDeprecationErrors"}},
		{"load balanced", Config{LoadBalanced: true}, "hello", []string{"loadBalanced"}, []string{"helloOk"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan bson.Raw, 1)
			dial(t, fakeServer(t, func(p *peer) {
				doc, _ := p.hello(func(dst []byte) []byte { return bson.AppendObjectID(dst, "serviceId", bson.NewObjectID()) })
				got <- doc
				p.read()
			}), &tt.cfg)
			doc := <-got
			for key := range doc.All() {
				if key != tt.command {
					t.Errorf("command is %s, want %s", key, tt.command)
				}
				break
			}
			for _, key := range tt.has {
				if doc.Lookup(key).Type == 0 {
					t.Errorf("hello lacks %s", key)
				}
			}
			for _, key := range tt.hasNot {
				if doc.Lookup(key).Type != 0 {
					t.Errorf("hello has %s", key)
				}
			}
		})
	}
}

func TestNoLoadBalancer(t *testing.T) {
	for name, greet := range map[string]func(*peer){
		"without load balancing": func(p *peer) { p.hello() },
		"without hello": func(p *peer) {
			id, _, _ := p.read()
			p.reply(id, document(func(dst []byte) []byte {
				return bson.AppendString(bson.AppendInt32(bson.AppendDouble(dst, "ok", 0), "code", 59), "codeName", "CommandNotFound")
			}))
		},
	} {
		addr := fakeServer(t, func(p *peer) { greet(p); p.read() })
		_, err := Dial(t.Context(), addr, &Config{LoadBalanced: true})
		if err == nil || mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) || !strings.Contains(err.Error(), "load balancing mode") {
			t.Errorf("a server %s: %v", name, err)
		}
	}
}

// A legacy server that does not know hello is asked with legacy hello from then on.
func TestMonitoringHello(t *testing.T) {
	for _, helloOK := range []bool{true, false} {
		names := make(chan string, 2)
		addr := fakeServer(t, func(p *peer) {
			for {
				id, m, ok := p.read()
				if !ok {
					return
				}
				for key := range m.Body.All() {
					names <- key
					break
				}
				p.reply(id, document(func(dst []byte) []byte {
					return bson.AppendDouble(bson.AppendBool(dst, "helloOk", helloOK), "ok", 1)
				}))
			}
		})
		c, err := DialMonitor(t.Context(), addr, &Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name := <-names; name != "isMaster" {
			t.Errorf("first message is %s", name)
		}
		if _, err := c.RoundTrip(t.Context(), c.AppendHello(nil, AwaitHello{})); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "hello", false: "isMaster"}[helloOK]
		if name := <-names; name != want {
			t.Errorf("helloOk %v: second message is %s, want %s", helloOK, name, want)
		}
	}
}

// Every reply that is not one closes the connection with an error that names the step.
func TestMalformedReply(t *testing.T) {
	good := func(id int32) []byte { return message(99, id, 0, okReply()) }
	nested := func() bson.Raw {
		start, doc := bson.BeginDocument(nil)
		starts := []int{start}
		for range 20000 {
			start, doc = bson.BeginDocumentElement(doc, "a")
			starts = append(starts, start)
		}
		for _, start := range slices.Backward(starts) {
			doc = bson.EndDocument(doc, start)
		}
		return doc
	}
	tests := []struct {
		name  string
		reply func(id int32) []byte
		want  string // "" if the reply is accepted as far as this package looks
	}{
		{"good", good, ""},
		{"closed at once", func(int32) []byte { return nil }, "EOF"},
		{"cut in the header", func(id int32) []byte { return good(id)[:7] }, "unexpected EOF"},
		{"cut in the body", func(id int32) []byte { m := good(id); return m[:len(m)-1] }, "unexpected EOF"},
		{"text", func(int32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, "over the limit"},
		{"negative length", func(id int32) []byte {
			m := good(id)
			binary.LittleEndian.PutUint32(m, 0xFFFFFFFF)
			return m
		}, "shorter than a header"},
		{"oversized", func(id int32) []byte {
			m := good(id)
			binary.LittleEndian.PutUint32(m, wire.DefaultMaxMessageSize+1)
			return m
		}, "over the limit"},
		{"wrong responseTo", func(id int32) []byte { return good(id + 1) }, "reply answers request"},
		{"unknown operation code", func(id int32) []byte {
			m := good(id)
			binary.LittleEndian.PutUint32(m[12:], 4711)
			return m
		}, "operation code 4711"},
		{"bad checksum", func(id int32) []byte {
			m := append(wire.AppendMsg(nil, 99, id, wire.ChecksumPresent), okReply()...)
			m = wire.AppendChecksum(m, 0)
			m[len(m)-1] ^= 1
			return m
		}, "checksum"},
		{"good checksum", func(id int32) []byte {
			return wire.AppendChecksum(append(wire.AppendMsg(nil, 99, id, wire.ChecksumPresent), okReply()...), 0)
		}, ""},
		{"body length over the message", func(id int32) []byte {
			m := good(id)
			binary.LittleEndian.PutUint32(m[wire.HeaderLen+5:], 1000)
			return m
		}, "OP_MSG body"},
		{"no body", func(id int32) []byte { return wire.FinishMessage(wire.AppendMsg(nil, 99, id, 0)[:wire.HeaderLen+4], 0) }, "no body"},
		{"unknown flag", func(id int32) []byte { return message(99, id, 1<<5, okReply()) }, "unknown required flag"},
		{"document sequence", func(id int32) []byte {
			at, m := wire.BeginSequence(good(id), "documents")
			return wire.FinishMessage(wire.EndSequence(m, at), 0)
		}, "has a document sequence"},
		{"further replies that were not asked for", func(id int32) []byte { return message(99, id, wire.MoreToCome, okReply()) }, "not asked for"},
		{"nesting bomb", func(id int32) []byte { return message(99, id, 0, nested()) }, ""},
	}
	for _, tt := range tests {
		for _, step := range []string{"hello", "read"} {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				addr := fakeServer(t, func(p *peer) {
					if step == "read" {
						p.hello()
					}
					id, _, ok := p.read()
					if !ok {
						return
					}
					p.Write(tt.reply(id))
					if tt.want == "" {
						p.read()
					}
				})
				c, err := Dial(t.Context(), addr, &Config{})
				if err == nil {
					defer c.Close()
					_, err = c.RoundTrip(t.Context(), command("ping"))
				}
				if tt.want == "" {
					if step == "read" && err != nil {
						t.Fatal(err)
					}
					return
				}
				ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
				if !ok {
					t.Fatalf("error %T: %v", err, err)
				}
				if ce.Op != step || !strings.Contains(err.Error(), tt.want) || ce.Addr != addr {
					t.Errorf("error %q, want step %q and %q", err, step, tt.want)
				}
				if c != nil && c.Alive() {
					t.Error("connection is still alive")
				}
			})
		}
	}
}

// A server that says that it sends messages of any length is not taken at its word.
func TestMessageLimitOfServer(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		p.hello(func(dst []byte) []byte { return bson.AppendInt64(dst, "maxMessageSizeBytes", math.MaxInt64) })
		id, _, _ := p.read()
		m := message(99, id, 0, okReply())
		binary.LittleEndian.PutUint32(m, math.MaxInt32)
		p.Write(m)
		p.read()
	})
	c := dial(t, addr, &Config{})
	if _, err := c.RoundTrip(t.Context(), command("ping")); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("error %v", err)
	}
}

// Before a server has authenticated, and to monitors, it may send little.
func TestMessageLimitBeforeAuthentication(t *testing.T) {
	large := func(p *peer, id int32) {
		p.reply(id, document(func(dst []byte) []byte {
			return bson.AppendDouble(bson.AppendBinary(dst, "x", 0, make([]byte, maxHandshakeMessage)), "ok", 1)
		}))
	}
	addr := fakeServer(t, func(p *peer) {
		if _, ok := p.hello(); ok {
			id, _, _ := p.read()
			large(p, id)
			p.read()
		}
	})
	_, err := Dial(t.Context(), addr, &Config{Authenticator: authenticator(t, "mongodb://u:p@h/?authMechanism=PLAIN")})
	if err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("authentication: error %v", err)
	}
	c, err := DialMonitor(t.Context(), addr, &Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Handshake(t.Context()); err == nil {
		_, err = c.RoundTrip(t.Context(), c.AppendHello(nil, AwaitHello{}))
	}
	if err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("monitor: error %v", err)
	}
	r, err := dial(t, addr, &Config{}).RoundTrip(t.Context(), command("ping"))
	if err != nil {
		t.Fatalf("operation: %v", err)
	}
	r.Release()
}

// Memory for a giant message is taken as it arrives, not on the word of its header.
func TestGiantLengthTakesNoMemory(t *testing.T) {
	head := wire.AppendMsg(nil, 99, 0, 0)
	binary.LittleEndian.PutUint32(head, maxServerMessage)
	body := append(head, make([]byte, 1<<10)...)
	c := newConn(&tape{data: body, piece: len(body)}, "tape:27017", &Config{})
	c.maxMessage = maxServerMessage
	before := allocated()
	if _, err := c.readReply(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if n := allocated() - before; n > 1<<20 {
		t.Errorf("%d bytes were allocated for %d", n, len(body))
	}

	// One that does come is read whole.
	const size = 50 << 20
	doc := document(func(dst []byte) []byte { return bson.AppendBinary(dst, "x", 0, make([]byte, size)) })
	whole := message(99, 0, 0, doc)
	c = newConn(&tape{data: whole, piece: 1 << 20}, "tape:27017", &Config{})
	c.maxMessage = maxServerMessage
	r, err := c.readReply()
	if err != nil || !bytes.Equal(r.Body, doc) {
		t.Errorf("%d bytes: %v", size, err)
	}
}

// allocated returns how many bytes the process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A timed-out or cancelled round trip leaves its reply behind; the connection stays usable once it
// is drained.
func TestOwedReply(t *testing.T) {
	for _, cut := range []int{0, 3, wire.HeaderLen, 30} { // how much of the reply arrives in time
		asked, proceed := make(chan struct{}), make(chan struct{})
		addr := fakeServer(t, func(p *peer) {
			p.hello()
			id, _, _ := p.read()
			late := message(99, id, 0, okReply())
			p.Write(late[:cut])
			close(asked)
			<-proceed
			p.Write(late[cut:])
			for {
				id, _, ok := p.read()
				if !ok {
					return
				}
				p.reply(id, okReply())
			}
		})
		c := dial(t, addr, &Config{})
		_, err := c.RoundTrip(cancelAfter(t, asked), command("ping"))
		te, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || te.Phase != "read" || !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if !c.Owed() || !c.Alive() {
			t.Fatalf("owed %v, alive %v", c.Owed(), c.Alive())
		}
		// Draining under a context that ends keeps it owed.
		short, cancelShort := context.WithTimeout(t.Context(), time.Millisecond)
		if err := c.Drain(short); !errors.Is(err, context.DeadlineExceeded) || !c.Owed() {
			t.Fatalf("drain under a short context: %v, owed %v", err, c.Owed())
		}
		cancelShort()
		close(proceed)
		if err := c.Drain(t.Context()); err != nil || c.Owed() {
			t.Fatalf("drain: %v, owed %v", err, c.Owed())
		}
		r, err := c.RoundTrip(t.Context(), command("ping"))
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
}

// Late hands out the reply that a timed-out round trip left behind, whichever part of it came in
// time.
func TestLateReply(t *testing.T) {
	for _, cut := range []int{0, 3, wire.HeaderLen, 30} {
		asked, proceed := make(chan struct{}), make(chan struct{})
		addr := fakeServer(t, func(p *peer) {
			p.hello()
			id, _, _ := p.read()
			late := message(99, id, 0, okReply())
			p.Write(late[:cut])
			close(asked)
			<-proceed
			p.Write(late[cut:])
			if id, _, ok := p.read(); ok {
				p.reply(id, okReply())
			}
			p.read()
		})
		c := dial(t, addr, &Config{})
		if _, err := c.RoundTrip(cancelAfter(t, asked), command("ping")); !errors.Is(err, context.Canceled) || !c.Owed() {
			t.Fatalf("error %v, owed %v", err, c.Owed())
		}
		ended, end := context.WithCancel(t.Context())
		end()
		short, cancelShort := context.WithTimeout(t.Context(), time.Millisecond)
		for _, ctx := range []context.Context{ended, short} {
			te, ok := errors.AsType[*mongoerr.TimeoutError](second(c.Late(ctx)))
			if !ok || te.Phase != "read" || !c.Owed() {
				t.Fatalf("late under a context that ends: %v, owed %v", te, c.Owed())
			}
		}
		cancelShort()
		close(proceed)
		r, err := c.Late(t.Context())
		if err != nil || c.Owed() || !r.Body.Lookup("ok").AsBool() {
			t.Fatalf("late: %v, owed %v", err, c.Owed())
		}
		r.Release()
		if r, err = c.RoundTrip(t.Context(), command("ping")); err != nil {
			t.Fatal(err)
		}
		r.Release()
		if err := second(c.Late(t.Context())); err == nil || c.Alive() {
			t.Fatalf("no reply is owed: %v, alive %v", err, c.Alive())
		}
	}
}

func second[A any](_ A, err error) error { return err }

// silent answers the hello and nothing else.
func silent(p *peer) {
	p.hello()
	p.read()
	p.read()
}

func TestDeadlineIsExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, "silent:27017", &Config{Dialer: pipeDialer(silent)})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.RoundTrip(ctx, command("ping"))
		te, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || te.Phase != "read" || te.Elapsed != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if !c.Owed() {
			t.Error("no reply is owed")
		}
	})
}

// The time that a reply may be waited for after its operation is bounded, over all calls of Drain.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, "silent:27017", &Config{Dialer: pipeDialer(silent)})
		defer c.Close()
		if _, err := c.RoundTrip(shortContext(t), command("ping")); err == nil {
			t.Fatal("no error")
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), DefaultDrainTimeout/4)
		defer cancel()
		if err := c.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !c.Owed() {
			t.Fatalf("drain: %v, owed %v", err, c.Owed())
		}
		err := c.Drain(t.Context())
		if _, ok := errors.AsType[*mongoerr.ConnectionError](err); !ok || c.Alive() {
			t.Fatalf("drain: %v, alive %v", err, c.Alive())
		}
		if took := time.Since(start); took != DefaultDrainTimeout {
			t.Errorf("took %v", took)
		}
	})
}

func TestContextIsOverBefore(t *testing.T) {
	c := dial(t, fakeServer(t, echo), &Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.RoundTrip(ctx, command("ping")); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if c.Owed() || !c.Alive() {
		t.Fatalf("owed %v, alive %v: nothing was sent", c.Owed(), c.Alive())
	}
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
}

// A write that is cut in the middle breaks the connection.
func TestWriteIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		c := dial(t, "slow:27017", &Config{Dialer: pipeDialer(func(p *peer) {
			p.hello()
			p.Read(make([]byte, 10))
			<-release
		})})
		_, err := c.RoundTrip(shortContext(t), command("ping"))
		te, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || te.Phase != "write" || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if c.Alive() || c.Owed() {
			t.Errorf("alive %v, owed %v", c.Alive(), c.Owed())
		}
	})
}

func TestSocketTimeoutBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, "silent:27017", &Config{Dialer: pipeDialer(silent)})
		c.SetTimeout(time.Second)
		_, err := c.RoundTrip(t.Context(), command("ping"))
		ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
		if !ok || !ce.Timeout() || ce.Op != "read" || c.Alive() {
			t.Fatalf("error %v, alive %v", err, c.Alive())
		}
	})
}

// A server that accepts and says nothing: the context or the connect timeout ends the handshake.
func TestSilentHandshake(t *testing.T) {
	nothing := pipeDialer(func(p *peer) { p.read(); p.read() })
	synctest.Test(t, func(t *testing.T) {
		_, err := Dial(shortContext(t), "silent:27017", &Config{Dialer: nothing})
		if te, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || te.Phase != "connect (hello)" || te.Addr != "silent:27017" {
			t.Errorf("context: %v", err)
		}
		_, err = Dial(t.Context(), "silent:27017", &Config{Dialer: nothing, ConnectTimeout: time.Second})
		ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
		if !ok || ce.Op != "hello" || !ce.Timeout() || !ce.HasLabel(mongoerr.LabelSystemOverloaded) {
			t.Errorf("connect timeout: %v", err)
		}
	})
}

func TestCloseInterrupts(t *testing.T) {
	asked := make(chan struct{})
	addr := fakeServer(t, func(p *peer) {
		p.hello()
		p.read()
		close(asked)
		p.read()
	})
	c := dial(t, addr, &Config{})
	go func() {
		<-asked
		c.Close()
	}()
	_, err := c.RoundTrip(t.Context(), command("ping"))
	if _, ok := errors.AsType[*mongoerr.ConnectionError](err); !ok || !errors.Is(err, net.ErrClosed) {
		t.Fatalf("error %v", err)
	}
}

func TestExhaust(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		p.hello()
		id, m, _ := p.read()
		if m.Flags&wire.ExhaustAllowed == 0 {
			t.Error("exhaust is not allowed")
		}
		var all []byte
		for i := range int32(3) {
			flags := wire.MoreToCome
			if i == 2 {
				flags = 0
			}
			all = append(all, message(100+i, id, flags, okReply())...)
			id = 100 + i
		}
		p.Write(all) // one write, so that one read gets more than one message
		p.read()
	})
	c := dial(t, addr, &Config{})
	r, err := c.RoundTrip(t.Context(), c.AppendHello(nil, AwaitHello{TopologyVersion: &event.TopologyVersion{}, MaxAwait: time.Second, Exhaust: true}))
	for n := 0; ; n++ {
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		if !c.Streaming() {
			if n != 2 {
				t.Errorf("%d further replies, want 2", n)
			}
			break
		}
		r, err = c.Receive(t.Context())
	}
	if _, err := c.Receive(t.Context()); err == nil {
		t.Error("Receive without a stream: no error")
	}
}

// A stream that its reader gives up has no end that could be waited for.
func TestExhaustIsGivenUp(t *testing.T) {
	for name, replies := range map[string]int32{"before the first reply": 0, "after a reply": 1} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := dial(t, fakeServer(t, func(p *peer) {
				p.hello()
				id, _, _ := p.read()
				for i := range replies {
					p.Write(message(100+i, id, wire.MoreToCome, okReply()))
				}
				if replies == 0 {
					cancel()
				}
				p.read()
			}), &Config{})
			r, err := c.RoundTrip(ctx, c.AppendHello(nil, AwaitHello{TopologyVersion: &event.TopologyVersion{}, MaxAwait: time.Second, Exhaust: true}))
			if replies > 0 {
				if err != nil {
					t.Fatal(err)
				}
				r.Release()
				time.AfterFunc(time.Millisecond, cancel)
				_, err = c.Receive(ctx)
			}
			if te, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || !te.Canceled() {
				t.Errorf("error %v", err)
			}
			if c.Owed() || replies == 0 && c.Alive() {
				t.Errorf("owed %v, alive %v", c.Owed(), c.Alive())
			}
		})
	}
}

func TestLargeReplies(t *testing.T) {
	sizes := []int{1, 4 << 10, 5 << 10, 100 << 10, 3 << 20, 16 << 20}
	addr := fakeServer(t, func(p *peer) {
		p.hello()
		for _, size := range sizes {
			id, _, ok := p.read()
			if !ok {
				return
			}
			p.reply(id, document(func(dst []byte) []byte { return bson.AppendBinary(dst, "b", 0, make([]byte, size)) }))
		}
		p.read()
	})
	c := dial(t, addr, &Config{})
	for _, size := range sizes {
		r, err := c.RoundTrip(t.Context(), command("find"))
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := r.Body.Lookup("b").Binary(); !ok || len(data.Data) != size {
			t.Errorf("size %d: got %d bytes", size, len(data.Data))
		}
		r.Release()
	}
}

func TestDialErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := l.Addr().String()
	l.Close()
	closing := fakeServer(t, func(p *peer) {})
	failing := fakeServer(t, func(p *peer) {
		id, _, _ := p.read()
		p.reply(id, document(func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "code", 91)
			return bson.AppendDouble(bson.AppendString(dst, "errmsg", "going down"), "ok", 0)
		}))
	})
	tests := []struct {
		name, addr string
		cfg        Config
		want       string
		overload   bool
	}{
		{"refused", refused, Config{}, "dial", true},
		{"unknown name", "host.invalid:27017", Config{Dialer: noSuchHost{}}, "dial", false},
		{"no such socket", "/nonexistent/mongodb.sock", Config{}, "dial", true},
		{"closing", closing, Config{}, "hello", true},
		{"error reply", failing, Config{}, "going down", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dial(t.Context(), tt.addr, &tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.addr) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if got := mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded); got != tt.overload {
				t.Errorf("%v: overload label %v, want %v", err, got, tt.overload)
			}
		})
	}
}

type noSuchHost struct{}

func (noSuchHost) DialContext(_ context.Context, _, address string) (net.Conn, error) {
	return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
}

func TestUnixSocket(t *testing.T) {
	addr := serveOn(t, "unix", filepath.Join(t.TempDir(), "mongodb-27017.sock"), echo)
	c := dial(t, addr, &Config{})
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
	if c.Hello().Addr != addr {
		t.Errorf("address %q", c.Hello().Addr)
	}
}

// pipeDialer connects over net.Pipe.
type pipeDialer func(*peer)

func (d pipeDialer) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		d(&peer{Conn: server})
	}()
	return client, nil
}

func TestUsersDialer(t *testing.T) {
	c := dial(t, "nowhere:27017", &Config{Dialer: pipeDialer(echo)})
	if _, err := c.RoundTrip(t.Context(), command("ping")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := c.RoundTrip(t.Context(), command("ping")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

var raceEnabled bool

func TestRoundTripAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := dial(t, fakeServer(t, rawEcho), &Config{})
	msg := command("ping")
	background := context.WithoutCancel(t.Context())
	deadline := deadlineOnly{background, time.Now().Add(time.Hour)}
	for name, ctx := range map[string]context.Context{"background": background, "deadline": deadline} {
		allocs := testing.AllocsPerRun(200, func() {
			r, err := c.RoundTrip(ctx, msg)
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		})
		if allocs > 1 {
			t.Errorf("%s: %v allocations per round trip", name, allocs)
		}
	}
}

// deadlineOnly is a context that cannot be cancelled.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// rawEcho answers without allocating.
func rawEcho(p *peer) {
	p.hello()
	buf := make([]byte, 1<<20)
	answer := message(1, 0, 0, okReply())
	for {
		if _, err := io.ReadFull(p, buf[:wire.HeaderLen]); err != nil {
			return
		}
		n := binary.LittleEndian.Uint32(buf)
		if _, err := io.ReadFull(p, buf[wire.HeaderLen:n]); err != nil {
			return
		}
		binary.LittleEndian.PutUint32(answer[8:], uint32(requestID(buf)))
		p.Write(answer)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	c := dial(b, fakeServer(b, rawEcho), &Config{})
	msg := command("ping")
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	background := context.WithoutCancel(b.Context())
	for _, bm := range []struct {
		name string
		ctx  context.Context
	}{
		{"background", background},
		{"deadline", deadlineOnly{background, time.Now().Add(time.Hour)}},
		{"cancellable", cancellable},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.RoundTrip(bm.ctx, msg)
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}

// BenchmarkLargeReply is a round trip with the reply of a full batch.
func BenchmarkLargeReply(b *testing.B) {
	for name, size := range map[string]int{"100KiB": 100 << 10, "16MiB": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			answer := message(1, 0, 0, document(func(dst []byte) []byte { return bson.AppendBinary(dst, "b", 0, make([]byte, size)) }))
			c := dial(b, fakeServer(b, func(p *peer) {
				p.hello()
				for {
					msg, ok := p.readBytes()
					if !ok {
						return
					}
					binary.LittleEndian.PutUint32(answer[8:], uint32(requestID(msg)))
					p.Write(answer)
				}
			}), &Config{})
			msg, ctx := command("find"), context.WithoutCancel(b.Context())
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.RoundTrip(ctx, msg)
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}
