package allium_test

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
						d, client, log := bubble(t, allium.ClientOptions{}, topology)
						coll := client.Database("db").Collection("coll")
						if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
							t.Fatal(err)
						}
						log.reset()
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
						if held := client.Stats().Sessions.InUse; held != 0 {
							t.Errorf("%d sessions are in use", held)
						}
						time.Sleep(5 * time.Second) // what was held up
						d.ClearFailures()
						observer, oerr := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
						if oerr != nil {
							t.Fatal(oerr)
						}
						defer observer.Close(context.Background())
						// A commit may still be on its way then, to a server that refuses it.
						te, _ := errors.AsType[*mongoerr.TimeoutError](err)
						refused := strings.HasPrefix(step.name, "between") && te != nil && te.Phase == "read"
						if n := openTransactions(t, observer); n != 0 && !refused {
							t.Errorf("%d transactions are open after %v, with %v", n, err, log.names())
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
	status, err := observer.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}})
	n, ok := status.Lookup("transactions", "currentOpen").AsInt64()
	if err != nil || !ok {
		t.Fatalf("serverStatus: %v", err)
	}
	return n
}
