package prose

import (
	"context"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/event"
	"allium/mongotest"
)

// Prose tests 1 to 4 of Connection Monitoring and Pooling: all options are the client's, the same
// for all of its pools, can be given in a connection string, and the events can be listened to.
func TestProse1To4Options(t *testing.T) {
	want := event.PoolOptions{
		MaxPoolSize: 7, MinPoolSize: 2, MaxConnecting: 3, MaxIdleTime: time.Minute, WaitQueueTimeout: 5 * time.Second,
	}
	const options = "&maxPoolSize=7&minPoolSize=2&maxConnecting=3&maxIdleTimeMS=60000&waitQueueTimeoutMS=5000"
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	var mu sync.Mutex
	got := map[string]event.PoolOptions{}
	client, err := allium.Open(d.URI()+options, allium.ClientOptions{PoolMonitor: &event.PoolMonitor{
		PoolCreated: func(e *event.PoolCreated) {
			mu.Lock()
			got[e.Addr] = e.Options
			mu.Unlock()
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(got) != 3 {
		t.Errorf("%d pools", len(got))
	}
	for addr, o := range got {
		if o != want {
			t.Errorf("pool of %s: %+v", addr, o)
		}
	}
}
