package wire

import (
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// TestAppendDriverInfo checks that new connections tell it, and that the first ones did not.
func TestAppendDriverInfo(t *testing.T) {
	d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory())
	var mu sync.Mutex
	var names []string
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if name, ok := c.Body.Lookup("client", "driver", "name").StringValue(); ok {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, name)
		}
		return nil, nil
	})
	client := rig.Open(t, d.URI()+"?serverMonitoringMode=poll&maxIdleTimeMS=1", allium.ClientOptions{Dialer: d, DriverInfo: &allium.DriverInfo{Name: "odm"}})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := func() string {
		mu.Lock()
		defer mu.Unlock()
		return names[len(names)-1]
	}
	if last() != "allium|odm" {
		t.Errorf("driver name is %q", last())
	}
	if err := client.AppendDriverInfo(allium.DriverInfo{Name: "framework", Version: "2.0"}); err != nil {
		t.Fatal(err)
	}
	if err := client.AppendDriverInfo(allium.DriverInfo{Name: "a|b"}); err == nil {
		t.Error("a name with the delimiter was accepted")
	}
	for last() == "allium|odm" { // until the pool replaces its idle connection
		time.Sleep(2 * time.Millisecond)
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if last() != "allium|odm|framework" {
		t.Errorf("driver name is %q", last())
	}
}
