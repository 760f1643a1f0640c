package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// Query settings hold for a shape, whatever its values are: they choose indexes before a hint does,
// refuse, and are shown until they are removed.
func TestQuerySettings(t *testing.T) {
	find := `{"find": "c", "filter": {"a": 1, "b": 2}, "$db": "t"}`
	hint := func(index string) string {
		return `{"indexHints": [{"ns": {"db": "t", "coll": "c"}, "allowedIndexes": [` + index + `]}]}`
	}
	set := func(query, settings string) string {
		return `{"setQuerySettings": ` + query + `, "settings": ` + settings + `, "$db": "admin"}`
	}
	explain := func(hint, index string) mendStep {
		return mendStep{cmd: `{"explain": {"find": "c", "filter": {"a": 7, "b": 8}` + hint + `}, "verbosity": "queryPlanner", "$db": "t"}`,
			want: map[string]string{"queryPlanner.winningPlan.inputStage.indexName": index}}
	}
	entry := `{"aggregate": 1, "pipeline": [{"$querySettings": {"showDebugQueryShape": true}}], "cursor": {}, "$db": "admin"}`
	byA := explain(``, `"a_1"`)
	byA.want["queryPlanner.querySettings.indexHints.0.allowedIndexes"] = `["a_1"]`
	steps := []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 2}, {"_id": 2, "a": 1, "b": 3}], "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1}, "name": "b_1"}], "$db": "t"}`},
		{cmd: set(find, hint(`"a_1"`)), want: map[string]string{"settings.indexHints.0.allowedIndexes": `["a_1"]`, "representativeQuery.find": `"c"`}},
		byA,
		explain(`, "hint": "b_1"`, `"a_1"`), // settings go before a hint
		{cmd: set(find, hint(`{"b": 1}`))},
		explain(``, `"b_1"`),
		{cmd: set(find, hint(`"$natural"`))},
		explain(``, ``), // a scan of the collection
		{cmd: set(find, hint(`"nosuch"`))},
		explain(`, "sort": {"a": 1}`, `"a_1"`), // another shape, which nothing is set for
		{cmd: set(find, `{"reject": true, "comment": "slow"}`), want: map[string]string{"settings.indexHints.0.allowedIndexes": `["nosuch"]`}},
		{cmd: find, code: 411, text: "Query rejected by admin query settings"},
		{cmd: `{"find": "c", "filter": {"a": 5, "b": 6}, "$db": "t"}`, code: 411},
		{cmd: `{"find": "c", "filter": {"a": 5, "b": "x"}, "$db": "t"}`}, // types are part of the shape
		{cmd: `{"find": "c", "filter": {"a": 5}, "$db": "t"}`},
		{cmd: `{"explain": ` + find + `, "$db": "t"}`}, // is not refused
		{cmd: entry, want: map[string]string{"cursor.firstBatch.0.settings.comment": `"slow"`, "cursor.firstBatch.1": "",
			"cursor.firstBatch.0.debugQueryShape": `{"cmdNs":{"db":"t","coll":"c"},"command":"find","filter":{"$and":[{"a":{"$eq":"?number"}},{"b":{"$eq":"?number"}}]}}`}},
		{cmd: set(find, `{"reject": false}`)},
		{cmd: find},
		{cmd: `{"removeQuerySettings": ` + find + `, "$db": "admin"}`},
		{cmd: entry, want: map[string]string{"cursor.firstBatch": `[]`}},
		{cmd: set(`{"distinct": "c", "key": "a", "query": {"b": {"$gt": 1}}, "$db": "t"}`, `{"reject": true}`)},
		{cmd: `{"distinct": "c", "key": "a", "query": {"b": {"$gt": 2}}, "$db": "t"}`, code: 411},
		{cmd: `{"distinct": "c", "key": "b", "query": {"b": {"$gt": 2}}, "$db": "t"}`},
		{cmd: set(`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b"}}], "$db": "t"}`, `{"reject": true}`)},
		{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$group": {"_id": "$b"}}], "cursor": {}, "$db": "t"}`, code: 411},
		{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$group": {"_id": "$a"}}], "cursor": {}, "$db": "t"}`},

		{cmd: set(find, `{}`), code: 8727502},
		{cmd: set(find, `{"reject": false}`), code: 7746604},
		{cmd: set(find, hint(``)), code: 7746604},
		{cmd: set(find, hint(`5`)), code: 9},
		{cmd: set(find, `{"indexHints": [{"ns": {"coll": "c"}, "allowedIndexes": ["a_1"]}]}`), code: 8727500},
		{cmd: set(find, `{"indexHints": [{"ns": {"db": "t"}, "allowedIndexes": ["a_1"]}]}`), code: 8727501},
		{cmd: set(find, `{"queryFramework": "x"}`), code: 2},
		{cmd: set(find, `{"reject": 1}`), code: 14},
		{cmd: set(find, `{"x": 1}`), code: 40415},
		{cmd: set(`{"find": "c", "filter": {"_id": 1}, "$db": "t"}`, hint(`"_id_"`)), code: 7746606},
		{cmd: set(`{"find": "c", "$db": "local"}`, hint(`"_id_"`)), code: 8584900},
		{cmd: set(`{"find": "c", "filter": {"$no": 1}, "$db": "t"}`, hint(`"_id_"`)), code: 2},
		{cmd: set(`{"find": "c"}`, hint(`"_id_"`)), code: 40414},
		{cmd: set(`{"count": "c", "$db": "t"}`, hint(`"_id_"`)), code: 7746402},
		{cmd: set(`"xyz"`, hint(`"_id_"`)), code: 2},
		{cmd: set(`"abcd"`, hint(`"_id_"`)), code: 16},
		{cmd: set(`1`, hint(`"_id_"`)), code: 14},
		{cmd: `{"removeQuerySettings": 1, "$db": "admin"}`, code: 14},
		{cmd: `{"aggregate": "c", "pipeline": [{"$querySettings": {}}], "cursor": {}, "$db": "t"}`, code: 73},
		{cmd: `{"aggregate": 1, "pipeline": [{"$querySettings": 1}], "cursor": {}, "$db": "t"}`, code: 7746800},
	}
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "members": mongotest.ReplicaSet(2)} {
		t.Run(name, func(t *testing.T) { mendSteps(t, steps, topology) })
	}
	t.Run("mongos", func(t *testing.T) {
		mendSteps(t, []mendStep{
			{cmd: set(find, `{"reject": true}`)},
			{cmd: find, code: 411},
			{cmd: `{"removeQuerySettings": ` + find + `, "$db": "admin"}`},
			{cmd: find},
		}, mongotest.Sharded(2, 1))
	})
	t.Run("before 8.0", func(t *testing.T) {
		mendSteps(t, []mendStep{{cmd: set(find, `{"reject": true}`), code: 59}}, mongotest.Version("7.0"))
	})
}

// The profile and the log have the hash of a query's shape from 8.0 on, the one that explain shows:
// the same for queries with other values.
func TestShapesInProfile(t *testing.T) {
	for _, version := range []string{"7.0", "8.0", "9.0"} {
		d := mongotest.Start(t, mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ask := func(text string) bson.Raw { return ok(t, askText(t, c, "db", text)) }
		ask(`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}`)
		ask(`{"profile": 2, "slowms": 0}`)
		queries := []string{
			`{"find": "c", "filter": {"a": %d}, "sort": {"a": 1}}`,
			`{"find": "c", "filter": {"_id": %d}}`,
			`{"aggregate": "c", "pipeline": [{"$match": {"a": {"$gt": %d}}}, {"$group": {"_id": "$a"}}], "cursor": {}}`,
			`{"distinct": "c", "key": "a", "query": {"a": {"$lt": %d}}}`,
		}
		for _, query := range queries {
			for n := range 2 {
				ask(fmt.Sprintf(query, n))
			}
		}
		ask(`{"count": "c", "query": {"a": 1}}`)
		ask(`{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}}]}`)
		ask(`{"profile": 0}`)
		entries := ask(`{"find": "system.profile", "filter": {"ns": "db.c"}, "sort": {"$natural": 1}}`)
		var hashes []string
		others := 0
		for v := range bson.Raw(entries.Lookup("cursor", "firstBatch").Value).Values() {
			hash, _ := bson.Raw(v.Value).Lookup("queryShapeHash").StringValue()
			if len(hash) == 64 {
				hashes = append(hashes, hash)
			} else {
				others++
			}
		}
		if version == "7.0" {
			if len(hashes) > 0 {
				t.Errorf("7.0 has the hashes %s", hashes)
			}
			continue
		}
		if len(hashes) != 2*len(queries) || others != 2 {
			t.Fatalf("%s: the profile has %d hashes, and %d entries without: %s", version, len(hashes), others, entries)
		}
		seen := map[string]bool{}
		for i, query := range queries {
			plan := ask(`{"explain": ` + fmt.Sprintf(query, 7) + `, "verbosity": "queryPlanner"}`)
			want, _ := plan.Lookup("queryShapeHash").StringValue()
			if hashes[2*i] != want || hashes[2*i+1] != want || seen[want] {
				t.Errorf("%s: %s has the hashes %s, and explain says %s", version, query, hashes[2*i:2*i+2], want)
			}
			seen[want] = true
		}
		log := ok(t, askText(t, c, "admin", `{"getLog": "global"}`)).Lookup("log").String()
		for hash := range seen {
			if n := strings.Count(log, hash); n != 2 {
				t.Errorf("%s: the log has %s %d times", version, hash, n)
			}
		}
	}
}
