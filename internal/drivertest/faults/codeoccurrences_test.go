package faults

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/owncode"
	"allium/mongotest"
)

// codedOperations are what listeners and log handlers hear of.
var codedOperations = map[string]func(ctx context.Context, c *allium.Collection[coded]) error{
	"insert": func(ctx context.Context, c *allium.Collection[coded]) error {
		return rig.ErrorOf(c.InsertOne(ctx, coded{}))
	},
	"cursor": func(ctx context.Context, c *allium.Collection[coded]) error {
		cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			return err
		}
		defer cur.Close(ctx)
		cur.Next(ctx)
		return cur.Err()
	},
	"loop": func(ctx context.Context, c *allium.Collection[coded]) error {
		cur, err := c.Aggregate(ctx, []bson.D{}, allium.AggregateOptions{BatchSize: new(int32(3))})
		if err != nil {
			return err
		}
		for _, err := range cur.Seq(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"stream": func(ctx context.Context, c *allium.Collection[coded]) error {
		s, err := c.Watch(ctx, nil)
		if err != nil {
			return err
		}
		defer s.Close(ctx)
		s.TryNext(ctx)
		return s.Err()
	},
	"transaction": func(ctx context.Context, c *allium.Collection[coded]) error {
		return c.Database().Client().Transact(ctx, func(ctx context.Context) error {
			if err := rig.ErrorOf(c.InsertOne(ctx, coded{})); err != nil {
				return err
			}
			cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
			if err != nil {
				return err
			}
			return cur.Close(ctx)
		})
	},
	"by hand": func(ctx context.Context, c *allium.Collection[coded]) error {
		s, err := c.Database().Client().StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		if err := s.StartTransaction(); err != nil {
			return err
		}
		if err := rig.ErrorOf(c.InsertOne(allium.WithSession(ctx, s), coded{})); err != nil {
			return err
		}
		return s.AbortTransaction(ctx)
	},
	"cursor of a session": func(ctx context.Context, c *allium.Collection[coded]) error {
		s, err := c.Database().Client().StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		cur, err := c.Find(allium.WithSession(ctx, s), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			return err
		}
		return cur.Close(ctx)
	},
	"bulk": func(ctx context.Context, c *allium.Collection[coded]) error {
		w := c.InsertOneModel(coded{})
		return rig.ErrorOf(c.Database().Client().BulkWrite(ctx, []allium.WriteModel{w, w}))
	},
	"file": func(ctx context.Context, c *allium.Collection[coded]) error {
		b := gridfs.NewBucket(c.Database())
		id, err := b.UploadFromStream(ctx, "f", strings.NewReader("text"))
		if err == nil {
			err = b.Delete(ctx, id)
		}
		return err
	},
}

// Code of the program's takes nothing with it, whichever of the times it fails that an operation
// calls it: no connection and no session of the client, no cursor and no transaction of a server.
func TestCodeAtEachOccurrence(t *testing.T) {
	for _, kind := range []struct {
		name string
		kind mongotest.Option
	}{{"replica set", mongotest.ReplicaSet(1)}, {"sharded", mongotest.Sharded(1, 1)}, {"load balanced", mongotest.LoadBalanced(1)}} {
		if norace.Detecting && kind.name == "sharded" {
			continue
		}
		for _, p := range codePlaces {
			if p.set == nil || p.run != nil {
				continue
			}
			for op, run := range codedOperations {
				t.Run(fmt.Sprintf("%s/%s/%s", kind.name, p.name, op), func(t *testing.T) {
					for n := int32(1); n < 40; n++ {
						ran := false
						for _, busy := range []bool{false, true} {
							synctest.Test(t, func(t *testing.T) { ran = testOccurrence(t, kind.kind, p, n, busy, run) })
							if norace.Detecting && n%3 != 1 {
								break
							}
						}
						if !ran || t.Failed() {
							break
						}
					}
				})
			}
		}
	}
}

// testOccurrence lets the code fail the nth time, and other operations wait for the connections
// then if the pool is busy. It reports whether it came so far.
func testOccurrence(t *testing.T, kind mongotest.Option, p codePlace, n int32, busy bool, run func(ctx context.Context, c *allium.Collection[coded]) error) bool {
	mode := "panic"
	if n%2 == 0 {
		mode = "Goexit"
	}
	var armed atomic.Bool
	var times atomic.Int32
	var client *allium.Client
	code := func() {
		if armed.Load() && times.Add(1) == n {
			armed.Store(false)
			for range map[bool]int{true: 2}[busy] {
				go client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
			}
			time.Sleep(time.Millisecond)
			codeModes[mode](nil)
		}
	}
	opts := allium.ClientOptions{MaxPoolSize: new(2)}
	p.set(&opts, code)
	d, opened, _ := rig.Bubble(t, opts, kind)
	client = opened
	d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Block: time.Second})
	coll := allium.CollectionOf[coded](client.Database("d"), "c")
	if _, err := coll.InsertMany(t.Context(), make([]coded, 7)); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	how, err := owncode.Ending(func() error { return run(t.Context(), coll) })
	armed.Store(false)
	if times.Load() < n {
		return false
	}
	synctest.Wait()
	time.Sleep(2500 * time.Millisecond) // what is told to servers in the background
	synctest.Wait()
	s := client.Stats()
	for _, pool := range s.Pools {
		if pool.InUse != 0 || pool.Connecting != 0 || pool.Draining != 0 {
			t.Errorf("%d, %s, %s, %v: left in the pool: %+v", n, mode, how, err, pool)
		}
	}
	if s.Sessions.InUse != 0 || s.Operations != 0 || s.Cursors != 0 {
		t.Errorf("%d, %s, %s, %v: left: sessions %+v, operations in flight %d, cursors %d", n, mode, how, err, s.Sessions, s.Operations, s.Cursors)
	}
	observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close(context.Background())
	if cursors, open := openCursors(t, observer), openTransactions(t, observer); cursors != 0 || open != 0 {
		t.Errorf("%d, %s, %s, %v: the server has %d cursors and %d transactions", n, mode, how, err, cursors, open)
	}
	return true
}
