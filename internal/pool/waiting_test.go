package pool

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/wire"
	"allium/mongoerr"
)

// What those who wait for a connection get when something happens to the connections that are there
// or are being made.

// checkOuts starts n checkouts, one after the other, and returns what becomes of them.
func checkOuts(p *Pool, n int) (results []chan result) {
	for range n {
		r := make(chan result, 1)
		results = append(results, r)
		go func() {
			c, err := p.CheckOut(context.Background())
			r <- result{c, err}
		}()
		synctest.Wait()
	}
	return results
}

// A stale or broken connection that comes back makes room for another one.
func TestReturnMakesRoom(t *testing.T) {
	for name, spoil := range map[string]func(*Pool, *Conn){
		"stale":       func(p *Pool, _ *Conn) { p.Clear(nil, false) },
		"interrupted": func(p *Pool, _ *Conn) { p.Clear(nil, true) },
		"broken":      func(_ *Pool, c *Conn) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1})
				c := mustCheckOut(t, p)
				spoil(p, c)
				p.Ready()
				waiting := checkOuts(p, 1)[0]
				c.Return()
				if r := <-waiting; r.err != nil || r.conn.ID != 2 {
					t.Errorf("got %+v, %v", r.conn, r.err)
				} else {
					r.conn.Return()
				}
			})
		})
	}
}

// A connection whose server goes on sending is not kept.
func TestReturnWhileStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: func(r *fakeserver.Request) {
			if r.IsHello() {
				echo(r)
			} else {
				r.ReplyMore(fakeserver.OK())
			}
		}}, Config{})
		c := mustCheckOut(t, p)
		getMore := fakeserver.Message("getMore")
		binary.LittleEndian.PutUint32(getMore[wire.HeaderLen:], uint32(wire.ExhaustAllowed))
		r, err := c.RoundTrip(t.Context(), getMore)
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		c.Return()
		if c := mustCheckOut(t, p); c.ID != 2 {
			t.Errorf("got connection %d", c.ID)
		} else {
			c.Return()
		}
	})
}

// A waiter that leaves, or gets another connection, hands what is being made for it on to the next
// one, who learns why that fails.
func TestConnectErrorReachesTheNext(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			refused := errors.New("refused")
			s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
				if n == 2 {
					time.Sleep(time.Second)
					return refused
				}
				if n > 2 {
					time.Sleep(time.Hour)
				}
				return nil
			}}
			p := newPool(t, s, Config{MaxConnecting: 1})
			used := mustCheckOut(t, p)
			ctx, cancel := context.WithCancel(t.Context())
			first := make(chan result, 1)
			go func() {
				c, err := p.CheckOut(ctx)
				first <- result{c, err}
			}()
			synctest.Wait()
			second := checkOuts(p, 1)[0]
			if leaves {
				cancel()
				if r := <-first; !errors.Is(r.err, context.Canceled) {
					t.Errorf("first checkout: %v", r.err)
				}
			} else {
				used.Return()
				if r := <-first; r.conn != used {
					t.Errorf("first checkout: %+v, %v", r.conn, r.err)
				}
			}
			start := time.Now()
			if r := <-second; !errors.Is(r.err, refused) || time.Since(start) > time.Second {
				t.Errorf("second checkout: %v after %v", r.err, time.Since(start))
			}
			cancel()
			used.Return()
		})
	}
}

// Attempts that a clear has given up while they were made free their slots when they end, whichever
// way.
func TestClearedAttemptFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
			if n == 1 {
				time.Sleep(time.Second) // does not notice that it was given up
			}
			return nil
		}}
		p := newPool(t, s, Config{MaxConnecting: 1})
		given := checkOuts(p, 1)[0]
		cause := errors.New("boom")
		p.Clear(cause, false)
		if r := <-given; !errors.Is(r.err, mongoerr.ErrPoolCleared) {
			t.Errorf("first checkout: %v", r.err)
		}
		p.Ready()
		waiting := checkOuts(p, 3)
		for _, w := range waiting {
			r := <-w
			if r.err != nil {
				t.Fatal(r.err)
			}
			r.conn.Return()
		}
		p.Clear(nil, false)
		if _, err := p.CheckOut(t.Context()); err == nil || strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("the cause of an earlier clear is named: %v", err)
		}
	})
}

// A server that is there again is not made to wait for its connections because the last attempt
// failed.
func TestReadyEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pool atomic.Pointer[Pool] // its first attempt begins before newPool returns
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
			if n == 1 {
				time.Sleep(time.Millisecond)
				return errors.New("refused")
			}
			return nil
		}}
		p := newPool(t, s, Config{MinPoolSize: 3, MaxConnecting: 1, ConnectFailed: func(f Failure) { pool.Load().Clear(f.Err, false) }})
		pool.Store(p)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		p.Ready()
		synctest.Wait()
		if s.Open() != 3 {
			t.Errorf("%d connections", s.Open())
		}
	})
}

// Behind a load balancer a checkout that waits in vain is told what holds the connections; one that
// is given up is not.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := bson.NewObjectID()
		s := &fakeserver.Server{Handle: func(r *fakeserver.Request) {
			r.Reply(fakeserver.Hello(func(b []byte) []byte { return bson.AppendObjectID(b, "serviceId", id) }))
		}}
		p := newPool(t, s, Config{LoadBalanced: true, MaxPoolSize: 4, WaitQueueTimeout: time.Second, Conn: &conn.Config{LoadBalanced: true}})
		var used []*Conn
		for range 4 {
			used = append(used, mustCheckOut(t, p))
		}
		used[0].Pin(ForCursor)
		used[1].Pin(ForCursor)
		used[1].Pin(ForTransaction)
		used[2].Pin(ForTransaction)
		used[2].Return()
		used[2] = mustCheckOut(t, p)
		const want = "maxPoolSize: 4, connections in use by cursors: 1, connections in use by transactions: 1, connections in use by other operations: 2"
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, errWaitQueueTimeout) || !strings.Contains(err.Error(), want) {
			t.Errorf("timeout: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := p.CheckOut(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "maxPoolSize") {
			t.Errorf("cancelled: %v", err)
		}
		for _, c := range used {
			c.Return()
		}
	})
}

// A listener may use the pool when it is told of a check-out or check-in.
func TestListenerUsesThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Pool
		nested := 0
		p = newPool(t, &fakeserver.Server{Handle: echo}, Config{Monitor: &event.PoolMonitor{
			ConnectionCheckedIn: func(*event.ConnectionCheckedIn) {
				if nested++; nested == 1 {
					mustCheckOut(t, p).Return()
				}
			},
		}})
		mustCheckOut(t, p).Return()
		if nested != 2 {
			t.Errorf("%d connections were checked in", nested)
		}
	})
}

// An attempt that fails tells one checkout; the others get another attempt, also if there may be
// only one at a time.
func TestConnectErrorLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
			time.Sleep(time.Second)
			if n == 1 {
				return errors.New("refused")
			}
			return nil
		}}
		p := newPool(t, s, Config{MaxConnecting: 1})
		waiting := checkOuts(p, 2)
		if r := <-waiting[0]; r.err == nil {
			t.Error("first checkout: no error")
			r.conn.Return()
		}
		start := time.Now()
		r := <-waiting[1]
		if r.err != nil || time.Since(start) != time.Second {
			t.Fatalf("second checkout: %v after %v", r.err, time.Since(start))
		}
		r.conn.Return()
	})
}

// The minimum is reached soon after a failure, also when the next look at idle connections is far
// off.
func TestMinimumDoesNotWaitForIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
			if n == 2 {
				time.Sleep(time.Second)
				return errors.New("refused")
			}
			return nil
		}}
		p := newPool(t, s, Config{MinPoolSize: 2, MaxConnecting: 1, MaxIdleTime: time.Hour})
		mustCheckOut(t, p).Return()
		time.Sleep(time.Second + 2*retryInterval)
		synctest.Wait()
		if s.Open() != 2 {
			t.Errorf("%d connections", s.Open())
		}
	})
}
