package allium_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Driver Sessions, by their numbers. Not here, because the
// driver has no such thing: 7, 16 and 17 (several users at once), 12 and 13 (forking).

// operation is an operation that takes a session.
type operation struct {
	name  string
	write bool
	run   func(ctx context.Context, c *allium.Collection[bson.D]) error
}

var everything = bson.D{}

// drain reads a cursor to its end.
func drain[T any](ctx context.Context, c *allium.Cursor[T], err error) error {
	if err != nil {
		return err
	}
	_, err = c.All(ctx)
	return err
}

// operations are those of collections, databases and clients.
var operations = []operation{
	{"find", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		cur, err := c.Find(ctx, everything)
		return drain(ctx, cur, err)
	}},
	{"findOne", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.FindOne(ctx, everything)
		return err
	}},
	{"aggregate", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		cur, err := c.Aggregate(ctx, []bson.D{})
		return drain(ctx, cur, err)
	}},
	{"countDocuments", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.CountDocuments(ctx, everything)
		return err
	}},
	{"distinct", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := allium.Distinct[any](ctx, c, "x", everything)
		return err
	}},
	{"insertOne", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
		return err
	}},
	{"insertMany", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.InsertMany(ctx, []bson.D{{{Key: "x", Value: 1}}})
		return err
	}},
	{"updateOne", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.UpdateOne(ctx, everything, bson.M{"$set": bson.M{"y": 1}})
		return err
	}},
	{"updateMany", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.UpdateMany(ctx, everything, bson.M{"$set": bson.M{"y": 2}})
		return err
	}},
	{"replaceOne", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.ReplaceOne(ctx, everything, bson.D{{Key: "y", Value: 3}})
		return err
	}},
	{"deleteOne", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.DeleteOne(ctx, bson.M{"z": 1})
		return err
	}},
	{"deleteMany", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.DeleteMany(ctx, bson.M{"z": 1})
		return err
	}},
	{"findOneAndUpdate", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.FindOneAndUpdate(ctx, everything, bson.M{"$set": bson.M{"y": 4}})
		return err
	}},
	{"findOneAndReplace", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.FindOneAndReplace(ctx, everything, bson.D{{Key: "y", Value: 5}})
		return err
	}},
	{"findOneAndDelete", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.FindOneAndDelete(ctx, bson.M{"z": 1})
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			err = nil
		}
		return err
	}},
	{"bulkWrite", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.BulkWrite(ctx, []allium.WriteModel{allium.InsertModel{Document: bson.D{{Key: "x", Value: 1}}}})
		return err
	}},
	{"createIndex", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}})
		return err
	}},
	{"dropIndex", true, func(ctx context.Context, c *allium.Collection[bson.D]) error { return c.DropIndex(ctx, "x_1") }},
	{"listIndexes", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		cur, err := c.ListIndexes(ctx)
		return drain(ctx, cur, err)
	}},
	{"runCommand", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.Database().RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
		return err
	}},
	{"listCollections", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		cur, err := c.Database().ListCollections(ctx)
		return drain(ctx, cur, err)
	}},
	{"createCollection", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		return c.Database().CreateCollection(ctx, "other")
	}},
	{"dropCollection", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		return c.Database().Collection("other").Drop(ctx)
	}},
	{"listDatabases", false, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		_, err := c.Database().Client().ListDatabases(ctx)
		return err
	}},
	{"dropDatabase", true, func(ctx context.Context, c *allium.Collection[bson.D]) error {
		return c.Database().Client().Database("other").Drop(ctx)
	}},
}

// rig is a deployment with a client and a collection that has a document.
type rig struct {
	d      *testdeploy.Deployment
	client *allium.Client
	coll   *allium.Collection[bson.D]
	log    *sent
	name   string
}

var kinds = map[string]testdeploy.Kind{"standalone": testdeploy.Standalone, "replicaset": testdeploy.ReplicaSet(3).Lagging(20 * time.Millisecond),
	"sharded": testdeploy.Sharded(1, 2), "load-balanced": testdeploy.LoadBalanced(1)}

func on(t *testing.T, names []string, f func(t *testing.T, r *rig)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { f(t, newRig(t, name)) })
	}
}

func newRig(t *testing.T, name string, opts ...allium.ClientOptions) *rig {
	t.Helper()
	r := &rig{d: testdeploy.Start(t, kinds[name]), log: &sent{}, name: name}
	o := allium.ClientOptions{}
	if len(opts) > 0 {
		o = opts[0]
	}
	o.CommandMonitor = r.log.monitor()
	r.client = open(t, r.d.URI(), o)
	r.coll = r.client.Database("sessions").Collection("docs")
	r.insert(t)
	r.log.reset()
	return r
}

// insert inserts a document that reads of all members see.
func (r *rig) insert(t *testing.T) {
	t.Helper()
	coll := r.coll.With(allium.CollectionOptions{WriteConcern: r.d.Everywhere()})
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
}

var (
	allKinds   = []string{"standalone", "replicaset", "sharded", "load-balanced"}
	replicated = []string{"replicaset", "sharded", "load-balanced"}
)

// Driver Sessions, prose test 1: snapshot and causalConsistency exclude each other.
func TestProseSessionsSnapshotExcludesCausal(t *testing.T) {
	r := newRig(t, "replicaset")
	if _, err := r.client.StartSession(allium.SessionOptions{Snapshot: true, CausalConsistency: new(true)}); err == nil {
		t.Error("no error")
	}
}

// Driver Sessions, prose test 2: the pool is LIFO.
func TestProseSessionsPoolIsLIFO(t *testing.T) {
	on(t, allKinds, func(t *testing.T, r *rig) {
		a, b := start(t, r.client), start(t, r.client)
		idA, idB := a.ID().String(), b.ID().String()
		a.End(t.Context())
		b.End(t.Context())
		if got := start(t, r.client).ID().String(); got != idB {
			t.Errorf("first %s, want %s", got, idB)
		}
		if got := start(t, r.client).ID().String(); got != idA {
			t.Errorf("second %s, want %s", got, idA)
		}
	})
}

// Driver Sessions, prose test 3: clusterTime in commands.
func TestProseSessionsClusterTime(t *testing.T) {
	on(t, replicated, func(t *testing.T, r *rig) {
		var replied bson.Raw
		log := &sent{}
		m := log.monitor()
		m.Succeeded = func(_ context.Context, e *event.CommandSucceeded) {
			d, _ := e.Reply.Lookup("$clusterTime").Document()
			replied = append(bson.Raw(nil), d...)
		}
		client := open(t, r.d.URI(), allium.ClientOptions{CommandMonitor: m})
		coll := client.Database("sessions").Collection("docs")
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"runCommand", "aggregate", "find", "insertOne"} {
			op := operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == name })]
			for range 2 {
				want := replied.String()
				log.reset()
				if err := op.run(t.Context(), coll); err != nil {
					t.Fatal(err)
				}
				if got := log.of("")[0].Command.Lookup("$clusterTime").String(); got != want || want == "" {
					t.Errorf("%s: sent %s, want %s", name, got, want)
				}
			}
		}
	})
}

// Driver Sessions, prose test 4: explicit and implicit sessions.
func TestProseSessionsExplicitAndImplicit(t *testing.T) {
	on(t, allKinds, func(t *testing.T, r *rig) {
		for _, op := range operations {
			s := start(t, r.client)
			id := s.ID().String()
			for what, ctx := range map[string]context.Context{"explicit": allium.WithSession(t.Context(), s), "implicit": t.Context()} {
				r.log.reset()
				if err := op.run(ctx, r.coll); err != nil && !strings.Contains(err.Error(), "IndexNotFound") && !strings.Contains(err.Error(), "NamespaceExists") {
					t.Errorf("%s: %v", op.name, err)
				}
				for _, e := range r.log.of("") {
					lsid := e.Command.Lookup("lsid")
					if lsid.Type != bson.TypeEmbeddedDocument || (lsid.String() == id) != (what == "explicit") {
						t.Errorf("%s, %s: %s has lsid %v", op.name, what, e.CommandName, lsid)
					}
				}
			}
			s.End(t.Context())
		}
	})
}

// Driver Sessions, prose test 5: session of another client.
func TestProseSessionsOtherClient(t *testing.T) {
	r := newRig(t, "replicaset")
	s := start(t, open(t, r.d.URI()))
	for _, op := range operations {
		if err := op.run(allium.WithSession(t.Context(), s), r.coll); err == nil || !strings.Contains(err.Error(), "another client") {
			t.Errorf("%s: %v", op.name, err)
		}
	}
	if _, err := r.coll.Watch(allium.WithSession(t.Context(), s), nil); err == nil || !strings.Contains(err.Error(), "another client") {
		t.Errorf("watch: %v", err)
	}
	if n := len(r.log.of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// Driver Sessions, prose test 6: session that has ended.
func TestProseSessionsEnded(t *testing.T) {
	r := newRig(t, "replicaset")
	s := start(t, r.client)
	s.End(t.Context())
	s.End(t.Context()) // does no harm
	for _, op := range operations {
		if err := op.run(allium.WithSession(t.Context(), s), r.coll); err == nil || !strings.Contains(err.Error(), "session has ended") {
			t.Errorf("%s: %v", op.name, err)
		}
	}
	for what, err := range map[string]error{"start": s.StartTransaction(), "commit": s.CommitTransaction(t.Context()), "abort": s.AbortTransaction(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "session has ended") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(r.log.of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// Driver Sessions, prose test 8 and 9: an exhausted cursor has given its session back.
func TestProseSessionsExhaustedCursor(t *testing.T) {
	on(t, allKinds, func(t *testing.T, r *rig) {
		for range 4 {
			if err := operations[5].run(t.Context(), r.coll); err != nil {
				t.Fatal(err)
			}
		}
		for _, tc := range []struct{ batch, read int32 }{{0, 1}, {3, 4}} {
			r.log.reset()
			cur, err := r.coll.Find(t.Context(), everything, allium.FindOptions{BatchSize: batchSize(tc.batch)})
			if err != nil {
				t.Fatal(err)
			}
			for range tc.read {
				if !cur.Next(t.Context()) {
					t.Fatal(cur.Err())
				}
			}
			if err := r.client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for _, e := range r.log.of("") {
				ids[e.Command.Lookup("lsid").String()] = true
			}
			if len(ids) != 1 {
				t.Errorf("batch size %d: sessions %v in %v", tc.batch, ids, r.log.names())
			}
			if err := cur.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Driver Sessions, prose test 10: no session is left behind.
func TestProseSessionsNothingLeft(t *testing.T) {
	on(t, allKinds, func(t *testing.T, r *rig) {
		ids := map[string]bool{}
		note := func() {
			for _, e := range r.log.of("") {
				ids[e.Command.Lookup("lsid").String()] = true
			}
		}
		for _, op := range operations {
			_ = op.run(t.Context(), r.coll)
		}
		cur, err := r.coll.Find(t.Context(), everything, allium.FindOptions{BatchSize: new(int32(1))})
		if err != nil {
			t.Fatal(err)
		}
		if r.name != "standalone" {
			s, err := r.coll.Watch(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Close(t.Context())
		}
		cur.Close(t.Context())
		note()
		r.log.reset()
		r.client.Close(t.Context())
		var ended []string
		for _, e := range r.log.of("endSessions") {
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
	on(t, allKinds, func(t *testing.T, r *rig) {
		r.insert(t)
		r.insert(t)
		for _, mode := range []consistency.ReadMode{consistency.Primary, consistency.PrimaryPreferred, consistency.SecondaryPreferred, consistency.Nearest} {
			r.log.reset()
			coll := r.coll.With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: mode}})
			cur, err := coll.Find(t.Context(), everything, allium.FindOptions{BatchSize: new(int32(2))})
			if err := drain(t.Context(), cur, err); err != nil {
				t.Fatal(err)
			}
			find, getMore := r.log.of("find"), r.log.of("getMore")
			if len(find) != 1 || len(getMore) != 1 {
				t.Fatalf("commands %v", r.log.names())
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
	on(t, []string{"standalone", "replicaset", "load-balanced"}, func(t *testing.T, r *rig) {
		client := open(t, r.d.URI(), allium.ClientOptions{MaxPoolSize: new(1), CommandMonitor: r.log.monitor()})
		coll := client.Database("sessions").Collection("docs")
		least := 8
		for round := 0; round < 5 || least > 1 && round < 100; round++ {
			r.log.reset()
			var wg sync.WaitGroup
			for _, name := range []string{"insertOne", "deleteOne", "updateOne", "bulkWrite", "findOneAndDelete", "findOneAndUpdate", "findOneAndReplace", "find"} {
				op := operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == name })]
				wg.Go(func() {
					if err := op.run(t.Context(), coll); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			ids := map[string]bool{}
			for _, e := range r.log.of("") {
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
	f := startFake(t, func(r *fakeserver.Request) {
		mu.Lock()
		got = append(got, append(bson.Raw(nil), r.Body...))
		mu.Unlock()
		r.Reply(must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)},
			{Key: "ns", Value: "sessions.docs"}, {Key: "firstBatch", Value: bson.A{}}}}})))
	})
	client := open(t, f)
	coll := client.Database("sessions").Collection("docs")
	coll.FindOne(t.Context(), everything)
	coll.InsertOne(t.Context(), everything)
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
	s := start(t, client)
	ctx := allium.WithSession(t.Context(), s)
	_, err := coll.FindOne(ctx, everything)
	if err == nil || !strings.Contains(err.Error(), "sessions are not supported") {
		t.Errorf("read: %v", err)
	}
	if _, err = coll.InsertOne(ctx, everything); err == nil || !strings.Contains(err.Error(), "sessions are not supported") {
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
	r := newRig(t, "replicaset")
	mock := r.d.Mock(t, "a hook for commands")
	beats := make(chan struct{}, 100)
	log := &sent{}
	c1 := open(t, "mongodb://"+mock.Primary().Addr(), allium.ClientOptions{Direct: new(true), HeartbeatInterval: new(500 * time.Millisecond), CommandMonitor: log.monitor(),
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
	r.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if strings.EqualFold(c.Name, "hello") && !c.Body.Lookup("$clusterTime").IsZero() {
			t.Errorf("%v has a cluster time", c.Body)
		}
		return nil, nil
	})
	if err := operations[5].run(t.Context(), r.coll); err != nil {
		t.Fatal(err)
	}
	for len(beats) > 0 {
		<-beats
	}
	<-beats
	<-beats
	log.reset()
	if _, err := c1.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if got, want := log.of("ping")[0].Command.Lookup("$clusterTime"), reply.Lookup("$clusterTime"); !got.Equal(want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// Driver Sessions, prose test 21: snapshotTime needs snapshot.
func TestProseSessionsSnapshotTimeNeedsSnapshot(t *testing.T) {
	r := newRig(t, "replicaset")
	if _, err := r.client.StartSession(allium.SessionOptions{SnapshotTime: &bson.Timestamp{T: 1}}); err == nil {
		t.Error("no error")
	}
}

// Driver Sessions, prose test 22 and 23: snapshotTime of other sessions is not set, and can only be
// read.
func TestProseSessionsSnapshotTimeIsReadOnly(t *testing.T) {
	r := newRig(t, "replicaset")
	s := start(t, r.client)
	if _, err := r.coll.FindOne(allium.WithSession(t.Context(), s), everything); err != nil {
		t.Fatal(err)
	}
	if got := s.SnapshotTime(); got != nil {
		t.Errorf("snapshot time %v", got)
	}
	snapshot := start(t, r.client, allium.SessionOptions{Snapshot: true})
	if _, err := r.coll.FindOne(allium.WithSession(t.Context(), snapshot), everything); err != nil {
		t.Fatal(err)
	}
	want := *snapshot.SnapshotTime()
	snapshot.SnapshotTime().T = 1 // what is returned is the caller's
	if got := snapshot.SnapshotTime(); *got != want {
		t.Errorf("snapshot time %v, want %v", got, want)
	}
	given := want
	other := start(t, r.client, allium.SessionOptions{Snapshot: true, SnapshotTime: &given})
	given.T = 1
	if got := other.SnapshotTime(); *got != want {
		t.Errorf("snapshot time %v, want %v", got, want)
	}
}
