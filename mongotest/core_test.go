package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/mongotest"
)

// TestCore has what the server's own core tests ask of a 5.0, and mongotest once answered
// otherwise: a command, after others that prepare it, and a field of its reply, or the error.
func TestCore(t *testing.T) {
	create := func(index string) string { return `{"createIndexes": "c", "indexes": [` + index + `]}` }
	insert := func(docs string) string { return `{"insert": "c", "documents": [` + docs + `]}` }
	for _, tt := range []struct {
		before          []string
		cmd, path, want string
	}{
		// A program's statement may be an expression in parentheses.
		{[]string{insert(`{"_id": 1, "a": 5}`)}, `{"count": "c", "query": {"$where": "(this.a == 5);"}}`, "n", `1`},
		{[]string{insert(`{"_id": 1, "a": 5}`)}, `{"count": "c", "query": {"$where": "var x = 5; ((this.a) == x) ;"}}`, "n", `1`},

		// $text is for find and for the front of a pipeline.
		{nil, `{"listCollections": 1, "filter": {"$text": {"$search": "x"}}}`, "", `2: `},
		{nil, `{"listCollections": 1, "filter": {"$where": "true"}}`, "", `2: `},
		{nil, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$graphLookup": {"from": "c", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "j", "restrictSearchWithMatch": {"$text": {"$search": "x"}}}}]}`, "", `2: `},
		{[]string{create(`{"key": {"s": "text"}, "name": "s"}`)}, `{"find": "c", "filter": {"$or": [{"$text": {"$search": "x"}}, {"b": 1}]}}`, "", `291: error processing query: ns=t.cTree: $or`},

		// $merge is sure of a unique index on values alone.
		{[]string{insert(`{"_id": 1}`), create(`{"key": {"a": 1, "s": "text"}, "name": "x", "unique": true}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$merge": {"into": "c", "on": ["a", "s"]}}]}`, "", `51183: `},
		{[]string{insert(`{"_id": 1}`), create(`{"key": {"a": 1, "g": "2dsphere"}, "name": "x", "unique": true}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$merge": {"into": "c", "on": ["a", "g"]}}]}`, "", `51183: `},

		// What is computed by $meta makes a $project one that takes fields.
		{[]string{insert(`{"_id": 1, "a": 2, "b": 3}`), create(`{"key": {"a": 1}, "name": "a"}`)},
			`{"aggregate": "c", "cursor": {}, "hint": "a", "pipeline": [{"$match": {"a": 2}}, {"$project": {"_id": 0, "k": {"$meta": "indexKey"}}}]}`, "cursor.firstBatch.0", `{"k":{"a":2}}`},

		// Specifications of indexes.
		{nil, create(`{"key": {"_fts": 1}, "name": "x"}`), "", `67: `},
		{nil, create(`{"key": {"_fts": "text"}, "name": "x"}`), "", `67: `},
		{nil, create(`{"key": {"g": "2dsphere"}, "name": "x", "2dsphereIndexVersion": "foo"}`), "", `67: `},
		{nil, create(`{"key": {"g": "2dsphere"}, "name": "x", "finestIndexedLevel": 31}`), "", `16748: finestIndexedLevel must be <= 30`},
		{nil, create(`{"key": {"g": "2dsphere"}, "name": "x", "coarsestIndexedLevel": -1}`), "", `16747: coarsestIndexedLevel must be >= 0`},
		{nil, create(`{"key": {"g": "2dsphere"}, "name": "x", "coarsestIndexedLevel": 9, "finestIndexedLevel": 8}`), "", `16749: finestIndexedLevel must be >= coarsestIndexedLevel`},
		{nil, create(`{"key": {"g": "2dsphere"}, "name": "x", "finestIndexedLevel": "x"}`), "", `14: `},
		{[]string{create(`{"key": {"s": "text"}, "name": "s"}`)}, create(`{"key": {"a": 1, "z": "text"}, "name": "z"}`), "", `67: only one text index per collection allowed, found existing text index "s"`},
		{[]string{create(`{"key": {"s": "text"}, "name": "s"}`)}, create(`{"key": {"s": "text"}, "name": "s", "textIndexVersion": 2}`), "note", `"all indexes already exist"`},
		{[]string{create(`{"key": {"a": 1}, "name": "a", "partialFilterExpression": {"a": {"$gt": 0, "$lt": 9}, "b": 1}}`)},
			create(`{"key": {"a": 1}, "name": "a", "partialFilterExpression": {"$and": [{"b": 1}, {"$and": [{"a": {"$lt": 9}}, {"a": {"$gt": 0}}]}]}}`), "note", `"all indexes already exist"`},
		{[]string{`{"create": "c", "collation": {"locale": "fr"}}`, create(`{"key": {"a": 1}, "name": "a", "v": 1}`)}, `{"listIndexes": "c"}`, "cursor.firstBatch.1", `{"v":1,"key":{"a":1},"name":"a"}`},
		{[]string{create(`{"key": {"a": 1}, "name": "a"}`)}, `{"collMod": "c", "index": {"name": "_id_", "hidden": true}}`, "", `2: can't hide _id index`},

		{nil, `{"createIndexes": "system.js", "indexes": [{"key": {"a": 1}, "name": "a", "hidden": true}]}`, "", `2: Can't hide index on system collection`},

		// Verbs of regular expressions, their settings, and their limits.
		{[]string{insert(`{"_id": 1, "a": "xy"}, {"_id": 2, "a": "xz"}`)}, `{"find": "c", "filter": {"a": {"$regex": "x(*COMMIT)y|xz"}}}`, "cursor.firstBatch", `[{"_id":1,"a":"xy"}]`},
		{[]string{insert(`{"_id": 1, "a": "x\ny"}`)}, `{"count": "c", "query": {"a": {"$regex": "(*CR)x.y"}}}`, "n", `1`},
		{nil, `{"find": "c", "filter": {"a": {"$regex": "(*NONE)x"}}}`, "", `51091: Regular expression is invalid: (*VERB) not recognized or malformed`},
		{nil, `{"find": "c", "filter": {"a": {"$regex": "x", "$options": "\u0000i"}}}`, "", `2: Regular expression options string cannot contain an embedded null byte`},
		{nil, `{"find": "c", "filter": {"a": {"$regex": "` + strings.Repeat("c", 32762) + `"}}}`, "", `51091: `},
		{nil, `{"count": "c", "query": {"a": {"$regex": "` + strings.Repeat("c", 32761) + `"}}}`, "n", `0`},
		{[]string{insert(`{"_id": 1, "a": "xxy"}`)}, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"r": {"$regexMatch": {"input": "$a", "regex": "(*LIMIT_MATCH=1)(x)y"}}}}]}`, "", `51156: `},
		{[]string{insert(`{"_id": 1}`)}, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"r": {"$regexMatch": {"input": null, "regex": null, "options": "I"}}}}]}`, "", `51108: `},

		// A zone in a date's format may be an abbreviation, and have spaces in front.
		{[]string{insert(`{"_id": 1}`)}, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"_id": 0, "d": {"$dateFromString": {"dateString": "2017-07-14T12:02:44 GMT", "format": "%Y-%m-%dT%H:%M:%S%z"}}}}]}`, "cursor.firstBatch.0", `{"d":{"$date":"2017-07-14T12:02:44Z"}}`},
		{[]string{insert(`{"_id": 1}`)}, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"_id": 0, "d": {"$dateFromString": {"dateString": "2017-07-14T12:02:44 CEST", "format": "%Y-%m-%dT%H:%M:%S%z"}}}}]}`, "cursor.firstBatch.0", `{"d":{"$date":"2017-07-14T10:02:44Z"}}`},
		{[]string{insert(`{"_id": 1}`)}, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"_id": 0, "d": {"$dateFromString": {"dateString": "2017-07-14T12:02:44b", "format": "%Y-%m-%dT%H:%M:%S%z"}}}}]}`, "cursor.firstBatch.0", `{"d":{"$date":"2017-07-14T10:02:44Z"}}`},

		// What a pipeline reads of keys has null for what is missing, as in find.
		{[]string{insert(`{"_id": 1, "b": 1}, {"_id": 2, "a": null, "b": 1}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"a": 1, "b": 1}}, {"$group": {"_id": {"a": "$a", "b": "$b"}}}]}`, "cursor.firstBatch", `[{"_id":{"a":null,"b":1}}]`},
		{[]string{insert(`{"_id": 1, "b": 1}, {"_id": 2, "a": null, "b": 1}`), create(`{"key": {"b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$sort": {"b": 1}}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]}`, "cursor.firstBatch", `[{"_id":null,"n":2}]`},
		{[]string{insert(`{"_id": 1, "a": 1}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 1}}, {"$project": {"_id": 0, "b": 1}}]}`, "cursor.firstBatch", `[{"b":null}]`},
		{[]string{insert(`{"_id": 1, "a": 1, "c": 5}`), create(`{"key": {"a": 1, "b": 1}, "name": "x"}`)},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"a": 1}}, {"$addFields": {"d": "$c"}}, {"$project": {"_id": 0, "b": 1, "d": 1}}]}`, "cursor.firstBatch", `[{"d":5}]`},

		// What only later servers sort by, and what a validator cannot run.
		{nil, `{"find": "c", "sort": {"a": {"$meta": "searchScore"}}}`, "", `31138: Illegal $meta sort`},
		{nil, `{"create": "c", "validator": {"$expr": {"$_internalJsEmit": {"eval": "function() {}", "this": {}}}}}`, "", `4660801: $_internalJsEmit cannot be used inside a validator.`},
		{nil, `{"find": "c", "readConcern": {"afterOpTime": {"ts": {"$timestamp": {"t": 1, "i": 0}}, "t": 0}}}`, "", `123: node needs to be a replica set member to use read concern`},
		{nil, `{"getMore": {"$numberLong": "5"}, "collection": "\u0000"}`, "", `73: Invalid namespace specified`},

		// $collStats in a view tells of what the view is on, be that a view.
		{[]string{`{"create": "v", "viewOn": "c", "pipeline": [{"$collStats": {"latencyStats": {}}}]}`, `{"create": "w", "viewOn": "v", "pipeline": [{"$collStats": {"latencyStats": {}}}, {"$project": {"ns": 1}}]}`},
			`{"aggregate": "w", "cursor": {}, "pipeline": []}`, "cursor.firstBatch.0.ns", `"t.v"`},

		{[]string{insert(`{"_id": 1}, {"_id": 2, "a": 1}, {"_id": 3, "b": 1}`), create(`{"key": {"a": "hashed", "b": 1}, "name": "x", "sparse": true}`)}, `{"count": "c", "query": {"a": null}}`, "n", `2`},
		{[]string{insert(`{"_id": 1}, {"_id": 2, "a": 1}`), create(`{"key": {"a": "hashed"}, "name": "x", "sparse": true}`)}, `{"count": "c", "query": {"a": {"$in": [null, 1]}}}`, "n", `2`},
		{[]string{insert(`{"_id": 1}, {"_id": 2, "a": 1}`), create(`{"key": {"a": "hashed"}, "name": "x", "sparse": true}`)}, `{"count": "c", "query": {"$expr": {"$eq": ["$a", null]}}}`, "n", `0`},

		// An element without the field sorts as null, whether a sparse index has its key or not.
		{[]string{insert(`{"_id": 1, "b": [[3], {"a": "x"}]}, {"_id": 2, "b": {"a": 1}}`), create(`{"key": {"b.a": 1}, "name": "x", "sparse": true}`)},
			`{"find": "c", "filter": {"b.a": {"$exists": true}}, "sort": {"b.a": 1}}`, "cursor.firstBatch.0._id", `1`},

		// Views.
		{[]string{`{"create": "c"}`, `{"create": "fr", "viewOn": "c", "pipeline": [], "collation": {"locale": "fr"}}`},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$lookup": {"from": "fr", "localField": "a", "foreignField": "b", "as": "j"}}]}`, "", `167: Cannot override a view's default collation`},
		{[]string{`{"create": "c"}`, `{"create": "fr", "viewOn": "c", "pipeline": [], "collation": {"locale": "fr"}}`},
			`{"create": "v", "viewOn": "c", "pipeline": [{"$unionWith": "fr"}]}`, "", `167: View t.v has conflicting collation with view t.fr`},
		{[]string{`{"create": "v", "viewOn": "fr", "pipeline": [{"$unionWith": "fr"}]}`},
			`{"create": "fr", "viewOn": "c", "pipeline": [], "collation": {"locale": "fr"}}`, "", `167: View t.fr has conflicting collation with view t.v`},

		// What the server tells of itself.
		{[]string{insert(`{"_id": 1}, {"_id": 2}`), `{"find": "c", "batchSize": 1}`},
			`{"aggregate": 1, "cursor": {}, "$db": "admin", "pipeline": [{"$currentOp": {"idleCursors": true, "localOps": true}}, {"$match": {"type": "idleCursor"}}]}`,
			"cursor.firstBatch.0.cursor.originatingCommand.batchSize", `1`},
		{[]string{`{"startSession": 1}`}, `{"aggregate": 1, "cursor": {}, "pipeline": [{"$listLocalSessions": {"users": [{"user": "", "db": ""}]}}], "$db": "admin"}`,
			"cursor.firstBatch.0._id.uid", `{"$binary":{"base64":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","subType":"00"}}`},
		{[]string{`{"fsync": 1, "lock": true, "$db": "admin"}`}, `{"currentOp": 1, "$db": "admin"}`, "fsyncLock", `true`},
		{[]string{`{"fsyncUnlock": 1, "$db": "admin"}`}, `{"currentOp": 1, "$db": "admin"}`, "fsyncLock", ``},
		{[]string{`{"collMod": "nosuch"}`}, `{"serverStatus": 1}`, "metrics.commands.collMod.failed", `1`},
		{nil, `{"serverStatus": 1}`, "metrics.commands.validate.total", `0`}, // nobody has called it

		{nil, `{"_hashBSONElement": {"$numberDouble": "9223372036854775808"}, "seed": 1}`, "out", `5744114172487291558`},
		{nil, `{"_hashBSONElement": {"a": 1, "b": 2}, "seed": 1}`, "out", `-7076810813311352857`},
		{nil, `{"_hashBSONElement": {"$numberLong": "9223372036854775807"}, "seed": 1}`, "out", `1136124329541638701`},

		{[]string{insert(`{"_id": 1, "g": {"type": "Point", "coordinates": [0, 0]}}`), create(`{"key": {"g": "2dsphere"}, "name": "g"}, {"key": {"g": "2dsphere", "a": 1}, "name": "ga"}`),
			`{"aggregate": "c", "cursor": {}, "hint": "ga", "pipeline": [{"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "d", "key": "g"}}]}`},
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$indexStats": {}}, {"$match": {"name": "ga"}}]}`, "cursor.firstBatch.0.accesses.ops", `1`},
		{[]string{insert(`{"_id": 1}`)}, `{"explain": {"aggregate": "c", "cursor": {}, "pipeline": [{"$out": "x"}]}, "verbosity": "queryPlanner"}`, "stages.1.$out", `{"coll":"x","db":"t"}`},
		{nil, `{"explain": {"find": "c", "filter": {"a": 1}, "collation": {"locale": "fr", "strength": 1}}}`, "queryPlanner.collation.strength", `1`},
		{[]string{create(`{"key": {"$**": 1}, "name": "w", "collation": {"locale": "fr"}}`)}, `{"explain": {"find": "c", "filter": {"e": 5}, "projection": {"_id": 0, "e": 1}, "collation": {"locale": "fr"}}}`, "queryPlanner.winningPlan.stage", `"PROJECTION_COVERED"`},
		{[]string{create(`{"key": {"$**": 1}, "name": "w", "collation": {"locale": "fr"}}`)}, `{"explain": {"find": "c", "filter": {"e": "5"}, "projection": {"_id": 0, "e": 1}, "collation": {"locale": "fr"}}}`, "queryPlanner.winningPlan.stage", `"PROJECTION_SIMPLE"`},
		{[]string{insert(`{"_id": 1}`), `{"planCacheSetFilter": "c", "query": {"a": 1}, "collation": {"locale": "fr"}, "indexes": ["_id_"]}`}, `{"planCacheListFilters": "c"}`, "filters.0.collation.strength", `3`},
		{[]string{create(`{"key": {"a": 1}, "name": "a"}`)}, `{"explain": {"find": "c", "filter": {"a": {"$regularExpression": {"pattern": "^\\\\\\|", "options": ""}}}}, "verbosity": "queryPlanner"}`,
			"queryPlanner.winningPlan.inputStage.indexBounds.a.0", `"[\"\", {})"`},
		{[]string{create(`{"key": {"a": 1}, "name": "a"}`)}, `{"explain": {"find": "c", "filter": {"a": {"$regularExpression": {"pattern": "^x\\|", "options": ""}}}}, "verbosity": "queryPlanner"}`,
			"queryPlanner.winningPlan.inputStage.indexBounds.a.0", `"[\"x|\", \"x}\")"`},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ask := func(cmd string) (reply string) {
			db := "t"
			if strings.Contains(cmd, `"$db": "admin"`) {
				cmd, db = strings.Replace(cmd, `, "$db": "admin"`, "", 1), "admin"
			}
			doc := askText(t, c, db, cmd)
			if tt.path == "" {
				return errorOf(doc)
			}
			return doc.Lookup(strings.Split(tt.path, ".")...).String()
		}
		for _, cmd := range tt.before {
			ask(cmd)
		}
		got := ask(tt.cmd)
		if got != tt.want && !(tt.path == "" && got != "ok" && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s\n%s is %s\nwant %s", tt.cmd, tt.path, got, tt.want)
		}
	}
}

// TestViewsFromAbove makes views from the top down, each on one that is not there yet: how many lie
// upon each other counts, whichever is made last.
func TestViewsFromAbove(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	view := func(n int, stages string) string {
		return errorOf(askText(t, c, "t", fmt.Sprintf(`{"create": "v%d", "viewOn": "v%d", "pipeline": [%s]}`, n, n+1, stages)))
	}
	for n := range 20 {
		next := fmt.Sprintf(`{"$unionWith": "v%d"}, {"$facet": {"x": [{"$unionWith": "v%d"}]}}`, n+1, n+1)
		if got := view(n, next); got != "ok" {
			t.Fatalf("view %d: %s", n, got)
		}
	}
	if got := view(20, ""); !strings.HasPrefix(got, "165: View depth limit exceeded") {
		t.Errorf("one view too many: %s", got)
	}
	ok(t, askText(t, c, "t", `{"drop": "v10"}`))
	if got := view(20, ""); got != "ok" {
		t.Errorf("a view of those below a gap: %s", got)
	}
}

// TestRenamedTemporary checks that a temporary collection is none by another name, unless it is to
// stay one.
func TestRenamedTemporary(t *testing.T) {
	for _, topology := range []mongotest.Option{mongotest.ReplicaSet(1), mongotest.Sharded(2, 1)} {
		d := mongotest.Start(t, topology, mongotest.Version("5.0"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for _, tt := range []struct{ stay, want string }{{`false`, `{}`}, {`true`, `{"temp":true}`}} {
			ok(t, askText(t, c, "t", `{"create": "c", "temp": true}`))
			ok(t, askText(t, c, "admin", `{"renameCollection": "t.c", "to": "t.d", "dropTarget": true, "stayTemp": `+tt.stay+`}`))
			reply := ok(t, askText(t, c, "t", `{"listCollections": 1, "filter": {"name": "d"}}`))
			if got := reply.Lookup("cursor", "firstBatch", "0", "options").String(); got != tt.want {
				t.Errorf("stayTemp %s: options %s, want %s", tt.stay, got, tt.want)
			}
		}
	}
}

// TestViewsInManyWays defines views that lie on each other in as many ways as there are: each level
// has two, and both read both of the next. The check of a definition looks at each view, not at
// each way.
func TestViewsInManyWays(t *testing.T) {
	const levels = 19
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	define := func(level int, side string) string {
		return fmt.Sprintf(`{"create": "v%d%s", "viewOn": "v%da", "pipeline": [{"$unionWith": "v%db"}]}`, level, side, level+1, level+1)
	}
	for level := levels; level > 0; level-- {
		for _, side := range []string{"a", "b"} {
			ok(t, askText(t, c, "t", define(level, side)))
		}
	}
	// Those that are read are no more than a pipeline may come to, and it is known before they are.
	for _, tt := range []struct{ command, want string }{
		{`{"aggregate": "v10a", "cursor": {}, "pipeline": [{"$limit": 1}, {"$lookup": {"from": "v10a", "as": "j", "pipeline": [{"$limit": 1}]}}]}`, `ok`},
		{`{"aggregate": "v10a", "cursor": {}, "pipeline": [{"$unionWith": {"coll": "none", "pipeline": [{"$unionWith": {"coll": "none", "pipeline": [{"$unionWith": "v1a"}]}}]}}]}`, `232: Maximum number of nested sub-pipelines exceeded. Limit is 20`},
		{`{"create": "top", "viewOn": "v1a", "pipeline": [{"$unionWith": "v1b"}]}`, `ok`},
		{`{"create": "over", "viewOn": "top", "pipeline": []}`, `165: View depth limit exceeded; maximum depth is 20`},
		{`{"create": "over", "viewOn": "v5a", "pipeline": [{"$unionWith": "top"}]}`, `165: View depth limit exceeded; maximum depth is 20`},
	} {
		if got := errorOf(askText(t, c, "t", tt.command)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}
