package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// Servers from 5.0 on make no geoHaystack indexes.
func TestHaystackByVersion(t *testing.T) {
	for version, want := range map[string]int64{"4.4": 0, "5.0": 67, "8.0": 67} {
		d := mongotest.Start(t, mongotest.Version(version), mongotest.InMemory())
		reply := command(t, dialNode(t, d, d.Primary()), extJSON(t, `{"createIndexes": "c", "indexes": [{"key": {"at": "geoHaystack", "n": 1}, "name": "h", "bucketSize": 10}], "$db": "t"}`))
		if code := errorCode(reply); int64(code) != want {
			t.Errorf("%s: %v, want the code %d", version, reply, want)
		}
	}
}
