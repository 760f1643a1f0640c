package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// Wildcard indexes with other fields, of servers since 7.0: which there may be, which documents
// they refuse, and what they find.

func TestCompoundWildcardRules(t *testing.T) {
	for _, test := range []struct{ index, v60, v70 string }{
		{`{"key": {"a": 1, "b.$**": 1}, "name": "w"}`, "67", "ok"},
		{`{"key": {"b.$**": -1, "a": 1}, "name": "w"}`, "67", "ok"},
		{`{"key": {"a": 1, "b.$**": 1, "c": -1}, "name": "w"}`, "67", "ok"},
		{`{"key": {"a": 1, "$**": 1}, "name": "w", "wildcardProjection": {"a": 0}}`, "67", "ok"},
		{`{"key": {"$**": 1, "a": 1}, "name": "w", "wildcardProjection": {"b": 1}}`, "67", "ok"},
		{`{"key": {"_id": 1, "$**": 1}, "name": "w", "wildcardProjection": {"b": 0}}`, "67", "ok"},
		{`{"key": {"a": 1, "$**": 1}, "name": "w"}`, "67", "67"},
		{`{"key": {"a": 1, "$**": 1}, "name": "w", "wildcardProjection": {"b": 0}}`, "67", "7246209"},
		{`{"key": {"$**": 1, "a.b": 1}, "name": "w", "wildcardProjection": {"a": 1}}`, "67", "7246209"},
		{`{"key": {"a": 1, "a.$**": 1}, "name": "w"}`, "67", "7246204"},
		{`{"key": {"a.b.c": 1, "a.b.$**": 1}, "name": "w"}`, "67", "7246204"},
		{`{"key": {"a.$**": 1, "b.$**": 1}, "name": "w"}`, "67", "7246201"},
		{`{"key": {"a.$**": 1, "b": "hashed"}, "name": "w"}`, "67", "67"},
		{`{"key": {"b": "text", "a.$**": 1}, "name": "w"}`, "67", "67"},
		{`{"key": {"b": "2dsphere", "a.$**": 1}, "name": "w"}`, "67", "67"},
		{`{"key": {"a": 1, "b.$**": 1}, "name": "w", "unique": true}`, "67", "67"},
		{`{"key": {"a": 1, "b.$**": 1}, "name": "w", "sparse": true}`, "67", "67"},
		{`{"key": {"a": 1, "b.$**": 1}, "name": "w", "expireAfterSeconds": 1}`, "67", "67"},
		{`{"key": {"a": 1, "b.$**": 1}, "name": "w", "wildcardProjection": {"a": 0}}`, "67", "9"},
	} {
		for version, want := range map[string]string{"6.0.0": test.v60, "7.0.0": test.v70, "8.2.4": test.v70} {
			d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
			c := dialNode(t, d, d.Node(0))
			got, _, _ := strings.Cut(errorOf(askText(t, c, "db", `{"createIndexes": "c", "indexes": [`+test.index+`]}`)), ":")
			if got != want && (version != "6.0.0" || got == "ok") { // which rule is broken first is not known of 6.0
				t.Errorf("%s: %s: %s, want %s", version, test.index, got, want)
			}
		}
	}
}

// The fields beside the wildcard are of one value each: an array is refused by whatever would bring
// it there, and nothing of it is left.
func TestCompoundWildcardRefusesArrays(t *testing.T) {
	for _, array := range []string{`"a": [1, 2]`, `"a": []`, `"x": [{"y": 1}]`, `"x": {"y": [1]}`} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.2.4"), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		refused := func(command string) {
			t.Helper()
			reply := askText(t, c, "db", command)
			code := reply.Lookup("code")
			if list, ok := reply.Lookup("writeErrors").Array(); ok {
				for v := range list.Values() {
					code = bson.Raw(v.Value).Lookup("code")
				}
			}
			if n, _ := code.AsInt64(); n != 7246301 {
				t.Errorf("%s: %v", command, reply)
			}
		}
		const index = `{"key": {"a": 1, "b.$**": 1, "x.y": 1}, "name": "w"}`
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, `+array+`}]}`))
		refused(`{"createIndexes": "c", "indexes": [` + index + `]}`)
		ok(t, askText(t, c, "db", `{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}`))
		ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [`+index+`]}`))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "b": {"k": [1, 2]}}]}`))
		refused(`{"insert": "c", "documents": [{"_id": 2, ` + array + `}]}`)
		refused(`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {` + array + `}}}]}`)
		refused(`{"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {` + array + `}}, "upsert": true}]}`)
		refused(`{"findAndModify": "c", "query": {"_id": 1}, "update": {` + array + `}}`)
		reply := askText(t, c, "db", `{"find": "c", "filter": {"b.k": 2}, "hint": {"$natural": 1}}`)
		if got := fmt.Sprint(reply.Lookup("cursor", "firstBatch")); !strings.Contains(got, `"k"`) || strings.Contains(got, `"a"`) || strings.Contains(got, `"x"`) {
			t.Errorf("%s: what is there: %s", array, got)
		}
	}
}

// TestCompoundWildcardsFindWhatScansFind: a query with the hint of the index, or left to the
// planner, finds the documents that a scan of the collection finds, each once, and in the order
// that was asked for; so do a count and a distinct.
func TestCompoundWildcardsFindWhatScansFind(t *testing.T) {
	single := []any{int32(1), int32(2), "x", nil, bson.D{}, bson.D{{Key: "k", Value: int32(1)}},
		bson.D{{Key: "k", Value: int32(0)}}, bson.D{{Key: "k", Value: "x"}}}
	below := append(slices.Clone(single), bson.D{{Key: "k", Value: int32(1)}, {Key: "l", Value: int32(2)}}, bson.A{int32(1), int32(2)}, bson.A{},
		bson.A{bson.D{{Key: "k", Value: int32(1)}}, bson.D{{Key: "k", Value: "x"}}})
	indexes := []string{`"key": {"a": 1, "b.$**": 1}`, `"key": {"a": 1, "b.$**": -1, "c": 1}`, `"key": {"b.$**": 1, "a": -1}`,
		`"key": {"a": 1, "c": -1, "$**": 1}, "wildcardProjection": {"a": 0, "c": 0}`, `"key": {"$**": 1, "c": 1}, "wildcardProjection": {"b": 1}`}
	conditions := []string{`1`, `"x"`, `null`, `{"$exists": true}`, `{"$exists": false}`, `{"$gte": 1}`, `{"$lt": 2}`, `{"$in": [1, "x", null]}`, `{"$ne": 1}`, `{"$gt": {}}`}
	r := rand.New(rand.NewPCG(3, 4))
	asked, answered := 0, 0
	for round := range 30 {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.2.4"), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		index := indexes[round%len(indexes)]
		ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{`+index+`, "name": "w"}]}`))
		for id := range 8 {
			doc := bson.D{{Key: "_id", Value: int32(id)}}
			for _, field := range []string{"a", "b", "c"} {
				values := single
				if field == "b" && round%2 == 0 {
					values = below
				} else if field == "b" { // no arrays: a document may have several keys all the same
					values = below[:len(single)+1]
				}
				if r.IntN(5) > 0 {
					doc = append(doc, bson.E{Key: field, Value: values[r.IntN(len(values))]})
				}
			}
			raw, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{doc}}, {Key: "$db", Value: "db"}})
			if err != nil {
				t.Fatal(err)
			}
			ok(t, command(t, c, raw))
		}
		for range 150 {
			var parts []string
			for _, path := range []string{"a", "b", "b.k", "b.0", "c"} {
				if r.IntN(3) == 0 {
					parts = append(parts, fmt.Sprintf(`%q: %s`, path, conditions[r.IntN(len(conditions))]))
				}
			}
			if len(parts) == 2 && r.IntN(4) == 0 {
				parts = []string{`"$or": [{` + parts[0] + `}, {` + parts[1] + `}]`}
			}
			filter := `{` + strings.Join(parts, ", ") + `}`
			sort := []string{``, `, "sort": {"a": 1, "_id": 1}`, `, "sort": {"b.k": -1, "_id": 1}`, `, "sort": {"a": 1, "c": -1, "_id": 1}`, `, "sort": {"a": 1}`, `, "sort": {"b.k": 1}`}[r.IntN(5+round%2)]
			wholly, by := sort == "" || strings.Contains(sort, "_id"), []string{"a"}
			if strings.Contains(sort, "b.k") {
				by = []string{"b", "k"}
			}
			ask := func(hint string) string {
				reply := askText(t, c, "db", `{"find": "c", "filter": `+filter+sort+hint+`}`)
				if errorOf(reply) != "ok" {
					return errorOf(reply)
				}
				var list []string
				batch, _ := reply.Lookup("cursor", "firstBatch").Array()
				for v := range batch.Values() {
					if doc := bson.Raw(v.Value); wholly {
						list = append(list, fmt.Sprint(doc.Lookup("_id")))
					} else { // in which order those with the same value come is left open
						text := fmt.Sprint(doc.Lookup(by...))
						if text == "" { // missing, which sorts with null
							text = "null"
						}
						list = append(list, text)
					}
				}
				if sort == "" {
					slices.Sort(list)
				}
				count := askText(t, c, "db", `{"count": "c", "query": `+filter+hint+`}`)
				values := askText(t, c, "db", `{"aggregate": "c", "pipeline": [{"$match": `+filter+`}, {"$group": {"_id": "$b.k"}}, {"$sort": {"_id": 1}}], "cursor": {}`+hint+`}`)
				return strings.Join(list, " ") + fmt.Sprint("; ", count.Lookup("n"), "; ", values.Lookup("cursor", "firstBatch"))
			}
			want := ask(`, "hint": {"$natural": 1}`)
			if got := ask(``); got != want {
				t.Errorf("find %s%s with the index %s:\n got %s\nwant %s", filter, sort, index, got, want)
			}
			asked++
			got := ask(`, "hint": "w"`)
			if strings.HasPrefix(got, "2: ") || strings.HasPrefix(got, "291: ") { // it is not for this query
				continue
			}
			if answered++; got != want {
				t.Errorf("find %s%s with the hint %s:\n got %s\nwant %s", filter, sort, index, got, want)
			}
		}
	}
	if answered < asked/5 {
		t.Errorf("of %d queries only %d could be answered with the hint", asked, answered)
	}
}

// The keys of a range of the field before the wildcard are not in the order of the wildcard's
// values.
func TestCompoundWildcardOrder(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("7.0.0"), mongotest.InMemory(), mongotest.NoScripting())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b.$**": 1}, "name": "w"}]}`))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": {"k": 2}}, {"_id": 2, "a": 2, "b": {"k": 1}}, {"_id": 3, "a": 2, "b": {"k": 3}}]}`))
	for sort, want := range map[string]string{`{"b.k": 1}`: "2 1 3", `{"b.k": -1}`: "3 1 2", `{"a": -1, "b.k": 1}`: "2 3 1", `{"a": 1, "b.k": -1}`: "1 3 2"} {
		reply := askText(t, c, "db", `{"find": "c", "filter": {"a": {"$gte": 0}, "b.k": {"$gte": 0}}, "hint": "w", "sort": `+sort+`}`)
		var ids []string
		batch, _ := reply.Lookup("cursor", "firstBatch").Array()
		for v := range batch.Values() {
			ids = append(ids, fmt.Sprint(bson.Raw(v.Value).Lookup("_id")))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", sort, got, want)
		}
	}
}

// What explain shows of a compound wildcard index, for a path and for its other fields alone.
func TestCompoundWildcardExplained(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("7.0.0"), mongotest.InMemory(), mongotest.NoScripting())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b.$**": 1, "c": -1}, "name": "w"}]}`))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": {"k": 5}}, {"_id": 2, "a": 1}]}`))
	for _, test := range []struct{ filter, pattern, bounds string }{
		{`{"a": 1, "b.k": 5}`, `{"a":1,"$_path":1,"b.k":1,"c":-1}`,
			`{"a":["[1, 1]"],"$_path":["[\"b.k\", \"b.k\"]"],"b.k":["[5, 5]"],"c":["[MaxKey, MinKey]"]}`},
		{`{"a": 1}`, `{"a":1,"$_path":1,"b.$**":1,"c":-1}`,
			`{"a":["[1, 1]"],"$_path":["[MinKey, MinKey]","[\"\", {})"],"b.$**":["[MinKey, MaxKey]"],"c":["[MaxKey, MinKey]"]}`},
	} {
		reply := askText(t, c, "db", `{"explain": {"find": "c", "filter": `+test.filter+`}, "verbosity": "queryPlanner"}`)
		scan := reply.Lookup("queryPlanner", "winningPlan", "inputStage")
		if doc, _ := scan.Document(); fmt.Sprint(doc.Lookup("keyPattern")) != test.pattern || fmt.Sprint(doc.Lookup("indexBounds")) != test.bounds {
			t.Errorf("%s: %v", test.filter, reply.Lookup("queryPlanner", "winningPlan"))
		}
	}
}
