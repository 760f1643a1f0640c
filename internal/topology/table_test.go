package topology

import (
	"fmt"
	"strings"
	"testing"

	"allium/event"
)

// TestTypeTable goes through all kinds of topologies and servers: what kind the topology is after b
// was checked, and whether b is still there (specification: Server Discovery and Monitoring,
// "TopologyType table"). The JSON tests have most of these, but not all.
func TestTypeTable(t *testing.T) {
	const a, b = "a:1", "b:1"
	kinds := map[string]event.ServerKind{
		"unknown": event.UnknownServer, "standalone": event.Standalone, "mongos": event.Mongos, "primary": event.RSPrimary,
		"secondary": event.RSSecondary, "arbiter": event.RSArbiter, "other": event.RSOther, "ghost": event.RSGhost,
	}
	server := func(addr string, kind event.ServerKind) *event.ServerDescription {
		d := &event.ServerDescription{Addr: addr, Kind: kind, MaxWireVersion: 21}
		switch kind {
		case event.RSPrimary, event.RSSecondary, event.RSArbiter, event.RSOther:
			d.SetName, d.Hosts = "rs", []string{a, b}
		}
		return d
	}
	const (
		unknown, sharded, none, with, single = event.UnknownTopology, event.Sharded, event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary, event.Single
	)
	for _, tc := range []struct {
		name  string
		from  event.TopologyKind
		a, b  event.ServerKind // as they are known before
		seeds string
		// after each check of b: the topology's kind, and "-" if b is removed
		after map[string]event.TopologyKind
		gone  string
	}{
		{"unknown", unknown, event.UnknownServer, event.UnknownServer, a + " " + b, map[string]event.TopologyKind{
			"unknown": unknown, "standalone": unknown, "mongos": sharded, "primary": with, "secondary": none, "arbiter": none, "other": none, "ghost": unknown,
		}, "standalone"},
		{"unknown, of one seed", unknown, 0, event.UnknownServer, b, map[string]event.TopologyKind{
			"unknown": unknown, "standalone": single, "mongos": sharded, "primary": with, "secondary": none, "arbiter": none, "other": none, "ghost": unknown,
		}, ""},
		{"sharded", sharded, event.Mongos, event.Mongos, a + " " + b, map[string]event.TopologyKind{
			"unknown": sharded, "standalone": sharded, "mongos": sharded, "primary": sharded, "secondary": sharded, "arbiter": sharded, "other": sharded, "ghost": sharded,
		}, "standalone primary secondary arbiter other ghost"},
		{"no primary", none, event.RSSecondary, event.RSSecondary, a + " " + b, map[string]event.TopologyKind{
			"unknown": none, "standalone": none, "mongos": none, "primary": with, "secondary": none, "arbiter": none, "other": none, "ghost": none,
		}, "standalone mongos"},
		{"the primary", with, event.RSSecondary, event.RSPrimary, a + " " + b, map[string]event.TopologyKind{
			"unknown": none, "standalone": none, "mongos": none, "primary": with, "secondary": none, "arbiter": none, "other": none, "ghost": none,
		}, "standalone mongos"},
		{"beside the primary", with, event.RSPrimary, event.RSSecondary, a + " " + b, map[string]event.TopologyKind{
			"unknown": with, "standalone": with, "mongos": with, "primary": with, "secondary": with, "arbiter": with, "other": with, "ghost": with,
		}, "standalone mongos"},
		{"single", single, 0, event.UnknownServer, b, map[string]event.TopologyKind{
			"unknown": single, "standalone": single, "mongos": single, "primary": single, "secondary": single, "arbiter": single, "other": single, "ghost": single,
		}, ""},
		{"load balanced", event.LoadBalanced, 0, event.LoadBalancer, b, map[string]event.TopologyKind{"unknown": event.LoadBalanced}, ""},
	} {
		for name, kind := range kinds {
			want, ok := tc.after[name]
			if !ok {
				continue // there is no such check
			}
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				td := &event.TopologyDescription{Kind: tc.from}
				if tc.from == none || tc.from == with {
					td.SetName = "rs"
				}
				seeds := strings.Fields(tc.seeds)
				for _, addr := range seeds {
					k := tc.b
					if addr == a {
						k = tc.a
					}
					td.Servers = append(td.Servers, server(addr, k))
				}
				next, _ := machine{seeds: len(seeds)}.next(td, server(b, kind))
				if next.Kind != want {
					t.Errorf("the topology is %v, want %v", next.Kind, want)
				}
				gone := strings.Contains(" "+tc.gone+" ", " "+name+" ")
				switch d := next.Server(b); {
				case (d == nil) != gone:
					t.Errorf("b is removed: %v, want %v", d == nil, gone)
				case d != nil && d.Kind != kind:
					t.Errorf("b is %v, want %v", d.Kind, kind)
				}
				if other := td.Server(a); other != nil {
					had, has := fmt.Sprint(other.Kind), fmt.Sprint(next.Server(a).Kind)
					if tc.name == "beside the primary" && name == "primary" {
						had = fmt.Sprint(event.UnknownServer) // it is the primary no more
					}
					if has != had {
						t.Errorf("a is %v, want %v", has, had)
					}
				}
			})
		}
	}
}
