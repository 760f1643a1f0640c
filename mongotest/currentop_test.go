package mongotest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// TestCurrentOpOfCommands: currentOp shows of a getMore the cursor that it works on, and of a long
// command its beginning, if it is asked to.
func TestCurrentOpOfCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2"), mongotest.InMemory())
		c, other := dialNode(t, d, d.Node(0)), dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`))
		during := func(cmd, spec, match string) bson.Raw {
			t.Helper()
			done := make(chan bson.Raw)
			go func() { done <- askText(t, other, "db", cmd) }()
			time.Sleep(time.Second)
			reply := ok(t, askText(t, c, "admin", `{"aggregate": 1, "pipeline": [{"$currentOp": `+spec+`}, {"$match": `+match+`}], "cursor": {}}`))
			ok(t, <-done)
			op, _ := reply.Lookup("cursor", "firstBatch", "0").Document()
			return op
		}
		const slow = `{"$where": "sleep(3000) || true"}`
		id, _ := ok(t, askText(t, other, "db", `{"find": "c", "filter": `+slow+`, "batchSize": 1}`)).Lookup("cursor", "id").AsInt64()
		getMore := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1}}
		raw, err := bson.Marshal(getMore)
		if err != nil {
			t.Fatal(err)
		}
		op := during(bson.Raw(raw).String(), `{}`, `{"op": "getmore"}`)
		if got, _ := op.Lookup("cursor", "cursorId").AsInt64(); got != id {
			t.Errorf("a getMore: %v", op)
		}
		if op.Lookup("cursor", "operationUsingCursorId").String() != op.Lookup("opid").String() || op.Lookup("ns").String() != `"db.c"` ||
			op.Lookup("cursor", "nDocsReturned").String() != "1" || op.Lookup("cursor", "originatingCommand", "find").String() != `"c"` {
			t.Errorf("a getMore: %v", op)
		}

		long := `{"find": "c", "limit": 1, "filter": {"$where": "sleep(3000) || true` + strings.Repeat(" || true", 300) + `"}, "comment": "note"}`
		for _, q := range []struct {
			spec string
			cut  bool
		}{{`{"truncateOps": true}`, true}, {`{}`, false}} {
			op := during(long, q.spec, `{"op": "query"}`)
			text, cut := op.Lookup("command", "$truncated").StringValue()
			if cut != q.cut || cut && (!strings.HasPrefix(text, `{ find: "c"`) || strings.Contains(text, "note") || len(text) > 1100) {
				t.Errorf("%s: %v", q.spec, op.Lookup("command"))
			}
			if got := op.Lookup("command", "comment").String(); got != `"note"` {
				t.Errorf("%s: the comment is %s", q.spec, got)
			}
		}
		if op := during(`{"find": "c", "limit": 1, "filter": `+slow+`}`, `{"truncateOps": true}`, `{"op": "query"}`); op.Lookup("command", "find").IsZero() {
			t.Errorf("a short command: %v", op)
		}
	})
}
