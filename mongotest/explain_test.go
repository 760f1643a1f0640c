package mongotest_test

import (
	"strings"
	"testing"

	"allium/mongotest"
)

// explain reads the explained command as the command itself does, and shows each stage of the plan
// with what it returned.
func TestExplain(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("4.4"))
	c := dial(t, d.Hosts()[0])
	for _, setup := range []string{
		`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 2, "b": 2}, {"_id": 3, "a": 3, "b": 3}], "$db": "t"}`,
		`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}], "$db": "t"}`,
		`{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}], "$db": "t"}`,
	} {
		ok(t, command(t, c, extJSON(t, setup)))
	}
	for _, step := range []struct {
		command string
		path    string
		want    string
	}{
		{`{"find": "c", "filter": {"b": 1, "$or": [{"x": {"$in": [1, {"$regularExpression": {"pattern": "r", "options": "i"}}]}}, {"y": {"$exists": true}}]}}`, "queryPlanner.parsedQuery",
			`{"$and":[{"$or":[{"y":{"$exists":true}},{"x":{"$in":[1,{"$regularExpression":{"pattern":"r","options":"i"}}]}}]},{"b":{"$eq":1}}]}`},
		{`{"find": "c", "filter": {"$expr": {"$eq": ["$a", 1]}}}`, "queryPlanner.parsedQuery", `{"$expr":{"$eq":["$a",1]}}`},
		{`{"find": "c", "filter": {"a": {"$gt": 1}}, "projection": {"a": 1}, "skip": 1, "limit": 5}`, "queryPlanner.winningPlan.inputStage.stage", `"PROJECTION_SIMPLE"`},
		{`{"find": "c", "filter": {"a": {"$gt": 1}}, "skip": 1, "limit": 5}`, "executionStats.nReturned", `1`},
		{`{"find": "c", "filter": {"a": {"$gt": 1}}, "skip": 1, "limit": 5}`, "executionStats.executionStages.inputStage.inputStage.inputStage.keysExamined", `2`},
		{`{"find": "c", "sort": {"b": -1}, "limit": 1}`, "executionStats.executionStages.limitAmount", `1`},
		{`{"find": "c", "filter": {"_id": 2}}`, "queryPlanner.winningPlan.stage", `"IDHACK"`},
		{`{"find": "nosuch"}`, "queryPlanner.winningPlan.stage", `"EOF"`},
		{`{"count": "c", "query": {"a": 1}}`, "queryPlanner.winningPlan.inputStage.stage", `"COUNT_SCAN"`},
		{`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b"}}]}`, "stages.0.$cursor.queryPlanner.winningPlan.inputStage.inputStage.indexName", `"a_1"`},
		{`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b"}}]}`, "stages.1.$group", `{"_id":"$b"}`},
		{`{"aggregate": "c", "pipeline": [{"$match": {"b": 1}}, {"$sort": {"a": -1}}]}`, "queryPlanner.optimizedPipeline", `true`},
		{`{"aggregate": "c", "pipeline": [{"$sort": {"a": -1}}]}`, "queryPlanner.winningPlan.inputStage.indexBounds", `{"a":["[MaxKey, MinKey]"]}`},
		{`{"find": "c", "sort": {"_id": 1}}`, "queryPlanner.queryHash", `"F44244FE"`},
		{`{"find": "c", "filter": {"a": {"$gt": 1}}}`, "queryPlanner.winningPlan.inputStage.indexBounds", `{"a":["(1, inf.0]"]}`},
		{`{"find": "v", "filter": {"b": 3}}`, "queryPlanner.parsedQuery", `{"$and":[{"b":{"$eq":3}},{"a":{"$gt":1}}]}`},
		{`{"find": "v", "filter": {"b": 3}}`, "queryPlanner.optimizedPipeline", `true`},
		{`{"find": "v", "hint": {"_id": 1}}`, "queryPlanner.winningPlan.inputStage.indexName", `"_id_"`},
		{`{"find": "v", "collation": {"locale": "fr"}}`, "code", `167`},
		{`{"count": "v", "query": {"b": 3}}`, "stages.1.$group", `{"_id":{"$const":null},"count":{"$sum":{"$const":1}}}`},
		{`{"count": "v", "query": {"b": 3}}`, "stages.1.nReturned", `1`},
		{`{"distinct": "v", "key": "b.x"}`, "stages.1.$unwind.path", `"$b"`},
		{`{"distinct": "v", "key": "b.x"}`, "stages.4.$group", `{"_id":{"$const":null},"distinct":{"$addToSet":"$b.x"}}`},
		// The optimizer's moves.
		{`{"aggregate": "c", "pipeline": [{"$sort": {"b": 1}}, {"$match": {"a": 1}}]}`, "queryPlanner.winningPlan.inputStage.inputStage.indexName", `"a_1"`},
		{`{"aggregate": "c", "pipeline": [{"$project": {"z": "$a"}}, {"$match": {"z": 1, "y": 2}}]}`, "stages.0.$cursor.queryPlanner.parsedQuery", `{"a":{"$eq":1}}`},
		{`{"aggregate": "c", "pipeline": [{"$addFields": {"z": "$a", "y": {"$add": ["$b", 1]}}}, {"$match": {"z": 1, "y": 2}}]}`, "stages.2.$match", `{"y":{"$eq":2}}`},
		{`{"aggregate": "c", "pipeline": [{"$match": {"b": 1}}, {"$match": {"a": 1}}]}`, "queryPlanner.parsedQuery", `{"$and":[{"a":{"$eq":1}},{"b":{"$eq":1}}]}`},
		{`{"aggregate": "c", "pipeline": [{"$addFields": {"z": 1}}, {"$match": {"$or": [{"$and": [{"a": 1, "z": 2}]}]}}]}`, "stages.0.$cursor.queryPlanner.parsedQuery", `{"a":{"$eq":1}}`},
		{`{"aggregate": "c", "pipeline": [{"$sort": {"b": 1}}, {"$addFields": {"z": "$a"}}, {"$limit": 2}]}`, "stages.0.$cursor.executionStats.executionStages.limitAmount", `2`},
		{`{"aggregate": "c", "pipeline": [{"$project": {"a": 1}}, {"$unionWith": "c"}, {"$match": {"a": 1}}]}`, "stages.1.$unionWith.pipeline.0.$cursor.queryPlanner.parsedQuery", `{"a":{"$eq":1}}`},
		{`{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "v", "pipeline": [{"$addFields": {"z": 1}}, {"$unionWith": "nosuch"}]}}]}`, "stages.1.$unionWith.pipeline.0.nReturned", `2`},
		{`{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "v", "pipeline": [{"$addFields": {"z": 1}}, {"$unionWith": "nosuch"}]}}]}`, "stages.1.$unionWith.pipeline.2.$unionWith.pipeline.0.$cursor.queryPlanner.winningPlan.stage", `"EOF"`},
		{`{"aggregate": "c", "pipeline": [{"$sortByCount": "$a"}, {"$match": {"count": 1}}]}`, "stages.2.$match", `{"count":{"$eq":1}}`},
		{`{"aggregate": "c", "pipeline": [{"$project": {"_id": 1, "a": {"b": 1}}}]}`, "queryPlanner.winningPlan.transformBy", `{"_id":true,"a":{"b":true}}`},
		{`{"findAndModify": "c", "query": {"a": 1}, "remove": true}`, "queryPlanner.winningPlan.stage", `"DELETE"`},
		{`{"find": "c", "nosuch": 1}`, "code", `9`},
		{`{"find": "c", "projection": {"a": 1, "b": 0}}`, "code", `31254`},
		{`{"find": "c", "filter": {"a": {"$nosuch": 1}}}`, "code", `2`},
		{`{"aggregate": "c", "pipeline": [{"$nosuch": 1}]}`, "code", `40324`},
		{`{"count": "c", "limit": "x"}`, "code", `2`},
		{`{"distinct": "c"}`, "code", `40414`},
		{`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}, {"q": {}, "u": {"$set": {"a": 1}}}]}`, "code", `16`},
		{`{"update": "c", "updates": [{"q": {}, "u": {"$nosuch": {"a": 1}}}]}`, "code", `9`},
		{`{"delete": "v", "deletes": [{"q": {}, "limit": 1}]}`, "code", `166`},
		{`{"findAndModify": "c"}`, "code", `9`},
	} {
		reply := command(t, c, extJSON(t, `{"explain": `+step.command+`, "verbosity": "executionStats", "$db": "t"}`))
		if got := reply.Lookup(strings.Split(step.path, ".")...).String(); got != step.want {
			t.Errorf("%s: %s is %s: %s", step.command, step.path, got, reply)
		}
	}
	if n, _ := command(t, c, extJSON(t, `{"count": "c", "$db": "t"}`)).Lookup("n").AsInt64(); n != 3 {
		t.Errorf("%d documents are left", n)
	}
}

// TestTextKeysExplained checks what the keys of a text index answer of the fields behind the text:
// documents that do not fulfill it are not fetched.
func TestTextKeysExplained(t *testing.T) {
	for _, tt := range []struct {
		version, filter, projection, want string
		docs                              int32
	}{
		{"4.4", `{"$text": {"$search": "x"}, "b": 1}`, `{}`, `TEXT s_text_b_1(TEXT_MATCH(FETCH(OR filter {b:{$eq:1}}(IXSCAN s_text_b_1))))`, 1},
		{"5.0", `{"$text": {"$search": "x"}, "b": 1}`, `{}`, `TEXT_MATCH s_text_b_1(FETCH(IXSCAN s_text_b_1 filter {b:{$eq:1}}))`, 1},
		{"5.0", `{"$text": {"$search": "x y"}, "b": {"$gt": 1}}`, `{}`, `TEXT_MATCH s_text_b_1(FETCH(OR filter {b:{$gt:1}}(IXSCAN s_text_b_1, IXSCAN s_text_b_1)))`, 2},
		{"5.0", `{"$text": {"$search": "x"}, "b": 1}`, `{"n": {"$meta": "textScore"}}`, `PROJECTION_DEFAULT {n:{$meta:textScore}}(TEXT_MATCH s_text_b_1(TEXT_OR filter {b:{$eq:1}}(IXSCAN s_text_b_1)))`, 1},
		{"5.0", `{"$text": {"$search": "x"}, "b": 1, "c": 1}`, `{}`, `FETCH filter {c:{$eq:1}}(TEXT_MATCH s_text_b_1(FETCH(IXSCAN s_text_b_1 filter {b:{$eq:1}})))`, 2},
		{"5.0", `{"$or": [{"$text": {"$search": "x"}, "b": 1}, {"_id": 3}], "c": null}`, `{}`,
			`FETCH filter {c:{$eq:null}}(OR(TEXT_MATCH s_text_b_1(FETCH(IXSCAN s_text_b_1 filter {b:{$eq:1}})), IXSCAN _id_ {_id:[[3, 3]]}))`, 3},
		{"5.0", `{"$text": {"$search": "x"}, "b": {"$exists": true}}`, `{}`, `FETCH filter {b:{$exists:true}}(TEXT_MATCH s_text_b_1(FETCH(IXSCAN s_text_b_1)))`, 4},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(tt.version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1, "s": "x", "b": 1, "c": 1}, {"_id": 2, "s": "x", "b": 2}, {"_id": 3, "s": "y", "b": 3}]}`))
		ok(t, askText(t, c, "t", `{"createIndexes": "c", "indexes": [{"key": {"s": "text", "b": 1}, "name": "s_text_b_1"}]}`))
		reply := ok(t, askText(t, c, "t", `{"explain": {"find": "c", "filter": `+tt.filter+`, "projection": `+tt.projection+`}, "verbosity": "executionStats"}`))
		plan, _ := reply.Lookup("queryPlanner", "winningPlan").Document()
		if got := outline(plan); got != tt.want {
			t.Errorf("%s: %s %s\n got %s\nwant %s", tt.version, tt.filter, tt.projection, got, tt.want)
		}
		if n, _ := reply.Lookup("executionStats", "totalDocsExamined").Int32(); n != tt.docs {
			t.Errorf("%s: %s %s: %d documents, want %d", tt.version, tt.filter, tt.projection, n, tt.docs)
		}
	}
}
