package topology

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/consistency"
	"allium/event"
	"allium/internal/logging"
)

func membersAt(rtt ...time.Duration) *event.TopologyDescription {
	td := &event.TopologyDescription{Kind: event.ReplicaSetWithPrimary, SetName: "rs"}
	for i, d := range rtt {
		kind := event.RSSecondary
		if i == 0 {
			kind = event.RSPrimary
		}
		td.Servers = append(td.Servers, &event.ServerDescription{
			Addr: string(rune('a'+i)) + ":1", Kind: kind, SetName: "rs", AverageRTT: d, MaxWireVersion: 21,
		})
	}
	return td
}

// The window includes both of its ends, and its end is counted from the nearest of the suitable
// servers, not of all.
func TestLatencyWindow(t *testing.T) {
	td := membersAt(time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 25*time.Millisecond+1)
	suitable := appendSuitable(nil, td, &Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
	if got := names(inWindow(suitable, 15*time.Millisecond), descName); !slices.Equal(got, []string{"b:1", "c:1"}) {
		t.Errorf("in the window: %v", got)
	}
}

// The client's selector is asked for every operation, those that only one server suits included,
// and before the window is applied. If it accepts none, the operation waits.
func TestSelectorComesBeforeWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		accepted := ""
		topo := topologyOf(t, membersAt(time.Millisecond, time.Second), Config{
			SelectionTimeout: time.Second, LocalThreshold: DefaultLocalThreshold,
			Selector: func(servers []*event.ServerDescription) []*event.ServerDescription {
				asked = names(servers, descName)
				return slices.DeleteFunc(servers, func(d *event.ServerDescription) bool { return d.Addr != accepted })
			},
		})
		for _, tt := range []struct {
			sel      *Selection
			accepted string
			asked    []string
		}{
			{write(), "a:1", []string{"a:1"}},
			{write(), "b:1", []string{"a:1"}},
			{&Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest}}, "b:1", []string{"a:1", "b:1"}},
			{&Selection{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}, Deprioritized: []string{"b:1"}}, "b:1", []string{"b:1"}},
		} {
			accepted = tt.accepted
			s, _, err := topo.Select(t.Context(), tt.sel)
			if !slices.Equal(asked, tt.asked) {
				t.Errorf("%v: asked about %v, want %v", tt.sel, asked, tt.asked)
			}
			if suits := slices.Contains(tt.asked, tt.accepted); suits != (err == nil) || suits && s.Addr() != tt.accepted {
				t.Errorf("%v: selected %v, %v", tt.sel, s, err)
			}
		}
	})
}

// The staleness that is allowed counts from the heartbeat interval on, and from 90 seconds.
func TestMaxStalenessLimits(t *testing.T) {
	for _, tt := range []struct {
		heartbeat, staleness time.Duration
		ok                   bool
	}{
		{10 * time.Second, 90 * time.Second, true},
		{10 * time.Second, 89 * time.Second, false},
		{80 * time.Second, 90 * time.Second, true},
		{81 * time.Second, 90 * time.Second, false},
		{2 * time.Minute, 130 * time.Second, true},
		{2 * time.Minute, 129 * time.Second, false},
	} {
		rp := &consistency.ReadPreference{Mode: consistency.Nearest, MaxStaleness: tt.staleness}
		if err := validateFor(rp, event.ReplicaSetWithPrimary, tt.heartbeat); (err == nil) != tt.ok {
			t.Errorf("maxStaleness %v with heartbeats every %v: %v", tt.staleness, tt.heartbeat, err)
		}
		if err := validateFor(rp, event.Sharded, tt.heartbeat); err != nil {
			t.Errorf("a mongos judges by itself: %v", err)
		}
	}
}

// How stale a secondary is does not depend on which servers an operation should avoid: the estimate
// is made against the primary, or the secondary with the latest write, though these are excluded.
func TestStalenessAgainstExcluded(t *testing.T) {
	now := time.Now()
	server := func(addr string, kind event.ServerKind, behind time.Duration) *event.ServerDescription {
		return &event.ServerDescription{Addr: addr, Kind: kind, SetName: "rs", MaxWireVersion: 25, LastUpdate: now,
			LastWriteDate: now.Add(-behind), HeartbeatInterval: 10 * time.Second}
	}
	const stale, fresh = 3 * time.Minute, time.Minute
	for _, best := range []event.ServerKind{event.RSPrimary, event.RSSecondary} {
		kind := event.ReplicaSetNoPrimary
		if best == event.RSPrimary {
			kind = event.ReplicaSetWithPrimary
		}
		td := &event.TopologyDescription{Kind: kind, SetName: "rs", Servers: []*event.ServerDescription{
			server("best:1", best, 0), server("fresh:1", event.RSSecondary, fresh), server("stale:1", event.RSSecondary, stale),
		}}
		for _, tt := range []struct {
			excluded []string
			want     []string
		}{
			{nil, []string{"best:1", "fresh:1"}},
			{[]string{"best:1"}, []string{"fresh:1"}},
			{[]string{"fresh:1"}, []string{"best:1"}},
			{[]string{"best:1", "fresh:1"}, []string{"best:1", "fresh:1"}}, // rather those than the stale one
			{[]string{"stale:1"}, []string{"best:1", "fresh:1"}},
		} {
			var got []string
			for _, d := range appendSuitable(nil, td, &Selection{Deprioritized: tt.excluded,
				ReadPreference: &consistency.ReadPreference{Mode: consistency.Nearest, MaxStaleness: 2 * time.Minute}}) {
				got = append(got, d.Addr)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v without %v: suitable are %v, want %v", best, tt.excluded, got, tt.want)
			}
		}
	}
}

// A selection that waits says so once, however often the topology changes; and that it failed
// without what stands in the message anyway.
func TestSelectionLogsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &logRecorder{}
		log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
		td := membersAt(time.Millisecond, time.Millisecond)
		td.Kind, td.Servers = event.ReplicaSetNoPrimary, td.Servers[1:]
		topo := topologyOf(t, td, Config{Log: log, SelectionTimeout: 5 * time.Second})
		for i := range 3 {
			time.AfterFunc(time.Duration(i)*time.Second, func() {
				topo.mu.Lock()
				defer topo.mu.Unlock()
				topo.publish(td)
			})
		}
		if _, _, err := topo.Select(t.Context(), &Selection{Write: true, Operation: "insert"}); err == nil {
			t.Fatal("no error")
		}
		var seen []string
		for _, m := range recorder.messages {
			if m["component"] == "serverSelection" {
				seen = append(seen, m["message"].(string))
			}
			if m["message"] == "Waiting for suitable server to become available" && m["remainingTimeMS"] != int64(5000) {
				t.Errorf("remaining time %v", m["remainingTimeMS"])
			}
			failure, ok := m["failure"].(string)
			if strings.Contains(failure, "b:1") {
				t.Errorf("the failure tells of the topology: %s", failure)
			}
			if failed := m["message"] == "Server selection failed"; failed != ok || failed && !strings.Contains(failure, "no server available") {
				t.Errorf("%v: the failure is %q", m["message"], failure)
			}
		}
		want := []string{"Server selection started", "Waiting for suitable server to become available", "Server selection failed"}
		if !slices.Equal(seen, want) {
			t.Errorf("messages %q", seen)
		}
	})
}

// Whoever asks for servers that are not there is told, when the last one is gone.
func TestNoServerIsLeft(t *testing.T) {
	recorder := &logRecorder{}
	log, _ := logging.New(logging.Options{Handler: recorder}, func(string) string { return "" })
	td := &event.TopologyDescription{Kind: event.ReplicaSetNoPrimary, SetName: "rs", Servers: []*event.ServerDescription{{Addr: "a:1"}}}
	topo := topologyOf(t, td, Config{Log: log})
	topo.phase = connected
	topo.Server("a:1").checked(&event.ServerDescription{Addr: "a:1", Kind: event.Standalone})
	topo.events.Wait()
	last := recorder.messages[len(recorder.messages)-1]
	if text, _ := last["message"].(string); !strings.HasPrefix(text, "No server is left") || last["topologyId"] != topo.id.Hex() {
		t.Errorf("last message %v", last)
	}
}

// Whether a topology can be written to and read from, and by which read preference, nil being the
// primary (specification: SDAM Logging and Monitoring, "Determining If A Topology Has
// Readable/Writable Servers").
func TestReadableAndWritableServers(t *testing.T) {
	of := func(kind event.TopologyKind, servers ...event.ServerKind) *event.TopologyDescription {
		d := &event.TopologyDescription{Kind: kind}
		for i, k := range servers {
			d.Servers = append(d.Servers, &event.ServerDescription{Addr: string(rune('a'+i)) + ":1", Kind: k, MaxWireVersion: 25})
		}
		return d
	}
	modes := []*consistency.ReadPreference{nil, {}, {Mode: consistency.Primary}, {Mode: consistency.PrimaryPreferred}, {Mode: consistency.Secondary},
		{Mode: consistency.SecondaryPreferred}, {Mode: consistency.Nearest}}
	for name, tc := range map[string]struct {
		d        *event.TopologyDescription
		writable bool
		readable string // by the modes above: y or n
	}{
		"unknown":          {of(event.UnknownTopology, event.UnknownServer), false, "nnnnnnn"},
		"standalone":       {of(event.Single, event.Standalone), true, "yyyyyyy"},
		"standalone, gone": {of(event.Single, event.UnknownServer), false, "nnnnnnn"},
		"primary":          {of(event.ReplicaSetWithPrimary, event.RSPrimary), true, "yyyynyy"},
		"secondary":        {of(event.ReplicaSetNoPrimary, event.RSSecondary, event.UnknownServer), false, "nnnyyyy"},
		"both":             {of(event.ReplicaSetWithPrimary, event.RSPrimary, event.RSSecondary), true, "yyyyyyy"},
		"neither":          {of(event.ReplicaSetNoPrimary, event.RSArbiter, event.RSOther), false, "nnnnnnn"},
		"mongoses":         {of(event.Sharded, event.UnknownServer, event.Mongos), true, "yyyyyyy"},
		"no mongos":        {of(event.Sharded, event.UnknownServer), false, "nnnnnnn"},
		"load balancer":    {of(event.LoadBalanced, event.LoadBalancer), true, "yyyyyyy"},
	} {
		if got := tc.d.HasWritableServer(); got != tc.writable {
			t.Errorf("%s: writable: %v", name, got)
		}
		for i, rp := range modes {
			if got := Readable(tc.d, rp); got != (tc.readable[i] == 'y') {
				t.Errorf("%s, %v: readable: %v", name, rp, got)
			}
		}
	}
}
