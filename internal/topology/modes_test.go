package topology

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/internal/wire"
)

// What monitors send, by the specification Server Monitoring.

// asked is a request to a server that monitors have made.
type asked struct {
	conn    int // by the order of connections
	body    bson.Raw
	exhaust bool
}

// recordAsked notes all requests to a server. answer, which may be nil, is called with each and may
// answer it in the server's place.
func recordAsked(n *node, answer func(a asked, r *fakeserver.Request) bool) func() []asked {
	var mu sync.Mutex
	var list []asked
	conns := map[*fakeserver.Conn]int{}
	n.before = func(r *fakeserver.Request) bool {
		mu.Lock()
		if conns[r.Conn] == 0 {
			conns[r.Conn] = len(conns) + 1
		}
		a := asked{conns[r.Conn], append(bson.Raw(nil), r.Body...), r.Flags&wire.ExhaustAllowed != 0}
		list = append(list, a)
		mu.Unlock()
		return answer != nil && answer(a, r)
	}
	return func() []asked {
		mu.Lock()
		defer mu.Unlock()
		return append([]asked(nil), list...)
	}
}

// Which protocol a server is monitored with, whether a further connection measures round trips, and
// that none of these connections is authenticated.
func TestMonitoringModes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		mode    MonitoringMode
		faas    bool
		old     bool // a server that cannot stream
		streams bool
	}{
		{"auto", MonitorAuto, false, false, true},
		{"auto, FaaS", MonitorAuto, true, false, false},
		{"auto, old server", MonitorAuto, false, true, false},
		{"stream", MonitorStream, false, false, true},
		{"stream, FaaS", MonitorStream, true, false, true},
		{"stream, old server", MonitorStream, false, true, false},
		{"poll", MonitorPoll, false, false, false},
		{"poll, FaaS", MonitorPoll, true, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.faas {
				t.Setenv("AWS_EXECUTION_ENV", "AWS_Lambda_go1.x")
			}
			synctest.Test(t, func(t *testing.T) {
				const interval = 7 * time.Second
				network := &fakeserver.Network{}
				n := newNode(network, "a:1", nil)
				n.old = tc.old
				requests := recordAsked(n, nil)
				connect(t, network, Config{Monitoring: tc.mode, HeartbeatInterval: interval}, "a:1")
				settle(10*interval + time.Second)
				streams, measured, conns := 0, 0, 0
				for _, a := range requests() {
					conns = max(conns, a.conn)
					await, ok := a.body.Lookup("maxAwaitTimeMS").AsInt64()
					switch {
					case ok != a.exhaust || ok && await != interval.Milliseconds() || ok && a.body.Lookup("topologyVersion").IsZero():
						t.Errorf("awaits %d ms, with exhaustAllowed: %v", await, a.exhaust)
					case ok:
						streams++
					default:
						measured++
					}
					for _, key := range []string{"saslSupportedMechs", "speculativeAuthenticate", "lsid", "$clusterTime"} {
						if !a.body.Lookup(key).IsZero() {
							t.Errorf("a check has %s: %v", key, a.body)
						}
					}
				}
				want := 1
				if tc.streams {
					want = 2
				}
				if conns != want || (streams > 0) != tc.streams {
					t.Errorf("%d connections, of which one is asked to stream %d times", conns, streams)
				}
				if measured < 10 || measured > 13 {
					t.Errorf("%d round trips in ten intervals", measured)
				}
			})
		})
	}
}

// A check that hangs holds up no other server, and no check takes a connection of a pool.
func TestMonitorsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", member(event.RSPrimary, "a:1", "a:1", "b:1"))
		hung := make(chan struct{})
		defer close(hung)
		newNode(network, "b:1", nil).before = func(*fakeserver.Request) bool { <-hung; return true }
		topo := connect(t, network, Config{Pool: pool.Config{MaxPoolSize: 1, Conn: &conn.Config{}}}, "b:1", "a:1")
		start := time.Now()
		s := mustSelect(t, topo, write())
		if s.Addr() != "a:1" || time.Since(start) > time.Second {
			t.Errorf("%s after %v", s.Addr(), time.Since(start))
		}
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		updated := s.Description().LastUpdate
		settle(3 * DefaultHeartbeatInterval)
		if !s.Description().LastUpdate.After(updated) {
			t.Error("no check while the pool's only connection is in use")
		}
		c.Return()
	})
}

// The hello of a monitor's new connection is a check, and its round trip counts.
func TestHelloOfMonitorIsACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		requests := recordAsked(n, func(asked, *fakeserver.Request) bool { time.Sleep(20 * time.Millisecond); return false })
		topo := connect(t, network, Config{Monitoring: MonitorPoll}, "a:1")
		settle(DefaultHeartbeatInterval / 2)
		if d := topo.Description().Servers[0]; d.Kind != event.Standalone || d.AverageRTT != 20*time.Millisecond || len(requests()) != 1 {
			t.Errorf("%v with a round trip of %v after %d hellos", d, d.AverageRTT, len(requests()))
		}
	})
}

// Without a connect timeout a stream may be silent for ever.
func TestNoConnectTimeoutNoStreamTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		recordAsked(n, func(a asked, _ *fakeserver.Request) bool { return a.exhaust })
		failed := 0
		topo := connect(t, network, Config{Pool: pool.Config{Conn: &conn.Config{}}, Monitor: &event.ServerMonitor{
			ServerHeartbeatFailed: func(*event.ServerHeartbeatFailed) { failed++ },
		}}, "a:1")
		mustSelect(t, topo, write())
		settle(time.Hour)
		if failed > 0 || topo.Description().Servers[0].Kind != event.Standalone {
			t.Errorf("%d checks failed", failed)
		}
	})
}

// What the hellos say that measure round trips, and whether they fail, is nobody's business: there
// are no events of them, and the topology stays as it is.
func TestMeasuringSaysNothing(t *testing.T) {
	refused := fakeserver.Doc(func(b []byte) []byte { return bson.AppendInt32(bson.AppendDouble(b, "ok", 0), "code", 91) })
	other := fakeserver.Hello(member(event.RSSecondary, "z:1", "z:1"))
	for name, answer := range map[string]func(*fakeserver.Request){
		"an error":       func(r *fakeserver.Request) { r.Reply(refused) },
		"another server": func(r *fakeserver.Request) { r.Reply(other) },
		"nothing":        func(r *fakeserver.Request) { r.Conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &fakeserver.Network{}
				n := newNode(network, "a:1", nil)
				measured := 0
				requests := recordAsked(n, func(a asked, r *fakeserver.Request) bool {
					if a.conn == 1 {
						return false
					}
					answer(r)
					return true
				})
				var beats, changes []string
				topo := connect(t, network, Config{Monitoring: MonitorStream, Monitor: &event.ServerMonitor{
					ServerHeartbeatStarted: func(e *event.ServerHeartbeatStarted) {
						if e.DriverConnectionID != 1 {
							beats = append(beats, "on another connection")
						}
					},
					ServerHeartbeatFailed:      func(e *event.ServerHeartbeatFailed) { beats = append(beats, e.Failure.Error()) },
					ServerDescriptionChanged:   func(e *event.ServerDescriptionChanged) { changes = append(changes, e.NewDescription.String()) },
					TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) { changes = append(changes, e.NewDescription.String()) },
				}}, "a:1")
				mustSelect(t, topo, write())
				synctest.Wait()
				before := len(changes)
				settle(5 * DefaultHeartbeatInterval)
				for _, a := range requests() {
					if a.conn > 1 {
						measured++
					}
				}
				if d := topo.Description(); measured < 4 || d.Kind != event.Single || d.Servers[0].Kind != event.Standalone {
					t.Errorf("after %d hellos: %v", measured, d)
				}
				if len(beats) > 0 || len(changes) != before {
					t.Errorf("events: %s", strings.Join(append(beats, changes[before:]...), "; "))
				}
				if s := topo.Server("a:1"); s.pool.Generation() != 0 {
					t.Error("the pool was cleared")
				}
			})
		})
	}
}

// A check that finds nothing new renews the description all the same, and tells nobody.
func TestTopologyFollowsEqualChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", nil)
		changes := 0
		topo := connect(t, network, Config{Monitoring: MonitorPoll, Monitor: &event.ServerMonitor{
			ServerDescriptionChanged: func(*event.ServerDescriptionChanged) { changes++ },
		}}, "a:1")
		mustSelect(t, topo, write())
		settle(time.Second) // the selection may have asked for one more check
		last := topo.Description().Servers[0].LastUpdate
		for range 3 {
			settle(DefaultHeartbeatInterval)
			d := topo.Description().Servers[0]
			if got := d.LastUpdate.Sub(last); got != DefaultHeartbeatInterval {
				t.Errorf("described anew after %v", got)
			}
			last = d.LastUpdate
		}
		if changes != 1 {
			t.Errorf("%d changes were told", changes)
		}
	})
}

// All pools of a client have its options: also those of servers that nobody named, and that join
// the set long after (specification: Connection Monitoring and Pooling, "Connection Pool Options").
func TestPoolsAreAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		hosts := []string{"a:1", "b:1", "c:1"}
		a := newNode(network, "a:1", member(event.RSPrimary, "a:1", hosts[:2]...))
		newNode(network, "b:1", member(event.RSSecondary, "b:1", hosts...))
		newNode(network, "c:1", member(event.RSSecondary, "c:1", hosts...))
		want := event.PoolOptions{MaxPoolSize: 7, MinPoolSize: 1, MaxConnecting: 3, MaxIdleTime: time.Hour, WaitQueueTimeout: time.Minute}
		var mu sync.Mutex
		created, ready := map[string]event.PoolOptions{}, map[string]int{}
		topo := connect(t, network, Config{Pool: pool.Config{
			MaxPoolSize: want.MaxPoolSize, MinPoolSize: want.MinPoolSize, MaxConnecting: want.MaxConnecting, MaxIdleTime: want.MaxIdleTime,
			WaitQueueTimeout: want.WaitQueueTimeout, Conn: &conn.Config{ConnectTimeout: 10 * time.Second},
			Monitor: &event.PoolMonitor{
				PoolCreated: func(e *event.PoolCreated) {
					mu.Lock()
					defer mu.Unlock()
					created[e.Addr] = e.Options
				},
				ConnectionReady: func(e *event.ConnectionReady) {
					mu.Lock()
					defer mu.Unlock()
					ready[e.Addr]++
				},
			},
		}}, "a:1")
		mustSelect(t, topo, write())
		settle(3 * DefaultHeartbeatInterval)
		a.say(member(event.RSPrimary, "a:1", hosts...))
		settle(3 * DefaultHeartbeatInterval)
		mu.Lock()
		defer mu.Unlock()
		for _, addr := range hosts {
			if created[addr] != want {
				t.Errorf("pool of %s: %+v, want %+v", addr, created[addr], want)
			}
			if ready[addr] != want.MinPoolSize {
				t.Errorf("pool of %s has made %d connections", addr, ready[addr])
			}
		}
	})
}
