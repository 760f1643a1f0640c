package faults

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/flight"
	"allium/mongotest"
)

// A session that ends while its transaction cannot be aborted, because there is no connection for
// it or because an operation of the transaction runs still, leaves no transaction open for longer
// than that takes. Its caller waits for half a second only.
func TestAbortLater(t *testing.T) {
	for name, tc := range map[string]struct {
		pool  int
		left  bool // whether what holds things up is another operation
		close bool
		busy  time.Duration
	}{
		"no connection":                       {1, true, false, 3 * time.Second},
		"no connection for long":              {1, true, false, 40 * time.Second},
		"an operation runs":                   {5, false, false, 3 * time.Second},
		"an operation runs for long":          {5, false, false, 40 * time.Second},
		"no connection, closed soon after":    {1, true, true, time.Second}, // Close waits for two
		"an operation runs, closed meanwhile": {5, false, true, time.Second},
	} {
		for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1)} {
			for _, how := range []string{"End", "Transact"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, kind, how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d, client, _ := rig.Bubble(t, allium.ClientOptions{MaxPoolSize: &tc.pool}, topology)
						coll := client.Database("db").Collection("coll")
						if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
							t.Fatal(err)
						}
						observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
						if err != nil {
							t.Fatal(err)
						}
						defer observer.Close(context.Background())
						d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Block: tc.busy})
						ctx, cancel := context.WithCancel(t.Context())
						body := func(inTxn context.Context) error {
							if err := rig.ErrorOf(coll.InsertOne(inTxn, bson.D{})); err != nil {
								return err
							}
							of := context.Background()
							if !tc.left {
								of = allium.WithSession(of, allium.SessionFrom(inTxn))
							}
							go coll.FindOne(of, bson.D{})
							synctest.Wait()
							cancel()
							return errOwn
						}
						began := time.Now()
						if how == "Transact" {
							err = client.Transact(ctx, body)
						} else if s, failed := client.StartSession(); failed != nil {
							t.Fatal(failed)
						} else {
							_ = s.StartTransaction()
							err = body(allium.WithSession(ctx, s))
							if ended := s.End(ctx); ended != nil {
								t.Error(ended)
							}
						}
						if took := time.Since(began); took > 500*time.Millisecond || !errors.Is(err, errOwn) {
							t.Errorf("%v after %v", err, took)
						}
						if openTransactions(t, observer) != 1 {
							t.Fatal("nothing is open: this tests nothing")
						}
						if tc.close {
							_ = client.Close(context.Background())
						}
						time.Sleep(tc.busy + time.Second)
						if n := openTransactions(t, observer); n != 0 {
							t.Errorf("%d transactions are open after %v", n, time.Since(began))
						}
						if s := client.Stats(); s.Sessions.InUse != 0 || s.Operations != 0 {
							t.Errorf("left: %d sessions in use, %d operations", s.Sessions.InUse, s.Operations)
						}
						if n, err := observer.Database("db").Collection("coll").CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
							t.Errorf("%d documents are there, %v, want 1", n, err)
						}
					})
				})
			}
		}
	}
}

// A listener that fails in the background, before a server has been told to forget a cursor or to
// abort a transaction, keeps neither open: the server is told later.
func TestListenersFailInTheBackground(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, coll *allium.UntypedCollection, arm func()){
		"cursor": func(t *testing.T, coll *allium.UntypedCollection, arm func()) {
			cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(1))})
			if err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			arm()
			_ = cur.Close(ended)
		},
		"transaction": func(t *testing.T, coll *allium.UntypedCollection, arm func()) {
			s, err := coll.Database().Client().StartSession()
			if err != nil {
				t.Fatal(err)
			}
			_ = s.StartTransaction()
			if err := rig.ErrorOf(coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{})); err != nil {
				t.Fatal(err)
			}
			arm()
			_ = flight.Apart(func() error { return s.End(t.Context()) }) // fails here first
		},
	} {
		for _, how := range []func(){func() { panic("the program's") }, runtime.Goexit} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var fails atomic.Int64
					monitor := &event.PoolMonitor{ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) {
						if fails.Add(-1) >= 0 {
							how()
						}
					}}
					d, client, _ := rig.Bubble(t, allium.ClientOptions{PoolMonitor: monitor}, mongotest.ReplicaSet(1))
					coll := client.Database("db").Collection("coll")
					if _, err := coll.InsertMany(t.Context(), []bson.D{{}, {}, {}}); err != nil {
						t.Fatal(err)
					}
					observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
					if err != nil {
						t.Fatal(err)
					}
					defer observer.Close(context.Background())
					use(t, coll, func() { fails.Store(2) })
					time.Sleep(10 * time.Second)
					if fails.Load() >= 0 {
						t.Errorf("the listener had to fail %d times more: this tests too little", fails.Load())
					}
					if n := openTransactions(t, observer); n != 0 {
						t.Errorf("%d transactions are open", n)
					}
					if n := openCursors(t, observer); n != 0 {
						t.Errorf("%d cursors are open", n)
					}
					if s := client.Stats(); s.Sessions.InUse != 0 || s.Operations != 0 {
						t.Errorf("left: %d sessions in use, %d operations", s.Sessions.InUse, s.Operations)
					}
				})
			})
		}
	}
}

// A program that goes on after the context of an operation has ended, and commits elsewhere, leaves
// no transaction open that the operation begins when it comes to run.
func TestLateCommandOfRefusedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, log := rig.Bubble(t, allium.ClientOptions{}, mongotest.Sharded(1, 2))
		coll := client.Database("db").Collection("coll")
		if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for range 12 { // the commit goes to any mongos
			d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Block: 700 * time.Millisecond})
			s, err := client.StartSession()
			if err != nil {
				t.Fatal(err)
			}
			_ = s.StartTransaction()
			ctx, cancel := context.WithTimeout(allium.WithSession(t.Context(), s), 15*time.Millisecond)
			if err := rig.ErrorOf(coll.InsertOne(ctx, bson.D{})); err == nil {
				t.Error("the insert was not held up")
			}
			cancel()
			if err := s.CommitTransaction(t.Context()); err != nil {
				refused++
			}
			_ = s.End(t.Context())
			time.Sleep(time.Second)
			if n := openTransactions(t, client); n != 0 {
				t.Fatalf("%d transactions are open, after %v", n, log.Names())
			}
		}
		if refused == 0 {
			t.Error("no commit was refused: this tests nothing")
		}
	})
}

// A server that is late with a command of a transaction, or with its abort, when another operation
// needs the place of the connection that the reply would come on: the connection is closed, and
// what was sent behind the command may never be read. The transaction is aborted all the same.
func TestAbortOfClosedConnection(t *testing.T) {
	for _, late := range []string{"update", "abortTransaction"} {
		for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1)} {
			for _, how := range []string{"Transact", "by hand"} {
				t.Run(fmt.Sprintf("%s/%s/%s", late, kind, how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testAbortOfClosedConnection(t, late, how, topology) })
				})
			}
		}
	}
}

func testAbortOfClosedConnection(t *testing.T, late, how string, topology mongotest.Option) {
	d, client, _ := rig.Bubble(t, allium.ClientOptions{MaxPoolSize: new(1)}, topology)
	coll := client.Database("db").Collection("coll")
	rig.Must(coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close(context.Background())
	d.FailCommand(mongotest.Fail{Commands: []string{late}, Times: 1, Block: 700 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := func(inTxn context.Context) error {
		if err := rig.ErrorOf(coll.InsertOne(inTxn, bson.D{})); err != nil {
			return err
		}
		time.AfterFunc(15*time.Millisecond, cancel)
		if late != "update" {
			<-inTxn.Done()
			return inTxn.Err()
		}
		return rig.ErrorOf(coll.UpdateOne(inTxn, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}))
	}
	if how == "Transact" {
		err = client.Transact(ctx, body)
	} else {
		s := rig.Must(client.StartSession())
		rig.Must(0, s.StartTransaction())
		err = body(allium.WithSession(ctx, s))
		_ = s.AbortTransaction(ctx)
		s.End(ctx)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the transaction ended with %v", err)
	}
	// It needs the only place, and closes the connection that owes replies.
	rig.Must(coll.CountDocuments(t.Context(), bson.D{}))
	time.Sleep(2 * time.Second)
	if n := openTransactions(t, observer); n != 0 {
		t.Errorf("%d transactions are open two seconds later", n)
	}
	if s := client.Stats().Sessions; s.InUse != 0 {
		t.Errorf("%d sessions are in use", s.InUse)
	}
}

// A server that answers no abort does not take all connections of a client for those that are sent
// in the background.
func TestAbortsLeaveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, many = 20, 60
		d, client, _ := rig.Bubble(t, allium.ClientOptions{MaxPoolSize: new(most)}, mongotest.ReplicaSet(1))
		coll := client.Database("db").Collection("coll")
		rig.Must(coll.InsertOne(t.Context(), bson.D{}))
		observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
		if err != nil {
			t.Fatal(err)
		}
		defer observer.Close(context.Background())
		d.FailCommand(mongotest.Fail{Commands: []string{"abortTransaction"}, Block: 40 * time.Second})
		for range many {
			ctx, cancel := context.WithCancel(t.Context())
			_ = client.Transact(ctx, func(ctx context.Context) error {
				err := rig.ErrorOf(coll.InsertOne(ctx, bson.D{}))
				cancel()
				return err
			})
		}
		time.Sleep(5 * time.Second)
		d.ClearFailures()
		if in := client.Stats().Pools[0].InUse; in > most/2 {
			t.Errorf("%d connections are in use for aborts", in)
		}
		time.Sleep(55 * time.Second)
		if n := openTransactions(t, observer); n != 0 {
			t.Errorf("%d transactions are open a minute later", n)
		}
		if s := client.Stats().Sessions; s.InUse != 0 {
			t.Errorf("%d sessions are in use", s.InUse)
		}
	})
}
