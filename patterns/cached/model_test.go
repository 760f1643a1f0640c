package cached_test

import (
	"context"
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
	"allium/patterns/cached"
)

// TestRandomFaults: one writer for each document counts up, readers read, and the deployment fails
// in all ways. A document that Find returns is not older than what was acknowledged MaxAge ago, has
// a value that its writer gave it, and when all is quiet it is the newest one.
func TestRandomFaults(t *testing.T) {
	const (
		documents = 8
		maxAge    = 20 * time.Second
		lasts     = 3 * time.Minute
	)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 38))
				topology := mongotest.ReplicaSet(3)
				if seed%3 == 2 {
					topology = mongotest.Sharded(2, 2)
				}
				d := mongotest.Start(t, topology, mongotest.InMemory())
				c := connect(t, d)
				coll := allium.CollectionOf[counter](c.Database("app"), "counters")
				for id := range documents {
					if _, err := coll.InsertOne(t.Context(), counter{id, 0}); err != nil {
						t.Fatal(err)
					}
				}
				r := cached.New(coll, cached.Options{MaxDocuments: documents - 2, MaxAge: maxAge})
				start(t, r)

				var tried [documents]atomic.Int64
				var mu sync.Mutex
				type ack struct {
					n  int
					at time.Time
				}
				var acks [documents][]ack
				known := func(id int, at time.Time) (n int) { // what was acknowledged then
					mu.Lock()
					defer mu.Unlock()
					for _, a := range acks[id] {
						if a.at.After(at) {
							break
						}
						n = a.n
					}
					return n
				}
				end := time.Now().Add(lasts)
				var wg sync.WaitGroup
				for id := range documents {
					pauses := rand.New(rand.NewPCG(seed, uint64(id)))
					wg.Go(func() {
						for n := 1; time.Now().Before(end); n++ {
							time.Sleep(time.Duration(pauses.IntN(4000)) * time.Millisecond)
							tried[id].Store(int64(n))
							ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
							_, err := coll.UpdateOne(ctx, byID(id), setN(n))
							cancel()
							if err == nil {
								mu.Lock()
								acks[id] = append(acks[id], ack{n, time.Now()})
								mu.Unlock()
							}
						}
					})
				}
				var found atomic.Int64
				for reader := range 4 {
					pauses := rand.New(rand.NewPCG(seed, uint64(100+reader)))
					wg.Go(func() {
						for time.Now().Before(end) {
							time.Sleep(time.Duration(pauses.IntN(200)) * time.Millisecond)
							id, began := pauses.IntN(documents), time.Now()
							ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
							got, err := r.Find(ctx, id)
							cancel()
							if err != nil {
								continue
							}
							found.Add(1)
							if least := known(id, began.Add(-maxAge)); got.N < least || int64(got.N) > tried[id].Load() {
								t.Errorf("document %d: %d; %d was acknowledged %v before", id, got.N, least, maxAge)
							}
						}
					})
				}
				for time.Now().Add(time.Minute).Before(end) {
					time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
					nodes := d.Nodes()
					n := nodes[rnd.IntN(len(nodes))]
					switch rnd.IntN(6) {
					case 0:
						n.Hang()
						time.Sleep(time.Duration(rnd.IntN(15000)) * time.Millisecond)
						n.Resume()
					case 1:
						n.CloseConnections()
					case 2:
						if seed%3 != 2 {
							d.StepDown()
						}
					case 3:
						n.FailCommand(mongotest.Fail{Commands: []string{"getMore", "aggregate"}, Times: 1 + rnd.IntN(4), CloseConnection: true})
					case 4:
						n.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Code: 286,
							Labels: []string{"NonResumableChangeStreamError"}})
					case 5:
						n.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1 + rnd.IntN(8),
							Block: time.Duration(rnd.IntN(8000)) * time.Millisecond})
					}
				}
				wg.Wait()
				d.ClearFailures()
				time.Sleep(15 * time.Second) // less than maxAge
				before := r.Stats()
				for id := range documents {
					want, err := coll.FindOne(t.Context(), byID(id))
					if err != nil {
						t.Fatal(err)
					}
					for range 2 {
						if got, err := r.Find(t.Context(), id); err != nil || got.N != want.N {
							t.Errorf("document %d in the end: %v, %v; FindOne returns %v", id, got, err, want)
						}
					}
				}
				after := r.Stats()
				if found.Load() < 1000 || after.Hits-before.Hits < documents || !after.Following || after.Dropped < 20 {
					t.Errorf("%d documents were found, %+v, before %+v", found.Load(), after, before)
				}
			})
		})
	}
}

// BenchmarkFind compares Find with FindOne: callers, with a pool of four connections, while one
// write in a thousand reads changes a document.
func BenchmarkFind(b *testing.B) {
	c, err := allium.Open(mongotest.Start(b, mongotest.ReplicaSet(1)).URI(), allium.ClientOptions{MaxPoolSize: new(4)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	coll := allium.CollectionOf[bson.D](c.Database("app"), "docs")
	for id := range 1000 {
		if _, err := coll.InsertOne(b.Context(), bson.D{{Key: "_id", Value: id}, {Key: "n", Value: 0}, {Key: "name", Value: "Ada"}}); err != nil {
			b.Fatal(err)
		}
	}
	r := cached.New(coll)
	go r.Run(b.Context())
	for !r.Stats().Following {
		time.Sleep(time.Millisecond)
	}
	for _, callers := range []int{1, 64} {
		for name, find := range map[string]func(context.Context, any) (bson.D, error){
			"FindOne": func(ctx context.Context, id any) (bson.D, error) { return coll.FindOne(ctx, byID(id)) },
			"cached":  r.Find} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, name), func(b *testing.B) {
				var n atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for {
							i := n.Add(1)
							if i > int64(b.N) {
								return
							}
							id := rand.IntN(1000)
							if i%1000 == 0 {
								if _, err := coll.UpdateOne(b.Context(), byID(id), setN(int(i))); err != nil {
									b.Error(err)
								}
							}
							if _, err := find(b.Context(), id); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
