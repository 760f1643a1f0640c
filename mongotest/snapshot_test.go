package mongotest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// snapshotFind is a find with read concern snapshot, at a time or, if that is zero, at one that the
// server chooses.
func snapshotFind(coll string, at bson.Timestamp) bson.D {
	rc := bson.D{{Key: "level", Value: "snapshot"}}
	if !at.IsZero() {
		rc = append(rc, bson.E{Key: "atClusterTime", Value: at})
	}
	return bson.D{{Key: "find", Value: coll}, {Key: "$db", Value: "db"}, {Key: "readConcern", Value: rc}}
}

func insertOne(coll string, id int32) bson.D {
	return bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "db"}}
}

func firstBatch(reply bson.Raw) int {
	n := 0
	for range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
		n++
	}
	return n
}

func TestSnapshotReads(t *testing.T) {
	for name, kind := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, kind, mongotest.InMemory())
			c := dialNode(t, d, d.Node(0))
			first := ok(t, run(t, c, snapshotFind("c", bson.Timestamp{})))
			empty, _ := first.Lookup("cursor", "atClusterTime").Timestamp()
			if empty.IsZero() || firstBatch(first) != 0 {
				t.Fatalf("an empty deployment answers %v", first)
			}
			for i := range int32(3) {
				ok(t, run(t, c, insertOne("c", i)))
			}
			reply := ok(t, run(t, c, append(snapshotFind("c", bson.Timestamp{}), bson.E{Key: "batchSize", Value: 1})))
			at, _ := reply.Lookup("cursor", "atClusterTime").Timestamp()
			// More than the history keeps by itself.
			for i := range int32(2500) {
				ok(t, run(t, c, insertOne("c", 100+i)))
			}
			id, _ := reply.Lookup("cursor", "id").AsInt64()
			next := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "db"}}))
			if docs := bson.Raw(next.Lookup("cursor", "nextBatch").Value); docs.Lookup("1", "_id").IsZero() || !docs.Lookup("2").IsZero() {
				t.Errorf("getMore in a snapshot of three documents: %v", next)
			}
			if ts, _ := next.Lookup("cursor", "atClusterTime").Timestamp(); ts != at {
				t.Errorf("getMore reads at %v, the find at %v", ts, at)
			}
			if n := firstBatch(ok(t, run(t, c, snapshotFind("c", at)))); n != 3 {
				t.Errorf("the snapshot has %d documents", n)
			}
			if n := firstBatch(ok(t, run(t, c, snapshotFind("c", empty)))); n != 0 {
				t.Errorf("the empty snapshot has %d documents", n)
			}
			distinct := bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: "_id"}, {Key: "$db", Value: "db"},
				{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}, {Key: "atClusterTime", Value: at}}}}
			values := ok(t, run(t, c, distinct))
			if ts, _ := values.Lookup("atClusterTime").Timestamp(); ts != at || !values.Lookup("values", "3").IsZero() {
				t.Errorf("distinct answers %v", values)
			}
			// A time that nobody has read at, and that the history does not reach back to.
			lost := bson.Timestamp{T: at.T, I: at.I + 1}
			if code, _ := run(t, c, snapshotFind("c", lost)).Lookup("code").AsInt64(); code != 239 {
				t.Errorf("a lost snapshot answers with code %d", code)
			}
			late := bson.Timestamp{T: at.T + 1000}
			if code, _ := run(t, c, snapshotFind("c", late)).Lookup("code").AsInt64(); code != 72 {
				t.Errorf("a snapshot in the future answers with code %d", code)
			}
		})
	}
}

func TestSnapshotErrors(t *testing.T) {
	code := func(c bson.Raw) int64 { n, _ := c.Lookup("code").AsInt64(); return n }
	count := bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}}}
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version("6.0"))
	c := dialNode(t, d, d.Node(0))
	if got := code(run(t, c, count)); got != 72 {
		t.Errorf("count with a snapshot: code %d", got)
	}
	// Before 7.0 a collection cannot be read as of before it was made.
	at, _ := ok(t, run(t, c, snapshotFind("c", bson.Timestamp{}))).Lookup("cursor", "atClusterTime").Timestamp()
	ok(t, run(t, c, insertOne("c", 1)))
	if got := code(run(t, c, snapshotFind("c", at))); got != 246 {
		t.Errorf("snapshot from before the collection: code %d", got)
	}
	old := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version("4.4"))
	if got := code(run(t, dialNode(t, old, old.Node(0)), snapshotFind("c", bson.Timestamp{}))); got != 72 {
		t.Errorf("4.4: code %d", got)
	}
	single := mongotest.Start(t, mongotest.InMemory())
	if got := code(run(t, dialNode(t, single, single.Node(0)), snapshotFind("c", bson.Timestamp{}))); got != 123 {
		t.Errorf("standalone: code %d", got)
	}
}

// A snapshot can be read for five minutes.
func TestSnapshotEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, run(t, c, insertOne("c", 0)))
		at, _ := ok(t, run(t, c, snapshotFind("c", bson.Timestamp{}))).Lookup("cursor", "atClusterTime").Timestamp()
		for i := range int32(2500) {
			ok(t, run(t, c, insertOne("c", 1+i)))
		}
		time.Sleep(4 * time.Minute)
		ok(t, run(t, c, snapshotFind("c", at)))
		time.Sleep(6 * time.Minute)
		if code, _ := run(t, c, snapshotFind("c", at)).Lookup("code").AsInt64(); code != 239 {
			t.Errorf("after ten minutes: code %d", code)
		}
		c.Close()
		d.Stop()
	})
}
