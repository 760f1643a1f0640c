package mongotest_test

import (
	"fmt"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// $rankFusion is the same on a shard, across shards and explained. A view has stages that come
// before it, and it must be the first.
func TestRankFusionEverywhere(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, topology, mongotest.Version("8.2"))
			c := dial(t, d.Hosts()[0])
			if name == "sharded" {
				ok(t, command(t, c, extJSON(t, `{"enableSharding": "t", "$db": "admin"}`)))
				ok(t, command(t, c, extJSON(t, `{"shardCollection": "t.c", "key": {"_id": "hashed"}, "$db": "admin"}`)))
			}
			for i, ab := range [][2]int{{3, 9}, {2, 7}, {1, 8}, {0, 0}} {
				ok(t, command(t, c, extJSON(t, fmt.Sprintf(`{"insert": "c", "documents": [{"_id": %d, "a": %d, "b": %d}], "$db": "t"}`, i+1, ab[0], ab[1]))))
			}
			ok(t, command(t, c, extJSON(t, `{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 0}}}], "$db": "t"}`)))
			const stage = `{"$rankFusion": {"input": {"pipelines": {"byA": [{"$match": {"a": {"$gt": 0}}}, {"$sort": {"a": 1}}], "byB": [{"$sort": {"b": 1}}, {"$limit": 3}]}}}}`
			r := ok(t, command(t, c, extJSON(t, `{"aggregate": "c", "pipeline": [`+stage+`, {"$project": {"_id": 1}}], "cursor": {}, "$db": "t"}`)))
			var got []string
			for v := range bson.Raw(r.Lookup("cursor", "firstBatch").Value).Values() {
				got = append(got, bson.Raw(v.Value).String())
			}
			if want := `[{"_id":3} {"_id":2} {"_id":4} {"_id":1}]`; fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
			if got, want := batchOf(t, ok(t, command(t, c, extJSON(t, `{"aggregate": "v", "pipeline": [`+stage+`, {"$project": {"_id": 1}}], "cursor": {}, "$db": "t"}`)))), `{"_id":2} {"_id":3} {"_id":1}`; got != want {
				t.Errorf("on a view: %v, want %s", got, want)
			}
			ok(t, command(t, c, extJSON(t, `{"explain": {"aggregate": "c", "pipeline": [`+stage+`], "cursor": {}}, "$db": "t"}`)))
		})
	}
}
