package prose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/session"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// Transactions, "Mongos Pinning Prose Tests".
func TestProseTransactionsUnpin(t *testing.T) {
	for name, inTxn := range map[string]bool{
		"1 a new transaction unpins the session":                     true,
		"2 an operation outside of a transaction unpins the session": false,
	} {
		t.Run(name, func(t *testing.T) {
			d := testdeploy.Start(t, testdeploy.Sharded(1, 2))
			log := &rig.Sent{}
			client := rig.Open(t, d.URI(), allium.ClientOptions{LocalThreshold: new(time.Second), CommandMonitor: log.Monitor()})
			coll := client.Database("test").Collection("test")
			for seen := 0; seen < 2; { // wait until both are known
				if err := client.Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
				seen = 0
				for _, s := range client.Topology().Servers {
					if s.Kind.String() == "Mongos" {
						seen++
					}
				}
			}
			if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			s := rig.StartSession(t, client)
			ctx := allium.WithSession(t.Context(), s)
			if err := s.StartTransaction(); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
				t.Fatal(err)
			}
			if err := s.CommitTransaction(t.Context()); err != nil {
				t.Fatal(err)
			}
			if session.FromContext(allium.WithSession(t.Context(), s)).Session.Transaction().Pinned() == nil {
				t.Error("the session is not pinned after the commit, which may have to be repeated")
			}
			log.Reset()
			for range 50 {
				if inTxn {
					if err := s.StartTransaction(); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := coll.FindOne(ctx, bson.D{}); err != nil {
					t.Fatal(err)
				}
				if inTxn {
					if err := s.CommitTransaction(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			addrs := map[string]bool{}
			for _, e := range log.Of("find") {
				addrs[e.Addr] = true
			}
			if len(addrs) != 2 {
				t.Errorf("all operations went to %v", addrs)
			}
		})
	}
}

// Transactions, "PoolClearedError Prose Test": a checkout that meets a pool which an operation's
// failure has cleared.
func TestProseTransactionsPoolCleared(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI(), allium.ClientOptions{MaxPoolSize: new(1), HeartbeatInterval: new(time.Hour)})
	coll := client.Database("test").Collection("test")
	if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	// The first insert holds the only connection until it breaks; the others wait for one.
	d.FailCommand(t, mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true, Block: 100 * time.Millisecond})
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		s := rig.StartSession(t, client)
		wg.Go(func() {
			if errs[i] = s.StartTransaction(); errs[i] == nil {
				_, errs[i] = coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{})
			}
		})
	}
	wg.Wait()
	cleared := 0
	for _, err := range errs {
		if err != nil && !mongoerr.HasLabel(err, "TransientTransactionError") {
			t.Errorf("no label: %v", err)
		}
		if errors.Is(err, mongoerr.ErrPoolCleared) {
			cleared++
		}
	}
	if cleared == 0 {
		t.Errorf("no operation met a cleared pool: %v", errs)
	}
}

// Transactions, "Options Inside Transaction Prose Tests", 1.0.
func TestProseTransactionsWriteConcernOfCollection(t *testing.T) {
	for name, kind := range map[string]testdeploy.Kind{"replicaset": testdeploy.ReplicaSet(1), "sharded": testdeploy.Sharded(1, 1), "load-balanced": testdeploy.LoadBalanced(1)} {
		t.Run(name, func(t *testing.T) {
			d := testdeploy.Start(t, kind)
			client := rig.Open(t, d.URI())
			db := client.Database("test")
			if err := db.CreateCollection(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			coll := db.Collection("test", allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()})
			s := rig.StartSession(t, client)
			if err := s.StartTransaction(); err != nil {
				t.Fatal(err)
			}
			ctx := allium.WithSession(t.Context(), s)
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: 1}}); err != nil {
				t.Fatal(err)
			}
			// So it is for all that write.
			if doc, err := coll.FindOneAndUpdate(ctx, bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}, allium.FindOneAndUpdateOptions{ReturnNew: true}); err != nil || len(doc) != 3 {
				t.Errorf("%v, %v", doc, err)
			}
			if name == "replicaset" { // a sharded cluster answers that a new collection is in its way
				if _, err := db.Collection("other", allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()}).CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}}); err != nil {
					t.Error(err)
				}
			}
			if err := s.CommitTransaction(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.End(t.Context())
			if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 1}}); err != nil || n != 1 {
				t.Errorf("%d documents, %v", n, err)
			}
		})
	}
}

// Every kind of write does without the write concern of its collection, database or client in a
// transaction, w: 0 included.
func TestTransactionIgnoresWriteConcerns(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	log := &rig.Sent{}
	client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: log.Monitor()})
	for name, wc := range map[string]*consistency.WriteConcern{"unacknowledged": consistency.Unacknowledged(), "majority": consistency.Majority()} {
		db := client.Database("test_"+name, allium.DatabaseOptions{WriteConcern: wc})
		coll := db.Collection("c")
		if err := client.Database("test_"+name).CreateCollection(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		filter := bson.D{{Key: "_id", Value: 1}}
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 2}}}}
		for what, do := range map[string]func(ctx context.Context) error{
			"findAndModify": func(ctx context.Context) error { _, err := coll.FindOneAndUpdate(ctx, filter, set); return err },
			"remove":        func(ctx context.Context) error { _, err := coll.FindOneAndDelete(ctx, filter); return err },
			"create":        func(ctx context.Context) error { return db.CreateCollection(ctx, "other") },
			"createIndexes": func(ctx context.Context) error {
				_, err := db.Collection("third").CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "x", Value: 1}}}})
				return err
			},
			"insert": func(ctx context.Context) error { _, err := coll.InsertMany(ctx, []bson.D{{}, {}}); return err },
			"update": func(ctx context.Context) error { _, err := coll.UpdateMany(ctx, filter, set); return err },
			"bulk": func(ctx context.Context) error {
				_, err := coll.BulkWrite(ctx, []allium.WriteModel{coll.DeleteOneModel(filter)})
				return err
			},
		} {
			s := rig.StartSession(t, client)
			if err := s.StartTransaction(); err != nil {
				t.Fatal(err)
			}
			ctx := allium.WithSession(t.Context(), s)
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
				t.Errorf("%s: insert: %v", name, err)
			}
			if err := do(ctx); err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
			if err := s.AbortTransaction(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for _, command := range []string{"insert", "findAndModify", "create", "createIndexes", "update", "delete"} {
		for _, e := range log.Of(command) {
			if !e.Command.Lookup("autocommit").IsZero() && !e.Command.Lookup("writeConcern").IsZero() {
				t.Errorf("%s", e.Command)
			}
		}
	}
}

// labelled is an error of the application's own that carries a label.
type labelled string

func (l labelled) Error() string              { return "labelled " + string(l) }
func (l labelled) HasLabel(label string) bool { return label == string(l) }
func (l labelled) ErrorLabels() []string      { return []string{string(l)} }

func TestProseConvenientAPI(t *testing.T) {
	t.Run("1 callback raises a custom error", func(t *testing.T) {
		d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
		client := rig.Open(t, d.URI())
		custom := errors.New("custom")
		calls := 0
		err := client.Transact(t.Context(), func(context.Context) error { calls++; return custom })
		if err != custom || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})

	t.Run("2 callback returns a value", func(t *testing.T) {
		// A value leaves the callback by a variable that it captures.
		d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
		client := rig.Open(t, d.URI())
		var value string
		if err := client.Transact(t.Context(), func(context.Context) error { value = "foo"; return nil }); err != nil || value != "foo" {
			t.Errorf("%q, %v", value, err)
		}
	})

	t.Run("3 retry timeout is enforced", func(t *testing.T) {
		for _, tc := range []struct {
			name, label string
			callback    error
			fail        mongotest.Fail
		}{
			{"callback", "TransientTransactionError", labelled("TransientTransactionError"), mongotest.Fail{}},
			{"commit, unknown result", "UnknownTransactionCommitResult", nil,
				mongotest.Fail{Commands: []string{"commitTransaction"}, Block: 300 * time.Millisecond, WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "too slow"}}}},
			{"commit, transient", "TransientTransactionError", nil,
				mongotest.Fail{Commands: []string{"commitTransaction"}, Code: 251, Labels: []string{"TransientTransactionError"}}},
		} {
			for what, timeout := range map[string]*time.Duration{"120 seconds": nil, "timeout": new(10 * time.Second)} {
				t.Run(tc.name+", "+what, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
						coll := client.Database("test").Collection("test")
						if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
							t.Fatal(err)
						}
						if tc.callback == nil {
							d.FailCommand(tc.fail)
						}
						began, limit := time.Now(), 120*time.Second
						if timeout != nil {
							limit = *timeout
						}
						calls := 0
						err := client.Transact(t.Context(), func(ctx context.Context) error {
							calls++
							time.Sleep(time.Second)
							if tc.callback != nil {
								return tc.callback
							}
							_, err := coll.InsertOne(ctx, bson.D{})
							return err
						}, allium.TransactionOptions{Timeout: timeout})
						var te *mongoerr.TimeoutError
						if !errors.As(err, &te) || !errors.Is(err, context.DeadlineExceeded) {
							t.Fatalf("error %T: %v", err, err)
						}
						if !te.HasLabel(tc.label) || !mongoerr.HasLabel(err, tc.label) {
							t.Errorf("labels %v, want %s", te.ErrorLabels(), tc.label)
						}
						if tc.callback != nil && !errors.Is(err, tc.callback) {
							t.Errorf("the error does not wrap the callback's: %v", err)
						}
						var server *mongoerr.ServerError
						if tc.fail.Code != 0 && (!errors.As(err, &server) || server.Code != tc.fail.Code) {
							t.Errorf("the error does not wrap the server's: %v", err)
						}
						var concern *mongoerr.WriteConcernError
						if tc.fail.WriteConcernError != nil && (!errors.As(err, &concern) || concern.Code != 64) {
							t.Errorf("the error does not wrap the write concern error: %v", err)
						}
						if took := time.Since(began); took > limit+2*time.Second || took < limit-2*time.Second {
							t.Errorf("took %v, limit %v", took, limit)
						}
					})
				})
			}
		}
	})

	t.Run("4 retry backoff is enforced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
			coll := client.Database("test").Collection("test")
			took := func(jitter float64) time.Duration {
				setJitter(client, jitter)
				d.FailCommand(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 13, Code: 251})
				began := time.Now()
				err := client.Transact(t.Context(), func(ctx context.Context) error {
					_, err := coll.InsertOne(ctx, bson.D{})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return time.Since(began)
			}
			without, with := took(0), took(1)
			if diff := with - without - 2300*time.Millisecond; diff.Abs() > 500*time.Millisecond {
				t.Errorf("%v without backoff, %v with", without, with)
			}
			// 5 ms times 1.5 to the power of 1 to 13, but no more than half a second.
			if want := 2282 * time.Millisecond; (with - without - want).Abs() > 5*time.Millisecond {
				t.Errorf("backoffs take %v, want %v", with-without, want)
			}
		})
	})
}

// The timeout error has all labels of what it wraps, wherever they are: here, those of the second
// message of a write of many.
func TestTransactTimeoutLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		lost := &mongoerr.ConnectionError{Op: "read"}
		lost.Labels = mongoerr.Labels{"TransientTransactionError", "Another"}
		err := client.Transact(t.Context(), func(context.Context) error {
			time.Sleep(50 * time.Second)
			return fmt.Errorf("mine: %w", errors.Join(&mongoerr.BulkWriteError{Err: lost}, labelled("Third")))
		})
		var te *mongoerr.TimeoutError
		if !errors.As(err, &te) {
			t.Fatalf("error %T: %v", err, err)
		}
		if got, want := te.ErrorLabels(), []string{"TransientTransactionError", "Another", "Third"}; !slices.Equal(got, want) {
			t.Errorf("labels %v, want %v", got, want)
		}
	})
}

// A wrong password is no reason to try a transaction again.
func TestTransactWithWrongPassword(t *testing.T) {
	d := testdeploy.Mock(t, "users", mongotest.ReplicaSet(1), mongotest.Auth("u", "right"))
	client := rig.Open(t, strings.Replace(d.URI(), "u:right@", "u:wrong@", 1))
	calls := 0
	err := client.Transact(t.Context(), func(ctx context.Context) error {
		calls++
		_, err := client.Database("db").Collection("c").InsertOne(ctx, bson.D{})
		return err
	})
	var auth *mongoerr.AuthError
	if !errors.As(err, &auth) || calls != 1 || mongoerr.HasLabel(err, "TransientTransactionError") {
		t.Errorf("%d calls: %v", calls, err)
	}
}

// A callback that panics leaves no transaction open.
func TestTransactPanic(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	log := &rig.Sent{}
	client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: log.Monitor()})
	coll := client.Database("test").Collection("test")
	s := rig.StartSession(t, client)
	func() {
		defer func() {
			if v := recover(); v != "oops" {
				t.Errorf("recovered %v", v)
			}
		}()
		s.Transact(t.Context(), func(ctx context.Context) error {
			if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
				t.Error(err)
			}
			panic("oops")
		})
	}()
	if got := log.Names(); !slices.Equal(got, []string{"insert", "abortTransaction"}) {
		t.Errorf("commands %v", got)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 0 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	// The session is as good as new.
	if err := s.Transact(t.Context(), func(ctx context.Context) error {
		_, err := coll.InsertOne(ctx, bson.D{})
		return err
	}); err != nil {
		t.Error(err)
	}
}

// A context that ends while the callback runs aborts the transaction on the server, on a context of
// its own.
func TestTransactContextEnds(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	log := &rig.Sent{}
	client := rig.Open(t, d.URI(), allium.ClientOptions{CommandMonitor: log.Monitor()})
	coll := client.Database("test").Collection("test")
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := client.Transact(ctx, func(ctx context.Context) error {
		calls++
		if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
			return err
		}
		cancel()
		_, err := coll.InsertOne(ctx, bson.D{})
		return err
	})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if got := log.Names(); got[len(got)-1] != "abortTransaction" {
		t.Errorf("commands %v", got)
	}
	// Nothing holds the document any more.
	if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.M{"$set": bson.M{"x": 1}}); err != nil {
		t.Error(err)
	}
}

// The deadline of a Transact with a timeout holds for what it runs; the abort has the time once
// more.
func TestTransactTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, log := rig.Bubble(t, allium.ClientOptions{Timeout: new(150 * time.Millisecond)}, mongotest.ReplicaSet(1))
		coll := client.Database("db").Collection("coll")
		if err := coll.Database().CreateCollection(t.Context(), "coll"); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		d.FailCommand(mongotest.Fail{Commands: []string{"insert", "abortTransaction"}, Times: 2, Block: 200 * time.Millisecond})
		began := time.Now()
		err := client.Transact(t.Context(), func(ctx context.Context) error {
			_, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v, want 150 ms for the insert and 150 ms for the abort", took)
		}
		if got := log.Names(); !slices.Equal(got, []string{"insert", "abortTransaction"}) {
			t.Errorf("commands %v", got)
		}
		err = client.Transact(t.Context(), func(ctx context.Context) error {
			_, err := coll.InsertOne(ctx, bson.D{}, allium.InsertOneOptions{Timeout: new(time.Second)})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "timeout of its own") {
			t.Errorf("an operation with a timeout inside: %v", err)
		}
	})
}

// TestTransactStops: an attempt that could be tried again is not when time is up or the context has
// ended. The error says which, is the context's in the second case alone, and holds that of the
// attempt (specification: Convenient API for Transactions, "Timeouts").
func TestTransactStops(t *testing.T) {
	transient := &mongoerr.ServerError{Command: "insert", Code: 251, Labels: mongoerr.Labels{"TransientTransactionError"}}
	for name, tc := range map[string]struct {
		attempt time.Duration // how long each takes
		cancel  time.Duration // when the context ends, 0: never
		limit   *time.Duration
		source  bool // the error names what limited the time
		ended   bool // it is the context's
	}{
		"the default limit":               {attempt: 50 * time.Second, source: true},
		"a limit":                         {attempt: 2 * time.Second, limit: new(5 * time.Second), source: true},
		"the context":                     {attempt: 2 * time.Second, cancel: 3 * time.Second, ended: true},
		"the context, within a limit":     {attempt: 2 * time.Second, cancel: 3 * time.Second, limit: new(20 * time.Second), ended: true},
		"the context, in the first":       {attempt: 2 * time.Second, cancel: time.Second, ended: true},
		"the limit, and then the context": {attempt: 130 * time.Second, cancel: 125 * time.Second, source: true, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, _ := rig.Bubble(t, allium.ClientOptions{Timeout: tc.limit}, mongotest.ReplicaSet(1))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.cancel > 0 {
					time.AfterFunc(tc.cancel, cancel)
				}
				err := client.Transact(ctx, func(context.Context) error {
					time.Sleep(tc.attempt)
					return transient
				})
				var te *mongoerr.TimeoutError
				if !errors.As(err, &te) || te.Phase != mongoerr.PhaseTransaction || !errors.Is(err, error(transient)) {
					t.Fatalf("%T: %v", err, err)
				}
				if (te.Source != "") != tc.source || errors.Is(err, context.Canceled) != tc.ended {
					t.Errorf("source %q, %v", te.Source, err)
				}
			})
		})
	}
}

// TestTransactAbortsOnce: an abort that cannot be sent, because an operation of the function's
// still runs when it returns, is waited for once.
func TestTransactAbortsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		coll := client.Database("db").Collection("coll")
		if err := coll.Database().CreateCollection(t.Context(), "coll"); err != nil {
			t.Fatal(err)
		}
		d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Block: time.Minute})
		mine := errors.New("mine")
		left := make(chan struct{})
		began := time.Now()
		err := client.Transact(t.Context(), func(ctx context.Context) error {
			go func() {
				defer close(left)
				coll.InsertOne(ctx, bson.D{})
			}()
			time.Sleep(time.Second)
			began = time.Now()
			return mine
		})
		if took := time.Since(began); !errors.Is(err, mine) || took != 10*time.Second {
			t.Errorf("%v after %v, want what the function returned after the time of one abort", err, took)
		}
		<-left
	})
}
