package mongotest_test

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// explainedStages are stages as they are written, and as explain shows them behind the query: as
// they were parsed. Documentation and reports of bugs have shown each of the forms.
var explainedStages = []struct{ written, shown string }{
	{`{"$match": {"a": 1, "b": {"$gt": 2}}}`, `{"$match":{"$and":[{"a":{"$eq":1}},{"b":{"$gt":2}}]}}`},
	{`{"$project": {"a": 1, "x": {"$add": ["$a", 1]}}}`, `{"$project":{"_id":true,"a":true,"x":{"$add":["$a",{"$const":1}]}}}`},
	{`{"$project": {"_id": 0, "b.c": 1, "d": {"e": 1, "f": "$g"}}}`, `{"$project":{"b":{"c":true},"d":{"e":true,"f":"$g"},"_id":false}}`},
	{`{"$project": {"a": 0}}`, `{"$project":{"a":false,"_id":true}}`},
	{`{"$project": {"_id": 0}}`, `{"$project":{"_id":false}}`},
	{`{"$project": {"_id": "$a", "b": 1}}`, `{"$project":{"b":true,"_id":"$a"}}`},
	{`{"$unset": ["a", "b.c"]}`, `{"$project":{"a":false,"b":{"c":false},"_id":true}}`},
	{`{"$set": {"x": 1, "y.z": "$$CURRENT.a", "w": {"q": "s", "r": "$$ROOT"}}}`,
		`{"$set":{"x":{"$const":1},"y":{"z":"$a"},"w":{"q":{"$const":"s"},"r":"$$ROOT"}}}`},
	{`{"$addFields": {"k": {"$add": [1, 2]}, "s": {"$size": "$b"}, "l": {"$literal": "$x"}}}`,
		`{"$addFields":{"k":{"$const":3},"s":{"$size":["$b"]},"l":{"$const":"$x"}}}`},
	{`{"$count": "n"}`, `{"$group":{"_id":{"$const":null},"n":{"$sum":{"$const":1}}}} {"$project":{"n":true,"_id":false}}`},
	{`{"$sortByCount": "$a"}`, `{"$group":{"_id":"$a","count":{"$sum":{"$const":1}}}} {"$sort":{"sortKey":{"count":-1}}}`},
	{`{"$sort": {"a": 1, "b": -1}}, {"$limit": 5}, {"$limit": 3}`, `{"$sort":{"sortKey":{"a":1,"b":-1},"limit":3}}`},
	{`{"$limit": 5}, {"$limit": 7}`, `{"$limit":5}`},
	{`{"$skip": 1}, {"$skip": 2}`, `{"$skip":3}`},
	{`{"$lookup": {"from": "o", "localField": "a", "foreignField": "b", "as": "x"}}, {"$unwind": "$x"}`,
		`{"$lookup":{"from":"o","as":"x","localField":"a","foreignField":"b","unwinding":{"preserveNullAndEmptyArrays":false}}}`},
	{`{"$lookup": {"from": "o", "localField": "a", "foreignField": "b", "as": "x"}}, {"$unwind": "$b"}`,
		`{"$lookup":{"from":"o","as":"x","localField":"a","foreignField":"b"}} {"$unwind":{"path":"$b"}}`},
	{`{"$lookup": {"from": "o", "let": {"v": "$a", "w": 2}, "pipeline": [{"$project": {"a": 1}}], "as": "x"}}, {"$unwind": {"path": "$x", "includeArrayIndex": "i"}}`,
		`{"$lookup":{"from":"o","as":"x","let":{"v":"$a","w":{"$const":2}},"pipeline":[{"$project":{"a":1}}],"unwinding":{"preserveNullAndEmptyArrays":false,"includeArrayIndex":"i"}}}`},
	{`{"$unwind": {"path": "$b", "preserveNullAndEmptyArrays": true}}`, `{"$unwind":{"path":"$b","preserveNullAndEmptyArrays":true}}`},
	{`{"$bucket": {"groupBy": "$a", "boundaries": [0, 200], "default": "Other", "output": {"t": {"$push": "$b"}}}}`,
		`{"$group":{"_id":{"$switch":{"branches":[{"case":{"$and":[{"$gte":["$a",{"$const":0}]},{"$lt":["$a",{"$const":200}]}]},"then":{"$const":0}}],"default":{"$const":"Other"}}},"t":{"$push":"$b"}}} {"$sort":{"sortKey":{"_id":1}}}`},
	{`{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}`, `{"$bucketAuto":{"groupBy":"$a","buckets":2,"output":{"count":{"$sum":{"$const":1}}}}}`},
	{`{"$replaceWith": {"a": "$b", "c": 1}}`, `{"$replaceRoot":{"newRoot":{"a":"$b","c":{"$const":1}}}}`},
	{`{"$facet": {"x": [{"$count": "n"}]}}`,
		`{"$facet":{"x":[{"$internalFacetTeeConsumer":{}},{"$group":{"_id":{"$const":null},"n":{"$sum":{"$const":1}}}},{"$project":{"n":true,"_id":false}}]}}`},
	{`{"$group": {"_id": {"y": {"$year": "$d"}}, "t": {"$max": {"$toInt": "$a"}}, "p": {"$push": {"c": {"$cond": {"if": "$a", "then": 1, "else": "$b"}}}}}}`,
		`{"$group":{"_id":{"y":{"$year":{"date":"$d"}}},"t":{"$max":{"$convert":{"input":"$a","to":{"$const":"int"}}}},"p":{"$push":{"c":{"$cond":["$a",{"$const":1},"$b"]}}}}}`},
	{`{"$addFields": {"m": {"$map": {"input": "$b", "in": {"$add": ["$$this", 1]}}}, "d": {"$dateToString": {"format": "%Y", "date": "$d"}}, "n": {"$not": "$a"}}}`,
		`{"$addFields":{"m":{"$map":{"input":"$b","as":"this","in":{"$add":["$$this",{"$const":1}]}}},"d":{"$dateToString":{"date":"$d","format":{"$const":"%Y"}}},"n":{"$not":["$a"]}}}`},
	{`{"$addFields": {"l": {"$let": {"vars": {"k": 1}, "in": {"$multiply": ["$$k", "$a"]}}}, "s": {"$switch": {"branches": [{"case": "$a", "then": "one"}]}}, "z": {"$zip": {"inputs": ["$b", [1]]}}}}`,
		`{"$addFields":{"l":{"$let":{"vars":{"k":{"$const":1}},"in":{"$multiply":["$$k","$a"]}}},"s":{"$switch":{"branches":[{"case":"$a","then":{"$const":"one"}}]}},"z":{"$zip":{"inputs":["$b",{"$const":[1]}],"defaults":[],"useLongestLength":false}}}}`},
	{`{"$redact": {"$cond": ["$a", "$$KEEP", "$$PRUNE"]}}`, `{"$redact":{"$cond":["$a","$$KEEP","$$PRUNE"]}}`},
	{`{"$sample": {"size": 3}}`, `{"$sample":{"size":3}}`},
	{`{"$merge": "o"}`, `{"$merge":{"into":{"db":"db","coll":"o"},"on":"_id","whenMatched":"merge","whenNotMatched":"insert"}}`},
	{`{"$graphLookup": {"from": "o", "startWith": "$a", "connectFromField": "p", "connectToField": "_id", "as": "r"}}`,
		`{"$graphLookup":{"from":"o","as":"r","connectToField":"_id","connectFromField":"p","startWith":"$a"}}`},
	{`{"$unionWith": "o"}`, `{"$unionWith":{"coll":"o","pipeline":[{"$cursor":{"queryPlanner":{"plannerVersion":1,"namespace":"db.o",` +
		`"indexFilterSet":false,"parsedQuery":{},"winningPlan":{"stage":"COLLSCAN","direction":"forward"},"rejectedPlans":[]}}}]}}`},
}

// TestExplainedStages explains stages behind one that keeps them from being moved into the query.
func TestExplainedStages(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("4.4.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": [1, 2]}, {"_id": 2, "a": 1, "b": []}]}`))
	ok(t, askText(t, c, "db", `{"insert": "o", "documents": [{"b": 1}, {"b": 1}, {"b": 1}]}`))
	explain := func(stages, verbosity string) []bson.Raw {
		reply := ok(t, askText(t, c, "db", `{"explain": {"aggregate": "c", "pipeline": [{"$_internalInhibitOptimization": {}}, `+stages+`], "cursor": {}}, "verbosity": "`+verbosity+`"}`))
		list, _ := reply.Lookup("stages").Array()
		var shown []bson.Raw
		for v := range list.Values() {
			shown = append(shown, v.Value)
		}
		return shown[2:]
	}
	for _, test := range explainedStages {
		var texts []string
		for _, stage := range explain(test.written, "queryPlanner") {
			texts = append(texts, stage.String())
		}
		if got := strings.Join(texts, " "); got != test.shown {
			t.Errorf("%s\ngot  %s\nwant %s", test.written, got, test.shown)
		}
	}
	// Joined stages have yielded what the last of them did, and numbers of documents are longs.
	for stages, want := range map[string]int64{
		`{"$lookup": {"from": "o", "localField": "a", "foreignField": "b", "as": "x"}}, {"$unwind": "$x"}`: 6,
		`{"$sort": {"a": 1}}, {"$limit": 1}`: 1,
		`{"$count": "n"}`:                    1,
	} {
		for _, stage := range explain(stages, "executionStats") {
			if n, _ := stage.Lookup("nReturned").AsInt64(); n != want {
				t.Errorf("%s: %s, want %d documents", stages, stage, want)
			}
		}
	}
	for _, path := range [][]string{{"$sort", "limit"}, {"$skip"}} {
		stages := explain(`{"$sort": {"a": 1}}, {"$limit": 1}, {"$skip": 1}`, "queryPlanner")
		found := false
		for _, s := range stages {
			if v := s.Lookup(path...); v.Type != 0 {
				found = v.Type == bson.TypeInt64
			}
		}
		if !found {
			t.Errorf("%v is no long in %v", path, stages)
		}
	}
}
