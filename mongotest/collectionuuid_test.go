package mongotest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// TestCollectionUUID: a command that says which UUID its collection has does nothing to another
// one, and the error tells which collection has it.
func TestCollectionUUID(t *testing.T) {
	const other = `{"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}`
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for _, name := range []string{"c", "b"} {
		ok(t, askText(t, c, "db", `{"insert": "`+name+`", "documents": [{"_id": 1}]}`))
	}
	ok(t, askText(t, c, "db", `{"create": "v", "viewOn": "c"}`))
	uuidOf := func(name string) string {
		reply := ok(t, askText(t, c, "db", `{"listCollections": 1, "filter": {"name": "`+name+`"}}`))
		return reply.Lookup("cursor", "firstBatch", "0", "info", "uuid").String()
	}
	own, sibling := uuidOf("c"), uuidOf("b")
	for _, cmd := range []string{
		`{"aggregate": "c", "pipeline": [], "cursor": {}, "collectionUUID": UUID}`,
		`{"aggregate": "v", "pipeline": [], "cursor": {}, "collectionUUID": UUID}`,
		`{"count": "c", "collectionUUID": UUID}`,
		`{"distinct": "c", "key": "_id", "collectionUUID": UUID}`,
		`{"insert": "c", "documents": [{"_id": 2}], "collectionUUID": UUID}`,
		`{"insert": "new", "documents": [{"_id": 2}], "collectionUUID": UUID}`,
		`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}], "collectionUUID": UUID}`,
		`{"update": "new", "updates": [{"q": {}, "u": {"$set": {"x": 1}}, "upsert": true}], "collectionUUID": UUID}`,
		`{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "collectionUUID": UUID}`,
		`{"bulkWrite": 1, "ops": [{"insert": 0, "document": {"_id": 2}}], "nsInfo": [{"ns": "db.c", "collectionUUID": UUID}]}`,
		`{"bulkWrite": 1, "ops": [{"update": 0, "filter": {}, "updateMods": {"$set": {"x": 1}}}], "nsInfo": [{"ns": "db.c", "collectionUUID": UUID}]}`,
		`{"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}], "nsInfo": [{"ns": "db.c", "collectionUUID": UUID}]}`,
	} {
		db, name := "db", "c"
		switch {
		case strings.Contains(cmd, "bulkWrite"):
			db = "admin"
		case strings.Contains(cmd, `"new"`):
			name = "new"
		case strings.Contains(cmd, `"v"`):
			name = "v"
		}
		ask := func(uuid string) bson.Raw {
			reply := askText(t, c, db, strings.ReplaceAll(cmd, "UUID}", uuid+"}"))
			for _, path := range [][]string{{"writeErrors", "0"}, {"cursor", "firstBatch", "0"}} {
				if e, isDoc := reply.Lookup(path...).Document(); isDoc && e.Lookup("code").Type != 0 {
					return e
				}
			}
			return reply
		}
		before := askText(t, c, "db", `{"dbHash": 1}`).Lookup("md5").String()
		for uuid, actual := range map[string]string{other: "null", sibling: `"b"`} {
			e := ask(uuid)
			if got := errorOf(e); got != "361: Collection UUID does not match that specified" {
				t.Errorf("%s: %s", cmd, got)
			}
			for path, want := range map[string]string{"db": `"db"`, "expectedCollection": `"` + name + `"`, "actualCollection": actual} {
				if got := e.Lookup(path).String(); got != want {
					t.Errorf("%s: %s is %s, not %s", cmd, path, got, want)
				}
			}
		}
		if askText(t, c, "db", `{"dbHash": 1}`).Lookup("md5").String() != before {
			t.Errorf("%s has written", cmd)
		}
		if name == "c" {
			if got := errorOf(ask(own)); got != "ok" {
				t.Errorf("%s with the right UUID: %s", cmd, got)
			}
		}
		if got, old := errorOf(ask("1")), "is the wrong type 'int', expected type 'binData'"; !strings.HasSuffix(got, old) {
			t.Errorf("%s with a number: %s", cmd, got)
		}
	}
}

// TestDefaultMaxTime: the cluster parameter limits reads without a limit of their own, and no
// writes.
func TestDefaultMaxTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.0"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}]}`))
		slow := func(cmd string) string {
			start := time.Now()
			got := errorOf(askText(t, c, "db", cmd))
			if took := time.Since(start); got != "ok" && took > 3*time.Second {
				t.Errorf("%s took %v", cmd, took)
			}
			return got
		}
		const expr = `{"$expr": {"$function": {"body": "function() { sleep(2000); return true }", "args": [], "lang": "js"}}}`
		reads := []string{
			`{"find": "c", "filter": ` + expr + `}`,
			`{"count": "c", "query": ` + expr + `}`,
			`{"distinct": "c", "key": "_id", "query": ` + expr + `}`,
			`{"aggregate": "c", "pipeline": [{"$match": ` + expr + `}], "cursor": {}}`,
		}
		// A write that sleeps would hold the store's lock, on which no bubble sees it wait.
		others := []string{
			`{"aggregate": "c", "pipeline": [{"$match": ` + expr + `}, {"$out": "d"}], "cursor": {}}`,
			`{"find": "c", "filter": ` + expr + `, "maxTimeMS": 10000}`,
		}
		for _, cmd := range append(reads, others...) {
			if got := slow(cmd); got != "ok" {
				t.Errorf("without a default: %s: %s", cmd, got)
			}
		}
		ok(t, askText(t, c, "admin", `{"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": 1000}}}`))
		for _, cmd := range reads {
			if got := slow(cmd); !strings.HasPrefix(got, "50: ") {
				t.Errorf("with a default: %s: %s", cmd, got)
			}
		}
		for _, cmd := range others {
			if got := slow(cmd); got != "ok" {
				t.Errorf("with a default: %s: %s", cmd, got)
			}
		}
	})
}

// TestDefaultMaxTimeOfWrites: the default is for reads. There is no bubble around it, since whoever
// waits for a write that sleeps would hold its clock.
func TestDefaultMaxTimeOfWrites(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}]}`))
	ok(t, askText(t, c, "admin", `{"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": 1}}}`))
	const expr = `{"$expr": {"$function": {"body": "function() { sleep(20); return true }", "args": [], "lang": "js"}}}`
	reply := ok(t, askText(t, c, "db", `{"update": "c", "updates": [{"q": `+expr+`, "u": {"$set": {"x": 1}}}]}`))
	if n, _ := reply.Lookup("nModified").Int32(); n != 1 {
		t.Errorf("%s", reply)
	}
}

// TestClusterParameterTime: a parameter that was set says when, and each time is later.
func TestClusterParameterTime(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	get := func() bson.Timestamp {
		reply := ok(t, askText(t, c, "admin", `{"getClusterParameter": "defaultMaxTimeMS"}`))
		at, _ := reply.Lookup("clusterParameters", "0", "clusterParameterTime").Timestamp()
		return at
	}
	last := get()
	if last != (bson.Timestamp{}) {
		t.Errorf("a default was set at %v", last)
	}
	for range 3 {
		ok(t, askText(t, c, "admin", `{"setClusterParameter": {"defaultMaxTimeMS": {"readOperations": 1}}}`))
		at := get()
		if at.Compare(last) <= 0 {
			t.Errorf("%v is not after %v", at, last)
		}
		last = at
	}
}
