package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/mongotest"
)

// pipelineParts are stages that read fields in as many ways as there are: by paths, by names, and
// as part of the document.
var pipelineParts = []string{
	`{"$match": {"b": {"$gt": 1}}}`, `{"$match": {"$expr": {"$lt": ["$b", "$c"]}}}`, `{"$match": {"$or": [{"a": 1}, {"c": 2}]}}`,
	`{"$match": {"c": {"$in": [1, 2]}, "$comment": "x"}}`, `{"$match": {"d.e": 1}}`, `{"$match": {"l": {"$elemMatch": {"$gt": 1}}}}`,
	`{"$sort": {"b": 1, "_id": 1}}`, `{"$sort": {"c": -1, "a": 1, "_id": 1}}`, `{"$sort": {"d.e": 1, "_id": 1}}`,
	`{"$addFields": {"x": "$b"}}`, `{"$set": {"a": {"$add": ["$c", 1]}}}`, `{"$set": {"d.f": "$c"}}`, `{"$set": {"x": "$$ROOT"}}`,
	`{"$set": {"x": {"$getField": "c"}}}`, `{"$set": {"x": {"$getField": {"field": "c", "input": "$$ROOT"}}}}`, `{"$set": {"x": {"$setField": {"field": "y", "input": "$$ROOT", "value": "$b"}}}}`,
	`{"$set": {"x": "$$CURRENT.c"}}`, `{"$set": {"x": {"$let": {"vars": {"v": "$c"}, "in": {"$add": ["$$v", "$b"]}}}}}`, `{"$set": {"x": {"$literal": "$c"}}}`,
	`{"$set": {"x": {"$map": {"input": "$l", "as": "i", "in": {"$add": ["$$i", "$c"]}}}}}`, `{"$set": {"x": {"$filter": {"input": "$l", "cond": {"$gt": ["$$this", "$b"]}}}}}`,
	`{"$set": {"x": {"$reduce": {"input": "$l", "initialValue": "$c", "in": {"$add": ["$$value", "$$this"]}}}}}`, `{"$set": {"x": {"$sortArray": {"input": "$l", "sortBy": -1}}}}`,
	`{"$set": {"x": {"$switch": {"branches": [{"case": {"$eq": ["$b", 1]}, "then": "$c"}], "default": "$d.e"}}}}`, `{"$set": {"x": {"$cond": ["$b", "$c", "$d"]}}}`,
	`{"$set": {"x": {"$mergeObjects": ["$d", {"y": "$b"}]}}}`, `{"$set": {"x": {"$objectToArray": "$d"}}}`, `{"$set": {"x": {"$objectToArray": "$$ROOT"}}}`, `{"$set": {"x": {"$type": "$c"}}}`,
	`{"$set": {"x": {"$maxN": {"n": 1, "input": "$l"}}}}`, `{"$set": {"x": {"$zip": {"inputs": ["$l", ["$b"]]}}}}`, `{"$set": {"x": {"$dateFromParts": {"year": {"$add": [2000, "$c"]}}}}}`,
	`{"$unset": "b"}`, `{"$project": {"b": 0}}`, `{"$unwind": "$l"}`, `{"$unwind": {"path": "$l", "includeArrayIndex": "i"}}`, `{"$unwind": {"path": "$c", "includeArrayIndex": "b"}}`,
	`{"$skip": 0}`, `{"$limit": 50}`, `{"$redact": {"$cond": [{"$eq": ["$b", 1]}, "$$PRUNE", "$$KEEP"]}}`,
	`{"$lookup": {"from": "other", "localField": "c", "foreignField": "_id", "as": "j"}}`, `{"$lookup": {"from": "other", "let": {"v": "$b"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$v"]}}}], "as": "j"}}`,
	`{"$graphLookup": {"from": "other", "startWith": "$c", "connectFromField": "n", "connectToField": "_id", "as": "g"}}`,
	`{"$setWindowFields": {"partitionBy": "$a", "sortBy": {"_id": 1}, "output": {"w": {"$sum": "$c", "window": {"documents": ["unbounded", "current"]}}}}}`,
	`{"$fill": {"sortBy": {"_id": 1}, "output": {"z": {"value": "$c"}}}}`, `{"$facet": {"f": [{"$match": {"b": 1}}, {"$sort": {"_id": 1}}]}}`,
	`{"$unionWith": {"coll": "other", "pipeline": [{"$set": {"c": "$n"}}]}}`, `{"$sample": {"size": 100}}`,
}

// pipelineEnds are stages that say what comes out.
var pipelineEnds = []string{
	`{"$project": {"_id": 0, "a": 1}}`, `{"$project": {"b": 1}}`, `{"$project": {"_id": 0, "a": 1, "c": 1, "x": 1}}`, `{"$project": {"_id": 0, "y": "$c"}}`, `{"$project": {"d": {"e": 1}}}`,
	`{"$project": {"_id": 0, "d": {"e": 1, "n": "$c"}}}`, `{"$project": {"_id": 0, "s": {"$add": ["$a", "$b"]}, "x": 1}}`, `{"$project": {"_id": 0, "r": "$$ROOT"}}`, `{"$project": {"_id": 0, "l": {"$slice": ["$l", 1]}}}`,
	`{"$group": {"_id": "$a", "n": {"$sum": "$c"}}}`, `{"$group": {"_id": "$b", "m": {"$max": "$x"}, "n": {"$count": {}}}}`, `{"$group": {"_id": null, "n": {"$sum": 1}}}`, `{"$group": {"_id": {"a": "$a", "e": "$d.e"}}}`,
	`{"$group": {"_id": "$a", "t": {"$top": {"sortBy": {"c": 1, "_id": 1}, "output": "$b"}}}}`, `{"$group": {"_id": "$a", "t": {"$bottomN": {"n": 2, "sortBy": {"_id": 1}, "output": ["$a", "$c"]}}}}`,
	`{"$group": {"_id": "$a", "t": {"$maxN": {"n": 2, "input": "$c"}}}}`, `{"$group": {"_id": "$a", "t": {"$sum": {"$size": {"$objectToArray": "$$ROOT"}}}}}`,
	`{"$bucket": {"groupBy": "$c", "boundaries": [0, 2, 9], "default": "x", "output": {"n": {"$sum": "$b"}}}}`, `{"$bucketAuto": {"groupBy": "$c", "buckets": 2}}`, `{"$sortByCount": "$c"}`, `{"$count": "n"}`,
	`{"$replaceRoot": {"newRoot": {"k": "$a", "x": "$x"}}}`, `{"$replaceWith": "$d"}`, `{"$replaceWith": {"$mergeObjects": ["$$ROOT", {"q": 1}]}}`, `{"$match": {"a": 1}}`, `{"$sort": {"a": 1, "_id": 1}}`,
}

// Of how many pipelines at random, and which.
const (
	pipelineSeed = 2
	pipelineRuns = 1500
)

// TestIndexesAreNotSeen runs pipelines on documents that lack nothing, with an index and without
// one: what an index knows is what the documents have.
func TestIndexesAreNotSeen(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	var docs []string
	for i := range 12 {
		docs = append(docs, fmt.Sprintf(`{"_id": %d, "a": %d, "b": %d, "c": %d, "d": {"e": %d, "g": 1}, "l": [%d, 2]}`, i, i%2+1, i%3+1, i%4, i%5, i%3))
	}
	list := strings.Join(docs, ", ")
	ok(t, askText(t, c, "t", `{"insert": "other", "documents": [{"_id": 1, "n": 2}, {"_id": 2, "n": 3}, {"_id": 3, "n": 1}]}`))
	ok(t, askText(t, c, "t", `{"insert": "plain", "documents": [`+list+`]}`))
	keys := []string{`{"a": 1}`, `{"a": 1, "b": 1}`, `{"c": 1, "a": -1}`, `{"a": 1, "c": 1, "b": 1}`, `{"a": 1, "b": 1, "c": 1, "_id": 1}`, `{"a": 1, "d.e": 1}`, `{"a": 1, "d": 1}`, `{"b": 1, "c": 1}`}
	for i, key := range keys {
		ok(t, askText(t, c, "t", fmt.Sprintf(`{"insert": "c%d", "documents": [%s]}`, i, list)))
		ok(t, askText(t, c, "t", fmt.Sprintf(`{"createIndexes": "c%d", "indexes": [{"key": %s, "name": "x"}]}`, i, key)))
	}
	run := func(coll, stages string) string {
		reply := askText(t, c, "t", `{"aggregate": "`+coll+`", "cursor": {"batchSize": 1000}, "pipeline": [`+stages+`]}`)
		if !reply.Lookup("ok").AsBool() {
			return errorOf(reply)
		}
		var list []string
		batch, _ := reply.Lookup("cursor", "firstBatch").Array()
		for v := range batch.Values() {
			doc, _ := v.Document() // fields that a key has are in its order
			var fields []string
			for name, v := range doc.All() {
				fields = append(fields, name+": "+v.String())
			}
			slices.Sort(fields)
			list = append(list, strings.Join(fields, ", "))
		}
		slices.Sort(list)
		return strings.Join(list, "\n")
	}
	random := rand.New(rand.NewPCG(1, pipelineSeed))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	var pipelines []string
	for _, end := range pipelineEnds { // each part once at least, and with every end
		for _, part := range pipelineParts {
			pipelines = append(pipelines, part+", "+end)
		}
	}
	for range pipelineRuns {
		pipelines = append(pipelines, pick(pipelineParts)+", "+pick(pipelineParts)+", "+pick(pipelineEnds))
	}
	for _, stages := range pipelines {
		stages = pick([]string{`{"$match": {"a": {"$gte": 1}}}`, `{"$match": {"a": 1}}`, `{"$sort": {"a": 1}}`, `{"$match": {"b": {"$gt": 0}}}`, `{"$match": {"c": {"$gte": 0}}}`}) + ", " + stages
		want := run("plain", stages)
		i := random.IntN(len(keys))
		if got := run(fmt.Sprintf("c%d", i), stages); got != want {
			t.Errorf("[%s] with %s\n got %s\nwant %s", stages, keys[i], got, want)
		}
	}
}
