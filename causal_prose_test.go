package allium_test

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
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Causal Consistency, by their numbers; 10 has been removed
// there.

// after returns the afterClusterTime of a command.
func after(e *event.CommandStarted) bson.RawValue {
	return e.Command.Lookup("readConcern", "afterClusterTime")
}

// causal are the operations that take afterClusterTime, and one that fails on the server.
func causal(write bool) (list []operation) {
	for _, op := range operations {
		switch op.name {
		case "runCommand", "listIndexes", "listCollections", "listDatabases": // they take no read concern
			continue
		}
		if op.write == write {
			list = append(list, op)
		}
	}
	if write {
		list = append(list, operation{name: "an update that fails", write: true, run: func(ctx context.Context, c *allium.Collection[bson.D]) error {
			_, err := c.UpdateOne(ctx, everything, bson.M{"$nonsense": bson.M{"x": 1}})
			if err == nil {
				return context.Canceled
			}
			return nil
		}})
	}
	return list
}

// furtherReads are the reads among furtherOperations that take a read concern.
func furtherReads() (list []operation) {
	for _, name := range []string{"Client.Watch", "Collection.Count", "Collection.EstimatedDocumentCount", "Collection.Watch", "Database.Aggregate",
		"Database.Watch", "allium.Aggregate", "Bucket.Find", "Bucket.DownloadToStreamByName"} {
		list = append(list, operation{name: name, write: false, run: func(ctx context.Context, c *allium.Collection[bson.D]) error {
			err := furtherOperations[name](ctx, c)
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
		r := newRig(t, "replicaset")
		if got := start(t, r.client).OperationTime(); got != nil {
			t.Errorf("%v", got)
		}
	})

	t.Run("2 the first read has no afterClusterTime", func(t *testing.T) {
		on(t, allKinds, func(t *testing.T, r *rig) {
			for _, op := range causal(false) {
				r.log.reset()
				if err := op.run(allium.WithSession(t.Context(), start(t, r.client)), r.coll); err != nil {
					t.Fatalf("%s: %v", op.name, err)
				}
				if e := r.log.of("")[0]; !after(e).IsZero() {
					t.Errorf("%s: %v", op.name, e.Command)
				}
			}
		})
	})

	t.Run("3 the first operation sets the operation time, errors too", func(t *testing.T) {
		for _, name := range replicated {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, name)
				var replied bson.Timestamp
				note := func(reply bson.Raw) { replied, _ = reply.Lookup("operationTime").Timestamp() }
				client := open(t, r.d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
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
				failing := []operation{
					{name: "an unknown command", write: false, run: func(ctx context.Context, c *allium.Collection[bson.D]) error {
						return fails(errorOf(c.Database().RunCommand(ctx, bson.D{{Key: "nonsense", Value: 1}})))
					}},
					{name: "a read that fails", write: false, run: func(ctx context.Context, c *allium.Collection[bson.D]) error {
						return fails(errorOf(c.FindOne(ctx, bson.D{{Key: "$nonsense", Value: 1}})))
					}},
					{name: "a write error", write: true, run: func(ctx context.Context, c *allium.Collection[bson.D]) error {
						return fails(errorOf(c.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 1}}})))
					}},
				}
				for _, consistent := range []bool{true, false} {
					for _, op := range slices.Concat(operations, furtherReads(), causal(true), failing) {
						s := start(t, client, allium.SessionOptions{CausalConsistency: &consistent})
						replied = bson.Timestamp{}
						if err := op.run(allium.WithSession(t.Context(), s), coll); err != nil && !known(err) {
							t.Fatalf("%s: %v", op.name, err)
						}
						if got := s.OperationTime(); got == nil || *got != replied || replied.IsZero() {
							t.Errorf("%s: operation time %v, replied %v", op.name, got, replied)
						}
					}
				}
			})
		}
	})

	t.Run("4 and 5 an operation after a read, a read after a write", func(t *testing.T) {
		on(t, replicated, func(t *testing.T, r *rig) {
			first := causal(true)
			var findOne operation
			for _, op := range operations {
				if op.name == "findOne" {
					findOne = op
				}
			}
			pairs := [][2]operation{}
			for _, op := range slices.Concat(causal(false), furtherReads(), first) {
				pairs = append(pairs, [2]operation{findOne, op})
			}
			for _, op := range first {
				pairs = append(pairs, [2]operation{op, findOne})
			}
			for _, p := range pairs {
				s := start(t, r.client)
				ctx := allium.WithSession(t.Context(), s)
				if err := p[0].run(ctx, r.coll); err != nil && !known(err) {
					t.Fatalf("%s: %v", p[0].name, err)
				}
				want := s.OperationTime()
				if _, err := r.coll.InsertOne(t.Context(), bson.D{}); err != nil { // time goes on without the session
					t.Fatal(err)
				}
				r.log.reset()
				_ = p[1].run(ctx, r.coll)
				got, ok := after(r.log.of("")[0]).Timestamp()
				if want == nil || !ok || got != *want {
					t.Errorf("%s, then %s: afterClusterTime %v, want %v", p[0].name, p[1].name, got, want)
				}
				s.End(t.Context())
			}
		})
	})

	t.Run("6 a session without causal consistency", func(t *testing.T) {
		on(t, replicated, func(t *testing.T, r *rig) {
			ctx := allium.WithSession(t.Context(), start(t, r.client, allium.SessionOptions{CausalConsistency: new(false)}))
			for _, op := range append(causal(false), causal(false)...) {
				if err := op.run(ctx, r.coll); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range r.log.of("") {
				if !after(e).IsZero() {
					t.Errorf("%v", e.Command)
				}
			}
		})
	})

	t.Run("7 and 11 a deployment without cluster times", func(t *testing.T) {
		r := newRig(t, "standalone")
		s := start(t, r.client)
		s.AdvanceOperationTime(bson.Timestamp{T: 1, I: 1}) // another deployment's
		ctx := allium.WithSession(t.Context(), s)
		for _, op := range append(causal(false), causal(true)...) {
			if err := op.run(ctx, r.coll); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range r.log.of("") {
			if !after(e).IsZero() || !e.Command.Lookup("$clusterTime").IsZero() {
				t.Errorf("%v", e.Command)
			}
		}
	})

	t.Run("8 and 9 read concerns", func(t *testing.T) {
		on(t, replicated, func(t *testing.T, r *rig) {
			for level, coll := range map[string]*allium.Collection[bson.D]{
				"":         r.coll,
				"majority": r.coll.With(allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{Level: "majority"}}),
			} {
				for _, op := range causal(false) {
					s := start(t, r.client)
					ctx := allium.WithSession(t.Context(), s)
					if _, err := coll.FindOne(ctx, everything); err != nil {
						t.Fatal(err)
					}
					want := s.OperationTime()
					r.log.reset()
					if err := op.run(ctx, coll); err != nil {
						t.Fatal(err)
					}
					e := r.log.of("")[0]
					if got, _ := e.Command.Lookup("readConcern", "level").StringValue(); got != level {
						t.Errorf("%s: level %q, want %q", op.name, got, level)
					}
					if got, _ := after(e).Timestamp(); got != *want {
						t.Errorf("%s: afterClusterTime %v, want %v", op.name, got, want)
					}
				}
			}
		})
	})

	t.Run("12 messages have a cluster time", func(t *testing.T) {
		on(t, replicated, func(t *testing.T, r *rig) {
			if _, err := r.coll.FindOne(t.Context(), everything); err != nil {
				t.Fatal(err)
			}
			if e := r.log.of("find")[0]; e.Command.Lookup("$clusterTime").IsZero() {
				t.Errorf("%v", e.Command)
			}
		})
	})
}

// A session takes the times of another one over, never back, and checks nothing: what it is told
// holds for itself only.
func TestSessionAdvances(t *testing.T) {
	r := newRig(t, "replicaset")
	s := start(t, r.client)
	later, earlier := bson.Timestamp{T: 20, I: 2}, bson.Timestamp{T: 20, I: 1}
	s.AdvanceOperationTime(later)
	s.AdvanceOperationTime(earlier)
	if got := s.OperationTime(); *got != later {
		t.Errorf("operation time %v", got)
	}
	clusterTime := func(ts bson.Timestamp) bson.Raw { return must(bson.Marshal(bson.D{{Key: "clusterTime", Value: ts}})) }
	future := bson.Timestamp{T: 1 << 31}
	for _, ts := range []bson.Timestamp{future, earlier} {
		if err := s.AdvanceClusterTime(clusterTime(ts)); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := s.ClusterTime().Lookup("clusterTime").Timestamp(); got != future {
		t.Errorf("cluster time %v", got)
	}
	if err := s.AdvanceClusterTime(must(bson.Marshal(bson.D{}))); err == nil {
		t.Error("a document without a time was taken")
	}
	r.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "ping" {
			return must(bson.Marshal(bson.D{{Key: "ok", Value: 1}})), nil
		}
		return nil, nil
	})
	sent := func(ctx context.Context) bson.Timestamp {
		r.log.reset()
		if _, err := r.client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		ts, _ := r.log.of("ping")[0].Command.Lookup("$clusterTime", "clusterTime").Timestamp()
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
	r := newRig(t, "replicaset")
	s := start(t, r.client)
	ctx := allium.WithSession(t.Context(), s)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.d.OnCommand(t, func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "find" {
			close(entered)
			<-leave
		}
		return nil, nil
	})
	done := make(chan error)
	go func() {
		_, err := r.coll.FindOne(ctx, everything)
		done <- err
	}()
	<-entered
	if _, err := r.coll.InsertOne(ctx, everything); err == nil || !strings.Contains(err.Error(), "two operations at once") {
		t.Errorf("second operation: %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("first operation: %v", err)
	}
	r.log.reset()
	coll := r.coll.With(allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()})
	if _, err := coll.InsertOne(ctx, everything); err == nil || !strings.Contains(err.Error(), "unacknowledged") {
		t.Errorf("unacknowledged: %v", err)
	}
	if n := len(r.log.of("")); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
	if _, err := coll.InsertOne(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	if e := r.log.of("insert")[0]; !e.Command.Lookup("lsid").IsZero() {
		t.Errorf("an unacknowledged write has a session: %v", e.Command)
	}
}
