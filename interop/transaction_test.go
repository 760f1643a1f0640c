package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	alliumbson "allium/bson"
	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// session starts a session that ends with the test.
func (p *peer) session(t *testing.T, opts ...options.Lister[options.SessionOptions]) (*mongo.Session, context.Context) {
	t.Helper()
	s := must(p.client.StartSession(opts...))(t)
	t.Cleanup(func() { s.EndSession(context.Background()) })
	return s, mongo.NewSessionContext(t.Context(), s)
}

func TestOfficialTransaction(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		coll := p.db.Collection("accounts")
		must(coll.InsertMany(t.Context(), []any{doc("_id", "a", "n", 10), doc("_id", "b", "n", 10)}))(t)
		move := func(ctx context.Context) {
			t.Helper()
			must(coll.UpdateOne(ctx, doc("_id", "a"), doc("$inc", doc("n", -3))))(t)
			must(coll.UpdateOne(ctx, doc("_id", "b"), doc("$inc", doc("n", 3))))(t)
			must(p.db.Collection("log").InsertOne(ctx, doc("moved", 3)))(t) // makes the collection, too
		}
		balances := func(ctx context.Context) string {
			t.Helper()
			cur, err := coll.Find(ctx, doc(), options.Find().SetSort(doc("_id", 1)))
			return all(t, cur, err)
		}
		const before, after = `{"_id":"a","n":10} {"_id":"b","n":10}`, `{"_id":"a","n":7} {"_id":"b","n":13}`

		s, inside := p.session(t)
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		move(inside)
		if got := balances(inside); got != after {
			t.Errorf("inside: %s", got)
		}
		if got := balances(t.Context()); got != before {
			t.Errorf("outside, not committed yet: %s", got)
		}
		if err := s.AbortTransaction(inside); err != nil {
			t.Fatal(err)
		}
		if got := balances(t.Context()); got != before {
			t.Errorf("aborted: %s", got)
		}

		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		move(inside)
		must(coll.InsertOne(inside, doc("_id", "c")))(t)
		must(coll.DeleteOne(inside, doc("_id", "c")))(t)
		for range 2 { // to commit again is allowed
			if err := s.CommitTransaction(inside); err != nil {
				t.Fatal(err)
			}
		}
		if got := balances(t.Context()); got != after {
			t.Errorf("committed: %s", got)
		}
		if n := must(p.db.Collection("log").CountDocuments(t.Context(), doc()))(t); n != 1 {
			t.Errorf("%d log entries", n)
		}
	})
}

// TestOfficialWriteConflict has two transactions that write the same document: the second fails at
// once and may be tried again after the first.
func TestOfficialWriteConflict(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		coll := p.db.Collection("conflict")
		must(coll.InsertOne(t.Context(), doc("_id", 1, "n", 0)))(t)
		inc := func(ctx context.Context) error {
			_, err := coll.UpdateOne(ctx, doc("_id", 1), doc("$inc", doc("n", 1)))
			return err
		}
		s1, ctx1 := p.session(t)
		s2, ctx2 := p.session(t)
		for _, s := range []*mongo.Session{s1, s2} {
			if err := s.StartTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		if err := inc(ctx1); err != nil {
			t.Fatal(err)
		}
		err := inc(ctx2)
		wantCode(t, err, 112)
		if le, ok := errors.AsType[mongo.LabeledError](err); !ok || !le.HasErrorLabel("TransientTransactionError") {
			t.Errorf("the conflict has no TransientTransactionError label: %v", err)
		}
		if err := s2.AbortTransaction(ctx2); err != nil {
			t.Fatal(err)
		}
		if err := s1.CommitTransaction(ctx1); err != nil {
			t.Fatal(err)
		}
		if err := s2.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := inc(ctx2); err != nil {
			t.Fatal(err)
		}
		if err := s2.CommitTransaction(ctx2); err != nil {
			t.Fatal(err)
		}
		cur, err := coll.Find(t.Context(), doc())
		if got := all(t, cur, err); got != `{"_id":1,"n":2}` {
			t.Errorf("in the end: %s", got)
		}
	})
}

// TestOfficialWithTransaction injects errors on which WithTransaction runs the whole or the commit
// once more.
func TestOfficialWithTransaction(t *testing.T) {
	tests := []struct {
		name            string
		fail            mongotest.Fail
		bodies, commits int
	}{
		{"nothing fails", mongotest.Fail{Commands: []string{"nothing"}, Code: 1}, 1, 1},
		{"transient error in the body", mongotest.Fail{Commands: []string{"insert"}, Times: 2, Code: 112, Labels: []string{"TransientTransactionError"}}, 3, 1},
		{"connection lost in the body", mongotest.Fail{Commands: []string{"insert"}, Times: 1, CloseConnection: true}, 2, 1},
		{"transient error at commit", mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, Code: 251, Labels: []string{"TransientTransactionError"}}, 2, 2},
		{"unknown result of the commit", mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 2, Code: 64, Labels: []string{"UnknownTransactionCommitResult"}}, 1, 3},
		{"connection lost at commit", mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, CloseConnection: true}, 1, 2},
		{"write concern fails at commit", mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, WriteConcernError: alliumDoc("code", 64, "errmsg", "not yet")}, 1, 2},
	}
	// With one mongos: another one would not wait for a commit that never came, but end the
	// transaction.
	for name, kind := range map[string]mongotest.Option{"replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 1), "loadbalanced": mongotest.LoadBalanced(1)} {
		t.Run(name, func(t *testing.T) {
			p := official(t, kind)
			coll := p.db.Collection("with")
			for i, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					s, _ := p.session(t)
					commits := p.count("commitTransaction")
					p.d.FailCommand(tt.fail)
					defer p.d.ClearFailures()
					bodies := 0
					got := must(s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
						bodies++
						if _, err := coll.InsertOne(ctx, doc("_id", fmt.Sprint(i, "-", bodies), "test", i)); err != nil {
							return nil, err
						}
						return "result", nil
					}))(t)
					if got != "result" || bodies != tt.bodies || int(commits.Load()) != tt.commits {
						t.Errorf("returns %v; the body ran %d times, %d commits; want %d and %d", got, bodies, commits.Load(), tt.bodies, tt.commits)
					}
					if n := must(coll.CountDocuments(t.Context(), doc("test", i)))(t); n != 1 {
						t.Errorf("%d documents inserted", n)
					}
				})
			}
			t.Run("an error of the body's own aborts", func(t *testing.T) {
				s, _ := p.session(t)
				aborts := p.count("abortTransaction")
				mine := errors.New("mine")
				_, err := s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
					must(coll.InsertOne(ctx, doc("_id", "gone")))(t)
					return nil, mine
				})
				if !errors.Is(err, mine) || aborts.Load() != 1 {
					t.Errorf("returns %v after %d aborts", err, aborts.Load())
				}
				if n := must(coll.CountDocuments(t.Context(), doc("_id", "gone")))(t); n != 0 {
					t.Errorf("what was aborted is there")
				}
			})
		})
	}
}

// TestOfficialCommitOnAnotherMongos loses the reply of a commit: the driver tries the other mongos,
// which finds out what became of the transaction by its recovery token.
func TestOfficialCommitOnAnotherMongos(t *testing.T) {
	p := official(t, mongotest.Sharded(2, 2))
	coll := p.db.Collection("recovered")
	must(coll.InsertOne(t.Context(), doc("_id", 0)))(t)
	moved := 0 // the driver prefers the other mongos, but does not insist
	for i := range 20 {
		s, _ := p.session(t)
		bodies := 0
		var commits []int
		var mu sync.Mutex
		p.d.OnCommand(func(c *mongotest.Command) (alliumbson.Raw, error) {
			if c.Name != "commitTransaction" {
				return nil, nil
			}
			mu.Lock()
			defer mu.Unlock()
			if commits = append(commits, slices.Index(p.d.Nodes(), c.Node)); len(commits) == 1 {
				c.Node.SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1})
			}
			return nil, nil
		})
		must(s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
			bodies++
			return coll.InsertOne(ctx, doc("try", i))
		}))(t)
		if n := must(coll.CountDocuments(t.Context(), doc("try", i)))(t); n != 1 || bodies != 1 || len(commits) != 2 {
			t.Errorf("%d documents, the body ran %d times, commits went to the mongoses %v", n, bodies, commits)
		} else if commits[0] != commits[1] {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no commit was tried on the other mongos")
	}
}

// TestOfficialTransactionAcrossStepDown: a transaction does not survive its primary.
func TestOfficialTransactionAcrossStepDown(t *testing.T) {
	p := official(t, mongotest.ReplicaSet(3))
	coll := p.db.Collection("stepdown")
	must(coll.InsertOne(t.Context(), doc("_id", 0)))(t)
	s, _ := p.session(t)
	bodies := 0
	must(s.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
		bodies++
		if _, err := coll.InsertOne(ctx, doc("_id", 1)); err != nil {
			return nil, err
		}
		if bodies == 1 {
			p.d.StepDown()
		}
		return coll.InsertOne(ctx, doc("_id", 2))
	}))(t)
	if n := must(coll.CountDocuments(t.Context(), doc()))(t); n != 3 || bodies != 2 {
		t.Errorf("%d documents after %d tries", n, bodies)
	}
}

// TestOfficialTransactionErrors are what the server refuses in a transaction.
func TestOfficialTransactionErrors(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		coll := p.db.Collection("errors")
		must(coll.InsertOne(t.Context(), doc("_id", 1)))(t)
		s, inside := p.session(t)
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		must(coll.CountDocuments(inside, doc()))(t)
		wantCode(t, p.client.Database("admin").RunCommand(inside, doc("listDatabases", 1)).Err(), 263)
		// A write that fails ends the transaction.
		_, err := coll.InsertOne(inside, doc("_id", 1))
		wantCode(t, err, 11000)
		_, err = coll.InsertOne(inside, doc("_id", 2))
		wantCode(t, err, 251)
		if le, ok := errors.AsType[mongo.LabeledError](err); !ok || !le.HasErrorLabel("TransientTransactionError") {
			t.Errorf("no TransientTransactionError label: %v", err)
		}
		if err := s.AbortTransaction(inside); err != nil {
			t.Error(err)
		}
	})
}

// TestOfficialCausalConsistency reads its own writes from secondaries that were behind.
func TestOfficialCausalConsistency(t *testing.T) {
	p := official(t, mongotest.ReplicaSet(3))
	second := p.db.Client().Database("interop", options.Database().SetReadPreference(secondaryOnly)).Collection("causal")
	s, inside := p.session(t) // causally consistent unless asked otherwise
	for i := range 20 {
		behind := p.d.Secondaries()[i%2]
		behind.HoldBack()
		must(p.db.Collection("causal").InsertOne(inside, doc("_id", i)))(t)
		if s.OperationTime() == nil || s.ClusterTime() == nil {
			t.Fatal("the session has no operation time or cluster time")
		}
		behind.CatchUp()
		if n := must(second.CountDocuments(inside, doc()))(t); n != int64(i+1) {
			t.Fatalf("the session's own write is not there: %d of %d", n, i+1)
		}
	}
	// Another session that is told this one's times sees the same.
	s2, inside2 := p.session(t)
	if err := errors.Join(s2.AdvanceClusterTime(s.ClusterTime()), s2.AdvanceOperationTime(s.OperationTime())); err != nil {
		t.Fatal(err)
	}
	if n := must(second.CountDocuments(inside2, doc()))(t); n != 20 {
		t.Errorf("%d documents", n)
	}
}

func TestOfficialSnapshotSession(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		a, b := p.db.Collection("a"), p.db.Collection("b")
		for _, c := range []*mongo.Collection{a, b} {
			must(c.InsertMany(t.Context(), []any{doc("_id", 1), doc("_id", 2)}))(t)
		}
		s, inside := p.session(t, options.Session().SetSnapshot(true))
		if n := must(a.CountDocuments(inside, doc()))(t); n != 2 {
			t.Fatalf("%d documents", n)
		}
		for _, c := range []*mongo.Collection{a, b} {
			must(c.DeleteOne(t.Context(), doc("_id", 1)))(t)
			must(c.InsertMany(t.Context(), []any{doc("_id", 3), doc("_id", 4)}))(t)
		}
		for _, c := range []*mongo.Collection{a, b} {
			cur, err := c.Find(inside, doc(), options.Find().SetSort(doc("_id", 1)).SetBatchSize(1))
			if got := all(t, cur, err); got != `{"_id":1} {"_id":2}` {
				t.Errorf("find in the snapshot: %s", got)
			}
			cur, err = c.Aggregate(inside, []bson.D{doc("$group", doc("_id", nil, "n", doc("$sum", "$_id")))})
			if got := all(t, cur, err); got != `{"_id":null,"n":3}` {
				t.Errorf("aggregate in the snapshot: %s", got)
			}
			var ids []int
			if err := c.Distinct(inside, "_id", doc()).Decode(&ids); err != nil || !slices.Equal(ids, []int{1, 2}) {
				t.Errorf("distinct in the snapshot: %v, %v", ids, err)
			}
		}
		// A session that is given the time reads the same.
		if s.SnapshotTime().IsZero() {
			t.Fatal("the session has no snapshot time")
		}
		_, later := p.session(t, options.Session().SetSnapshot(true).SetSnapshotTime(s.SnapshotTime()))
		if n := must(b.CountDocuments(later, doc()))(t); n != 2 {
			t.Errorf("%d documents at the snapshot's time", n)
		}
		if n := must(b.CountDocuments(t.Context(), doc()))(t); n != 3 {
			t.Errorf("%d documents outside", n)
		}
	})
}
