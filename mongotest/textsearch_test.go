package mongotest_test

import (
	"slices"
	"strings"
	"testing"

	"allium/mongotest"
)

// $text finds, scores and sorts, in every command that takes a filter; a pipeline carries the score
// along.
func TestTextSearch(t *testing.T) {
	for _, start := range []mongotest.Option{mongotest.Standalone(), mongotest.Sharded(2, 1)} {
		d := mongotest.Start(t, start)
		c := dial(t, d.Hosts()[0])
		reply := func(text string) string {
			t.Helper()
			r := command(t, c, extJSON(t, text))
			if v := r.Lookup("errmsg"); v.Type != 0 {
				s, _ := v.StringValue()
				// A mongos says that a shard has answered so.
				return strings.TrimPrefix(s, "Encountered non-retryable error during query :: caused by :: ")
			}
			for _, path := range [][]string{{"cursor", "firstBatch"}, {"values"}, {"value"}, {"n"}} {
				if v := r.Lookup(path...); v.Type != 0 {
					return v.String()
				}
			}
			return r.String()
		}
		for _, step := range []struct{ command, want string }{
			{`{"insert": "c", "documents": [{"_id": 1, "s": "the quick brown fox"}, {"_id": 2, "s": "lazy dogs running"}, {"_id": 3, "s": "Foxes run"}, {"_id": 4, "s": "Fox"}], "$db": "t"}`, `4`},
			{`{"find": "c", "filter": {"$text": {"$search": "fox"}}, "$db": "t"}`, "text index required for $text query"},
			{`{"createIndexes": "c", "indexes": [{"key": {"s": "text"}, "name": "s"}], "$db": "t"}`, ""},
			{`{"find": "c", "filter": {"$text": {"$search": "fox -brown"}}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":3},{"_id":4}]`},
			{`{"find": "c", "filter": {"$text": {"$search": "fox"}, "_id": {"$lt": 3}}, "projection": {"_id": 1}, "$db": "t"}`, `[{"_id":1}]`},
			{`{"find": "c", "filter": {"$text": {"$search": "fox"}}, "projection": {"_id": 1, "r": {"$meta": "textScore"}}, "sort": {"r": {"$meta": "textScore"}}, "limit": 2, "$db": "t"}`,
				`[{"_id":4,"r":1.1},{"_id":3,"r":0.75}]`},
			{`{"count": "c", "query": {"$text": {"$search": "runs"}}, "$db": "t"}`, `2`},
			{`{"distinct": "c", "key": "_id", "query": {"$text": {"$search": "runs"}}, "$db": "t"}`, `[2,3]`},
			{`{"aggregate": "c", "pipeline": [{"$match": {"$text": {"$search": "fox run"}}}, {"$sort": {"r": {"$meta": "textScore"}, "_id": -1}}, {"$project": {"r": {"$meta": "textScore"}}}, {"$limit": 2}], "cursor": {}, "$db": "t"}`,
				`[{"_id":3,"r":1.5},{"_id":4,"r":1.1}]`},
			{`{"aggregate": "c", "pipeline": [{"$match": {"$text": {"$search": "fox"}}}, {"$group": {"_id": null, "best": {"$max": {"$meta": "textScore"}}}}, {"$addFields": {"none": {"$meta": "textScore"}}}], "cursor": {}, "$db": "t"}`,
				`[{"_id":null,"best":1.1}]`},
			{`{"aggregate": "c", "pipeline": [{"$project": {"r": {"$meta": "textScore"}}}], "cursor": {}, "$db": "t"}`, "query requires text score metadata, but it is not available"},
			{`{"find": "c", "filter": {"$text": {"$search": "fox"}}, "hint": {"_id": 1}, "$db": "t"}`, "text and hint not allowed in same query"},
			{`{"findAndModify": "c", "query": {"$text": {"$search": "fox"}}, "sort": {"s": {"$meta": "textScore"}}, "update": {"$set": {"hit": 1}}, "fields": {"_id": 1, "r": {"$meta": "textScore"}}, "$db": "t"}`,
				`{"_id":4,"r":1.1}`},
			{`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"hit": 1}}, "fields": {"r": {"$meta": "textScore"}}, "$db": "t"}`,
				"query requires text score metadata, but it is not available"},
			{`{"findAndModify": "c", "query": {}, "sort": {"$natural": -1}, "update": {"$set": {"hit": 2}}, "fields": {"_id": 1}, "$db": "t"}`, `{"_id":4}`},
			{`{"delete": "c", "deletes": [{"q": {"$text": {"$search": "dog"}}, "limit": 0}], "$db": "t"}`, `1`},
			{`{"createIndexes": "d", "indexes": [{"key": {"b": "text", "a": "text"}, "weights": {"c": 5, "b": 2}, "name": "s"}], "$db": "t"}`, ""},
			{`{"insert": "d", "documents": [{"_id": 1, "b": "x", "language": "klingon"}], "$db": "t"}`, `0`},
		} {
			if got := reply(step.command); step.want != "" && got != step.want {
				t.Errorf("%s: %s, want %s", step.command, got, step.want)
			}
		}
		indexes := command(t, c, extJSON(t, `{"listIndexes": "d", "$db": "t"}`))
		if got := indexes.Lookup("cursor", "firstBatch", "1", "weights").String(); got != `{"a":1,"b":2,"c":5}` {
			t.Errorf("weights %s", got)
		}
	}
}

// What a text index's options may be.
func TestTextIndexOptions(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	for _, bad := range []string{
		`"key": {"a": "text", "b": 1, "c": "text"}`, `"key": {"a": "text"}, "weights": {"a": 0}`, `"key": {"a": "text"}, "weights": {"a": 65536}`, `"key": {"a": "text"}, "weights": {"a": "x"}`,
		`"key": {"a": "text"}, "weights": 1`, `"key": {"a": "text"}, "weights": {"$b": 1}`, `"key": {"a": "text"}, "weights": {"a..b": 1}`, `"key": {"a": "text"}, "default_language": "klingon"`,
		`"key": {"a": "text"}, "default_language": 1`, `"key": {"a": "text"}, "language_override": 1`, `"key": {"a": "text"}, "language_override": ""`, `"key": {"a": "text"}, "textIndexVersion": 9`,
	} {
		reply := command(t, c, extJSON(t, `{"createIndexes": "c", "indexes": [{"name": "x", `+bad+`}], "$db": "t"}`))
		if code, _ := reply.Lookup("code").AsInt64(); code != 67 {
			t.Errorf("%s: %s", bad, reply)
		}
	}
}

// A text index can be made of what listIndexes says of it, as mongorestore does, and is the index
// that it was.
func TestTextIndexAsListed(t *testing.T) {
	d := mongotest.Start(t)
	c := dial(t, d.Hosts()[0])
	list := func() string {
		t.Helper()
		return command(t, c, extJSON(t, `{"listIndexes": "c", "$db": "t"}`)).Lookup("cursor", "firstBatch", "1").String()
	}
	// Options that are given stand where they were given.
	options := func(index string) string {
		var all []string
		for key, v := range extJSON(t, index).All() {
			all = append(all, key+v.String())
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 1, "a": "one mouse", "b": {"c": "two mice"}}], "$db": "t"}`))
	for _, spec := range []string{
		`{"key": {"a": "text"}, "name": "x"}`,
		`{"key": {"b.c": "text", "a": "text"}, "name": "x", "weights": {"a": 3}}`,
		`{"key": {"$**": "text"}, "name": "x"}`,
		`{"key": {"p": 1, "a": "text", "b.c": "text", "q": -1}, "name": "x", "weights": {"more": 7}}`,
	} {
		make := func(spec string) {
			t.Helper()
			if r := command(t, c, extJSON(t, `{"createIndexes": "c", "indexes": [`+spec+`], "$db": "t"}`)); r.Lookup("errmsg").Type != 0 {
				t.Fatalf("%s: %v", spec, r)
			}
		}
		find := func() string {
			t.Helper()
			return command(t, c, extJSON(t, `{"count": "c", "query": {"$text": {"$search": "mouse"}, "p": null}, "$db": "t"}`)).Lookup("n").String()
		}
		make(spec)
		listed, found := list(), find()
		command(t, c, extJSON(t, `{"dropIndexes": "c", "index": "x", "$db": "t"}`))
		make(listed)
		if again := list(); options(again) != options(listed) {
			t.Errorf("%s: made of\n%s\nit is\n%s", spec, listed, again)
		}
		if again := find(); again != found {
			t.Errorf("%s: finds %s, found %s", spec, again, found)
		}
		make(spec)
		make(listed)
		command(t, c, extJSON(t, `{"dropIndexes": "c", "index": "x", "$db": "t"}`))
	}
}

// A plan for $text below an $or needs an index for each other branch, and the fields before the
// text of a compound index in its own branch; $facet has no index for it. Every search that was
// made is one that the profiler can show.
func TestTextPlans(t *testing.T) {
	const (
		text     = `{"$text": {"$search": "fox"}}`
		noPrefix = `failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)`
		noPlan   = `Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.`
		inFacet  = `40600: $match is not allowed to be used within a $facet stage`
	)
	for _, start := range []mongotest.Option{mongotest.Standalone(), mongotest.ReplicaSet(1)} {
		c := dial(t, mongotest.Start(t, start, mongotest.Version("4.4.0")).Hosts()[0])
		for _, coll := range []string{"c", "p"} {
			ok(t, askText(t, c, "t", `{"insert": "`+coll+`", "documents": [{"_id": 1, "s": "fox", "a": 1, "b": 1}, {"_id": 2, "s": "dog", "a": 1, "b": 1}]}`))
			ok(t, askText(t, c, "t", `{"createIndexes": "`+coll+`", "indexes": [{"key": {"b": 1}, "name": "b"}]}`))
		}
		ok(t, askText(t, c, "t", `{"createIndexes": "c", "indexes": [{"key": {"s": "text"}, "name": "s"}]}`))
		ok(t, askText(t, c, "t", `{"createIndexes": "p", "indexes": [{"key": {"a": 1, "s": "text"}, "name": "as"}]}`))
		ok(t, askText(t, c, "t", `{"profile": 2}`))
		for _, test := range []struct{ coll, filter, want string }{
			{"c", text, ""},
			{"c", `{"$text": {"$search": "fox"}, "b": 1}`, ""},
			{"c", `{"$or": [` + text + `, {"b": 7}]}`, ""},
			{"c", `{"$or": [` + text + `, {"_id": 7}]}`, ""},
			{"c", `{"$or": [` + text + `, {"a": 7}]}`, noPlan},
			{"c", `{"$or": [{"b": 7}, {"a": 7, "$text": {"$search": "fox"}}, {"a": 7}]}`, noPlan},
			{"c", `{"b": 1, "$or": [` + text + `, {"$or": [{"b": 7}, {"a": 7}]}]}`, noPlan},
			{"c", `{"$nor": [` + text + `]}`, noPrefix},
			{"p", text, noPrefix},
			{"p", `{"a": 1, "$text": {"$search": "fox"}}`, ""},
			{"p", `{"$or": [{"a": 1, "$text": {"$search": "fox"}}, {"b": 7}]}`, ""},
			{"p", `{"a": 1, "$or": [` + text + `, {"b": 7}]}`, noPrefix},
			{"p", `{"$or": [` + text + `, {"s": 7}]}`, noPrefix},
		} {
			filter := test.filter
			for _, cmd := range []string{`{"find": "` + test.coll + `", "filter": ` + filter + `}`,
				`{"find": "` + test.coll + `", "filter": ` + filter + `, "sort": {"r": {"$meta": "textScore"}, "b": 1}, "limit": 1}`,
				`{"aggregate": "` + test.coll + `", "pipeline": [{"$match": ` + filter + `}], "cursor": {}}`,
				`{"count": "` + test.coll + `", "query": ` + filter + `}`} {
				got := errorOf(askText(t, c, "t", cmd))
				switch {
				case test.want == "" && got != "ok":
					t.Errorf("%s: %s", cmd, got)
				case test.want != "" && (!strings.HasPrefix(got, "291: ") || !strings.HasSuffix(got, " planner returned error :: caused by :: "+test.want)):
					t.Errorf("%s: %s, want %s", cmd, got, test.want)
				}
			}
		}
		if got := errorOf(askText(t, c, "t", staged(`{"$facet": {"f": [{"$match": `+text+`}]}}`))); got != inFacet {
			t.Errorf("in $facet: %s", got)
		}
		if r := askText(t, c, "t", `{"count": "system.profile", "query": {"execStats.parsedTextQuery": {"$exists": true}}}`); strings.HasPrefix(r.Lookup("n").String(), "0") || errorOf(r) != "ok" {
			t.Errorf("profiled: %v", r)
		}
	}
}
