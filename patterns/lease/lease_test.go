package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/patterns/lease"
)

// connect opens a client of a deployment that is in memory.
func connect(t *testing.T, d *mongotest.Deployment) *allium.Client {
	t.Helper()
	c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// TestOneHolder lets programs take a lease in turns while members die, step down and lose replies.
// What a holder writes with Fence is written by holders in the order of their tokens, and no write
// is lost or done twice.
func TestOneHolder(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			work, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			var wg sync.WaitGroup
			var done, lost atomic.Int64
			for range 4 {
				c := connect(t, d)
				db := c.Database("app")
				pause := time.Duration(1+r.IntN(1000)) * time.Millisecond
				wg.Go(func() {
					for work.Err() == nil {
						err := lease.Run(work, db.Collection("leases"), "one", func(ctx context.Context, l *lease.Lease) error {
							for ctx.Err() == nil {
								time.Sleep(pause)
								err := c.Transact(ctx, func(ctx context.Context) error {
									if err := l.Fence(ctx); err != nil {
										return err
									}
									doc, err := db.Collection("work").FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}},
										bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}, {Key: "$max", Value: bson.D{{Key: "token", Value: l.Token()}}}},
										allium.FindOneAndUpdateOptions{Upsert: true, ReturnNew: true})
									if token, _ := doc.Get("token"); err == nil && token != l.Token() {
										t.Errorf("seed %d: holder %d writes after holder %v", seed, l.Token(), token)
									}
									return err
								})
								if err != nil {
									return err
								}
								done.Add(1)
								if rand.IntN(3) == 0 {
									return nil
								}
							}
							return nil
						}, lease.Options{TTL: 3 * time.Second})
						if errors.Is(err, lease.ErrLost) {
							lost.Add(1)
						}
					}
				})
			}
			for work.Err() == nil {
				time.Sleep(time.Duration(500+r.IntN(4000)) * time.Millisecond)
				switch n := d.Node(r.IntN(3)); r.IntN(4) {
				case 0:
					d.StepDown()
				case 1:
					n.Kill()
					time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
					if err := n.Restart(); err != nil {
						t.Error(err)
					}
				case 2:
					n.SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 3})
				case 3:
					n.Hang()
					time.Sleep(time.Duration(r.IntN(6000)) * time.Millisecond)
					n.Resume()
				}
			}
			wg.Wait()
			doc, err := connect(t, d).Database("app").Collection("work").FindOne(ctx, bson.D{})
			n, _ := doc.Get("n")
			if total, _ := n.(int64); err != nil || total < done.Load() || done.Load() == 0 {
				t.Errorf("seed %d: %d units are there, %d were acknowledged, %v", seed, total, done.Load(), err)
			}
			t.Logf("seed %d: %d units by %v, %d leases lost", seed, done.Load(), doc, lost.Load())
		})
	}
}

// TestDeadHolder: a lease whose holder renews it no longer passes on after its TTL, and not before;
// the holder's context has ended by then.
func TestDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.InMemory())
		first, second := connect(t, d).Database("app").Collection("leases"), connect(t, d).Database("app").Collection("leases")
		l, err := lease.Acquire(t.Context(), first, "x", lease.Options{TTL: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // it is renewed
		var held *lease.HeldError
		if _, err := lease.TryAcquire(t.Context(), second, "x"); !errors.As(err, &held) || held.Info.Holder != l.Holder() {
			t.Errorf("%v, want that it is held by %s", err, l.Holder())
		}
		if err := l.Fence(t.Context()); err != nil || l.Context().Err() != nil {
			t.Errorf("%v, %v", err, context.Cause(l.Context()))
		}
		died := time.Now()
		first.Database().Client().Close(t.Context())
		next, err := lease.Acquire(t.Context(), second, "x", lease.Options{TTL: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(died); took < 13*time.Second || took > 22*time.Second {
			t.Errorf("it passed on after %v", took)
		}
		if next.Token() != l.Token()+1 || !errors.Is(context.Cause(l.Context()), lease.ErrLost) {
			t.Errorf("token %d after %d; the first holder's context: %v", next.Token(), l.Token(), context.Cause(l.Context()))
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestBroken: a lease that was broken is lost with the next renewal, and what it fences at once.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coll := connect(t, mongotest.Start(t, mongotest.InMemory())).Database("app").Collection("leases")
		if err := lease.Break(t.Context(), coll, "x"); err != nil {
			t.Fatal(err)
		}
		l, err := lease.Acquire(t.Context(), coll, "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Break(t.Context(), coll, "x"); err != nil {
			t.Fatal(err)
		}
		if err := l.Fence(t.Context()); !errors.Is(err, lease.ErrLost) {
			t.Errorf("fence: %v", err)
		}
		other, err := lease.TryAcquire(t.Context(), coll, "x")
		if err != nil || other.Token() <= l.Token() {
			t.Fatalf("token %d after %d, %v", other.Token(), l.Token(), err)
		}
		<-l.Context().Done()
		if err := context.Cause(l.Context()); !errors.Is(err, lease.ErrLost) {
			t.Error(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if info, err := lease.Read(t.Context(), coll, "x"); err != nil || !info.Held() || info.Holder != other.Holder() {
			t.Errorf("the first holder gave up the lease of the second: %+v, %v", info, err)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if info, err := lease.Read(t.Context(), coll, "nobody's"); err != nil || info.Held() || info.Token != 0 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// TestRepliesLost: a holder whose acquisition is sent again, since its reply was lost, is one
// holder.
func TestRepliesLost(t *testing.T) {
	for _, opts := range [][]mongotest.Option{{mongotest.ReplicaSet(1)}, {mongotest.Sharded(2, 1)}} {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, append(opts, mongotest.InMemory())...)
			coll := connect(t, d).Database("app").Collection("leases")
			if _, err := coll.CountDocuments(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			d.Node(0).SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 1})
			l, err := lease.Acquire(t.Context(), coll, "x")
			if err != nil || l.Token() != 1 {
				t.Fatalf("%v, %v", l, err)
			}
			if err := l.Fence(t.Context()); err != nil {
				t.Error(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWaiting: who waits for a lease gives up with its context, and the error says whom it waited
// for.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coll := connect(t, mongotest.Start(t, mongotest.InMemory())).Database("app").Collection("leases")
		l, err := lease.Acquire(t.Context(), coll, "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lease.Acquire(ctx, coll, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		} else if held := fmt.Sprint(err); len(held) < len(l.Holder()) {
			t.Errorf("%v does not say who holds it", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
