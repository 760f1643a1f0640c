package mongotest_test

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

// liveHeap returns how many bytes are reachable.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first leaves what lies in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Large documents that are gone are not kept: neither by the history of a replica set nor by
// cursors that nobody reads from any more; and next to nothing of them once nobody writes.
func TestMemoryOfWhatIsGone(t *testing.T) {
	norace.Skip(t, "it writes half a gigabyte")
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			before := liveHeap()
			d := mongotest.Start(t, mongotest.ReplicaSet(members))
			c := dial(t, d.Primary().Addr())
			ok(t, command(t, c, extJSON(t, `{"insert": "small", "documents": [{"_id": 1}, {"_id": 2}], "$db": "db"}`)))
			large := strings.Repeat("x", 8<<20)
			lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}}}
			for i := range 60 {
				// A retryable write, whose _id the session remembers.
				ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}, {Key: "s", Value: large}}}},
					{Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(i)}, {Key: "$db", Value: "db"}}))
				ok(t, command(t, c, extJSON(t, `{"find": "small", "batchSize": 1, "$db": "db"}`))) // stays open
				ok(t, command(t, c, extJSON(t, `{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "db"}`)))
			}
			if used := liveHeap() - before; used > 100<<20 {
				t.Errorf("%d MB of 480 MB are kept", used>>20)
			}
			d.ShiftClock(6 * time.Minute)
			if used := liveHeap() - before; used > 30<<20 {
				t.Errorf("%d MB of 480 MB are kept six minutes later", used>>20)
			}
		})
	}
}

// A large collection that is dropped is gone: at once from the history, and from the change log a
// little later. Nobody has to write anything for that.
func TestMemoryOfDrops(t *testing.T) {
	norace.Skip(t, "it writes many large documents")
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			before := liveHeap()
			d := mongotest.Start(t, topology)
			c := dial(t, d.Hosts()[0])
			for i := range 20 {
				ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}, {Key: "s", Value: strings.Repeat("x", 8<<20)}}}},
					{Key: "$db", Value: "db"}}))
			}
			if used := liveHeap() - before; used < 150<<20 {
				t.Errorf("160 MB of documents take %d MB", used>>20)
			}
			ok(t, command(t, c, extJSON(t, `{"dropDatabase": 1, "$db": "db"}`)))
			if used := liveHeap() - before; used > 110<<20 {
				t.Errorf("%d MB are kept", used>>20)
			}
			d.ShiftClock(6 * time.Minute)
			if used := liveHeap() - before; used > 30<<20 {
				t.Errorf("%d MB are kept six minutes later", used>>20)
			}
		})
	}
}

// The history of states is there for the window that the server's parameter names, by the
// deployment's clock.
func TestHistoryOfStates(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.Version("7.0"))
	c := dial(t, d.Primary().Addr())
	first := ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 1}], "$db": "db"}`))).Lookup("operationTime")
	ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 2}], "$db": "db"}`)))
	read := func() bson.Raw {
		return run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}, {Key: "atClusterTime", Value: first}}},
			{Key: "$db", Value: "db"}})
	}
	d.ShiftClock(4 * time.Minute)
	if reply := read(); !reply.Lookup("ok").AsBool() || reply.Lookup("cursor", "firstBatch", "1").Type != 0 {
		t.Errorf("4 minutes later: %v", reply)
	}
	d.ShiftClock(4 * time.Minute) // it was read, and so can be for the window from then on
	ok(t, read())
	d.ShiftClock(6 * time.Minute)
	if code, _ := read().Lookup("code").Int32(); code != 239 {
		t.Errorf("later than the window: code %d, want SnapshotTooOld", code)
	}
}

// The oplog tells which retryable write made a change. What 8.0 has of inserts is another test.
func TestOplogOfRetryableWrites(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("7.0"))
	c := dial(t, d.Hosts()[0])
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}}}
	ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}}},
		{Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(7)}, {Key: "$db", Value: "db"}}))
	ok(t, command(t, c, extJSON(t, `{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}], "$db": "db"}`)))
	reply := ok(t, command(t, c, extJSON(t, `{"find": "oplog.rs", "filter": {"ns": "db.c", "op": {"$ne": "c"}}, "$db": "local"}`)))
	for i := range 2 {
		e, _ := reply.Lookup("cursor", "firstBatch", fmt.Sprint(i)).Document()
		number, _ := e.Lookup("txnNumber").Int64()
		stmt, ok := e.Lookup("stmtId").Int32()
		if number != 7 || !ok || stmt != int32(i) || e.Lookup("lsid", "id").Type != bson.TypeBinary {
			t.Errorf("entry %d is %v", i, e)
		}
	}
	if e, _ := reply.Lookup("cursor", "firstBatch", "2").Document(); e.Lookup("lsid").Type != 0 || e.Lookup("o", "_id").Type == 0 {
		t.Errorf("the delete's entry is %v", e)
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

// A collection takes at most twice the memory of its documents' BSON, with an index on a field, and
// the three members of a set, which share them, take hardly more. The change log shrinks when
// nobody writes.
func TestMemoryOfDocuments(t *testing.T) {
	norace.Skip(t, "it measures memory")
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(3)} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, topology)
			c := dial(t, d.Hosts()[0])
			ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": -1}], "$db": "db"}`)))
			before := liveHeap()
			size := documents(t, c, 100_000)
			ok(t, command(t, c, extJSON(t, `{"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n_1"}], "$db": "db"}`)))
			d.ShiftClock(6 * time.Minute)
			used := int(liveHeap() - before)
			t.Logf("100,000 documents of %d bytes in all take %d bytes, %.2f times as many", size, used, float64(used)/float64(size))
			if used > 2*size {
				t.Errorf("%d bytes of documents take %d bytes of memory", size, used)
			}
		})
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
