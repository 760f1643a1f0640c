package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// From 8.0 on the documents of an insert are one entry of the oplog, but for those that are
// inserted one by one: where one fails, and in a capped collection.
func TestOplogOfInserts(t *testing.T) {
	const session = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAg==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}`
	for _, test := range []struct{ version, insert, want string }{
		{"7.0", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}`, "i i"},
		{"8.0", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}`, "c[1 2]"},
		{"8.0", `{"insert": "c", "documents": [{"_id": 1}]}`, "i"},
		{"8.0", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 1}, {"_id": 2}], "ordered": false}`, "i i"},
		{"8.0", `{"insert": "capped", "documents": [{"_id": 1}, {"_id": 2}]}`, "i i"},
		{"8.0", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], ` + session + `}`, "c[1/0 2/1]"},
		{"9.0", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`, "c[1 2 3]"},
	} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(test.version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"create": "c"}`))
		ok(t, askText(t, c, "db", `{"create": "capped", "capped": true, "size": 4096}`))
		inserted := askText(t, c, "db", test.insert)
		reply := ok(t, askText(t, c, "local", `{"find": "oplog.rs", "filter": {"$or": [{"op": "i", "ns": {"$in": ["db.c", "db.capped"]}}, {"o.applyOps.ns": {"$in": ["db.c", "db.capped"]}}]}}`))
		batch, _ := reply.Lookup("cursor", "firstBatch").Array()
		var entries []string
		last := bson.Raw{}
		for v := range batch.Values() {
			last = bson.Raw(v.Value)
			op, _ := last.Lookup("op").StringValue()
			list, several := last.Lookup("o", "applyOps").Array()
			if !several {
				entries = append(entries, op)
				continue
			}
			var ids []string
			for inner := range list.Values() {
				doc := bson.Raw(inner.Value)
				id := fmt.Sprint(doc.Lookup("o", "_id"))
				if s := doc.Lookup("stmtId"); s.Type != 0 {
					id += "/" + fmt.Sprint(s)
				}
				if doc.Lookup("o2", "_id").String() != doc.Lookup("o", "_id").String() || doc.Lookup("ui").Type != bson.TypeBinary {
					t.Errorf("%s: %s", test.version, doc)
				}
				ids = append(ids, id)
			}
			entries = append(entries, op+"["+strings.Join(ids, " ")+"]")
			if n, _ := last.Lookup("multiOpType").AsInt64(); n != 1 || (last.Lookup("lsid").Type != 0) != strings.Contains(test.insert, "lsid") {
				t.Errorf("%s: %s", test.version, last)
			}
		}
		if got := strings.Join(entries, " "); got != test.want {
			t.Errorf("%s: %s: the oplog has %s, want %s", test.version, test.insert, got, test.want)
		}
		if ts, now := last.Lookup("ts").String(), inserted.Lookup("operationTime").String(); ts != now {
			t.Errorf("%s: %s: the last entry is of %s, and the command of %s", test.version, test.insert, ts, now)
		}
		if !strings.HasPrefix(test.want, "c") {
			continue
		}
		// What a restore does with it.
		ok(t, askText(t, c, "db", `{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}`))
		ok(t, askText(t, c, "admin", `{"applyOps": [`+last.String()+`]}`))
		if n := ok(t, askText(t, c, "db", `{"count": "c"}`)).Lookup("n").String(); n != fmt.Sprint(strings.Count(test.want, " ")+1) {
			t.Errorf("%s: %s documents were restored of %s", test.version, n, last)
		}
	}
}
