package topology

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/mongoerr"
)

// The rules of the specification Server Monitoring, one by one.

// settle lets time pass, and what happens meanwhile come to an end.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Whoever cancels a check has marked the server unknown already: the check's end changes nothing
// more, its connection is not used again, and the next check has the time of any other.
func TestCancelledCheckSaysNothing(t *testing.T) {
	for _, mode := range []MonitoringMode{MonitorStream, MonitorPoll} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			n := newNode(network, "a:1", nil)
			n.command = func(r *fakeserver.Request) { r.Conn.Close() }
			topo := connect(t, network, Config{Monitoring: mode}, "a:1")
			settle(time.Second) // no selection has asked for a check
			s := topo.Server("a:1")
			err := ping(t.Context(), s)
			if err == nil {
				t.Fatal("no error")
			}
			settle(DefaultHeartbeatInterval - 2*time.Second)
			d := s.Description()
			if d.Kind != event.UnknownServer || d.LastError.Error() != err.Error() || s.pool.Generation() != 1 {
				t.Errorf("mode %v: %v, generation %d", mode, d, s.pool.Generation())
			}
			accepted := n.Accepted()
			settle(3 * time.Second)
			if d := s.Description(); d.Kind != event.Standalone || n.Accepted() != accepted+1 {
				t.Errorf("mode %v: %v, %d new connections", mode, d, n.Accepted()-accepted)
			}
		})
	}
}

// A check that is asked for comes at once, but not within half a second of the one before.
func TestRequestedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		topo := connect(t, network, Config{Monitoring: MonitorPoll}, "a:1")
		s := mustSelect(t, topo, write())
		synctest.Wait()
		start := time.Now()
		for _, at := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second} {
			time.Sleep(time.Until(start.Add(at)))
			s.requestCheck()
		}
		settle(DefaultHeartbeatInterval + time.Second)
		var at []time.Duration
		for _, when := range n.times {
			at = append(at, when.Sub(start))
		}
		if want := []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 12 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("checks at %v, want %v", at, want)
		}
	})
}

// A request during a check is answered by that check, unless its outcome does not count.
func TestRequestDuringCheck(t *testing.T) {
	for _, counts := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			n := newNode(network, "a:1", nil)
			var slow atomic.Bool
			n.before = func(r *fakeserver.Request) bool {
				if slow.CompareAndSwap(true, false) {
					doc, _, _ := n.reply()
					time.Sleep(time.Second)
					r.Reply(doc)
					return true
				}
				return false
			}
			topo := connect(t, network, Config{Monitoring: MonitorPoll}, "a:1")
			synctest.Wait()
			s := topo.Server("a:1")
			slow.Store(true)
			settle(DefaultHeartbeatInterval + time.Millisecond) // the slow check is under way
			if !counts {
				n.say(nil)
				newer := *s.Description()
				version := *newer.TopologyVersion
				version.Counter++
				newer.TopologyVersion = &version
				s.handshaken(&newer)
			}
			s.requestCheck()
			before := n.checks()
			settle(2 * time.Second)
			if again := n.checks() > before; again == counts {
				t.Errorf("the outcome counts: %v; checked again: %v", counts, again)
			}
		})
	}
}

// A check that the server answers with an error gives up the pool but not the connections in use,
// and the next one waits, also if the server streams otherwise.
func TestCheckAnsweredWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.before = func(r *fakeserver.Request) bool {
			if r.Body.Lookup("maxAwaitTimeMS").Type == 0 {
				return false
			}
			time.Sleep(time.Second)
			r.Reply(fakeserver.Doc(func(b []byte) []byte {
				b = bson.AppendInt32(bson.AppendDouble(b, "ok", 0), "code", 91)
				at, b := bson.BeginDocumentElement(b, "topologyVersion")
				b = bson.AppendInt64(bson.AppendObjectID(b, "processId", n.process), "counter", 7)
				return bson.EndDocument(b, at)
			}))
			return true
		}
		var failed []error
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
			ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) { failed = append(failed, e.Failure) },
		}}, "a:1")
		s := mustSelect(t, topo, write())
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		settle(DefaultHeartbeatInterval)
		d := s.Description()
		if d.Kind != event.UnknownServer || d.TopologyVersion == nil || d.TopologyVersion.Counter != 7 || s.pool.Generation() != 1 {
			t.Errorf("server is %v, version %v, generation %d", d, d.TopologyVersion, s.pool.Generation())
		}
		if e, ok := errors.AsType[*mongoerr.ServerError](errors.Join(failed...)); len(failed) != 1 || !ok || e.Code != 91 {
			t.Errorf("failed heartbeats: %v", failed)
		}
		if r, err := c.RoundTrip(t.Context(), fakeserver.Message("ping")); err != nil {
			t.Errorf("connection in use: %v", err)
		} else {
			r.Release()
		}
		c.Return()
	})
}

// A stream may be silent for the heartbeat interval, and then for as long as any other reply.
func TestStreamTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.before = func(r *fakeserver.Request) bool { return r.Body.Lookup("maxAwaitTimeMS").Type != 0 }
		var failed []time.Duration
		topo := connect(t, network, Config{Pool: pool.Config{Conn: &conn.Config{ConnectTimeout: 3 * time.Second}}, Monitor: &event.ServerMonitor{
			ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) { failed = append(failed, e.Duration) },
		}}, "a:1")
		mustSelect(t, topo, write())
		settle(DefaultHeartbeatInterval + 4*time.Second)
		if len(failed) != 1 || failed[0] != DefaultHeartbeatInterval+3*time.Second {
			t.Errorf("failed after %v", failed)
		}
	})
}

func TestRTTStats(t *testing.T) {
	var r rttStats
	if avg, least := r.get(); avg != 0 || least != 0 {
		t.Errorf("without samples: %v, %v", avg, least)
	}
	for round := range 2 {
		r.add(5)
		if avg, least := r.get(); avg != 5 || least != 0 {
			t.Errorf("round %d, one sample: %v, %v", round, avg, least)
		}
		for i := range 9 {
			r.add(time.Duration(20 + i))
		}
		if _, least := r.get(); least != 5 {
			t.Errorf("round %d, the first of ten is the least: %v", round, least)
		}
		r.add(30)
		if _, least := r.get(); least != 20 {
			t.Errorf("round %d, the first of eleven does not count: %v", round, least)
		}
		r.reset()
		r.add(50)
		r.add(60)
		if _, least := r.get(); least != 50 {
			t.Errorf("round %d, what was before a reset counts: %v", round, least)
		}
		r.reset()
	}
}

// The round trip time is that of a hello, without the time to connect; it begins anew when a check
// failed, and while the server streams it comes from a connection of its own, which is made again
// when it breaks.
func TestRoundTripTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.Server.Accept = func(context.Context, int64) error { time.Sleep(time.Second); return nil }
		var mu sync.Mutex
		delay, cut := 20*time.Millisecond, false
		n.before = func(r *fakeserver.Request) bool {
			mu.Lock()
			d, c := delay, cut && r.Body.Lookup("client").Type == 0 && r.Body.Lookup("maxAwaitTimeMS").Type == 0
			if c {
				cut = false
			}
			mu.Unlock()
			time.Sleep(d)
			if c { // a measurement on a connection that exists
				r.Conn.Close()
			}
			return c
		}
		topo := connect(t, network, Config{}, "a:1")
		s := mustSelect(t, topo, write())
		if d := s.Description(); d.AverageRTT != 20*time.Millisecond || d.MinRTT != 0 {
			t.Errorf("after one check: %v, %v", d.AverageRTT, d.MinRTT)
		}
		settle(2 * DefaultHeartbeatInterval)
		mu.Lock()
		delay, cut = 70*time.Millisecond, true
		mu.Unlock()
		settle(5 * DefaultHeartbeatInterval)
		if d := s.Description(); d.AverageRTT <= 30*time.Millisecond || d.AverageRTT >= 70*time.Millisecond || d.MinRTT != 20*time.Millisecond {
			t.Errorf("after a connection broke: %v, %v", d.AverageRTT, d.MinRTT)
		}
		n.SetDown(true)
		settle(DefaultHeartbeatInterval)
		if d := s.Description(); d.Kind != event.UnknownServer || d.AverageRTT != 0 {
			t.Errorf("while it is down: %v, %v", d, d.AverageRTT)
		}
		n.SetDown(false)
		if d := mustSelect(t, topo, write()).Description(); d.AverageRTT != 70*time.Millisecond {
			t.Errorf("when it is back: %v", d.AverageRTT)
		}
	})
}

// Heartbeats name their connection by both sides' numbers, as far as they are known.
func TestHeartbeatsNameTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		var served atomic.Int64
		n := newNode(network, "a:1", func(b []byte) []byte { return bson.AppendInt64(b, "connectionId", 100+served.Load()) })
		n.Server.Accept = func(_ context.Context, i int64) error { served.Store(i); return nil }
		n.before = func(r *fakeserver.Request) bool {
			if len(n.times) == 2 {
				n.times = append(n.times, time.Now())
				r.Conn.Close()
				return true
			}
			return false
		}
		type id struct{ driver, server int64 }
		number := func(driver int64, server *int64) id {
			if server == nil {
				return id{driver, 0}
			}
			return id{driver, *server}
		}
		var started, ended []id
		connect(t, network, Config{Monitoring: MonitorPoll, Monitor: &event.ServerMonitor{
			ServerHeartbeatStarted: func(e *event.ServerHeartbeatStarted) {
				started = append(started, number(e.DriverConnectionID, e.ServerConnectionID))
			},
			ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) {
				ended = append(ended, number(e.DriverConnectionID, e.ServerConnectionID))
			},
			ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) {
				ended = append(ended, number(e.DriverConnectionID, e.ServerConnectionID))
			},
		}}, "a:1")
		settle(2*DefaultHeartbeatInterval + time.Second)
		if want := []id{{1, 0}, {1, 101}, {1, 101}, {2, 0}}; !slices.Equal(started, want) {
			t.Errorf("started %v, want %v", started, want)
		}
		if want := []id{{1, 101}, {1, 101}, {1, 101}, {2, 102}}; !slices.Equal(ended, want) {
			t.Errorf("ended %v, want %v", ended, want)
		}
	})
}

// With a direct connection a pool is ready whatever the server is, if only it answers.
func TestDirectConnectionToAnyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", member(event.RSOther, "a:1", "b:1"))
		topo := connect(t, network, Config{Direct: true}, "a:1")
		s := mustSelect(t, topo, write())
		if err := ping(t.Context(), s); err != nil || s.Description().Kind != event.RSOther {
			t.Errorf("%v: %v", s.Description(), err)
		}
	})
}

// A primary that another one replaces is checked at once, and its pool is left alone.
func TestNewerPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		hosts := []string{"a:1", "b:1"}
		a := newNode(network, "a:1", member(event.RSPrimary, "a:1", hosts...))
		b := newNode(network, "b:1", member(event.RSSecondary, "b:1", hosts...))
		var replaced error
		topo := connect(t, network, Config{Monitoring: MonitorPoll, Monitor: &event.ServerMonitor{
			ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
				if e.Addr == "a:1" && e.NewDescription.Kind == event.UnknownServer {
					replaced = e.NewDescription.LastError
				}
			},
		}}, hosts...)
		time.Sleep(time.Second)
		old := topo.Server("a:1")
		a.say(member(event.RSSecondary, "a:1", hosts...))
		b.say(member(event.RSPrimary, "b:1", hosts...))
		topo.Server("b:1").requestCheck()
		synctest.Wait()
		if k := old.Description().Kind; k != event.RSSecondary || replaced != errNewerPrimary || old.pool.Generation() != 0 {
			t.Errorf("the old primary is %v, was replaced with %v, generation %d", k, replaced, old.pool.Generation())
		}
	})
}

// A server is closed when its monitor has ended: no heartbeat is without an end, and none comes
// later.
func TestCloseWaitsForMonitors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", nil)
		var mu sync.Mutex
		var seen []string
		add := func(s string) { mu.Lock(); seen = append(seen, s); mu.Unlock() }
		topo := connect(t, network, Config{Monitor: &event.ServerMonitor{
			ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { add("started") },
			ServerHeartbeatFailed: func(*event.ServerHeartbeatFailed) {
				time.Sleep(time.Second)
				add("failed")
			},
			ServerClosed:               func(*event.ServerClosed) { add("server closed") },
			TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { add(e.NewDescription.Kind.String()) },
			TopologyClosed:             func(*event.TopologyClosed) { add("topology closed") },
		}}, "a:1")
		mustSelect(t, topo, write())
		settle(time.Second)
		mu.Lock()
		seen = nil
		mu.Unlock()
		if err := topo.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"failed", "server closed", "Unknown", "topology closed"}; !slices.Equal(seen, want) {
			t.Errorf("events %v, want %v", seen, want)
		}
	})
}

// The client's timeoutMS is that of operations: a monitor and the measuring of round trip times
// take the time that they need (specification: Client Side Operations Timeout, "Server
// Monitoring").
func TestTimeoutIsNotTheMonitors(t *testing.T) {
	for _, mode := range []MonitoringMode{MonitorStream, MonitorPoll} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			n := newNode(network, "a:1", nil)
			n.before = func(*fakeserver.Request) bool { time.Sleep(time.Second); return false }
			var failed []error
			topo := connect(t, network, Config{
				Monitoring: mode,
				Pool:       pool.Config{Conn: &conn.Config{ConnectTimeout: 10 * time.Second, SocketTimeout: time.Millisecond, Timeout: new(10 * time.Millisecond)}},
				Monitor:    &event.ServerMonitor{ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) { failed = append(failed, e.Failure) }},
			}, "a:1")
			mustSelect(t, topo, write())
			settle(3 * DefaultHeartbeatInterval)
			if len(failed) > 0 {
				t.Errorf("mode %v: %v", mode, failed)
			}
			if d := topo.Description().Servers[0]; d.AverageRTT != time.Second || d.MinRTT != time.Second {
				t.Errorf("mode %v: round trips of %v, at least %v", mode, d.AverageRTT, d.MinRTT)
			}
		})
	}
}

// A heartbeat takes as long as its server needs to answer, which is also what the round trip time
// is made of, and one that fails as long as it was waited for (specification: SDAM Logging and
// Monitoring, "Events API").
func TestHeartbeatDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.Server.Accept = func(context.Context, int64) error { time.Sleep(3 * time.Second); return nil }
		n.before = func(r *fakeserver.Request) bool {
			n.mu.Lock()
			third := len(n.times) == 2
			if third {
				n.times = append(n.times, time.Now())
			}
			n.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			if third {
				r.Conn.Close()
			}
			return third
		}
		var took, failed []time.Duration
		topo := connect(t, network, Config{Monitoring: MonitorPoll, Monitor: &event.ServerMonitor{
			ServerHeartbeatStarted:   func(*event.ServerHeartbeatStarted) { time.Sleep(time.Millisecond) },
			ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) { took = append(took, e.Duration) },
			ServerHeartbeatFailed:    func(e *event.ServerHeartbeatFailed) { failed = append(failed, e.Duration) },
		}}, "a:1")
		d := mustSelect(t, topo, write()).Description()
		settle(2*DefaultHeartbeatInterval + time.Second)
		if len(took) < 2 || took[0] != d.AverageRTT || took[1] != 50*time.Millisecond {
			t.Errorf("heartbeats took %v, the round trip time is %v", took, d.AverageRTT)
		}
		if len(failed) != 1 || failed[0] != 50*time.Millisecond {
			t.Errorf("failed ones took %v", failed)
		}
	})
}

// A client that declares a version of the Stable API says hello and nothing else: a server that
// does not know it stays Unknown (specification: Stable API, "Handshake behavior").
func TestStableAPINeedsHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var mu sync.Mutex
		var said []string
		n.before = func(r *fakeserver.Request) bool {
			mu.Lock()
			for key := range r.Body.All() {
				said = append(said, key)
				break
			}
			mu.Unlock()
			if v, _ := r.Body.Lookup("apiVersion").StringValue(); v != "1" {
				t.Errorf("a hello without the version: %v", r.Body)
			}
			r.Reply(fakeserver.Doc(func(b []byte) []byte {
				return bson.AppendString(bson.AppendInt32(bson.AppendDouble(b, "ok", 0), "code", 59), "errmsg", "no such command: 'hello'")
			}))
			return true
		}
		topo := connect(t, network, Config{SelectionTimeout: 3 * DefaultHeartbeatInterval, Pool: pool.Config{
			Conn: &conn.Config{ConnectTimeout: 10 * time.Second, ServerAPI: &conn.ServerAPI{Version: "1"}},
		}}, "a:1")
		if _, _, err := topo.Select(t.Context(), &Selection{}); err == nil {
			t.Error("the server was selected")
		}
		if d := topo.Server("a:1").Description(); d.Kind != event.UnknownServer || d.LastError == nil {
			t.Errorf("the server is %v", d)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range said {
			if name != "hello" {
				t.Errorf("%s was sent", name)
			}
		}
		if len(said) < 2 {
			t.Errorf("%d checks", len(said))
		}
	})
}

// A monitor has read a reply, and before it is recorded an operation loses its connection: what the
// server was like before says nothing. The next check does.
func TestReplyBeforeALostConnection(t *testing.T) {
	for _, mode := range []MonitoringMode{MonitorPoll, MonitorStream} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			newNode(network, "a:1", member(event.RSPrimary, "a:1", "a:1", "b:1"))
			newNode(network, "b:1", member(event.RSSecondary, "b:1", "a:1", "b:1"))
			topo := connect(t, network, Config{Monitoring: mode}, "a:1")
			s := mustSelect(t, topo, write())
			settle(time.Second)
			read := *s.Description()
			s.handleError(&mongoerr.ConnectionError{Addr: "a:1", Op: "read"}, nil, func() bool { return false })
			if s.checked(&read) || s.Description().Kind != event.UnknownServer {
				t.Errorf("%v: the server is %v", mode, s.Description().Kind)
			}
			// An error counts, for it says no more than what is known.
			if !s.checked(&event.ServerDescription{Addr: "a:1", LastError: errors.New("refused")}) {
				t.Errorf("%v: the error of a check does not count", mode)
			}
			if s := mustSelect(t, topo, write()); s.Description().Kind != event.RSPrimary {
				t.Errorf("%v: the server is %v after the next check", mode, s.Description().Kind)
			}
		})
	}
}
