package allium_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// sentReadPreference runs a findOne on a mongos and returns the $readPreference of its command as
// JSON, "" if there is none.
func sentReadPreference(t *testing.T, options string) string {
	t.Helper()
	d := testdeploy.Mock(t, "an in-memory network", mongotest.Sharded(1, 1), mongotest.InMemory())
	var mu sync.Mutex
	var sent string
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "find" {
			mu.Lock()
			defer mu.Unlock()
			if rp, ok := c.Body.Lookup("$readPreference").Document(); ok {
				json, _ := bson.AppendExtJSON(nil, rp, false)
				sent = string(json)
			}
		}
		return nil, nil
	})
	client := open(t, d.URI()+options, allium.ClientOptions{Dialer: d})
	if _, err := client.Database("db").Collection("c").FindOne(t.Context(), bson.D{}); !errors.Is(err, mongoerr.ErrNoDocuments) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return sent
}

// Max Staleness, prose tests "Connection string" (1 to 4) and "Direct connection to mongos" (7).
func TestProseMaxStalenessConnectionString(t *testing.T) {
	for _, tt := range []struct {
		name, options, sent string
	}{
		{"1 and 7: basic", "?readPreference=secondary&maxStalenessSeconds=120", `{"mode":"secondary","maxStalenessSeconds":120}`},
		{"3: -1 is no bound", "?readPreference=secondary&maxStalenessSeconds=-1", `{"mode":"secondary"}`},
		{"3: -1 with primary", "?readPreference=primary&maxStalenessSeconds=-1", ""},
		{"4: too small is no error", "?readPreference=secondary&maxStalenessSeconds=1", `{"mode":"secondary"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sentReadPreference(t, tt.options); got != tt.sent {
				t.Errorf("sent %s, want %s", got, tt.sent)
			}
		})
	}
	for _, options := range []string{"?maxStalenessSeconds=120", "?readPreference=primary&maxStalenessSeconds=120"} {
		t.Run("2: "+options, func(t *testing.T) {
			client, err := allium.Open("mongodb://host.invalid/" + options)
			if err == nil {
				client.Close(t.Context())
				t.Error("accepted")
			}
		})
	}
}

// Max Staleness, prose test "heartbeatFrequencyMS is configurable" (5).
func TestProseMaxStaleness5HeartbeatFrequency(t *testing.T) {
	for _, version := range []string{"4.2", "8.0"} { // polled, and streaming
		synctest.Test(t, func(t *testing.T) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.Version(version), mongotest.InMemory())
			var checks atomic.Int64
			client, err := allium.Open(d.URI()+"?heartbeatFrequencyMS=500", allium.ClientOptions{Dialer: d, ServerMonitor: &event.ServerMonitor{
				ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { checks.Add(1) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := checks.Load()
			time.Sleep(10 * time.Second)
			if n := checks.Load() - before; n < 18 || n > 22 {
				t.Errorf("%s: %d checks in ten seconds", version, n)
			}
			client.Close(t.Context())
			d.Stop()
		})
	}
}
