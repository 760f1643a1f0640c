package encryption_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption"
	"allium/mongotest"
)

// TestQueryableUnderFaults lets 16 clients write, query and compact one collection with Queryable
// Encryption while primaries step down and connections break. Afterwards every value is counted as
// often as it was written, documents have the tags of their values, and queries of every kind find
// exactly the documents that they should.
func TestQueryableUnderFaults(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testQueryableUnderFaults(t, seed) })
		})
	}
}

func testQueryableUnderFaults(t *testing.T, seed uint64) {
	const clients, rounds = 16, 12
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(3), mongotest.Version("9.0"), mongotest.ElectionDelay(20*time.Millisecond))
	p := (&prose{t: t, d: d, dialer: d}).begin(nil)
	x := newInspector(t, p)
	workers := make([]*faultWorker, clients)
	var failed atomic.Int64
	for i := range workers {
		client, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{WriteConcern: consistency.Majority()})
		workers[i] = &faultWorker{T: t, Rand: rand.New(rand.NewPCG(seed, uint64(i))), number: i, client: client, coll: client.Database("db").Collection("coll"),
			model: &model{docs: map[int]*record{}, written: map[string]int{}}, failed: &failed}
		if _, err := workers[i].coll.CountDocuments(t.Context(), bson.D{{Key: "name", Value: "ann"}}); err != nil {
			t.Fatal(err)
		}
	}
	usual := mongotest.NetFaults{Latency: time.Millisecond} // so that faults meet commands under way
	for _, n := range d.Nodes() {
		n.SetNetFaults(usual)
	}
	ended := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() { makeFaults(d, rand.New(rand.NewPCG(seed, 1<<32)), usual, ended) })
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			// Retries may hide all faults of a short run: those of a longer one are too many.
			for i := 0; i < rounds || failed.Load() == 0 && i < 10*rounds; i++ {
				w.round(i)
				time.Sleep(time.Duration(w.IntN(4)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	close(ended)
	faults.Wait()
	d.ClearFailures()
	for _, n := range d.Nodes() {
		n.SetNetFaults(mongotest.NetFaults{})
	}
	workers[0].settle()
	all := &model{docs: map[int]*record{}, written: map[string]int{}}
	compactions := 0
	for _, w := range workers {
		maps.Copy(all.docs, w.docs)
		for value, n := range w.written {
			all.written[value] += n
		}
		compactions += w.compactions
	}
	all.check(t, x)
	all.find(t, workers[1].coll, "afterwards")
	// Neither command is retried, so a connection that a fault broke unseen would fail it: this
	// client has met none.
	calm, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{WriteConcern: consistency.Majority()})
	for _, command := range []string{"compactStructuredEncryptionData", "cleanupStructuredEncryptionData"} {
		if _, err := calm.Database("db").RunCommand(t.Context(), bson.D{{Key: command, Value: "coll"}}); err != nil {
			t.Error(err)
		}
		all.check(t, x)
		all.find(t, workers[3].coll, command)
	}
	t.Logf("%d documents, %d compactions, %d operations failed", len(all.docs), compactions, failed.Load())
	if failed.Load() == 0 || compactions == 0 {
		t.Error("the faults have not met anything, or everything")
	}
}

// makeFaults disturbs d until ended is closed.
func makeFaults(d *mongotest.Deployment, r *rand.Rand, usual mongotest.NetFaults, ended chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(2+r.IntN(15)) * time.Millisecond):
		}
		primary := d.Primary()
		if primary == nil {
			continue
		}
		writes := []string{"insert", "update", "delete", "findAndModify", "bulkWrite", "compactStructuredEncryptionData", "cleanupStructuredEncryptionData"}
		switch r.IntN(6) {
		case 0:
			d.StepDown()
		case 1:
			primary.CloseConnections()
		case 2, 3:
			// The command has run, and its reply is lost.
			drop := usual
			drop.DropAfter, drop.Times = 1+r.IntN(60), 1+r.IntN(6)
			primary.SetNetFaults(drop)
		case 4:
			primary.FailCommand(mongotest.Fail{Commands: writes, Times: 1 + r.IntN(4), CloseConnection: true})
		case 5:
			// A shutdown.
			primary.FailCommand(mongotest.Fail{Commands: writes, Times: 1 + r.IntN(3), Code: 91})
		}
	}
}

// faultWorker is the only one that writes its documents.
type faultWorker struct {
	*testing.T
	*rand.Rand
	*model
	number, made, stamp, compactions int
	client                           *allium.Client
	coll                             *allium.UntypedCollection
	failed                           *atomic.Int64
}

// settle waits for a write that the majority has. What has happened before it has happened for
// good, or never will.
func (w *faultWorker) settle() {
	w.stamp++
	marks := w.client.Database("db").Collection("marks")
	for range 1000 {
		_, err := marks.UpdateOne(w.Context(), bson.D{{Key: "_id", Value: w.number}}, bson.D{{Key: "$set", Value: bson.D{{Key: "stamp", Value: w.stamp}}}}, allium.UpdateOptions{Upsert: true})
		if err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.Error("no write succeeds any more")
}

// stamped returns z of the document, -1 if there is none.
func (w *faultWorker) stamped(id int) int {
	for range 1000 {
		docs, err := w.coll.Find(w.Context(), bson.D{{Key: "_id", Value: id}})
		if err == nil {
			var all []bson.D
			if all, err = docs.All(w.Context()); err == nil && len(all) == 0 {
				return -1
			} else if err == nil {
				z, _ := bson.Raw(must(bson.Marshal(all[0]))).Lookup("z").AsInt64()
				return int(z)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.Error("no read succeeds any more")
	return 0
}

// did reports whether an operation that leaves the stamp z, or no document for -1, has happened: it
// says so itself, or it has failed and what is there tells.
func (w *faultWorker) did(err error, id, z int) bool {
	if err == nil {
		return true
	}
	w.failed.Add(1)
	w.settle()
	return w.stamped(id) == z
}

func (w *faultWorker) any() *record {
	for id := w.made; id > 0; id-- {
		if r := w.docs[w.number*1000+id]; r != nil && w.IntN(3) == 0 {
			return r
		}
	}
	return nil
}

func (w *faultWorker) round(i int) {
	ctx := w.Context()
	w.stamp++
	old := w.any()
	n := w.IntN(10)
	if old == nil && n > 2 && n < 8 {
		n = 0
	}
	switch n {
	case 0, 1, 2:
		w.made++
		r := newRecord(w.Rand, w.number*1000+w.made)
		r.z = w.stamp
		_, err := w.coll.InsertOne(ctx, r.document())
		if w.did(err, r.id, r.z) {
			w.docs[r.id] = r
			w.wrote(r)
		}
	case 3, 4, 5:
		next := *old
		next.z = w.stamp
		next.name = &inspectedNames[w.IntN(len(inspectedNames))]
		next.age = &inspectedAges[w.IntN(len(inspectedAges))]
		update := bson.D{{Key: "$set", Value: bson.D{{Key: "name", Value: *next.name}, {Key: "age", Value: *next.age}, {Key: "z", Value: next.z}}}}
		var err error
		if n == 3 {
			_, err = w.coll.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: old.id}}, update)
		} else {
			_, err = w.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: old.id}}, update)
		}
		if w.did(err, old.id, next.z) {
			w.docs[old.id] = &next
			w.note("name", *next.name)
			w.note("age", *next.age)
		}
	case 6:
		next := newRecord(w.Rand, old.id)
		next.z = w.stamp
		_, err := w.coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: old.id}}, next.document())
		if w.did(err, old.id, next.z) {
			w.docs[old.id] = next
			w.wrote(next)
		}
	case 7:
		_, err := w.coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: old.id}})
		if w.did(err, old.id, -1) {
			delete(w.docs, old.id)
		}
	case 8:
		name := []string{"compactStructuredEncryptionData", "cleanupStructuredEncryptionData"}[w.IntN(2)]
		if _, err := w.client.Database("db").RunCommand(ctx, bson.D{{Key: name, Value: "coll"}}); err != nil {
			w.failed.Add(1)
		} else {
			w.compactions++
		}
	case 9:
		// What a query finds of the worker's own documents cannot be changed by others.
		name := inspectedNames[w.IntN(len(inspectedNames))]
		docs, err := w.coll.Find(ctx, bson.D{{Key: "name", Value: name}})
		var found []bson.D
		if err == nil {
			found, err = docs.All(ctx)
		}
		if err != nil {
			w.failed.Add(1)
			return
		}
		got := map[int]bool{}
		for _, doc := range found {
			id, _ := bson.Raw(must(bson.Marshal(doc))).Lookup("_id").AsInt64()
			if int(id)/1000 == w.number {
				got[int(id)] = true
			}
		}
		for id, r := range w.docs {
			if has := r.name != nil && *r.name == name; has != got[id] {
				w.Errorf("worker %d, round %d: document %d with %q is found: %t", w.number, i, id, name, got[id])
			}
		}
	}
}
