package operations

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

func TestWatchEvents(t *testing.T) {
	_, coll, _ := rig.Watched(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("6.0"))
	ctx := t.Context()
	s := rig.Watch(t, coll, nil, allium.WatchOptions{FullDocument: "updateLookup"})
	rig.InsertItems(t, coll, 1)
	if _, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, bson.D{{Key: "$set", Value: bson.M{"value": "x"}}, {Key: "$unset", Value: bson.M{"none": ""}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.ReplaceOne(ctx, bson.M{"_id": 1}, rig.Item{ID: 1, Value: "y"}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.DeleteOne(ctx, bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	var kinds []allium.ChangeType
	for e, err := range s.Seq(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.OperationType)
		if e.ID == nil || e.ClusterTime.IsZero() || e.WallTime.IsZero() {
			t.Errorf("%s: %v", e.OperationType, e.Raw)
		}
		if e.OperationType == allium.ChangeInvalidate {
			continue
		}
		if want := (allium.Namespace{DB: "streams", Collection: "items"}); e.Namespace != want {
			t.Errorf("%s: namespace %v", e.OperationType, e.Namespace)
		}
		switch e.OperationType {
		case allium.ChangeUpdate:
			if v, _ := e.UpdateDescription.UpdatedFields.Lookup("value").StringValue(); v != "x" || len(e.UpdateDescription.RemovedFields) != 0 {
				t.Errorf("update description %+v", e.UpdateDescription)
			}
			fallthrough
		case allium.ChangeInsert, allium.ChangeReplace, allium.ChangeDelete:
			if id, _ := e.DocumentKey.Lookup("_id").Int32(); id != 1 {
				t.Errorf("%s: document key %v", e.OperationType, e.DocumentKey)
			}
		}
		if e.OperationType == allium.ChangeReplace && (e.FullDocument == nil || e.FullDocument.Value != "y") {
			t.Errorf("replace: %v", e.FullDocument)
		}
	}
	want := []allium.ChangeType{allium.ChangeInsert, allium.ChangeUpdate, allium.ChangeReplace, allium.ChangeDelete, allium.ChangeDrop, allium.ChangeInvalidate}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	if s.Err() != nil || s.ID() != 0 || s.Next(ctx) {
		t.Errorf("after the end: error %v, id %d", s.Err(), s.ID())
	}

	// The token of the invalidate event starts a new stream behind it.
	again := rig.Watch(t, coll, nil, allium.WatchOptions{StartAfter: s.ResumeToken()})
	rig.InsertItems(t, coll, 2)
	rig.ExpectItems(t, again, 2)
}

func TestWatchDatabaseAndClient(t *testing.T) {
	_, coll, log := rig.Watched(t, allium.ClientOptions{})
	ctx := t.Context()
	db, client := coll.Database(), coll.Database().Client()
	match := []bson.D{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}}
	dbStream, err := db.Watch(ctx, match)
	if err != nil {
		t.Fatal(err)
	}
	defer dbStream.Close(ctx)
	all, err := client.Watch(ctx, match)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close(ctx)
	commands := log.Of("aggregate")
	if c := commands[0]; c.DatabaseName != "streams" || c.Command.Lookup("aggregate").String() != "1" || !rig.StageOf(c).IsEmpty() {
		t.Errorf("database: %v", c.Command)
	}
	if c := commands[1]; c.DatabaseName != "admin" || !rig.StageOf(c).Lookup("allChangesForCluster").AsBool() {
		t.Errorf("client: %v", c.Command)
	}
	rig.InsertItems(t, coll, 1)
	if _, err := client.Database("other").Collection("c").InsertOne(ctx, bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if !dbStream.Next(ctx) || dbStream.Current().Namespace.Collection != "items" {
		t.Errorf("database: %v, %v", dbStream.Current().Raw, dbStream.Err())
	}
	for _, want := range []string{"streams.items", "other.c"} {
		if !all.Next(ctx) || all.Current().Namespace.String() != want {
			t.Errorf("client: %v, %v; want %s", all.Current().Raw, all.Err(), want)
		}
	}
	for _, e := range log.Of("getMore") { // its namespace is the one that the aggregate returned
		if c, _ := e.Command.Lookup("collection").StringValue(); c != "$cmd.aggregate" {
			t.Errorf("getMore of collection %q", c)
		}
	}
}

func TestWatchTryNextMovesTheTokenOn(t *testing.T) {
	_, coll, _ := rig.Watched(t, allium.ClientOptions{}, testdeploy.ReplicaSet(3).Lagging(20*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	none := []bson.M{{"$match": bson.M{"operationType": "none"}}}
	s := rig.Watch(t, coll, none, allium.WatchOptions{MaxAwaitTime: time.Millisecond})
	if s.TryNext(ctx) || s.Err() != nil {
		t.Fatalf("%v, %v", s.Current().Raw, s.Err())
	}
	before := s.ResumeToken()
	rig.InsertItems(t, coll, 1)
	for s.ResumeToken().String() == before.String() { // until the majority has the write
		if s.TryNext(ctx) || s.Err() != nil {
			t.Fatalf("%v, %v", s.Current().Raw, s.Err())
		}
	}
	if after := s.ResumeToken(); after.String() < before.String() {
		t.Errorf("token %v does not follow %v", after, before)
	}
}

func TestWatchOptionsAndErrors(t *testing.T) {
	_, coll, log := rig.Watched(t, allium.ClientOptions{})
	ctx := t.Context()
	for name, err := range map[string]error{
		"pipeline":       rig.ErrorOf(coll.Watch(ctx, bson.D{{Key: "$match", Value: bson.D{}}})),
		"MaxAwaitTime":   rig.ErrorOf(coll.Watch(ctx, nil, allium.WatchOptions{MaxAwaitTime: time.Second, Timeout: new(time.Second)})),
		"context is nil": rig.ErrorOf(coll.Watch(noContext, nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "aggregate "+coll.Database().Name()+"."+coll.Name()+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(log.Of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
	// What the server knows better, it says itself.
	var server *mongoerr.ServerError
	at := &bson.Timestamp{T: 1}
	token := bson.Raw(rig.Must(bson.Marshal(bson.D{{Key: "_data", Value: "00"}})))
	if _, err := coll.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: token, StartAtOperationTime: at}); !errors.As(err, &server) {
		t.Errorf("resumeAfter and startAtOperationTime: %v", err)
	}
	if _, err := coll.Watch(ctx, nil, allium.WatchOptions{FullDocument: "nonsense"}); !errors.As(err, &server) {
		t.Errorf("fullDocument: %v", err)
	}
	rig.Watch(t, coll, []bson.D(nil)) // no stages, like nil
	log.Reset()
	s := rig.Watch(t, coll, nil, allium.WatchOptions{FullDocument: "whenAvailable", FullDocumentBeforeChange: "whenAvailable", BatchSize: new(int32(3)),
		MaxAwaitTime: 5 * time.Millisecond, Collation: &allium.Collation{Locale: "en"}, Comment: "why", ShowExpandedEvents: true})
	s.TryNext(ctx)
	aggregate, getMore := log.Of("aggregate")[0].Command, log.Of("getMore")[0].Command
	for _, c := range []struct {
		in   bson.Raw
		path []string
		want string
	}{
		{aggregate, []string{"pipeline", "0", "$changeStream", "fullDocument"}, `"whenAvailable"`},
		{aggregate, []string{"pipeline", "0", "$changeStream", "fullDocumentBeforeChange"}, `"whenAvailable"`},
		{aggregate, []string{"pipeline", "0", "$changeStream", "showExpandedEvents"}, "true"},
		{aggregate, []string{"cursor", "batchSize"}, "3"},
		{aggregate, []string{"collation", "locale"}, `"en"`},
		{aggregate, []string{"comment"}, `"why"`},
		{getMore, []string{"batchSize"}, "3"},
		{getMore, []string{"comment"}, `"why"`},
		{getMore, []string{"maxTimeMS"}, "5"},
	} {
		if got := c.in.Lookup(c.path...).String(); got != c.want {
			t.Errorf("%v is %s, want %s", c.path, got, c.want)
		}
	}
	if !aggregate.Lookup("maxTimeMS").IsZero() {
		t.Errorf("aggregate has maxTimeMS: %v", aggregate)
	}
}

// A context that ends leaves the stream usable: the next call resumes.
func TestWatchContextEnds(t *testing.T) {
	_, coll, log := rig.Watched(t, allium.ClientOptions{})
	s := rig.Watch(t, coll, nil)
	rig.InsertItems(t, coll, 1)
	rig.ExpectItems(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if s.Next(ctx) || !errors.Is(s.Err(), context.Canceled) {
		t.Fatalf("%v, %v", s.Current().Raw, s.Err())
	}
	if s.Next(ctx) || !errors.Is(s.Err(), context.Canceled) {
		t.Fatalf("%v, %v", s.Current().Raw, s.Err())
	}
	rig.InsertItems(t, coll, 2)
	log.Reset()
	rig.ExpectItems(t, s, 2)
	if got := log.Names(); len(got) < 2 || got[0] != "killCursors" || got[1] != "aggregate" {
		t.Errorf("commands %v, want killCursors and aggregate first", got)
	}
}

func TestWatchMidBatchProjection(t *testing.T) {
	_, coll, _ := rig.Watched(t, allium.ClientOptions{})
	s := rig.Watch(t, coll, []bson.M{{"$project": bson.M{"fullDocument": "$operationType", "ns": "gone", "extra": "$ns.coll"}}})
	rig.InsertItems(t, coll, 1)
	if !s.Next(t.Context()) {
		t.Fatal(s.Err())
	}
	e := s.Current()
	if extra, _ := e.Raw.Lookup("extra").StringValue(); extra != "items" || e.FullDocument != nil || e.Namespace != (allium.Namespace{}) {
		t.Errorf("%+v", e)
	}
}
