package mongotest_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

func ttlIndex(t *testing.T, c net.Conn, coll string, spec bson.D) {
	t.Helper()
	spec = append(bson.D{{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}}, spec...)
	ok(t, run(t, c, bson.D{{Key: "createIndexes", Value: coll}, {Key: "indexes", Value: bson.A{spec}}, {Key: "$db", Value: "db"}}))
}

func insertAt(t *testing.T, c net.Conn, coll string, docs ...bson.D) {
	t.Helper()
	var list bson.A
	for _, d := range docs {
		list = append(list, d)
	}
	ok(t, run(t, c, bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: list}, {Key: "$db", Value: "db"}}))
}

// Documents go within a minute after they have expired; nothing wakes up while nothing can expire.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		c := dialNode(t, d, d.Primary())
		now := bson.NewDateTime(time.Now())
		old := bson.NewDateTime(time.Now().Add(-time.Hour))
		ttlIndex(t, c, "c", bson.D{{Key: "expireAfterSeconds", Value: 600}})
		ttlIndex(t, c, "partial", bson.D{{Key: "expireAfterSeconds", Value: 600}, {Key: "partialFilterExpression", Value: bson.D{{Key: "x", Value: 1}}}})
		insertAt(t, c, "c", bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: now}}, bson.D{{Key: "_id", Value: 2}, {Key: "at", Value: old}},
			bson.D{{Key: "_id", Value: 3}, {Key: "at", Value: bson.A{now, old}}}, bson.D{{Key: "_id", Value: 4}, {Key: "at", Value: "text"}}, bson.D{{Key: "_id", Value: 5}})
		insertAt(t, c, "partial", bson.D{{Key: "at", Value: old}, {Key: "x", Value: 1}}, bson.D{{Key: "at", Value: old}})
		ok(t, run(t, c, bson.D{{Key: "create", Value: "clustered"}, {Key: "clusteredIndex", Value: bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}}},
			{Key: "expireAfterSeconds", Value: int64(600)}, {Key: "$db", Value: "db"}}))
		insertAt(t, c, "clustered", bson.D{{Key: "_id", Value: old}}, bson.D{{Key: "_id", Value: now}})
		want := func(when string, counts map[string]int64) {
			t.Helper()
			for coll, n := range counts {
				if got := count(t, c, coll); got != n {
					t.Errorf("%s: %s has %d documents, want %d", when, coll, got, n)
				}
			}
		}
		want("at first", map[string]int64{"c": 5, "partial": 2, "clustered": 2})
		time.Sleep(61 * time.Second)
		want("after a pass", map[string]int64{"c": 3, "partial": 1, "clustered": 1})
		time.Sleep(10 * time.Minute)
		want("when all have expired", map[string]int64{"c": 2, "partial": 1, "clustered": 0})
		insertAt(t, c, "c", bson.D{{Key: "at", Value: bson.NewDateTime(time.Now())}})
		ok(t, run(t, c, bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{{Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 7200}}}, {Key: "$db", Value: "db"}}))
		time.Sleep(time.Hour)
		want("with a longer time", map[string]int64{"c": 3})
		d.ShiftClock(time.Hour)
		want("after the clock was moved", map[string]int64{"c": 2})
		ok(t, run(t, c, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: false}, {Key: "$db", Value: "admin"}}))
		insertAt(t, c, "c", bson.D{{Key: "at", Value: old}})
		time.Sleep(time.Hour)
		want("while it is off", map[string]int64{"c": 3})
		c.Close()
		d.Stop()
	})
}

// A change stream hears of what expires.
func TestTTLEvents(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ttlIndex(t, c, "c", bson.D{{Key: "expireAfterSeconds", Value: 60}})
	insertAt(t, c, "c", bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: bson.NewDateTime(time.Now())}})
	id, _ := ok(t, run(t, c, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}})).Lookup("cursor", "id").AsInt64()
	d.ShiftClock(time.Hour)
	event := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "db"}})).Lookup("cursor", "nextBatch", "0")
	if op, _ := bson.Raw(event.Value).Lookup("operationType").StringValue(); op != "delete" {
		t.Errorf("event %v", event)
	}
}
