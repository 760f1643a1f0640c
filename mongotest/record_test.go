package mongotest_test

import (
	"os"
	"path/filepath"
	"testing"

	"allium/mongotest"
	"allium/mongotest/internal/golden"
)

const unrecorded = `[
{"name": "a write and a read", "note": "kept", "steps": [
  {"command": {"insert": "c", "documents": [{"_id": {"$numberInt": "1"}}, {"a": {"$numberInt": "2"}}], "$db": "golden"}},
  {"command": {"find": "c", "batchSize": {"$numberInt": "1"}, "$db": "golden"}, "save": {"cur": "cursor.id"}},
  {"command": {"getMore": {"$ref": "cur"}, "collection": "c", "$db": "golden"}},
  {"command": {"insert": "c", "documents": [{"_id": {"$numberInt": "1"}}], "$db": "golden"}},
  {"command": {"count": "c", "$db": "golden"}, "quiet": true}
], "cleanup": [{"command": {"drop": "c", "$db": "golden"}}]},
{"name": "a background getMore", "steps": [
  {"command": {"create": "c", "capped": true, "size": {"$numberInt": "4096"}, "$db": "golden"}, "quiet": true},
  {"command": {"insert": "c", "documents": [{"_id": {"$numberInt": "1"}}], "$db": "golden"}, "quiet": true},
  {"command": {"find": "c", "tailable": true, "awaitData": true, "$db": "golden"}, "save": {"cur": "cursor.id"}},
  {"command": {"getMore": {"$ref": "cur"}, "collection": "c", "maxTimeMS": {"$numberInt": "10000"}, "$db": "golden"}, "background": true},
  {"command": {"insert": "c", "documents": [{"_id": {"$numberInt": "2"}}], "$db": "golden"}, "conn": "b"}
]}
]`

// A recording of a deployment replays on another one, and one that was tampered with does not.
func TestRecordAndReplay(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.json")
	out := filepath.Join(t.TempDir(), "replicaset", "in.json")
	if err := os.WriteFile(in, []byte(unrecorded), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := golden.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	recorded := &golden.Runner{Topology: "replicaset", Nodes: mongotest.Start(t, mongotest.ReplicaSet(2)).Hosts()}
	for i := range cases {
		if err := recorded.Record(&cases[i], "replicaset"); err != nil {
			t.Fatalf("%s: %v", cases[i].Name, err)
		}
	}
	if err := golden.Save(out, cases); err != nil {
		t.Fatal(err)
	}
	again, err := golden.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(cases) {
		t.Fatalf("%d cases were saved, want %d", len(again), len(cases))
	}
	other := &golden.Runner{Topology: "replicaset", Nodes: mongotest.Start(t, mongotest.ReplicaSet(3)).Hosts()}
	for _, c := range again {
		if len(c.Topologies) != 1 || c.Topologies[0] != "replicaset" {
			t.Errorf("%s: recorded for %v", c.Name, c.Topologies)
		}
		for i, s := range c.Steps {
			if s.Quiet != (s.Reply == nil) {
				t.Errorf("%s: step %d: quiet is %v and the reply is %s", c.Name, i, s.Quiet, s.Reply)
			}
		}
		replies, err := other.Run(c)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if d := golden.Compare(c, replies); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
		for i, s := range c.Steps {
			if s.Reply == nil {
				continue
			}
			c.Steps[i].Reply = c.Steps[i].Command // no server answers like that
			if golden.Compare(c, replies) == "" {
				t.Errorf("%s: step %d: a wrong recording is not found out", c.Name, i)
			}
			c.Steps[i].Reply = s.Reply
		}
	}
}
