package mongotest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/norace"
	"allium/mongotest"
)

// TestStreamedHello watches a deployment for longer than a streamed hello waits: the second reply
// of a stream must be as good as the first.
func TestStreamedHello(t *testing.T) {
	for name, opt := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(3)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, opt, mongotest.InMemory())
				var mu sync.Mutex
				beats := 0
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, ServerMonitor: &event.ServerMonitor{
					ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { mu.Lock(); beats++; mu.Unlock() },
					ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) {
						if !errors.Is(e.Failure, context.Canceled) { // as those are that Close ends
							t.Errorf("%s: %v", e.Addr, e.Failure)
						}
					},
				}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if err := client.Close(context.Background()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if beats < 5 {
					t.Errorf("%d heartbeats in a minute", beats)
				}
				d.Stop()
			})
		})
	}
}

// A change stream that waits for events does not lose its place, however much is written meanwhile
// that it does not watch.
func TestStreamBesideWrites(t *testing.T) {
	norace.Skip(t, "it writes 144 MB until the log forgets")
	for name, opt := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, opt, mongotest.InMemory())
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				watched, other := client.Database("db").Collection("watched"), client.Database("db").Collection("other")
				stream, err := watched.Watch(t.Context(), []bson.D{}, allium.WatchOptions{MaxAwaitTime: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close(context.Background())
				next := make(chan error, 1)
				go func() {
					if !stream.Next(t.Context()) {
						next <- stream.Err()
						return
					}
					next <- nil
				}()
				synctest.Wait() // the getMore waits
				large := strings.Repeat("x", 12<<20)
				for i := range 12 {
					if _, err := other.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "s", Value: large}}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if _, err := watched.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				if err := <-next; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
