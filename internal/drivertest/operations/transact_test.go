package operations

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/owncode"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// A function that keeps the error of an operation to itself cannot commit: Transact says so at
// once, with the first error, on every topology and whatever kind of operation failed.
func TestTransactSwallowedError(t *testing.T) {
	one := bson.D{{Key: "_id", Value: 1}}
	failing := map[string]func(ctx context.Context, coll *allium.UntypedCollection) error{
		"insert one": func(ctx context.Context, coll *allium.UntypedCollection) error {
			_, err := coll.InsertOne(ctx, one)
			return err
		},
		"insert many": func(ctx context.Context, coll *allium.UntypedCollection) error {
			_, err := coll.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 2}}, one}, allium.InsertManyOptions{Unordered: true})
			return err
		},
		"find and modify": func(ctx context.Context, coll *allium.UntypedCollection) error {
			_, err := coll.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "u", Value: 1}}}}, allium.FindOneAndUpdateOptions{Upsert: true})
			return err
		},
		"bulk write": func(ctx context.Context, coll *allium.UntypedCollection) error {
			_, err := coll.Database().Client().BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(one)})
			return err
		},
		"run command": func(ctx context.Context, coll *allium.UntypedCollection) error {
			_, err := coll.Database().RunCommand(ctx, bson.D{{Key: "insert", Value: "test"}, {Key: "documents", Value: bson.A{one}}})
			return err
		},
	}
	for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 1)} {
		for name, fail := range failing {
			t.Run(kind+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, client, log := rig.Bubble(t, allium.ClientOptions{}, topology)
					coll := client.Database("test").Collection("test")
					if _, err := coll.CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true, Sparse: true}); err != nil {
						t.Fatal(err)
					}
					if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: 1}}); err != nil {
						t.Fatal(err)
					}
					log.Reset()
					started, calls := time.Now(), 0
					var first error
					err := client.Transact(t.Context(), func(ctx context.Context) error {
						calls++
						if first = fail(ctx, coll); first == nil {
							t.Error("the operation did not fail")
						}
						_, _ = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 9}}) // fails because of the first, and is not the reason
						return nil
					})
					if !errors.Is(err, mongoerr.ErrDuplicateKey) {
						t.Errorf("error %v, want the first, %v", err, first)
					}
					if mongoerr.HasLabel(err, "TransientTransactionError") {
						t.Errorf("error %v asks for another attempt, which would fail in the same way", err)
					}
					if elapsed := time.Since(started); calls != 1 || elapsed != 0 {
						t.Errorf("%d calls in %v, want 1 at once", calls, elapsed)
					}
					if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
						t.Errorf("%d documents, %v, want 1", n, err)
					}
				})
			})
		}
	}
}

// If what the function keeps to itself is a transient error, another attempt may succeed.
func TestTransactSwallowedTransientError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
		coll := client.Database("test").Collection("test")
		d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: 112, Labels: []string{"TransientTransactionError"}})
		calls := 0
		err := client.Transact(t.Context(), func(ctx context.Context) error {
			calls++
			_, _ = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("%d calls, %v, want 2 and no error", calls, err)
		}
	})
}

// noForm is a document without BSON form.
type noForm struct{}

func (noForm) MarshalBSON() ([]byte, error) { return nil, errors.New("no form") }

// An operation that never left the client has failed all the same: a function that keeps that to
// itself commits nothing of the others.
func TestTransactSwallowedUnsentError(t *testing.T) {
	type coll = *allium.UntypedCollection
	two := bson.D{{Key: "_id", Value: 2}}
	for name, tt := range map[string]struct {
		fail   func(ctx context.Context, c coll) error
		text   string
		within time.Duration // the timeout of Transact
	}{
		"no BSON form": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(allium.CollectionOf[noForm](c.Database(), "test").InsertOne(ctx, noForm{}))
		}, "no form", 0},
		"a filter without BSON form": {func(ctx context.Context, c coll) error { return rig.ErrorOf(c.DeleteOne(ctx, noForm{})) }, "no form", 0},
		"a bulk write without BSON form": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(c.BulkWrite(ctx, []allium.WriteModel{allium.As[noForm](c).InsertOneModel(noForm{})}))
		}, "no form", 0},
		"a client's bulk write without BSON form": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{allium.As[noForm](c).InsertOneModel(noForm{})}))
		}, "no form", 0},
		"too large": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(c.InsertOne(ctx, bson.D{{Key: "x", Value: make([]byte, 17<<20)}}))
		}, "", 0},
		"a read of secondaries": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(c.Database().RunCommand(ctx, bson.D{{Key: "count", Value: "test"}}, allium.RunCommandOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}}))
		}, "must be primary", 0},
		"a timeout of its own": {func(ctx context.Context, c coll) error {
			return rig.ErrorOf(c.InsertOne(ctx, two, allium.InsertOneOptions{Timeout: new(time.Second)}))
		}, "timeout of its own", time.Minute},
		"a panic in a listener": {func(ctx context.Context, c coll) error {
			how, _ := owncode.Ending(func() error { return rig.ErrorOf(c.FindOne(context.WithValue(ctx, noForm{}, true), bson.D{})) })
			return errors.New(how)
		}, "panicked", 0},
		"two operations at once": {func(ctx context.Context, c coll) (err error) {
			listening := context.WithValue(ctx, twice{}, func() { err = rig.ErrorOf(c.InsertOne(ctx, two)) })
			_, _ = c.FindOne(listening, bson.D{})
			return err
		}, "two operations at once", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, _ := rig.Bubble(t, allium.ClientOptions{CommandMonitor: &event.CommandMonitor{Started: func(ctx context.Context, _ *event.CommandStarted) {
					if ctx.Value(noForm{}) != nil {
						panic("the program's")
					}
					if f, ok := ctx.Value(twice{}).(func()); ok {
						f()
					}
				}}}, mongotest.ReplicaSet(1))
				c := client.Database("test").Collection("test")
				if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
					t.Fatal(err)
				}
				var opts allium.TransactionOptions
				if tt.within > 0 {
					opts.Timeout = &tt.within
				}
				calls := 0
				err := client.Transact(t.Context(), func(ctx context.Context) error {
					calls++
					if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
						return err
					}
					if tt.fail(ctx, c) == nil {
						t.Error("the operation did not fail")
					}
					_, _ = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 3}})
					return nil
				}, opts)
				if err == nil || !strings.Contains(err.Error(), "did not return its error") || !strings.Contains(err.Error(), tt.text) || calls != 1 {
					t.Errorf("%d calls, %v", calls, err)
				}
				if n, err := c.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
					t.Errorf("%d documents, %v, want 1", n, err)
				}
			})
		})
	}
}

// twice is the key under which a context holds what a listener is to do.
type twice struct{}

// If no server or connection was found, another attempt may succeed.
func TestTransactSwallowedUnsentTransientError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.ReplicaSet(1))
		dialer := &rig.FaultyDialer{Dialer: d}
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: dialer, MaxIdleTime: new(time.Millisecond), ServerSelectionTimeout: new(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		c := client.Database("test").Collection("test")
		calls := 0
		err = client.Transact(t.Context(), func(ctx context.Context) error {
			calls++
			if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
				return err
			}
			if calls == 1 {
				time.Sleep(time.Second) // the connection is idle for too long
				dialer.Down.Store(true)
			}
			_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
			if calls == 1 && err == nil {
				t.Error("the operation did not fail")
			}
			dialer.Down.Store(false)
			return nil
		})
		if n, _ := c.CountDocuments(t.Context(), bson.D{}); err != nil || calls != 2 || n != 2 {
			t.Errorf("%d calls, %v, %d documents; want 2, no error and both documents", calls, err, n)
		}
	})
}

// A commit by hand fails as the server says, with the first error beside it.
func TestCommitAfterFailedOperation(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	coll := client.Database("test").Collection("test")
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	s := rig.StartSession(t, client)
	for range 2 { // what failed in one transaction says nothing of the next
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		_, first := coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{{Key: "_id", Value: 1}})
		err := s.CommitTransaction(t.Context())
		if !mongoerr.HasCode(err, 251) || !mongoerr.HasLabel(err, "TransientTransactionError") || !errors.Is(err, mongoerr.ErrDuplicateKey) {
			t.Errorf("error %v, want NoSuchTransaction because of %v", err, first)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("error has more than one line: %v", err)
		}
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		if _, err := coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{}); err != nil {
			t.Error(err)
		}
		if err := s.CommitTransaction(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Transactions do not nest: the inner one would commit even if the outer one rolls back.
func TestTransactNested(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client, other := rig.Open(t, d.URI()), rig.Open(t, d.URI())
	coll := client.Database("test").Collection("test")
	if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	inner := 0
	insert := func(ctx context.Context) error {
		inner++
		_, err := coll.InsertOne(ctx, bson.D{})
		return err
	}
	s := rig.StartSession(t, client)
	nested := map[string]func(ctx context.Context) error{
		"client":          func(ctx context.Context) error { return client.Transact(ctx, insert) },
		"another session": func(ctx context.Context) error { return s.Transact(ctx, insert) },
		"same session":    func(ctx context.Context) error { return allium.SessionFrom(ctx).Transact(ctx, insert) },
	}
	for name, transact := range nested {
		for how, outer := range map[string]func(fn func(ctx context.Context) error) error{
			"Transact": func(fn func(ctx context.Context) error) error { return client.Transact(t.Context(), fn) },
			"StartTransaction": func(fn func(ctx context.Context) error) error {
				s := rig.StartSession(t, client)
				defer s.End(t.Context())
				if err := s.StartTransaction(); err != nil {
					return err
				}
				return fn(allium.WithSession(t.Context(), s))
			},
		} {
			err := outer(func(ctx context.Context) error { return transact(ctx) })
			if err == nil || !strings.Contains(err.Error(), "do not nest") || inner != 0 {
				t.Errorf("%s inside of %s: %v after %d calls, want an error and none", name, how, err, inner)
			}
		}
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("%d documents, %v, want 1", n, err)
	}

	// What is meant to be independent says so, and another deployment's transaction is.
	rollback := errors.New("rolled back")
	err := client.Transact(t.Context(), func(ctx context.Context) error {
		if err := insert(ctx); err != nil {
			return err
		}
		if err := client.Transact(allium.WithSession(ctx, nil), insert); err != nil {
			return err
		}
		if err := other.Transact(ctx, func(ctx context.Context) error {
			_, err := other.Database("test").Collection("test").InsertOne(ctx, bson.D{})
			return err
		}); err != nil {
			return err
		}
		return rollback
	})
	if err != rollback {
		t.Error(err)
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 3 || err != nil {
		t.Errorf("%d documents, %v, want 3", n, err)
	}
}

// A function or a context that is nil is an error or an answer, never a panic.
func TestTransactNil(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	if err := client.Transact(t.Context(), nil); err == nil {
		t.Error("Client.Transact: no error")
	}
	if err := rig.StartSession(t, client).Transact(t.Context(), nil); err == nil {
		t.Error("Session.Transact: no error")
	}
	var none context.Context
	if s := allium.SessionFrom(none); s != nil {
		t.Errorf("SessionFrom: %v, want nil", s)
	}
	if s := allium.SessionFrom(allium.WithSession(t.Context(), nil)); s != nil {
		t.Errorf("SessionFrom: %v, want nil", s)
	}
}
