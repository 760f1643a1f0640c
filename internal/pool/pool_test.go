package pool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/mongoerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every command at once.
func echo(r *fakeserver.Request) {
	if r.IsHello() {
		r.Reply(fakeserver.Hello())
	} else {
		r.Reply(fakeserver.OK())
	}
}

// newPool returns a ready pool of connections to s. It is closed when the test ends, in the test's
// bubble.
func newPool(t testing.TB, s *fakeserver.Server, cfg Config) *Pool {
	t.Helper()
	network := &fakeserver.Network{}
	network.Add("a:1", s)
	if cfg.Conn == nil {
		cfg.Conn = &conn.Config{}
	}
	cfg.Conn.Dialer = network
	p := New("a:1", &cfg)
	p.Ready()
	t.Cleanup(func() {
		p.Close()
		network.Wait()
	})
	return p
}

// recorder collects the events of a pool.
type recorder struct {
	mu     sync.Mutex
	events []any
}

func (r *recorder) add(e any) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) monitor() *event.PoolMonitor {
	return &event.PoolMonitor{
		PoolCreated:               func(e *event.PoolCreated) { r.add(e) },
		PoolReady:                 func(e *event.PoolReady) { r.add(e) },
		PoolCleared:               func(e *event.PoolCleared) { r.add(e) },
		PoolClosed:                func(e *event.PoolClosed) { r.add(e) },
		ConnectionCreated:         func(e *event.ConnectionCreated) { r.add(e) },
		ConnectionReady:           func(e *event.ConnectionReady) { r.add(e) },
		ConnectionClosed:          func(e *event.ConnectionClosed) { r.add(e) },
		ConnectionCheckOutStarted: func(e *event.ConnectionCheckOutStarted) { r.add(e) },
		ConnectionCheckOutFailed:  func(e *event.ConnectionCheckOutFailed) { r.add(e) },
		ConnectionCheckedOut:      func(e *event.ConnectionCheckedOut) { r.add(e) },
		ConnectionCheckedIn:       func(e *event.ConnectionCheckedIn) { r.add(e) },
	}
}

// all returns all events so far.
func (r *recorder) all() []any {
	synctest.Wait() // for those that are told of on a goroutine of the pool's
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// expect compares the names of all events so far, in their order.
func (r *recorder) expect(t *testing.T, want string) {
	t.Helper()
	var names []string
	for _, e := range r.all() {
		names = append(names, eventName(e))
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// count returns how many events of type E there are.
func count[E any](r *recorder) (n int) {
	for _, e := range r.all() {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

func mustCheckOut(t testing.TB, p *Pool) *Conn {
	t.Helper()
	c, err := p.CheckOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckOutReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 2})
		a, b := mustCheckOut(t, p), mustCheckOut(t, p)
		if a.ID != 1 || b.ID != 2 || p.Operations() != 2 {
			t.Errorf("connections %d and %d, %d operations", a.ID, b.ID, p.Operations())
		}
		a.Return()
		if c := mustCheckOut(t, p); c != a {
			t.Errorf("got connection %d, want the one that was returned", c.ID)
		}
		a.Return()
		b.Return()
		if p.Operations() != 0 {
			t.Errorf("%d operations", p.Operations())
		}
	})
}

func TestLimitAndFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1})
		c := mustCheckOut(t, p)
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				c := mustCheckOut(t, p)
				order = append(order, i) // one at a time has the connection
				c.Return()
			})
			synctest.Wait()
		}
		c.Return()
		wg.Wait()
		for i, n := range order {
			if n != i {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

func TestCheckOutHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1, WaitQueueTimeout: time.Minute})
		c := mustCheckOut(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := p.CheckOut(ctx)
		te, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || te.Phase != "connection checkout" || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := p.CheckOut(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		start = time.Now()
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, errWaitQueueTimeout) || time.Since(start) != time.Minute {
			t.Errorf("wait queue timeout: %v after %v", err, time.Since(start))
		}
		c.Return()
		mustCheckOut(t, p).Return()
		if p.Operations() != 0 {
			t.Errorf("%d operations", p.Operations())
		}
	})
}

// A connection that is being made while its checkout is given up serves the next one.
func TestCancelledCheckOutLosesNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(context.Context, int64) error { time.Sleep(time.Second); return nil }}
		p := newPool(t, s, Config{})
		for range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := p.CheckOut(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		c := mustCheckOut(t, p)
		if s.Accepted() > DefaultMaxConnecting {
			t.Errorf("%d connections were made", s.Accepted())
		}
		c.Return()
	})
}

// Connections that wait to be used are closed while the pool is cleared, not when the next one
// looks for a connection, and those in use when they come back.
func TestClearClosesIdleAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 3, Monitor: r.monitor()})
		idle, other, used := mustCheckOut(t, p), mustCheckOut(t, p), mustCheckOut(t, p)
		idle.Return()
		other.Return()
		p.Clear(errors.New("boom"), false)
		synctest.Wait()
		if n := count[*event.ConnectionClosed](&r); n != 2 || idle.Alive() || other.Alive() || !used.Alive() {
			t.Errorf("%d connections closed, those that were idle live: %v, %v; the one in use: %v", n, idle.Alive(), other.Alive(), used.Alive())
		}
		used.Return()
		synctest.Wait()
		if n := count[*event.ConnectionClosed](&r); n != 3 {
			t.Errorf("%d connections closed, want all 3", n)
		}
	})
}

func TestClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 2, Monitor: r.monitor()})
		idle, used := mustCheckOut(t, p), mustCheckOut(t, p)
		waiting := make(chan error)
		go func() {
			_, err := p.CheckOut(context.Background())
			waiting <- err
		}()
		synctest.Wait()
		cause := errors.New("boom")
		p.Clear(cause, false)
		if err := <-waiting; !errors.Is(err, mongoerr.ErrPoolCleared) || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("waiting checkout: %v", err)
		}
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolCleared) {
			t.Errorf("checkout from a paused pool: %v", err)
		}
		if !p.Stale(used) || p.Generation() != 1 {
			t.Error("connection is not stale")
		}
		if _, err := used.RoundTrip(t.Context(), fakeserver.Message("ping")); err != nil {
			t.Errorf("connection in use: %v", err)
		}
		p.Ready()
		used.Return()
		idle.Return()
		synctest.Wait()
		if used.Alive() || idle.Alive() {
			t.Error("stale connections were kept")
		}
		c := mustCheckOut(t, p)
		if c.ID != 3 || c.Generation != 1 {
			t.Errorf("connection %d of generation %d", c.ID, c.Generation)
		}
		c.Return()
		p.Clear(nil, false)
		p.Clear(nil, false)
		if n := count[*event.PoolCleared](&r); n != 2 || p.Generation() != 3 {
			t.Errorf("%d cleared events, generation %d", n, p.Generation())
		}
	})
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		p := newPool(t, &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if req.IsHello() {
				echo(req)
			}
		}}, Config{Monitor: r.monitor()})
		c := mustCheckOut(t, p)
		time.AfterFunc(time.Second, func() { p.Clear(errors.New("monitor timeout"), true) })
		_, err := c.RoundTrip(t.Context(), fakeserver.Message("ping"))
		if !errors.Is(err, mongoerr.ErrPoolCleared) {
			t.Errorf("interrupted operation: %v", err)
		}
		c.Return()
		r.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCheckOutStarted ConnectionCreated ConnectionReady "+
			"ConnectionCheckedOut ConnectionPoolCleared ConnectionCheckedIn ConnectionClosed")
		events := r.all()
		if closed, ok := events[len(events)-1].(*event.ConnectionClosed); !ok || closed.Reason != event.ClosedStale {
			t.Errorf("last event %+v, want one of a stale connection", events[len(events)-1])
		}
		defer func() {
			if recover() == nil {
				t.Error("a connection can be returned twice")
			}
		}()
		c.Return()
	})
}

// What breaks a connection is told when it is closed.
func TestBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		p := newPool(t, &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if req.IsHello() {
				echo(req)
			} else {
				req.Conn.Close()
			}
		}}, Config{Monitor: r.monitor()})
		c := mustCheckOut(t, p)
		_, err := c.RoundTrip(t.Context(), fakeserver.Message("ping"))
		if err == nil {
			t.Fatal("no error")
		}
		c.Return()
		events := r.all()
		closed, ok := events[len(events)-1].(*event.ConnectionClosed)
		if !ok || closed.Reason != event.ClosedError || closed.Err == nil || closed.Err.Error() != err.Error() {
			t.Errorf("last event %+v, error %v", events[len(events)-1], err)
		}
	})
}

// A connection that is being made is given up with the pool, and its checkout learns of it at once.
func TestClearGivesUpPending(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var r recorder
			s := &fakeserver.Server{Handle: echo, Accept: func(ctx context.Context, n int64) error {
				if n == 1 {
					<-ctx.Done() // a server that does not answer
				}
				return ctx.Err()
			}}
			p := newPool(t, s, Config{Monitor: r.monitor(), MaxConnecting: 1})
			time.AfterFunc(time.Second, func() { p.Clear(errors.New("gone"), interrupt) })
			start := time.Now()
			if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolCleared) || time.Since(start) != time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			r.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCheckOutStarted ConnectionCreated "+
				"ConnectionPoolCleared ConnectionClosed ConnectionCheckOutFailed")
			p.Ready()
			mustCheckOut(t, p).Return()
		})
	}
}

// A timed-out operation leaves its reply behind; the connection is kept once it was read off.
func TestOwedReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := 20 * time.Millisecond
		s := &fakeserver.Server{}
		s.Handle = func(req *fakeserver.Request) {
			if !req.IsHello() {
				time.Sleep(delay)
			}
			echo(req)
		}
		var r recorder
		p := newPool(t, s, Config{Monitor: r.monitor()})
		for i := range 1000 {
			c := mustCheckOut(t, p)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := c.RoundTrip(ctx, fakeserver.Message("ping"))
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("round trip %d: %v", i, err)
			}
			c.Return()
			time.Sleep(delay)
		}
		c := mustCheckOut(t, p)
		if _, err := c.RoundTrip(t.Context(), fakeserver.Message("ping")); err != nil {
			t.Error(err)
		}
		if c.ID != 1 || s.Accepted() != 1 || count[*event.ConnectionClosed](&r) != 0 {
			t.Errorf("connection %d, %d connections were made, %d closed", c.ID, s.Accepted(), count[*event.ConnectionClosed](&r))
		}
		c.Return()
	})
}

// A connection that waits for an owed reply keeps nobody waiting: another one is made, in its place
// if the pool is full. If nobody needs the place, the reply is given up in the end.
func TestOwedReplyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if req.IsHello() {
				echo(req)
			}
		}}
		p := newPool(t, s, Config{Monitor: r.monitor(), MaxPoolSize: 2})
		owe := func(c *Conn) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			c.RoundTrip(ctx, fakeserver.Message("ping"))
			cancel()
			c.Return()
		}
		owe(mustCheckOut(t, p))
		start := time.Now()
		other, third := mustCheckOut(t, p), mustCheckOut(t, p)
		if other.ID != 2 || third.ID != 3 || time.Since(start) != 0 {
			t.Errorf("got connections %d and %d after %v", other.ID, third.ID, time.Since(start))
		}
		if n := count[*event.ConnectionClosed](&r); n != 1 {
			t.Errorf("%d connections were closed", n)
		}
		// Also if somebody waits already when the connection comes back.
		waiting := checkOuts(p, 1)[0]
		owe(other)
		synctest.Wait()
		fourth := <-waiting
		if fourth.err != nil || fourth.conn.ID != 4 || time.Since(start) != time.Millisecond {
			t.Errorf("got %+v, %v after %v", fourth.conn, fourth.err, time.Since(start))
		}
		third.Return()
		owe(fourth.conn)
		time.Sleep(drainTimeout - time.Millisecond)
		synctest.Wait()
		if s := p.Stats(); s.Draining != 1 || s.Idle != 1 || s.InUse != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s := p.Stats(); s.Draining != 0 || s.Open != 1 || s.Closed.Error != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// Prose test 5 of Connection Monitoring and Pooling.
func TestProse5CheckOutFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		refused := errors.New("refused")
		var failures int
		p := newPool(t, &fakeserver.Server{Accept: func(context.Context, int64) error { return refused }},
			Config{Monitor: r.monitor(), ConnectFailed: func(f Failure) {
				failures++
				if !errors.Is(f.Err, refused) || !mongoerr.HasLabel(f.Err, mongoerr.LabelSystemOverloaded) || f.Generation != 0 {
					t.Errorf("failure %+v", f)
				}
			}})
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, refused) {
			t.Errorf("checkout: %v", err)
		}
		events := r.all()
		last, ok := events[len(events)-1].(*event.ConnectionCheckOutFailed)
		if !ok || last.Reason != event.CheckOutConnectionError || failures != 1 {
			t.Errorf("last event %+v, %d failures", last, failures)
		}
	})
}

// The checkout on whose behalf a connection is made gets the error, also when the pool is cleared
// because of it.
func TestConnectErrorReachesItsCheckOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, n int64) error {
			time.Sleep(time.Second)
			if n == 1 {
				return refused
			}
			return nil
		}}
		var p *Pool
		p = newPool(t, s, Config{MaxConnecting: 1, ConnectFailed: func(f Failure) { p.Clear(f.Err, false) }})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := p.CheckOut(t.Context()); !errors.Is(err, refused) || errors.Is(err, mongoerr.ErrPoolCleared) {
				t.Errorf("first checkout: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolCleared) {
				t.Errorf("second checkout: %v", err)
			}
		})
		wg.Wait()
	})
}

func TestMaxIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, background := range []time.Duration{-1, 0} {
			var r recorder
			p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxIdleTime: time.Second, Monitor: r.monitor(), background: background})
			c := mustCheckOut(t, p)
			c.Return()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if n := count[*event.ConnectionClosed](&r); n == 0 != (background < 0) {
				t.Errorf("background %v: %d connections were closed", background, n)
			}
			if c := mustCheckOut(t, p); c.ID != 2 {
				t.Errorf("got connection %d", c.ID)
			} else {
				c.Return()
			}
		}
	})
}

// A connection is idle since it came back, and not since it was made or taken out.
func TestIdleSinceItsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxIdleTime: time.Second})
		for range 3 {
			c := mustCheckOut(t, p)
			time.Sleep(3 * time.Second)
			c.Return()
			time.Sleep(900 * time.Millisecond)
		}
		if c := mustCheckOut(t, p); c.ID != 1 {
			t.Errorf("got connection %d", c.ID)
		} else {
			c.Return()
		}
	})
}

func TestMinPoolSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo}
		var works atomic.Bool
		s.Accept = func(context.Context, int64) error {
			if !works.Load() {
				return errors.New("refused")
			}
			return nil
		}
		p := newPool(t, s, Config{MinPoolSize: 5})
		synctest.Wait()
		if n := s.Accepted(); n > 2*DefaultMaxConnecting {
			t.Errorf("%d attempts at once", n)
		}
		time.Sleep(10 * retryInterval)
		if n := s.Accepted(); n > 11*2*DefaultMaxConnecting {
			t.Errorf("%d attempts in ten intervals", n)
		}
		works.Store(true)
		time.Sleep(2 * retryInterval)
		synctest.Wait()
		if s.Open() != 5 {
			t.Errorf("%d connections", s.Open())
		}
		c := mustCheckOut(t, p)
		c.Close()
		c.Return()
		synctest.Wait()
		if s.Open() != 5 {
			t.Errorf("%d connections after one broke", s.Open())
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		blocked := make(chan struct{})
		s := &fakeserver.Server{Handle: echo, Accept: func(ctx context.Context, n int64) error {
			if n > 1 {
				close(blocked)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		p := newPool(t, s, Config{Monitor: r.monitor()})
		c := mustCheckOut(t, p)
		waiting := make(chan error)
		go func() {
			_, err := p.CheckOut(context.Background())
			waiting <- err
		}()
		<-blocked
		p.Close()
		if err := <-waiting; !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("waiting checkout: %v", err)
		}
		if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("checkout: %v", err)
		}
		c.Return()
		if c.Alive() || count[*event.ConnectionClosed](&r) != 2 || count[*event.PoolClosed](&r) != 1 {
			t.Errorf("alive %v, events %v", c.Alive(), r.all())
		}
	})
}

// Giving up the connections of a service makes room, for the minimum too, and for the others behind
// the balancer nothing changes.
func TestClearService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := []bson.ObjectID{bson.NewObjectID(), bson.NewObjectID()}
		var next atomic.Int32
		s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if !req.IsHello() {
				echo(req)
				return
			}
			req.Reply(fakeserver.Hello(func(b []byte) []byte {
				return bson.AppendObjectID(b, "serviceId", services[int(next.Add(1)-1)%2])
			}))
		}}
		var r recorder
		p := newPool(t, s, Config{LoadBalanced: true, MinPoolSize: 4, MaxPoolSize: 4, Monitor: r.monitor(), Conn: &conn.Config{LoadBalanced: true}})
		synctest.Wait()
		p.ClearService(services[0], errors.New("boom"))
		synctest.Wait()
		if closed, open := count[*event.ConnectionClosed](&r), s.Open(); closed != 2 || open != 4 || p.Generation() != 0 {
			t.Errorf("%d connections were closed, %d are open, generation %d", closed, open, p.Generation())
		}
		if s := p.Stats(); s.Idle != 4 || s.Open != 4 {
			t.Errorf("after the clear: %+v, want 4 open and idle", s)
		}
		var used []*Conn
		kept := 0
		for range 4 {
			c := mustCheckOut(t, p)
			used = append(used, c)
			if c.ID > 4 {
				continue
			}
			if kept++; *c.ServiceID != services[1] {
				t.Errorf("connection %d to the service that was cleared is still there", c.ID)
			}
		}
		if kept != 2 {
			t.Errorf("%d connections to the other service are still there, want 2", kept)
		}
		p.ClearService(services[1], errors.New("boom"))
		for _, c := range used {
			if p.Stale(c) != (*c.ServiceID == services[1]) {
				t.Errorf("connection %d to service %v: stale is %v", c.ID, c.ServiceID, p.Stale(c))
			}
			c.Return()
		}
		p.Close()
		if len(p.services) != 0 {
			t.Errorf("%d services without connections are remembered", len(p.services))
		}
	})
}

// TestGenerationAfterClear: while an older connection to a service is in use, a new one belongs to
// the generation that the service has come to.
func TestGenerationAfterClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := bson.NewObjectID()
		p := balanced(t, &service, nil)
		old := mustCheckOut(t, p)
		p.ClearService(service, errors.New("boom"))
		c := mustCheckOut(t, p)
		if !p.Stale(old) || p.Stale(c) || c.Generation != old.Generation+1 {
			t.Errorf("generations %d, stale %v, and %d, stale %v", old.Generation, p.Stale(old), c.Generation, p.Stale(c))
		}
		old.Return()
		c.Return()
		p.Close()
	})
}

// A service that no connection leads to any more has no generation: what failed on a connection to
// it is not outdated, and is handled.
func TestGenerationOfUnknownService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := bson.NewObjectID()
		s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if !req.IsHello() {
				echo(req)
				return
			}
			req.Reply(fakeserver.Hello(func(b []byte) []byte { return bson.AppendObjectID(b, "serviceId", service) }))
		}}
		p := newPool(t, s, Config{LoadBalanced: true, MaxPoolSize: 1, Conn: &conn.Config{LoadBalanced: true}})
		c := mustCheckOut(t, p)
		unknown := bson.NewObjectID()
		for _, tc := range []struct {
			what string
			f    Failure
			want bool
		}{
			{"the service", Failure{ServiceID: &service, Generation: c.Generation}, false},
			{"the service, earlier", Failure{ServiceID: &service, Generation: c.Generation - 1}, true},
			{"an unknown service", Failure{ServiceID: &unknown, Generation: 0}, false},
			{"an unknown service, some generation", Failure{ServiceID: &unknown, Generation: 7}, false},
			{"no service", Failure{Generation: p.Generation()}, false},
			{"no service, earlier", Failure{Generation: p.Generation() - 1}, true},
		} {
			if got := p.Outdated(tc.f); got != tc.want {
				t.Errorf("%s: outdated is %v, want %v", tc.what, got, tc.want)
			}
		}
		c.Return()
		p.ClearService(unknown, errors.New("boom")) // gives up nothing
		if c := mustCheckOut(t, p); p.Stale(c) {
			t.Error("the connection was given up")
		} else {
			c.Return()
		}
		p.Close()
	})
}

// What a connection was used for, and how long its checkout waited, ends with its return: the next
// operation is another one.
func TestUseEndsWithReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: func(r *fakeserver.Request) { time.Sleep(time.Millisecond); echo(r) }}, Config{MaxPoolSize: 1})
		for _, use := range []Use{ForCursor, ForTransaction, ForOperation} {
			c := mustCheckOut(t, p)
			if idle := use != ForCursor; (c.Waited == 0) != idle {
				t.Errorf("use %d: waited %v", use, c.Waited)
			}
			if use != ForOperation {
				c.Pin(use)
			}
			c.Return()
			if p.pinned != [uses]int{} {
				t.Errorf("after use %d: connections in use %v", use, p.pinned)
			}
		}
	})
}
