package mongotest_test

import (
	"testing"

	"allium/bson"
	"allium/mongotest"
)

func extJSON(t testing.TB, text string) bson.Raw {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

// TestCommands runs commands of newer servers than the recordings have, and looks at single fields
// of the replies.
func TestCommands(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.0"))
	c := dial(t, d.Hosts()[0])
	for _, step := range []struct {
		command string
		path    []string
		want    string
	}{
		{`{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"_id": 1, "a": 1}}, {"insert": 0, "document": {"_id": 1}}, {"insert": 0, "document": {"_id": 2}}],
			"nsInfo": [{"ns": "t.c"}], "ordered": false, "$db": "admin"}`, []string{"cursor", "firstBatch", "1", "code"}, `{"v": 11000}`},
		{`{"bulkWrite": 1, "ops": [{"update": 0, "filter": {"_id": 9}, "updateMods": {"$set": {"a": 5}}, "upsert": true}, {"delete": 0, "filter": {"_id": 2}}],
			"nsInfo": [{"ns": "t.c"}], "$db": "admin"}`, []string{"cursor", "firstBatch", "0", "upserted", "_id"}, `{"v": 9}`},
		{`{"count": "c", "$db": "t"}`, []string{"n"}, `{"v": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}], "$db": "t"}`, []string{"numIndexesAfter"}, `{"v": 2}`},
		{`{"explain": {"find": "c", "filter": {"a": {"$gt": 1}}}, "verbosity": "queryPlanner", "$db": "t"}`,
			[]string{"queryPlanner", "winningPlan", "inputStage", "stage"}, `{"v": "IXSCAN"}`},
		{`{"explain": {"find": "c", "filter": {"a": {"$gt": 1}}}, "$db": "t"}`, []string{"executionStats", "totalDocsExamined"}, `{"v": 1}`},
		{`{"explain": {"find": "c", "filter": {"b": 1}}, "$db": "t"}`, []string{"queryPlanner", "winningPlan", "stage"}, `{"v": "COLLSCAN"}`},
		{`{"renameCollection": "t.c", "to": "t.d", "$db": "admin"}`, []string{"ok"}, `{"v": 1.0}`},
		{`{"count": "d", "$db": "t"}`, []string{"n"}, `{"v": 2}`},
	} {
		reply := command(t, c, extJSON(t, step.command))
		if got, want := reply.Lookup(step.path...), extJSON(t, step.want).Lookup("v"); !got.Equal(want) {
			t.Errorf("%s: %v is %v: %s", step.command, step.path, got, reply)
		}
	}
}
