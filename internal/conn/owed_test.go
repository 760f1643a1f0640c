package conn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"allium/internal/fakeserver"
	"allium/internal/wire"
	"allium/mongoerr"
)

// lateServer sends so many bytes of its first reply, closes asked, and sends the rest once proceed
// is closed. It answers what comes later at once.
func lateServer(t *testing.T, cut int) (addr string, asked, proceed chan struct{}) {
	asked, proceed = make(chan struct{}), make(chan struct{})
	addr = fakeServer(t, func(p *peer) {
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
	return addr, asked, proceed
}

// A timed-out or cancelled round trip leaves its reply behind; the connection stays usable once it
// is drained.
func TestOwedReply(t *testing.T) {
	for _, cut := range []int{0, 3, wire.HeaderLen, 30} { // how much of the reply arrives in time
		addr, asked, proceed := lateServer(t, cut)
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
		addr, asked, proceed := lateServer(t, cut)
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

// A write whose context has no end is bounded by the connection's limit alone.
func TestWriteHasTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		c := dial(t, "slow:27017", &Config{Dialer: pipeDialer(func(p *peer) {
			p.hello()
			p.Read(make([]byte, 10))
			<-release
		})})
		c.SetTimeout(time.Second)
		start := time.Now()
		_, err := c.RoundTrip(t.Context(), command("ping"))
		ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
		if !ok || !ce.Timeout() || ce.Op != "write" || c.Alive() || time.Since(start) != time.Second {
			t.Errorf("%v after %v, alive %v", err, time.Since(start), c.Alive())
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

// One deadline holds for a reply as a whole, in whatever pieces it comes (specification: Client
// Side Operations Timeout, "Command Execution").
func TestRepliesHaveOneDeadline(t *testing.T) {
	for name, byContext := range map[string]bool{"context": true, "socket timeout": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dial(t, "slow:27017", &Config{Dialer: pipeDialer(func(p *peer) {
					p.hello()
					id, _, ok := p.read()
					if !ok {
						return
					}
					msg := message(1, id, 0, fakeserver.OK())
					for len(msg) > 0 {
						time.Sleep(400 * time.Millisecond)
						if _, err := p.Write(msg[:min(10, len(msg))]); err != nil {
							return
						}
						msg = msg[min(10, len(msg)):]
					}
				})})
				ctx := t.Context()
				if byContext {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				} else {
					c.SetTimeout(time.Second)
				}
				start := time.Now()
				if _, err := c.RoundTrip(ctx, command("ping")); err == nil || time.Since(start) != time.Second {
					t.Errorf("%v after %v, want an error after a second", err, time.Since(start))
				}
				c.Close()
				time.Sleep(time.Minute) // until the server has noticed
			})
		})
	}
}
