package operations

import (
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/mongotest"
)

// A client that closes ends all of its sessions, 10,000 with each command; what the server answers
// does not matter.
func TestSessionsEndInBatches(t *testing.T) {
	r := rig.New(t, "replicaset")
	if _, err := r.Coll.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	var sessions []*allium.Session
	for range 20_001 {
		s := rig.StartSession(t, r.Client)
		s.ID()
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		s.End(t.Context())
	}
	r.Deployment.FailCommand(t, mongotest.Fail{Commands: []string{"endSessions"}, Times: 1, Code: 2})
	if err := r.Client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	ended := map[string]bool{}
	for _, e := range r.Log.Of("endSessions") {
		list, _ := e.Command.Lookup("endSessions").Array()
		n := 0
		for v := range list.Values() {
			ended[string(v.Value)] = true
			n++
		}
		sizes = append(sizes, n)
		if e.DatabaseName != "admin" || !e.Command.Lookup("lsid").IsZero() {
			t.Errorf("on %s, with a session: %v", e.DatabaseName, !e.Command.Lookup("lsid").IsZero())
		}
	}
	if want := []int{10_000, 10_000, 1}; !slices.Equal(sizes, want) || len(ended) != 20_001 {
		t.Errorf("%v sessions, %d different ones, want %v", sizes, len(ended), want)
	}
}

// Commands that take no read concern have no afterClusterTime in a causally consistent session
// either.
func TestWritesWithoutReadConcern(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, r.Client)
	ctx := allium.WithSession(t.Context(), s)
	if _, err := r.Coll.InsertOne(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"collMod": func() error {
			return r.Coll.Database().ModifyCollection(ctx, "docs", allium.ModifyCollectionOptions{ValidationLevel: "off"})
		},
		"renameCollection": func() error { return r.Coll.Rename(ctx, "others") },
		"create":           func() error { return r.Coll.Database().CreateCollection(ctx, "docs") },
	} {
		r.Log.Reset()
		_ = do() // whether the collection is there is of no interest here
		list := r.Log.Of(name)
		if len(list) != 1 || rig.AfterClusterTime(list[0]).IsZero() != (name != "create") {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// Options of a session that nothing would heed are refused.
func TestSessionOptions(t *testing.T) {
	r := rig.New(t, "replicaset")
	for name, o := range map[string]allium.SessionOptions{
		"negative timeout":            {Timeout: new(-time.Second)},
		"timeout of its transactions": {Transaction: allium.TransactionOptions{Timeout: new(time.Second)}},
		"snapshot and causal":         {Snapshot: true, CausalConsistency: new(true)},
		"snapshot time alone":         {SnapshotTime: &bson.Timestamp{T: 1}},
	} {
		if _, err := r.Client.StartSession(o); err == nil || !strings.HasPrefix(err.Error(), "start session: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cursor that is closed after its session is killed all the same.
func TestCursorOutlivesSession(t *testing.T) {
	r := rig.New(t, "replicaset")
	for range 3 {
		if _, err := r.Coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	s := rig.StartSession(t, r.Client)
	ctx := allium.WithSession(t.Context(), s)
	cur, err := r.Coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))})
	if err != nil {
		t.Fatal(err)
	}
	s.End(t.Context())
	for cur.Next(ctx) {
	}
	if err := cur.Err(); err == nil || !strings.Contains(err.Error(), "session has ended") {
		t.Errorf("getMore: %v", err)
	}
	if err := cur.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := r.Log.Of("killCursors")
	if len(killed) != 1 || !killed[0].Command.Lookup("lsid").IsZero() {
		t.Errorf("killCursors: %v", killed)
	}
}
