package mongotest_test

import (
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// The profiler writes down what commands did, until its database is dropped.
func TestProfiler(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	c := dialNode(t, d, d.Primary())
	do := func(cmd ...bson.E) bson.Raw {
		return ok(t, run(t, c, append(bson.D(cmd), bson.E{Key: "$db", Value: "db"})))
	}
	was := func(r bson.Raw) int64 {
		n, _ := r.Lookup("was").AsInt64()
		return n
	}
	do(bson.E{Key: "profile", Value: 2})
	ok(t, run(t, c, insertOne("c", 1)))
	if r := run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$bad", Value: 1}}}, {Key: "$db", Value: "db"}}); errorCode(r) == 0 {
		t.Error("the find does not fail")
	}
	if n := was(do(bson.E{Key: "profile", Value: 0})); n != 2 {
		t.Errorf("was %d, want 2", n)
	}
	r := do(bson.E{Key: "find", Value: "system.profile"})
	if op, _ := r.Lookup("cursor", "firstBatch", "0", "op").StringValue(); op != "insert" {
		t.Errorf("the first entry of %v", r)
	}
	if errorCode(r, "cursor", "firstBatch", "1") != 0 || r.Lookup("cursor", "firstBatch", "1", "errMsg").IsZero() {
		t.Errorf("the second entry of %v has no error", r)
	}
	if !r.Lookup("cursor", "firstBatch", "2").IsZero() {
		t.Errorf("more than the two commands: %v", r)
	}
	do(bson.E{Key: "profile", Value: 2}, bson.E{Key: "filter", Value: bson.D{{Key: "op", Value: "query"}}})
	do(bson.E{Key: "dropDatabase", Value: 1})
	if n := was(do(bson.E{Key: "profile", Value: -1})); n != 0 {
		t.Errorf("was %d after the drop, want 0", n)
	}
}
