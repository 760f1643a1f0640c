package mongotest_test

import (
	"fmt"
	"testing"

	"allium/mongotest"
)

// TestUpdatesCounted checks what serverStatus counts of writes: statements that ran, and updates by
// their kind.
func TestUpdatesCounted(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for _, command := range []string{
		`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}`,
		`{"insert": "c", "documents": [{"_id": 3}, {"_id": 3}, {"_id": 4}]}`,
		`{"insert": "c", "documents": [{"_id": 3}, {"_id": 3}, {"_id": 5}], "ordered": false}`,
		`{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"_id": 1}}}, {"q": {}, "u": {"$set": {"a": 1}}}]}`,
		`{"update": "c", "updates": [{"q": {}, "u": [{"$set": {"a": 1}}]}, {"q": {}, "u": {"$set": {"b.$[x]": 1}}, "arrayFilters": [{"x": 1}]}]}`,
		`{"delete": "c", "deletes": [{"q": {"$nosuch": 1}, "limit": 1}, {"q": {}, "limit": 1}]}`,
		`{"findAndModify": "c", "query": {"_id": 9}, "update": [{"$set": {"a": 1}}]}`,
	} {
		askText(t, c, "t", command)
	}
	status := ok(t, askText(t, c, "admin", `{"serverStatus": 1}`))
	for _, tt := range []struct {
		path []string
		want int64
	}{
		{[]string{"opcounters", "insert"}, 2 + 2 + 3},
		{[]string{"opcounters", "update"}, 1 + 2},
		{[]string{"opcounters", "delete"}, 1},
		{[]string{"metrics", "commands", "update", "pipeline"}, 1},
		{[]string{"metrics", "commands", "update", "arrayFilters"}, 1},
		{[]string{"metrics", "commands", "update", "total"}, 2},
		{[]string{"metrics", "commands", "findAndModify", "pipeline"}, 1},
		{[]string{"metrics", "commands", "findAndModify", "arrayFilters"}, 0},
	} {
		if n, isInt := status.Lookup(tt.path...).AsInt64(); !isInt || n != tt.want {
			t.Errorf("%v is %d, want %d", tt.path, n, tt.want)
		}
	}
	if status.Lookup("metrics", "commands", "insert", "pipeline").Type != 0 {
		t.Error("inserts have no pipelines")
	}
}

// TestSystemCollectionsInTransactions checks what a transaction may not do with collections of the
// server.
func TestSystemCollectionsInTransactions(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("5.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "t", `{"insert": "c", "documents": [{"_id": 1}]}`))
	const txn = `"lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}, "txnNumber": {"$numberLong": "%d"}, "autocommit": false, "startTransaction": true}`
	for i, tt := range []struct{ command, want string }{
		{`{"create": "system.js", `, `263: Cannot create system collection t.system.js within a transaction.`},
		{`{"createIndexes": "system.js", "indexes": [{"key": {"a": 1}, "name": "a"}], `, `263: Cannot create system collection t.system.js within a transaction.`},
		{`{"insert": "system.js", "documents": [{"_id": 1}], `, `50791: Cannot write to system collection t.system.js within a transaction.`},
		{`{"findAndModify": "system.js", "remove": true, `, `50781: Cannot write to system collection t.system.js within a transaction.`},
		{`{"find": "system.views", `, `51071: Cannot query system.views within a transaction`},
		{`{"find": "system.profile", `, `263: Cannot query system.profile within a transaction`},
	} {
		reply := askText(t, c, "t", tt.command+fmt.Sprintf(txn, i))
		if got := errorOf(reply); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}
