package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// What stages, queries and collections do since server 8.1, as DocumentDB's tests saw an 8.2 do.
func TestSuiteSince81(t *testing.T) {
	const since = `{"$date": "2024-01-01T00:00:00Z"}`
	deep := func(n int) string { return strings.TrimSuffix(strings.Repeat("a.", n), ".") }
	agg := func(stages string) string {
		return `{"aggregate": "c", "pipeline": [` + stages + `], "cursor": {}, "$db": "t"}`
	}
	first := func(v string) map[string]string { return map[string]string{"cursor.firstBatch.0.r": v} }
	near := func(fields string) string {
		return `{"$geoNear": {"near": {"coordinates": [0, 0]}, "spherical": true` + fields + `}}`
	}
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "v": {"$minKey": 1}, "a": {"x": 1}, "p": {"type": "Point", "coordinates": [0, 0]}, "n": [10, 30, 50]}], "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"p": "2dsphere"}, "name": "p"}], "$db": "t"}`},

		// What the engine that groups hands to other stages.
		{cmd: agg(`{"$group": {"_id": null, "r": {"$first": "$v"}}}`), want: first(`{"$minKey":1}`)},
		{cmd: agg(`{"$group": {"_id": null, "r": {"$first": "$v"}}}, {"$project": {"r": 1}}`), want: first(`{"":{"$minKey":1}}`)},
		{cmd: agg(`{"$group": {"_id": "$v"}}, {"$project": {"r": {"$type": "$_id"}}}`), want: first(`"object"`)},
		{cmd: agg(`{"$group": {"_id": null, "r": {"$addToSet": {"$maxKey": 1}}}}, {"$limit": 1}`), want: first(`[{"":{"$maxKey":1}}]`)},
		{cmd: agg(`{"$group": {"_id": null, "r": {"$last": {"$code": "f"}}}}, {"$limit": 1}`), want: first(`"f"`)},
		{cmd: agg(`{"$limit": 1}, {"$group": {"_id": null, "r": {"$first": "$v"}}}, {"$limit": 1}`), want: first(`{"$minKey":1}`)},
		{cmd: agg(`{"$bucket": {"groupBy": "$_id", "boundaries": [5, 6], "default": {"$code": "f"}}}, {"$project": {"r": "$_id"}}`), want: first(`"f"`)},

		// Functions of doubles, and sums that doubles cannot hold.
		{cmd: agg(`{"$project": {"r": {"$acosh": 2}}}`), want: first("1.3169578969248166")},
		{cmd: agg(`{"$project": {"r": {"$atanh": 0.5}}}`), want: first("0.5493061443340548")},
		{cmd: agg(`{"$project": {"r": {"$asinh": 1}}}`), want: first("0.881373587019543")},
		{cmd: agg(`{"$project": {"r": [{"$numberLong": "9223372036854775807"}, {"$numberLong": "-9223372036854775808"}]}}, {"$unwind": "$r"}, {"$group": {"_id": null, "r": {"$avg": "$r"}}}`), want: first("-0.5")},

		{cmd: agg(`{"$set": {"a": {}}}, {"$project": {"r": "$a"}}`), want: first(`{}`)},
		{cmd: agg(`{"$set": {"a": {"y": 2, "z": {}}}}, {"$project": {"r": "$a"}}`), want: first(`{"x":1,"y":2,"z":{}}`)},
		{cmd: agg(`{"$sort": {"a": 1, "b": 1, "a": -1}}`), code: 7472500},
		{cmd: agg(`{"$sort": {` + manyKeys(32) + `, "m": {"$meta": "randVal"}}}`)},
		{cmd: agg(`{"$sort": {` + manyKeys(33) + `}}`), code: 13103},
		{cmd: agg(`{"$unwind": "$a\u0000b"}`), code: 16419},
		{cmd: agg(`{"$facet": {"f": [{"$querySettings": {}}]}}`), code: 40600},
		{cmd: agg(`{"$planCacheStats": {"allHosts": true, "allHosts": false}}`), code: 9},

		// $geoNear: what may stand before it, places without a type, and long paths.
		{cmd: agg(near(`, "distanceField": "r"`)), want: first("0.0")},
		{cmd: agg(`{"$match": {}}, {"$skip": 0}, ` + near(`, "distanceField": "r"`)), want: first("0.0")},
		{cmd: agg(`{"$match": {"_id": 1}}, ` + near(`, "distanceField": "r"`)), code: 40603},
		{cmd: agg(near(`, "distanceField": "` + deep(200) + `"`)), code: 5984700},
		{cmd: agg(near(`, "distanceField": "` + deep(199) + `"`))},

		// A hint that a $near cannot use.
		{cmd: `{"find": "c", "filter": {"p": {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}, "hint": {"_id": 1}, "$db": "t"}`, code: 291},
		{cmd: `{"explain": {"find": "c", "filter": {"p": {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}, "hint": "_id_"}, "$db": "t"}`, code: 291},
		{cmd: `{"find": "c", "filter": {"p": {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}, "hint": "p", "$db": "t"}`},

		// Which element a positional projection shows does not depend on the order of conditions.
		{cmd: `{"find": "c", "filter": {"$and": [{"n": {"$gt": 10}}, {"n": {"$lt": 50}}]}, "projection": {"_id": 0, "n.$": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.n": "[30]"}},
		{cmd: `{"find": "c", "filter": {"n": {"$lt": 50, "$gt": 10}}, "projection": {"_id": 0, "n.$": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.n": "[30]"}},
		{cmd: `{"find": "c", "filter": {"$jsonSchema": {"patternProperties": {"[invalid": {}}}}, "$db": "t"}`, code: 2},

		// An update that leaves a decimal equal leaves it as it is.
		{cmd: `{"insert": "dec", "documents": [{"_id": 1, "v": {"$numberDecimal": "-0"}, "w": {"$numberDecimal": "-0"}}], "$db": "t"}`},
		{cmd: `{"update": "dec", "updates": [{"q": {}, "u": {"$inc": {"v": {"$numberDecimal": "0"}}, "$mul": {"w": {"$numberDecimal": "-1"}}}}], "$db": "t"}`, want: map[string]string{"nModified": "0"}},
		{cmd: `{"find": "dec", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.v": `{"$numberDecimal":"-0"}`, "cursor.firstBatch.0.w": `{"$numberDecimal":"-0"}`}},

		// Partitions of $densify that a collation takes for one: what is made belongs to what comes
		// next.
		{cmd: `{"insert": "part", "documents": [{"g": "apple", "x": 0}, {"g": "Apple", "x": 10}], "$db": "t"}`},
		{cmd: `{"aggregate": "part", "pipeline": [{"$densify": {"field": "x", "partitionByFields": ["g"], "range": {"step": 5, "bounds": "partition"}}}, {"$project": {"_id": 0}}], "collation": {"locale": "en", "strength": 1}, "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch": `[{"g":"apple","x":0},{"g":"Apple","x":5},{"g":"Apple","x":10}]`}},

		// Indexes: bounds of planes as they were given and as listIndexes has them, and those of
		// buckets.
		{cmd: `{"createIndexes": "flat", "indexes": [{"key": {"l": "2d"}, "name": "l", "min": -10, "max": 10}], "$db": "t"}`},
		{cmd: `{"aggregate": "flat", "pipeline": [{"$indexStats": {}}, {"$match": {"name": "l"}}], "cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.spec.min": "-10"}},
		{cmd: `{"listIndexes": "flat", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.1.min": "-10.0", "cursor.firstBatch.1.max": "10.0"}},
		{cmd: `{"create": "ts", "timeseries": {"timeField": "t", "metaField": "m"}, "$db": "t"}`},
		{cmd: `{"listIndexes": "system.buckets.ts", "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[]`}},
		{cmd: `{"dropIndexes": "system.buckets.ts", "index": "*", "$db": "t"}`, want: map[string]string{"nIndexesWas": "1"}},

		// The catalogue.
		{cmd: `{"aggregate": "flat", "pipeline": [{"$listCatalog": {}}], "cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.name": `"flat"`,
			"cursor.firstBatch.0.type": `"collection"`, "cursor.firstBatch.0.md.ns": `"t.flat"`, "cursor.firstBatch.0.md.indexes.1.spec.min": "-10", "cursor.firstBatch.1": ""}},
		{cmd: `{"aggregate": "ts", "pipeline": [{"$listCatalog": {}}], "cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.type": `"timeseries"`,
			"cursor.firstBatch.0.viewOn": `"system.buckets.ts"`, "cursor.firstBatch.1.name": `"system.buckets.ts"`, "cursor.firstBatch.1.md.options.clusteredIndex": "true"}},
		{cmd: `{"create": "view", "viewOn": "c", "pipeline": [], "$db": "t"}`},
		{cmd: `{"aggregate": 1, "pipeline": [{"$listCatalog": {}}, {"$match": {"db": "t", "type": "view"}}], "cursor": {}, "$db": "admin"}`, want: map[string]string{"cursor.firstBatch.0.viewOn": `"c"`}},
		{cmd: `{"aggregate": 1, "pipeline": [{"$listCatalog": {}}], "cursor": {}, "$db": "t"}`, code: 73},
		{cmd: agg(`{"$listCatalog": {"x": 1}}`), code: 9},
		{cmd: agg(`{"$limit": 1}, {"$listCatalog": {}}`), code: 40602},
		{cmd: agg(`{"$facet": {"f": [{"$listCatalog": {}}]}}`), code: 40600},

		{cmd: `{"compact": "system.buckets.ts", "$db": "t"}`, want: map[string]string{"bytesFreed": "0"}},

		// A getMore has the comment of the command whose cursor it is.
		{cmd: `{"profile": 2, "$db": "t"}`},
		{cmd: `{"listIndexes": "flat", "cursor": {"batchSize": 1}, "comment": "note", "$db": "t"}`},
		{cmd: `{"getMore": CURSOR, "collection": "flat", "$db": "t"}`},
		{cmd: `{"profile": 0, "$db": "t"}`},
		{cmd: `{"count": "system.profile", "query": {"command.getMore": {"$exists": true}, "command.comment": "note"}, "$db": "t"}`, want: map[string]string{"n": "1"}},
		{cmd: agg(near(`, "includeLocs": "` + deep(200) + `"`)), code: 5984700},
		{cmd: agg(`{"$match": {"p": {"$geoNear": {"near": [0, 0]}}}}`), code: 5626500},
		{cmd: `{"find": "c", "filter": {"p": {"$near": {"$geometry": {"coordinates": [0, 0]}}}}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0._id": "1"}},
		{cmd: agg(`{"$rankFusion": {"input": {"pipelines": {"p": [{"$sort": {"a": 1}}, ` + near(`, "distanceField": "d"`) + `]}}}}`), code: 9191103},

		// The pipelines of $merge are those of updates: nobody looks at them before there is one.
		{cmd: `{"create": "e", "$db": "t"}`},
		{cmd: `{"aggregate": "e", "pipeline": [{"$merge": {"into": "to", "whenMatched": [{"$match": {}}]}}], "cursor": {}, "$db": "t"}`},
		{cmd: `{"insert": "to", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: agg(`{"$merge": {"into": "to", "whenMatched": [{"$match": {}}]}}`), code: 72},
		{cmd: agg(`{"$merge": {"into": "to", "let": {"x": "$none"}, "whenMatched": [{"$set": {"r": "$$x"}}]}}`), code: 17276},
		{cmd: agg(`{"$merge": {"into": "to", "let": {"x": "$none", "y": "$a"}, "whenMatched": [{"$set": {"r": "$$y"}}]}}`)},
		{cmd: `{"find": "to", "$db": "t"}`, want: first(`{"x":1}`)},

		// Positional projections of alternatives that are one list.
		{cmd: `{"find": "c", "filter": {"$or": [{"n": 20}, {"n": 30}]}, "projection": {"n.$": 1}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.n": "[30]"}},
		{cmd: `{"find": "c", "filter": {"$or": [{"n": 30}, {"_id": 1}]}, "projection": {"n.$": 1}, "$db": "t"}`, code: 51246},
		{cmd: `{"find": "c", "filter": {"$nor": [{"$text": {"$search": "x"}}]}, "$db": "t"}`, code: 2},
		{cmd: `{"aggregate": "c", "pipeline": [], "cursor": {}, "readConcern": {"level": "snapshot", "atClusterTime": {"$timestamp": {"t": 0, "i": 1}}}, "$db": "t"}`, code: 72},

		// Time series, which are views of their buckets.
		{cmd: `{"create": "s", "timeseries": {"timeField": "t", "metaField": "m", "granularity": "seconds"}, "$db": "t"}`},
		{cmd: `{"insert": "s", "documents": [{"t": ` + since + `, "m": 1}, {"t": ` + since + `, "m": 1}, {"t": ` + since + `, "m": 2}], "$db": "t"}`},
		{cmd: `{"aggregate": "s", "pipeline": [{"$collStats": {"count": {}, "storageStats": {}}}], "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.count": "2", "cursor.firstBatch.0.storageStats.count": "",
				"cursor.firstBatch.0.storageStats.timeseries.bucketCount": "2",
				"cursor.firstBatch.0.storageStats.timeseries.bucketsNs":   `"t.system.buckets.s"`}},
		{cmd: `{"collStats": "s", "$db": "t"}`, want: map[string]string{"count": "", "timeseries.bucketCount": "2"}},
		{cmd: `{"aggregate": "s", "pipeline": [{"$planCacheStats": {}}], "cursor": {}, "$db": "t"}`, code: 40602},
		{cmd: `{"aggregate": "system.buckets.s", "pipeline": [{"$rankFusion": {"input": {"pipelines": {"p": [{"$sort": {"a": 1}}]}}}}], "cursor": {}, "$db": "t"}`, code: 10557301},
		{cmd: agg(`{"$merge": {"into": "s"}}`), code: 166},
		{cmd: `{"find": "s", "tailable": true, "$db": "t"}`, code: 168},
		{cmd: `{"find": "s", "filter": {"m": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}, "$db": "t"}`, code: 5626500},
		{cmd: `{"collMod": "s", "timeseries": {"granularity": "hours"}, "$db": "t"}`},
		{cmd: `{"create": "s1", "timeseries": {"timeField": ""}, "$db": "t"}`},
		{cmd: `{"create": "s2", "timeseries": {"timeField": "a\u0000b"}, "$db": "t"}`, code: 2},
		{cmd: `{"create": "s2", "timeseries": {"timeField": "t", "metaField": "a\u0000b"}, "$db": "t"}`, code: 2},
		{cmd: agg(`{"$project": {"t": ` + since + `}}, {"$out": {"db": "t", "coll": "s3", "timeseries": {"timeField": "t", "metaField": "t"}}}`)},
		{cmd: agg(`{"$project": {"t": ` + since + `}}, {"$out": {"db": "t", "coll": "s4", "timeseries": {"timeField": "t", "metaField": null}}}`)},
		{cmd: `{"listCollections": 1, "filter": {"name": "s4"}, "$db": "t"}`, want: map[string]string{
			"cursor.firstBatch.0.options.timeseries": `{"timeField":"t","granularity":"seconds","bucketMaxSpanSeconds":3600}`}},

		// Options of collections and indexes.
		{cmd: `{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "max": 1, "$db": "t"}`, code: 6049204},
		{cmd: `{"create": "c", "changeStreamPreAndPostImages": {"enabled": false}, "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"q": 1}, "name": "q", "prepareUnique": true}], "$db": "t"}`},
		{cmd: `{"collMod": "c", "index": {"name": "q", "prepareUnique": true, "hidden": true}, "$db": "t"}`,
			want: map[string]string{"hidden_new": "true", "prepareUnique_new": ""}},
		{cmd: `{"collMod": "c", "index": {"name": "p", "prepareUnique": true, "hidden": true}, "$db": "t"}`, code: 72},

		// A document that is larger than its capped collection is alone there.
		{cmd: `{"create": "l", "capped": true, "size": 4096, "$db": "t"}`},
		{cmd: `{"insert": "l", "documents": [{"_id": 0}, {"_id": 1, "s": "` + strings.Repeat("x", 9000) + `"}], "$db": "t"}`},
		{cmd: `{"count": "l", "$db": "t"}`, want: map[string]string{"n": "1"}},
		{cmd: `{"insert": "l", "documents": [{"_id": 2}], "$db": "t"}`},
		{cmd: `{"find": "l", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "2", "cursor.firstBatch.1": ""}},
	}, mongotest.Version("8.2"))
}

// manyKeys are the fields of a sort.
func manyKeys(n int) string {
	var list []string
	for i := range n {
		list = append(list, `"k`+strings.Repeat("k", i)+`": 1`)
	}
	return strings.Join(list, ", ")
}

// A view may have 16 million bytes of stages, together with the views that it lies on.
func TestViewSizes(t *testing.T) {
	view := func(name, on string, n int) string {
		return `{"create": "` + name + `", "viewOn": "` + on + `", "pipeline": [{"$match": {"x": "` + strings.Repeat("x", n-26) + `"}}], "$db": "t"}`
	}
	mendSteps(t, []mendStep{
		{cmd: view("v", "c", 16_000_001), code: 195},
		{cmd: view("v", "c", 15_999_900)},
		{cmd: view("w", "v", 100)},
		{cmd: view("w2", "v", 101), code: 195},
	})
}

// What commands do since server 8.1 on a member of a replica set, as DocumentDB's tests saw an 8.2
// do.
func TestMemberSince81(t *testing.T) {
	const lsid = `"lsid": {"id": {"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false, "startTransaction": true`
	bulk := func(ops, more string) string {
		return `{"bulkWrite": 1, "ops": [` + ops + `], "nsInfo": [{"ns": "t.c"}]` + more + `, "$db": "admin"}`
	}
	stream := func(spec, more string) string {
		return `{"aggregate": "c", "pipeline": [{"$changeStream": {` + spec + `}}], "cursor": {}` + more + `, "$db": "t"}`
	}
	const strict = `, "apiVersion": "1", "apiStrict": true`
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: bulk(`{"insert": 0, "document": {"_id": 2}}`, `, "errorsOnly": 1`), code: 14},
		{cmd: bulk(`{"insert": 0, "document": {"_id": 2}}`, `, "errorsOnly": null`)},
		{cmd: bulk(`{"insert": null, "document": {}}`, ""), code: 40414},
		{cmd: bulk(`{"replace": 0, "document": {}}`, ""), code: 40415},
		{cmd: bulk(`{"update": 0, "filter": {}, "updateMods": {}, "multi": true, "sort": {"a": 1}}`, ""), code: 9},
		{cmd: `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": true, "sort": {"a": 1}}], "$db": "t"}`, code: 9},
		{cmd: `{"findAndModify": "c", "remove": true, "hint": null, "$db": "t"}`, code: 9},
		{cmd: `{"dropIndexes": "c", "index": null, "$db": "t"}`, code: 14},
		{cmd: `{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "$db": "t"}`},
		{cmd: `{"createIndexes": "k", "indexes": [{"key": {"a": 1}, "name": "a", "clustered": true}], "$db": "t"}`, code: 67},
		{cmd: `{"compactStructuredEncryptionData": "c", "compactionTokens": {}, "more": 1, "$db": "t"}`, code: 40415},
		{cmd: `{"create": "v", "viewOn": "c", "$db": "t"}`},
		{cmd: `{"compactStructuredEncryptionData": "v", "compactionTokens": {}, "$db": "t"}`, code: 166},

		// Defaults of concerns: what is set stays, and must be what the set knows.
		{cmd: `{"getDefaultRWConcern": 1, "inMemory": null, "$db": "admin"}`, want: map[string]string{
			"defaultReadConcernSource": `"implicit"`, "defaultWriteConcernSource": `"implicit"`, "updateOpTime": ""}},
		{cmd: `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": "none"}, "$db": "admin"}`, code: 79},
		{cmd: `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": null}, "$db": "admin"}`, code: 79},
		{cmd: `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"wtimeout": 1}, "$db": "admin"}`, code: 2},
		{cmd: `{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "majority"}, "defaultWriteConcern": {"w": 1}, "$db": "admin"}`},
		{cmd: `{"setDefaultRWConcern": 1, "defaultWriteConcern": {}, "$db": "admin"}`, code: 20},
		{cmd: `{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}, "writeConcern": {"w": "none"}, "$db": "admin"}`, code: 79},
		{cmd: `{"setDefaultRWConcern": 1, "defaultReadConcern": {}, "$db": "admin"}`},
		{cmd: `{"getDefaultRWConcern": 1, "$db": "admin"}`, want: map[string]string{
			"defaultReadConcernSource": `"implicit"`, "defaultReadConcern.level": `"local"`, "defaultWriteConcernSource": `"global"`}},
		{cmd: `{"setClusterParameter": {"changeStreams": {"expireAfterSeconds": 10}}, "writeConcern": {"w": 1}, "$db": "admin"}`, code: 72},

		{cmd: `{"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": -1}}, "$db": "admin"}`, code: 2},
		{cmd: `{"setClusterParameter": {"fleDisableSubstringPreviewParameterLimits": {"shouldOverride": 1}}, "$db": "admin"}`, code: 14},
		{cmd: `{"getClusterParameter": ["defaultMaxTimeMS", "fleDisableSubstringPreviewParameterLimits"], "$db": "admin"}`,
			want: map[string]string{"clusterParameters": `[{"_id":"defaultMaxTimeMS","readOperations":0},{"_id":"fleDisableSubstringPreviewParameterLimits","shouldOverride":false}]`}},

		// Values and names that commands look at, or do not.
		{cmd: `{"dbHash": "x", "$db": "t"}`, want: map[string]string{"ok": "1.0"}},
		{cmd: `{"dbHash": 1, "collections": [1], "$db": "t"}`, code: 2},
		{cmd: `{"create": "ts", "timeseries": {"timeField": "t"}, "$db": "u"}`},
		{cmd: `{"dbHash": 1, "$db": "u"}`, want: map[string]string{
			"collections": `{"system.buckets.ts":"d41d8cd98f00b204e9800998ecf8427e"}`}},
		{cmd: `{"dataSize": null, "$db": "t"}`, code: 40414},
		{cmd: `{"collMod": "oplog.rs", "cappedSize": 100000, "$db": "local"}`, code: 72},
		{cmd: `{"collMod": "oplog.rs", "cappedMax": 100000, "$db": "local"}`, code: 72},
		{cmd: `{"collMod": "ts", "timeseries": {}, "cappedSize": 100000, "$db": "u"}`},
		{cmd: `{"collMod": "ts", "cappedMax": 1, "timeseries": {}, "$db": "u"}`},
		{cmd: `{"collMod": "ts", "cappedMax": 1, "$db": "u"}`, code: 72},
		{cmd: `{"authenticate": 1, "mechanism": "SCRAM-SHA-256", "user": "x", "$db": "admin"}`, code: 18},
		{cmd: `{"create": "e", "encryptedFields": {"fields": [null, {"path": "s", "bsonType": "string", "keyId": {"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}}, null]}, "$db": "t"}`},
		{cmd: `{"compactStructuredEncryptionData": "e", "compactionTokens": null, "$db": "t"}`, code: 40414},
		{cmd: `{"compactStructuredEncryptionData": "e", "compactionTokens": {"s": null}, "$db": "t"}`},
		{cmd: `{"compactStructuredEncryptionData": "e", "compactionTokens": {"s": {"nested": 1}}, "$db": "t"}`},
		{cmd: `{"findAndModify": "c", "query": {"_id": 1}, "sort": {"a": "b"}, "update": {"$set": {"b": 1}}, "$db": "t"}`},
		{cmd: `{"findAndModify": "c", "query": {"_id": {"$gt": 0}}, "sort": {"a": "b"}, "update": {"$set": {"b": 1}}, "$db": "t"}`, code: 15974},
		{cmd: `{"getParameter": 1, "logComponentVerbosity": 1, "$db": "admin"}`,
			want: map[string]string{"logComponentVerbosity.network.asio.verbosity": "-1"}},

		// The measurements of one insert come in the order of their times.
		{cmd: `{"insert": "ts", "documents": [{"t": {"$date": "2024-01-01T00:05:00Z"}, "v": 5}, {"t": {"$date": "2024-01-01T00:01:00Z"}, "v": 1}, {"t": {"$date": "2024-01-01T00:03:00Z"}, "v": 3}], "$db": "u"}`,
			want: map[string]string{"n": "3"}},
		{cmd: `{"insert": "ts", "documents": [{"t": {"$date": "2024-01-01T00:02:00Z"}, "v": 2}], "$db": "u"}`},
		{cmd: `{"find": "ts", "projection": {"_id": 0, "v": 1}, "$db": "u"}`,
			want: map[string]string{"cursor.firstBatch": `[{"v":1},{"v":3},{"v":5},{"v":2}]`}},
		{cmd: `{"insert": "ts", "documents": [{"t": {"$date": "2024-01-01T00:09:00Z"}, "v": 9}, {"v": 0}, {"t": {"$date": "2024-01-01T00:08:00Z"}, "v": 8}], "$db": "u"}`,
			want: map[string]string{"n": "1", "writeErrors.0.index": "1"}},

		// Transactions.
		{cmd: `{"getParameter": 1, "quiet": 1, ` + lsid + `, "$db": "t"}`, code: 263},
		{cmd: `{"getParameter": 1, "quiet": 1, "$db": "t"}`, code: 13},

		// Change streams.
		{cmd: stream(`"allChangesForCluster": null`, ""), code: 14},
		{cmd: stream(`"showExpandedEvents": null`, ""), code: 14},
		{cmd: stream(`"showExpandedEvents": false`, strict), code: 323},
		{cmd: stream(`"fullDocument": "updateLookup"`, strict)},
		{cmd: `{"aggregate": "c", "pipeline": [{"$changeStream": {}}, {"$fill": {"output": {"x": {"value": 0}}}}], "cursor": {}, "$db": "t"}`},
		{cmd: `{"aggregate": "c", "pipeline": [{"$changeStream": {}}, {"$fill": {"output": {"x": {"method": "locf"}}}}], "cursor": {}, "$db": "t"}`, code: 20},
		{cmd: stream(`"resumeAfter": {"_data": "00"}`, ""), code: 50811},
		{cmd: stream(`"resumeAfter": {"_data": "46"}`, ""), code: 260},
		{cmd: `{"aggregate": "c", "pipeline": [], "cursor": {}, "explain": true` + strict + `, "$db": "t"}`, code: 323},

		{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": {"targetAllNodes": true}}], "cursor": {}, "$db": "admin"}`, code: 9},
		{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": {"targetAllNodes": false}}], "cursor": {}, "$db": "admin"}`},
		{cmd: `{"aggregate": 1, "pipeline": [{"$listLocalSessions": {"users": [null], "allUsers": true}}], "cursor": {}, "$db": "t"}`},

		// Parameters.
		{cmd: `{"getParameter": 1, "allowDiskUseByDefault": 1, "ShardingTaskExecutorPoolReplicaSetMatching": 1, "$db": "admin"}`,
			want: map[string]string{"allowDiskUseByDefault": "true", "ShardingTaskExecutorPoolReplicaSetMatching": `"automatic"`}},
		{cmd: `{"getParameter": {"showDetails": true}, "KeysRotationIntervalSec": 1, "$db": "admin"}`,
			want: map[string]string{"KeysRotationIntervalSec.settableAtRuntime": "false", "KeysRotationIntervalSec.settableAtStartup": "true"}},
		{cmd: `{"setParameter": 1, "featureCompatibilityVersion": "8.0", "$db": "admin"}`, code: 20},
		{cmd: `{"lockInfo": 1, "$db": "admin"}`, want: map[string]string{"lockInfo": `[]`}},
		{cmd: `{"fsync": 1, "lock": true, "$db": "admin"}`},
		{cmd: `{"lockInfo": 1, "$db": "admin"}`, want: map[string]string{"lockInfo.0.granted.0.mode": `"S"`, "lockInfo.0.pending": `[]`, "lockInfo.1": ""}},
		{cmd: `{"fsyncUnlock": 1, "$db": "admin"}`},
		{cmd: `{"setParameter": 1, "automationServiceDescriptor": 1, "$db": "admin"}`, code: 14},
		{cmd: `{"setParameter": 1, "automationServiceDescriptor": "` + strings.Repeat("x", 65) + `", "$db": "admin"}`, code: 15},
		{cmd: `{"setParameter": 1, "automationServiceDescriptor": "x", "$db": "admin"}`},
		{cmd: `{"setParameter": 1, "logComponentVerbosity": {"command": {"verbosity": {"$numberDouble": "NaN"}}}, "$db": "admin"}`, code: 2},
	}, mongotest.Version("8.2"), mongotest.ReplicaSet(1))
	mendSteps(t, []mendStep{
		{cmd: `{"ping": 1, "lsid": {"id": {"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}}, "$db": "t"}`},
		{cmd: `{"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}, "$db": "t"}`, want: map[string]string{
			"cursor.firstBatch.0._id.id": `{"$binary":{"base64":"ASNFZ4mrze8BI0VniavN7w==","subType":"04"}}`}},
		{cmd: `{"getDefaultRWConcern": 1, "$db": "admin"}`, code: 51300},
		{cmd: `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}, "$db": "admin"}`, code: 51300},
	}, mongotest.Version("8.2"))
}

// The events of collections and indexes tell what was done, as the manual's pages show them.
func TestExpandedEvents(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2"))
	c := dial(t, d.Hosts()[0])
	run := func(cmd string) bson.Raw {
		t.Helper()
		return ok(t, command(t, c, extJSON(t, cmd)))
	}
	opened := run(`{"aggregate": 1, "pipeline": [{"$changeStream": {"showExpandedEvents": true}}], "cursor": {}, "$db": "t"}`)
	for _, step := range []struct{ cmd, description, before string }{
		{`{"create": "c", "$db": "t"}`, `{"idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}`, ""},
		{`{"create": "l", "capped": true, "size": 4096, "$db": "t"}`, `{"capped":true,"size":4096,"idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}`, ""},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "expireAfterSeconds": 10}], "$db": "t"}`,
			`{"indexes":[{"v":2,"key":{"a":1},"name":"a","expireAfterSeconds":10}]}`, ""},
		{`{"collMod": "c", "index": {"name": "a", "hidden": true, "expireAfterSeconds": 20}, "$db": "t"}`, "",
			`{"hidden":false,"expireAfterSeconds":10}`},
		{`{"dropIndexes": "c", "index": "a", "$db": "t"}`, `{"indexes":[{"v":2,"key":{"a":1},"name":"a","expireAfterSeconds":20,"hidden":true}]}`, ""},
		{`{"create": "v", "viewOn": "c", "pipeline": [{"$limit": 1}], "$db": "t"}`, `{"viewOn":"c","pipeline":[{"$limit":1}]}`, ""},
	} {
		run(step.cmd)
		cursor, _ := opened.Lookup("cursor", "id").AsInt64()
		reply := run(fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "$cmd.aggregate", "$db": "t"}`, cursor))
		event, _ := reply.Lookup("cursor", "nextBatch", "0").Document()
		if got := event.Lookup("operationDescription").String(); step.description != "" && got != step.description {
			t.Errorf("%s: %s, want %s", step.cmd, got, step.description)
		}
		if got := event.Lookup("stateBeforeChange", "indexOptions").String(); step.before != "" && got != step.before {
			t.Errorf("%s: %s, want %s", step.cmd, event, step.before)
		}
		_, hasUUID := event.Lookup("stateBeforeChange", "collectionOptions", "uuid").Binary()
		if want := strings.HasPrefix(step.cmd, `{"collMod"`); hasUUID != want {
			t.Errorf("%s: %s", step.cmd, event)
		}
	}
}

// TestEngineInPlanHash: a stage that the engine which reads the collection takes along, or that
// sorts first, is part of what planCacheShapeHash tells apart, and others are not.
func TestEngineInPlanHash(t *testing.T) {
	for version, want := range map[string]bool{"8.2": true, "8.0": false} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1, "a": 1}]}`))
		hash := func(stages string) string {
			reply := ok(t, askText(t, c, "t", `{"explain": {"aggregate": "c", "pipeline": [{"$match": {"a": {"$gt": 0}}}`+stages+`], "cursor": {}}, "verbosity": "queryPlanner"}`))
			for _, path := range [][]string{{"queryPlanner"}, {"stages", "0", "$cursor", "queryPlanner"}} {
				if v := reply.Lookup(append(path, "planCacheShapeHash")...); !v.IsZero() {
					return v.String()
				}
			}
			t.Fatalf("%s has no hash: %v", stages, reply)
			return ""
		}
		alone := hash("")
		for stage, differs := range map[string]bool{
			`{"$lookup": {"from": "d", "localField": "a", "foreignField": "_id", "as": "j"}}`: want,
			`{"$count": "n"}`: want,
			`{"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}`:       want,
			`{"$setWindowFields": {"sortBy": {"a": 1}, "output": {"r": {"$rank": {}}}}}`: want,
			`{"$unwind": "$b"}`:     false,
			`{"$set": {"x": 1}}`:    false,
			`{"$limit": 5}`:         false,
			`{"$redact": "$$KEEP"}`: false,
		} {
			if got := hash(", "+stage) != alone; got != differs {
				t.Errorf("%s: %s makes another hash: %t", version, stage, got)
			}
		}
	}
}
