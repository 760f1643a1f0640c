package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/uri"
	"allium/internal/wire"
	"allium/mongoerr"
)

// repeater answers every message with the number in it, in pieces, after pauses.
func repeater(p *peer) {
	if _, ok := p.hello(); !ok {
		return
	}
	for {
		id, m, ok := p.read()
		if !ok {
			return
		}
		n, _ := m.Body.Lookup("number").AsInt64()
		out := message(wire.NextRequestID(), id, 0, document(func(dst []byte) []byte {
			dst = bson.AppendInt64(dst, "number", n)
			return bson.AppendDouble(bson.AppendBinary(dst, "padding", 0, make([]byte, rand.IntN(20000))), "ok", 1)
		}))
		for len(out) > 0 {
			piece := out[:1+rand.IntN(len(out))]
			if _, err := p.Write(piece); err != nil {
				return
			}
			out = out[len(piece):]
			if rand.IntN(4) == 0 {
				time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			}
		}
	}
}

// Operations that are cancelled at any moment never make a later one get their reply.
func TestCancelledRepliesAreNotMixedUp(t *testing.T) {
	for _, name := range []string{"plain", "TLS"} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { cancelOften(t, name == "TLS") }) })
	}
}

func cancelOften(t *testing.T, secure bool) {
	cfg := &Config{}
	serverTLS := &tls.Config{}
	if secure {
		ca := newAuthority(t)
		cert, _ := ca.issue("server.example")
		serverTLS.Certificates = []tls.Certificate{cert}
		var err error
		if cfg.TLS, err = NewTLS(&uri.TLSOptions{CAFile: ca.file}, nil); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Dialer = pipeDialer(func(p *peer) {
		p.t = t
		if secure {
			p.Conn = tls.Server(p.Conn, serverTLS)
		}
		repeater(p)
	})
	const addr = "server.example:27017"
	c := dial(t, addr, cfg)
	answered, owed, broken := 0, 0, 0
	for n := range int64(1000) {
		if !c.Alive() { // a write that was cut
			broken++
			c = dial(t, addr, cfg)
		}
		if c.Owed() {
			owed++
			if err := c.Drain(t.Context()); err != nil {
				t.Fatalf("drain: %v", err)
			}
		}
		r, err := c.RoundTrip(randomContext(t), message(wire.NextRequestID(), 0, 0, document(func(dst []byte) []byte {
			return bson.AppendInt64(dst, "number", n)
		})))
		if err != nil {
			if _, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok {
				t.Fatal(err)
			}
			continue
		}
		answered++
		if got, _ := r.Body.Lookup("number").AsInt64(); got != n {
			t.Fatalf("request %d got the reply to %d", n, got)
		}
		r.Release()
	}
	if answered == 0 || owed == 0 {
		t.Errorf("%d answered, %d owed, %d broken: the test proves nothing", answered, owed, broken)
	}
	c.Close()
	time.Sleep(time.Second) // of the bubble: the servers end
}

// randomContext ends at a random moment, by its deadline or by being cancelled, or not at all.
func randomContext(t *testing.T) context.Context {
	after := time.Duration(rand.IntN(600)) * time.Microsecond
	switch rand.IntN(4) {
	case 0:
		ctx, cancel := context.WithTimeout(t.Context(), after)
		t.Cleanup(cancel)
		return ctx
	case 1:
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(after, cancel)
		return ctx
	case 2: // a deadline alone
		return deadlineOnly{context.WithoutCancel(t.Context()), time.Now().Add(after)}
	}
	return t.Context()
}
