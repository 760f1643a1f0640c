package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// TestAutoCompact: a node keeps what it was told until it is told to stop.
func TestAutoCompact(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(2), mongotest.Version("8.2"))
	c := dialNode(t, d, d.Primary())
	for _, tt := range []struct{ cmd, want string }{
		{`{"autoCompact": false}`, "ok"},
		{`{"autoCompact": true, "freeSpaceTargetMB": 30}`, "ok"},
		{`{"autoCompact": true, "freeSpaceTargetMB": 30.9}`, "ok"},
		{`{"autoCompact": true}`, "23: Cannot reconfigure background compaction while it is running: disable it first"},
		{`{"autoCompact": true, "freeSpaceTargetMB": 30, "runOnce": true}`,
			"23: Cannot reconfigure background compaction while it is running: disable it first"},
		{`{"autoCompact": false, "runOnce": true}`, "ok"},
		{`{"autoCompact": true, "runOnce": true}`, "ok"}, // and is over
		{`{"autoCompact": true, "freeSpaceTargetMB": {"$numberDecimal": "1.5"}}`, "ok"},
		{`{"autoCompact": true, "freeSpaceTargetMB": 2}`, "ok"}, // that is what 1.5 was rounded to
		{`{"autoCompact": false, "freeSpaceTargetMB": 0}`, "2: BSON field 'freeSpaceTargetMB' value must be >= 1, actual value '0'"},
		{`{"autoCompact": false, "freeSpaceTargetMB": {"$numberLong": "8796093022208"}}`, "ok"},
		{`{"autoCompact": true, "freeSpaceTargetMB": {"$numberLong": "8796093022207"}}`, "ok"},
		{`{"autoCompact": false}`, "ok"},
		{`{"autoCompact": true, "freeSpaceTargetMB": {"$numberLong": "8796093022208"}}`,
			"2: autoCompact.freeSpaceTargetMB is too large: 8796093022208"},
		{`{"autoCompact": 1}`, "14: BSON field 'autoCompact.autoCompact' is the wrong type 'int', expected type 'bool'"},
		{`{"autoCompact": null}`, "40414: BSON field 'autoCompact.autoCompact' is missing but a required field"},
		{`{"autoCompact": true, "runOnce": 1}`, "14: BSON field 'autoCompact.runOnce' is the wrong type 'int', expected type 'bool'"},
		{`{"autoCompact": true, "x": 1}`, "40415: BSON field 'autoCompact.x' is an unknown field."},
		{`{"autoCompact": true}`, "ok"},
	} {
		if got := errorOf(askText(t, c, "admin", tt.cmd)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.cmd, got, tt.want)
		}
	}
	other := dialNode(t, d, d.Secondaries()[0])
	if got := errorOf(askText(t, other, "admin", `{"autoCompact": true, "freeSpaceTargetMB": 7}`)); got != "ok" {
		t.Errorf("on a node that was told nothing: %s", got)
	}
	for _, opts := range [][]mongotest.Option{{mongotest.Version("7.0")}, {mongotest.Sharded(1, 1)}} {
		d := mongotest.Start(t, append(opts, mongotest.InMemory())...)
		if r := askText(t, dialHost(t, d), "admin", `{"autoCompact": true}`); errorOf(r)[:3] != "59:" {
			t.Errorf("%v", r)
		}
	}
}
