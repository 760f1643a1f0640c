package mongotest_test

import (
	"strings"
	"testing"

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
