package mongotest_test

import (
	"testing"
	"time"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

func TestTimeSeries(t *testing.T) {
	for version, anyDelete := range map[string]bool{"6.0": false, "8.0": true} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		ok(t, run(t, c, bson.D{{Key: "create", Value: "c"}, {Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "t"}, {Key: "metaField", Value: "m"}}}, {Key: "$db", Value: "db"}}))
		at := bson.NewDateTime(time.Now())
		insertAt(t, c, "c", bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: 5}, {Key: "m", Value: bson.D{{Key: "s", Value: 1}}}, {Key: "t", Value: at}},
			bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: 7}, {Key: "m", Value: bson.D{{Key: "s", Value: 2}}}, {Key: "t", Value: at}})
		bad := run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "t", Value: 5}}}}, {Key: "$db", Value: "db"}})
		if msg, _ := bad.Lookup("writeErrors", "0", "errmsg").StringValue(); msg != "'t' must be present and contain a valid BSON UTC datetime value" {
			t.Errorf("%s: a measurement without a time: %v", version, bad)
		}
		reply := ok(t, run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "m.s", Value: 1}}}, {Key: "$db", Value: "db"}}))
		var names []string
		for k := range bson.Raw(reply.Lookup("cursor", "firstBatch", "0").Value).All() {
			names = append(names, k)
		}
		if len(names) != 4 || names[0] != "t" || names[1] != "m" || firstBatch(reply) != 1 {
			t.Errorf("%s: find yields %v", version, reply)
		}
		update := func(q, u bson.D, multi, upsert bool) bson.Raw {
			return run(t, c, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "u", Value: u}, {Key: "multi", Value: multi}, {Key: "upsert", Value: upsert}}}}, {Key: "$db", Value: "db"}})
		}
		byMeta, setMeta := bson.D{{Key: "m.s", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "m.s", Value: 3}}}}
		byValue, setValue := bson.D{{Key: "v", Value: 5}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: 6}}}}
		for name, reply := range map[string]bson.Raw{"one": update(byMeta, setMeta, false, false), "upsert": update(byMeta, setMeta, true, true),
			"by value": update(byValue, setMeta, true, false), "of value": update(byMeta, setValue, true, false)} {
			if code, _ := reply.Lookup("writeErrors", "0", "code").AsInt64(); code != 72 {
				t.Errorf("%s: update %s: %v", version, name, reply)
			}
		}
		if n, _ := ok(t, update(byMeta, setMeta, true, false)).Lookup("n").AsInt64(); n != 1 {
			t.Errorf("%s: the update of the meta field changes %d", version, n)
		}
		remove := func(q bson.D, limit int) bson.Raw {
			return run(t, c, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "limit", Value: limit}}}}, {Key: "$db", Value: "db"}})
		}
		if n, _ := ok(t, remove(byValue, 1)).Lookup("n").AsInt64(); (n == 1) != anyDelete {
			t.Errorf("%s: a delete by value removes %d", version, n)
		}
		if n, _ := ok(t, remove(bson.D{{Key: "m.s", Value: 2}}, 0)).Lookup("n").AsInt64(); n != 1 {
			t.Errorf("%s: a delete by the meta field removes %d", version, n)
		}
	}
}

// An event that is too large comes in parts, and the stream can be resumed between them.
func TestSplitLargeEvent(t *testing.T) {
	norace.Skip(t, "it reads and writes documents of 10 MB")
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, run(t, c, bson.D{{Key: "create", Value: "c"}, {Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}}, {Key: "$db", Value: "db"}}))
	large := string(make([]byte, 10<<20))
	insertAt(t, c, "c", bson.D{{Key: "_id", Value: 1}, {Key: "v", Value: "a" + large}})
	open := func(more ...bson.E) (int64, bson.Raw) {
		pipeline := bson.A{bson.D{{Key: "$changeStream", Value: append(bson.D{{Key: "fullDocumentBeforeChange", Value: "required"}}, more...)}}, bson.D{{Key: "$changeStreamSplitLargeEvent", Value: bson.D{}}}}
		reply := ok(t, run(t, c, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}}))
		id, _ := reply.Lookup("cursor", "id").AsInt64()
		return id, reply
	}
	next := func(id int64) bson.Raw {
		return bson.Raw(ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}})).Lookup("cursor", "nextBatch", "0").Value)
	}
	id, _ := open()
	ok(t, run(t, c, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: "b" + large}}}}}}}}, {Key: "$db", Value: "db"}}))
	first, second := next(id), next(id)
	if got := first.Lookup("splitEvent").String() + second.Lookup("splitEvent").String(); got != `{"fragment":1,"of":2}{"fragment":2,"of":2}` {
		t.Errorf("fragments %s", got)
	}
	if first.Lookup("operationType").IsZero() || second.Lookup("updateDescription").IsZero() && second.Lookup("fullDocumentBeforeChange").IsZero() {
		t.Error("the fragments do not have the event's fields")
	}
	_, reply := open(bson.E{Key: "resumeAfter", Value: bson.Raw(first.Lookup("_id").Value)})
	if again := bson.Raw(reply.Lookup("cursor", "firstBatch", "0").Value); !bson.Equal(again, second) {
		t.Errorf("resumed after the first fragment: fragment %v", again.Lookup("splitEvent"))
	}
	// Without the stage such an event ends the stream.
	plain := bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{{Key: "fullDocumentBeforeChange", Value: "required"}, {Key: "startAtOperationTime", Value: bson.Timestamp{T: 1}}}}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}}
	if code, _ := run(t, c, plain).Lookup("code").AsInt64(); code != 10334 {
		t.Errorf("an event of 20 MB: code %d", code)
	}
}

func TestPreImagesExpire(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, run(t, c, bson.D{{Key: "setClusterParameter", Value: bson.D{{Key: "changeStreamOptions", Value: bson.D{{Key: "preAndPostImages", Value: bson.D{{Key: "expireAfterSeconds", Value: 100}}}}}}}, {Key: "$db", Value: "admin"}}))
	ok(t, run(t, c, bson.D{{Key: "create", Value: "c"}, {Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}}, {Key: "$db", Value: "db"}}))
	insertAt(t, c, "c", bson.D{{Key: "_id", Value: 1}})
	ok(t, run(t, c, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}, {Key: "$db", Value: "db"}}))
	watch := func(mode string) bson.Raw {
		spec := bson.D{{Key: "fullDocumentBeforeChange", Value: mode}, {Key: "startAtOperationTime", Value: bson.Timestamp{T: 1}}}
		return run(t, c, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: spec}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}})
	}
	if got := ok(t, watch("required")).Lookup("cursor", "firstBatch", "1", "fullDocumentBeforeChange").String(); got != `{"_id":1}` {
		t.Errorf("the document before the delete: %s", got)
	}
	d.ShiftClock(time.Hour)
	if v := ok(t, watch("whenAvailable")).Lookup("cursor", "firstBatch", "1", "fullDocumentBeforeChange"); v.Type != bson.TypeNull {
		t.Errorf("an hour later: %v", v)
	}
	if code, _ := watch("required").Lookup("code").AsInt64(); code != 47 {
		t.Errorf("an hour later, required: code %d", code)
	}
}
