package mongotest_test

import (
	"fmt"
	"testing"

	"allium/mongotest"
)

// operatorSteps runs commands against what answered the recordings: a standalone 4.4.0.
func operatorSteps(t *testing.T, steps []mendStep) {
	t.Helper()
	mendSteps(t, steps, mongotest.Standalone(), mongotest.Version("4.4.0"))
}

// $project and find have one parser: errors show a path as it was written, below the document that
// it stands in, and come in one order.
func TestProjectionPaths(t *testing.T) {
	project := func(spec string) string {
		return `{"aggregate": "c", "pipeline": [{"$project": ` + spec + `}], "cursor": {}, "$db": "t"}`
	}
	find := func(spec string) string { return `{"find": "c", "projection": ` + spec + `, "$db": "t"}` }
	for _, c := range []struct {
		spec string
		code int64
		text string
	}{
		{`{"o": {"r": 1, "r": 1}}`, 31250, "Path collision at r"},
		{`{"o": {"r": 1}, "o.r": {"x": 1}}`, 31250, "Path collision at o.r"},
		{`{"o": "$a", "o.r": {"x": 1}}`, 31249, "Path collision at o.r remaining portion r"},
		{`{"b.c": 1, "b.c.d.e": 1}`, 31249, "Path collision at b.c.d.e remaining portion c.d.e"},
		{`{"b": 1, "o": {"y": 0}}`, 31254, "Cannot do exclusion on field y in inclusion projection"},
		{`{"b": 0, "o": {"x": 1}}`, 31253, "Cannot do inclusion on field x in exclusion projection"},
		{`{"b": 0, "a": {"$foo": 1}}`, 31252, "Cannot use expression other than $meta in exclusion projection"},
		{`{"a..b": {}}`, 51270, "An empty sub-projection is not a valid value. Found empty object at path"},
	} {
		operatorSteps(t, []mendStep{
			{cmd: find(c.spec), code: c.code, text: c.text},
			{cmd: project(c.spec), code: c.code, text: "Invalid $project :: caused by :: " + c.text},
		})
	}
}

// What is null in a stage's specification counts as missing, and no fraction passes for an integer.
func TestStageArguments(t *testing.T) {
	operatorSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": null}}], "cursor": {}, "$db": "t"}`,
			code: 40414, text: "BSON field '$unionWith.coll' is missing but a required field"},
		{cmd: `{"aggregate": "c", "pipeline": [{"$graphLookup": {"from": "c", "startWith": 1, "connectFromField": "a",
			"connectToField": "b", "as": "r", "maxDepth": {"$numberDecimal": "1.5"}}}], "cursor": {}, "$db": "t"}`,
			code: 40102, text: "maxDepth could not be represented as a long long"},
	})
}

// The parts of an update are applied in the order of their paths, and the first that fails says
// why: a $rename stands at its target.
func TestUpdateFailsInOrder(t *testing.T) {
	operatorSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1}], "$db": "t"}`},
		{cmd: `{"findAndModify": "c", "update": {"$mul": {"b.$": 1}, "$rename": {"a.1": "d"}}, "$db": "t"}`,
			code: 2, text: "The positional operator did not find the match needed from the query."},
		{cmd: `{"findAndModify": "c", "update": {"$mul": {"e.$": 1}, "$rename": {"a.1": "d"}}, "$db": "t"}`,
			code: 28, text: "cannot use the part (a of a.1) to traverse the element ({a: 1})"},
	})
}

// Twenty views may lie on top of each other, and all of them can be read.
func TestViewDepth(t *testing.T) {
	steps := []mendStep{{cmd: `{"insert": "v0", "documents": [{"_id": 1}], "$db": "t"}`}}
	for i := 1; i <= 20; i++ {
		steps = append(steps, mendStep{cmd: fmt.Sprintf(`{"create": "v%d", "viewOn": "v%d", "pipeline": [], "$db": "t"}`, i, i-1)})
	}
	operatorSteps(t, append(steps,
		mendStep{cmd: `{"find": "v20", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "1"}},
		mendStep{cmd: `{"create": "v21", "viewOn": "v20", "pipeline": [], "$db": "t"}`, code: 165,
			text: "View depth limit exceeded; maximum depth is 20"}))
}

// What a role may do with a resource is one privilege, whoever gave it a part of that. Mechanisms
// of a user are added with a password only.
func TestMergedPrivileges(t *testing.T) {
	const on = `"resource": {"db": "t", "collection": "c"}`
	operatorSteps(t, []mendStep{
		{cmd: `{"createRole": "a", "roles": [], "privileges": [{` + on + `, "actions": ["update", "find"]}, {` + on + `, "actions": ["insert"]}], "$db": "t"}`},
		{cmd: `{"rolesInfo": "a", "showPrivileges": true, "$db": "t"}`, want: map[string]string{
			"roles.0.privileges": `[{"resource":{"db":"t","collection":"c"},"actions":["find","insert","update"]}]`}},
		{cmd: `{"createRole": "b", "roles": ["a"], "privileges": [{` + on + `, "actions": ["remove"]}], "$db": "t"}`},
		{cmd: `{"rolesInfo": "b", "showPrivileges": true, "$db": "t"}`, want: map[string]string{
			"roles.0.privileges":          `[{"resource":{"db":"t","collection":"c"},"actions":["remove"]}]`,
			"roles.0.inheritedPrivileges": `[{"resource":{"db":"t","collection":"c"},"actions":["find","insert","remove","update"]}]`}},
		{cmd: `{"createUser": "u", "pwd": "p", "roles": ["a", "b"], "mechanisms": ["SCRAM-SHA-1"], "$db": "t"}`},
		{cmd: `{"usersInfo": "u", "showPrivileges": true, "$db": "t"}`, want: map[string]string{"users.0.inheritedPrivileges.1": ""}},
		{cmd: `{"updateUser": "u", "mechanisms": ["SCRAM-SHA-256"], "$db": "t"}`, code: 2,
			text: "mechanisms field must be a subset of previously set mechanisms"},
		{cmd: `{"updateUser": "u", "mechanisms": ["SCRAM-SHA-1", "SCRAM-SHA-256"], "pwd": "q", "$db": "t"}`},
		{cmd: `{"updateUser": "u", "mechanisms": ["SCRAM-SHA-256"], "$db": "t"}`},
	})
}
