package topology

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/failure"
	"allium/internal/fakeserver"
	"allium/internal/pool"
	"allium/mongoerr"
)

// The prose tests of Server Discovery and Monitoring (server-discovery-and-monitoring-tests.md, in
// the order of its sections, and tests/README.md) and of Server Selection, as far as they need no
// more than a topology.

// command sends a command to s and handles its error as an operation does.
func command(t testing.TB, s *Server, name string) error {
	t.Helper()
	c, err := s.CheckOut(t.Context())
	if err != nil {
		return err
	}
	defer c.Return()
	r, err := c.RoundTrip(t.Context(), fakeserver.Message(name))
	if err == nil {
		defer r.Release()
		if ok, _ := r.Body.Lookup("ok").AsInt64(); ok != 1 {
			err = failure.NewServerError(name, s.Addr(), slices.Clone(r.Body))
		} else if e := failure.NewWriteConcernError(s.Addr(), r.Body); e != nil {
			err = e
		}
	}
	if err != nil {
		s.HandleError(c, err)
	}
	return err
}

func answer(doc bson.Raw) func(*fakeserver.Request) {
	return func(r *fakeserver.Request) { r.Reply(doc) }
}

func errorReply(code int32, message string) bson.Raw {
	return fakeserver.Doc(func(b []byte) []byte {
		b = bson.AppendDouble(b, "ok", 0)
		if code != 0 {
			b = bson.AppendInt32(b, "code", code)
		}
		return bson.AppendString(b, "errmsg", message)
	})
}

// twoMembers returns a polling topology of the primary a:1 and the secondary b:1.
func twoMembers(t *testing.T) (topo *Topology, a, b *node) {
	network := &fakeserver.Network{}
	hosts := []string{"a:1", "b:1"}
	a = newNode(network, "a:1", member(event.RSPrimary, "a:1", hosts...))
	b = newNode(network, "b:1", member(event.RSSecondary, "b:1", hosts...))
	a.old, b.old = true, true // no topologyVersion: the errors here have none either
	topo = connect(t, network, Config{}, hosts...)
	mustSelect(t, topo, write())
	mustSelect(t, topo, &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
	for _, addr := range hosts { // a new connection says hello too
		if err := ping(t.Context(), topo.Server(addr)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second) // the checks that the selections have asked for are over
	return topo, a, b
}

func (n *node) checks() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.times)
}

func TestSDAMProse01AllServersUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topo := connect(t, &fakeserver.Network{}, Config{}, "a:1", "b:1")
		if d := topo.Description(); len(d.Servers) != 2 {
			t.Errorf("topology %v", d)
		}
	})
}

func TestSDAMProse02NetworkErrorWritingToPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topo, a, _ := twoMembers(t)
		a.command = func(r *fakeserver.Request) { r.Conn.Close() }
		before := a.checks()
		if err := command(t, topo.Server("a:1"), "insert"); err == nil {
			t.Error("no error")
		}
		synctest.Wait()
		if d := topo.Description(); d.Kind != event.ReplicaSetNoPrimary || d.Server("a:1").Kind != event.UnknownServer {
			t.Errorf("topology %v", d)
		}
		time.Sleep(2 * MinHeartbeatInterval)
		if n := a.checks(); n != before {
			t.Error("the former primary was checked at once")
		}
	})
}

// Sections 3, 4 and 5. A client of this kind checks the server again at once, as it does for the
// first of them too.
func TestSDAMProse03To05StateChanges(t *testing.T) {
	concern := fakeserver.Doc(func(b []byte) []byte {
		b = bson.AppendDouble(b, "ok", 1)
		at, b := bson.BeginDocumentElement(b, "writeConcernError")
		b = bson.AppendString(bson.AppendInt32(b, "code", 91), "errmsg", "Replication is being shut down")
		return bson.EndDocument(b, at)
	})
	for _, tt := range []struct {
		name   string
		server string
		reply  bson.Raw
		kind   event.TopologyKind
		clears bool
	}{
		{"03 not writable primary", "a:1", errorReply(10107, "not primary"), event.ReplicaSetNoPrimary, false},
		{"04 node is recovering", "b:1", errorReply(11602, "interrupted"), event.ReplicaSetWithPrimary, false},
		{"05 write concern error", "a:1", concern, event.ReplicaSetNoPrimary, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				topo, a, b := twoMembers(t)
				n := map[string]*node{"a:1": a, "b:1": b}[tt.server]
				n.command = answer(tt.reply)
				before := n.checks()
				s := topo.Server(tt.server)
				if err := command(t, s, "find"); err == nil {
					t.Error("no error")
				}
				if d := topo.Description(); d.Kind != tt.kind || d.Server(tt.server).Kind != event.UnknownServer {
					t.Errorf("topology %v", d)
				}
				if (s.pool.Generation() == 1) != tt.clears {
					t.Errorf("generation %d", s.pool.Generation())
				}
				time.Sleep(2 * MinHeartbeatInterval)
				if n.checks() != before+1 {
					t.Errorf("%d checks at once", n.checks()-before)
				}
				if topo.Description().Kind != event.ReplicaSetWithPrimary {
					t.Errorf("after the check: %v", topo.Description())
				}
			})
		})
	}
}

func TestSDAMProse06ParsingErrors(t *testing.T) {
	legacy := func(message string) bson.Raw {
		return fakeserver.Doc(func(b []byte) []byte { return bson.AppendString(b, "$err", message) })
	}
	for _, tt := range []struct {
		reply bson.Raw
		want  bool
	}{
		{errorReply(0, "not master"), true},
		{legacy("not master or secondary; cannot currently read from this replSet member"), true},
		{legacy("not master and slaveOk=false"), true},
		{errorReply(0, "node is recovering"), true},
		{errorReply(10107, "something else"), true},
		{errorReply(1, "not master"), false}, // the code decides
		{errorReply(0, "no such command"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			topo, a, _ := twoMembers(t)
			a.command = answer(tt.reply)
			err := command(t, topo.Server("a:1"), "insert")
			d := topo.Description().Server("a:1")
			if (d.Kind == event.UnknownServer) != tt.want {
				t.Errorf("%v: server is %v", err, d.Kind)
			}
			if e, ok := errors.AsType[*mongoerr.ServerError](d.LastError); tt.want && (!ok || e.Message == "") {
				t.Errorf("last error %v", d.LastError)
			}
		})
	}
}

// Sections 7, 8 and 9: discovery from a secondary, and a direct connection to it. Without
// directConnection a topology is discovered.
func TestSDAMProse07To09DirectConnection(t *testing.T) {
	for _, direct := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			hosts := []string{"a:1", "b:1"}
			newNode(network, "a:1", member(event.RSPrimary, "a:1", hosts...))
			b := newNode(network, "b:1", member(event.RSSecondary, "b:1", hosts...))
			b.command = answer(errorReply(10107, "not primary"))
			topo := connect(t, network, Config{Direct: direct}, "b:1")
			err := command(t, mustSelect(t, topo, write()), "insert")
			if e, ok := errors.AsType[*mongoerr.ServerError](err); direct != (ok && e.Code == 10107) {
				t.Errorf("direct %v: %v", direct, err)
			}
		})
	}
}

func TestSDAMProse10MinHeartbeatFrequency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var failures atomic.Int64
		n.before = func(r *fakeserver.Request) bool {
			if r.IsHello() && failures.Add(1) <= 5 {
				r.Reply(errorReply(1234, "fail point"))
				return true
			}
			return false
		}
		topo := connect(t, network, Config{Direct: true, SelectionTimeout: 5 * time.Second}, "a:1")
		start := time.Now()
		if err := ping(t.Context(), mustSelect(t, topo, write())); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 2*time.Second || d > 3500*time.Millisecond {
			t.Errorf("ping took %v", d)
		}
	})
}

func TestSDAMProse11PoolManagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var fail atomic.Int64
		n.before = func(r *fakeserver.Request) bool {
			if r.IsHello() && fail.Add(-1) >= 0 {
				r.Reply(errorReply(1234, "fail point"))
				return true
			}
			return false
		}
		var mu sync.Mutex
		var seen []string
		add := func(s string) { mu.Lock(); seen = append(seen, s); mu.Unlock() }
		connect(t, network, Config{
			Direct: true, HeartbeatInterval: MinHeartbeatInterval, Monitoring: MonitorPoll,
			Pool: pool.Config{Monitor: &event.PoolMonitor{
				PoolReady:   func(*event.PoolReady) { add("ready") },
				PoolCleared: func(*event.PoolCleared) { add("cleared") },
			}},
			Monitor: &event.ServerMonitor{
				ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { add("succeeded") },
				ServerHeartbeatFailed:    func(*event.ServerHeartbeatFailed) { add("failed") },
			},
		}, "a:1")
		synctest.Wait()
		fail.Store(2)
		time.Sleep(1700 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, " "); got != "succeeded ready failed cleared failed succeeded ready" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestSDAMProse12PoolBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var connected atomic.Int64
		n.before = func(r *fakeserver.Request) bool {
			if r.Conn.Data == nil {
				r.Conn.Data = true
				if connected.Add(1) > 20 { // the limit of connections per second
					r.Conn.Close()
					return true
				}
			}
			return false
		}
		n.command = func(r *fakeserver.Request) { time.Sleep(2 * time.Second); r.Reply(fakeserver.OK()) }
		var failed, cleared atomic.Int64
		topo := connect(t, network, Config{Monitoring: MonitorPoll, Pool: pool.Config{MaxConnecting: 100, Monitor: &event.PoolMonitor{
			ConnectionCheckOutFailed: func(*event.ConnectionCheckOutFailed) { failed.Add(1) },
			PoolCleared:              func(*event.PoolCleared) { cleared.Add(1) },
		}}}, "a:1")
		s := mustSelect(t, topo, write())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { command(t, s, "find") })
		}
		wg.Wait()
		if failed.Load() < 10 || cleared.Load() != 0 {
			t.Errorf("%d checkouts failed, the pool was cleared %d times", failed.Load(), cleared.Load())
		}
	})
}

func TestStreamingProse1HeartbeatFrequency(t *testing.T) {
	for _, mode := range []MonitoringMode{MonitorStream, MonitorPoll} {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			newNode(network, "a:1", nil)
			var awaited, other atomic.Int64
			connect(t, network, Config{HeartbeatInterval: 500 * time.Millisecond, Monitoring: mode, Monitor: &event.ServerMonitor{
				ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) {
					if e.Awaited {
						awaited.Add(1)
					} else {
						other.Add(1)
					}
				},
			}}, "a:1")
			time.Sleep(10*time.Second + time.Millisecond)
			if mode == MonitorStream && (awaited.Load() != 20 || other.Load() != 1) ||
				mode == MonitorPoll && (awaited.Load() != 0 || other.Load() != 21) {
				t.Errorf("mode %v: %d awaited and %d other heartbeats in 10 s", mode, awaited.Load(), other.Load())
			}
		})
	}
}

func TestRTTProse1ContinuouslyUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		var delay atomic.Int64
		delay.Store(int64(time.Millisecond))
		n.before = func(r *fakeserver.Request) bool {
			if r.IsHello() {
				time.Sleep(time.Duration(delay.Load()))
			}
			return false
		}
		topo := connect(t, network, Config{HeartbeatInterval: 500 * time.Millisecond, Monitor: &event.ServerMonitor{
			ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
				if e.NewDescription.AverageRTT == 0 {
					t.Errorf("description without round trip time: %v", e.NewDescription)
				}
			},
		}}, "a:1")
		s := mustSelect(t, topo, write())
		time.Sleep(2 * time.Second)
		if d := s.Description(); d.AverageRTT != time.Millisecond || d.MinRTT != time.Millisecond {
			t.Errorf("round trip time %v, least %v", d.AverageRTT, d.MinRTT)
		}
		delay.Store(int64(500 * time.Millisecond))
		time.Sleep(10 * time.Second)
		if d := s.Description(); d.AverageRTT < 250*time.Millisecond {
			t.Errorf("round trip time %v", d.AverageRTT)
		}
	})
}

func TestHeartbeatProse1StartedBeforeSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		add := func(s string) { mu.Lock(); seen = append(seen, s); mu.Unlock() }
		network := &fakeserver.Network{}
		network.Add("a:1", &fakeserver.Server{
			Accept: func(context.Context, int64) error { add("client connected"); return nil },
			Handle: func(r *fakeserver.Request) { add("client hello received"); r.Conn.Close() },
		})
		topo := connect(t, network, Config{SelectionTimeout: 500 * time.Millisecond, Monitor: &event.ServerMonitor{
			ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { add("serverHeartbeatStartedEvent") },
			ServerHeartbeatFailed:  func(*event.ServerHeartbeatFailed) { add("serverHeartbeatFailedEvent") },
		}}, "a:1")
		if _, _, err := topo.Select(t.Context(), write()); err == nil {
			t.Error("no error")
		}
		want := []string{"serverHeartbeatStartedEvent", "client connected", "client hello received", "serverHeartbeatFailedEvent"}
		mu.Lock()
		defer mu.Unlock()
		if len(seen) < 4 || !slices.Equal(seen[:4], want) {
			t.Errorf("events %v", seen)
		}
	})
}

func TestServerSelectionProse1OperationCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		counts := map[string]*atomic.Int64{}
		var slow atomic.Bool
		slow.Store(true)
		for _, addr := range []string{"a:1", "b:1"} {
			n := newNode(network, addr, mongos)
			count := &atomic.Int64{}
			counts[addr] = count
			n.command = func(r *fakeserver.Request) {
				count.Add(1)
				time.Sleep(time.Millisecond)
				if addr == "a:1" && slow.Load() {
					time.Sleep(500 * time.Millisecond)
				}
				r.Reply(fakeserver.OK())
			}
		}
		topo := connect(t, network, Config{LocalThreshold: 30 * time.Second, Pool: pool.Config{MinPoolSize: 10, MaxPoolSize: 10}}, "a:1", "b:1")
		time.Sleep(5 * time.Second) // both are known and their pools are full
		run := func(operations int) (a, b int64) {
			counts["a:1"].Store(0)
			counts["b:1"].Store(0)
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					for range operations {
						if err := ping(t.Context(), mustSelect(t, topo, &Selection{ReadPreference: &consistency.ReadPreference{}})); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			return counts["a:1"].Load(), counts["b:1"].Load()
		}
		if a, b := run(10); float64(a)/float64(a+b) >= 0.25 {
			t.Errorf("the slow mongos got %d of %d operations", a, a+b)
		}
		slow.Store(false)
		if a, b := run(100); math.Abs(float64(a)/float64(a+b)-0.5) > 0.1 {
			t.Errorf("the mongoses got %d and %d operations", a, b)
		}
	})
}

func TestServerSelectionProse2ServerSelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		hosts := []string{"a:1", "a:2", "a:3"}
		for i, h := range hosts {
			kind := event.RSSecondary
			if i == 1 {
				kind = event.RSPrimary
			}
			newNode(network, h, member(kind, h, hosts...))
		}
		topo := connect(t, network, Config{Selector: func(servers []*event.ServerDescription) []*event.ServerDescription {
			if len(servers) == 0 {
				return nil
			}
			highest := slices.MaxFunc(servers, func(a, b *event.ServerDescription) int { return strings.Compare(a.Addr, b.Addr) })
			return []*event.ServerDescription{highest}
		}}, hosts...)
		synctest.Wait()
		for range 10 {
			if s := mustSelect(t, topo, &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}); s.Addr() != "a:3" {
				t.Errorf("selected %s", s.Addr())
			}
		}
	})
}

// Max Staleness, driver test "Parse lastWriteDate". The tests of connection strings belong to that
// package.
func TestMaxStalenessProse6LastWriteDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		var written atomic.Int64
		written.Store(time.Now().UnixMilli())
		newNode(network, "a:1", func(b []byte) []byte {
			b = member(event.RSPrimary, "a:1", "a:1")(b)
			at, b := bson.BeginDocumentElement(b, "lastWrite")
			return bson.EndDocument(bson.AppendDateTime(b, "lastWriteDate", bson.DateTime(written.Load())), at)
		})
		topo := connect(t, network, Config{HeartbeatInterval: 500 * time.Millisecond}, "a:1")
		s := mustSelect(t, topo, write())
		first := s.Description().LastWriteDate
		time.Sleep(2 * time.Second)
		written.Store(time.Now().UnixMilli())
		time.Sleep(time.Second)
		second := s.Description().LastWriteDate
		if first.IsZero() || !second.After(first) || second.Sub(first) > 10*time.Second {
			t.Errorf("last writes %v and %v", first, second)
		}
	})
}

// Max Staleness, driver test "Direct connection to mongos": what the command says.
func TestMaxStalenessProse7ReadPreferenceDocument(t *testing.T) {
	for _, tt := range []struct {
		rp   *consistency.ReadPreference
		want string
	}{
		{&consistency.ReadPreference{Mode: consistency.Secondary, MaxStaleness: 2 * time.Minute}, `{"mode":"secondary","maxStalenessSeconds":120}`},
		{&consistency.ReadPreference{Mode: consistency.Secondary}, `{"mode":"secondary"}`},
		{&consistency.ReadPreference{Mode: consistency.Nearest, TagSets: []event.TagSet{{"b": "2", "a": "1"}, {}}, Hedge: new(true)},
			`{"mode":"nearest","tags":[{"a":"1","b":"2"},{}],"hedge":{"enabled":true}}`},
		{nil, `{"mode":"primary"}`},
	} {
		doc := fakeserver.Doc(func(b []byte) []byte { return AppendReadPreference(b, "$readPreference", tt.rp) })
		rp, _ := doc.Lookup("$readPreference").Document()
		got, err := bson.AppendExtJSON(nil, rp, false)
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %s, want %s (%v)", tt.rp, got, tt.want, err)
		}
	}
}

func TestReadPreferenceValidate(t *testing.T) {
	for _, rp := range []*consistency.ReadPreference{
		{TagSets: []event.TagSet{{"a": "b"}}}, {MaxStaleness: time.Minute}, {Hedge: new(true)}, {Mode: "other"},
	} {
		if rp.Validate() == nil {
			t.Errorf("%v is valid", rp)
		}
	}
	for _, rp := range []*consistency.ReadPreference{nil, {}, {TagSets: []event.TagSet{{}}}, {MaxStaleness: -1}, {Mode: consistency.Nearest, MaxStaleness: time.Second}} {
		if err := rp.Validate(); err != nil {
			t.Errorf("%v: %v", rp, err)
		}
	}
}

func TestIncompatibleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", func(b []byte) []byte { return bson.AppendInt32(b, "maxWireVersion", 5) })
		topo := connect(t, network, Config{HeartbeatInterval: time.Second}, "a:1")
		_, _, err := topo.Select(t.Context(), write())
		want := "Server at a:1 reports wire version 5, but this version of Allium requires at least 6 (MongoDB 3.6)."
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v", err)
		}
		n.say(nil) // after an upgrade
		synctest.Wait()
		mustSelect(t, topo, write())
	})
}

// A server that talks garbage is an error that says so, at once for the check and in time for the
// operation.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.before = func(r *fakeserver.Request) bool {
			r.Conn.WriteRaw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			return true
		}
		topo := connect(t, network, Config{SelectionTimeout: time.Second, Pool: pool.Config{Conn: &conn.Config{ConnectTimeout: time.Minute}}}, "a:1")
		if _, _, err := topo.Select(t.Context(), write()); !strings.Contains(fmt.Sprint(err), "hello: ") {
			t.Errorf("error %v", err)
		}
	})
}
