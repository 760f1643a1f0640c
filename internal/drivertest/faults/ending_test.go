package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// hang makes a deployment answer none of these commands until release is called, and fail each
// getMore with a code that is not 0.
func hang(d *mongotest.Deployment, code int32, commands ...string) (release func()) {
	stop := make(chan struct{})
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch {
		case c.Name == "getMore" && code != 0:
			return rig.ErrorReply(code, map[int32]string{7: "ResumableChangeStreamError"}[code]), nil
		case slices.Contains(commands, c.Name):
			<-stop
		}
		return nil, nil
	})
	return func() { close(stop) }
}

// A call whose context has ended returns within a second, whatever the server does: what is left to
// do on the server does not hold it up. Closing the client waits for that, and returns by the end
// of its own context.
func TestNothingOutlivesItsContext(t *testing.T) {
	const ms = time.Millisecond
	seq := func(ctx context.Context, cur *allium.Cursor[bson.D]) (err error) {
		for _, err = range cur.Seq(ctx) {
		}
		return err
	}
	find := func(ctx context.Context, r *rig.Retry) (*allium.Cursor[bson.D], error) {
		return r.Coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	}
	for name, call := range map[string]func(ctx context.Context, r *rig.Retry) error{
		"All": func(ctx context.Context, r *rig.Retry) error {
			cur, err := find(ctx, r)
			if err == nil {
				_, err = cur.All(ctx)
			}
			return err
		},
		"Seq": func(ctx context.Context, r *rig.Retry) error {
			cur, err := find(ctx, r)
			if err == nil {
				err = seq(ctx, cur)
			}
			return err
		},
		"Batches": func(ctx context.Context, r *rig.Retry) error {
			cur, err := find(ctx, r)
			if err == nil {
				for _, err = range cur.Batches(ctx) {
				}
			}
			return err
		},
		"Close": func(ctx context.Context, r *rig.Retry) error {
			cur, err := find(ctx, r)
			if err != nil {
				return err
			}
			<-ctx.Done()
			cur.Close(ctx)
			return ctx.Err()
		},
		"Close while it waits": func(ctx context.Context, r *rig.Retry) error {
			cur, err := find(ctx, r)
			if err != nil {
				return err
			}
			cur.Close(ctx)
			return context.DeadlineExceeded
		},
		"a cursor in a session": func(ctx context.Context, r *rig.Retry) error {
			s, err := r.Client.StartSession()
			if err != nil {
				return err
			}
			defer s.End(ctx)
			ctx = allium.WithSession(ctx, s)
			cur, err := find(ctx, r)
			if err == nil {
				err = seq(ctx, cur)
			}
			return err
		},
		"a change stream": func(ctx context.Context, r *rig.Retry) error {
			s, err := r.Coll.Watch(ctx, nil)
			if err != nil {
				return err
			}
			for _, err = range s.Seq(ctx) {
			}
			return err
		},
		"a change stream that ends by an error": func(ctx context.Context, r *rig.Retry) error {
			s, err := r.Coll.Watch(ctx, nil)
			if err != nil {
				return err
			}
			s.Next(ctx)
			return s.Err()
		},
		"a change stream that resumes": func(ctx context.Context, r *rig.Retry) error {
			s, err := r.Coll.Watch(ctx, nil)
			if err != nil {
				return err
			}
			defer s.Close(ctx)
			s.Next(ctx)
			return s.Err()
		},
		"Transact": func(ctx context.Context, r *rig.Retry) error {
			return r.Client.Transact(ctx, func(ctx context.Context) error {
				_, err := r.Coll.InsertOne(ctx, bson.D{})
				cur, err2 := find(ctx, r)
				if err2 == nil {
					_, err2 = cur.All(ctx)
				}
				return errors.Join(err, err2)
			})
		},
		"End": func(ctx context.Context, r *rig.Retry) error {
			s, err := r.Client.StartSession()
			if err != nil {
				return err
			}
			if err := s.StartTransaction(); err != nil {
				return err
			}
			if _, err := r.Coll.InsertOne(allium.WithSession(ctx, s), bson.D{}); err != nil {
				return err
			}
			s.End(ctx)
			return ctx.Err()
		},
		"GridFS": func(ctx context.Context, r *rig.Retry) error {
			_, err := gridfs.NewBucket(r.Client.Database("db")).DownloadToStreamByName(ctx, "file", io.Discard)
			return err
		},
		"GridFS, an upload": func(ctx context.Context, r *rig.Retry) error {
			s, err := gridfs.NewBucket(r.Client.Database("db")).OpenUploadStream(ctx, "other")
			if err != nil {
				return err
			}
			defer s.Abort()
			for err == nil {
				_, err = s.Write(make([]byte, 1<<20))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "load balancer": mongotest.LoadBalanced(1)} {
				for _, timeout := range []*time.Duration{nil, new(time.Minute)} {
					synctest.Test(t, func(t *testing.T) {
						r := rig.NewRetry(t, allium.ClientOptions{Timeout: timeout}, topology)
						if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
							t.Fatal(err)
						}
						if strings.HasPrefix(name, "GridFS") {
							if _, err := gridfs.NewBucket(r.Client.Database("db")).UploadFromStream(t.Context(), "file", bytes.NewReader(make([]byte, 1<<20))); err != nil {
								t.Fatal(err)
							}
						}
						commands := []string{"getMore", "killCursors", "abortTransaction", "delete"}
						var code int32
						switch name {
						case "a change stream that ends by an error":
							code = 2
						case "a change stream that resumes":
							code = 7
						case "GridFS, an upload":
							commands = append(commands, "insert")
						}
						release := hang(r.Deployment, code, commands...)
						defer release()
						ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
						defer cancel()
						start := time.Now()
						err := call(ctx, r)
						if err == nil && name != "GridFS" { // all of the file has come
							t.Errorf("%s: no error", kind)
						}
						if d := time.Since(start); d > 200*ms+time.Second {
							t.Errorf("%s: it took %v, 200ms were asked for (%v)", kind, d, err)
						}
						closing, cancelClosing := context.WithTimeout(t.Context(), 300*ms)
						defer cancelClosing()
						start = time.Now()
						r.Client.Close(closing)
						if d := time.Since(start); d > 300*ms {
							t.Errorf("%s: Client.Close took %v, 300ms were asked for", kind, d)
						}
					})
				}
			}
		})
	}
}

// What a caller whose context has ended left to the background happens, and closing the client
// waits for it.
func TestCloseWaitsForTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
			t.Fatal(err)
		}
		cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		r.Reset()
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"killCursors"}, Block: 3 * time.Second, Times: 1})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		cur.Close(ctx)
		if d := time.Since(start); d > time.Second {
			t.Errorf("closing the cursor took %v", d)
		}
		if got := r.Events("succeeded killCursors"); len(got) != 0 {
			t.Fatalf("events %q: the test is about a server that is slow", got)
		}
		if err := r.Client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := r.Events("succeeded killCursors", "failed killCursors"); !slices.Equal(got, []string{"succeeded killCursors " + r.Deployment.Hosts()[0]}) {
			t.Errorf("events %q", got)
		}
		cur.Close(t.Context())
	})
}

// A server that could not be reached when a cursor was closed, or when a change stream resumed, is
// told to forget it when it is back: while the client goes on, or when it is closed.
func TestCursorsOfServersThatWereAway(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *rig.Retry){
		"the client goes on": func(t *testing.T, r *rig.Retry) {
			if err := r.Deployment.Node(0).AcceptConnections(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second) // a check of the server, and a few attempts
		},
		"the client is closed once the server is back": func(t *testing.T, r *rig.Retry) {
			if err := r.Deployment.Node(0).AcceptConnections(); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"the server stays away": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
					t.Fatal(err)
				}
				var open []*allium.Cursor[bson.D]
				for range 3 {
					cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
					if err != nil {
						t.Fatal(err)
					}
					open = append(open, cur)
				}
				s, err := r.Coll.Watch(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Reset()
				r.Deployment.Node(0).RefuseConnections()
				r.Deployment.Node(0).CloseConnections()
				synctest.Wait()
				// The stream tries to resume: its old cursor is one of those that are left.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if s.Next(ctx) {
					t.Fatal("an event of a server that is away")
				}
				s.Close(t.Context())
				for _, cur := range open {
					if err := cur.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if got := r.Events("started killCursors"); len(got) != 0 {
					t.Fatalf("events %q: the test is about a server that is away", got)
				}
				if end == nil {
					start := time.Now()
					if err := r.Client.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					if d := time.Since(start); d > time.Second {
						t.Errorf("closing the client took %v", d)
					}
					if got := r.Events("started killCursors"); len(got) != 0 {
						t.Errorf("events %q", got)
					}
					return
				}
				end(t, r)
				if got := r.Events("succeeded killCursors"); len(got) != 4 {
					t.Errorf("%d cursors were killed: %q", len(got), r.Events("succeeded killCursors", "failed killCursors"))
				}
			})
		})
	}
}

// Every Close of a client returns by the end of its own context, also one that waits for another.
func TestCloseByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))}); err != nil {
			t.Fatal(err)
		}
		defer hang(r.Deployment, 0, "killCursors", "endSessions", "hello")()
		first := make(chan error)
		go func() { first <- r.Client.Close(context.Background()) }()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := r.Client.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second Close: %v", err)
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("it took %v, 100ms were asked for", d)
		}
		if err := <-first; err != nil {
			t.Errorf("the first Close: %v", err)
		}
		if err := r.Client.Close(t.Context()); err != nil {
			t.Errorf("the third Close: %v", err)
		}
	})
}

// Many calls of Close at the same time, with contexts of every length and in any order, while the
// server answers nothing, cursors are open and others are being freed in the background.
func TestClosesByTheirContexts(t *testing.T) {
	const ms = time.Millisecond
	for name, limits := range map[string][]time.Duration{
		"longer and longer":   {0, 1 * ms, 50 * ms, 300 * ms, time.Second},
		"shorter and shorter": {900 * ms, 400 * ms, 90 * ms, 2 * ms, 0},
		"alike":               {70 * ms, 70 * ms, 70 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
					t.Fatal(err)
				}
				var open []*allium.Cursor[bson.D]
				for range 4 {
					cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
					if err != nil {
						t.Fatal(err)
					}
					open = append(open, cur)
				}
				defer hang(r.Deployment, 0, "killCursors", "endSessions", "hello", "find")()
				over, cancel := context.WithCancel(t.Context())
				cancel()
				open[0].Close(over)
				running := make(chan error)
				go func() { running <- rig.ErrorOf(r.Coll.FindOne(context.Background(), bson.D{})) }()
				synctest.Wait()

				began := time.Now()
				var calls sync.WaitGroup
				for _, limit := range limits {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					calls.Go(func() {
						err := r.Client.Close(ctx)
						if d := time.Since(began); d > limit {
							t.Errorf("a Close took %v, it had %v", d, limit)
						} else if err != nil && (d < limit || !errors.Is(err, context.DeadlineExceeded)) {
							t.Errorf("after %v of %v: %v", d, limit, err)
						} // at the limit itself, the client may just have closed
					})
				}
				calls.Wait()
				if err := r.Client.Close(t.Context()); err != nil {
					t.Errorf("the last Close: %v", err)
				}
				if err := <-running; !errors.Is(err, mongoerr.ErrClientClosed) {
					t.Errorf("an operation in progress: %v, want that the client is closed", err)
				}
			})
		})
	}
}

// A find that finds its client closed frees its cursor in the time that it has left, and not in
// that of a Close.
func TestFindWhileTheClientCloses(t *testing.T) {
	const limit time.Duration = 500 * time.Millisecond
	for name, o := range map[string]allium.ClientOptions{"context": {}, "timeout": {Timeout: new(limit)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, o, mongotest.ReplicaSet(1))
				if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
					t.Fatal(err)
				}
				find := func(ctx context.Context) error {
					_, err := r.Coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
					return err
				}
				if err := find(t.Context()); err != nil { // a cursor that Close takes time for
					t.Fatal(err)
				}
				stop := make(chan struct{})
				defer close(stop)
				r.Deployment.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					switch c.Name {
					case "find":
						time.Sleep(300 * time.Millisecond)
					case "killCursors":
						<-stop
					}
					return nil, nil
				})
				go func() {
					time.Sleep(100 * time.Millisecond)
					r.Client.Close(context.Background())
				}()
				ctx := t.Context()
				if o.Timeout == nil {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				}
				began := time.Now()
				err := find(ctx)
				if took := time.Since(began); took > limit || took < 300*time.Millisecond || !errors.Is(err, mongoerr.ErrClientClosed) {
					t.Errorf("after %v of %v: %v", took, limit, err)
				}
			})
		})
	}
}
