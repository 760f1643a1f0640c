package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/hello"
	"allium/internal/pool"
)

func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a allowance
		var waits []time.Duration
		for range 7 {
			waits = append(waits, a.take(3)/time.Millisecond)
		}
		if want := []time.Duration{0, 0, 0, 500, 500, 500, 1000}; !slices.Equal(waits, want) {
			t.Errorf("waits %v ms, want %v", waits, want)
		}
		time.Sleep(2 * time.Second)
		if wait := a.take(3); wait != 0 {
			t.Errorf("wait %v after a pause", wait)
		}
	})
}

// Members that all name others make the topology grow while there is no primary, but not without
// end.
func TestTopologyHasABound(t *testing.T) {
	name := func(n int) string { return fmt.Sprintf("s%d:27017", n) }
	grow := func(m machine, td *event.TopologyDescription) *event.TopologyDescription {
		for i := 0; i < len(td.Servers); i++ {
			sd := &event.ServerDescription{Addr: td.Servers[i].Addr, Kind: event.RSSecondary, SetName: "rs"}
			for j := range hello.MaxMembers {
				sd.Hosts = append(sd.Hosts, name(i*hello.MaxMembers+j))
			}
			td, _ = m.next(td, sd)
		}
		return td
	}
	if td := grow(machine{seeds: 1}, initial(event.UnknownTopology, "", []string{name(0)})); len(td.Servers) != maxMembers {
		t.Errorf("%d servers, want %d", len(td.Servers), maxMembers)
	}
	// What the user names is not cut.
	var seeds []string
	for n := range 2 * maxMembers {
		seeds = append(seeds, name(n))
	}
	if td := grow(machine{seeds: len(seeds)}, initial(event.UnknownTopology, "", seeds)); len(td.Servers) != len(seeds) {
		t.Errorf("%d servers, want %d", len(td.Servers), len(seeds))
	}
	// Nor are the mongoses that DNS names.
	if td := withHosts(initial(event.Sharded, "", seeds[:1]), seeds, 0); len(td.Servers) != len(seeds) {
		t.Errorf("%d servers, want %d", len(td.Servers), len(seeds))
	}
}

// What a description says of all servers follows when DNS names others: a server that no version of
// the protocol is shared with, or that bounds sessions more, does no longer once it has gone.
func TestHostsThatLeaveDoNotCount(t *testing.T) {
	minutes := func(n int64) *int64 { return &n }
	td := initial(event.Sharded, "", []string{"a:1", "b:1", "c:1"})
	for i, s := range []event.ServerDescription{
		{Addr: "a:1", Kind: event.Mongos, MaxWireVersion: hello.MaxWireVersion, SessionTimeoutMinutes: minutes(30)},
		{Addr: "b:1", Kind: event.Mongos, MaxWireVersion: hello.MaxWireVersion, SessionTimeoutMinutes: minutes(10)},
		{Addr: "c:1", Kind: event.Mongos, MinWireVersion: 1, MaxWireVersion: 2, SessionTimeoutMinutes: minutes(20)},
	} {
		td.Servers[i] = &s
	}
	for _, tc := range []struct {
		hosts        []string
		timeout      int64
		incompatible bool
	}{
		{[]string{"a:1", "b:1", "c:1"}, 10, true}, {[]string{"a:1", "c:1"}, 20, true}, {[]string{"a:1", "b:1"}, 10, false}, {[]string{"a:1", "d:1"}, 30, false},
	} {
		got := withHosts(td, tc.hosts, 0)
		if got.SessionTimeoutMinutes == nil || *got.SessionTimeoutMinutes != tc.timeout || (got.CompatibilityErr != nil) != tc.incompatible {
			t.Errorf("%v: %+v", tc.hosts, got)
		}
	}
}

// A new primary whose set the old one is no longer in: the old one is to be checked again, and is
// not there any more.
func TestNewPrimaryLeavesOutTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(fakeserver.Network)
		newNode(network, "a:27017", member(event.RSPrimary, "a:27017", "a:27017", "b:27017"))
		b := newNode(network, "b:27017", member(event.RSSecondary, "b:27017", "a:27017", "b:27017"))
		topo := connect(t, network, Config{}, "a:27017", "b:27017")
		mustSelect(t, topo, write())
		synctest.Wait()
		b.say(member(event.RSPrimary, "b:27017", "b:27017"))
		synctest.Wait()
		time.Sleep(time.Second)
		if s := mustSelect(t, topo, write()); s.Addr() != "b:27017" || len(topo.Description().Servers) != 1 {
			t.Errorf("primary %s in %v", s.Addr(), topo.Description())
		}
	})
}

// Close does not wait for somebody who holds the topology's lock, and the topology ends once the
// lock is free.
func TestCloseBehindABusyListener(t *testing.T) {
	network := new(fakeserver.Network) // no bubble: time stands still in one while a lock is waited for
	newNode(network, "a:27017", nil)
	listening, busy := make(chan struct{}), make(chan struct{})
	topo, err := New(&Config{Seeds: []string{"a:27017"}, Pool: pool.Config{Conn: &conn.Config{Dialer: network}}, Monitor: &event.ServerMonitor{
		ServerDescriptionChanged: func(*event.ServerDescriptionChanged) {
			close(listening)
			<-busy
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	<-listening
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := topo.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	close(busy)
	if err := topo.Close(t.Context()); err != nil {
		t.Error(err)
	}
	network.Wait()
}
