package mongotest_test

import (
	"strconv"
	"strings"
	"testing"

	"allium/mongotest"
)

// TestKeysAnswer checks queries that the keys of an index answer, wholly or in part: the plan,
// where it is told, and the reply, which shows what the keys know and the documents do not.
func TestKeysAnswer(t *testing.T) {
	create := func(index string) string { return `{"createIndexes": "c", "indexes": [` + index + `]}` }
	insert := func(docs string) string { return `{"insert": "c", "documents": [` + docs + `]}` }
	batch := "cursor.firstBatch"
	const groups = `{"_id": 1, "a": 1, "b": 3}, {"_id": 2, "a": 1, "b": 2}, {"_id": 3, "a": 2, "b": 1}`
	for _, tt := range []struct {
		before                      []string
		command, plan, path, result string
	}{
		// A key has null for what is missing.
		{[]string{insert(`{"_id": 1, "a": 1}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": 1}, "projection": {"_id": 0, "a": 1, "b": 1}}`, `PROJECTION_COVERED`, batch, `[{"a":1,"b":null}]`},
		{[]string{insert(`{"_id": 1, "a": 1}`), create(`{"key": {"a": 1, "x.y.y": 1, "x.y.z": 1, "x.z": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": 1}, "projection": {"_id": 0, "x.y.y": 1, "x.y.z": 1, "x.z": 1}}`, `PROJECTION_DEFAULT`, batch,
			`[{"x":{"y":{"y":null,"z":null},"z":null}}]`},
		{[]string{insert(`{"_id": 1, "a": 1, "b": 2}`), create(`{"key": {"b": 1, "a": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"b": 2}, "projection": {"_id": 0, "a": 1, "b": 1}}`, `PROJECTION_COVERED`, batch, `[{"b":2,"a":1}]`},
		{[]string{insert(`{"_id": 1, "a": 1}, {"_id": 2, "a": 1, "b": 1}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": {"$gte": 1}}, "sort": {"b": -1}, "projection": {"_id": 0, "b": 1}}`, `PROJECTION_COVERED`, batch, `[{"b":1},{"b":null}]`},
		{[]string{insert(`{"_id": 1, "a": 1}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": 1}, "projection": {"a": 1, "b": 1}}`, `PROJECTION_SIMPLE`, batch, `[{"_id":1,"a":1}]`},
		{[]string{insert(`{"_id": 1, "a": [7, 8]}`), create(`{"key": {"a.0": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a.0": 7}, "projection": {"_id": 0, "a.0": 1}}`, `PROJECTION_DEFAULT`, batch, `[{"a":[]}]`},
		{[]string{insert(`{"_id": 1, "a": 3}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": 3}, "projection": {"_id": 0, "n": {"$add": ["$a", 1]}, "t": {"$type": "$b"}}}`, `PROJECTION_DEFAULT`, batch, `[{"n":4,"t":"null"}]`},

		// distinct takes the keys for documents, unless a part of the path may be an element.
		{[]string{insert(`{"_id": 1, "a": {"b": {"c": 1}}}, {"_id": 2, "a": {"b": [{"c": 4}, {"c": 6}]}}, {"_id": 3, "a": {"b": {"c": []}}}, {"_id": 4}`), create(`{"key": {"a.b.c": 1}, "name": "x"}`)},
			`{"distinct": "c", "key": "a.b.c"}`, `PROJECTION_DEFAULT`, "values", `[{"$undefined":true},null,1,4,6]`},
		{[]string{insert(`{"_id": 1, "a": {"b": [{"c": 4}]}}, {"_id": 2, "a": {"b": ["x"]}}, {"_id": 3, "a": 1}`), create(`{"key": {"a.b.0": 1}, "name": "x"}`)},
			`{"distinct": "c", "key": "a.b.0"}`, `PROJECTION_DEFAULT`, "values", `["x",{"c":4}]`},
		{[]string{insert(`{"_id": 1, "a": 1}, {"_id": 2, "a": [2, [3]]}, {"_id": 3}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"distinct": "c", "key": "a"}`, `PROJECTION_COVERED`, "values", `[null,1,2,3]`},
		{[]string{insert(`{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "b": 1}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"distinct": "c", "key": "a", "query": {"b": 1}}`, `PROJECTION_SIMPLE`, "values", `[1]`},

		// returnKey leaves out all but the key and its place in the order.
		{[]string{insert(`{"_id": 1, "a": 3, "b": 2}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"find": "c", "sort": {"b": 1}, "hint": "x", "returnKey": true, "projection": {"_id": 0, "k.s": {"$meta": "sortKey"}}}`, `RETURN_KEY`, batch, `[{"a":3,"k":{"s":[2]}}]`},

		// The branches of an $or that one scan can do are one, also if the documents have to tell.
		{[]string{insert(`{"_id": 1, "a": 3}, {"_id": 2, "a": 5}, {"_id": 3, "a": "z"}`), create(`{"key": {"a": "hashed"}, "name": "x"}`)},
			`{"find": "c", "filter": {"$or": [{"a": 3}, {"a": 5}]}}`, `SUBPLAN(FETCH filter {$or:[{a:{$eq:3}},{a:{$eq:5}}]}(IXSCAN x`, batch, `[{"_id":1,"a":3},{"_id":2,"a":5}]`},
		{[]string{insert(`{"_id": 1, "a": 3}, {"_id": 2, "a": null}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"$or": [{"a": 3}, {"a": null}]}}`, `SUBPLAN(FETCH filter {$or:[{a:{$eq:3}},{a:{$eq:null}}]}(IXSCAN x`, batch, `[{"_id":2,"a":null},{"_id":1,"a":3}]`},
		{[]string{insert(`{"_id": 1, "a": "xyz"}, {"_id": 2, "a": "q"}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"$or": [{"a": {"$regex": "y"}}, {"a": "q"}]}}`, `SUBPLAN(FETCH(IXSCAN x {a:[[\\, {}),[/y/, /y/]]} filter {$or:[{a:{$eq:q}},{a:{$regex:y}}]}`, batch, `[{"_id":2,"a":"q"},{"_id":1,"a":"xyz"}]`},

		// A sparse index has no key that tells of an element that something is not there.
		{[]string{insert(`{"_id": 1, "a": [{}]}`), create(`{"key": {"a": 1}, "name": "x", "sparse": true}`)},
			`{"find": "c", "filter": {"a": {"$elemMatch": {"$exists": false}}}}`, `COLLSCAN`, batch, `[]`},
		{[]string{insert(`{"_id": 1, "a": [1]}`), create(`{"key": {"a": 1}, "name": "x", "sparse": true}`)},
			`{"find": "c", "filter": {"a": {"$elemMatch": {"$ne": 2}}}}`, `COLLSCAN`, batch, `[{"_id":1,"a":[1]}]`},
		{[]string{insert(`{"_id": 1, "a": [1]}`), create(`{"key": {"a": 1}, "name": "x", "sparse": true}`)},
			`{"find": "c", "filter": {"a": {"$elemMatch": {"$ne": null}}}}`, `FETCH`, batch, `[{"_id":1,"a":[1]}]`},

		// A wildcard index has keys of elements, and knows up to eight places of them in a path.
		{[]string{insert(`{"_id": 1, "a": [-1, 0]}`), create(`{"key": {"$**": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": [-1, 0]}}`, `COLLSCAN`, batch, `[{"_id":1,"a":[-1,0]}]`},
		{[]string{insert(`{"_id": 1, "a": []}`), create(`{"key": {"$**": 1}, "name": "x"}`)},
			`{"find": "c", "filter": {"a": []}}`, `FETCH`, batch, `[{"_id":1,"a":[]}]`},
		{[]string{insert(`{"_id": 1, "a": [[{"d": 1}]]}`), create(`{"key": {"$**": 1}, "name": "x"}`)},
			`{"count": "c", "query": {"a.0.0.d": 1}}`, `COUNT(COLLSCAN`, "n", `1`},
		{[]string{insert(`{"_id": 1, "a": ` + strings.Repeat(`[{"b": `, 8) + `1` + strings.Repeat(`}]`, 8) + `}`), create(`{"key": {"$**": 1}, "name": "x"}`)},
			`{"count": "c", "query": {"a` + strings.Repeat(`.0.b`, 8) + `": 1}}`, `COUNT(FETCH`, "n", `1`},
		{[]string{insert(`{"_id": 1, "a": ` + strings.Repeat(`[{"b": `, 9) + `1` + strings.Repeat(`}]`, 9) + `}`), create(`{"key": {"$**": 1}, "name": "x"}`)},
			`{"count": "c", "query": {"a` + strings.Repeat(`.0.b`, 9) + `": 1}}`, `COUNT(COLLSCAN`, "n", `1`},

		// The query does a $project that computes fields, as it does one that takes them.
		{[]string{insert(`{"_id": 1, "a": 3}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": {"$gte": 0}}}, {"$project": {"_id": 0, "f": "$a"}}]}`, `PROJECTION_DEFAULT {f:$a,_id:false}(IXSCAN x`, batch, `[{"f":3}]`},
		{[]string{insert(`{"_id": 1, "a": 3}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": {"$gte": 0}}}, {"$project": {"_id": 0, "f": "$$ROOT"}}]}`, `PROJECTION_DEFAULT {f:$$ROOT,_id:false}(FETCH(IXSCAN x`, batch, `[{"f":{"_id":1,"a":3}}]`},
		{[]string{insert(`{"_id": 1, "a": 3}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": {"$gte": 0}}}, {"$project": {"_id": 0, "f": {"$literal": 1}}}]}`, `PROJECTION_DEFAULT {f:{$const:1},_id:false}(IXSCAN x`, batch, `[{"f":1}]`},
		{[]string{insert(`{"_id": 1, "a": 3, "b": 2}, {"_id": 2, "a": 3, "b": 1}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 3}}, {"$sort": {"b": 1}}, {"$limit": 1}, {"$project": {"_id": 0, "a": 1}}]}`, `PROJECTION_SIMPLE`, batch, `[{"a":3}]`},
		{[]string{insert(`{"_id": 1, "a": 3}, {"_id": 2, "a": 3, "b": 1}`), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 3}}, {"$limit": 5}, {"$match": {"b": {"$exists": true}}}, {"$project": {"_id": 0, "a": 1}}]}`, `LIMIT limitAmount 5(PROJECTION_SIMPLE {a:1,b:1,_id:0}(FETCH`, batch, `[{"a":3}]`},
		{[]string{insert(`{"_id": {"a": 1, "b": 2}, "a": 3}`), create(`{"key": {"_id.a": 1, "a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"_id.a": 1, "a": {"$gte": 0}}}, {"$project": {"_id.a": 1}}]}`, `PROJECTION_DEFAULT {_id:{a:true}}(IXSCAN x`, batch, `[{"_id":{"a":1}}]`},

		// A $group that takes the first document's values needs one document for each group: the
		// index has the groups in order, with nothing but points in front of them, and the wanted
		// order in each.
		{[]string{insert(groups), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$a", "b": {"$first": "$b"}}}]}`, `PROJECTION_COVERED {a:1,b:1,_id:0}(DISTINCT_SCAN x`, batch, `[{"_id":1,"b":2},{"_id":2,"b":1}]`},
		{[]string{insert(groups), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"a": -1, "b": -1}}, {"$group": {"_id": {"v": "$a"}, "b": {"$first": "$$ROOT"}}}]}`, `FETCH(DISTINCT_SCAN x`, batch, `[{"_id":{"v":2},"b":{"_id":3,"a":2,"b":1}},{"_id":{"v":1},"b":{"_id":1,"a":1,"b":3}}]`},
		{[]string{insert(groups), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 1}}, {"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$b"}}]}`, `PROJECTION_COVERED {b:1,_id:0}(DISTINCT_SCAN x`, batch, `[{"_id":2},{"_id":3}]`},
		{[]string{insert(groups), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$b"}}, {"$sort": {"_id": 1}}]}`, `PROJECTION_COVERED {b:1,_id:0}(IXSCAN x`, batch, `[{"_id":1},{"_id":2},{"_id":3}]`},
		{[]string{insert(groups), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": "$a", "b": {"$last": "$b"}}}]}`, `PROJECTION_COVERED {a:1,b:1,_id:0}(IXSCAN x`, batch, `[{"_id":1,"b":3},{"_id":2,"b":1}]`},
		{[]string{insert(groups), create(`{"key": {"a": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"b": 1}}, {"$group": {"_id": "$a", "b": {"$first": "$b"}}}, {"$sort": {"_id": 1}}]}`, `PROJECTION_SIMPLE {a:1,b:1,_id:0}(SORT`, batch, `[{"_id":1,"b":2},{"_id":2,"b":1}]`},

		// An index filter goes before every hint.
		{[]string{insert(`{"_id": 1, "a": 3}`), create(`{"key": {"a": 1}, "name": "x"}`), `{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": ["x"]}`},
			`{"find": "c", "filter": {"a": 3}, "hint": {"$natural": 1}}`, `FETCH(IXSCAN x`, batch, `[{"_id":1,"a":3}]`},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for _, command := range tt.before {
			ok(t, askText(t, c, "t", command))
		}
		reply := ok(t, askText(t, c, "t", `{"explain": `+tt.command+`, "verbosity": "queryPlanner"}`))
		plan, isQuery := reply.Lookup("queryPlanner", "winningPlan").Document()
		if !isQuery {
			plan, _ = reply.Lookup("stages", "0", "$cursor", "queryPlanner", "winningPlan").Document()
		}
		if got := outline(plan); !strings.HasPrefix(got, tt.plan) {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.plan)
		}
		reply = ok(t, askText(t, c, "t", tt.command))
		if got := reply.Lookup(strings.Split(tt.path, ".")...).String(); got != tt.result {
			t.Errorf("%s: %s\nwant %s", tt.command, got, tt.result)
		}
	}
}

// TestExplainFails checks that an explanation tells what a query would have failed with.
func TestExplainFails(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1, "a": "`+strings.Repeat("x", 500)+`"}, {"_id": 2, "a": "`+strings.Repeat("y", 500)+`"}]}`))
	ok(t, askText(t, c, "admin", `{"setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 600}`))
	for _, tt := range []struct {
		find string
		fine bool
	}{
		{`{"find": "c", "sort": {"a": 1}}`, false},
		{`{"find": "c", "sort": {"a": 1}, "allowDiskUse": true}`, true},
		{`{"find": "c", "sort": {"a": 1}, "limit": 1}`, true},
		{`{"find": "c"}`, true},
	} {
		reply := ok(t, askText(t, c, "t", `{"explain": `+tt.find+`, "verbosity": "executionStats"}`))
		stats, _ := reply.Lookup("executionStats").Document()
		code, _ := stats.Lookup("errorCode").Int32()
		if stats.Lookup("executionSuccess").AsBool() != tt.fine || (code == 292) == tt.fine {
			t.Errorf("%s: %s", tt.find, stats)
		}
		reply = askText(t, c, "t", tt.find)
		if reply.Lookup("ok").AsBool() != tt.fine {
			t.Errorf("%s: %s", tt.find, reply)
		}
	}
}

// TestCursorOfRenamed checks the errors of a cursor whose collection is not there any more.
func TestCursorOfRenamed(t *testing.T) {
	for _, tt := range []struct{ command, db, want string }{
		{`{"renameCollection": "t.c", "to": "t.d"}`, "admin", "collection renamed from 't.c' to 't.d'. UUID "},
		{`{"drop": "c"}`, "t", "collection dropped. UUID "},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`))
		id, _ := ok(t, askText(t, c, "t", `{"find": "c", "batchSize": 1}`)).Lookup("cursor", "id").Int64()
		ok(t, askText(t, c, tt.db, tt.command))
		reply := askText(t, c, "t", `{"getMore": {"$numberLong": "`+strconv.FormatInt(id, 10)+`"}, "collection": "c"}`)
		if code, _ := reply.Lookup("code").Int32(); code != 175 || !strings.HasPrefix(reply.Lookup("errmsg").String(), `"`+tt.want) {
			t.Errorf("%s: %s", tt.command, reply)
		}
	}
}

// TestScansCounted checks which scans of a collection $collStats counts.
func TestScansCounted(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for _, command := range []string{
		`{"create": "c", "capped": true, "size": 4096}`,
		`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": 1}]}`,
		`{"find": "c"}`, `{"find": "c", "filter": {"a": 2}}`, `{"find": "c", "filter": {"_id": 2}}`,
		`{"find": "c", "tailable": true}`, `{"find": "c", "filter": {"a": 1}, "tailable": true, "awaitData": true, "batchSize": 1}`,
	} {
		ok(t, askText(t, c, "t", command))
	}
	reply := ok(t, askText(t, c, "t", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$collStats": {"queryExecStats": {}}}]}`))
	if got := reply.Lookup("cursor", "firstBatch", "0", "queryExecStats").String(); got != `{"collectionScans":{"total":4,"nonTailable":2}}` {
		t.Error(got)
	}
}

// TestOrderOfTop checks that what orders the documents of a group is read, too.
func TestOrderOfTop(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 2, "c": 7}, {"_id": 2, "a": 1, "b": 1, "c": 8}]}`))
	ok(t, askText(t, c, "t", `{"createIndexes": "c", "indexes": [{"key": {"a": 1, "c": 1}, "name": "x"}]}`))
	for _, tt := range []struct{ op, want string }{
		{`{"$top": {"sortBy": {"b": 1}, "output": "$c"}}`, `[{"_id":1,"r":8}]`},
		{`{"$bottom": {"sortBy": {"b": 1}, "output": "$c"}}`, `[{"_id":1,"r":7}]`},
		{`{"$topN": {"n": 1, "sortBy": {"b": 1}, "output": "$c"}}`, `[{"_id":1,"r":[8]}]`},
		{`{"$bottomN": {"n": 1, "sortBy": {"b": 1}, "output": "$c"}}`, `[{"_id":1,"r":[7]}]`},
	} {
		reply := ok(t, askText(t, c, "t", `{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$a", "r": `+tt.op+`}}]}`))
		if got := reply.Lookup("cursor", "firstBatch").String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.op, got, tt.want)
		}
	}
}
