package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The documented loop over a change stream gets through every error that says that time was up: the
// stream resumes, and misses nothing.
func TestWatchOutlivesTimeouts(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		o     allium.ClientOptions
		begin func(d *mongotest.Deployment) (end func())
		watch allium.WatchOptions
	}{
		"an outage longer than the selection timeout": {allium.ClientOptions{ServerSelectionTimeout: new(300 * ms)}, func(d *mongotest.Deployment) func() {
			d.Node(0).Kill()
			return func() {
				if err := d.Node(0).Restart(); err != nil {
					panic(err)
				}
			}
		}, allium.WatchOptions{}},
		"MaxTimeMSExpired": {allium.ClientOptions{}, failing(mongotest.Fail{Commands: []string{"getMore"}, Code: 50, Block: 10 * ms}), allium.WatchOptions{}},
		"ExceededTimeLimit": {allium.ClientOptions{}, failing(mongotest.Fail{Commands: []string{"getMore"}, Code: 262, Labels: []string{}, Block: 10 * ms}),
			allium.WatchOptions{}},
		"both commands": {allium.ClientOptions{}, failing(mongotest.Fail{Commands: []string{"getMore", "aggregate"}, Code: 50, Block: 10 * ms}), allium.WatchOptions{}},
		"a socket": {allium.ClientOptions{SocketTimeout: new(100 * ms)}, failing(mongotest.Fail{Commands: []string{"getMore", "aggregate"}, Block: 200 * ms}),
			allium.WatchOptions{MaxAwaitTime: ms}},
		"a Timeout": {allium.ClientOptions{Timeout: new(100 * ms)}, failing(mongotest.Fail{Commands: []string{"getMore", "aggregate"}, Block: 200 * ms}),
			allium.WatchOptions{MaxAwaitTime: ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, tc.o, mongotest.ReplicaSet(1))
				if err := r.InsertOne(t); err != nil {
					t.Fatal(err)
				}
				s, err := r.Coll.Watch(t.Context(), nil, tc.watch)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close(context.Background())
				if _, err := r.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil || !s.Next(t.Context()) {
					t.Fatal(err, s.Err())
				}
				end := tc.begin(r.Deployment)
				time.AfterFunc(3*time.Second, end)
				inserted := make(chan error, 1) // the event may come before the insert is answered
				time.AfterFunc(5*time.Second, func() {
					_, err := r.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}})
					inserted <- err
				})
				start, n := time.Now(), 0
				for ; !s.Next(t.Context()); n++ {
					if !mongoerr.IsTimeout(s.Err()) {
						t.Fatalf("after %v: %v", time.Since(start), s.Err())
					}
					if time.Since(start) > time.Minute || n > 1000 {
						t.Fatalf("no event in %v and %d calls: %v", time.Since(start), n, s.Err())
					}
				}
				if err := <-inserted; err != nil {
					t.Error(err)
				}
				if id := s.Current().DocumentKey.Lookup("_id").String(); id != "2" {
					t.Errorf("the event is of %s, want 2", id)
				}
				if n == 0 {
					t.Error("no call has timed out")
				}
			})
		})
	}
}

// failing returns what sets a fail point, and ends it.
func failing(f mongotest.Fail) func(d *mongotest.Deployment) func() {
	return func(d *mongotest.Deployment) func() {
		d.FailCommand(f)
		return d.ClearFailures
	}
}

// An error that says that time was up is not that of a stream or cursor that has been closed, and
// would not go on.
func TestClosedAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		stream, cur := watchCapped(t, r)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if stream.Next(ctx) || cur.Next(ctx) || !mongoerr.IsTimeout(stream.Err()) || !mongoerr.IsTimeout(cur.Err()) {
			t.Fatal(stream.Err(), cur.Err())
		}
		stream.Close(t.Context())
		cur.Close(t.Context())
		if stream.Next(t.Context()) || stream.Err() == nil || mongoerr.IsTimeout(stream.Err()) {
			t.Errorf("stream: %v", stream.Err())
		}
		if cur.Next(t.Context()) || cur.Err() == nil || mongoerr.IsTimeout(cur.Err()) {
			t.Errorf("cursor: %v", cur.Err())
		}
	})
}

// watchCapped opens a change stream and a cursor that waits over an empty capped collection, the
// rig's own.
func watchCapped(t *testing.T, r *rig.Retry) (*allium.ChangeStream[bson.D], *allium.Cursor[bson.D]) {
	t.Helper()
	if err := r.Client.Database("db").CreateCollection(t.Context(), "coll", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
		t.Fatal(err)
	}
	stream, err := r.Coll.Watch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{CursorType: allium.CursorTailableAwait})
	if err != nil || !cur.Next(t.Context()) {
		t.Fatal(err)
	}
	return stream, cur
}

// A TailableAwait cursor whose Next timed out goes on with the next one, and no document is lost:
// neither when the server answers between the two, nor when nothing was sent.
func TestTailingAfterTimeouts(t *testing.T) {
	const ms = time.Millisecond
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1), "load balancer": mongotest.LoadBalanced(1)} {
		for _, o := range []allium.FindOptions{
			{CursorType: allium.CursorTailableAwait},
			{CursorType: allium.CursorTailableAwait, MaxAwaitTime: 70 * ms},
			{CursorType: allium.CursorTailableAwait, Timeout: new(150 * ms)},
			{CursorType: allium.CursorTailable},
		} {
			t.Run(fmt.Sprintf("%s, type %v, wait %v, timeout %v", name, o.CursorType, o.MaxAwaitTime, o.Timeout != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rig.NewRetry(t, allium.ClientOptions{MaxPoolSize: new(3)}, topology)
					if err := r.Client.Database("db").CreateCollection(t.Context(), "coll", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
						t.Fatal(err)
					}
					const docs = 40
					insert := func(i int) {
						if _, err := r.Coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
							t.Error(err)
						}
					}
					insert(0)
					r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Block: 30 * ms}) // so that Tailable ones time out, too
					cur, err := r.Coll.Find(t.Context(), bson.D{}, o)
					if err != nil {
						t.Fatal(err)
					}
					defer cur.Close(context.Background())
					go func() {
						for i := 1; i < docs; i++ {
							time.Sleep(time.Duration(i*37%190) * ms)
							insert(i)
						}
					}()
					var got []int32
					timeouts := 0
					for start := time.Now(); len(got) < docs; {
						if time.Since(start) > time.Minute {
							t.Fatalf("documents %v in %v: %v", got, time.Since(start), cur.Err())
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(timeouts*13%80)*ms)
						if cur.Next(ctx) {
							n, _ := cur.Current()[0].Value.(int32)
							got = append(got, n)
						} else if cur.Err() != nil {
							timeouts++
							if !mongoerr.IsTimeout(cur.Err()) || cur.ID() == 0 {
								t.Fatalf("documents %v, then %v, id %d", got, cur.Err(), cur.ID())
							}
						}
						cancel()
					}
					if !slices.IsSorted(got) || got[0] != 0 || got[docs-1] != docs-1 {
						t.Errorf("documents %v", got)
					}
					if timeouts == 0 {
						t.Error("no Next has timed out")
					}
					time.Sleep(5 * time.Second)
					cur.Close(t.Context())
					if out, in := len(r.Events("out")), len(r.Events("in")); out != in {
						t.Errorf("%d connections were checked out, %d returned", out, in)
					}
				})
			})
		}
	}
}

// A tailable cursor whose reply is lost has ended: its ID is 0, and its error stays.
func TestTailingEnds(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		o    allium.ClientOptions
		fail mongotest.Fail
	}{
		"a socket timeout":     {allium.ClientOptions{SocketTimeout: new(100 * ms)}, mongotest.Fail{Commands: []string{"getMore"}, Block: 300 * ms}},
		"a broken connection":  {allium.ClientOptions{}, mongotest.Fail{Commands: []string{"getMore"}, CloseConnection: true}},
		"MaxTimeMSExpired":     {allium.ClientOptions{}, mongotest.Fail{Commands: []string{"getMore"}, Code: 50}},
		"an error of a server": {allium.ClientOptions{}, mongotest.Fail{Commands: []string{"getMore"}, Code: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, tc.o, mongotest.ReplicaSet(1))
				_, cur := watchCapped(t, r)
				r.Deployment.FailCommand(tc.fail)
				r.Reset()
				if cur.Next(t.Context()) || cur.Err() == nil || cur.ID() != 0 {
					t.Fatalf("%v, id %d", cur.Err(), cur.ID())
				}
				if got := r.Events("started killCursors"); len(got) != 1 && !tc.fail.CloseConnection { // then the pool is cleared
					t.Errorf("%d killCursors", len(got))
				}
				err := cur.Err()
				r.Deployment.ClearFailures()
				if cur.Next(t.Context()) || cur.Err() != err {
					t.Errorf("then %v", cur.Err())
				}
			})
		})
	}
}

// The error of a call that took several commands tells how long the call took, not the last of
// them, and whose limit it was.
func TestElapsedIsTheCalls(t *testing.T) {
	const ms = time.Millisecond
	type rigged = func(t *testing.T, ctx context.Context, r *rig.Retry, timeout *time.Duration) error
	for name, call := range map[string]rigged{
		"change stream": func(t *testing.T, ctx context.Context, r *rig.Retry, timeout *time.Duration) error {
			s, err := r.Coll.Watch(t.Context(), nil, allium.WatchOptions{Timeout: timeout, MaxAwaitTime: 10 * ms})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			s.Next(ctx)
			return s.Err()
		},
		"change stream that resumes": func(t *testing.T, ctx context.Context, r *rig.Retry, timeout *time.Duration) error {
			s, err := r.Coll.Watch(t.Context(), nil, allium.WatchOptions{Timeout: timeout, MaxAwaitTime: 10 * ms})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Code: 7, Labels: []string{"ResumableChangeStreamError"}, Block: 70 * ms})
			s.Next(ctx)
			return s.Err()
		},
		"tailable cursor": func(t *testing.T, ctx context.Context, r *rig.Retry, timeout *time.Duration) error {
			cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{CursorType: allium.CursorTailableAwait, Timeout: timeout, MaxAwaitTime: 10 * ms})
			if err != nil || !cur.Next(t.Context()) {
				t.Fatal(err)
			}
			defer cur.Close(t.Context())
			cur.Next(ctx)
			return cur.Err()
		},
	} {
		for _, by := range []string{"timeout", "deadline"} {
			t.Run(name+", "+by, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
					if err := r.Client.Database("db").CreateCollection(t.Context(), "coll", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); err != nil {
						t.Fatal(err)
					}
					if err := r.InsertOne(t); err != nil {
						t.Fatal(err)
					}
					r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Block: 70 * ms})
					ctx, timeout, source := t.Context(), new(200*ms), mongoerr.SourceOperation
					if by == "deadline" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, 200*ms)
						defer cancel()
						timeout, source = nil, mongoerr.SourceContext
					}
					e := rig.WantTimeout(t, call(t, ctx, r, timeout))
					// A pause of random length may leave too little time for another command:
					// then the call ends a moment early.
					if e.Elapsed < 150*ms || e.Elapsed > 200*ms || e.Source != source || !strings.Contains(e.Error(), e.Elapsed.Round(time.Millisecond).String()) {
						t.Errorf("%v by %q: %v", e.Elapsed, e.Source, e)
					}
				})
			})
		}
	}
	t.Run("cursor", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
			if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
				t.Fatal(err)
			}
			r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find", "getMore"}, Block: 70 * ms})
			cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(1)), Timeout: new(200 * ms)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cur.All(t.Context())
			if e := rig.WantTimeout(t, err); e.Elapsed < 130*ms || e.Elapsed > 200*ms {
				t.Errorf("%v: %v", e.Elapsed, err)
			}
		})
	})
}

// An operation whose encoder gives up because the context has ended says so as others do, with the
// phase, wherever it encodes a value of the program's; an error of another kind stays what it is.
func TestContextEndsWhileEncoding(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	coll := allium.CollectionOf[any](client.Database("db"), "c")
	// A cursor has a second batch.
	if _, err := coll.InsertMany(t.Context(), []any{bson.D{}, bson.D{}, bson.D{}}); err != nil {
		t.Fatal(err)
	}
	own := errors.New("not for me")
	for _, place := range encodingPlaces {
		run := func(fail error) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			return place.encode(ctx, coll, func(doc bson.D) any {
				return hooked{doc, func() error {
					cancel()
					if fail != nil {
						return fail
					}
					return fmt.Errorf("looking something up: %w", ctx.Err())
				}}
			})
		}
		err := run(nil)
		if e, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || e.Phase != mongoerr.PhaseEncoding || !e.Canceled() || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", place.name, err)
		}
		err = run(own)
		if e, ok := errors.AsType[*mongoerr.TimeoutError](err); ok || !errors.Is(err, own) {
			t.Errorf("%s, with an error of its own: %v, %v", place.name, err, e)
		}
	}
}
