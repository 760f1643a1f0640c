package conn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongoerr"
)

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
