package prose

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// Server Discovery and Monitoring, prose test "Connection Pool Backpressure", without TLS, where
// the servers hang up before hello, and with TLS, where they do before the TLS handshake.
func TestProseSDAMPoolBackpressure(t *testing.T) {
	for name, opts := range map[string][]mongotest.Option{
		"without TLS": {mongotest.Standalone()}, "with TLS": {mongotest.Standalone(), mongotest.TLS()},
		"sharded": {mongotest.Sharded(1, 1)}, "sharded with TLS": {mongotest.Sharded(1, 1), mongotest.TLS()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network, where 100 connections come at one moment", append(opts, mongotest.InMemory())...)
				setup := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, TLS: d.TLSConfig()})
				set := func(name string, value any) {
					t.Helper()
					if _, err := setup.Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: name, Value: value}}); err != nil {
						t.Fatal(err)
					}
				}
				var failed, cleared, made atomic.Int64
				client := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, TLS: d.TLSConfig(), MaxConnecting: new(100), PoolMonitor: &event.PoolMonitor{
					ConnectionCheckOutFailed: func(*event.ConnectionCheckOutFailed) { failed.Add(1) },
					ConnectionReady:          func(*event.ConnectionReady) { made.Add(1) },
					PoolCleared:              func(*event.PoolCleared) { cleared.Add(1) },
				}})
				set("ingressConnectionEstablishmentRateLimiterEnabled", true)
				set("ingressConnectionEstablishmentRatePerSec", 20)
				set("ingressConnectionEstablishmentBurstCapacitySecs", 1)
				set("ingressConnectionEstablishmentMaxQueueDepth", 1)
				coll := client.Database("test").Collection("test")
				if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						// Its error does not matter.
						_, _ = coll.FindOne(t.Context(), bson.D{{Key: "$where", Value: "function() { sleep(2000); return true; }"}})
					})
				}
				wg.Wait()
				if failed.Load() < 10 || cleared.Load() != 0 || made.Load() < 5 {
					t.Errorf("%d checkouts failed, %d connections were made, the pool was cleared %d times", failed.Load(), made.Load(), cleared.Load())
				}
				time.Sleep(time.Second)
				set("ingressConnectionEstablishmentRateLimiterEnabled", false)
			})
		})
	}
}

// Server Monitoring, "Streaming protocol Tests" 1, on each topology, streamed and polled.
func TestProseStreamingHeartbeatFrequency(t *testing.T) {
	for name, kind := range monitored {
		for _, mode := range []allium.ServerMonitoringMode{allium.MonitoringStream, allium.MonitoringPoll} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := testdeploy.Mock(t, "an in-memory network", kind, mongotest.InMemory())
					var replies atomic.Int64
					rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, HeartbeatInterval: new(500 * time.Millisecond), ServerMonitoringMode: mode,
						ServerMonitor: &event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { replies.Add(1) }}})
					synctest.Wait()
					before := replies.Load()
					time.Sleep(10 * time.Second)
					synctest.Wait()
					if n := replies.Load() - before; n < 18 || n > 22 {
						t.Errorf("%d replies in ten seconds", n)
					}
				})
			})
		}
	}
}

var monitored = map[string]mongotest.Option{
	"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1),
}

// Server Monitoring, "RTT Tests" 1. Time passes for hello alone, a millisecond before the fail
// point of the test blocks it.
func TestProseRTT(t *testing.T) {
	for name, kind := range monitored {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", kind, mongotest.InMemory())
				block := func(time time.Duration) {
					d.ClearFailures()
					d.FailCommand(mongotest.Fail{Commands: []string{"hello", "isMaster"}, Block: time, AppName: "streamingRttTest"})
				}
				block(time.Millisecond)
				var without atomic.Int64
				client := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, HeartbeatInterval: new(500 * time.Millisecond), AppName: "streamingRttTest",
					ServerMonitor: &event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
						if e.NewDescription.Kind != event.UnknownServer && e.NewDescription.AverageRTT == 0 {
							without.Add(1)
						}
					}}})
				if _, err := client.Database("d").Collection("c").CountDocuments(t.Context(), bson.D{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				if n := without.Load(); n > 0 {
					t.Errorf("%d descriptions have no round trip time", n)
				}
				block(500 * time.Millisecond)
				time.Sleep(10 * time.Second)
				if rtt := client.Topology().Servers[0].AverageRTT; rtt < 250*time.Millisecond {
					t.Errorf("the round trip time is %v", rtt)
				}
			})
		})
	}
}

// Server Monitoring, "Heartbeat Tests" 1.
func TestProseHeartbeatStartedBeforeSocket(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	add := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			add("client connected")
			if _, err := c.Read(make([]byte, 1)); err == nil {
				add("client hello received")
			}
			c.Close()
		}
	})
	defer server.Wait()
	defer l.Close()
	client := rig.Open(t, "mongodb://"+l.Addr().String(), allium.ClientOptions{ServerSelectionTimeout: new(500 * time.Millisecond),
		ServerMonitor: &event.ServerMonitor{
			ServerHeartbeatStarted: func(*event.ServerHeartbeatStarted) { add("serverHeartbeatStartedEvent") },
			ServerHeartbeatFailed:  func(*event.ServerHeartbeatFailed) { add("serverHeartbeatFailedEvent") },
		}})
	if err := client.Ping(context.Background()); err == nil {
		t.Error("no error")
	}
	want := []string{"serverHeartbeatStartedEvent", "client connected", "client hello received", "serverHeartbeatFailedEvent"}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 4 || !slices.Equal(seen[:4], want) {
		t.Errorf("events %v", seen)
	}
}
