package mongotest_test

import (
	"strings"
	"testing"

	"allium/mongotest"
)

// TestStageRules asks what others' functional tests saw an 8.2 make of the specifications of
// stages: $lookup has a definition, $merge takes null, and $facet looks into sub-pipelines. What
// is so from 8.1 on only is asked of an older one, too.
func TestStageRules(t *testing.T) {
	const doc, id = `[{"_id": 1, "a": "x", "r": {"$ref": "c", "$id": 1}}]`, `{"$project": {"_id": 1}}`
	lookup := func(fields string) string {
		return staged(`{"$lookup": {` + fields + `}}, {"$project": {"n": {"$size": "$j"}}}`)
	}
	within := func(stage string) string {
		return staged(`{"$facet": {"f": [{"$lookup": {"from": "c", "pipeline": [` + stage + `], "as": "j"}}, ` + id + `]}}`)
	}
	const plain = `"from": "c", "localField": "a", "foreignField": "a", "as": "j"`
	list := []sibling{
		{"8.2", doc, lookup(plain), `{"_id":1,"n":1}`},
		{"8.2", doc, lookup(`"from": "c", "localField": 1, "foreignField": "a", "as": "j"`), `14: BSON field '$lookup.localField' is the wrong type 'int', expected type 'string'`},
		{"8.2", doc, lookup(`"from": "c", "localField": "a", "foreignField": true, "as": "j"`), `14: BSON field '$lookup.foreignField' is the wrong type 'bool', expected type 'string'`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [], "as": 1`), `14: BSON field '$lookup.as' is the wrong type 'int', expected type 'string'`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [], "let": 1, "as": "j"`), `14: BSON field '$lookup.let' is the wrong type 'int', expected type 'object'`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [], "let": null, "localField": null, "foreignField": null, "as": "j"`), `{"_id":1,"n":1}`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [], "as": null`), `40414: BSON field '$lookup.as' is missing but a required field`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [], "as": ""`), `40352: FieldPath cannot be constructed with empty string`},
		{"8.2", doc, lookup(plain + `, "more": 1`), `40415: BSON field '$lookup.more' is an unknown field.`},
		{"8.2", doc, lookup(`"from": {"db": 1, "coll": "c"}, "pipeline": [], "as": "j"`), `14: BSON field '$lookup.from.db' is the wrong type 'int', expected type 'string'`},
		{"8.2", doc, lookup(`"from": {"x": 1}, "pipeline": [], "as": "j"`), `40415: BSON field '$lookup.from.x' is an unknown field.`},
		{"8.2", doc, lookup(`"from": {"db": "db", "coll": "c"}, "pipeline": [], "as": "j"`), `9: 'from' option to $lookup must be a string, but was type object`},
		{"8.2", doc, lookup(`"from": "c", "pipeline": [{"$documents": [{"x": 1}]}], "as": "j"`), `73: $lookup with a pipeline that begins with $documents may not specify 'from'`},
		{"8.0", doc, lookup(`"from": "c", "localField": 1, "foreignField": "a", "as": "j"`), `9: $lookup argument 'localField' must be a string, found localField: 1: int`},
		{"8.0", doc, lookup(`"from": "c", "pipeline": [], "let": null, "as": "j"`), `9: $lookup argument 'let: null' must be an object, is type null`},
		{"8.0", doc, lookup(`"from": "c", "pipeline": [{"$documents": [{"x": 1}]}], "as": "j"`), `{"_id":1,"n":1}`},

		// What $documents makes is matched as what is read of a collection.
		{"8.0", doc, lookup(`"localField": "a", "foreignField": "b", "pipeline": [{"$documents": [{"b": "x"}, {"b": "y"}, {"b": ["x", 1]}]}], "as": "j"`), `{"_id":1,"n":2}`},

		// The fields of a DBRef.
		{"8.2", doc, lookup(`"from": "c", "localField": "r.$id", "foreignField": "_id", "as": "j"`), `{"_id":1,"n":1}`},
		{"8.2", doc, staged(`{"$project": {"_id": "$r.$ref"}}`), `{"_id":"c"}`},
		{"8.2", doc, staged(`{"$project": {"_id": "$r.$other"}}`), `16410: Invalid $project :: caused by :: FieldPath field names may not start with '$'. Consider using $getField or $setField.`},
		{"8.0", doc, lookup(`"from": "c", "localField": "r.$id", "foreignField": "_id", "as": "j"`), `16410: FieldPath field names may not start with '$'. Consider using $getField or $setField.`},

		// A stage that $facet does not have is in no pipeline below it.
		{"8.2", doc, within(`{"$match": {}}`), `{"f":[{"_id":1}]}`},
		{"8.2", doc, within(`{"$collStats": {}}`), `40600: $collStats is not allowed to be used within a $facet stage`},
		{"8.2", doc, within(`{"$facet": {"g": []}}`), `40600: $facet is not allowed to be used within a $facet stage`},
		{"8.2", doc, within(`{"$unionWith": {"coll": "c", "pipeline": [{"$indexStats": {}}]}}`), `40600: $indexStats is not allowed to be used within a $facet stage`},
		{"8.2", doc, staged(`{"$facet": {"f": [{"$match": {}}, {"$planCacheStats": {}}]}}`), `40600: $planCacheStats is not allowed to be used within a $facet stage`},
		{"8.0", doc, within(`{"$facet": {"g": []}}`), `{"f":[{"_id":1}]}`},

		{"8.2", doc, staged(`{"$project": {"_id": {"$add": [1, 2]}, "a": 0}}`), `31254: Invalid $project :: caused by :: Cannot do exclusion on field a in inclusion projection`},
		{"8.2", doc, staged(`{"$bucket": {"groupBy": "$a", "boundaries": [0, 1], "output": {"_id": {"$sum": 1}}}}`), `15948: a group's _id may only be specified once`},

		{"8.2", doc, staged(`{"$merge": {"into": ""}}`), `5786800: $merge 'into' may not be an empty string`},
		{"8.2", doc, staged(`{"$merge": {"into": {"coll": null}}}`), `5786801: $merge 'into.coll' may not be null or undefined`},
		{"8.0", doc, staged(`{"$merge": {"into": ""}}`), `73: Collection names cannot start with '.'`},
	}
	askSiblings(t, list)
}

// TestMergeNulls merges documents without the fields of on, or with null in them, into collections
// whose unique index has such documents, and whose has not.
func TestMergeNulls(t *testing.T) {
	const refused = "PlanExecutor error during aggregation :: caused by :: $merge write error: 'on' field 'k' cannot be missing, null, undefined or an array"
	for _, test := range []struct{ version, index, docs, into, matched, want string }{
		{"8.2", `"unique": true`, `[{"_id": 1, "k": null, "v": 1}]`, `[{"_id": 1, "old": true}]`, "merge", `{"_id":1,"old":true,"k":null,"v":1}`},
		{"8.2", `"unique": true`, `[{"_id": 1, "v": 1}]`, `[{"_id": 1, "k": null, "old": true}]`, "merge", `{"_id":1,"k":null,"old":true,"v":1}`},
		{"8.2", `"unique": true`, `[{"_id": 2, "v": 1}]`, `[{"_id": 1, "k": 1}]`, "merge", `{"_id":1,"k":1} {"_id":2,"k":null,"v":1}`},
		{"8.2", `"unique": true`, `[{"_id": 2, "v": 1}]`, `[{"_id": 1, "k": 1}]`, "replace", `{"_id":1,"k":1} {"_id":2,"v":1}`},
		{"8.2", `"unique": true, "sparse": true`, `[{"_id": 1, "k": null}]`, `[{"_id": 1}]`, "merge", "51132: " + refused},
		{"8.0", `"unique": true`, `[{"_id": 1, "k": null}]`, `[{"_id": 1}]`, "merge", "51132: " + refused},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(test.version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "src", "documents": `+test.docs+`}`))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": `+test.into+`}`))
		ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k", `+test.index+`}]}`))
		got := errorOf(askText(t, c, "db", `{"aggregate": "src", "cursor": {}, "pipeline": [{"$merge": {"into": {"db": "db", "coll": "c"}, "on": "k", "whenMatched": "`+test.matched+`"}}]}`))
		if got == "ok" {
			got = batchOf(t, askText(t, c, "db", `{"find": "c", "sort": {"_id": 1}}`))
		}
		if got != test.want {
			t.Errorf("%s %s: %s into %s\ngot  %s\nwant %s", test.version, test.index, test.docs, test.into, got, test.want)
		}
	}
}

// TestLargeResult: a result that is larger than a document may be is no document of a reply.
func TestLargeResult(t *testing.T) {
	for _, version := range []string{"4.4", "8.2"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"s": "`+strings.Repeat("x", 9<<20)+`"}]}`))
		for stage, want := range map[string]string{
			`{"$project": {"_id": 0, "a": ["$s"]}}`:        "ok",
			`{"$project": {"_id": 0, "a": ["$s", "$s"]}}`:  "10334: BSONObj size: ",
			`{"$facet": {"a": [], "b": [{"$match": {}}]}}`: "10334: BSONObj size: ",
		} {
			if got := errorOf(askText(t, c, "db", staged(stage))); !strings.HasPrefix(got, want) {
				t.Errorf("%s %s: %.200s, want %s", version, stage, got, want)
			}
		}
	}
}
