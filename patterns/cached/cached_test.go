package cached_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/patterns/cached"
)

type counter struct {
	ID any `bson:"_id"`
	N  int `bson:"n"`
}

func byID(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }
func setN(n int) bson.D  { return bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}} }

// connect opens a client of a deployment that is in memory.
func connect(t *testing.T, d *mongotest.Deployment, opts ...allium.ClientOptions) *allium.Client {
	t.Helper()
	var o allium.ClientOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Dialer = d
	c, err := allium.Open(d.URI(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// start runs a reader until the test ends or stop is called, and waits until it follows.
func start[T any](t *testing.T, r *cached.Reader[T]) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	for range 1000 {
		if r.Stats().Following {
			return stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the reader does not follow")
	return nil
}

// find wants a document from memory, or from the server.
func find(t *testing.T, r *cached.Reader[counter], id any, n int, fromMemory bool) {
	t.Helper()
	before := r.Stats()
	got, err := r.Find(t.Context(), id)
	if err != nil || got.N != n {
		t.Errorf("%v: %v, %v, want %d", id, got, err, n)
	}
	if hit := r.Stats().Hits > before.Hits; hit != fromMemory {
		t.Errorf("%v: from memory is %v", id, hit)
	}
}

// TestFollowsWrites: whatever changes or deletes a document, wherever it was done, the next Find
// that begins behind the event returns what FindOne returns; other documents stay.
func TestFollowsWrites(t *testing.T) {
	writes := map[string]func(ctx context.Context, c *allium.Client, coll *allium.Collection[counter]) error{
		"update": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.UpdateOne(ctx, byID(1), setN(7))
			return err
		},
		"update of many": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.UpdateMany(ctx, bson.D{{Key: "n", Value: 1}}, setN(7))
			return err
		},
		"update by a pipeline": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.UpdateOne(ctx, byID(1), []bson.D{{{Key: "$set", Value: bson.D{{Key: "n", Value: 7}}}}})
			return err
		},
		"replacement": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.ReplaceOne(ctx, byID(1), counter{ID: 1, N: 7})
			return err
		},
		"delete": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.DeleteOne(ctx, byID(1))
			return err
		},
		"delete and insert": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.DeleteOne(ctx, byID(1))
			_, err2 := coll.InsertOne(ctx, counter{ID: 1.0, N: 7}) // the _id is equal
			return errors.Join(err, err2)
		},
		"findAndModify": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			_, err := coll.FindOneAndUpdate(ctx, byID(1), setN(7))
			return err
		},
		"transaction": func(ctx context.Context, c *allium.Client, coll *allium.Collection[counter]) error {
			return c.Transact(ctx, func(ctx context.Context) error {
				if _, err := coll.UpdateOne(ctx, byID(3), setN(8)); err != nil {
					return err
				}
				_, err := coll.UpdateOne(ctx, byID(1), setN(7))
				return err
			})
		},
		"$merge": func(ctx context.Context, c *allium.Client, coll *allium.Collection[counter]) error {
			cur, err := c.Database("app").Aggregate(ctx, []bson.D{
				{{Key: "$documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 7}}}}},
				{{Key: "$merge", Value: coll.Name()}}})
			if err == nil {
				err = cur.Close(ctx)
			}
			return err
		},
		"drop": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			return coll.Drop(ctx)
		},
		"rename": func(ctx context.Context, _ *allium.Client, coll *allium.Collection[counter]) error {
			return coll.Rename(ctx, "other")
		},
		"drop of the database": func(ctx context.Context, c *allium.Client, _ *allium.Collection[counter]) error {
			return c.Database("app").Drop(ctx)
		},
	}
	for name, write := range writes {
		for _, topology := range []mongotest.Option{mongotest.ReplicaSet(3), mongotest.Sharded(1, 2)} {
			t.Run(fmt.Sprint(name, topology), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := mongotest.Start(t, topology, mongotest.InMemory())
					c, other := connect(t, d), connect(t, d)
					coll := allium.CollectionOf[counter](c.Database("app"), "counters")
					if _, err := coll.InsertMany(t.Context(), []counter{{1, 1}, {2, 2}, {3, 3}}); err != nil {
						t.Fatal(err)
					}
					r := cached.New(coll)
					start(t, r)
					for _, fromMemory := range []bool{false, true} {
						find(t, r, 1, 1, fromMemory)
						find(t, r, 2, 2, fromMemory)
					}
					if err := write(t.Context(), other, allium.CollectionOf[counter](other.Database("app"), "counters")); err != nil {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Second) // a stream that ended has begun anew; less than MaxAge
					for range 2 {
						want, wantErr := coll.FindOne(t.Context(), byID(1))
						got, err := r.Find(t.Context(), 1)
						if !reflect.DeepEqual(got, want) || !errors.Is(err, wantErr) {
							t.Errorf("%v, %v; FindOne returns %v, %v", got, err, want, wantErr)
						}
					}
					if _, err := coll.FindOne(t.Context(), byID(2)); err == nil {
						find(t, r, 2, 2, true)
					}
				})
			})
		}
	}
}

// TestReadAndEvent: a read that is under way while its document changes is not kept, whatever it
// returns, and those who ask behind the event do not wait for it. Nor is one that was begun before
// the stream was opened: the event may have been missed.
func TestReadAndEvent(t *testing.T) {
	for _, way := range []string{"event", "Forget", "new stream"} {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
			holds := []chan struct{}{make(chan struct{}), make(chan struct{})}
			var finds atomic.Int64
			c := connect(t, d, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
				Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
					if e.CommandName == "find" {
						if n := finds.Add(1); n <= 2 {
							<-holds[n-1]
						}
					}
				}}})
			coll := allium.CollectionOf[counter](c.Database("app"), "counters")
			if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
				t.Fatal(err)
			}
			r := cached.New(coll)
			start(t, r)
			var wg sync.WaitGroup
			ask := func(want int) {
				wg.Go(func() {
					if got, err := r.Find(t.Context(), 1); err != nil || got.N != want {
						t.Errorf("%s: %v, %v, want %d", way, got, err, want)
					}
				})
				synctest.Wait()
			}
			ask(1) // reads
			ask(1) // waits for it
			if way == "new stream" {
				d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 286,
					Labels: []string{"NonResumableChangeStreamError"}})
				time.Sleep(2 * time.Second)
			}
			if _, err := coll.UpdateOne(t.Context(), byID(1), setN(2)); err != nil {
				t.Fatal(err)
			}
			if way == "Forget" {
				if err := r.Forget(1); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			ask(2) // reads
			close(holds[0])
			synctest.Wait()
			ask(2) // waits for the second
			if s := r.Stats(); s.Joined != 2 || s.Reads != 2 || s.Documents != 0 {
				t.Errorf("%s: %+v", way, s)
			}
			close(holds[1])
			wg.Wait()
			find(t, r, 1, 2, true)
		})
	}
}

// TestReadBehindEvents: a read sees all that the stream has delivered, also where its server does
// not know it yet. Without that, what it returns would be kept although its event came already.
func TestReadBehindEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		var mu sync.Mutex
		var finds []bson.Raw
		var begins bson.Timestamp
		c := connect(t, d, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStarted) {
				mu.Lock()
				defer mu.Unlock()
				switch e.CommandName {
				case "find":
					finds = append(finds, bson.Raw(string(e.Command)))
				case "aggregate":
					begins, _ = e.Command.Lookup("pipeline", "0", "$changeStream", "startAtOperationTime").Timestamp()
				}
			}}})
		coll := allium.CollectionOf[counter](c.Database("app"), "counters", allium.CollectionOptions{
			ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
		if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll)
		start(t, r)
		var last bson.Timestamp
		for n := range 3 {
			find(t, r, 1, n+1, false)
			level, _ := finds[n].Lookup("readConcern", "level").StringValue()
			after, _ := finds[n].Lookup("readConcern", "afterClusterTime").Timestamp()
			if level != "majority" || !after.After(last) {
				t.Errorf("read concern %v; before it was %v", finds[n].Lookup("readConcern"), last)
			}
			if n == 0 && (after != begins || begins.IsZero()) {
				t.Errorf("the stream begins at %v, the first read is behind %v", begins, after)
			}
			last = after
			if _, err := coll.UpdateOne(t.Context(), byID(1), setN(n+2)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}

// TestRolledBack: what a failover undoes is never kept.
func TestRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		c := connect(t, d)
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll)
		start(t, r)
		held := d.Secondaries()
		for _, n := range held {
			n.HoldBack()
		}
		one := coll.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1}})
		if _, err := one.UpdateOne(t.Context(), byID(1), setN(2)); err != nil {
			t.Fatal(err)
		}
		find(t, r, 1, 1, false)
		find(t, r, 1, 1, true)
		old := d.Primary()
		old.Kill()
		for _, n := range held {
			n.CatchUp()
		}
		if err := old.Restart(); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if got, err := r.Find(t.Context(), 1); err == nil && got.N != 1 {
				t.Fatalf("%v was rolled back", got)
			}
			time.Sleep(200 * time.Millisecond)
		}
		find(t, r, 1, 1, true)
	})
}

// TestBounds: documents that were not read for the longest time go first, and none is kept longer
// than MaxAge.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := connect(t, d)
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		for id := range 10 {
			if _, err := coll.InsertOne(t.Context(), counter{id, id}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Database("app").Collection("counters").InsertOne(t.Context(),
			bson.D{{Key: "_id", Value: 99}, {Key: "n", Value: 99}, {Key: "text", Value: string(make([]byte, 2000))}}); err != nil {
			t.Fatal(err)
		}
		few := cached.New(coll, cached.Options{MaxDocuments: 3, MaxAge: time.Hour})
		start(t, few)
		for id := range 3 {
			find(t, few, id, id, false)
		}
		find(t, few, 0, 0, true)
		find(t, few, 3, 3, false) // 1 was not read for the longest time
		find(t, few, 0, 0, true)
		find(t, few, 2, 2, true)
		find(t, few, 1, 1, false)
		if s := few.Stats(); s.Documents != 3 {
			t.Errorf("%+v", s)
		}

		small := cached.New(coll, cached.Options{MaxBytes: 1000, MaxAge: 10 * time.Second})
		start(t, small)
		for id := range 10 {
			find(t, small, id, id, false)
		}
		if s := small.Stats(); s.Documents < 2 || s.Documents > 5 || s.Bytes > 1000 || s.Bytes < 500 {
			t.Errorf("%+v", s)
		}
		find(t, small, 99, 99, false) // larger than all that may be kept
		find(t, small, 99, 99, false)
		find(t, small, 9, 9, false)
		time.Sleep(10 * time.Second)
		find(t, small, 9, 9, true)
		time.Sleep(time.Nanosecond)
		find(t, small, 9, 9, false)
		if err := small.Forget(9); err != nil {
			t.Error(err)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Block: 6 * time.Second})
		find(t, small, 9, 9, false) // it may be as old as its read
		time.Sleep(5 * time.Second)
		find(t, small, 9, 9, false)
		if err := small.Forget(9); err != nil {
			t.Error(err)
		}
		if s := small.Stats(); s.Documents != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestWithoutStream: where nothing is heard of changes, documents are read through.
func TestWithoutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := connect(t, d)
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll, cached.Options{MaxAge: time.Hour})
		find(t, r, 1, 1, false)
		find(t, r, 1, 1, false) // Run was not called
		stop := start(t, r)
		find(t, r, 1, 1, false)
		find(t, r, 1, 1, true)
		if err := r.Run(t.Context()); err == nil {
			t.Error("Run works twice")
		}
		time.Sleep(40 * time.Second)
		find(t, r, 1, 1, true)
		if _, err := r.Find(allium.WithSession(t.Context(), session(t, c)), 1); err != nil || r.Stats().Reads != 4 {
			t.Errorf("in a session: %v, %+v", err, r.Stats())
		}

		// Events are a sign of life, too.
		for n := range 100 {
			if _, err := coll.UpdateOne(t.Context(), byID(2), setN(n), allium.UpdateOptions{Upsert: true}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 10)
		}
		find(t, r, 1, 1, true)

		// The server says nothing, and then goes on.
		d.FailCommand(mongotest.Fail{Commands: []string{"getMore", "aggregate"}, Block: time.Hour})
		time.Sleep(4 * time.Second)
		find(t, r, 1, 1, true)
		time.Sleep(3 * time.Second)
		find(t, r, 1, 1, false)
		d.ClearFailures()
		time.Sleep(20 * time.Second)
		find(t, r, 1, 1, true)

		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		find(t, r, 1, 1, false)
		if s := r.Stats(); s.Following || s.Documents != 0 {
			t.Errorf("%+v", s)
		}
		start(t, r)
		find(t, r, 1, 1, false)
		find(t, r, 1, 1, true)
	})
}

func session(t *testing.T, c *allium.Client) *allium.Session {
	s, err := c.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.End(context.Background()) })
	return s
}

// TestEnds: nothing stays behind at the server when Run ends.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()))
		r := cached.New(allium.CollectionOf[counter](c.Database("app"), "counters"))
		stop := start(t, r)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		time.Sleep(2 * time.Second) // a getMore that waits ends in a second
		status, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}})
		if open, ok := status.Lookup("metrics", "cursor", "open", "total").AsInt64(); err != nil || !ok || open != 0 {
			t.Errorf("%d cursors are open, %v", open, err)
		}
	})
}

// TestNoStreams: Run says that a deployment has no change streams, and Find works all the same.
func TestNoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.Standalone(), mongotest.InMemory()))
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll)
		var server *mongoerr.ServerError
		if err := r.Run(t.Context()); !errors.As(err, &server) {
			t.Errorf("Run returned %v", err)
		}
		find(t, r, 1, 1, false)
	})
}

// TestStreamBreaks: whatever becomes of the stream, Find returns nothing wrong, and documents are
// kept again when it is back.
func TestStreamBreaks(t *testing.T) {
	for name, f := range map[string]mongotest.Fail{
		"connection": {Commands: []string{"getMore"}, Times: 1, CloseConnection: true},
		"killed":     {Commands: []string{"getMore"}, Times: 1, Code: 43},
		"lost":       {Commands: []string{"getMore"}, Times: 1, Code: 286, Labels: []string{"NonResumableChangeStreamError"}},
		"fatal":      {Commands: []string{"getMore"}, Times: 1, Code: 280, Labels: []string{"NonResumableChangeStreamError"}},
		"for long":   {Commands: []string{"getMore", "aggregate"}, Times: 12, CloseConnection: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
				c := connect(t, d)
				coll := allium.CollectionOf[counter](c.Database("app"), "counters")
				if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
					t.Fatal(err)
				}
				r := cached.New(coll)
				start(t, r)
				find(t, r, 1, 1, false)
				d.FailCommand(f)
				if _, err := coll.UpdateOne(t.Context(), byID(1), setN(2)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute - time.Second)
				find(t, r, 1, 2, false)
				find(t, r, 1, 2, true)
			})
		})
	}
}

// TestRefused: an error that does not mend itself ends Run.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := connect(t, d)
		r := cached.New(allium.CollectionOf[counter](c.Database("app"), "counters"))
		d.FailCommand(mongotest.Fail{Commands: []string{"aggregate"}, Code: 13})
		var server *mongoerr.ServerError
		if err := r.Run(t.Context()); !errors.As(err, &server) || server.Code != 13 {
			t.Errorf("Run returned %v", err)
		}
		if r.Stats().Following {
			t.Error("the reader follows")
		}
	})
}

// TestOtherIDs: where an _id is equal to another one only for the server, it is not kept, since its
// events have the other one.
func TestOtherIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()))
		db := c.Database("app")
		if err := db.CreateCollection(t.Context(), "counters", allium.CreateCollectionOptions{
			Collation: &allium.Collation{Locale: "en", Strength: 2}}); err != nil {
			t.Fatal(err)
		}
		coll := allium.CollectionOf[counter](db, "counters")
		one, _ := bson.ParseDecimal128("1")
		if _, err := coll.InsertMany(t.Context(), []counter{{"ada", 1}, {one, 2}, {int64(3), 3}, {bson.D{{Key: "a", Value: 1}}, 4}}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll)
		start(t, r)
		for range 2 {
			find(t, r, "ADA", 1, false)
			find(t, r, 1, 2, false)
			find(t, r, one, 2, false)
			find(t, r, bson.D{{Key: "a", Value: 1}}, 4, false)
		}
		find(t, r, "ada", 1, false)
		find(t, r, "ada", 1, true)
		find(t, r, 3.0, 3, false)
		find(t, r, int32(3), 3, true)
		for range 2 {
			if _, err := r.Find(t.Context(), 17); !errors.Is(err, mongoerr.ErrNoDocuments) {
				t.Error(err)
			}
		}
		if err := r.Forget("ada", make(chan int), 3); err == nil || r.Stats().Documents != 0 {
			t.Errorf("%v, %+v", err, r.Stats())
		}
		if _, err := r.Find(t.Context(), make(chan int)); err == nil {
			t.Error("a channel is an _id")
		}
	})
}

// TestScope: a document that leaves the scope is not found any more, as with FindOne.
func TestScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()))
		all := allium.CollectionOf[counter](c.Database("app"), "counters")
		if _, err := all.InsertMany(t.Context(), []counter{{1, 1}, {2, 2}}); err != nil {
			t.Fatal(err)
		}
		r := cached.New(all.Scoped(allium.Scope{Filter: bson.D{{Key: "n", Value: 1}}}))
		start(t, r)
		find(t, r, 1, 1, false)
		find(t, r, 1, 1, true)
		if _, err := r.Find(t.Context(), 2); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Error(err)
		}
		if _, err := all.UpdateOne(t.Context(), byID(1), setN(3)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, err := r.Find(t.Context(), 1); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// fragile is a document whose method does what the test says.
type fragile struct{ raw bson.Raw }

var decoding func()

func (f *fragile) UnmarshalBSON(b []byte) error {
	decoding()
	f.raw = b
	for i := range b {
		b[i] ^= 0xff // its own
	}
	return nil
}

// TestProgramsCode: a method that panics, changes what it is given or fails is its caller's alone.
func TestProgramsCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := func() {}
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()), allium.ClientOptions{
			CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
				if e.CommandName == "find" {
					leave()
				}
			}}})
		coll := allium.CollectionOf[fragile](c.Database("app"), "counters")
		if _, err := allium.As[bson.D](coll).InsertOne(t.Context(), byID(1)); err != nil {
			t.Fatal(err)
		}
		r := cached.New(coll)
		start(t, r)
		want, err := bson.Marshal(byID(1))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] ^= 0xff
		}
		for i, do := range []func(){func() {}, func() { panic("decoding") }, func() {}, func() {}} {
			decoding = do
			func() {
				defer func() {
					if p := recover(); (p != nil) != (i == 1) {
						t.Errorf("call %d: panic %v", i, p)
					}
				}()
				got, err := r.Find(t.Context(), 1)
				if err != nil || string(got.raw) != string(want) {
					t.Errorf("%x, %v, want %x", got.raw, err, want)
				}
			}()
		}
		odd := cached.New(allium.CollectionOf[struct {
			ID string `bson:"_id"`
		}](c.Database("app"), "counters"))
		start(t, odd)
		for range 2 {
			var decode *mongoerr.DecodeError
			if _, err := odd.Find(t.Context(), 1); !errors.As(err, &decode) || decode.Namespace != "app.counters" {
				t.Error(err)
			}
		}

		// A listener leaves while others wait for the read.
		for _, way := range []func(){func() { panic("listener") }, runtime.Goexit} {
			if err := r.Forget(1); err != nil {
				t.Fatal(err)
			}
			block := make(chan struct{})
			var left atomic.Bool
			leave = func() {
				if left.CompareAndSwap(false, true) {
					<-block
					way()
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { recover() }()
				r.Find(t.Context(), 1)
			})
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() {
				if _, err := r.Find(t.Context(), 1); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := r.Find(ctx, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("a call whose context ended: %v", err)
				}
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
			close(block)
			wg.Wait()
		}
	})
}

// TestOptionsAreCopied: what a program hands over it may change afterwards.
func TestOptionsAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()))
		coll := allium.CollectionOf[counter](c.Database("app"), "counters")
		type number struct{ N int }
		codecs, err := bson.NewCodecs(bson.CodecFor(
			func(dst []byte, n number) (bson.Type, []byte, error) {
				return bson.TypeInt64, bson.AppendInt64Value(dst, int64(n.N)), nil
			},
			func(v bson.RawValue) (number, error) { n, _ := v.AsInt64(); return number{int(n)}, nil }))
		if err != nil {
			t.Fatal(err)
		}
		o := &bson.Options{Codecs: codecs}
		r := cached.New(coll, cached.Options{BSON: o})
		*o = bson.Options{}
		if _, err := coll.InsertOne(t.Context(), counter{1, 1}); err != nil {
			t.Fatal(err)
		}
		find(t, r, number{1}, 1, false)
	})
}
