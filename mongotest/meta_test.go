package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// $meta in pipelines: what a search, an index, a sort or $geoNear knows of a document stays with it
// through the stages, and what there is not is refused or missing.
func TestMetaInPipelines(t *testing.T) {
	aggregate := func(stages string) string {
		return `{"aggregate": "c", "pipeline": [` + stages + `], "cursor": {}, "$db": "t"}`
	}
	const text, score = `{"$match": {"$text": {"$search": "foo"}}}`, `{"$meta": "textScore"}`
	const first, second, third = "cursor.firstBatch.0", "cursor.firstBatch.1", "cursor.firstBatch.2"
	refused := func(stages, what string) mendStep {
		return mendStep{cmd: aggregate(stages), code: 40218, text: "query requires " + what + " metadata, but it is not available"}
	}
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "sharded": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mendSteps(t, []mendStep{
				{cmd: `{"insert": "c", "documents": [{"_id": 1, "g": [1, 1], "a": 5, "t": "foo bar"}, {"_id": 2, "a": 6, "t": "foo foo"}, {"_id": 3, "g": [9, 9], "a": 4, "t": "bar"}], "$db": "t"}`},
				{cmd: `{"createIndexes": "c", "indexes": [{"key": {"g": "2dsphere"}, "name": "g"}, {"key": {"t": "text"}, "name": "t"}, {"key": {"a": 1}, "name": "a"}], "$db": "t"}`},
				{cmd: aggregate(text + `, {"$project": {"s": ` + score + `}}, {"$sort": {"s": -1}}`), want: map[string]string{first + ".s": "1.5", second + ".s": "0.75"}},
				{cmd: aggregate(text + `, {"$sort": {"x": ` + score + `}}, {"$limit": 1}, {"$addFields": {"s": ` + score + `}}`), want: map[string]string{first + ".s": "1.5", second: ""}},
				{cmd: aggregate(text + `, {"$sort": {"_id": -1}}, {"$unwind": "$t"}, {"$set": {"s": ` + score + `}}`), want: map[string]string{first + ".s": "1.5", second + ".s": "0.75"}},
				{cmd: aggregate(text + `, {"$sort": {"_id": 1}}, {"$group": {"_id": null, "s": {"$push": ` + score + `}}}, {"$set": {"x": ` + score + `}}`), want: map[string]string{first + ".s": "[0.75,1.5]", first + ".x": ""}},
				{cmd: aggregate(text + `, {"$bucketAuto": {"groupBy": "$_id", "buckets": 1, "output": {"s": {"$max": ` + score + `}}}}`), want: map[string]string{first + ".s": "1.5"}},
				{cmd: aggregate(text + `, {"$facet": {"a": [{"$sort": {"x": ` + score + `}}, {"$project": {"s": ` + score + `}}], "b": [{"$count": "n"}]}}`), want: map[string]string{first + ".a.0.s": "1.5", first + ".b.0.n": "2"}},
				{cmd: aggregate(text + `, {"$sort": {"_id": 1}}, {"$lookup": {"from": "c", "let": {}, "pipeline": [` + text + `, {"$sort": {"_id": 1}}, {"$project": {"s": ` + score + `}}], "as": "j"}}, {"$project": {"s": ` + score + `, "j": 1}}`),
					want: map[string]string{first + ".j.1.s": "1.5", first + ".s": "0.75", second + ".s": "1.5"}},
				{cmd: aggregate(text + `, {"$sort": {"_id": 1}}, {"$unionWith": "c"}, {"$project": {"s": ` + score + `}}`), want: map[string]string{first + ".s": "0.75", second + ".s": "1.5", third + ".s": ""}},
				{cmd: aggregate(`{"$geoNear": {"near": [1, 1], "spherical": true, "distanceField": "d", "distanceMultiplier": 0}}, {"$project": {"d": 1, "m": {"$gt": [{"$meta": "geoNearDistance"}, 0.19]}, "p": {"$meta": "geoNearPoint"}}}`),
					want: map[string]string{first + ".m": "false", first + ".p": "[1,1]", second + ".d": "0.0", second + ".m": "true", second + ".p": "[9,9]"}},
				{cmd: aggregate(`{"$match": {"a": {"$gt": 4}}}, {"$project": {"k": {"$meta": "indexKey"}}}`), want: map[string]string{first + ".k": `{"a":5}`, second + ".k": `{"a":6}`}},
				{cmd: aggregate(`{"$sort": {"t": -1}}, {"$project": {"s": {"$meta": "sortKey"}, "k": {"$meta": "indexKey"}}}`), want: map[string]string{first + ".s": `["foo foo"]`, first + ".k": "", third + ".s": `["bar"]`}},
				{cmd: aggregate(`{"$sample": {"size": 1}}, {"$project": {"r": {"$gte": [{"$meta": "randVal"}, 0]}}}`), want: map[string]string{first + ".r": "true"}},
				// Missing: what only a search engine knows, and what nothing has made.
				{cmd: aggregate(`{"$sort": {"_id": 1}}, {"$project": {"s": {"$meta": "searchScore"}, "h": {"$meta": "searchHighlights"}, "r": {"$meta": "randVal"}}}`), want: map[string]string{first: `{"_id":1}`}},
				{cmd: aggregate(`{"$group": {"_id": null}}, {"$project": {"s": ` + score + `}}`), want: map[string]string{first: `{"_id":null}`}},
				refused(`{"$project": {"s": `+score+`}}`, "text score"),
				refused(`{"$sort": {"s": `+score+`}}`, "text score"),
				refused(`{"$group": {"_id": `+score+`}}`, "text score"),
				refused(`{"$facet": {"a": [{"$project": {"s": `+score+`}}]}}`, "text score"),
				refused(`{"$lookup": {"from": "c", "let": {}, "pipeline": [{"$project": {"s": `+score+`}}], "as": "j"}}`, "text score"),
				refused(text+`, {"$project": {"s": {"$meta": "geoNearDistance"}}}`, "$geoNear distance"),
				refused(`{"$set": {"s": {"$meta": "geoNearPoint"}}}`, "$geoNear point"),
				{cmd: aggregate(`{"$project": {"s": {"$meta": "nosuch"}}}`), code: 17308, text: "Unsupported argument to $meta: nosuch"},
				{cmd: `{"find": "c", "filter": {"g": {"$nearSphere": [1, 1]}}, "projection": {"_id": 0, "p": {"$meta": "geoNearPoint"}, "d": {"$meta": "geoNearDistance"}}, "limit": 1, "$db": "t"}`,
					want: map[string]string{first + ".p": "[1,1]", first + ".d": "0.0"}},
				{cmd: `{"find": "c", "projection": {"s": {"$meta": "searchScore"}, "_id": 1}, "limit": 1, "$db": "t"}`, want: map[string]string{first: `{"_id":1}`}},
			}, topology, mongotest.Version("4.4"))
		})
	}
}
