package interop

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	alliumbson "allium/bson"
	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// changeEvent is what the tests look at of an event.
type changeEvent struct {
	OperationType            string
	NS                       struct{ DB, Coll string }
	DocumentKey              bson.Raw
	FullDocument             bson.Raw
	FullDocumentBeforeChange bson.Raw
	UpdateDescription        bson.Raw
}

// String shows what the event has.
func (e changeEvent) String() string {
	s := e.OperationType
	if e.NS.Coll != "" {
		s += " " + e.NS.Coll
	}
	for _, part := range []struct {
		name string
		doc  bson.Raw
	}{{"key", e.DocumentKey}, {"full", e.FullDocument}, {"before", e.FullDocumentBeforeChange}, {"update", e.UpdateDescription}} {
		if part.doc != nil {
			text, _ := bson.MarshalExtJSON(part.doc, false, false)
			s += fmt.Sprintf(" %s %s", part.name, text)
		}
	}
	return s
}

// next waits for the stream's next event.
func next(t *testing.T, cs *mongo.ChangeStream) changeEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if !cs.Next(ctx) {
		t.Fatalf("no event: %v", cs.Err())
	}
	var e changeEvent
	if err := cs.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func watch(t *testing.T, w interface {
	Watch(context.Context, any, ...options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error)
}, pipeline any, opts ...options.Lister[options.ChangeStreamOptions]) *mongo.ChangeStream {
	t.Helper()
	cs := must(w.Watch(t.Context(), pipeline, opts...))(t)
	t.Cleanup(func() { cs.Close(context.Background()) })
	return cs
}

func TestOfficialChangeStream(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		if err := p.db.CreateCollection(ctx, "c", options.CreateCollection().SetChangeStreamPreAndPostImages(doc("enabled", true))); err != nil {
			t.Fatal(err)
		}
		coll := p.db.Collection("c")
		onColl := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.WhenAvailable).SetFullDocumentBeforeChange(options.WhenAvailable))
		onDB := watch(t, p.db, mongo.Pipeline{doc("$match", doc("operationType", doc("$in", bson.A{"insert", "drop"}))), doc("$unset", "fullDocument")})
		onAll := watch(t, p.client, mongo.Pipeline{doc("$project", doc("operationType", 1, "ns", 1))})

		must(coll.InsertOne(ctx, doc("_id", 1, "a", bson.A{1, 2, 3}, "gone", true)))(t)
		must(coll.UpdateOne(ctx, doc("_id", 1), doc("$set", doc("a.1", 5, "new", "x"), "$unset", doc("gone", ""))))(t)
		must(coll.ReplaceOne(ctx, doc("_id", 1), doc("r", 1)))(t)
		must(p.db.Collection("other").InsertOne(ctx, doc("_id", 2)))(t)
		must(coll.DeleteOne(ctx, doc("_id", 1)))(t)
		if err := coll.Drop(ctx); err != nil {
			t.Fatal(err)
		}
		streams := []struct {
			name string
			cs   *mongo.ChangeStream
			want []string
		}{
			{"collection", onColl, []string{
				`insert c key {"_id":1} full {"_id":1,"a":[1,2,3],"gone":true}`,
				`update c key {"_id":1} full {"_id":1,"a":[1,5,3],"new":"x"} before {"_id":1,"a":[1,2,3],"gone":true} ` +
					`update {"updatedFields":{"a.1":5,"new":"x"},"removedFields":["gone"],"truncatedArrays":[]}`,
				`replace c key {"_id":1} full {"_id":1,"r":1} before {"_id":1,"a":[1,5,3],"new":"x"}`,
				`delete c key {"_id":1} before {"_id":1,"r":1}`,
				`drop c`, `invalidate`,
			}},
			{"database", onDB, []string{`insert c key {"_id":1}`, `insert other key {"_id":2}`, `drop c`}},
			{"client", onAll, []string{"insert c", "update c", "replace c", "insert other", "delete c", "drop c"}},
		}
		for _, s := range streams {
			for _, want := range s.want {
				if got := next(t, s.cs).String(); got != want {
					t.Errorf("stream on the %s:\ngot  %s\nwant %s", s.name, got, want)
				}
			}
		}
		// After the invalidate event the stream has ended.
		if onColl.Next(ctx) || onColl.Err() != nil {
			t.Errorf("the stream goes on after invalidate, or has the error %v", onColl.Err())
		}
		// A new one may start after it, but not resume there.
		token := onColl.ResumeToken()
		cs, err := p.db.Collection("c").Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
		if err == nil {
			cs.Close(ctx)
		}
		wantCode(t, err, 260)
		after := watch(t, p.db.Collection("c"), mongo.Pipeline{}, options.ChangeStream().SetStartAfter(token))
		must(coll.InsertOne(ctx, doc("_id", "again")))(t)
		if got := next(t, after).String(); got != `insert c key {"_id":"again"} full {"_id":"again"}` {
			t.Errorf("started after the invalidate event: %s", got)
		}
	})
}

// TestOfficialChangeStreamResume starts streams from the token and from the time of an earlier
// event.
func TestOfficialChangeStreamResume(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		s, inside := p.session(t)
		must(coll.InsertOne(inside, doc("_id", 0)))(t)
		start := s.OperationTime()
		cs := watch(t, coll, mongo.Pipeline{})
		for i := 1; i <= 5; i++ {
			must(coll.InsertOne(ctx, doc("_id", i)))(t)
		}
		next(t, cs)
		next(t, cs)
		token := cs.ResumeToken()
		for name, opts := range map[string]struct {
			opts *options.ChangeStreamOptionsBuilder
			from int
		}{
			"resumeAfter":          {options.ChangeStream().SetResumeAfter(token), 3},
			"startAfter":           {options.ChangeStream().SetStartAfter(token).SetBatchSize(1), 3},
			"startAtOperationTime": {options.ChangeStream().SetStartAtOperationTime(start), 0},
		} {
			cs := watch(t, coll, mongo.Pipeline{}, opts.opts)
			for i := opts.from; i <= 5; i++ {
				if got, want := next(t, cs).String(), fmt.Sprintf(`insert c key {"_id":%d} full {"_id":%[1]d}`, i); got != want {
					t.Errorf("%s: got %s, want %s", name, got, want)
				}
			}
		}
		// With a pipeline that removes the token no stream can go on.
		bad, err := coll.Watch(ctx, mongo.Pipeline{doc("$unset", "_id")}, options.ChangeStream().SetResumeAfter(token))
		if err == nil {
			bad.Next(ctx)
			err = bad.Err()
			bad.Close(ctx)
		}
		wantCode(t, err, 280)
	})
}

// TestOfficialChangeStreamAcrossStepDown writes while primaries step down, the stream's connection
// breaks, its cursor gets lost and its member dies. The driver resumes the stream by itself, or the
// test does: every event comes exactly once and in order.
func TestOfficialChangeStreamAcrossStepDown(t *testing.T) {
	p := official(t, mongotest.ReplicaSet(5)) // who steps down cannot be elected for a minute
	ctx := t.Context()
	coll := p.db.Collection("c")
	must(coll.InsertOne(ctx, doc("_id", "first")))(t)
	var streaming atomic.Pointer[mongotest.Node] // the member with the cursor
	var opened atomic.Int64
	p.d.OnCommand(func(c *mongotest.Command) (alliumbson.Raw, error) {
		if c.Name == "aggregate" {
			opened.Add(1)
			streaming.Store(c.Node)
		}
		return nil, nil
	})
	cs := watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetBatchSize(3))
	written := 0
	write := func() {
		t.Helper()
		for range 7 {
			must(coll.InsertOne(ctx, doc("_id", written)))(t)
			written++
		}
	}
	read := 0
	for round, disturb := range []struct {
		do      func()
		resumes bool
	}{
		{p.d.StepDown, false}, // cursors survive on what is a secondary now
		{func() {
			streaming.Load().FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, CloseConnection: true})
		}, true},
		{func() {
			streaming.Load().FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 43})
			p.d.StepDown()
		}, true},
	} {
		before := opened.Load()
		write()
		next(t, cs)
		read++
		disturb.do()
		write()
		for ; read < written; read++ {
			if got := next(t, cs).DocumentKey.Lookup("_id").AsInt64(); got != int64(read) {
				t.Fatalf("round %d: the event of document %d comes instead of %d", round, got, read)
			}
		}
		if resumed := opened.Load() > before; resumed != disturb.resumes {
			t.Errorf("round %d: the stream was resumed: %v", round, resumed)
		}
	}
	if cs.TryNext(ctx) || cs.Err() != nil {
		t.Errorf("one more event %v, or the error %v", cs.Current, cs.Err())
	}

	p.d.StepDown()
	write() // the driver knows the new primary now: the writes do not suffer
	streaming.Load().Kill()
	write()
	if !cs.Next(ctx) { // the driver gives up when it learns of the death in the wrong moment
		cs = watch(t, coll, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(cs.ResumeToken()))
		cs.Next(ctx)
	}
	for ; read < written; read++ {
		if got := cs.Current.Lookup("documentKey", "_id").AsInt64(); got != int64(read) {
			t.Fatalf("after the member's death: the event of document %d comes instead of %d", got, read)
		}
		if read+1 < written && !cs.Next(ctx) {
			t.Fatal(cs.Err())
		}
	}
}

// TestOfficialChangeStreamErrors injects errors into getMore: resumable ones are not noticed,
// others end the stream.
func TestOfficialChangeStreamErrors(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		for _, f := range []mongotest.Fail{
			{Commands: []string{"getMore"}, Times: 1, Code: 43}, // CursorNotFound
			{Commands: []string{"getMore"}, Times: 1, CloseConnection: true},
			{Commands: []string{"getMore"}, Times: 1, Code: 6, Labels: []string{"ResumableChangeStreamError"}},
		} {
			cs := watch(t, coll, mongo.Pipeline{})
			p.d.FailCommand(f)
			must(coll.InsertOne(ctx, doc("code", f.Code)))(t)
			if e := next(t, cs); e.OperationType != "insert" {
				t.Errorf("after error %d: %s", f.Code, e)
			}
		}
		cs := watch(t, coll, mongo.Pipeline{})
		p.d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 280}) // ChangeStreamFatalError
		if cs.Next(ctx) {
			t.Error("the stream goes on after a fatal error")
		}
		var ce mongo.CommandError
		if !errors.As(cs.Err(), &ce) || ce.Code != 280 {
			t.Errorf("the fatal error is %v", cs.Err())
		}
	})
}

// TestOfficialChangeStreamOfTransaction: the events of a transaction come at its commit, and
// together.
func TestOfficialChangeStreamOfTransaction(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		ctx := t.Context()
		coll := p.db.Collection("c")
		must(coll.InsertOne(ctx, doc("_id", "before")))(t)
		cs := watch(t, coll, mongo.Pipeline{})
		s, inside := p.session(t)
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		must(coll.InsertMany(inside, []any{doc("_id", 1), doc("_id", 2)}))(t)
		must(coll.InsertOne(ctx, doc("_id", "outside")))(t)
		if err := s.CommitTransaction(inside); err != nil {
			t.Fatal(err)
		}
		var got []string
		var numbers []int64
		for range 3 {
			got = append(got, next(t, cs).DocumentKey.String())
			if n, ok := cs.Current.Lookup("txnNumber").AsInt64OK(); ok {
				numbers = append(numbers, n)
			}
		}
		if fmt.Sprint(got) != `[{"_id": "outside"} {"_id": {"$numberInt":"1"}} {"_id": {"$numberInt":"2"}}]` || len(numbers) != 2 || numbers[0] != numbers[1] {
			t.Errorf("events %v, transaction numbers %v", got, numbers)
		}
	})
}
