package mongotest_test

import (
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
