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
			s, _, err := topo.Select(b.Context(), write)
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
