package mongotest_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// shard makes db.c a sharded collection with 20 documents, {_id: i, x: i}: those below 10 are on
// sh0, the others on sh1.
func shard(t *testing.T, c net.Conn, key bson.D) {
	t.Helper()
	ok(t, run(t, c, bson.D{{Key: "enableSharding", Value: "db"}, {Key: "$db", Value: "admin"}}))
	ok(t, run(t, c, bson.D{{Key: "shardCollection", Value: "db.c"}, {Key: "key", Value: key}, {Key: "$db", Value: "admin"}}))
	if key[0].Value == 1 {
		ok(t, run(t, c, bson.D{{Key: "split", Value: "db.c"}, {Key: "middle", Value: bson.D{{Key: "x", Value: 10}}}, {Key: "$db", Value: "admin"}}))
		for i, x := range []int{0, 15} {
			ok(t, run(t, c, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: x}}}, {Key: "to", Value: fmt.Sprint("sh", i)}, {Key: "$db", Value: "admin"}}))
		}
	}
	var docs bson.A
	for i := range 20 {
		docs = append(docs, bson.D{{Key: "_id", Value: 19 - i}, {Key: "x", Value: 19 - i}})
	}
	ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "db"}}))
}

// perShard returns what count finds on each shard for a filter.
func perShard(t *testing.T, c net.Conn, filter bson.D) string {
	t.Helper()
	return ok(t, run(t, c, bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: filter}, {Key: "$db", Value: "db"}})).Lookup("shards").String()
}

func ids(t *testing.T, reply bson.Raw) (list []int64) {
	t.Helper()
	for v := range bson.Raw(ok(t, reply).Lookup("cursor", "firstBatch").Value).Values() {
		id, _ := bson.Raw(v.Value).Lookup("_id").AsInt64()
		list = append(list, id)
	}
	return list
}

func TestShardedReads(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 2), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	other := dialNode(t, d, d.Node(1)) // every mongos finds out where the chunks are
	for _, test := range []struct {
		filter bson.D
		want   string
	}{
		{bson.D{}, `{"sh0":10,"sh1":10}`},
		{bson.D{{Key: "x", Value: 3}}, `{"sh0":1}`},
		{bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 10}}}}, `{"sh0":10}`},
		{bson.D{{Key: "x", Value: bson.D{{Key: "$lte", Value: 10}}}}, `{"sh0":10,"sh1":1}`},
		{bson.D{{Key: "x", Value: bson.D{{Key: "$in", Value: bson.A{12, 14}}}}}, `{"sh1":2}`},
		{bson.D{{Key: "_id", Value: 12}}, `{"sh0":0,"sh1":1}`},
	} {
		if got := perShard(t, other, test.filter); got != test.want {
			t.Errorf("%v: %s, want %s", test.filter, got, test.want)
		}
	}
	// Without a sort results come shard by shard, with one they are merged.
	got := ids(t, run(t, other, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}}))
	if len(got) != 20 || slices.Max(got[:10]) != 9 {
		t.Errorf("find yields %v", got)
	}
	for _, sort := range []bson.D{{{Key: "x", Value: 1}}, {{Key: "_id", Value: 1}}, {{Key: "y", Value: 1}, {Key: "x", Value: 1}}} {
		got := ids(t, run(t, other, bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: sort}, {Key: "skip", Value: 5}, {Key: "limit", Value: 10}, {Key: "$db", Value: "db"}}))
		if len(got) != 10 || !slices.IsSorted(got) || got[0] != 5 {
			t.Errorf("sorted by %v: %v", sort, got)
		}
	}
	// A cursor goes on over the shards while chunks move.
	reply := ok(t, run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 5}, {Key: "$db", Value: "db"}}))
	ok(t, run(t, other, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "to", Value: "sh1"}, {Key: "$db", Value: "admin"}}))
	id, _ := reply.Lookup("cursor", "id").AsInt64()
	rest := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "db"}}))
	if rest.Lookup("cursor", "nextBatch", "14").IsZero() || !rest.Lookup("cursor", "nextBatch", "15").IsZero() {
		t.Errorf("the rest of the cursor: %v", rest)
	}
	if got := perShard(t, c, bson.D{}); got != `{"sh1":20}` {
		t.Errorf("after moving all chunks to one shard: %s", got)
	}
}

// explain and collStats show which shards there are to it.
func TestShardedPlans(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	for _, test := range []struct {
		find  bson.D
		stage string
		n     int
	}{
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "x", Value: 3}}}}, "SINGLE_SHARD", 1},
		{bson.D{{Key: "find", Value: "c"}}, "SHARD_MERGE", 20},
		{bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "x", Value: 1}}}}, "SHARD_MERGE_SORT", 20},
		{bson.D{{Key: "find", Value: "other"}}, "SINGLE_SHARD", 0},
	} {
		reply := ok(t, run(t, c, bson.D{{Key: "explain", Value: test.find}, {Key: "verbosity", Value: "executionStats"}, {Key: "$db", Value: "db"}}))
		stage, _ := reply.Lookup("queryPlanner", "winningPlan", "stage").StringValue()
		n, _ := reply.Lookup("executionStats", "nReturned").AsInt64()
		if stage != test.stage || int(n) != test.n || reply.Lookup("queryPlanner", "winningPlan", "shards", "0", "winningPlan").IsZero() {
			t.Errorf("%v: %v", test.find, reply)
		}
	}
	stats := ok(t, run(t, c, bson.D{{Key: "collStats", Value: "c"}, {Key: "$db", Value: "db"}}))
	n0, _ := stats.Lookup("shards", "sh0", "count").AsInt64()
	n1, _ := stats.Lookup("shards", "sh1", "count").AsInt64()
	if !stats.Lookup("sharded").AsBool() || n0 != 10 || n1 != 10 {
		t.Errorf("collStats: %v", stats)
	}
}

func TestHashedShardKey(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(3, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: "hashed"}})
	shards := ok(t, run(t, c, bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}})).Lookup("shards")
	for _, name := range []string{"sh0", "sh1", "sh2"} {
		if n, _ := bson.Raw(shards.Value).Lookup(name).AsInt64(); n == 0 {
			t.Errorf("no document on %s: %v", name, shards)
		}
	}
	n := 0
	for range bson.Raw(ok(t, run(t, c, bson.D{{Key: "find", Value: "chunks"}, {Key: "$db", Value: "config"}})).Lookup("cursor", "firstBatch").Value).Values() {
		n++
	}
	if n != 6 {
		t.Errorf("%d chunks", n)
	}
}

func TestConfigDatabase(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory(), mongotest.Version("4.4"))
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	find := func(coll string) []string {
		var list []string
		for v := range bson.Raw(ok(t, run(t, c, bson.D{{Key: "find", Value: coll}, {Key: "$db", Value: "config"}, {Key: "sort", Value: bson.D{{Key: "min", Value: 1}, {Key: "_id", Value: 1}}}})).Lookup("cursor", "firstBatch").Value).Values() {
			doc := bson.Raw(v.Value)
			list = append(list, fmt.Sprint(doc.Lookup("min"), doc.Lookup("max"), doc.Lookup("shard"), doc.Lookup("key"), doc.Lookup("primary"), doc.Lookup("host")))
		}
		return list
	}
	if got := len(find("shards")); got != 2 {
		t.Errorf("%d shards", got)
	}
	if got := len(find("databases")); got != 1 {
		t.Errorf("%d databases", got)
	}
	if got := len(find("collections")); got != 1 {
		t.Errorf("%d collections", got)
	}
	chunks := find("chunks")
	if len(chunks) != 2 {
		t.Fatalf("chunks: %v", chunks)
	}
	ok(t, run(t, c, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "to", Value: "sh1"}, {Key: "$db", Value: "admin"}}))
	ok(t, run(t, c, bson.D{{Key: "mergeChunks", Value: "db.c"}, {Key: "bounds", Value: bson.A{bson.D{{Key: "x", Value: bson.MinKey{}}}, bson.D{{Key: "x", Value: bson.MaxKey{}}}}}, {Key: "$db", Value: "admin"}}))
	if chunks = find("chunks"); len(chunks) != 1 {
		t.Errorf("merged chunks: %v", chunks)
	}
	ok(t, run(t, c, bson.D{{Key: "drop", Value: "c"}, {Key: "$db", Value: "db"}}))
	if got := len(find("chunks")); got != 0 {
		t.Errorf("%d chunks of a dropped collection", got)
	}
}

// What may be written to a sharded collection depends on the version.
func TestShardedWrites(t *testing.T) {
	update := func(q, u bson.D, multi, upsert bool) bson.D {
		return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: q}, {Key: "u", Value: u}, {Key: "multi", Value: multi}, {Key: "upsert", Value: upsert}}}}, {Key: "$db", Value: "db"}}
	}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: 1}}}}
	byY := bson.D{{Key: "y", Value: 7}}
	remove := bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: byY}, {Key: "limit", Value: 1}}}}, {Key: "$db", Value: "db"}}
	modify := bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: byY}, {Key: "remove", Value: true}, {Key: "$db", Value: "db"}}
	unique := bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "y", Value: 1}}}, {Key: "name", Value: "y"}, {Key: "unique", Value: true}}}}, {Key: "$db", Value: "db"}}
	rekey := update(bson.D{{Key: "x", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 2}}}}, false, false)
	insertArray := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 99}, {Key: "x", Value: bson.A{1}}}}}, {Key: "$db", Value: "db"}}
	for version, want := range map[string]map[string]int64{
		"7.0": {"updateOne": 72, "upsert": 61, "deleteOne": 61, "findAndModify": 61, "unique": 67, "key": 20, "array": 61},
		"8.0": {"updateOne": 0, "upsert": 0, "deleteOne": 0, "findAndModify": 0, "unique": 67, "key": 20, "array": 61},
	} {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		shard(t, c, bson.D{{Key: "x", Value: 1}})
		for name, cmd := range map[string]bson.D{"updateOne": update(byY, set, false, false), "upsert": update(byY, set, false, true), "deleteOne": remove,
			"findAndModify": modify, "unique": unique, "key": rekey, "array": insertArray} {
			reply := run(t, c, cmd)
			code, _ := reply.Lookup("code").AsInt64()
			if v := reply.Lookup("writeErrors", "0", "code"); v.Type != 0 {
				code, _ = v.AsInt64()
			}
			if code != want[name] {
				t.Errorf("%s %s: code %d, want %d", version, name, code, want[name])
			}
		}
	}
}

// The recovery token names the shard that was written to first, and another mongos finds the
// outcome with it.
func TestRecoveryToken(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 2), mongotest.InMemory())
	c, other := dialNode(t, d, d.Node(0)), dialNode(t, d, d.Node(1))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	in := func(d bson.D, more ...bson.E) bson.D {
		return append(append(d, bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: int64(1)}, bson.E{Key: "autocommit", Value: false}), more...)
	}
	write := func(x int) bson.D {
		return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 100 + x}, {Key: "x", Value: x}}}}, {Key: "$db", Value: "db"}}
	}
	first := ok(t, run(t, c, in(write(17), bson.E{Key: "startTransaction", Value: true})))
	second := ok(t, run(t, c, in(write(3))))
	token := second.Lookup("recoveryToken")
	if token.String() != `{"recoveryShardId":"sh1"}` || !token.Equal(first.Lookup("recoveryToken")) {
		t.Errorf("tokens %v, %v", first.Lookup("recoveryToken"), token)
	}
	commit := in(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}, {Key: "recoveryToken", Value: bson.Raw(token.Value)}})
	ok(t, run(t, c, commit))
	ok(t, run(t, other, commit))
	if got := perShard(t, other, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 100}}}}); got != `{"sh0":1,"sh1":1}` {
		t.Errorf("the transaction wrote %s", got)
	}
}

// Ranges of zones are kept, and replaced when they are set again.
func TestZoneRanges(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	do := func(cmd ...bson.E) bson.Raw {
		return run(t, c, append(bson.D(cmd), bson.E{Key: "$db", Value: "admin"}))
	}
	zoneRange := func(zone any) bson.Raw {
		return do(bson.E{Key: "updateZoneKeyRange", Value: "db.c"}, bson.E{Key: "min", Value: bson.D{{Key: "x", Value: 0}}},
			bson.E{Key: "max", Value: bson.D{{Key: "x", Value: 9}}}, bson.E{Key: "zone", Value: zone})
	}
	if r := zoneRange("near"); errorCode(r) != 177 {
		t.Errorf("a range of a zone that no shard is in: %v", r)
	}
	for _, zone := range []string{"near", "far"} {
		ok(t, do(bson.E{Key: "addShardToZone", Value: "sh1"}, bson.E{Key: "zone", Value: zone}))
	}
	ok(t, zoneRange("near"))
	ok(t, zoneRange("far"))
	tags := func() bson.Raw {
		r := ok(t, run(t, c, bson.D{{Key: "find", Value: "tags"}, {Key: "$db", Value: "config"}}))
		batch, _ := r.Lookup("cursor", "firstBatch").Array()
		return batch
	}
	if tag, _ := tags().Lookup("0", "tag").StringValue(); tag != "far" || !tags().Lookup("1").IsZero() {
		t.Errorf("config.tags has %v", tags())
	}
	ok(t, zoneRange(nil))
	if !tags().IsEmpty() {
		t.Errorf("config.tags has %v after the range was taken away", tags())
	}
}

// A fresh cluster tells its time in the first reply of all, and listShards from 5.0 on when the
// shards came.
func TestFreshClusterTime(t *testing.T) {
	for version, told := range map[string]bool{"4.4": false, "5.0": true, "8.0": true} {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		first := ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		at, _ := first.Lookup("$clusterTime", "clusterTime").Timestamp()
		op, _ := first.Lookup("operationTime").Timestamp()
		if at.IsZero() || op.IsZero() {
			t.Errorf("%s: the first reply is %v", version, first)
		}
		shards := ok(t, run(t, c, bson.D{{Key: "listShards", Value: 1}, {Key: "$db", Value: "admin"}}))
		for _, i := range []string{"0", "1"} {
			since, _ := shards.Lookup("shards", i, "topologyTime").Timestamp()
			if since.IsZero() == told || since.Compare(at) > 0 {
				t.Errorf("%s: %v", version, shards)
			}
		}
	}
}

// Each shard explains its own plan with its own figures; a pipeline is split, and on a collection
// that one shard has it is explained by that shard alone.
func TestExplainOnShards(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("4.4.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	ok(t, askText(t, c, "db", `{"insert": "u", "documents": [{"_id": 1}]}`))
	for _, test := range []struct {
		cmd   string
		paths map[string]string
	}{
		{`{"find": "c", "filter": {"x": {"$in": [3, 12, 13]}}}`, map[string]string{
			"executionStats.nReturned": "3", "executionStats.executionStages.stage": `"SHARD_MERGE"`,
			"executionStats.executionStages.shards.0.executionStages.nReturned": "1", "executionStats.executionStages.shards.1.executionStages.nReturned": "2",
			"queryPlanner.winningPlan.shards.1.shardName": `"sh1"`, "queryPlanner.winningPlan.shards.1.winningPlan.stage": `"SHARDING_FILTER"`,
		}},
		{`{"find": "c", "sort": {"_id": 1}, "skip": 3, "limit": 4}`, map[string]string{
			"queryPlanner.winningPlan.stage": `"SHARD_MERGE_SORT"`, "queryPlanner.winningPlan.shards.0.winningPlan.limitAmount": "7",
		}},
		{`{"update": "c", "updates": [{"q": {"x": 3}, "u": {"$set": {"a": 1}}}]}`, map[string]string{
			"queryPlanner.winningPlan.stage": `"SHARD_WRITE"`, "queryPlanner.winningPlan.shards.0.winningPlan.stage": `"UPDATE"`, "queryPlanner.winningPlan.shards.1": "",
		}},
		{`{"count": "c", "query": {"x": 3}}`, map[string]string{"queryPlanner.winningPlan.stage": `"SINGLE_SHARD"`, "queryPlanner.winningPlan.shards.0.winningPlan.stage": `"COUNT"`}},
		{`{"find": "u"}`, map[string]string{"queryPlanner.winningPlan.stage": `"SINGLE_SHARD"`, "queryPlanner.winningPlan.shards.0.winningPlan.stage": `"COLLSCAN"`}},
		{`{"aggregate": "c", "pipeline": [{"$match": {"x": {"$gt": 1}}}, {"$group": {"_id": null}}, {"$limit": 1}]}`, map[string]string{
			"mergeType": `"mongos"`, "splitPipeline.shardsPart": `[{"$match":{"x":{"$gt":1}}},{"$group":{"_id":{"$const":null}}}]`, "splitPipeline.mergerPart": `[{"$group":{"_id":"$$ROOT._id","$doingMerge":true}},{"$limit":1}]`,
			"shards.sh0.stages.1.$group": `{"_id":{"$const":null}}`, "shards.sh1.stages.0.$cursor.queryPlanner.winningPlan.stage": `"SHARDING_FILTER"`,
		}},
		{`{"aggregate": "c", "pipeline": [{"$sort": {"a": 1}}, {"$limit": 5}]}`, map[string]string{
			"splitPipeline.shardsPart": `[{"$sort":{"sortKey":{"a":1},"limit":5}}]`, "splitPipeline.mergerPart": `[{"$limit":5}]`,
		}},
		{`{"aggregate": "c", "pipeline": [{"$sortByCount": "$a"}]}`, map[string]string{
			"splitPipeline.shardsPart": `[{"$group":{"_id":"$a","count":{"$sum":{"$const":1}}}}]`,
			"splitPipeline.mergerPart": `[{"$group":{"_id":"$$ROOT._id","count":{"$sum":"$$ROOT.count"},"$doingMerge":true}},{"$sort":{"sortKey":{"count":-1}}}]`,
		}},
		{`{"aggregate": "c", "pipeline": [{"$match": {"x": 3}}, {"$group": {"_id": null}}]}`, map[string]string{"splitPipeline": "null", "shards.sh1": ""}},
		{`{"aggregate": "u", "pipeline": [{"$match": {"x": 3}}]}`, map[string]string{"queryPlanner.winningPlan.stage": `"COLLSCAN"`, "shards": ""}},
	} {
		reply := ok(t, askText(t, c, "db", `{"explain": `+test.cmd+`, "verbosity": "executionStats"}`))
		for path, want := range test.paths {
			got := ""
			if v := reply.Lookup(strings.Split(path, ".")...); v.Type != 0 {
				got = v.String()
			}
			if got != want {
				t.Errorf("%s: %s is %s, want %s", test.cmd, path, got, want)
			}
		}
	}
}
