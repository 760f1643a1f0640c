package topology

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/hello"
	"allium/internal/spectest"
)

// The tests of the specifications Server Selection and Max Staleness that need no server.

type selectionFile struct {
	HeartbeatFrequencyMS int64
	TopologyDescription  topologyJSON `json:"topology_description"`
	Operation            string
	ReadPreference       *struct {
		Mode                string
		TagSets             []event.TagSet `json:"tag_sets"`
		MaxStalenessSeconds *float64
	} `json:"read_preference"`
	Deprioritized []serverJSON `json:"deprioritized_servers"`
	Suitable      []serverJSON `json:"suitable_servers"`
	InWindow      []serverJSON `json:"in_latency_window"`
	Error         bool
}

type topologyJSON struct {
	Type    string
	Servers []serverJSON
}

type serverJSON struct {
	Address        string
	Type           string
	AvgRTT         float64 `json:"avg_rtt_ms"`
	Tags           event.TagSet
	LastUpdateTime int64
	LastWrite      *struct {
		LastWriteDate struct {
			NumberLong json.Number `json:"$numberLong"`
		}
	}
	MaxWireVersion *int32
}

func topologyKind(t *testing.T, name string) event.TopologyKind {
	for k := range event.LoadBalanced + 1 {
		if k.String() == name {
			return k
		}
	}
	t.Fatalf("unknown topology type %s", name)
	return 0
}

func serverKind(t *testing.T, name string) event.ServerKind {
	if name == "PossiblePrimary" {
		return event.UnknownServer
	}
	for k := range event.LoadBalancer + 1 {
		if k.String() == name {
			return k
		}
	}
	t.Fatalf("unknown server type %s", name)
	return 0
}

func (j *topologyJSON) description(t *testing.T, heartbeat time.Duration) *event.TopologyDescription {
	td := &event.TopologyDescription{Kind: topologyKind(t, j.Type)}
	for _, s := range j.Servers {
		d := &event.ServerDescription{
			Addr: s.Address, Kind: serverKind(t, s.Type), AverageRTT: time.Duration(s.AvgRTT * float64(time.Millisecond)),
			Tags: s.Tags, MaxWireVersion: hello.MinWireVersion, LastUpdate: time.UnixMilli(s.LastUpdateTime), HeartbeatInterval: heartbeat,
		}
		if s.MaxWireVersion != nil {
			d.MaxWireVersion = *s.MaxWireVersion
		}
		if s.LastWrite != nil {
			n, err := s.LastWrite.LastWriteDate.NumberLong.Int64()
			if err != nil {
				t.Fatal(err)
			}
			d.LastWriteDate = time.UnixMilli(n)
		}
		td.Servers = append(td.Servers, d)
	}
	finish(td)
	return td
}

// blockedDialer never gets a connection.
type blockedDialer struct{}

func (blockedDialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// topologyOf returns a topology that knows td and does nothing.
func topologyOf(t *testing.T, td *event.TopologyDescription, cfg Config) *Topology {
	t.Helper()
	cfg.unmonitored = true
	cfg.Seeds = []string{"seed"}
	cfg.Pool.Conn = &conn.Config{Dialer: blockedDialer{}}
	topo, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range td.Servers {
		topo.servers[d.Addr] = newServer(topo, d)
	}
	topo.publish(td)
	t.Cleanup(func() { topo.Close(t.Context()) })
	return topo
}

func names[T any](list []T, name func(T) string) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, name(v))
	}
	slices.Sort(out)
	return out
}

func jsonName(s serverJSON) string               { return s.Address }
func descName(d *event.ServerDescription) string { return d.Addr }

func (f *selectionFile) run(t *testing.T) {
	heartbeat := time.Duration(f.HeartbeatFrequencyMS) * time.Millisecond
	if heartbeat == 0 {
		heartbeat = DefaultHeartbeatInterval
	}
	td := f.TopologyDescription.description(t, heartbeat)
	if f.Operation != "read" && f.Operation != "write" && f.Operation != "" {
		t.Fatalf("unknown operation %q", f.Operation)
	}
	sel := Selection{Write: f.Operation == "write"}
	if rp := f.ReadPreference; rp != nil {
		sel.ReadPreference = &consistency.ReadPreference{}
		if rp.Mode != "" {
			sel.ReadPreference.Mode = consistency.ReadMode(strings.ToLower(rp.Mode[:1]) + rp.Mode[1:])
		}
		if ReadMode(sel.ReadPreference) != consistency.Primary || slices.ContainsFunc(rp.TagSets, func(s event.TagSet) bool { return len(s) > 0 }) {
			sel.ReadPreference.TagSets = rp.TagSets
		}
		if s := rp.MaxStalenessSeconds; s != nil {
			// In Go zero means that there is no limit; the files mean a limit that is too small.
			sel.ReadPreference.MaxStaleness = max(1, time.Duration(*s*float64(time.Second)))
			if *s < 0 {
				sel.ReadPreference.MaxStaleness = 0
			}
		}
	}
	for _, s := range f.Deprioritized {
		sel.Deprioritized = append(sel.Deprioritized, s.Address)
	}
	topo := topologyOf(t, td, Config{HeartbeatInterval: heartbeat, LocalThreshold: DefaultLocalThreshold})
	if f.Error {
		if s, _, err := topo.pick(topo.snapshot.Load(), &sel); err == nil {
			t.Errorf("selected %v, want an error", s)
		}
		return
	}
	suitable := appendSuitable(nil, td, &sel)
	if got, want := names(suitable, descName), names(f.Suitable, jsonName); !slices.Equal(got, want) {
		t.Errorf("suitable: %v, want %v", got, want)
	}
	want := names(f.InWindow, jsonName)
	if got := names(inWindow(suitable, DefaultLocalThreshold), descName); !slices.Equal(got, want) {
		t.Errorf("in the latency window: %v, want %v", got, want)
	}
	seen := map[string]bool{}
	for range 200 {
		s, _, err := topo.pick(topo.snapshot.Load(), &sel)
		switch {
		case err != nil:
			t.Fatal(err)
		case s == nil && len(want) == 0:
			return
		case s == nil || !slices.Contains(want, s.Addr()):
			t.Fatalf("selected %v, want one of %v", s, want)
		}
		seen[s.Addr()] = true
	}
	if len(seen) != len(want) {
		t.Errorf("selected %v only, want all of %v", seen, want)
	}
}

func TestSelectionSpec(t *testing.T) {
	for _, pattern := range []string{
		"server-selection/tests/server_selection/*/*/*.json", "max-staleness/tests/*/*.json",
	} {
		for _, file := range spectest.Files(t, pattern) {
			parts := strings.Split(filepath.ToSlash(file), "/")
			t.Run(strings.Join(parts[len(parts)-4:], "/"), func(t *testing.T) {
				var f selectionFile
				spectest.Decode(t, file, &f)
				f.run(t)
			})
		}
	}
}

func TestRTTSpec(t *testing.T) {
	for _, file := range spectest.Files(t, "server-selection/tests/rtt/*.json") {
		var f struct {
			Avg  any     `json:"avg_rtt_ms"`
			New  float64 `json:"new_rtt_ms"`
			Want float64 `json:"new_avg_rtt"`
		}
		spectest.Decode(t, file, &f)
		millis := func(f float64) time.Duration { return time.Duration(math.Round(f * 1e6)) }
		var r rttStats
		if avg, ok := f.Avg.(float64); ok {
			r.add(millis(avg))
		}
		r.add(millis(f.New))
		if got, _ := r.get(); (got - millis(f.Want)).Abs() > 1 {
			t.Errorf("%s: %v, want %v", filepath.Base(file), got, millis(f.Want))
		}
	}
}

// Prose test 1 of Server Selection is this suite's; it draws at random, so a tolerance belongs to
// it.
func TestInWindowSpec(t *testing.T) {
	for _, file := range spectest.Files(t, "server-selection/tests/in_window/*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var f struct {
				Description         string
				TopologyDescription topologyJSON `json:"topology_description"`
				Mocked              []struct {
					Address        string
					OperationCount int64 `json:"operation_count"`
				} `json:"mocked_topology_state"`
				Iterations int
				Outcome    struct {
					Tolerance float64
					Expected  map[string]float64 `json:"expected_frequencies"`
				}
			}
			spectest.Decode(t, file, &f)
			synctest.Test(t, func(t *testing.T) {
				topo := topologyOf(t, f.TopologyDescription.description(t, 0), Config{LocalThreshold: DefaultLocalThreshold})
				for _, m := range f.Mocked {
					s := topo.Server(m.Address)
					s.pool.Ready()
					for range m.OperationCount { // operations in progress: they wait for a connection
						go s.CheckOut(t.Context())
					}
				}
				synctest.Wait()
				counts := map[string]int{}
				for range f.Iterations {
					s, _, err := topo.Select(t.Context(), &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}})
					if err != nil {
						t.Fatal(err)
					}
					counts[s.Addr()]++
				}
				for addr, want := range f.Outcome.Expected {
					tolerance := f.Outcome.Tolerance
					if want == 0 || want == 1 {
						tolerance = 0
					}
					if got := float64(counts[addr]) / float64(f.Iterations); math.Abs(got-want) > tolerance {
						t.Errorf("%s was selected with frequency %v, want %v", addr, got, want)
					}
				}
			})
		})
	}
}

// TestPickDescribed: while a server is picked, its description may change. What comes with it is
// the one that it was suitable by, whose round trip time the rest of the operation counts with
// (specification: Client Side Operations Timeout, "Server Selection").
func TestPickDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		topo := connect(t, network, Config{SelectionTimeout: time.Minute}, "a:1")
		synctest.Wait()
		before := topo.snapshot.Load()
		n.SetDown(true)
		time.Sleep(time.Minute)
		if topo.Description().Server("a:1").Kind != event.UnknownServer {
			t.Fatal("the server is still known")
		}
		for _, sel := range []*Selection{write(), {ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}, {ReadPreference: &consistency.ReadPreference{Mode: consistency.PrimaryPreferred}}} {
			s, d, err := topo.pick(before, sel)
			if err != nil || s == nil || d != before.desc.Server("a:1") {
				t.Errorf("%v: %v, %v, want the description %v", sel, d, err, before.desc.Server("a:1"))
			}
		}
	})
}

// The description that a selection returns is the one that it was made by, whichever way it was
// made.
func TestSelectDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		n := newNode(network, "a:1", nil)
		n.SetDown(true)
		topo := connect(t, network, Config{SelectionTimeout: time.Minute}, "a:1")
		time.AfterFunc(5*time.Second, func() { n.SetDown(false) })
		for i, sel := range []*Selection{write(), write(), {ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}} { // the first one waits
			synctest.Wait() // no check of the server is under way: its end would be another description
			s, d, err := topo.Select(t.Context(), sel)
			if err != nil {
				t.Fatal(err)
			}
			if d != topo.Description().Server("a:1") || s.Addr() != "a:1" {
				t.Errorf("selection %d: %v with the description %v", i, s.Addr(), d)
			}
			if i == 1 { // what becomes of the server later does not change it
				n.SetDown(true)
				time.Sleep(time.Minute)
				if d.Kind == event.UnknownServer || s.Description().Kind != event.UnknownServer {
					t.Errorf("selected as %v, now %v", d.Kind, s.Description().Kind)
				}
				n.SetDown(false)
				time.Sleep(time.Minute)
			}
		}
	})
}

// TestReadyWhenKnown: once a server is known, its pool is ready: nobody can select it and find that
// it is not (specification: Server Monitoring, and Connection Monitoring and
// Pooling, "Marking a Pool as Ready").
func TestReadyWhenKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		newNode(network, "a:1", nil)
		topo := connect(t, network, Config{SelectionTimeout: time.Minute}, "a:1")
		synctest.Wait()
		known := *topo.Description().Server("a:1")
		for range 100 { // a pool that is made ready later is seen in most rounds
			for _, d := range []*event.ServerDescription{{Addr: "a:1", LastError: errors.New("away")}, &known} {
				d := *d
				topo.update(&d, func() bool { return false }, func(s *Server) {
					if d.LastError != nil {
						s.pool.Clear(d.LastError, false) // as a failed check does
					} else if state := s.pool.Stats().State; state != "ready" {
						t.Errorf("the pool is %s", state)
					}
				})
			}
		}
	})
}
