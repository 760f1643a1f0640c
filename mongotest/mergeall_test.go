package mongotest_test

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// TestMergeAllChunks: the chunks of a shard that lie side by side become one, those of others and
// the documents stay as they are.
func TestMergeAllChunks(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.Sharded(2, 2))
	c := dialHost(t, d)
	for _, step := range []string{
		`admin {"enableSharding": "db", "primaryShard": "sh0"}`,
		`admin {"shardCollection": "db.c", "key": {"x": 1}}`,
		`admin {"split": "db.c", "middle": {"x": 0}}`, `admin {"split": "db.c", "middle": {"x": 10}}`,
		`admin {"split": "db.c", "middle": {"x": 20}}`, `admin {"split": "db.c", "middle": {"x": 30}}`,
		`admin {"split": "db.c", "middle": {"x": 40}}`,
		`db {"insert": "c", "documents": [{"x": -1}, {"x": 1}, {"x": 11}, {"x": 21}, {"x": 31}, {"x": 41}]}`,
		`admin {"moveChunk": "db.c", "find": {"x": 20}, "to": "sh1"}`,
	} {
		db, cmd, _ := strings.Cut(step, " ")
		ok(t, askText(t, c, db, cmd))
	}
	chunks := func() (text string) {
		r := ok(t, askText(t, c, "config", `{"find": "chunks", "filter": {}, "sort": {"min": 1}}`))
		list, _ := r.Lookup("cursor", "firstBatch").Array()
		for v := range list.Values() {
			doc := bson.Raw(v.Value)
			shard, _ := doc.Lookup("shard").StringValue()
			text += doc.Lookup("min", "x").String() + "@" + shard + " "
		}
		return text
	}
	const low = `{"$minKey":1}@sh0 `
	for _, tt := range []struct{ cmd, want, after string }{
		{`{"mergeAllChunksOnShard": "db.c", "shard": "sh1"}`, "ok", low + "0@sh0 10@sh0 20@sh1 30@sh0 40@sh0 "},
		{`{"mergeAllChunksOnShard": "db.c", "shard": "sh0", "maxNumberOfChunksToMerge": 2}`, "ok", low + "10@sh0 20@sh1 30@sh0 40@sh0 "},
		{`{"mergeAllChunksOnShard": "db.c", "shard": "sh0"}`, "ok", low + "20@sh1 30@sh0 "},
		{`{"mergeAllChunksOnShard": "db.c", "shard": "sh0"}`, "ok", low + "20@sh1 30@sh0 "},
		{`{"mergeAllChunksOnShard": "db.c", "shard": "no"}`, "70: Shard no not found", low + "20@sh1 30@sh0 "},
		{`{"mergeAllChunksOnShard": "db.c"}`, "40414: BSON field 'mergeAllChunksOnShard.shard' is missing but a required field", low + "20@sh1 30@sh0 "},
	} {
		if got := errorOf(askText(t, c, "admin", tt.cmd)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.cmd, got, tt.want)
		}
		if got := chunks(); got != tt.after {
			t.Errorf("after %s: %s, want %s", tt.cmd, got, tt.after)
		}
	}
	r := ok(t, askText(t, dialNode(t, d, d.Node(1)), "db", `{"count": "c", "query": {"x": {"$gt": -5}}}`))
	if n, _ := r.Lookup("n").AsInt64(); n != 6 {
		t.Errorf("another mongos sees %v", r)
	}
}
