package prose

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Client Side Operations Timeout. Not here: 3 is in package
// encryption, 6 and 7 are in package gridfs.

// Prose tests 1 and 11: the timeout holds for all messages of a write together.
func TestProseTimeout1MultiBatch(t *testing.T) {
	norace.Skip(t, rig.Huge)
	for _, command := range []string{"insert", "bulkWrite"} {
		t.Run(command, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{Timeout: new(2 * time.Second)}, mongotest.Standalone())
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 2, Block: 1010 * time.Millisecond})
				start := time.Now()
				var err error
				if command == "insert" {
					docs := make([]bson.D, 50)
					text := strings.Repeat("a", 1<<20)
					for i := range docs {
						docs[i] = bson.D{{Key: "x", Value: text}}
					}
					_, err = r.Coll.InsertMany(t.Context(), docs)
				} else {
					doc := bson.D{{Key: "a", Value: strings.Repeat("b", 16<<20-500)}}
					var writes []allium.WriteModel
					for range 48_000_000/(16<<20) + 1 + 1 {
						writes = append(writes, r.Coll.InsertOneModel(doc))
					}
					_, err = r.Client.BulkWrite(t.Context(), writes)
				}
				rig.WantTimeout(t, err)
				if n := len(r.Events("started " + command)); n != 2 {
					t.Errorf("%d commands were sent, want 2", n)
				}
				if d := time.Since(start); d != 2*time.Second {
					t.Errorf("it took %v, want 2s", d)
				}
			})
		})
	}
}

// Prose test 2: a mongocryptd is told of no time, as it would take that for the command's own. Any
// other server is.
func TestProseTimeout2Cryptd(t *testing.T) {
	for _, cryptd := range []bool{false, true} {
		hello := fakeserver.Hello(func(dst []byte) []byte { return bson.AppendBool(dst, "iscryptd", cryptd) })
		pings := make(chan bool, 1) // with maxTimeMS
		s := rig.StartFakeWith(t, hello, func(r *fakeserver.Request) {
			if r.Command == "ping" {
				pings <- !r.Body.Lookup("maxTimeMS").IsZero()
			}
			r.Reply(fakeserver.OK())
		})
		var started bson.Raw
		client, err := allium.Open(s, allium.ClientOptions{Timeout: new(time.Second),
			CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) { started = bytes.Clone(e.Command) }}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if sent := <-pings; sent == cryptd || sent == started.Lookup("maxTimeMS").IsZero() {
			t.Errorf("iscryptd %v: maxTimeMS was sent: %v, the event is %s", cryptd, sent, started)
		}
		client.Close(context.Background())
	}
}

// Prose test 4: connections that are made in the background use the client's timeout for each
// command of the handshake.
func TestProseTimeout4BackgroundPooling(t *testing.T) {
	for _, tc := range []struct {
		name     string
		timeout  time.Duration
		commands []string
		ready    bool
	}{
		{"timeoutMS is used for handshake commands", 10 * time.Millisecond, []string{"saslContinue"}, false},
		{"timeoutMS is refreshed for each handshake command", 20 * time.Millisecond, []string{"hello", "isMaster", "saslContinue"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.Auth("u", "secret"), mongotest.InMemory())
				d.FailCommand(mongotest.Fail{Commands: tc.commands, Block: 15 * time.Millisecond, AppName: "background"})
				var created, ready, closed atomic.Int32
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, AppName: "background", Timeout: &tc.timeout, MinPoolSize: new(1),
					PoolMonitor: &event.PoolMonitor{
						ConnectionCreated: func(*event.ConnectionCreated) { created.Add(1) },
						ConnectionReady:   func(*event.ConnectionReady) { ready.Add(1) },
						ConnectionClosed:  func(*event.ConnectionClosed) { closed.Add(1) },
					}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				time.Sleep(100 * time.Millisecond)
				if created.Load() == 0 || (ready.Load() > 0) != tc.ready || (closed.Load() > 0) == tc.ready {
					t.Errorf("%d connections created, %d ready, %d closed", created.Load(), ready.Load(), closed.Load())
				}
			})
		})
	}
}

// Prose test 5, tailable cursors: the timeout holds for a Next as a whole, not for each getMore.
// The cursor waits for data: Next of one that does not sends one getMore only.
func TestProseTimeout5Tailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		if err := r.Client.Database("db").CreateCollection(t.Context(), "coll", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 500}); err != nil {
			t.Fatal(err)
		}
		if err := r.InsertOne(t); err != nil {
			t.Fatal(err)
		}
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Block: 15 * time.Millisecond})
		coll := r.Coll.With(allium.CollectionOptions{Timeout: new(20 * time.Millisecond)})
		cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{CursorType: allium.CursorTailableAwait, MaxAwaitTime: time.Millisecond})
		if err != nil || cur.ID() == 0 {
			t.Fatal("no cursor that is open:", err)
		}
		defer cur.Close(t.Context())
		if !cur.Next(t.Context()) {
			t.Fatal(cur.Err())
		}
		if got := r.Events("started getMore"); len(got) != 0 {
			t.Errorf("commands: %q", got)
		}
		start := time.Now()
		if cur.Next(t.Context()) {
			t.Fatal("there is another document")
		}
		rig.WantTimeout(t, cur.Err())
		if d := time.Since(start); d != 20*time.Millisecond {
			t.Errorf("it took %v, want 20ms", d)
		}
		if got := r.Events("started find", "started getMore"); len(got) != 3 {
			t.Errorf("commands: %q, want a find and two getMores", got)
		}
	})
}

// Prose test 5, change streams: the timeout holds for a Next as a whole, not for each getMore.
func TestProseTimeout5ChangeStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{Timeout: new(20 * time.Millisecond)}, mongotest.ReplicaSet(1))
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Block: 15 * time.Millisecond})
		stream, err := r.Coll.Watch(t.Context(), nil, allium.WatchOptions{MaxAwaitTime: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close(t.Context())
		if stream.ID() == 0 {
			t.Error("the stream has no cursor")
		}
		start := time.Now()
		if stream.Next(t.Context()) {
			t.Fatal("there is an event")
		}
		rig.WantTimeout(t, stream.Err())
		if d := time.Since(start); d != 20*time.Millisecond {
			t.Errorf("it took %v, want 20ms", d)
		}
		if got := r.Events("started aggregate", "started getMore"); len(got) != 3 {
			t.Errorf("commands: %q, want an aggregate and two getMores", got)
		}
	})
}

// Prose test 8: the lesser of timeout and selection timeout bounds selection, and then the
// handshake of a connection.
func TestProseTimeout8ServerSelection(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name               string
		timeout, selection *time.Duration
		source             mongoerr.Source // of the timeout that the error is, "" if it is none
	}{
		{"no timeoutMS", nil, new(10 * ms), ""},
		{"timeoutMS is lower", new(10 * ms), new(20 * ms), "the timeout of the client"},
		{"serverSelectionTimeoutMS is lower", new(20 * ms), new(10 * ms), "serverSelectionTimeoutMS"},
		{"timeoutMS is 0", new(0 * ms), new(10 * ms), "serverSelectionTimeoutMS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory())
				client, err := allium.Open("mongodb://invalid/", allium.ClientOptions{Dialer: d, Timeout: tc.timeout, ServerSelectionTimeout: tc.selection})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				start := time.Now()
				err = client.Ping(t.Context())
				var sel *mongoerr.SelectionError
				if !errors.As(err, &sel) {
					t.Errorf("want a selection error, got %v", err)
				}
				var timeout *mongoerr.TimeoutError
				if errors.As(err, &timeout) != (tc.source != "") {
					t.Errorf("the error is %v", err)
				} else if timeout != nil && (timeout.Source != tc.source || !strings.Contains(err.Error(), sel.Error()) || timeout.Elapsed != 10*ms) {
					t.Errorf("source is %q after %v: %v", timeout.Source, timeout.Elapsed, err)
				}
				if d := time.Since(start); d != 10*ms {
					t.Errorf("it took %v, want 10ms", d)
				}
			})
		})
	}
	for _, tc := range []struct {
		name               string
		timeout, selection time.Duration
		source             mongoerr.Source
	}{
		{"timeoutMS is lower, handshake", 10 * ms, 20 * ms, "the timeout of the collection"},
		{"serverSelectionTimeoutMS is lower, handshake", 20 * ms, 10 * ms, "serverSelectionTimeoutMS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.Auth("u", "secret"), mongotest.InMemory())
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, ServerSelectionTimeout: &tc.selection})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				synctest.Wait() // the server is known, and there is no connection yet
				d.FailCommand(mongotest.Fail{Commands: []string{"saslContinue"}, Times: 1, Block: 15 * ms})
				coll := client.Database("db").Collection("coll").With(allium.CollectionOptions{Timeout: &tc.timeout})
				start := time.Now()
				_, err = coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
				if e := rig.WantTimeout(t, err); e.Source != tc.source {
					t.Errorf("source is %q, want %q: %v", e.Source, tc.source, err)
				}
				if d := time.Since(start); d != 10*ms {
					t.Errorf("it took %v, want 10ms", d)
				}
			})
		})
	}
}

// Prose test 9: ending a session with an open transaction takes no longer than the timeout. End
// returns no error: that of an abort is of no use to anybody.
func TestProseTimeout9EndSession(t *testing.T) {
	timeout := new(150 * time.Millisecond)
	for _, level := range []string{"client", "session", "operation"} {
		t.Run(level, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var co allium.ClientOptions
				var so allium.SessionOptions
				var eo allium.EndSessionOptions
				switch level {
				case "client":
					co.Timeout = timeout
				case "session":
					so.Timeout = timeout
				case "operation":
					eo.Timeout = timeout
				}
				r := rig.NewRetry(t, co, mongotest.ReplicaSet(1))
				s, err := r.Client.StartSession(so)
				if err != nil {
					t.Fatal(err)
				}
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"abortTransaction"}, Times: 1, Block: 200 * time.Millisecond})
				if err := s.StartTransaction(); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{{Key: "x", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				s.End(t.Context(), eo)
				if d := time.Since(start); d != *timeout {
					t.Errorf("it took %v, want %v", d, *timeout)
				}
				if got := r.Events("started abort", "failed abort"); len(got) != 2 {
					t.Errorf("events: %q", got)
				}
			})
		})
	}
}

// Prose test 10: the abort after a callback that timed out has the whole timeout again.
func TestProseTimeout10Transact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{Timeout: new(150 * time.Millisecond)}, mongotest.ReplicaSet(1))
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"insert", "abortTransaction"}, Times: 2, Block: 200 * time.Millisecond})
		start := time.Now()
		err := r.Client.Transact(t.Context(), func(ctx context.Context) error {
			_, err := r.Coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
			return err
		})
		rig.WantTimeout(t, err)
		if d := time.Since(start); d != 300*time.Millisecond {
			t.Errorf("it took %v, want twice the timeout", d)
		}
		var got []string
		for _, e := range r.Events("started", "failed") {
			got = append(got, e[:strings.LastIndexByte(e, ' ')])
		}
		if want := []string{"started insert", "failed insert", "started abortTransaction", "failed abortTransaction"}; !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
	})
}

// The specification's unit tests: which timeouts bound a checkout, with a timeoutMS and without.
func TestTimeoutOfCheckout(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name    string
		timeout *time.Duration
		want    time.Duration
		source  mongoerr.Source
	}{
		{"waitQueueTimeoutMS without a timeoutMS", nil, 30 * ms, "waitQueueTimeoutMS"},
		{"the remaining timeoutMS", new(50 * ms), 50 * ms, "the timeout of the collection"},
		{"serverSelectionTimeoutMS", new(500 * ms), 100 * ms, "serverSelectionTimeoutMS"},
		{"serverSelectionTimeoutMS with a timeoutMS of 0", new(0 * ms), 100 * ms, "serverSelectionTimeoutMS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{MaxPoolSize: new(1), WaitQueueTimeout: new(30 * ms), ServerSelectionTimeout: new(100 * ms)}, mongotest.ReplicaSet(1))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Block: time.Second})
				go r.FindOne(t)
				synctest.Wait() // it has the only connection
				coll := r.Coll.With(allium.CollectionOptions{Timeout: tc.timeout})
				start := time.Now()
				_, err := coll.FindOne(t.Context(), bson.D{})
				if e := rig.WantTimeout(t, err); e.Phase != "connection checkout" || e.Source != tc.source {
					t.Errorf("phase %q, source %q, want %q: %v", e.Phase, e.Source, tc.source, err)
				}
				if d := time.Since(start); d != tc.want {
					t.Errorf("it took %v, want %v", d, tc.want)
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// The earlier of a Timeout and a context's deadline ends an operation, and the error says which;
// only a Timeout changes what is retried and sent.
func TestTimeoutAndDeadline(t *testing.T) {
	for _, tc := range []struct {
		name              string
		timeout, deadline time.Duration
		source            mongoerr.Source
		attempts          int
	}{
		{"timeout alone", time.Second, 0, "the timeout of the operation", 4},
		{"deadline alone", 0, time.Second, "", 2},
		{"timeout first", time.Second, 2 * time.Second, "the timeout of the operation", 4},
		{"deadline first", 2 * time.Second, time.Second, "the context's deadline", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 6, Block: 300 * time.Millisecond})
				ctx, o := t.Context(), allium.FindOneOptions{}
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				if tc.timeout > 0 {
					o.Timeout = &tc.timeout
				}
				_, err := r.Coll.FindOne(ctx, bson.D{}, o)
				if tc.source == "" {
					wantCode(t, err, 6) // the second error, long before the deadline
				} else if e := rig.WantTimeout(t, err); e.Source != tc.source || e.Elapsed != time.Second {
					t.Errorf("source %q after %v: %v", e.Source, e.Elapsed, err)
				}
				if n := len(r.Events("started find")); n != tc.attempts {
					t.Errorf("%d attempts, want %d", n, tc.attempts)
				}
			})
		})
	}
}

// A context's deadline adds no maxTimeMS to a command of the user's own, which may have one, and
// leaves the error of that one alone.
func TestDeadlineBesideMaxTimeOfCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := bson.D{{Key: "count", Value: "coll"}, {Key: "maxTimeMS", Value: 1000}}
		if _, err := r.Client.Database("db").RunCommand(ctx, cmd); err != nil {
			t.Fatal(err)
		}
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"count", "find"}, Times: 2, Code: 50})
		_, err := r.Client.Database("db").RunCommand(ctx, cmd)
		_, err2 := r.Coll.FindOne(ctx, bson.D{}, allium.FindOneOptions{MaxTime: time.Second})
		for _, err := range []error{err, err2} {
			var timeout *mongoerr.TimeoutError
			if wantCode(t, err, 50); errors.As(err, &timeout) {
				t.Errorf("the command's own limit is taken for the context's: %v", err)
			}
		}
	})
}

// The policy of reads: a rule, and a bound on the attempts.
func TestReadRetryPolicy(t *testing.T) {
	for _, tc := range []struct {
		policy   allium.ReadRetryPolicy
		attempts int
	}{
		{allium.ReadRetryPolicy{}, 2},
		{allium.ReadRetryPolicy{MaxAttempts: 3}, 3},
		{allium.ReadRetryPolicy{UntilSuccess: true, MaxAttempts: 7}, 7},
		{allium.ReadRetryPolicy{UntilSuccess: true}, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := rig.NewRetry(t, allium.ClientOptions{ReadRetryPolicy: tc.policy}, mongotest.ReplicaSet(1))
			r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 9, Code: 6})
			if err := r.FindOne(t); (err == nil) != (tc.attempts == 10) {
				t.Errorf("%+v: %v", tc.policy, err)
			}
			if n := len(r.Events("started find")); n != tc.attempts {
				t.Errorf("%+v: %d attempts, want %d", tc.policy, n, tc.attempts)
			}
		})
	}
	for _, p := range []allium.ReadRetryPolicy{{MaxAttempts: -1}} {
		if client, err := allium.Open("mongodb://localhost", allium.ClientOptions{ReadRetryPolicy: p}); err == nil {
			client.Close(t.Context())
			t.Errorf("%+v was accepted", p)
		}
	}
}
