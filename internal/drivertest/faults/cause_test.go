package faults

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/mongotest"
)

// TestCauseIsTold: wherever the end of a context finds an operation, its error says why the context
// ended.
func TestCauseIsTold(t *testing.T) {
	errLeft := errors.New("the caller has left")
	slow := mongotest.Fail{Commands: []string{"find", "aggregate", "insert", "update", "delete", "distinct", "findAndModify", "bulkWrite", "getMore", "listCollections", "listDatabases", "listIndexes", "createIndexes", "commitTransaction", "ping", "create", "drop", "dropIndexes", "dropDatabase"}, Block: time.Hour}
	insert := func(ctx context.Context, c *allium.UntypedCollection) error {
		return rig.ErrorOf(c.InsertOne(ctx, bson.D{}))
	}
	type place struct {
		o     allium.ClientOptions
		begin func(t *testing.T, d *mongotest.Deployment, c *allium.UntypedCollection)
		run   func(ctx context.Context, c *allium.UntypedCollection) error
	}
	fail := func(f mongotest.Fail) func(*testing.T, *mongotest.Deployment, *allium.UntypedCollection) {
		return func(_ *testing.T, d *mongotest.Deployment, _ *allium.UntypedCollection) { d.FailCommand(f) }
	}
	places := map[string]place{
		"selection": {begin: func(_ *testing.T, d *mongotest.Deployment, _ *allium.UntypedCollection) { d.Node(0).Kill() }, run: insert},
		"check out": {o: allium.ClientOptions{MaxPoolSize: new(1)}, begin: func(t *testing.T, d *mongotest.Deployment, c *allium.UntypedCollection) {
			d.FailCommand(slow)
			go insert(t.Context(), c)
			synctest.Wait()
		}, run: insert},
		"backoff": {begin: fail(mongotest.Fail{Commands: []string{"insert"}, Code: 462, Labels: []string{"SystemOverloadedError", "RetryableError"}}), run: func(ctx context.Context, c *allium.UntypedCollection) error {
			for {
				if err := insert(ctx, c); ctx.Err() != nil {
					return err
				}
				time.Sleep(10 * time.Millisecond) // what has no time left for its backoff does not wait
			}
		}},
		"Transact, operation": {begin: fail(slow), run: func(ctx context.Context, c *allium.UntypedCollection) error {
			return c.Database().Client().Transact(ctx, func(ctx context.Context) error { return insert(ctx, c) })
		}},
		"Transact, between attempts": {run: func(ctx context.Context, c *allium.UntypedCollection) error {
			return c.Database().Client().Transact(ctx, func(context.Context) error { return transient{} })
		}},
		"change stream": {run: func(ctx context.Context, c *allium.UntypedCollection) error {
			s, err := c.Watch(context.WithoutCancel(ctx), nil)
			if err != nil {
				return err
			}
			defer s.Close(context.WithoutCancel(ctx))
			s.Next(ctx)
			return s.Err()
		}},
		"GridFS": {begin: fail(slow), run: func(ctx context.Context, c *allium.UntypedCollection) error {
			return rig.ErrorOf(gridfs.NewBucket(c.Database()).UploadFromStream(ctx, "f", strings.NewReader("x")))
		}},
	}
	for _, op := range rig.Operations {
		places["server, "+op.Name] = place{begin: fail(slow), run: op.Run}
	}
	for name, p := range places {
		for end, with := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
			"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				timer := time.AfterFunc(time.Second, func() { cancel(errLeft) })
				return ctx, func() { timer.Stop(); cancel(nil) }
			},
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, time.Second, errLeft)
			},
			"before": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(errLeft)
				return ctx, func() {}
			},
		} {
			t.Run(name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, client, _ := rig.Bubble(t, p.o, mongotest.ReplicaSet(1))
					c := client.Database("d").Collection("c")
					if _, err := c.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
						t.Fatal(err)
					}
					if p.begin != nil {
						p.begin(t, d, c)
					}
					ctx, cancel := with(t.Context())
					defer cancel()
					err := p.run(ctx, c)
					if !errors.Is(err, errLeft) || !errors.Is(err, ctx.Err()) || strings.Count(err.Error(), errLeft.Error()) != 1 {
						t.Errorf("%v", err)
					}
					d.ClearFailures()
				})
			})
		}
	}
}

// transient is an error of the program's that is worth another attempt.
type transient struct{}

func (transient) Error() string { return "not now" }

func (transient) HasErrorLabel(label string) bool { return label == "TransientTransactionError" }
