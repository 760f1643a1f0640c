package topology

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/auth"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/internal/uri"
	"allium/mongoerr"
)

func TestDiscoverStandalone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:27017", nil)
		topo := connect(t, network, Config{}, "A")
		s := mustSelect(t, topo, write())
		if s.Addr() != "a:27017" || topo.Description().Kind != event.Single {
			t.Errorf("selected %s of %v", s.Addr(), topo.Description())
		}
		if err := ping(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

func TestDiscoverReplicaSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		hosts := []string{"a:1", "b:1", "c:1"}
		newNode(network, "a:1", member(event.RSSecondary, "a:1", hosts...))
		newNode(network, "b:1", member(event.RSPrimary, "b:1", hosts...))
		topo := connect(t, network, Config{}, "a:1") // c is down
		if s := mustSelect(t, topo, write()); s.Addr() != "b:1" {
			t.Errorf("wrote to %s", s.Addr())
		}
		if s := mustSelect(t, topo, &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}}); s.Addr() != "a:1" {
			t.Errorf("read from %s", s.Addr())
		}
		synctest.Wait()
		d := topo.Description()
		if d.Kind != event.ReplicaSetWithPrimary || len(d.Servers) != 3 || *d.SessionTimeoutMinutes != 30 {
			t.Errorf("topology %v", d)
		}
		if _, err := topo.Server("c:1").CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolCleared) {
			t.Errorf("checkout from a server that is down: %v", err)
		}
	})
}

func TestSelectionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.SetDown(true)
		topo := connect(t, network, Config{SelectionTimeout: 10 * time.Second}, "a:1")
		start := time.Now()
		_, _, err := topo.Select(t.Context(), write())
		se, ok := errors.AsType[*mongoerr.SelectionError](err)
		if !ok || !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) != 10*time.Second || se.Elapsed != 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		want := "no server available for writing after 10s: topology is Unknown: a:1: dial: "
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q does not start with %q", err, want)
		}
		if got := n.Accepted(); got > 21 {
			t.Errorf("%d checks in 10 s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, _, err = topo.Select(ctx, write())
		te, ok := errors.AsType[*mongoerr.TimeoutError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, syscall.ECONNREFUSED) || te.Phase != "server selection" ||
			time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, _, err = topo.Select(ctx, write()); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		n.SetDown(false)
		mustSelect(t, topo, write())
	})
}

// A thousand operations that wait for a primary cost one check per half second and server, and all
// proceed when there is one.
func TestManyWaitForPrimary(t *testing.T) {
	for _, old := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			hosts := []string{"a:1", "b:1", "c:1"}
			var nodes []*node
			for _, h := range hosts {
				n := newNode(network, h, member(event.RSSecondary, h, hosts...))
				n.old = old
				nodes = append(nodes, n)
			}
			topo := connect(t, network, Config{SelectionTimeout: time.Minute}, hosts...)
			var wg sync.WaitGroup
			var served atomic.Int64
			for range 1000 {
				wg.Go(func() {
					s, _, err := topo.Select(t.Context(), write())
					if err != nil || s.Addr() != "b:1" {
						t.Errorf("selected %v: %v", s, err)
						return
					}
					served.Add(1)
				})
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if n := served.Load(); n != 0 {
				t.Fatalf("%d operations were served without a primary", n)
			}
			start := time.Now()
			nodes[1].say(member(event.RSPrimary, "b:1", hosts...))
			wg.Wait()
			if d := time.Since(start); d > MinHeartbeatInterval {
				t.Errorf("served after %v", d)
			}
			if !old && time.Since(start) != 0 {
				t.Errorf("served after %v although the server said it at once", time.Since(start))
			}
			for _, n := range nodes {
				n.mu.Lock()
				if n.hellos > 42 {
					t.Errorf("%s was checked %d times in 20 s", n.addr, n.hellos)
				}
				for i := 1; old && i < len(n.times); i++ {
					if d := n.times[i].Sub(n.times[i-1]); d < MinHeartbeatInterval {
						t.Errorf("%s was checked twice within %v", n.addr, d)
						break
					}
				}
				n.mu.Unlock()
			}
		})
	}
}

func TestStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		hosts := []string{"a:1", "b:1"}
		a := newNode(network, "a:1", member(event.RSPrimary, "a:1", hosts...))
		b := newNode(network, "b:1", member(event.RSSecondary, "b:1", hosts...))
		topo := connect(t, network, Config{}, hosts...)
		s := mustSelect(t, topo, write())
		synctest.Wait()
		a.command = func(r *fakeserver.Request) {
			_, counter, _ := a.reply()
			r.Reply(fakeserver.Doc(func(dst []byte) []byte {
				dst = bson.AppendDouble(dst, "ok", 0)
				dst = bson.AppendInt32(dst, "code", 10107)
				at, dst := bson.BeginDocumentElement(dst, "topologyVersion")
				dst = bson.AppendObjectID(dst, "processId", a.process)
				dst = bson.AppendInt64(dst, "counter", counter+1)
				return bson.EndDocument(dst, at)
			}))
		}
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.RoundTrip(t.Context(), fakeserver.Message("insert"))
		if err != nil {
			t.Fatal(err)
		}
		s.HandleError(c, failure.NewServerError("insert", "a:1", r.Body))
		c.Return()
		if d := topo.Description(); d.Kind != event.ReplicaSetNoPrimary || d.Server("a:1").Kind != event.UnknownServer {
			t.Errorf("after the error: %v", d)
		}
		if s.pool.Generation() != 0 {
			t.Error("the pool was cleared")
		}
		a.say(member(event.RSSecondary, "a:1", hosts...))
		b.say(member(event.RSPrimary, "b:1", hosts...))
		if s := mustSelect(t, topo, write()); s.Addr() != "b:1" {
			t.Errorf("wrote to %s", s.Addr())
		}
		synctest.Wait()
		if k := topo.Description().Server("a:1").Kind; k != event.RSSecondary {
			t.Errorf("a is %v", k)
		}
	})
}

// A network error of an operation marks the server unknown, clears its pool and cancels the check
// in progress; the next selection has the server checked again.
func TestNetworkErrorCancelsCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.command = func(r *fakeserver.Request) { r.Conn.Close() }
		var failed atomic.Int64
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
			ServerHeartbeatFailed: func(*event.ServerHeartbeatFailed) { failed.Add(1) },
		}}, "a:1")
		s := mustSelect(t, topo, write())
		synctest.Wait() // the monitor waits for the server's next reply
		time.Sleep(time.Second)
		if err := ping(t.Context(), s); err == nil {
			t.Fatal("no error")
		}
		if s.Description().Kind != event.UnknownServer || s.pool.Generation() != 1 {
			t.Errorf("%v, generation %d", s.Description(), s.pool.Generation())
		}
		start := time.Now()
		mustSelect(t, topo, write())
		if d := time.Since(start); d > MinHeartbeatInterval {
			t.Errorf("server was found again after %v", d)
		}
		if failed.Load() != 1 {
			t.Errorf("%d heartbeats failed", failed.Load())
		}
	})
}

// TestNetworkErrorAsksForNoCheck: where the monitor sleeps between checks, an operation that loses
// its connection does not wake it: it marks the server, and whoever selects one asks
// (specification: Server Discovery and Monitoring, "Network error when reading or writing").
func TestNetworkErrorAsksForNoCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.old = true // it is polled
		n.command = func(r *fakeserver.Request) { r.Conn.Close() }
		var checks atomic.Int64
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
			ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { checks.Add(1) },
		}}, "a:1")
		s := mustSelect(t, topo, write())
		time.Sleep(time.Second)
		before := checks.Load()
		if err := ping(t.Context(), s); err == nil || s.Description().Kind != event.UnknownServer {
			t.Fatalf("%v, the server is %v", err, s.Description())
		}
		time.Sleep(DefaultHeartbeatInterval / 2)
		if n := checks.Load() - before; n != 0 {
			t.Errorf("%d checks at once", n)
		}
		time.Sleep(DefaultHeartbeatInterval / 2)
		if n := checks.Load() - before; n != 1 {
			t.Errorf("%d checks within the heartbeat interval, want 1", n)
		}
	})
}

// A server that stops answering in the middle of a stream is found out by the time limit of the
// check; its connections in use are closed.
func TestCheckTimeoutInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var silent atomic.Bool
		n.before = func(r *fakeserver.Request) bool { return silent.Load() }
		n.old = true
		topo := connect(t, network, Config{Pool: pool.Config{Conn: &conn.Config{ConnectTimeout: time.Second}}}, "a:1")
		s := mustSelect(t, topo, write())
		if err := ping(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		silent.Store(true)
		start := time.Now()
		if err := ping(t.Context(), s); !errors.Is(err, mongoerr.ErrPoolCleared) {
			t.Errorf("operation: %v", err)
		}
		if d := time.Since(start); d > DefaultHeartbeatInterval+time.Second {
			t.Errorf("interrupted after %v", d)
		}
		if s.Description().Kind != event.UnknownServer {
			t.Errorf("server is %v", s.Description())
		}
	})
}

// An overloaded server that drops connections while they are made keeps its pool.
func TestOverloadKeepsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		topo := connect(t, network, Config{Monitoring: MonitorPoll}, "a:1")
		s := mustSelect(t, topo, write())
		synctest.Wait()
		n.before = func(r *fakeserver.Request) bool { r.Conn.Close(); return true }
		err := ping(t.Context(), s)
		if !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) || !mongoerr.HasLabel(err, mongoerr.LabelRetryable) {
			t.Errorf("operation: %v", err)
		}
		if s.pool.Generation() != 0 || s.Description().Kind != event.Standalone {
			t.Errorf("%v, generation %d", s.Description(), s.pool.Generation())
		}
		n.before = nil
		if err := ping(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

func TestRemovedServerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		a := newNode(network, "a:1", member(event.RSPrimary, "a:1", "a:1", "b:1"))
		b := newNode(network, "b:1", member(event.RSSecondary, "b:1", "a:1", "b:1"))
		topo := connect(t, network, Config{}, "a:1")
		s := mustSelect(t, topo, &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
		if err := ping(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		a.say(member(event.RSPrimary, "a:1", "a:1"))
		time.Sleep(2 * DefaultHeartbeatInterval) // a server notices the end of a stream when it has something to say
		if topo.Server("b:1") != nil || b.Open() != 0 {
			t.Errorf("server b is still known, %d connections to it", b.Open())
		}
		if _, err := s.CheckOut(t.Context()); err == nil {
			t.Error("checkout from a removed server")
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", member(event.RSSecondary, "a:1", "a:1", "b:1"))
		var events []string
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
			TopologyOpening:            func(e *event.TopologyOpening) { events = append(events, "opening") },
			TopologyClosed:             func(e *event.TopologyClosed) { events = append(events, "closed") },
			TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { events = append(events, e.NewDescription.Kind.String()) },
		}}, "a:1")
		waiting := make(chan error)
		go func() {
			_, _, err := topo.Select(context.Background(), write())
			waiting <- err
		}()
		synctest.Wait()
		if err := topo.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-waiting; !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("waiting selection: %v", err)
		}
		if _, _, err := topo.Select(t.Context(), write()); !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("selection: %v", err)
		}
		if events[0] != "opening" || events[len(events)-2] != "Unknown" || events[len(events)-1] != "closed" {
			t.Errorf("events %v", events)
		}
	})
}

func TestLoadBalanced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		service := bson.NewObjectID()
		n := newNode(network, "lb:1", func(b []byte) []byte {
			return bson.AppendObjectID(bson.AppendString(b, "msg", "isdbgrid"), "serviceId", service)
		})
		topo := connect(t, network, Config{LoadBalanced: true, Pool: pool.Config{Conn: &conn.Config{LoadBalanced: true}}}, "lb:1")
		s := mustSelect(t, topo, write())
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.ServiceID == nil || *c.ServiceID != service || c.Generation != 0 {
			t.Errorf("service %v, generation %d", c.ServiceID, c.Generation)
		}
		n.command = func(r *fakeserver.Request) { r.Conn.Close() }
		_, err = c.RoundTrip(t.Context(), fakeserver.Message("ping"))
		s.HandleError(c, err)
		if !s.pool.Stale(c) || s.Description().Kind != event.LoadBalancer || s.pool.Generation() != 0 {
			t.Errorf("stale %v, %v", s.pool.Stale(c), s.Description())
		}
		c.Return()
		time.Sleep(time.Minute)
		if n.Accepted() != 1 {
			t.Errorf("%d connections: a load balancer is not monitored", n.Accepted())
		}
	})
}

// Behind a load balancer a connection has its service's generation from the hello on: when several
// of them break during the authentication, only the first one makes the driver give up the
// service's connections. What breaks before the hello is answered says nothing of a service.
func TestLoadBalancedAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		service := bson.NewObjectID()
		n := newNode(network, "lb:1", func(b []byte) []byte {
			return bson.AppendObjectID(bson.AppendString(b, "msg", "isdbgrid"), "serviceId", service)
		})
		var broken atomic.Int32
		n.before = func(r *fakeserver.Request) bool {
			breaks := r.IsHello() && n.Accepted() > 5 || !r.IsHello() && n.Accepted() > 1
			if breaks {
				time.Sleep(time.Duration(broken.Add(1)) * time.Second)
				r.Conn.Close()
			}
			return breaks
		}
		n.command = func(r *fakeserver.Request) {
			r.Reply(fakeserver.Doc(
				func(b []byte) []byte { return bson.AppendInt32(b, "conversationId", 1) },
				func(b []byte) []byte { return bson.AppendBool(b, "done", true) },
				func(b []byte) []byte { return bson.AppendBinary(b, "payload", 0, nil) },
				func(b []byte) []byte { return bson.AppendInt32(b, "ok", 1) }))
		}
		var cleared int
		topo := connect(t, network, Config{LoadBalanced: true, Pool: pool.Config{
			MaxConnecting: 4,
			Conn:          &conn.Config{LoadBalanced: true, Authenticator: plain(t)},
			Monitor: &event.PoolMonitor{PoolCleared: func(e *event.PoolCleared) {
				cleared++
				if e.ServiceID == nil || *e.ServiceID != service {
					t.Errorf("cleared for %v", e.ServiceID)
				}
			}},
		}}, "lb:1")
		s := mustSelect(t, topo, write())
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 { // of connections that break during the authentication, then of ones that break before
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if _, err := s.CheckOut(t.Context()); err == nil {
						t.Error("a checkout succeeded")
					}
				})
			}
			wg.Wait()
			if cleared != 1 || !s.pool.Stale(c) || s.Description().Kind != event.LoadBalancer {
				t.Errorf("round %d: cleared %d times, stale %v, %v", round, cleared, s.pool.Stale(c), s.Description())
			}
		}
		c.Return()
	})
}

// plain is a user who authenticates in one step.
func plain(t *testing.T) *auth.Authenticator {
	t.Helper()
	c, err := uri.Parse("mongodb://u:p@h/?authMechanism=PLAIN")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(c.Credential, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no server":     {},
		"direct":        {Direct: true, Seeds: []string{"a", "b"}},
		"load balanced": {LoadBalanced: true, Seeds: []string{"a", "b"}},
		"set name":      {LoadBalanced: true, Seeds: []string{"a"}, SetName: "rs"},
		"heartbeat":     {Seeds: []string{"a"}, HeartbeatInterval: time.Millisecond},
	} {
		if _, err := New(&cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A seed that is named twice is one seed: a standalone there is not one among several.
func TestSeedsAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:27017", nil)
		topo := connect(t, network, Config{}, "a:27017", "A")
		synctest.Wait()
		if d := topo.Description(); d.Kind != event.Single || len(d.Servers) != 1 {
			t.Errorf("topology %v", d)
		}
	})
}
