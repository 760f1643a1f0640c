package mongotest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/event"
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
