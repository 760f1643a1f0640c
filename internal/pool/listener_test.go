package pool

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/logging"
	"allium/internal/owncode"
)

// What a pool tells its listener of, it tells without its lock: the listener may ask the pool, and
// use it.
func TestListenersRunWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Pool
		made := make(chan struct{}) // closed once p is set
		asked := map[string]int{}
		used := false
		ask := func(name string) {
			<-made
			p.Stats()
			if name == "ConnectionReady" && !used {
				used = true
				c, err := p.CheckOut(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				c.Return()
			}
			asked[name]++
		}
		p = newPool(t, &fakeserver.Server{Handle: echo}, Config{Monitor: &event.PoolMonitor{
			PoolReady:         func(*event.PoolReady) { ask("PoolReady") },
			PoolCleared:       func(*event.PoolCleared) { ask("PoolCleared") },
			PoolClosed:        func(*event.PoolClosed) { ask("PoolClosed") },
			ConnectionCreated: func(*event.ConnectionCreated) { ask("ConnectionCreated") },
			ConnectionReady:   func(*event.ConnectionReady) { ask("ConnectionReady") },
			ConnectionClosed:  func(*event.ConnectionClosed) { ask("ConnectionClosed") },
		}})
		close(made)
		c := mustCheckOut(t, p)
		p.Told()
		p.Clear(context.Canceled, true)
		c.Return()
		p.Close()
		p.Told()
		for _, name := range []string{"PoolReady", "PoolCleared", "PoolClosed", "ConnectionCreated", "ConnectionReady", "ConnectionClosed"} {
			if asked[name] == 0 {
				t.Errorf("the listener was not told of %s", name)
			}
		}
	})
}

// Nor does an operation that returns its connection overtake what is queued.
func TestReturnTellsBehindTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		m := r.monitor()
		m.PoolCleared = func(e *event.PoolCleared) { time.Sleep(300 * time.Millisecond); r.add(e) }
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1, Monitor: m})
		c := mustCheckOut(t, p)
		p.Clear(context.Canceled, false)
		c.Return()
		p.Close()
		p.Told()
		r.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCheckOutStarted ConnectionCreated ConnectionReady ConnectionCheckedOut"+
			" ConnectionPoolCleared ConnectionCheckedIn ConnectionClosed ConnectionPoolClosed")
	})
}

// An operation tells of its checkout behind what the listener has still to hear of the pool.
func TestSlowListenerHearsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		m := r.monitor()
		slow := func() { time.Sleep(300 * time.Millisecond) }
		m.ConnectionCreated = func(e *event.ConnectionCreated) { slow(); r.add(e) }
		m.ConnectionReady = func(e *event.ConnectionReady) { slow(); r.add(e) }
		m.ConnectionClosed = func(e *event.ConnectionClosed) { slow(); r.add(e) }
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1, Monitor: m})
		mustCheckOut(t, p).Return()
		p.Clear(context.Canceled, false)
		p.Ready()
		mustCheckOut(t, p).Return()
		p.Close()
		p.Told()
		life := "ConnectionCheckOutStarted ConnectionCreated ConnectionReady ConnectionCheckedOut ConnectionCheckedIn"
		r.expect(t, "ConnectionPoolCreated ConnectionPoolReady "+life+" ConnectionPoolCleared ConnectionClosed ConnectionPoolReady "+life+
			" ConnectionClosed ConnectionPoolClosed")
	})
}

// Whatever code is told of a checkout may panic: who has heard of it hears of the check-in, and the
// connection can be had again.
func TestCheckoutsThatPanicAreCheckedIn(t *testing.T) {
	for _, in := range []string{"the listener", "the log", "both", "the listener, and at the check-in"} {
		synctest.Test(t, func(t *testing.T) {
			var r recorder
			armed := true
			m := r.monitor()
			fail := func(places ...string) {
				if armed && slices.Contains(places, in) {
					panic("a listener's own")
				}
			}
			out, back := m.ConnectionCheckedOut, m.ConnectionCheckedIn
			m.ConnectionCheckedOut = func(e *event.ConnectionCheckedOut) {
				out(e)
				fail("the listener", "both", "the listener, and at the check-in")
			}
			m.ConnectionCheckedIn = func(e *event.ConnectionCheckedIn) {
				back(e)
				fail("the listener, and at the check-in")
			}
			handler := owncode.Handler{Words: "Connection checked out", Code: func() { fail("the log", "both") }}
			log, _ := logging.New(logging.Options{Handler: handler}, func(string) string { return "debug" })
			p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1, Monitor: m, Log: log})
			if how, _ := owncode.Ending(func() error { _, err := p.CheckOut(t.Context()); return err }); how != "panic" {
				t.Errorf("%s: the checkout ended by %s", in, how)
			}
			armed = false
			mustCheckOut(t, p).Return()
			p.Close()
			p.Told()
			r.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCheckOutStarted ConnectionCreated ConnectionReady"+
				" ConnectionCheckedOut ConnectionCheckedIn ConnectionCheckOutStarted ConnectionCheckedOut ConnectionCheckedIn"+
				" ConnectionClosed ConnectionPoolClosed")
		})
	}
}
