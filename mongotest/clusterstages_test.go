package mongotest_test

import (
	"net"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// batchText runs a pipeline on a database and returns its documents as texts.
func batchText(t *testing.T, c net.Conn, db, pipeline string) string {
	t.Helper()
	r := askText(t, c, db, `{"aggregate": 1, "pipeline": [`+pipeline+`], "cursor": {}}`)
	if !r.Lookup("ok").AsBool() {
		return errorOf(r)
	}
	return r.Lookup("cursor", "firstBatch").String()
}

func TestListClusterCatalog(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.Sharded(2, 1), mongotest.Version("8.2"))
	c := dialHost(t, d)
	for _, step := range []string{
		`a {"create": "plain"}`, `a {"create": "view", "viewOn": "plain"}`, `a {"create": "capped", "capped": true, "size": 4096}`,
		`b {"create": "keyed"}`, `b {"create": "series", "timeseries": {"timeField": "t"}}`,
		`admin {"shardCollection": "b.keyed", "key": {"x": "hashed"}}`,
	} {
		db, cmd, _ := strings.Cut(step, " ")
		ok(t, askText(t, c, db, cmd))
	}
	const brief = `, {"$match": {"db": {"$in": ["a", "b"]}, "ns": {"$ne": "a.system.views"}}}, {"$sort": {"ns": 1}}, {"$project": {"_id": 0, "info": 0, "idIndex": 0, "db": 0}}`
	for _, tt := range []struct{ db, pipeline, want string }{
		{"a", `{"$listClusterCatalog": {}}` + brief,
			`[{"ns":"a.capped","type":"collection","options":{"capped":true,"size":4096},"sharded":false},` +
				`{"ns":"a.plain","type":"collection","options":{},"sharded":false},` +
				`{"ns":"a.view","type":"view","options":{"viewOn":"plain","pipeline":[]},"sharded":false}]`},
		{"b", `{"$listClusterCatalog": {"shards": true, "balancingConfiguration": true}}` + brief + `, {"$project": {"options": 0}}`,
			`[{"ns":"b.keyed","type":"collection","sharded":true,"shardKey":{"x":"hashed"},"shards":["sh0","sh1"],"balancingEnabled":true,` +
				`"balancingEnabledReason":{"enableBalancing":true,"allowMigrations":true},"autoMergingEnabled":true,"chunkSize":128},` +
				`{"ns":"b.series","type":"timeseries","sharded":false,"shards":["sh1"]}]`},
		{"admin", `{"$listClusterCatalog": {}}` + brief + `, {"$group": {"_id": null, "n": {"$sum": 1}}}`, `[{"_id":null,"n":5}]`},
		{"none", `{"$listClusterCatalog": {}}`, `[]`},
		{"a", `{"$listClusterCatalog": 1}`, "9621302: The $listClusterCatalog stage specification must be an object. Found: int"},
		{"a", `{"$listClusterCatalog": {"shards": 1}}`,
			"14: BSON field '$listClusterCatalog.shards' is the wrong type 'int', expected type 'bool'"},
		{"a", `{"$listClusterCatalog": {"x": 1}}`, "40415: BSON field '$listClusterCatalog.x' is an unknown field."},
		{"a", `{"$listClusterCatalog": {}}, {"$listClusterCatalog": {}}`, "40602: $listClusterCatalog is only valid as the first stage in a pipeline"},
	} {
		if got := batchText(t, c, tt.db, tt.pipeline); got != tt.want {
			t.Errorf("%s: %s:\n%s, want\n%s", tt.db, tt.pipeline, got, tt.want)
		}
	}
	r := askText(t, c, "a", `{"aggregate": "plain", "pipeline": [{"$listClusterCatalog": {}}], "cursor": {}}`)
	if e := errorOf(r); !strings.HasPrefix(e, "9621301:") {
		t.Errorf("on a collection: %s", e)
	}
}

// TestDataDistribution follows a chunk that moves: its documents are orphans where they were.
func TestDataDistribution(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.Sharded(2, 1))
	c := dialHost(t, d)
	for _, step := range []string{
		`admin {"enableSharding": "db", "primaryShard": "sh0"}`,
		`admin {"shardCollection": "db.c", "key": {"x": 1}}`,
		`admin {"split": "db.c", "middle": {"x": 10}}`,
		`db {"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 10}, {"_id": 3, "x": 11}]}`,
	} {
		db, cmd, _ := strings.Cut(step, " ")
		ok(t, askText(t, c, db, cmd))
	}
	at := func() string {
		return batchText(t, c, "admin", `{"$shardedDataDistribution": {}}, {"$match": {"ns": "db.c"}}`)
	}
	size := len(doc(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "x", Value: int32(1)}}))
	if size != 21 {
		t.Fatalf("a document has %d bytes", size)
	}
	const before = `[{"ns":"db.c","shards":[{"shardName":"sh0","numOrphanedDocs":0,"numOwnedDocuments":3,"ownedSizeBytes":63,"orphanedSizeBytes":0}]}]`
	if got := at(); got != before {
		t.Errorf("%s, want %s", got, before)
	}
	ok(t, askText(t, c, "admin", `{"moveChunk": "db.c", "find": {"x": 10}, "to": "sh1"}`))
	const after = `[{"ns":"db.c","shards":[{"shardName":"sh0","numOrphanedDocs":2,"numOwnedDocuments":1,"ownedSizeBytes":21,"orphanedSizeBytes":42},` +
		`{"shardName":"sh1","numOrphanedDocs":0,"numOwnedDocuments":2,"ownedSizeBytes":42,"orphanedSizeBytes":0}]}]`
	if got := at(); got != after {
		t.Errorf("%s, want %s", got, after)
	}
	if got := batchText(t, c, "db", `{"$shardedDataDistribution": {}}`); !strings.HasPrefix(got, "73:") {
		t.Errorf("on another database: %s", got)
	}
	one := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(1))
	if got := batchText(t, dialHost(t, one), "admin", `{"$shardedDataDistribution": {}}`); !strings.HasPrefix(got, "20:") {
		t.Errorf("on a replica set: %s", got)
	}
}
