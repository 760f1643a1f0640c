package prose

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/mongotest"
)

// The prose tests of the specification Driver Sessions, by their numbers. Not here, because the
// driver has no such thing: 7, 16 and 17 (several users at once), 12 and 13 (forking).

// Driver Sessions, prose test 1: snapshot and causalConsistency exclude each other.
func TestProseSessionsSnapshotExcludesCausal(t *testing.T) {
	r := rig.New(t, "replicaset")
	if _, err := r.Client.StartSession(allium.SessionOptions{Snapshot: true, CausalConsistency: new(true)}); err == nil {
		t.Error("no error")
	}
}

// Driver Sessions, prose test 2: the pool is LIFO.
func TestProseSessionsPoolIsLIFO(t *testing.T) {
	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		a, b := rig.StartSession(t, r.Client), rig.StartSession(t, r.Client)
		idA, idB := a.ID().String(), b.ID().String()
		a.End(t.Context())
		b.End(t.Context())
		if got := rig.StartSession(t, r.Client).ID().String(); got != idB {
			t.Errorf("first %s, want %s", got, idB)
		}
		if got := rig.StartSession(t, r.Client).ID().String(); got != idA {
			t.Errorf("second %s, want %s", got, idA)
		}
	})
}

// Driver Sessions, prose test 3: clusterTime in commands.
func TestProseSessionsClusterTime(t *testing.T) {
	rig.On(t, rig.Replicated, func(t *testing.T, r *rig.Rig) {
		var replied bson.Raw
		log := &rig.Sent{}
		m := log.Monitor()
		m.Succeeded = func(_ context.Context, e *event.CommandSucceeded) {
			d, _ := e.Reply.Lookup("$clusterTime").Document()
			replied = append(bson.Raw(nil), d...)
		}
		client := rig.Open(t, r.Deployment.URI(), allium.ClientOptions{CommandMonitor: m})
		coll := client.Database("sessions").Collection("docs")
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"runCommand", "aggregate", "find", "insertOne"} {
			op := rig.Operations[slices.IndexFunc(rig.Operations, func(o rig.Operation) bool { return o.Name == name })]
			for range 2 {
				want := replied.String()
				log.Reset()
				if err := op.Run(t.Context(), coll); err != nil {
					t.Fatal(err)
				}
				if got := log.Of("")[0].Command.Lookup("$clusterTime").String(); got != want || want == "" {
					t.Errorf("%s: sent %s, want %s", name, got, want)
				}
			}
		}
	})
}

// Driver Sessions, prose test 4: explicit and implicit sessions.
func TestProseSessionsExplicitAndImplicit(t *testing.T) {
	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		for _, op := range rig.Operations {
			s := rig.StartSession(t, r.Client)
			id := s.ID().String()
			for what, ctx := range map[string]context.Context{"explicit": allium.WithSession(t.Context(), s), "implicit": t.Context()} {
				r.Log.Reset()
				if err := op.Run(ctx, r.Coll); err != nil && !strings.Contains(err.Error(), "IndexNotFound") && !strings.Contains(err.Error(), "NamespaceExists") {
					t.Errorf("%s: %v", op.Name, err)
				}
				for _, e := range r.Log.Of("") {
					lsid := e.Command.Lookup("lsid")
					if lsid.Type != bson.TypeEmbeddedDocument || (lsid.String() == id) != (what == "explicit") {
						t.Errorf("%s, %s: %s has lsid %v", op.Name, what, e.CommandName, lsid)
					}
				}
			}
			s.End(t.Context())
		}
	})
}

// Driver Sessions, prose test 5: session of another client.
func TestProseSessionsOtherClient(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, rig.Open(t, r.Deployment.URI()))
	for _, op := range rig.Operations {
		if err := op.Run(allium.WithSession(t.Context(), s), r.Coll); err == nil || !strings.Contains(err.Error(), "another client") {
			t.Errorf("%s: %v", op.Name, err)
		}
	}
	if _, err := r.Coll.Watch(allium.WithSession(t.Context(), s), nil); err == nil || !strings.Contains(err.Error(), "another client") {
		t.Errorf("watch: %v", err)
	}
	if n := len(r.Log.Of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// Driver Sessions, prose test 6: session that has ended.
func TestProseSessionsEnded(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, r.Client)
	s.End(t.Context())
	s.End(t.Context()) // does no harm
	for _, op := range rig.Operations {
		if err := op.Run(allium.WithSession(t.Context(), s), r.Coll); err == nil || !strings.Contains(err.Error(), "session has ended") {
			t.Errorf("%s: %v", op.Name, err)
		}
	}
	for what, err := range map[string]error{"start": s.StartTransaction(), "commit": s.CommitTransaction(t.Context()), "abort": s.AbortTransaction(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "session has ended") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(r.Log.Of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// Driver Sessions, prose test 8 and 9: an exhausted cursor has given its session back.
func TestProseSessionsExhaustedCursor(t *testing.T) {
	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		for range 4 {
			if err := rig.Operations[5].Run(t.Context(), r.Coll); err != nil {
				t.Fatal(err)
			}
		}
		for _, tc := range []struct{ batch, read int32 }{{0, 1}, {3, 4}} {
			r.Log.Reset()
			cur, err := r.Coll.Find(t.Context(), rig.Everything, allium.FindOptions{BatchSize: rig.BatchSize(tc.batch)})
			if err != nil {
				t.Fatal(err)
			}
			for range tc.read {
				if !cur.Next(t.Context()) {
					t.Fatal(cur.Err())
				}
			}
			if err := r.Client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for _, e := range r.Log.Of("") {
				ids[e.Command.Lookup("lsid").String()] = true
			}
			if len(ids) != 1 {
				t.Errorf("batch size %d: sessions %v in %v", tc.batch, ids, r.Log.Names())
			}
			if err := cur.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Driver Sessions, prose test 10: no session is left behind.
func TestProseSessionsNothingLeft(t *testing.T) {
	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		ids := map[string]bool{}
		note := func() {
			for _, e := range r.Log.Of("") {
				ids[e.Command.Lookup("lsid").String()] = true
			}
		}
		for _, op := range rig.Operations {
			_ = op.Run(t.Context(), r.Coll)
		}
		cur, err := r.Coll.Find(t.Context(), rig.Everything, allium.FindOptions{BatchSize: new(int32(1))})
		if err != nil {
			t.Fatal(err)
		}
		if r.Name != "standalone" {
			s, err := r.Coll.Watch(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Close(t.Context())
		}
		cur.Close(t.Context())
		note()
		r.Log.Reset()
		r.Client.Close(t.Context())
		var ended []string
		for _, e := range r.Log.Of("endSessions") {
			list, _ := e.Command.Lookup("endSessions").Array()
			for v := range list.Values() {
				ended = append(ended, v.String())
			}
		}
		if len(ended) != len(ids) {
			t.Errorf("%d sessions were used, %d ended", len(ids), len(ended))
		}
	})
}

// Driver Sessions, prose test 11: find and getMore send the same session.
func TestProseSessionsFindAndGetMore(t *testing.T) {
	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		r.Insert(t)
		r.Insert(t)
		for _, mode := range []consistency.ReadMode{consistency.Primary, consistency.PrimaryPreferred, consistency.SecondaryPreferred, consistency.Nearest} {
			r.Log.Reset()
			coll := r.Coll.With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: mode}})
			cur, err := coll.Find(t.Context(), rig.Everything, allium.FindOptions{BatchSize: new(int32(2))})
			if err := rig.Drain(t.Context(), cur, err); err != nil {
				t.Fatal(err)
			}
			find, getMore := r.Log.Of("find"), r.Log.Of("getMore")
			if len(find) != 1 || len(getMore) != 1 {
				t.Fatalf("commands %v", r.Log.Names())
			}
			if a, b := find[0].Command.Lookup("lsid"), getMore[0].Command.Lookup("lsid"); a.IsZero() || !a.Equal(b) {
				t.Errorf("%v: find has %v, getMore has %v", mode, a, b)
			}
		}
	})
}

// Driver Sessions, prose test 14: implicit sessions are taken after the checkout. The text asks for
// at least five rounds, one of which needs a single session. A session comes back to its pool a
// moment after the connection, and another operation may look between the two: a busy machine gets
// more rounds.
func TestProseSessionsAfterCheckout(t *testing.T) {
	rig.On(t, []string{"standalone", "replicaset", "load-balanced"}, func(t *testing.T, r *rig.Rig) {
		client := rig.Open(t, r.Deployment.URI(), allium.ClientOptions{MaxPoolSize: new(1), CommandMonitor: r.Log.Monitor()})
		coll := client.Database("sessions").Collection("docs")
		least := 8
		for round := 0; round < 5 || least > 1 && round < 100; round++ {
			r.Log.Reset()
			var wg sync.WaitGroup
			for _, name := range []string{"insertOne", "deleteOne", "updateOne", "bulkWrite", "findOneAndDelete", "findOneAndUpdate", "findOneAndReplace", "find"} {
				op := rig.Operations[slices.IndexFunc(rig.Operations, func(o rig.Operation) bool { return o.Name == name })]
				wg.Go(func() {
					if err := op.Run(t.Context(), coll); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			ids := map[string]bool{}
			for _, e := range r.Log.Of("") {
				ids[e.Command.Lookup("lsid").String()] = true
			}
			if len(ids) >= 8 {
				t.Errorf("%d sessions for 8 operations over one connection", len(ids))
			}
			least = min(least, len(ids))
		}
		if least != 1 {
			t.Errorf("never less than %d sessions", least)
		}
	})
}

// Driver Sessions, prose test 18 and 19: a server without sessions.
func TestProseSessionsWithoutSessions(t *testing.T) {
	var mu sync.Mutex
	var got []bson.Raw
	f := rig.StartFake(t, func(r *fakeserver.Request) {
		mu.Lock()
		got = append(got, append(bson.Raw(nil), r.Body...))
		mu.Unlock()
		r.Reply(rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)},
			{Key: "ns", Value: "sessions.docs"}, {Key: "firstBatch", Value: bson.A{}}}}})))
	})
	client := rig.Open(t, f)
	coll := client.Database("sessions").Collection("docs")
	coll.FindOne(t.Context(), rig.Everything)
	coll.InsertOne(t.Context(), rig.Everything)
	mu.Lock()
	if len(got) != 2 {
		t.Errorf("%d commands", len(got))
	}
	for _, c := range got {
		if !c.Lookup("lsid").IsZero() {
			t.Errorf("implicit session in %v", c)
		}
	}
	mu.Unlock()
	s := rig.StartSession(t, client)
	ctx := allium.WithSession(t.Context(), s)
	_, err := coll.FindOne(ctx, rig.Everything)
	if err == nil || !strings.Contains(err.Error(), "sessions are not supported") {
		t.Errorf("read: %v", err)
	}
	if _, err = coll.InsertOne(ctx, rig.Everything); err == nil || !strings.Contains(err.Error(), "sessions are not supported") {
		t.Errorf("write: %v", err)
	}
	mu.Lock()
	if len(got) != 2 {
		t.Errorf("a command with an explicit session was sent")
	}
	mu.Unlock()
}

// Driver Sessions, prose test 20: discovery does not gossip.
func TestProseSessionsDiscoveryDoesNotGossip(t *testing.T) {
	r := rig.New(t, "replicaset")
	mock := r.Deployment.Mock(t, "a hook for commands")
	beats := make(chan struct{}, 100)
	log := &rig.Sent{}
	c1 := rig.Open(t, "mongodb://"+mock.Primary().Addr(), allium.ClientOptions{Direct: new(true), HeartbeatInterval: new(500 * time.Millisecond), CommandMonitor: log.Monitor(),
		ServerMonitoringMode: "poll", ServerMonitor: &event.ServerMonitor{ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) {
			select {
			case beats <- struct{}{}:
			default:
			}
		}}})
	reply, err := c1.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	r.Deployment.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if strings.EqualFold(c.Name, "hello") && !c.Body.Lookup("$clusterTime").IsZero() {
			t.Errorf("%v has a cluster time", c.Body)
		}
		return nil, nil
	})
	if err := rig.Operations[5].Run(t.Context(), r.Coll); err != nil {
		t.Fatal(err)
	}
	for len(beats) > 0 {
		<-beats
	}
	<-beats
	<-beats
	log.Reset()
	if _, err := c1.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if got, want := log.Of("ping")[0].Command.Lookup("$clusterTime"), reply.Lookup("$clusterTime"); !got.Equal(want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// Driver Sessions, prose test 21: snapshotTime needs snapshot.
func TestProseSessionsSnapshotTimeNeedsSnapshot(t *testing.T) {
	r := rig.New(t, "replicaset")
	if _, err := r.Client.StartSession(allium.SessionOptions{SnapshotTime: &bson.Timestamp{T: 1}}); err == nil {
		t.Error("no error")
	}
}

// Driver Sessions, prose test 22 and 23: snapshotTime of other sessions is not set, and can only be
// read.
func TestProseSessionsSnapshotTimeIsReadOnly(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, r.Client)
	if _, err := r.Coll.FindOne(allium.WithSession(t.Context(), s), rig.Everything); err != nil {
		t.Fatal(err)
	}
	if got := s.SnapshotTime(); got != nil {
		t.Errorf("snapshot time %v", got)
	}
	snapshot := rig.StartSession(t, r.Client, allium.SessionOptions{Snapshot: true})
	if _, err := r.Coll.FindOne(allium.WithSession(t.Context(), snapshot), rig.Everything); err != nil {
		t.Fatal(err)
	}
	want := *snapshot.SnapshotTime()
	snapshot.SnapshotTime().T = 1 // what is returned is the caller's
	if got := snapshot.SnapshotTime(); *got != want {
		t.Errorf("snapshot time %v, want %v", got, want)
	}
	given := want
	other := rig.StartSession(t, r.Client, allium.SessionOptions{Snapshot: true, SnapshotTime: &given})
	given.T = 1
	if got := other.SnapshotTime(); *got != want {
		t.Errorf("snapshot time %v, want %v", got, want)
	}
}
