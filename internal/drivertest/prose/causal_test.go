package prose

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Causal Consistency, by their numbers; 10 has been removed
// there.

// causal are the operations that take afterClusterTime, and one that fails on the server.
func causal(write bool) (list []rig.Operation) {
	for _, op := range rig.Operations {
		switch op.Name {
		case "runCommand", "listIndexes", "listCollections", "listDatabases": // they take no read concern
			continue
		}
		if op.Write == write {
			list = append(list, op)
		}
	}
	if write {
		list = append(list, rig.Operation{Name: "an update that fails", Write: true, Run: func(ctx context.Context, c *allium.UntypedCollection) error {
			_, err := c.UpdateOne(ctx, rig.Everything, bson.M{"$nonsense": bson.M{"x": 1}})
			if err == nil {
				return context.Canceled
			}
			return nil
		}})
	}
	return list
}

// furtherReads are the reads among rig.FurtherOperations that take a read concern.
func furtherReads() (list []rig.Operation) {
	for _, name := range []string{"Client.Watch", "Collection.Count", "Collection.EstimatedDocumentCount", "Collection.Watch", "Database.Aggregate",
		"Database.Watch", "allium.Aggregate", "Bucket.Find", "Bucket.DownloadToStreamByName"} {
		list = append(list, rig.Operation{Name: name, Write: false, Run: func(ctx context.Context, c *allium.UntypedCollection) error {
			err := rig.FurtherOperations[name](ctx, c)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}})
	}
	return list
}

// known reports whether an error is that of an operation which one before has made impossible.
func known(err error) bool {
	return strings.Contains(err.Error(), "IndexNotFound") || strings.Contains(err.Error(), "already exists")
}

func TestProseCausalConsistency(t *testing.T) {
	t.Run("1 a new session has no operation time", func(t *testing.T) {
		r := rig.New(t, "replicaset")
		if got := rig.StartSession(t, r.Client).OperationTime(); got != nil {
			t.Errorf("%v", got)
		}
	})

	t.Run("2 the first read has no afterClusterTime", func(t *testing.T) {
		rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
			for _, op := range causal(false) {
				r.Log.Reset()
				if err := op.Run(allium.WithSession(t.Context(), rig.StartSession(t, r.Client)), r.Coll); err != nil {
					t.Fatalf("%s: %v", op.Name, err)
				}
				if e := r.Log.Of("")[0]; !rig.AfterClusterTime(e).IsZero() {
					t.Errorf("%s: %v", op.Name, e.Command)
				}
			}
		})
	})

	t.Run("3 the first operation sets the operation time, errors too", func(t *testing.T) {
		for _, name := range rig.Replicated {
			t.Run(name, func(t *testing.T) {
				r := rig.New(t, name)
				var replied bson.Timestamp
				note := func(reply bson.Raw) { replied, _ = reply.Lookup("operationTime").Timestamp() }
				client := rig.Open(t, r.Deployment.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
					Succeeded: func(_ context.Context, e *event.CommandSucceeded) { note(e.Reply) },
					Failed: func(_ context.Context, e *event.CommandFailed) {
						if s, ok := e.Failure.(*mongoerr.ServerError); ok {
							note(s.Raw)
						}
					},
				}})
				coll := client.Database("sessions").Collection("docs")
				fails := func(err error) error {
					if err == nil {
						return context.Canceled
					}
					return nil
				}
				failing := []rig.Operation{
					{Name: "an unknown command", Write: false, Run: func(ctx context.Context, c *allium.UntypedCollection) error {
						return fails(rig.ErrorOf(c.Database().RunCommand(ctx, bson.D{{Key: "nonsense", Value: 1}})))
					}},
					{Name: "a read that fails", Write: false, Run: func(ctx context.Context, c *allium.UntypedCollection) error {
						return fails(rig.ErrorOf(c.FindOne(ctx, bson.D{{Key: "$nonsense", Value: 1}})))
					}},
					{Name: "a write error", Write: true, Run: func(ctx context.Context, c *allium.UntypedCollection) error {
						return fails(rig.ErrorOf(c.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 1}}})))
					}},
				}
				for _, consistent := range []bool{true, false} {
					for _, op := range slices.Concat(rig.Operations, furtherReads(), causal(true), failing) {
						s := rig.StartSession(t, client, allium.SessionOptions{CausalConsistency: &consistent})
						replied = bson.Timestamp{}
						if err := op.Run(allium.WithSession(t.Context(), s), coll); err != nil && !known(err) {
							t.Fatalf("%s: %v", op.Name, err)
						}
						if got := s.OperationTime(); got == nil || *got != replied || replied.IsZero() {
							t.Errorf("%s: operation time %v, replied %v", op.Name, got, replied)
						}
					}
				}
			})
		}
	})

	t.Run("4 and 5 an operation after a read, a read after a write", func(t *testing.T) {
		rig.On(t, rig.Replicated, func(t *testing.T, r *rig.Rig) {
			first := causal(true)
			var findOne rig.Operation
			for _, op := range rig.Operations {
				if op.Name == "findOne" {
					findOne = op
				}
			}
			pairs := [][2]rig.Operation{}
			for _, op := range slices.Concat(causal(false), furtherReads(), first) {
				pairs = append(pairs, [2]rig.Operation{findOne, op})
			}
			for _, op := range first {
				pairs = append(pairs, [2]rig.Operation{op, findOne})
			}
			for _, p := range pairs {
				s := rig.StartSession(t, r.Client)
				ctx := allium.WithSession(t.Context(), s)
				if err := p[0].Run(ctx, r.Coll); err != nil && !known(err) {
					t.Fatalf("%s: %v", p[0].Name, err)
				}
				want := s.OperationTime()
				if _, err := r.Coll.InsertOne(t.Context(), bson.D{}); err != nil { // time goes on without the session
					t.Fatal(err)
				}
				r.Log.Reset()
				_ = p[1].Run(ctx, r.Coll)
				got, ok := rig.AfterClusterTime(r.Log.Of("")[0]).Timestamp()
				if want == nil || !ok || got != *want {
					t.Errorf("%s, then %s: afterClusterTime %v, want %v", p[0].Name, p[1].Name, got, want)
				}
				s.End(t.Context())
			}
		})
	})

	t.Run("6 a session without causal consistency", func(t *testing.T) {
		rig.On(t, rig.Replicated, func(t *testing.T, r *rig.Rig) {
			ctx := allium.WithSession(t.Context(), rig.StartSession(t, r.Client, allium.SessionOptions{CausalConsistency: new(false)}))
			for _, op := range append(causal(false), causal(false)...) {
				if err := op.Run(ctx, r.Coll); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range r.Log.Of("") {
				if !rig.AfterClusterTime(e).IsZero() {
					t.Errorf("%v", e.Command)
				}
			}
		})
	})

	t.Run("7 and 11 a deployment without cluster times", func(t *testing.T) {
		r := rig.New(t, "standalone")
		s := rig.StartSession(t, r.Client)
		s.AdvanceOperationTime(bson.Timestamp{T: 1, I: 1}) // another deployment's
		ctx := allium.WithSession(t.Context(), s)
		for _, op := range append(causal(false), causal(true)...) {
			if err := op.Run(ctx, r.Coll); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range r.Log.Of("") {
			if !rig.AfterClusterTime(e).IsZero() || !e.Command.Lookup("$clusterTime").IsZero() {
				t.Errorf("%v", e.Command)
			}
		}
	})

	t.Run("8 and 9 read concerns", func(t *testing.T) {
		rig.On(t, rig.Replicated, func(t *testing.T, r *rig.Rig) {
			for level, coll := range map[string]*allium.UntypedCollection{
				"":         r.Coll,
				"majority": r.Coll.With(allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{Level: "majority"}}),
			} {
				for _, op := range causal(false) {
					s := rig.StartSession(t, r.Client)
					ctx := allium.WithSession(t.Context(), s)
					if _, err := coll.FindOne(ctx, rig.Everything); err != nil {
						t.Fatal(err)
					}
					want := s.OperationTime()
					r.Log.Reset()
					if err := op.Run(ctx, coll); err != nil {
						t.Fatal(err)
					}
					e := r.Log.Of("")[0]
					if got, _ := e.Command.Lookup("readConcern", "level").StringValue(); got != level {
						t.Errorf("%s: level %q, want %q", op.Name, got, level)
					}
					if got, _ := rig.AfterClusterTime(e).Timestamp(); got != *want {
						t.Errorf("%s: afterClusterTime %v, want %v", op.Name, got, want)
					}
				}
			}
		})
	})

	t.Run("12 messages have a cluster time", func(t *testing.T) {
		rig.On(t, rig.Replicated, func(t *testing.T, r *rig.Rig) {
			if _, err := r.Coll.FindOne(t.Context(), rig.Everything); err != nil {
				t.Fatal(err)
			}
			if e := r.Log.Of("find")[0]; e.Command.Lookup("$clusterTime").IsZero() {
				t.Errorf("%v", e.Command)
			}
		})
	})
}

// A session takes the times of another one over, never back, and checks nothing: what it is told
// holds for itself only.
func TestSessionAdvances(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, r.Client)
	tiny := bson.Timestamp{I: 5}
	if s.AdvanceOperationTime(tiny); s.OperationTime() == nil || *s.OperationTime() != tiny {
		t.Errorf("operation time %v, want %v: any is taken", s.OperationTime(), tiny)
	}
	later, earlier := bson.Timestamp{T: 20, I: 2}, bson.Timestamp{T: 20, I: 1}
	s.AdvanceOperationTime(later)
	s.AdvanceOperationTime(earlier)
	if got := s.OperationTime(); *got != later {
		t.Errorf("operation time %v", got)
	}
	clusterTime := func(ts bson.Timestamp) bson.Raw {
		return rig.Must(bson.Marshal(bson.D{{Key: "clusterTime", Value: ts}}))
	}
	future := bson.Timestamp{T: 1 << 31}
	for _, ts := range []bson.Timestamp{future, earlier} {
		if err := s.AdvanceClusterTime(clusterTime(ts)); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := s.ClusterTime().Lookup("clusterTime").Timestamp(); got != future {
		t.Errorf("cluster time %v", got)
	}
	if err := s.AdvanceClusterTime(rig.Must(bson.Marshal(bson.D{}))); err == nil {
		t.Error("a document without a time was taken")
	}
	r.Deployment.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "ping" {
			return rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}})), nil
		}
		return nil, nil
	})
	sent := func(ctx context.Context) bson.Timestamp {
		r.Log.Reset()
		if _, err := r.Client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		ts, _ := r.Log.Of("ping")[0].Command.Lookup("$clusterTime", "clusterTime").Timestamp()
		return ts
	}
	if got := sent(allium.WithSession(t.Context(), s)); got != future {
		t.Errorf("the session sends %v", got)
	}
	if got := sent(t.Context()); got == future {
		t.Error("an invalid time has reached the client")
	}
}

// Two goroutines cannot use a session at once, and a session cannot send what has no answer.
func TestSessionMisuse(t *testing.T) {
	r := rig.New(t, "replicaset")
	s := rig.StartSession(t, r.Client)
	ctx := allium.WithSession(t.Context(), s)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.Deployment.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "find" {
			close(entered)
			<-leave
		}
		return nil, nil
	})
	done := make(chan error)
	go func() {
		_, err := r.Coll.FindOne(ctx, rig.Everything)
		done <- err
	}()
	<-entered
	if _, err := r.Coll.InsertOne(ctx, rig.Everything); err == nil || !strings.Contains(err.Error(), "two operations at once") {
		t.Errorf("second operation: %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("first operation: %v", err)
	}
	r.Log.Reset()
	coll := r.Coll.With(allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()})
	if _, err := coll.InsertOne(ctx, rig.Everything); err == nil || !strings.Contains(err.Error(), "unacknowledged") {
		t.Errorf("unacknowledged: %v", err)
	}
	if n := len(r.Log.Of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
	if _, err := coll.InsertOne(t.Context(), rig.Everything); err != nil {
		t.Fatal(err)
	}
	if e := r.Log.Of("insert")[0]; !e.Command.Lookup("lsid").IsZero() {
		t.Errorf("an unacknowledged write has a session: %v", e.Command)
	}
}
