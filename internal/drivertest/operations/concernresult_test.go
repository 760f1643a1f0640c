package operations

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// counted is a document that Save counts the changes of.
type counted struct {
	ID      int `bson:"_id"`
	N       int `bson:"n"`
	Version int `bson:"version"`
}

// concernWrites are the operations whose write concern the server may not meet, and what they tell
// of the write. Each begins with the documents 1 to 3.
var concernWrites = map[string]func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error){
	"InsertOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.InsertOne(ctx, counted{ID: 9})
	},
	"InsertMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.InsertMany(ctx, []counted{{ID: 9}, {ID: 10}})
	},
	"UpdateOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.UpdateOne(ctx, byNumber(1), raiseN)
	},
	"UpdateMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.UpdateMany(ctx, bson.D{}, raiseN)
	},
	"ReplaceOne, upsert": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.ReplaceOne(ctx, byNumber(9), counted{ID: 9}, allium.ReplaceOptions{Upsert: true})
	},
	"DeleteOne": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.DeleteOne(ctx, byNumber(1))
	},
	"DeleteMany": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.DeleteMany(ctx, bson.D{})
	},
	"FindOneAndUpdate": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(1), raiseN)
	},
	"FindOneAndUpdate, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(9), raiseN)
	},
	"FindOneAndUpdate, upsert": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndUpdate(ctx, byNumber(9), raiseN, allium.FindOneAndUpdateOptions{Upsert: true})
	},
	"FindOneAndReplace": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndReplace(ctx, byNumber(1), counted{ID: 1, N: 7}, allium.FindOneAndReplaceOptions{ReturnNew: true})
	},
	"FindOneAndReplace, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndReplace(ctx, byNumber(9), counted{ID: 9})
	},
	"FindOneAndDelete": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndDelete(ctx, byNumber(1))
	},
	"FindOneAndDelete, none": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.FindOneAndDelete(ctx, byNumber(9))
	},
	"BulkWrite": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(counted{ID: 9}), c.InsertOneModel(counted{ID: 10})})
	},
	"BulkWrite of the client": func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error) {
		return client.BulkWrite(ctx, []allium.WriteModel{c.InsertOneModel(counted{ID: 9}), c.UpdateOneModel(byNumber(1), raiseN)},
			allium.ClientBulkWriteOptions{VerboseResults: true})
	},
	"CreateIndex": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}})
	},
	"CreateIndexes": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		return c.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "n", Value: 1}}}, {Keys: bson.D{{Key: "version", Value: 1}}, Name: "v"}})
	},
	"Save": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		after := counted{ID: 1, N: 5, Version: 1}
		err := allium.Save(ctx, c, "version", counted{ID: 1, N: 1, Version: 1}, &after)
		return after, err
	},
	"Save, conflict": func(ctx context.Context, _ *allium.Client, c *allium.Collection[counted]) (any, error) {
		after := counted{ID: 1, N: 5, Version: 8}
		err := allium.Save(ctx, c, "version", counted{ID: 1, N: 1, Version: 8}, &after)
		return after, err
	},
	"RunCommand": func(ctx context.Context, client *allium.Client, c *allium.Collection[counted]) (any, error) {
		reply, err := c.Database().RunCommand(ctx, bson.D{{Key: "delete", Value: c.Name()},
			{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: byNumber(1)}, {Key: "limit", Value: 1}}}}})
		return reply.Lookup("n").String(), err
	},
}

func byNumber(n int) bson.D { return bson.D{{Key: "_id", Value: n}} }

var raiseN = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}

// TestResultsBesideConcernErrors: a write whose write concern was not met has been done, and tells
// of it what it tells without that error; what it says of itself, such as that there was no
// document, stands beside the error.
func TestResultsBesideConcernErrors(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	ctx := t.Context()
	for what, run := range concernWrites {
		begin := func() *allium.Collection[counted] {
			c := allium.CollectionOf[counted](client.Database("d"), "c")
			if err := c.Drop(ctx); err != nil {
				t.Fatal(err)
			}
			rig.Must(c.InsertMany(ctx, []counted{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}}))
			return c
		}
		want, wantErr := run(ctx, client, begin())
		c := begin()
		d.FailCommand(t, mongotest.Fail{Times: 1,
			Commands:          []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "createIndexes"},
			WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting"}}})
		got, err := run(ctx, client, c)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
		if !mentionsConcern(err) {
			t.Errorf("%s: the error is %v", what, err)
		}
		for _, own := range []error{mongoerr.ErrNoDocuments, mongoerr.ErrConflict} {
			if errors.Is(wantErr, own) != errors.Is(err, own) {
				t.Errorf("%s: the error is %v, and without that of the write concern %v", what, err, wantErr)
			}
		}
	}
}

// unmadeRetries are reasons why a write that was done on too few members cannot be tried again, and
// what its error is besides that of the write concern.
var unmadeRetries = map[string]struct {
	then func(r *retrying)
	also func(error) bool
}{
	"the context has ended": {func(r *retrying) { r.cancel() }, func(error) bool { return true }},
	"the context ends": {func(r *retrying) { r.d.Node(0).Kill(); time.AfterFunc(time.Second, r.cancel) },
		func(err error) bool { return isA[*mongoerr.TimeoutError](err) && errors.Is(err, context.Canceled) }},
	"no server until time is up": {func(r *retrying) { r.d.Node(0).Kill() },
		func(err error) bool {
			return isA[*mongoerr.TimeoutError](err) && errors.Is(err, context.DeadlineExceeded)
		}},
	"nothing was written": {func(r *retrying) {
		r.fail(mongotest.Fail{Code: 10107, Labels: []string{"RetryableWriteError", "NoWritesPerformed"}})
	}, func(error) bool { return true }},
	"the connection is refused": {func(r *retrying) { r.d.Node(0).RefuseConnections() },
		isA[*mongoerr.TimeoutError]},
}

// retrying is what a test can do between a write and its retry.
type retrying struct {
	d      *mongotest.Deployment
	cancel context.CancelFunc
	fail   func(mongotest.Fail)
}

// TestResultsBesideUnmadeRetries: a write whose write concern was not met is tried again. If that
// cannot be, what the write did is told as it is without a retry.
func TestResultsBesideUnmadeRetries(t *testing.T) {
	notRetried := []string{"UpdateMany", "DeleteMany", "RunCommand", "CreateIndex", "CreateIndexes"}
	for what, run := range concernWrites {
		if slices.Contains(notRetried, what) {
			continue
		}
		for why, retry := range unmadeRetries {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(1))
				r := &retrying{d: d, fail: func(f mongotest.Fail) {
					f.Commands, f.Times = []string{"insert", "update", "delete", "findAndModify", "bulkWrite"}, 1
					d.FailCommand(f)
				}}
				var once sync.Once
				armed := false
				client := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, CommandMonitor: &event.CommandMonitor{
					Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
						if _, ok := e.Reply.Lookup("writeConcernError").Document(); ok && armed {
							once.Do(func() { retry.then(r) })
						}
					}}})
				begin := func() *allium.Collection[counted] {
					c := allium.CollectionOf[counted](client.Database("d"), "c")
					rig.Must(0, c.Drop(t.Context()))
					rig.Must(c.InsertMany(t.Context(), []counted{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}}))
					return c
				}
				want, wantErr := run(t.Context(), client, begin())
				c := begin()
				r.fail(mongotest.Fail{WriteConcernError: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "going"}}})
				armed = true
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				r.cancel = cancel
				got, err := run(ctx, client, c)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: got %+v, want %+v, with %v", what, why, got, want, err)
				}
				if !mentionsConcern(err) || !retry.also(err) {
					t.Errorf("%s, %s: the error is %v", what, why, err)
				}
				for _, own := range []error{mongoerr.ErrNoDocuments, mongoerr.ErrConflict} {
					if errors.Is(wantErr, own) != errors.Is(err, own) {
						t.Errorf("%s, %s: the error is %v, and without a retry %v", what, why, err, wantErr)
					}
				}
			})
		}
	}
}

// TestOthersOutcomes: what a server answered to one operation is why there is no server for the
// next, and its error says so; but the next was never sent, and does not tell of a write, a code or
// a label that are the first one's.
func TestOthersOutcomes(t *testing.T) {
	foreign := map[string]mongotest.Fail{
		"a write concern": {WriteConcernError: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "going"}}},
		"a command":       {Code: 91, Labels: []string{"RetryableWriteError"}},
	}
	for what, run := range concernWrites {
		for why, fail := range foreign {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(1))
				client := rig.Open(t, d.URI(), allium.ClientOptions{Dialer: d, RetryWrites: new(false),
					CommandMonitor: &event.CommandMonitor{
						Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
							if _, ok := e.Reply.Lookup("writeConcernError").Document(); ok {
								d.Node(0).Hang()
							}
						},
						Failed: func(context.Context, *event.CommandFailed) { d.Node(0).Hang() },
					}})
				c := allium.CollectionOf[counted](client.Database("d"), "c")
				rig.Must(c.InsertMany(t.Context(), []counted{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}}))
				fail.Commands, fail.Times = []string{"insert"}, 1
				d.FailCommand(fail)
				if _, err := c.InsertOne(t.Context(), counted{ID: 8}); err == nil {
					t.Fatal("the first operation had no error")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err := run(ctx, client, c)
				if !isA[*mongoerr.SelectionError](err) || !strings.Contains(err.Error(), "ShutdownInProgress (91)") {
					t.Errorf("%s after the error of %s: %v", what, why, err)
				}
				if mentionsConcern(err) || isA[*mongoerr.ServerError](err) || mongoerr.HasCode(err, 91) ||
					mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) || errors.Is(err, mongoerr.ErrConflict) ||
					errors.Is(err, mongoerr.ErrNoDocuments) {
					t.Errorf("%s after the error of %s has it for its own: %#v", what, why, err)
				}
			})
		}
	}
}

func isA[E error](err error) bool { return errors.As(err, new(E)) }

// mentionsConcern reports whether an error is, or has, one of a write concern.
func mentionsConcern(err error) bool {
	var bulk *mongoerr.BulkWriteError
	return errors.As(err, new(*mongoerr.WriteConcernError)) || errors.As(err, &bulk) && len(bulk.WriteConcernErrors) > 0
}
