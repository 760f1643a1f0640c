package conn

import (
	"context"
	"errors"
	"testing"
	"time"

	"allium/event"
	"allium/internal/wire"
	"allium/mongoerr"
)

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
