package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

// What outlives its request is copied: a message is not kept for the sake of the little of it that
// a cursor, a session, a transaction, the change log or the catalogue remembers. Each command comes
// with a comment of a megabyte.
func TestRequestsAreNotKept(t *testing.T) {
	norace.Skip(t, "it sends comments of a megabyte and measures what is kept")
	large := strings.Repeat("x", 1<<20)
	const lsid = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAA%02dAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}`
	for name, text := range map[string]string{
		"find":                    `{"find": "small", "batchSize": 1}`,
		"aggregate":               `{"aggregate": "small", "pipeline": [{"$match": {"x": {"$ne": %d}}}], "cursor": {"batchSize": 0}}`,
		"watch":                   `{"aggregate": "small", "pipeline": [{"$changeStream": {}}], "cursor": {}}`,
		"insert":                  `{"insert": "c", "documents": [{"_id": %d}]}`,
		"update":                  `{"update": "c", "updates": [{"q": {"_id": %d}, "u": {"$set": {"x": 1}}, "upsert": true}]}`,
		"pipeline update":         `{"update": "c", "updates": [{"q": {"_id": %d}, "u": [{"$set": {"x": 1}}], "upsert": true}]}`,
		"retryable insert":        `{"insert": "c", "documents": [{"_id": %d}], ` + lsid + `}`,
		"retryable findAndModify": `{"findAndModify": "c", "query": {"_id": %d}, "update": {"$set": {"x": 1}}, "upsert": true, ` + lsid + `}`,
		"transaction":             `{"insert": "other", "documents": [{"_id": %d}], ` + lsid + `, "autocommit": false, "startTransaction": true}`,
		"create":                  `{"create": "coll%d", "validator": {"x": {"$exists": false}}}`,
		"view":                    `{"create": "view%d", "viewOn": "small", "pipeline": [{"$match": {"x": 1}}]}`,
		"createIndexes":           `{"createIndexes": "small", "indexes": [{"key": {"k%d": 1}, "name": "k%[1]d", "partialFilterExpression": {"x": 1}}]}`,
		"collMod":                 `{"collMod": "small", "validator": {"x": {"$ne": %d}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("7.0"))
			c := dial(t, d.Hosts()[0])
			for _, coll := range []string{"small", "other"} {
				ok(t, command(t, c, extJSON(t, `{"insert": "`+coll+`", "documents": [{"_id": -1}, {"_id": -2}], "$db": "db"}`)))
			}
			send := func(i int) {
				text := text
				switch n := strings.Count(text, "%"); {
				case n == 1, strings.Contains(text, "%[1]d"):
					text = fmt.Sprintf(text, i)
				case n == 2:
					text = fmt.Sprintf(text, i, i)
				}
				var cmd bson.D
				if err := bson.UnmarshalExtJSON([]byte(text), &cmd); err != nil {
					t.Fatal(err)
				}
				ok(t, run(t, c, append(cmd, bson.E{Key: "comment", Value: large}, bson.E{Key: "$db", Value: "db"})))
			}
			send(10) // the connection has its buffers from now on
			before := liveHeap()
			for i := range 20 {
				send(11 + i)
			}
			if used := liveHeap() - before; used > 2<<20 {
				t.Errorf("%d kB of 20 MB are kept", used>>10)
			}
		})
	}
}
