package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// askText parses a command in Extended JSON and sends it to a database.
func askText(t *testing.T, c net.Conn, db, text string) bson.Raw {
	t.Helper()
	var cmd bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), &cmd); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return run(t, c, append(cmd, bson.E{Key: "$db", Value: db}))
}

// errorOf returns a reply's error as "code: text".
func errorOf(reply bson.Raw) string {
	text, _ := reply.Lookup("errmsg").StringValue()
	if text == "" {
		return "ok"
	}
	code, _ := reply.Lookup("code").AsInt64()
	return fmt.Sprintf("%d: %s", code, text)
}

// What the commands about shards, chunks and zones refuse, and how they say it. db.c has the shard
// key {x: 1} and two chunks, split at 10, db.u none.
func TestShardingRefusals(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("4.4.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	ok(t, askText(t, c, "db", `{"insert": "u", "documents": [{"_id": 1, "a": [1]}]}`))
	ok(t, askText(t, c, "db", `{"createIndexes": "u", "indexes": [{"key": {"a": 1}, "name": "a"}]}`))
	ok(t, askText(t, c, "db", `{"create": "capped", "capped": true, "size": 4096}`))
	ok(t, askText(t, c, "db", `{"create": "collated", "collation": {"locale": "en"}}`))
	ok(t, askText(t, c, "db", `{"create": "v", "viewOn": "c", "pipeline": []}`))
	ok(t, askText(t, c, "admin", `{"addShardToZone": "sh0", "zone": "z"}`))
	ok(t, askText(t, c, "admin", `{"updateZoneKeyRange": "db.c", "min": {"x": 0}, "max": {"x": 5}, "zone": "z"}`))
	for _, test := range []struct{ cmd, want string }{
		{`{"split": "db.c", "find": 1}`, "0: wrong type for 'find' field, expected object, found find: 1"},
		{`{"split": "db.c", "find": {}}`, "0: need to specify find/bounds or middle"},
		{`{"split": "db.c", "find": {"x": 1}, "middle": {"x": 3}}`, "0: cannot specify find and middle together"},
		{`{"split": "db.c", "find": {"x": 1}, "bounds": [{"x": 1}, {"x": 2}]}`, "0: cannot specify bounds and query at the same time"},
		{`{"split": "db.c", "bounds": [{"x": 1}, {"x": 2}], "middle": {"x": 3}}`, "0: cannot specify bounds and middle together"},
		{`{"split": "db.c", "bounds": [1, 2]}`, "10065: invalid parameter: expected an object (0)"},
		{`{"split": "db.c", "bounds": [{"x": 1}, {"x": 2}]}`, "0: no chunk found with the shard key bounds [{ x: 1 }, { x: 2 })"},
		{`{"split": "db.c", "bounds": [{"a": 1}, {"x": 2}]}`, "0: shard key bounds [{ a: 1 },{ x: 2 }) are not valid for shard key pattern { x: 1 }"},
		{`{"split": "db.c", "find": {"x": {"$gt": 1}}}`, "0: no shard key found in chunk query { x: { $gt: 1 } }"},
		{`{"split": "db.c", "find": {"$foo": 1}}`, "2: unknown top level operator: $foo"},
		{`{"split": "db.c", "middle": {"x": [1]}}`, "0: new split key { x: [ 1 ] } is not valid for shard key pattern { x: 1 }"},
		{`{"split": "db.c", "middle": {"x": {"$maxKey": 1}}}`, "0: new split key { x: MaxKey } is a boundary key of existing chunk [{ x: 10 },{ x: MaxKey })"},
		{`{"split": "db.u", "middle": {"x": 1}}`, "118: Collection db.u is not sharded."},
		{`{"moveChunk": "db.c", "to": "sh1"}`, "0: need to specify either a find query, or both lower and upper bounds."},
		{`{"moveChunk": "db.c", "to": "sh1", "find": 1}`, "0: need to specify either a find query, or both lower and upper bounds."},
		{`{"moveChunk": "db.c", "to": "sh1", "find": {"a": 1}}`, "0: no shard key found in chunk query { a: 1 }"},
		{`{"moveChunk": "db.c", "to": "sh1", "bounds": [{"x": 0}, {"x": 10}]}`, "0: no chunk found with the shard key bounds [{ x: 0 }, { x: 10 })"},
		{`{"moveChunk": "db.c", "to": "sh1", "bounds": [{"x": {"$minKey": 1}}, {"x": 10}]}`, "ok"},
		{`{"moveChunk": "db.c", "to": "sh0", "bounds": [{"x": {"$minKey": 1}}, {"x": 10}], "_waitForDelete": true}`, "ok"},
		{`{"mergeChunks": "db.c", "bounds": [{}, {"x": 1}]}`, "0: no min key specified"},
		{`{"mergeChunks": "db.c", "bounds": [{"x": 1}]}`, "0: only a min and max bound may be specified"},
		{`{"mergeChunks": "db.c", "bounds": [{"x": 10}, {"x": {"$maxKey": 1}}]}`, "20: could not merge chunks, collection db.c already contains chunk for [{ x: 10 }, { x: MaxKey })"},
		{`{"refineCollectionShardKey": "db.c", "key": {"x": 1}}`, "ok"},
		{`{"refineCollectionShardKey": "db.c", "key": {"x": 1, "y": 1}}`, "72: Please create an index that starts with the proposed shard key before refining the shard key"},
		{`{"getShardVersion": ""}`, "73:  is not a valid db name"},
		{`{"shardCollection": "db.n", "key": {"x": 1}, "unique": 1}`, "14: BSON field 'ShardCollection.unique' is the wrong type 'int', expected type 'bool'"},
		{`{"shardCollection": "db.n", "key": {"x": 1}, "collation": {"locale": "en"}}`, `2: The collation for shardCollection must be {locale: 'simple'}, but found: { locale: "en" }`},
		{`{"shardCollection": "db.n", "key": {"x": 1}, "collation": {}}`, `4: Missing expected field "locale"`},
		{`{"shardCollection": "db.n", "key": {"x": 1}, "numInitialChunks": 4}`, "72: numInitialChunks is only supported when the collection is empty and has a hashed field in the shard key pattern"},
		{`{"shardCollection": "db.n", "key": {"x": "hashed"}, "numInitialChunks": 20000}`, "72: numInitialChunks cannot be more than either: 16384, 8192 * number of shards; or 1000000"},
		{`{"shardCollection": "db.n", "key": {"x..y": 1}}`, "2: Field x..y contains empty parts"},
		{`{"shardCollection": "db.u", "key": {"a": 1}}`, "96: couldn't find valid index for shard key"},
		{`{"shardCollection": "db.capped", "key": {"x": 1}}`, "72: can't shard a capped collection"},
		{`{"shardCollection": "db.v", "key": {"x": 1}}`, "166: Views cannot be sharded."},
		{`{"shardCollection": "db.collated", "key": {"x": 1}, "collation": {"locale": "simple"}}`, "ok"},
		{`{"addShard": "x:1", "name": 1}`, `14: "name" had the wrong type. Expected string, found int`},
		{`{"removeShard": 1}`, "14: Field 'removeShard' must be of type string"},
		{`{"removeShard": "nosuch"}`, "70: Shard nosuch not found"},
		{`{"movePrimary": "db", "to": 1}`, "14: BSON field 'MovePrimary.to' is the wrong type 'int', expected type 'string'"},
		{`{"movePrimary": "db", "to": ""}`, "72: you have to specify where you want to move it"},
		{`{"addShardToZone": 1, "zone": "z"}`, `14: "addShardToZone" had the wrong type. Expected string, found int`},
		{`{"removeShardFromZone": null, "zone": "z"}`, `14: "removeShardFromZone" had the wrong type. Expected string, found null`},
		{`{"updateZoneKeyRange": "db.c", "min": 1, "max": {"x": 1}, "zone": "z"}`, `14: The field 'min' cannot be parsed :: caused by :: "min" had the wrong type. Expected object, found int`},
		{`{"updateZoneKeyRange": "db.c", "min": {}, "max": {"x": 1}, "zone": "z"}`, "2: The field 'min' cannot be empty"},
		{`{"updateZoneKeyRange": "db.c", "min": {"x": 1}, "max": {"x": 1}, "zone": "z"}`, "9: min: { x: 1 } should be less than max: { x: 1 }"},
		{`{"updateZoneKeyRange": "db.c", "min": {"x": 4}, "max": {"x": 9}, "zone": "z"}`, "178: Zone range: { x: 4 } -->> { x: 9 } on z is overlapping with existing: { x: 0 } -->> { x: 5 } on z"},
		{`{"updateZoneKeyRange": "db.c", "min": {"a": 4}, "max": {"x": 9}, "zone": "z"}`, "61: min: { a: 4 } is not a prefix of the shard key { x: 1 } of ns: db.c"},
		{`{"updateZoneKeyRange": "db.c", "min": {"x": 4}, "max": {"x": 9, "y": 1}, "zone": "z"}`, "61: max: { x: 9, y: 1 } is not a prefix of the shard key { x: 1 } of ns: db.c"},
		{`{"removeShardFromZone": "sh0", "zone": "z"}`, "163: cannot remove a shard from zone if a chunk range is associated with it"},
		{`{"balancerCollectionStatus": "db.u"}`, "118: Collection db.u is not sharded."},
		{`{"refineCollectionShardKey": "db.u", "key": {"x": 1, "y": 1}}`, "118: Collection db.u is not sharded."},
		{`{"clearJumboFlag": "db.c", "find": {"x": 1}}`, "ok"},
		{`{"clearJumboFlag": 1}`, "14: BSON field 'clearJumboFlag.clearJumboFlag' is the wrong type 'int', expected type 'string'"},
		{`{"clearJumboFlag": "db.c", "nosuch": 1}`, "40415: BSON field 'clearJumboFlag.nosuch' is an unknown field."},
		{`{"clearJumboFlag": "db.c", "bounds": []}`, "72: bounds can only have exactly 2 elements"},
		{`{"clearJumboFlag": "db.c", "find": {"x": 1}, "bounds": [{"x": 0}, {"x": 1}]}`, "72: cannot specify both bounds and find"},
		{`{"moveChunk": "db.c", "to": "", "find": {"x": 1}}`, "0: you have to specify where you want to move the chunk"},
		{`{"movePrimary": "db", "to": null}`, "40414: BSON field 'MovePrimary.to' is missing but a required field"},
		{`{"movePrimary": "admin", "to": "sh0"}`, "72: Can't move primary for admin database"},
		{`{"enableSharding": "local"}`, "72: can't shard local database"},
		{`{"shardCollection": "config.x", "key": {"x": 1}}`, "20: only special collections in the config db may be sharded"},
		{`{"shardCollection": "db", "key": 1}`, "73: Invalid namespace specified 'db'"},
		{`{"shardCollection": "db.n", "key": {"x": 1}, "numInitialChunks": -1}`, "72: numInitialChunks cannot be more than either: 16384, 8192 * number of shards; or 1000000"},
		{`{"shardCollection": "db.n", "key": {"x": "hashed"}, "presplitHashedZones": true}`, "31387: 'presplitHashedZones' is only supported when the collection is empty, zones are set up and shard key pattern has a hashed field"},
		{`{"refineCollectionShardKey": "db.c", "key": {"x": 1}, "nosuch": 1}`, "40415: BSON field 'refineCollectionShardKey.nosuch' is an unknown field."},
		{`{"balancerCollectionStatus": "db.c", "nosuch": 1}`, "40415: BSON field 'balancerCollectionStatus.nosuch' is an unknown field."},
		{`{"killOp": 1}`, `50759: Did not provide "op" field`},
		{`{"killOp": 1, "op": true}`, `50760: "op" field was of unsupported type bool`},
		{`{"killOp": 1, "op": ":1"}`, `28625: The op argument to killOp must be of the format shardid:opid but found ":1"`},
		{`{"enableSharding": "db", "writeConcern": 1}`, `14: "writeConcern" had the wrong type. Expected object, found int`},
		{`{"clearJumboFlag": "db.c"}`, "72: need to specify find or bounds"},
	} {
		if got := errorOf(askText(t, c, "admin", test.cmd)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.cmd, got, test.want)
		}
	}
	if got := errorOf(askText(t, c, "admin", `{"removeShardFromZone": "sh0", "zone": "z"}`)); got[:4] != "163:" {
		t.Errorf("the last shard of a zone with a range was taken out: %s", got)
	}
}

// Where writes go, and which ones are refused because they do not say it.
func TestShardTargets(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("4.4.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	const several = "writeErrors"
	for _, test := range []struct{ cmd, want string }{
		{`{"update": "c", "updates": [{"q": {"_id": 1, "a": {"$exists": false}}, "u": {"$set": {"z": 1}}}]}`, `{"n":1}`},
		{`{"update": "c", "updates": [{"q": {"_id": {"$gt": 1}}, "u": {"$set": {"z": 1}}}]}`, several},
		{`{"update": "c", "updates": [{"q": {"$expr": {"$eq": ["$x", 1]}}, "u": {"$set": {"z": 2}}}]}`, `{"n":1}`},
		{`{"update": "c", "updates": [{"q": {"$expr": {"$and": [{"$eq": [15, "$x"]}, {"$lt": ["$_id", 99]}]}}, "u": {"$set": {"z": 2}}}]}`, `{"n":1}`},
		{`{"update": "c", "updates": [{"q": {"$expr": {"$gt": ["$x", 18]}}, "u": {"$set": {"z": 2}}}]}`, several},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"x": 15}}]}`, `{"n":0}`}, // sh1 does not have it
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"x": 1, "r": 1}}]}`, `{"n":1}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"x": [1]}}]}`, several},
		{`{"update": "c", "updates": [{"q": {"x": null, "_id": 77}, "u": {"$set": {"z": 1}}, "upsert": true}]}`, `{"n":1}`},
		{`{"update": "c", "updates": [{"q": {"x": {"$maxKey": 1}}, "u": {"$set": {"z": 1}}, "upsert": true}]}`, several},
		{`{"update": "c", "updates": [{"q": {"x": "a"}, "u": {"$set": {"z": 1}}, "upsert": true, "collation": {"locale": "en"}}]}`, several},
		{`{"delete": "c", "deletes": [{"q": {"x": null}, "limit": 1}]}`, `{"n":1}`},
		{`{"delete": "c", "deletes": [{"q": {"x": 1, "$and": [{"x": 1}]}, "limit": 1}]}`, several}, // said twice
		{`{"delete": "c", "deletes": [{"q": {"_id": 2, "z": null}, "limit": 1}]}`, `{"n":1}`},
		{`{"insert": "c", "documents": [{"_id": 80, "x": {"$maxKey": 1}}]}`, several},
	} {
		reply := ok(t, askText(t, c, "db", test.cmd))
		n, _ := reply.Lookup("n").AsInt64()
		got := fmt.Sprintf(`{"n":%d}`, n)
		if reply.Lookup("writeErrors").Type != 0 {
			got = several
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.cmd, reply, test.want)
		}
	}
	// $merge finds documents of a sharded collection by the shard key and _id.
	for _, test := range []struct{ stage, want string }{
		{`{"$merge": "c"}`, "ok"},
		{`{"$merge": {"into": "c", "on": "_id"}}`, "61: Failed to target upsert by query :: could not extract exact shard key"},
		{`{"$merge": {"into": "c", "on": "_id", "whenNotMatched": "discard"}}`, "ok"},
		{`{"$merge": {"into": "c", "on": ["_id", "a"]}}`, "51190: Cannot find index to verify that join fields will be unique"},
		{`{"$merge": {"into": {"db": "none", "coll": "c"}}}`, "26: database none not found"},
		{`{"$out": {"db": "none", "coll": "c"}}`, "26: database none not found"},
		{`{"$out": "c"}`, "28769: db.c cannot be sharded"},
	} {
		if got := errorOf(askText(t, c, "db", `{"aggregate": "c", "pipeline": [{"$match": {"x": 3}}, `+test.stage+`], "cursor": {}}`)); got != test.want {
			t.Errorf("%s: %s, want %s", test.stage, got, test.want)
		}
	}
}

// Before 5.1 no join reads a sharded collection, however deep in the pipeline it is.
func TestJoinsOfSharded(t *testing.T) {
	const lookup = `{"$lookup": {"from": "c", "localField": "x", "foreignField": "x", "as": "c"}}`
	joins := []string{
		lookup,
		`{"$graphLookup": {"from": "c", "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "c"}}`,
		`{"$facet": {"f": [` + lookup + `]}}`,
		`{"$lookup": {"from": "o", "as": "o", "pipeline": [` + lookup + `]}}`,
		`{"$unionWith": {"coll": "o", "pipeline": [` + lookup + `]}}`,
		`{"$facet": {"f": [{"$unionWith": {"coll": "o", "pipeline": [{"$lookup": {"from": "o", "as": "o", "pipeline": [` + lookup + `]}}]}}]}}`,
	}
	for version, want := range map[string]string{"5.0": "28769: db.c cannot be sharded", "6.0": "ok"} {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "admin", `{"enableSharding": "db"}`))
		ok(t, askText(t, c, "admin", `{"shardCollection": "db.c", "key": {"x": 1}}`))
		ok(t, askText(t, c, "db", `{"insert": "o", "documents": [{"x": 1}]}`))
		for _, stage := range joins {
			if got := errorOf(askText(t, c, "db", `{"aggregate": "o", "pipeline": [`+stage+`], "cursor": {}}`)); got != want {
				t.Errorf("%s: %s: %s, want %s", version, stage, got, want)
			}
		}
	}
}

// An empty collection with a hashed key begins with as many chunks as are wanted, evenly on the
// shards.
func TestInitialChunks(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "admin", `{"enableSharding": "db"}`))
	for n, want := range map[int]string{
		0: `sh0 {"x":{"$minKey":1}}, sh0 {"x":-4611686018427387902}, sh1 {"x":0}, sh1 {"x":4611686018427387902}, `,
		3: `sh0 {"x":{"$minKey":1}}, sh1 {"x":-3074457345618258602}, sh0 {"x":3074457345618258602}, `,
		6: `sh0 {"x":{"$minKey":1}}, sh0 {"x":-6148914691236517204}, sh0 {"x":-3074457345618258602}, sh1 {"x":0}, sh1 {"x":3074457345618258602}, sh1 {"x":6148914691236517204}, `,
	} {
		ok(t, askText(t, c, "admin", fmt.Sprintf(`{"shardCollection": "db.c%d", "key": {"x": "hashed"}, "numInitialChunks": %d}`, n, n)))
		uuid := bson.Raw(ok(t, askText(t, c, "config", fmt.Sprintf(`{"find": "collections", "filter": {"_id": "db.c%d"}}`, n))).Lookup("cursor", "firstBatch").Value).Lookup("0", "uuid")
		reply := ok(t, run(t, c, bson.D{{Key: "find", Value: "chunks"}, {Key: "filter", Value: bson.D{{Key: "uuid", Value: uuid}}}, {Key: "$db", Value: "config"}}))
		got := ""
		for v := range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
			chunk := bson.Raw(v.Value)
			name, _ := chunk.Lookup("shard").StringValue()
			got += fmt.Sprintf("%s %v, ", name, bson.Raw(chunk.Lookup("min").Value))
		}
		if got != want {
			t.Errorf("%d chunks:\ngot  %s\nwant %s", n, got, want)
		}
	}
}

// While chunks are split, moved and merged, bulk writes lose nothing and do nothing twice.
func TestMovesDuringBulkWrites(t *testing.T) {
	const writers, batches, size, keys = 3, 30, 20, 60
	for _, key := range []any{1, "hashed"} {
		t.Run(fmt.Sprint(key), func(t *testing.T) {
			t.Parallel()
			d := mongotest.Start(t, mongotest.Sharded(3, 2), mongotest.InMemory())
			c := dialNode(t, d, d.Node(0))
			ok(t, run(t, c, bson.D{{Key: "shardCollection", Value: "db.c"}, {Key: "key", Value: bson.D{{Key: "x", Value: key}}}, {Key: "$db", Value: "admin"}}))
			writing, done := sync.WaitGroup{}, make(chan struct{})
			for w := range writers {
				conn := dialNode(t, d, d.Node(w%2))
				writing.Add(1)
				go func() {
					defer writing.Done()
					for b := range batches {
						bulkWrites(t, conn, w, b, size, keys)
					}
				}()
			}
			go func() {
				defer close(done)
				writing.Wait()
			}()
			moves := moveChunks(t, dialNode(t, d, d.Node(1)), keys, done)
			if moves == 0 {
				t.Error("no chunk was moved")
			}
			seen := map[string]int{}
			for _, doc := range results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "projection", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "$db", Value: "db"}}) {
				seen[doc]++
			}
			for w := range writers {
				for b := range batches {
					for i := range size - 1 { // the last one of each batch was deleted
						// By its batch once, and by every later statement on all of the writer.
						want := fmt.Sprintf(`{"_id":"%d-%d-%d","w":%d,"n":%d}`, w, b, i, w, 1+batches-b)
						if seen[want] != 1 {
							t.Fatalf("%s is there %d times", want, seen[want])
						}
						delete(seen, want)
					}
				}
			}
			if len(seen) != 0 {
				t.Errorf("%d documents too many: %v", len(seen), seen)
			}
		})
	}
}

// bulkWrites inserts a batch of a writer's documents, counts them up one by one, deletes the last
// one, and counts all of the writer's up on all shards.
func bulkWrites(t *testing.T, c net.Conn, w, b, size, keys int) {
	var docs, updates bson.A
	for i := range size {
		id, x := fmt.Sprintf("%d-%d-%d", w, b, i), (i*7+b)%keys
		docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}, {Key: "w", Value: w}, {Key: "n", Value: 0}})
		updates = append(updates, bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}})
	}
	last := docs[size-1].(bson.D)[:2]
	for _, s := range []struct {
		cmd bson.D
		n   int64
	}{
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "ordered", Value: false}}, int64(size)},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: updates}}, int64(size)},
		{bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: last}, {Key: "limit", Value: 1}}}}}, 1},
		{bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "w", Value: w}}},
			{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "multi", Value: true}}}}}, int64((b + 1) * (size - 1))},
	} {
		reply := run(t, c, append(s.cmd, bson.E{Key: "$db", Value: "db"}))
		if n, _ := reply.Lookup("n").AsInt64(); n != s.n || errorOf(reply) != "ok" {
			t.Errorf("%s wrote %d documents, want %d: %s", s.cmd[0].Key, n, s.n, reply)
		}
	}
}

// moveChunks splits, moves and merges chunks until done is closed, and returns how often it moved
// one.
func moveChunks(t *testing.T, c net.Conn, keys int, done <-chan struct{}) (moves int) {
	r := rand.New(rand.NewPCG(18, 1))
	for {
		select {
		case <-done:
			return moves
		default:
		}
		at := bson.D{{Key: "x", Value: r.IntN(keys)}}
		switch r.IntN(4) {
		case 0:
			run(t, c, bson.D{{Key: "split", Value: "db.c"}, {Key: "find", Value: at}, {Key: "$db", Value: "admin"}})
		default:
			reply := run(t, c, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: at}, {Key: "to", Value: fmt.Sprintf("sh%d", r.IntN(3))},
				{Key: "_waitForDelete", Value: r.IntN(2) == 0}, {Key: "$db", Value: "admin"}})
			if errorOf(reply) == "ok" {
				moves++
			}
		}
	}
}

// A collection that was moved by itself is at the shard it was moved to, for all that asks where it
// is, and stays there when its database moves.
func TestMoveCollection(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(3, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "admin", `{"enableSharding": "db", "primaryShard": "sh0"}`))
	for _, name := range []string{"a", "b"} {
		ok(t, askText(t, c, "db", `{"insert": "`+name+`", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}]}`))
		ok(t, askText(t, c, "db", `{"createIndexes": "`+name+`", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}`))
	}
	where := func(name string) string {
		reply := ok(t, askText(t, c, "db", `{"aggregate": "`+name+`", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}`))
		return reply.Lookup("cursor", "firstBatch", "0", "shard").String() + reply.Lookup("cursor", "firstBatch", "0", "count").String()
	}
	shown := func() string { // by the config servers
		reply := ok(t, askText(t, c, "config", `{"find": "collections", "filter": {"_id": {"$regex": "^db"}}, "projection": {"key": 1, "unsplittable": 1}, "sort": {"_id": 1}}`))
		return reply.Lookup("cursor", "firstBatch").String()
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want(where("a"), `"sh0"2`)
	ok(t, askText(t, c, "admin", `{"moveCollection": "db.a", "toShard": "sh2"}`))
	ok(t, askText(t, c, "admin", `{"moveCollection": "db.a", "toShard": "sh2"}`)) // it is there
	want(where("a"), `"sh2"2`)
	want(shown(), `[{"_id":"db.a","key":{"_id":1},"unsplittable":true}]`)
	ok(t, askText(t, c, "admin", `{"movePrimary": "db", "to": "sh1"}`))
	want(where("a"), `"sh2"2`)
	want(where("b"), `"sh1"2`)
	ok(t, askText(t, c, "db", `{"aggregate": "b", "pipeline": [{"$lookup": {"from": "a", "localField": "x", "foreignField": "x", "as": "l"}}, {"$out": "a"}], "cursor": {}}`))
	want(ok(t, askText(t, c, "db", `{"find": "a", "filter": {"l.x": 2}, "hint": "x_1"}`)).Lookup("cursor", "firstBatch", "0", "_id").String(), "2")
	ok(t, askText(t, c, "admin", `{"shardCollection": "db.b", "key": {"x": 1}}`))
	ok(t, askText(t, c, "admin", `{"unshardCollection": "db.b", "toShard": "sh2"}`))
	want(where("b"), `"sh2"2`)
	ok(t, askText(t, c, "admin", `{"moveCollection": "db.b", "toShard": "sh1"}`))
	want(where("b"), `"sh1"2`)
	for _, name := range []string{"a", "b"} {
		ok(t, askText(t, c, "db", `{"drop": "`+name+`"}`))
	}
	ok(t, askText(t, c, "db", `{"insert": "a", "documents": [{"_id": 1}]}`))
	want(where("a"), `"sh1"1`)
	want(shown(), `[]`)
	ok(t, askText(t, c, "db", `{"create": "v", "viewOn": "a", "pipeline": []}`))
	ok(t, askText(t, c, "admin", `{"shardCollection": "db.s", "key": {"x": 1}}`))
	for _, tc := range []struct{ cmd, want string }{
		{`{"moveCollection": "db.a"}`, "40414"},
		{`{"moveCollection": 1, "toShard": "sh0"}`, "2"},
		{`{"moveCollection": "db", "toShard": "sh0"}`, "73"},
		{`{"moveCollection": "db.a", "toShard": 1}`, "14"},
		{`{"moveCollection": "db.a", "toShard": "sh9"}`, "70"},
		{`{"moveCollection": "no.a", "toShard": "sh0"}`, "26"},
		{`{"moveCollection": "db.no", "toShard": "sh0"}`, "26"},
		{`{"moveCollection": "db.s", "toShard": "sh0"}`, "26"},
		{`{"moveCollection": "db.v", "toShard": "sh0"}`, "166"},
		{`{"unshardCollection": "db.s", "toShard": "sh9"}`, "70"},
		{`{"abortMoveCollection": "db.a"}`, "339"},
		{`{"abortUnshardCollection": "db.a"}`, "339"},
		{`{"abortReshardCollection": "db.s"}`, "339"},
		{`{"commitReshardCollection": "db.s"}`, "339"},
		{`{"commitReshardCollection": "no.s"}`, "26"},
	} {
		reply := askText(t, c, "admin", tc.cmd)
		if got := reply.Lookup("code").String(); got != tc.want {
			t.Errorf("%s: %v, want %s", tc.cmd, reply, tc.want)
		}
	}
}
