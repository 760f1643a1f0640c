package mongotest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// What somebody wants of the balancer for one collection is shown, and stays with it.
func TestCollectionBalancing(t *testing.T) {
	set := func(rest string) string {
		return `{"configureCollectionBalancing": "t.c"` + rest + `, "$db": "admin"}`
	}
	const status = `{"balancerCollectionStatus": "t.c", "$db": "admin"}`
	shown := func(fields map[string]string) mendStep {
		want := map[string]string{}
		for k, v := range fields {
			want["cursor.firstBatch.0."+k] = v
		}
		return mendStep{cmd: `{"find": "collections", "filter": {"_id": "t.c"}, "$db": "config"}`, want: want}
	}
	setUp := []mendStep{
		{cmd: `{"enableSharding": "t", "primaryShard": "sh0", "$db": "admin"}`},
		{cmd: `{"shardCollection": "t.c", "key": {"_id": 1}, "$db": "admin"}`},
	}
	split := []mendStep{
		{cmd: `{"split": "t.c", "middle": {"_id": 10}, "$db": "admin"}`},
		{cmd: `{"split": "t.c", "middle": {"_id": 20}, "$db": "admin"}`},
		{cmd: `{"split": "t.c", "middle": {"_id": 30}, "$db": "admin"}`},
	}
	catalog := `{"aggregate": 1, "pipeline": [{"$listClusterCatalog": {"balancingConfiguration": true}}, {"$match": {"ns": "t.c"}}], "cursor": {}, "$db": "t"}`
	mendSteps(t, slices.Concat(setUp, []mendStep{
		{cmd: status, want: map[string]string{"balancerCompliant": "true", "chunkSize": "128", "firstComplianceViolation": ""}},
		shown(map[string]string{"maxChunkSizeBytes": "", "noBalance": "", "enableAutoMerge": ""}),
		{cmd: set(`, "chunkSize": 256`)},
		{cmd: status, want: map[string]string{"chunkSize": "256"}},
		{cmd: set(`, "enableAutoMerger": false, "enableBalancing": false`)},
		shown(map[string]string{"maxChunkSizeBytes": "268435456", "noBalance": "true", "enableAutoMerge": "false"}),
		{cmd: catalog, want: map[string]string{"cursor.firstBatch.0.balancingEnabled": "false", "cursor.firstBatch.0.autoMergingEnabled": "false",
			"cursor.firstBatch.0.balancingEnabledReason": `{"enableBalancing":false,"allowMigrations":true}`, "cursor.firstBatch.0.chunkSize": "256"}},
		{cmd: set(`, "chunkSize": 0, "enableBalancing": true`)},
		shown(map[string]string{"maxChunkSizeBytes": "", "noBalance": "", "enableAutoMerge": "false"}),
		{cmd: set(``)}, // nothing changes
		shown(map[string]string{"enableAutoMerge": "false"}),
		{cmd: set(`, "enableAutoMerger": true, "chunkSize": 64`)},
		{cmd: `{"refineCollectionShardKey": "t.c", "key": {"_id": 1, "x": 1}, "$db": "admin"}`, code: 72},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"_id": 1, "x": 1}, "name": "i"}], "$db": "t"}`},
		{cmd: `{"refineCollectionShardKey": "t.c", "key": {"_id": 1, "x": 1}, "$db": "admin"}`},
		shown(map[string]string{"maxChunkSizeBytes": "67108864", "enableAutoMerge": ""}),

		{cmd: set(`, "chunkSize": -1`), code: 72},
		{cmd: set(`, "chunkSize": 1025`), code: 72},
		{cmd: set(`, "chunkSize": "x"`), code: 14},
		{cmd: set(`, "enableBalancing": 1`), code: 14},
		{cmd: set(`, "nosuch": 1`), code: 40415},
		{cmd: `{"configureCollectionBalancing": "t.u", "chunkSize": 1, "$db": "admin"}`, code: 118},
		{cmd: `{"configureCollectionBalancing": "none.c", "chunkSize": 1, "$db": "admin"}`, code: 26},
		{cmd: `{"configureCollectionBalancing": "t", "chunkSize": 1, "$db": "admin"}`, code: 73},
		{cmd: `{"configureCollectionBalancing": "t.c", "$db": "t"}`, code: 13},
	}), mongotest.Sharded(2, 1), mongotest.Version("8.2"))

	// Chunks beside each other become one, but not across the border of a zone.
	chunks := func(n string) mendStep {
		return mendStep{cmd: `{"aggregate": "chunks", "pipeline": [{"$count": "n"}], "cursor": {}, "$db": "config"}`,
			want: map[string]string{"cursor.firstBatch.0.n": n}}
	}
	mendSteps(t, slices.Concat(setUp, split, []mendStep{
		{cmd: status, want: map[string]string{"balancerCompliant": "false", "firstComplianceViolation": `"chunksImbalance"`, "chunkSize": "128"}},
		chunks("4"),
		{cmd: `{"addShardToZone": "sh1", "zone": "z", "$db": "admin"}`},
		{cmd: `{"updateZoneKeyRange": "t.c", "min": {"_id": 10}, "max": {"_id": 20}, "zone": "z", "$db": "admin"}`},
		{cmd: status, want: map[string]string{"balancerCompliant": "false", "firstComplianceViolation": `"zoneViolation"`}},
		{cmd: set(`, "defragmentCollection": true`)}, chunks("3"), // up to 10, up to 20 and from 20 on
		{cmd: `{"moveChunk": "t.c", "find": {"_id": 15}, "to": "sh1", "$db": "admin"}`},
		{cmd: status, want: map[string]string{"balancerCompliant": "true"}},
		{cmd: set(`, "enableAutoMerger": false`), code: 40415}, // which came later
	}), mongotest.Sharded(2, 1), mongotest.Version("6.0"))
	mendSteps(t, []mendStep{{cmd: set(``), code: 59}}, mongotest.Sharded(1, 1), mongotest.Version("5.0"))
}

// The balancer leaves a collection alone that says so, and moves its chunks when it does no more.
func TestBalancerLeavesCollectionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.Version("8.2"), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ask := func(text string) bson.Raw { return ok(t, askText(t, c, "admin", text)) }
		compliant := func(want bool) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := ask(`{"balancerCollectionStatus": "t.c"}`); got.Lookup("balancerCompliant").AsBool() != want {
				t.Errorf("the balancer leaves %s, want %t", got, want)
			}
		}
		ask(`{"enableSharding": "t"}`)
		ask(`{"shardCollection": "t.c", "key": {"_id": 1}}`)
		for _, at := range []string{"10", "20", "30"} {
			ask(`{"split": "t.c", "middle": {"_id": ` + at + `}}`)
		}
		ask(`{"configureCollectionBalancing": "t.c", "enableBalancing": false}`)
		ask(`{"balancerStart": 1}`)
		compliant(false)
		ask(`{"configureCollectionBalancing": "t.c", "enableBalancing": true}`)
		compliant(true)
		ask(`{"balancerStop": 1}`)
	})
}
