package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// A context ends one second after a transaction began, in each of these steps of it.
var endingSteps = []struct {
	name string
	// fail is what the server does meanwhile; before that second is over, the program is held up
	// by it, or sleeps.
	fail func(d *mongotest.Deployment)
	// before the first operation, and after the second, the function sleeps for so long.
	before, after time.Duration
	// swallows says that the function returns nil, whatever its operations return.
	swallows bool
	// fails and panics are how the function ends otherwise.
	fails, panics bool
}{
	{name: "before the first command", before: 2 * time.Second},
	{name: "before the first command, its error swallowed", before: 2 * time.Second, swallows: true},
	{name: "during the first command", fail: blocks("insert", 2*time.Second)},
	{name: "during the first command, its error swallowed", fail: blocks("insert", 2*time.Second), swallows: true},
	{name: "during the second command", fail: blocks("update", 2*time.Second)},
	{name: "during the second command, its error swallowed", fail: blocks("update", 2*time.Second), swallows: true},
	{name: "after the last command", after: 2 * time.Second},
	{name: "during the commit", fail: blocks("commitTransaction", 2*time.Second)},
	{name: "a moment before the commit is answered", fail: blocks("commitTransaction", time.Second+time.Millisecond)},
	{name: "between attempts of the commit", fail: func(d *mongotest.Deployment) {
		d.FailCommand(mongotest.Fail{Commands: []string{"commitTransaction"}, Code: 89, Block: 10 * time.Millisecond, Labels: []string{"RetryableWriteError"}})
		time.AfterFunc(time.Second, d.ClearFailures)
	}},
	{name: "between attempts of the commit whose connections break", fail: func(d *mongotest.Deployment) {
		d.FailCommand(mongotest.Fail{Commands: []string{"commitTransaction"}, CloseConnection: true, Block: 10 * time.Millisecond})
		time.AfterFunc(time.Second, d.ClearFailures)
	}},
	{name: "in the backoff", fail: func(d *mongotest.Deployment) {
		d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Code: 112, Labels: []string{"TransientTransactionError"}})
	}},
	{name: "while an abort is held up", fails: true, fail: blocks("abortTransaction", 1400*time.Millisecond)},
	{name: "after an error of the function's own", after: 2 * time.Second, fails: true},
	{name: "before a panic", after: 2 * time.Second, panics: true},
}

func blocks(command string, d time.Duration) func(*mongotest.Deployment) {
	return func(dep *mongotest.Deployment) {
		dep.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Block: d})
	}
}

var errOwn = errors.New("the function's own error")

// endingWays are the ways in which a program runs a transaction, and how that ends.
var endingWays = []struct {
	name string
	// transact runs fn for a second.
	transact func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error
	// patience is what it may take beyond that second.
	patience time.Duration
}{
	{"Transact, cancelled", func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return c.Transact(ctx, fn)
	}, 500 * time.Millisecond},
	{"Transact, deadline", func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.Transact(ctx, fn)
	}, 500 * time.Millisecond},
	{"Transact, Timeout", func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
		return c.Transact(ctx, fn, allium.TransactionOptions{Timeout: new(time.Second)})
	}, time.Second}, // the abort has the timeout once more
	{"Session.Transact, deadline and a long Timeout", func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s, err := c.StartSession(allium.SessionOptions{Timeout: new(time.Minute)})
		if err != nil {
			return err
		}
		defer s.End(context.Background())
		return s.Transact(ctx, fn)
	}, 500 * time.Millisecond},
	{"by hand, End alone", byHand(func(ctx context.Context, s *allium.Session) {}), 2 * time.Second},
	{"by hand, abort", byHand(func(ctx context.Context, s *allium.Session) { _ = s.AbortTransaction(ctx) }), 2 * time.Second},
	{"by hand, another operation", byHand(func(_ context.Context, s *allium.Session) {
		_, _ = s.Client().Database("db").Collection("other").CountDocuments(allium.WithSession(context.Background(), s), bson.D{})
	}), 2 * time.Second},
	{"by hand, commit again", byHand(func(ctx context.Context, s *allium.Session) {
		if s.InTransaction() && ctx.Value(committing{}) != nil {
			_ = s.CommitTransaction(context.Background())
		}
	}), 2 * time.Second},
}

// byHand runs a transaction step by step. After an error of fn or of the commit it does what then
// says, and ends the session.
func byHand(then func(ctx context.Context, s *allium.Session)) func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
	return func(ctx context.Context, c *allium.Client, fn func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s, err := c.StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		if err := s.StartTransaction(); err != nil {
			return err
		}
		if err = fn(allium.WithSession(ctx, s)); err == nil {
			ctx = context.WithValue(ctx, committing{}, true)
			if err = s.CommitTransaction(ctx); mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit) {
				time.Sleep(time.Second)
				err = s.CommitTransaction(context.Background())
			}
		}
		if err != nil {
			then(ctx, s)
		}
		return err
	}
}

// committing is the key of contexts in which a commit has failed.
type committing struct{}

// Whenever and however the context of a transaction ends: the call returns in time, no server has
// the transaction open, no connection and no session is left in use, and what is there is what the
// caller was told.
func TestNoTransactionStaysOpen(t *testing.T) {
	for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 2), "load balanced": mongotest.LoadBalanced(2)} {
		for _, step := range endingSteps {
			for _, way := range endingWays {
				if step.swallows && way.name == "by hand, commit again" {
					continue // a commit after a command whose error was ignored may come before it
				}
				t.Run(fmt.Sprintf("%s/%s/%s", kind, step.name, way.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d, client, log := rig.Bubble(t, allium.ClientOptions{}, topology)
						coll := client.Database("db").Collection("coll")
						if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
							t.Fatal(err)
						}
						log.Reset()
						if step.fail != nil {
							step.fail(d)
						}
						fn := func(ctx context.Context) error {
							time.Sleep(step.before)
							_, first := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
							if first != nil && !step.swallows {
								return first
							}
							_, second := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: 0}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
							if second != nil && !step.swallows {
								return second
							}
							time.Sleep(step.after)
							switch {
							case step.panics:
								panic(errOwn)
							case step.fails:
								return errOwn
							}
							return nil
						}
						began := time.Now()
						err := recovered(func() error { return way.transact(t.Context(), client, fn) })
						if took := time.Since(began); took > step.before+step.after+way.patience && took > time.Second+way.patience {
							t.Errorf("took %v", took)
						}
						hand := strings.HasPrefix(way.name, "by hand")
						if err == nil && step.swallows && !hand {
							t.Error("no error")
						}
						time.Sleep(5 * time.Second) // what was held up, and aborts in the background
						d.ClearFailures()
						if held := client.Stats().Sessions.InUse; held != 0 {
							t.Errorf("%d sessions are in use", held)
						}
						observer, oerr := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
						if oerr != nil {
							t.Fatal(oerr)
						}
						defer observer.Close(context.Background())
						// A commit may still be on its way then, to a server that refuses it.
						te, _ := errors.AsType[*mongoerr.TimeoutError](err)
						refused := strings.HasPrefix(step.name, "between") && te != nil && te.Phase == "read"
						if n := openTransactions(t, observer); n != 0 && !refused {
							t.Errorf("%d transactions are open after %v, with %v", n, err, log.Names())
						}
						for _, pool := range client.Stats().Pools {
							if pool.InUse != 0 {
								t.Errorf("%d connections to %s are in use", pool.InUse, pool.Addr)
							}
						}
						n, cerr := observer.Database("db").Collection("coll").CountDocuments(t.Context(), bson.D{})
						unknown := mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit)
						again := strings.HasSuffix(way.name, "commit again")
						if cerr != nil || err == nil && n != 2 && !(hand && step.swallows) || err != nil && !unknown && !again && n != 1 {
							t.Errorf("%d documents, %v, after %v", n, cerr, err)
						}
					})
				})
			}
		}
	}
}

// recovered returns the error that fn returns or panics with.
func recovered(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return fn()
}

// openTransactions returns how many transactions the deployment has open.
func openTransactions(t *testing.T, observer *allium.Client) int64 {
	t.Helper()
	return status(t, observer, "transactions", "currentOpen")
}

// openCursors returns how many cursors a server has.
func openCursors(t *testing.T, observer *allium.Client) int64 {
	t.Helper()
	return status(t, observer, "metrics", "cursor", "open", "total")
}

// status returns a figure of serverStatus.
func status(t *testing.T, observer *allium.Client, path ...string) int64 {
	t.Helper()
	status, err := observer.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}})
	n, ok := status.Lookup(path...).AsInt64()
	if err != nil || !ok {
		t.Fatalf("serverStatus: %v", err)
	}
	return n
}

// closingStates are how far transactions are when their client is closed. Each leaves n
// transactions open, or about to end by themselves.
var closingStates = []struct {
	name string
	n    int
	// open does it; what goes on in the background ends by the end of ctx, or with the client.
	open func(ctx context.Context, t *testing.T, d *mongotest.Deployment, c *allium.Client)
	// aborts is how many abortTransaction the servers must get, -1 if that depends.
	aborts int
}{
	{"begun", 1, func(_ context.Context, t *testing.T, _ *mongotest.Deployment, c *allium.Client) { begun(t, c) }, 0},
	{"between commands", 1, func(ctx context.Context, t *testing.T, _ *mongotest.Deployment, c *allium.Client) {
		mustInsert(ctx, t, begun(t, c), 1)
	}, 1},
	{"three sessions", 3, func(ctx context.Context, t *testing.T, _ *mongotest.Deployment, c *allium.Client) {
		for i := range 3 {
			mustInsert(ctx, t, begun(t, c), i+1)
		}
	}, 3},
	{"first command under way for longer than the client waits", 1, func(ctx context.Context, t *testing.T, d *mongotest.Deployment, c *allium.Client) {
		blocks("insert", 700*time.Millisecond)(d)
		s := begun(t, c)
		go insertIn(ctx, s, 1)
		time.Sleep(10 * time.Millisecond)
	}, -1},
	{"second command under way for longer than the client waits", 1, func(ctx context.Context, t *testing.T, d *mongotest.Deployment, c *allium.Client) {
		s := begun(t, c)
		mustInsert(ctx, t, s, 1)
		blocks("insert", 700*time.Millisecond)(d)
		go insertIn(ctx, s, 2)
		time.Sleep(10 * time.Millisecond)
	}, -1},
	{"a command under way ends in time", 1, func(ctx context.Context, t *testing.T, d *mongotest.Deployment, c *allium.Client) {
		blocks("insert", 200*time.Millisecond)(d)
		s := begun(t, c)
		go insertIn(ctx, s, 1)
		time.Sleep(10 * time.Millisecond)
	}, 1},
	{"after a command whose context has ended", 1, func(ctx context.Context, t *testing.T, d *mongotest.Deployment, c *allium.Client) {
		s := begun(t, c)
		mustInsert(ctx, t, s, 1)
		blocks("insert", 50*time.Millisecond)(d)
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if err := insertIn(short, s, 2); !mongoerr.IsTimeout(err) {
			t.Errorf("the insert was not late: %v", err)
		}
	}, 1},
	{"after a commit that was not sent", 1, func(ctx context.Context, t *testing.T, _ *mongotest.Deployment, c *allium.Client) {
		s := begun(t, c)
		mustInsert(ctx, t, s, 1)
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err := s.CommitTransaction(over); err == nil || !s.InTransaction() {
			t.Errorf("the commit was sent: %v", err)
		}
	}, 1},
	{"function of Transact running", 1, func(ctx context.Context, t *testing.T, _ *mongotest.Deployment, c *allium.Client) {
		in := make(chan struct{})
		go c.Transact(ctx, func(ctx context.Context) error {
			defer time.Sleep(200 * time.Millisecond)
			err := insertIn(ctx, allium.SessionFrom(ctx), 1)
			close(in)
			return err
		})
		<-in
	}, 1},
}

func begun(t *testing.T, c *allium.Client) *allium.Session {
	t.Helper()
	s, err := c.StartSession()
	if err == nil {
		err = s.StartTransaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s // and nobody ends it
}

func insertIn(ctx context.Context, s *allium.Session, id int) error {
	_, err := s.Client().Database("db").Collection("coll").InsertOne(allium.WithSession(ctx, s), bson.D{{Key: "_id", Value: id}})
	return err
}

func mustInsert(ctx context.Context, t *testing.T, s *allium.Session, id int) {
	t.Helper()
	if err := insertIn(ctx, s, id); err != nil {
		t.Fatal(err)
	}
}

// A client that is closed with open transactions aborts them: by the context of Close, or if that
// ends, half a second later. One second after that no server has one open, and nothing of them is
// there. What ran in them has failed.
func TestCloseAbortsTransactions(t *testing.T) {
	closes := map[string]struct {
		limit time.Duration // of Close's context
		ends  time.Duration // when that of the transaction's operations ends, from Close on
	}{
		"no limit":                   {time.Hour, time.Hour},
		"cancelled before":           {0, time.Hour},
		"a short limit":              {100 * time.Millisecond, time.Hour},
		"operations ended before":    {time.Hour, 0},
		"operations ended meanwhile": {time.Hour, 50 * time.Millisecond},
		"both end":                   {50 * time.Millisecond, 50 * time.Millisecond},
	}
	for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 2), "load balanced": mongotest.LoadBalanced(2)} {
		for _, state := range closingStates {
			for how, tc := range closes {
				if strings.HasSuffix(state.name, "longer than the client waits") && how == "both end" {
					continue // the abort has been sent behind the command, and nobody waits for it
				}
				t.Run(fmt.Sprintf("%s/%s/%s", kind, state.name, how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d, client, log := rig.Bubble(t, allium.ClientOptions{}, topology)
						observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
						if err != nil {
							t.Fatal(err)
						}
						defer observer.Close(context.Background())
						if _, err := observer.Database("db").Collection("coll").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
							t.Fatal(err)
						}
						if err := client.Ping(t.Context()); err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						state.open(ctx, t, d, client)
						if n := openTransactions(t, observer); n < int64(min(state.n, max(state.aborts, 0))) && !strings.Contains(state.name, "under way") {
							t.Fatalf("%d transactions are open before, want %d", n, state.n)
						}
						log.Reset()
						if tc.ends == 0 {
							cancel()
							synctest.Wait()
						} else {
							time.AfterFunc(tc.ends, cancel)
						}
						closing, stop := context.WithTimeout(context.Background(), tc.limit)
						defer stop()
						began := time.Now()
						err = client.Close(closing)
						took := time.Since(began)
						if took > tc.limit || took > 3*time.Second || err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("Close took %v of %v: %v", took, tc.limit, err)
						}
						time.Sleep(500*time.Millisecond + time.Second)
						if n := openTransactions(t, observer); n != 0 {
							t.Errorf("%d transactions are open, after %v", n, log.Names())
						}
						aborts := 0
						for _, name := range log.Names() {
							if name == "abortTransaction" {
								aborts++
							}
						}
						if state.aborts >= 0 && aborts != state.aborts && !(tc.ends == 0 && aborts == 0) {
							t.Errorf("%d aborts were sent, want %d", aborts, state.aborts)
						}
						n, err := observer.Database("db").Collection("coll").CountDocuments(t.Context(), bson.D{})
						if err != nil || n != 1 {
							t.Errorf("%d documents are there, %v, want 1", n, err)
						}
					})
				})
			}
		}
	}
}

// Close has aborted what was open, which the program learns by the client's error and not as a
// mistake of its own.
func TestTransactionsOfClosedClients(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, s *allium.Session) error{
		"commit": func(ctx context.Context, s *allium.Session) error { return s.CommitTransaction(ctx) },
		"abort":  func(ctx context.Context, s *allium.Session) error { return s.AbortTransaction(ctx) },
		"operation": func(ctx context.Context, s *allium.Session) error {
			_, err := s.Client().Database("db").Collection("coll").InsertOne(allium.WithSession(ctx, s), bson.D{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				s, err := client.StartSession()
				if err != nil {
					t.Fatal(err)
				}
				defer s.End(t.Context())
				if err := s.StartTransaction(); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Database("db").Collection("coll").InsertOne(allium.WithSession(t.Context(), s), bson.D{}); err != nil {
					t.Fatal(err)
				}
				if err := client.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := end(t.Context(), s); !errors.Is(err, mongoerr.ErrClientClosed) {
					t.Errorf("%v, want %v", err, mongoerr.ErrClientClosed)
				}
			})
		})
	}
}

// A client that is closed while the function of a Transact runs has aborted its transaction, and
// Transact says so, whatever the function returns, unless it has ended the transaction by itself.
func TestTransactOfClosedClients(t *testing.T) {
	insert := func(ctx context.Context) error {
		_, err := allium.SessionFrom(ctx).Client().Database("db").Collection("coll").InsertOne(ctx, bson.D{})
		return err
	}
	for name, tc := range map[string]struct {
		before func(ctx context.Context) error
		n      int64 // documents that are there
		closed bool
	}{
		"nothing done":  {func(context.Context) error { return nil }, 0, true},
		"one operation": {insert, 0, true},
		"committed": {func(ctx context.Context) error {
			return errors.Join(insert(ctx), allium.SessionFrom(ctx).CommitTransaction(ctx))
		}, 1, false},
		"aborted": {func(ctx context.Context) error {
			return errors.Join(insert(ctx), allium.SessionFrom(ctx).AbortTransaction(ctx))
		}, 0, false},
		"committed, begun again": {func(ctx context.Context) error {
			s := allium.SessionFrom(ctx)
			return errors.Join(insert(ctx), s.CommitTransaction(ctx), s.StartTransaction(), insert(ctx))
		}, 1, true},
	} {
		for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1), "load balanced": mongotest.LoadBalanced(1)} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, client, _ := rig.Bubble(t, allium.ClientOptions{}, topology)
					if err := client.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
					err := client.Transact(t.Context(), func(ctx context.Context) error {
						return errors.Join(tc.before(ctx), client.Close(context.Background()))
					})
					if tc.closed != errors.Is(err, mongoerr.ErrClientClosed) || !tc.closed && err != nil {
						t.Errorf("%v, want that the client is closed: %v", err, tc.closed)
					}
					observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
					if err != nil {
						t.Fatal(err)
					}
					defer observer.Close(context.Background())
					if n, err := observer.Database("db").Collection("coll").CountDocuments(t.Context(), bson.D{}); err != nil || n != tc.n {
						t.Errorf("%d documents are there, %v, want %d", n, err, tc.n)
					}
				})
			})
		}
	}
}
