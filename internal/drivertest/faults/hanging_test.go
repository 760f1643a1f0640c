package faults

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/owncode"
	"allium/mongotest"
)

// A listener or log handler that does not return, when it is told what pools, servers and the
// topology are doing, holds up nothing but what comes behind it: operations go on, also through an
// election, Stats answers, and Close returns by its context. When it returns after all, everything
// ends.
func TestHangingListeners(t *testing.T) {
	type options = *allium.ClientOptions
	for name, set := range map[string]func(o options, hang func()){
		"PoolCreated": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCreated: func(*event.PoolCreated) { hang() }}
		},
		"PoolReady": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolReady: func(*event.PoolReady) { hang() }}
		},
		"PoolCleared": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{PoolCleared: func(*event.PoolCleared) { hang() }}
		},
		"ConnectionCreated": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionCreated: func(*event.ConnectionCreated) { hang() }}
		},
		"ConnectionReady": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionReady: func(*event.ConnectionReady) { hang() }}
		},
		"ConnectionClosed": func(o options, hang func()) {
			o.PoolMonitor = &event.PoolMonitor{ConnectionClosed: func(*event.ConnectionClosed) { hang() }}
		},
		"ServerHeartbeatSucceeded": func(o options, hang func()) {
			o.ServerMonitor = &event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { hang() }}
		},
		"TopologyDescriptionChanged": func(o options, hang func()) {
			o.ServerMonitor = &event.ServerMonitor{TopologyDescriptionChanged: func(*event.TopologyDescriptionChanged) { hang() }}
		},
		"log handler of discovery": func(o options, hang func()) {
			o.Logger, o.LogLevels = slog.New(owncode.Handler{Code: hang}), only(allium.LogTopology)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(3))
				var hangs atomic.Bool
				returns := make(chan struct{})
				release := sync.OnceFunc(func() { close(returns) })
				defer release() // also if the test fails: else the client's end would wait for ever
				opts := allium.ClientOptions{Dialer: d, HeartbeatInterval: new(time.Second)}
				set(&opts, func() {
					hangs.Store(true)
					<-returns
				})
				client := rig.Open(t, d.URI(), opts)
				coll := client.Database("db").Collection("c")
				insert := func(when string) {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
				}
				insert("at first")
				for range 3 {
					first := d.Primary()
					first.Kill()
					insert("after an election")
					if err := first.Restart(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					insert("a minute later")
				}
				if !hangs.Load() {
					t.Fatal("the code was not called")
				}
				if s := client.Stats(); len(s.Pools) != 3 || s.Operations != 0 {
					t.Errorf("%d pools, %d operations", len(s.Pools), s.Operations)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := client.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
					t.Errorf("Close after %v: %v", time.Since(start), err)
				}
				release() // the bubble waits for what is left
			})
		})
	}
}

// What a listener misses that does not return is counted, and it hears of what happens after it has
// returned.
func TestDroppedEvents(t *testing.T) {
	t.Setenv("MONGODB_LOG_ALL", "off") // the log's messages would take a part of the places
	synctest.Test(t, func(t *testing.T) {
		d, _, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(3))
		var heard atomic.Int64
		returns := make(chan struct{})
		client := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, HeartbeatInterval: new(500 * time.Millisecond), ServerMonitoringMode: allium.MonitoringPoll,
			ServerMonitor: &event.ServerMonitor{
				ServerHeartbeatStarted:   func(*event.ServerHeartbeatStarted) { heard.Add(1); <-returns },
				ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { heard.Add(1) },
			}})
		for client.Stats().DroppedEvents < 100 {
			time.Sleep(time.Minute)
		}
		if n := heard.Load(); n != 1 {
			t.Errorf("%d events were delivered behind one that hangs", n)
		}
		close(returns)
		synctest.Wait()
		before, dropped := heard.Load(), client.Stats().DroppedEvents
		if before < 10_000 {
			t.Errorf("%d events were delivered", before)
		}
		time.Sleep(time.Minute)
		if heard.Load() == before || client.Stats().DroppedEvents != dropped {
			t.Errorf("%d events more, %d more were dropped", heard.Load()-before, client.Stats().DroppedEvents-dropped)
		}
	})
}
