package prose

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
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
				if v := rp.Lookup("maxStalenessSeconds"); !v.IsZero() && v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 {
					t.Errorf("maxStalenessSeconds is sent as a %s", v.Type)
				}
				json, _ := bson.AppendExtJSON(nil, rp, false)
				sent = string(json)
			}
		}
		return nil, nil
	})
	client := rig.Open(t, d.URI()+options, allium.ClientOptions{Dialer: d})
	if _, err := client.Database("db").Collection("c").FindOne(t.Context(), bson.D{}); !errors.Is(err, mongoerr.ErrNoDocuments) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return sent
}

// Max Staleness, prose tests "Connection string" (1 to 3) and "Direct connection to mongos" (7).
func TestProseMaxStalenessConnectionString(t *testing.T) {
	for _, tt := range []struct {
		name, options, sent string
	}{
		{"1 and 7: basic", "?readPreference=secondary&maxStalenessSeconds=120", `{"mode":"secondary","maxStalenessSeconds":120}`},
		{"3: -1 is no bound", "?readPreference=secondary&maxStalenessSeconds=-1", `{"mode":"secondary"}`},
		{"3: -1 with primary", "?readPreference=primary&maxStalenessSeconds=-1", ""},
		{"7: without a bound", "?readPreference=secondary", `{"mode":"secondary"}`},
		{"7: direct", "?directConnection=true&readPreference=secondary&maxStalenessSeconds=120", `{"mode":"secondary","maxStalenessSeconds":120}`},
		{"7: direct, without a bound", "?directConnection=true&readPreference=secondary", `{"mode":"secondary"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sentReadPreference(t, tt.options); got != tt.sent {
				t.Errorf("sent %s, want %s", got, tt.sent)
			}
		})
	}
	for _, mode := range []string{"?", "?readPreference=primary&"} {
		for _, seconds := range []string{"0", "1", "89", "120"} {
			t.Run("2: "+mode+seconds, func(t *testing.T) {
				client, err := allium.Open("mongodb://host.invalid/" + mode + "maxStalenessSeconds=" + seconds)
				if err == nil {
					client.Close(t.Context())
					t.Error("accepted")
				}
			})
		}
	}
}

// Max Staleness, prose test "No validation" (4): Open takes a bound that is too small. With a
// replica set it ends every read, whatever the bound comes with and wherever it was given; nothing
// is read without a bound.
func TestProseMaxStaleness4NoValidation(t *testing.T) {
	for _, seconds := range []int{0, 1, 20, 89} {
		for _, options := range []string{
			"&readPreference=%s&maxStalenessSeconds=%d",
			"&readPreference=%s&maxStalenessSeconds=%d&readPreferenceTags=",
			"&readPreference=%s&maxStalenessSeconds=%d&heartbeatFrequencyMS=500",
		} {
			for _, mode := range []consistency.ReadMode{
				consistency.PrimaryPreferred, consistency.Secondary, consistency.SecondaryPreferred, consistency.Nearest,
			} {
				tooSmall(t, fmt.Sprintf(options, mode, seconds), nil)
			}
		}
	}
	tooSmall(t, "&heartbeatFrequencyMS=85000&readPreference=nearest&maxStalenessSeconds=94", nil)
	tooSmall(t, "", &consistency.ReadPreference{Mode: consistency.Nearest, MaxStaleness: 89 * time.Second})
	tooSmall(t, "", &consistency.ReadPreference{Mode: consistency.Nearest, MaxStaleness: 1})
}

// tooSmall runs reads with a bound that no replica set allows.
func tooSmall(t *testing.T, options string, rp *consistency.ReadPreference) {
	t.Run(fmt.Sprint(options, rp), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(2), mongotest.InMemory())
			defer d.Stop()
			var reads atomic.Int64
			d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "find" || c.Name == "aggregate" {
					reads.Add(1)
				}
				return nil, nil
			})
			client, err := allium.Open(d.URI()+options, allium.ClientOptions{Dialer: d, ReadPreference: rp})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close(t.Context())
			coll := client.Database("db").Collection("c")
			start := time.Now()
			_, found := coll.FindOne(t.Context(), bson.D{})
			_, counted := coll.CountDocuments(t.Context(), bson.D{})
			for _, err := range []error{found, counted} {
				if err == nil || !strings.Contains(err.Error(), "maxStalenessSeconds is ") || !strings.Contains(err.Error(), "must be at least 9") {
					t.Errorf("%v, want what is wrong with the bound", err)
				}
			}
			if waited := time.Since(start); waited > time.Second {
				t.Errorf("the errors took %v", waited)
			}
			if n := reads.Load(); n > 0 {
				t.Errorf("%d reads were sent", n)
			}
			if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Errorf("a write: %v", err)
			}
		})
	})
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
			if s := client.Topology().Servers[0]; s.Kind != event.Standalone {
				t.Errorf("%s: the server is a %s, want a standalone", version, s.Kind)
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

// Max Staleness, driver test "Parse lastWriteDate" (6), with servers that are polled and that
// stream, as a set and by a direct connection to its member.
func TestProseMaxStaleness6LastWriteDate(t *testing.T) {
	for _, version := range []string{"4.2", "8.0"} {
		for _, options := range []string{"&heartbeatFrequencyMS=500", "&heartbeatFrequencyMS=500&directConnection=true"} {
			t.Run(version+options, func(t *testing.T) { lastWriteDates(t, version, options) })
		}
	}
}

func lastWriteDates(t *testing.T, version, options string) {
	synctest.Test(t, func(t *testing.T) {
		d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.Version(version), mongotest.InMemory())
		defer d.Stop()
		client := rig.Open(t, d.URI()+options, allium.ClientOptions{Dialer: d})
		coll := client.Database("db").Collection("c")
		insert := func() time.Time {
			t.Helper()
			if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			s := client.Topology().Servers[0]
			if s.Kind != event.RSPrimary {
				t.Errorf("the server is a %s, want a member of a replica set", s.Kind)
			}
			return s.LastWriteDate
		}
		first := insert()
		time.Sleep(time.Second)
		second := insert()
		if first.IsZero() || !second.After(first) || second.Sub(first) >= 10*time.Second {
			t.Errorf("last writes %v and %v", first, second)
		}
		if now := time.Now(); second.After(now) || now.Sub(second) > 3*time.Second {
			t.Errorf("last write %v, and it is %v", second, now)
		}
		client.Close(t.Context())
	})
}
