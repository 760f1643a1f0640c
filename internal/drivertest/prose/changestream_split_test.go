package prose

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// Change Streams, prose test 19.
func TestProseChangeStreamsSplit(t *testing.T) {
	norace.Skip(t, rig.Huge)
	onStreams(t, func(t *testing.T, r *streamRig) {
		ctx := t.Context()
		r.d.Need(t, "7.0")
		db := r.coll.Database()
		if err := db.CreateCollection(ctx, "large", allium.CreateCollectionOptions{PreAndPostImages: new(true)}); err != nil {
			t.Fatal(err)
		}
		large := allium.CollectionOf[rig.Item](db, "large")
		before, after := strings.Repeat("q", 10<<20), strings.Repeat("z", 10<<20)
		if _, err := large.InsertOne(ctx, rig.Item{ID: 1, Value: before}); err != nil {
			t.Fatal(err)
		}
		split := []bson.D{{{Key: "$changeStreamSplitLargeEvent", Value: bson.D{}}}}
		fragments := rig.Watch(t, large, split, allium.WatchOptions{FullDocumentBeforeChange: "required"})
		whole := rig.Watch(t, large, nil, allium.WatchOptions{FullDocumentBeforeChange: "required", SplitLargeEvents: true})
		if _, err := large.UpdateOne(ctx, rig.Everything, bson.M{"$set": bson.M{"value": after}}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if !fragments.Next(ctx) {
				t.Fatal(fragments.Err())
			}
			if got := fragments.Current().SplitEvent; got == nil || *got != (allium.SplitEvent{Fragment: i + 1, Of: 2}) {
				t.Errorf("event %d: %v", i, got)
			}
		}
		// The same event in one piece.
		if !whole.Next(ctx) {
			t.Fatal(whole.Err())
		}
		e := whole.Current()
		updated, _ := e.UpdateDescription.UpdatedFields.Lookup("value").StringValue()
		if e.OperationType != allium.ChangeUpdate || e.SplitEvent != nil || e.FullDocumentBeforeChange.Value != before || updated != after || len(e.Raw) < 20<<20 {
			t.Errorf("%d bytes of an event of the type %s", len(e.Raw), e.OperationType)
		}
		if err := e.Raw.Validate(); err != nil {
			t.Error(err)
		}
		// The token of the whole event is behind all of its fragments.
		rig.InsertItems(t, large, 2)
		rig.ExpectItems(t, rig.Watch(t, large, nil, allium.WatchOptions{FullDocumentBeforeChange: "required", ResumeAfter: whole.ResumeToken(), SplitLargeEvents: true}), 2)
	})
}

// While an event is not whole, neither the token moves on nor does a resume begin behind its first
// fragments.
func TestWatchSplitEventAcrossResume(t *testing.T) {
	d, coll, log := rig.Watched(t, allium.ClientOptions{})
	token := func(s string) bson.D { return bson.D{{Key: "_data", Value: s}} }
	fragment := func(n int, key string, v any) bson.D {
		return bson.D{{Key: "_id", Value: token("e" + string(rune('0'+n)))}, {Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: n}, {Key: "of", Value: 3}}}, {Key: key, Value: v}}
	}
	parts := []any{fragment(1, "operationType", "insert"), fragment(2, "fullDocument", bson.D{{Key: "_id", Value: int32(7)}}), fragment(3, "documentKey", bson.D{{Key: "_id", Value: int32(7)}})}
	batches := [][]any{{parts[0]}, {}, {parts[1]}, nil, {parts[0], parts[1]}, {parts[2]}}
	first := true
	d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "aggregate":
			if first {
				first = false
				return nil, nil
			}
			// Any cursor will do: the getMores are answered here.
			return rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(42)}, {Key: "ns", Value: "streams.items"},
				{Key: "firstBatch", Value: bson.A{}}}}})), nil
		case "getMore":
			batch := batches[0]
			batches = batches[1:]
			if batch == nil {
				return rig.ErrorReply(7, "ResumableChangeStreamError"), nil
			}
			reply := cursorReply(c, batch...)
			if len(batch) == 0 {
				reply = bytes.Clone(reply)
				return rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(42)}, {Key: "ns", Value: "streams.items"},
					{Key: "nextBatch", Value: bson.A{}}, {Key: "postBatchResumeToken", Value: token("e1")}}}})), nil
			}
			return reply, nil
		}
		return nil, nil
	})
	s := rig.Watch(t, coll, nil, allium.WatchOptions{SplitLargeEvents: true})
	before := s.ResumeToken()
	if before == nil {
		t.Fatal("the first batch has no token")
	}
	for range 3 {
		if s.TryNext(t.Context()) || s.Err() != nil || s.ResumeToken().String() != before.String() {
			t.Fatalf("%v, %v, token %v", s.Current().Raw, s.Err(), s.ResumeToken())
		}
	}
	rig.ExpectItems(t, s, 7)
	if got := rig.StageOf(log.Of("aggregate")[1]).Lookup("resumeAfter").String(); got != before.String() {
		t.Errorf("resumes after %s, want %s", got, before)
	}
	if got := s.ResumeToken().String(); got != `{"_data":"e3"}` {
		t.Errorf("token %s", got)
	}
	if e := s.Current(); e.SplitEvent != nil || e.OperationType != allium.ChangeInsert || e.ID.String() != `{"_data":"e3"}` || e.DocumentKey == nil {
		t.Errorf("%v", e.Raw)
	}
	if len(batches) != 0 {
		t.Errorf("%d batches are left", len(batches))
	}
}

// A timeout bounds each Next as a whole, and leaves the stream as it is.
func TestWatchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, log := rig.Bubble(t, allium.ClientOptions{Timeout: new(200 * time.Millisecond)}, mongotest.ReplicaSet(1))
		coll := client.Database("db").Collection("coll")
		if err := coll.Database().CreateCollection(t.Context(), "coll"); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Block: 120 * time.Millisecond})
		s, err := coll.Watch(t.Context(), nil, allium.WatchOptions{MaxAwaitTime: time.Millisecond})
		if err != nil || s.ID() == 0 {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		began := time.Now()
		if s.Next(t.Context()) || s.Err() == nil || !timeoutError(s.Err()) {
			t.Fatalf("%v", s.Err())
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got := log.Names(); !slices.Equal(got, []string{"aggregate", "getMore", "getMore"}) {
			t.Errorf("commands %v", got)
		}
		// The next call resumes first, and has all its time.
		d.ClearFailures()
		log.Reset()
		if s.TryNext(t.Context()) || s.Err() != nil {
			t.Errorf("%v", s.Err())
		}
		if got := log.Names(); !slices.Equal(got, []string{"killCursors", "aggregate", "getMore"}) {
			t.Errorf("commands %v", got)
		}
	})
}

func timeoutError(err error) bool {
	t, ok := err.(*mongoerr.TimeoutError)
	return ok && t.Timeout()
}

// Behind a load balancer a stream keeps its connection, and gives it back when it ends or resumes
// on another one.
func TestWatchPinnedConnection(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.LoadBalanced(1))
	log := &rig.Sent{}
	client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: log.Monitor(), MaxPoolSize: new(2)})
	db := client.Database("streams")
	if err := db.CreateCollection(t.Context(), "items"); err != nil {
		t.Fatal(err)
	}
	coll := allium.CollectionOf[rig.Item](db, "items")
	log.Reset()
	s := rig.Watch(t, coll, nil)
	rig.InsertItems(t, coll, 1)
	rig.ExpectItems(t, s, 1)
	d.FailCommand(t, mongotest.Fail{Commands: []string{"getMore"}, Times: 1, CloseConnection: true})
	rig.InsertItems(t, coll, 2)
	rig.ExpectItems(t, s, 2)
	d.FailCommand(t, mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 7, Labels: []string{"ResumableChangeStreamError"}})
	rig.InsertItems(t, coll, 3)
	rig.ExpectItems(t, s, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if s.Next(ctx) || !timeoutError(s.Err()) { // the connection owes a reply now
		t.Fatalf("%v, %v", s.Current().Raw, s.Err())
	}
	rig.InsertItems(t, coll, 4)
	rig.ExpectItems(t, s, 4)
	var conn int64
	for _, e := range log.Of("") {
		switch e.CommandName {
		case "aggregate":
			conn = e.DriverConnectionID
		case "getMore":
			if e.DriverConnectionID != conn {
				t.Errorf("getMore on connection %d, the cursor is pinned to %d", e.DriverConnectionID, conn)
			}
		}
	}
	if n := len(log.Of("aggregate")); n != 4 {
		t.Errorf("%d aggregates", n)
	}
	s.Close(t.Context())
	// Both connections are free again: one operation holds one, another runs on the other.
	other := rig.Watch(t, coll, nil)
	rig.InsertItems(t, coll, 5)
	rig.ExpectItems(t, other, 5)
}
