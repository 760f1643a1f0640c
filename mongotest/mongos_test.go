package mongotest_test

import (
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// What a mongos reads of a command itself, and how it words what a shard says to the rest.
func TestMongosArguments(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("4.4.0"), mongotest.InMemory(), mongotest.NoScripting())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "x": "a"}]}`))
	const constants = `{"localNow": {"$date": {"$numberLong": "1"}}, "clusterTime": {"$timestamp": {"t": 1, "i": 1}}}`
	for _, test := range []struct{ cmd, want string }{
		{`{"distinct": "c", "key": "x", "query": 1}`, "14: Illegal type specified for query query: 1"},
		{`{"distinct": "c", "key": "x", "query": null}`, "ok"},
		{`{"distinct": "c", "key": "x", "collation": null}`, "14: Illegal type specified for collation collation: null"},
		{`{"findAndModify": "c", "remove": true, "writeConcern": 1}`, `14: "writeConcern" had the wrong type. Expected object, found int`},
		{`{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}], "writeConcern": 1}`, "10065: invalid parameter: expected an object (writeConcern)"},
		{`{"find": "c", "runtimeConstants": ` + constants + `}`, "51202: Cannot specify runtime constants option to a mongos"},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "runtimeConstants": ` + constants + `}`, "51143: Cannot specify runtime constants option to a mongos"},
		{`{"update": "c", "updates": [{"q": {}, "u": {}}], "runtimeConstants": ` + constants + `}`, "51195: Cannot specify runtime constants option to a mongos"},
		{`{"findAndModify": "c", "remove": true, "runtimeConstants": 1}`, "51196: Cannot specify runtime constants option to a mongos"},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "fromMongos": true}`, "51089: Internal parameter(s) [needsMerge, fromMongos] cannot be set to 'true' when sent to mongos"},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "fromMongos": false}`, "ok"},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "exchange": {"policy": "roundrobin", "consumers": 1}}`, "51028: Cannot specify exchange option to a mongos"},
		{`{"aggregate": "c", "pipeline": [{"$nosuch": 1}], "cursor": {}, "readConcern": {"level": "nosuch"}}`, "40324: Unrecognized pipeline stage name: '$nosuch'"},
		{`{"find": "c", "filter": {"$expr": {"$abs": "$x"}}}`, "28765: Encountered non-retryable error during query :: caused by :: $abs only supports numeric types, not string"},
		{`{"find": "c", "filter": {"$nosuch": 1}}`, "2: unknown top level operator: $nosuch"},
		{`{"dropDatabase": 2}`, "2: have to pass 1 as db parameter"},
		{`{"distinct": 1, "key": "x"}`, "73: collection name has invalid type int"},
	} {
		if got := errorOf(askText(t, c, "db", test.cmd)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.cmd, got, test.want)
		}
	}
	for _, cmd := range []string{`{"listIndexes": 1}`, `{"collMod": 1}`, `{"createIndexes": 1, "indexes": []}`, `{"dropIndexes": 1}`} {
		reply := askText(t, c, "missing", cmd)
		if got := errorOf(reply); got != "73: collection name has invalid type int" || !reply.Lookup("raw").IsZero() {
			t.Errorf("%s: %s", cmd, reply)
		}
	}
	if got, want := errorOf(askText(t, c, "admin", `{"dropDatabase": 1}`)), "20: Cannot drop the admin database"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, cmd := range []string{`{"count": "c", "query": {"$nosuch": 1}}`, `{"count": "c", "collation": {"a": 1}}`} {
		got := errorOf(askText(t, c, "db", cmd))
		a, b := "2: failed on: sh0 :: caused by :: unknown top level operator: $nosuch", `4: failed on: sh0 :: caused by :: Missing expected field "locale"`
		if at1 := func(s string) string { return s[:len("2: failed on: sh")] + "1" + s[len("2: failed on: sh0"):] }; got != a && got != b && got != at1(a) && got != at1(b) {
			t.Errorf("%s: %s", cmd, got)
		}
	}
}

// How a transaction ends whose only command failed depends on whether a shard has heard of it.
func TestMongosTransactionFailsEarly(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("4.4.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"create": "c"}`))
	number := int64(0)
	for _, test := range []struct{ cmd, fails, commit string }{
		{`{"find": "c", "nosuch": 1, `, "9:", "ok"},
		{`{"find": "c", "filter": {"$nosuch": 1}, `, "2:", "ok"},
		{`{"getMore": 1, "collection": "c", `, "14:", "ok"},
		{`{"aggregate": "c", "pipeline": [{"$nosuch": 1}], "cursor": {}, `, "40324:", "50940:"},
		{`{"find": "system.views", `, "51071: Encountered non-retryable error during query :: caused by ::", "251:"},
		{`{"create": "c", `, "48:", "251:"},
	} {
		number++
		txn := `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "` + string(rune('0'+number)) + `"}, "autocommit": false`
		for _, step := range []struct {
			db, cmd, want string
		}{{"db", test.cmd + txn + `, "startTransaction": true}`, test.fails}, {"admin", `{"commitTransaction": 1, ` + txn + `}`, test.commit}} {
			var reply bson.Raw = askText(t, c, step.db, step.cmd)
			if got := errorOf(reply); len(got) < len(step.want) || got[:len(step.want)] != step.want {
				t.Errorf("%s\ngot  %s\nwant %s", step.cmd, got, step.want)
			}
		}
	}
}
