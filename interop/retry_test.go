package interop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	alliumbson "allium/bson"
	"allium/mongotest"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// writes are operations that are retried, and the commands they send. Each changes the documents
// exactly once.
var writes = []struct {
	name, command string
	do            func(ctx context.Context, p *peer, coll *mongo.Collection) error
	want          string // the collection afterwards; it has {_id: 1, n: 1} before
}{
	{"insertOne", "insert", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.InsertOne(ctx, doc("_id", 2))
		return err
	}, `{"_id":1,"n":1} {"_id":2}`},
	{"insertMany", "insert", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.InsertMany(ctx, []any{doc("_id", 2), doc("_id", 3)})
		return err
	}, `{"_id":1,"n":1} {"_id":2} {"_id":3}`},
	{"updateOne", "update", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		res, err := c.UpdateOne(ctx, doc("_id", 1), doc("$inc", doc("n", 1)))
		if err == nil && res.ModifiedCount != 1 {
			return fmt.Errorf("modified %d", res.ModifiedCount)
		}
		return err
	}, `{"_id":1,"n":2}`},
	{"deleteOne", "delete", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		res, err := c.DeleteOne(ctx, doc())
		if err == nil && res.DeletedCount != 1 {
			return fmt.Errorf("deleted %d", res.DeletedCount)
		}
		return err
	}, ``},
	{"findOneAndUpdate", "findAndModify", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		var old struct{ N int }
		err := c.FindOneAndUpdate(ctx, doc("_id", 1), doc("$inc", doc("n", 1))).Decode(&old)
		if err == nil && old.N != 1 {
			return fmt.Errorf("returned n: %d", old.N)
		}
		return err
	}, `{"_id":1,"n":2}`},
	{"bulkWrite", "update", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(doc("_id", 2)),
			mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$inc", doc("n", 1))),
			mongo.NewUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$inc", doc("n", 1))),
		})
		return err
	}, `{"_id":1,"n":3} {"_id":2}`},
	{"client bulkWrite", "bulkWrite", func(ctx context.Context, p *peer, c *mongo.Collection) error {
		_, err := p.client.BulkWrite(ctx, []mongo.ClientBulkWrite{
			{Database: "interop", Collection: c.Name(), Model: mongo.NewClientUpdateOneModel().SetFilter(doc("_id", 1)).SetUpdate(doc("$inc", doc("n", 1)))},
			{Database: "interop", Collection: c.Name(), Model: mongo.NewClientInsertOneModel().SetDocument(doc("_id", 2))},
		})
		return err
	}, `{"_id":1,"n":2} {"_id":2}`},
}

// reads are operations that are retried, and the commands they send.
var reads = []struct {
	name, command string
	do            func(ctx context.Context, p *peer, coll *mongo.Collection) error
}{
	{"find", "find", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		return c.FindOne(ctx, doc("n", 1)).Err()
	}},
	{"aggregate", "aggregate", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.CountDocuments(ctx, doc())
		return err
	}},
	{"count", "count", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.EstimatedDocumentCount(ctx)
		return err
	}},
	{"distinct", "distinct", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		return c.Distinct(ctx, "n", doc()).Err()
	}},
	{"listDatabases", "listDatabases", func(ctx context.Context, p *peer, _ *mongo.Collection) error {
		_, err := p.client.ListDatabaseNames(ctx, doc())
		return err
	}},
	{"listCollections", "listCollections", func(ctx context.Context, p *peer, _ *mongo.Collection) error {
		_, err := p.db.ListCollectionNames(ctx, doc())
		return err
	}},
	{"listIndexes", "listIndexes", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		_, err := c.Indexes().ListSpecifications(ctx)
		return err
	}},
	{"watch", "aggregate", func(ctx context.Context, _ *peer, c *mongo.Collection) error {
		cs, err := c.Watch(ctx, mongo.Pipeline{})
		if err == nil {
			err = cs.Close(ctx)
		}
		return err
	}},
}

// faults make a command fail once in a way that is retried, before it is executed or after.
var faults = []struct {
	name   string
	inject func(t *testing.T, p *peer, command string)
}{
	{"failCommand over the wire", func(t *testing.T, p *peer, command string) {
		if err := p.client.Database("admin").RunCommand(t.Context(), doc("configureFailPoint", "failCommand", "mode", doc("times", 1),
			"data", doc("failCommands", bson.A{command}, "errorCode", 6, "errorLabels", bson.A{"RetryableWriteError"}))).Err(); err != nil {
			t.Fatal(err)
		}
	}},
	{"connection closed", func(t *testing.T, p *peer, command string) {
		p.d.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, CloseConnection: true})
	}},
	{"reply lost", func(t *testing.T, p *peer, command string) {
		var once sync.Once
		p.d.OnCommand(func(c *mongotest.Command) (alliumbson.Raw, error) {
			if c.Name == command {
				once.Do(func() { c.Node.SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1}) })
			}
			return nil, nil
		})
	}},
}

// oneRouter are deployments in which it is known who gets a command.
var oneRouter = map[string]mongotest.Option{
	"replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 1), "loadbalanced": mongotest.LoadBalanced(1),
}

// attempts notes the commands of this name that the driver sends, and how they ended.
type attempts struct {
	mu      sync.Mutex
	name    string
	sent    int
	failed  int
	numbers map[int64]bool // transaction numbers
}

func (a *attempts) reset(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.name, a.sent, a.failed, a.numbers = name, 0, 0, map[int64]bool{}
}

func (a *attempts) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if e.CommandName == a.name {
				a.sent++
				if n, ok := e.Command.Lookup("txnNumber").AsInt64OK(); ok {
					a.numbers[n] = true
				}
			}
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if e.CommandName == a.name {
				a.failed++
			}
		},
	}
}

// TestOfficialRetries makes the first attempt of every operation fail in every way: the caller does
// not notice, and what is written is written once.
func TestOfficialRetries(t *testing.T) {
	for kind, opt := range oneRouter {
		t.Run(kind, func(t *testing.T) {
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					a := &attempts{}
					// A fault is for the next reply of a node: nobody else may wait for one, as
					// a stream of hellos and who measures round trips do.
					p := connect(t, mongotest.Start(t, opt), func(o *options.ClientOptions) {
						o.SetMonitor(a.monitor()).SetServerMonitoringMode(options.ServerMonitoringModePoll)
					})
					try := func(t *testing.T, command string, do func(context.Context, *peer, *mongo.Collection) error) *mongo.Collection {
						ctx := t.Context()
						coll := p.db.Collection("retried")
						must(coll.DeleteMany(ctx, doc()))(t)
						must(coll.InsertOne(ctx, doc("_id", 1, "n", 1)))(t)
						f.inject(t, p, command)
						defer p.d.OnCommand(nil)
						a.reset(command)
						if err := do(ctx, p, coll); err != nil {
							t.Fatal(err)
						}
						if a.failed != 1 || a.sent != 2 {
							t.Errorf("%d commands sent, %d of them failed", a.sent, a.failed)
						}
						return coll
					}
					for _, w := range writes {
						t.Run(w.name, func(t *testing.T) {
							coll := try(t, w.command, w.do)
							if len(a.numbers) != 1 {
								t.Errorf("the attempts have the transaction numbers %v", a.numbers)
							}
							cur, err := coll.Find(t.Context(), doc(), options.Find().SetSort(doc("_id", 1)))
							if got := all(t, cur, err); got != w.want {
								t.Errorf("documents %s, want %s", got, w.want)
							}
						})
					}
					for _, r := range reads {
						t.Run(r.name, func(t *testing.T) { try(t, r.command, r.do) })
					}
				})
			}
		})
	}
}

// TestOfficialNoRetries are errors that come through: those of operations that are not retried, and
// the second in a row.
func TestOfficialNoRetries(t *testing.T) {
	for kind, opt := range oneRouter {
		t.Run(kind, func(t *testing.T) {
			p := official(t, opt)
			ctx := t.Context()
			coll := p.db.Collection("c")
			must(coll.InsertMany(ctx, []any{doc("_id", 1), doc("_id", 2), doc("_id", 3)}))(t)
			for _, tt := range []struct {
				command string
				times   int
				do      func() error
			}{
				{"update", 1, func() error { _, err := coll.UpdateMany(ctx, doc(), doc("$inc", doc("n", 1))); return err }},
				{"delete", 1, func() error { _, err := coll.DeleteMany(ctx, doc("_id", 7)); return err }},
				{"getMore", 1, func() error {
					cur, err := coll.Find(ctx, doc(), options.Find().SetBatchSize(2))
					if err != nil {
						return err
					}
					return cur.All(ctx, new([]bson.Raw))
				}},
				{"ping", 1, func() error { return p.db.RunCommand(ctx, doc("ping", 1)).Err() }},
				{"insert", 2, func() error { _, err := coll.InsertOne(ctx, doc()); return err }},
				{"find", 2, func() error { return coll.FindOne(ctx, doc()).Err() }},
			} {
				p.d.FailCommand(mongotest.Fail{Commands: []string{tt.command}, Times: tt.times, Code: 6, Labels: []string{"RetryableWriteError"}})
				err := tt.do()
				p.d.ClearFailures()
				wantCode(t, err, 6)
			}
		})
	}
}

// TestOfficialWritesAcrossStepDown writes all the time while primaries step down.
func TestOfficialWritesAcrossStepDown(t *testing.T) {
	p := official(t, mongotest.ReplicaSet(5))
	coll := p.db.Collection("c")
	primaries := map[*mongotest.Node]bool{}
	for i := range 40 {
		if i%15 == 7 {
			p.d.StepDown()
		}
		must(coll.InsertOne(t.Context(), doc("_id", i)))(t)
		primaries[p.d.Primary()] = true
	}
	if n := must(coll.CountDocuments(t.Context(), doc()))(t); n != 40 || len(primaries) != 4 {
		t.Errorf("%d documents, %d primaries", n, len(primaries))
	}
}

// TestOfficialTimeouts: the server ends what takes longer than maxTimeMS, and the client what takes
// longer than its timeout.
func TestOfficialTimeouts(t *testing.T) {
	clusters(t, func(t *testing.T, p *peer) {
		coll := p.db.Collection("c")
		must(coll.InsertOne(t.Context(), doc("_id", 1)))(t)
		p.d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Block: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := coll.FindOne(ctx, doc()).Err(); !mongo.IsTimeout(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a find that blocks ends with %v", err)
		}
		p.d.ClearFailures()
		if err := coll.FindOne(t.Context(), doc()).Err(); err != nil {
			t.Errorf("the next find: %v", err)
		}
		p.d.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, Code: 50})
		if err := coll.FindOne(t.Context(), doc()).Err(); !mongo.IsTimeout(err) {
			t.Errorf("MaxTimeMSExpired is no timeout: %v", err)
		}
	})
}
