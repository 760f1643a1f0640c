package mongotest_test

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// Large documents that are gone are not kept: neither by the history of a replica set nor by
// cursors that nobody reads from any more.
func TestMemoryOfWhatIsGone(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"insert": "small", "documents": [{"_id": 1}, {"_id": 2}], "$db": "db"}`)))
	large := strings.Repeat("x", 8<<20)
	for i := range 100 {
		ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}, {Key: "s", Value: large}}}}, {Key: "$db", Value: "db"}}))
		ok(t, command(t, c, extJSON(t, `{"find": "small", "batchSize": 1, "$db": "db"}`))) // stays open
		ok(t, command(t, c, extJSON(t, `{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "db"}`)))
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 400<<20 { // 800 MB were written
		t.Errorf("%d MB are kept", m.HeapAlloc>>20)
	}
}

// documents inserts n documents of some 200 bytes in batches, and returns their size as BSON.
func documents(tb testing.TB, c net.Conn, n int) (size int) {
	tb.Helper()
	for from := 0; from < n; from += 10_000 {
		var docs bson.A
		for i := from; i < from+10_000; i++ {
			doc := bson.D{{Key: "_id", Value: int64(i)}, {Key: "name", Value: "Ada Lovelace"}, {Key: "city", Value: "London"}, {Key: "n", Value: int32(i % 100)},
				{Key: "text", Value: strings.Repeat("t", 120)}}
			raw, err := bson.Marshal(doc)
			if err != nil {
				tb.Fatal(err)
			}
			size += len(raw)
			docs = append(docs, bson.Raw(raw))
		}
		ok(tb, run(tb, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "db"}}))
	}
	return size
}

// A collection takes at most twice the memory of its documents' BSON.
func TestMemoryOfDocuments(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": -1}], "$db": "db"}`)))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the first leaves what lies in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	size := documents(t, c, 100_000)
	used := int(heap() - before)
	t.Logf("100,000 documents of %d bytes in all take %d bytes, %.2f times as many", size, used, float64(used)/float64(size))
	if used > 2*size {
		t.Errorf("%d bytes of documents take %d bytes of memory", size, used)
	}
}

// BenchmarkSuite inserts, indexes and aggregates 100,000 documents.
func BenchmarkSuite(b *testing.B) {
	for b.Loop() {
		d, err := mongotest.Open()
		if err != nil {
			b.Fatal(err)
		}
		c := dial(b, d.Hosts()[0])
		documents(b, c, 100_000)
		ok(b, command(b, c, extJSON(b, `{"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n_1"}], "$db": "db"}`)))
		ok(b, command(b, c, extJSON(b, `{"aggregate": "c", "pipeline": [{"$match": {"n": {"$lt": 50}}}, {"$group": {"_id": "$n", "count": {"$sum": 1}}},
			{"$sort": {"count": -1}}], "cursor": {}, "$db": "db"}`)))
		c.Close()
		d.Stop()
	}
}
