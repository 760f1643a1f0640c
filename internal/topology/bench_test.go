package topology

import (
	"fmt"
	"testing"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
)

// replicaSet returns a topology with a primary and secondaries on a network in memory, with an idle
// connection to each.
func replicaSet(tb testing.TB, secondaries int) *Topology {
	network := &fakeserver.Network{}
	td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs"}
	for i := range secondaries + 1 {
		d := &event.ServerDescription{Addr: fmt.Sprintf("m%d:1", i), Kind: event.RSSecondary, MaxWireVersion: 25, AverageRTT: time.Millisecond,
			Tags: event.TagSet{"dc": "ny"}}
		if i == 0 {
			d.Kind = event.RSPrimary
		}
		newNode(network, d.Addr, nil)
		td.Servers = append(td.Servers, d)
	}
	cfg := Config{unmonitored: true, Seeds: []string{"m0:1"}, LocalThreshold: DefaultLocalThreshold}
	cfg.Pool.Conn = &conn.Config{Dialer: network}
	topo, err := New(&cfg)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range td.Servers {
		s := newServer(topo, d)
		topo.servers[d.Addr] = s
		s.pool.Ready()
		c, err := s.CheckOut(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		c.Return()
	}
	topo.publish(td)
	tb.Cleanup(func() {
		topo.Close(tb.Context())
		network.Wait()
	})
	return topo
}

var selections = map[string]*Selection{
	"write":     {Write: true},
	"primary":   {ReadPreference: &consistency.ReadPreference{}},
	"secondary": {ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary, TagSets: []event.TagSet{{"dc": "ny"}}}},
	"nearest":   {ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest, MaxStaleness: 120 * time.Second}},
	"address":   {Addr: "m1:1"},
	"avoid":     {ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}, Deprioritized: []string{"m1:1"}},
}

func TestFastPathAllocatesNothing(t *testing.T) {
	topo := replicaSet(t, 2)
	ctx := t.Context()
	for name, sel := range selections {
		if n := testing.AllocsPerRun(100, func() {
			s, _, err := topo.Select(ctx, sel)
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.CheckOut(ctx)
			if err != nil {
				t.Fatal(err)
			}
			c.Return()
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkSelect(b *testing.B) {
	topo := replicaSet(b, 4)
	for name, sel := range selections {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := topo.Select(b.Context(), sel); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSelectCheckOutReturn is what an operation costs besides its command, with many
// goroutines at once.
func BenchmarkSelectCheckOutReturn(b *testing.B) {
	topo := replicaSet(b, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s, _, err := topo.Select(b.Context(), write())
			if err != nil {
				b.Fatal(err)
			}
			c, err := s.CheckOut(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			c.Return()
		}
	})
}

// routers returns a topology of mongoses that nobody connects to.
func routers(tb testing.TB, n int) *Topology {
	td := &event.TopologyDescription{Kind: event.Sharded}
	for i := range n {
		td.Servers = append(td.Servers, router(fmt.Sprintf("s%d:1", i), time.Millisecond))
	}
	cfg := Config{unmonitored: true, Seeds: []string{"s0:1"}, LocalThreshold: DefaultLocalThreshold}
	cfg.Pool.Conn = &conn.Config{Dialer: &fakeserver.Network{}}
	topo, err := New(&cfg)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range td.Servers {
		topo.servers[d.Addr] = newServer(topo, d)
	}
	topo.publish(td)
	tb.Cleanup(func() { topo.Close(tb.Context()) })
	return topo
}

func router(addr string, rtt time.Duration) *event.ServerDescription {
	return &event.ServerDescription{Addr: addr, Kind: event.Mongos, MaxWireVersion: 25, AverageRTT: rtt}
}

// checked is what a check of the first server does.
func (t *Topology) checked(sd *event.ServerDescription) {
	old := t.snapshot.Load().desc
	next, _ := t.machine.next(old, sd)
	t.change(old, next, sd)
}

// What a check allocates does not depend on how many servers there are, but for the lists of them.
func TestCheckOfMany(t *testing.T) {
	count := func(n int) float64 {
		topo := routers(t, n)
		sd := router("s0:1", time.Millisecond)
		return testing.AllocsPerRun(100, func() { topo.checked(sd) })
	}
	if few, many := count(3), count(500); many > few {
		t.Errorf("a check of one of 500 servers allocates %v times, of one of 3 %v times", many, few)
	}
}

// A selection finds the description of the server that it chose, among many.
func TestSelectAmongMany(t *testing.T) {
	topo := routers(t, 500)
	for _, d := range topo.Description().Servers {
		if s := topo.Server(d.Addr); s == nil || s.Addr() != d.Addr {
			t.Fatalf("the server at %s is %v", d.Addr, s)
		}
	}
	for _, sel := range []*Selection{write(), {ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}, {Addr: "s77:1"}} {
		seen := map[string]bool{}
		for range 2000 {
			s, d, err := topo.Select(t.Context(), sel)
			if err != nil {
				t.Fatal(err)
			}
			if d.Addr != s.Addr() || sel.Addr != "" && s.Addr() != sel.Addr {
				t.Fatalf("%v: selected %s with the description of %s", sel, s.Addr(), d.Addr)
			}
			seen[d.Addr] = true
		}
		if sel.Addr == "" && len(seen) < 400 {
			t.Errorf("%v: 2,000 selections used %d of 500 servers", sel, len(seen))
		}
	}
}

// A server that is gone is not found by its address, and the others still are.
func TestSelectAddressAfterChange(t *testing.T) {
	topo := routers(t, 4)
	topo.mu.Lock()
	old := topo.snapshot.Load().desc
	next := *old
	next.Servers = append([]*event.ServerDescription{router("s9:1", time.Millisecond)}, old.Servers[2:]...)
	topo.change(old, &next, nil)
	topo.mu.Unlock()
	for addr, want := range map[string]bool{"s0:1": false, "s1:1": false, "s2:1": true, "s3:1": true, "s9:1": true} {
		sel := &Selection{Addr: addr}
		s, d, err := topo.pick(topo.snapshot.Load(), sel)
		if err != nil || (s != nil) != want || want && (s.Addr() != addr || d.Addr != addr) || topo.Server(addr) != s {
			t.Errorf("%s: selected %v with %v, %v", addr, s, d, err)
		}
	}
}

func BenchmarkSelectAmong(b *testing.B) {
	for _, n := range []int{2, 10, 50, 150, 500} {
		topo := routers(b, n)
		for name, sel := range map[string]*Selection{"any": write(), "address": {Addr: fmt.Sprintf("s%d:1", n-1)}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := topo.Select(b.Context(), sel); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCheckAmong(b *testing.B) {
	for _, n := range []int{2, 50, 500} {
		topo := routers(b, n)
		sd := router("s0:1", time.Millisecond)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				topo.checked(sd)
			}
		})
	}
}
