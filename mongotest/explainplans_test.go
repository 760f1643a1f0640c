package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// outline writes a plan in one line: each stage with its index, its bounds and what it filters, and
// its inputs in parentheses.
func outline(stage bson.Raw) string {
	text := func(k string) string { s, _ := stage.Lookup(k).StringValue(); return s }
	s := text("stage")
	if name := text("indexName"); name != "" {
		s += " " + name
	}
	if v := stage.Lookup("indexBounds"); v.Type != 0 && v.String() != "{}" {
		s += " " + strings.ReplaceAll(v.String(), `"`, "")
	}
	if v := stage.Lookup("transformBy"); v.Type != 0 {
		s += " " + strings.ReplaceAll(v.String(), `"`, "")
	}
	for _, k := range []string{"filter", "minRecord", "maxRecord", "limitAmount"} {
		if v := stage.Lookup(k); v.Type != 0 {
			s += " " + k + " " + strings.ReplaceAll(v.String(), `"`, "")
		}
	}
	var inputs []string
	if in, ok := stage.Lookup("inputStage").Document(); ok {
		inputs = append(inputs, outline(in))
	}
	if v := stage.Lookup("inputStages"); v.Type != 0 {
		for in := range bson.Raw(v.Value).Values() {
			inputs = append(inputs, outline(in.Value))
		}
	}
	if len(inputs) > 0 {
		s += "(" + strings.Join(inputs, ", ") + ")"
	}
	return s
}

// planOf finds queryPlanner or executionStats of an explanation: at its top, or in the stage that
// reads.
func planOf(reply bson.Raw, part string) bson.Raw {
	for _, path := range [][]string{{part}, {"stages", "0", "$cursor", part}} {
		if doc, ok := reply.Lookup(path...).Document(); ok {
			return doc
		}
	}
	return nil
}

// The plans of queries, as the manual of the version describes them or public explanations show
// them: stages, bounds, and for some those that were rejected.
func TestPlansExplained(t *testing.T) {
	type step struct {
		command, want string
		rejected      string // outlines, one after the other; empty: not looked at
		keys, docs    int64  // examined, if either is not 0
	}
	setup := []string{
		`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1, "c": "x"}, {"_id": 2, "a": 1, "b": 2, "c": "y"}, {"_id": 3, "a": 2, "b": 1, "c": "z"}, {"_id": 4, "a": 2, "b": 2, "c": "x y"}, {"_id": 5, "a": 3, "b": [1, 5], "c": "w"}], "$db": "t"}`,
		`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1}, "name": "b_1"}, {"key": {"c": "text"}, "name": "c_text"}], "$db": "t"}`,
	}
	clustered := []string{
		`{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "$db": "t"}`,
		`{"insert": "k", "documents": [{"_id": 7}, {"_id": 1}, {"_id": 5, "a": 1}, {"_id": 3}], "$db": "t"}`,
	}
	a1, b1 := `IXSCAN a_1 {a:[[1, 1]]}`, `IXSCAN b_1 {b:[[1, 1]]}`
	for _, test := range []struct {
		version string
		steps   []step
	}{
		{"4.4", []step{
			// Two scans for one key each come in the order of the records and can be intersected.
			{`{"find": "c", "filter": {"a": 1, "b": 1}}`, `FETCH filter {b:{$eq:1}}(` + a1 + `)`,
				`FETCH filter {a:{$eq:1}}(` + b1 + `); FETCH filter {$and:[{a:{$eq:1}},{b:{$eq:1}}]}(AND_SORTED(` + a1 + `, ` + b1 + `))`, 2, 2},
			{`{"find": "c", "filter": {"a": 1, "b": {"$gt": 1}}}`, `FETCH filter {b:{$gt:1}}(` + a1 + `)`,
				`FETCH filter {a:{$eq:1}}(IXSCAN b_1 {b:[(1, inf.0]]})`, 0, 0},
			// What a pipeline reads of the documents is a projection of the query.
			{`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$b", "n": {"$sum": "$c"}}}], "cursor": {}}`,
				`PROJECTION_SIMPLE {b:1,c:1,_id:0}(FETCH(` + a1 + `))`, ``, 2, 2},
			{`{"aggregate": "c", "pipeline": [{"$match": {"a": {"$gte": 2}}}, {"$project": {"a": 1, "_id": 0}}], "cursor": {}}`,
				`PROJECTION_COVERED {_id:false,a:true}(IXSCAN a_1 {a:[[2, inf.0]]})`, ``, 3, 0},
			{`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$count": "n"}], "cursor": {}}`, `COUNT_SCAN a_1 {startKey:{a:1},startKeyInclusive:true,endKey:{a:1},endKeyInclusive:true}`, ``, 3, 0},
			{`{"aggregate": "c", "pipeline": [{"$group": {"_id": "$a"}}], "cursor": {}}`,
				`PROJECTION_COVERED {a:1,_id:0}(DISTINCT_SCAN a_1 {a:[[MinKey, MaxKey]]})`, ``, 3, 0},
			{`{"aggregate": "c", "pipeline": [{"$group": {"_id": "$b"}}], "cursor": {}}`, `PROJECTION_SIMPLE {b:1,_id:0}(COLLSCAN)`, ``, 0, 5}, // an array is one value
			{`{"aggregate": "c", "pipeline": [{"$match": {"c": "x"}}, {"$limit": 1}], "cursor": {}}`, `COLLSCAN filter {c:{$eq:x}}`, ``, 0, 0},
			{`{"aggregate": "c", "pipeline": [{"$sort": {"a": -1}}, {"$limit": 2}], "cursor": {}}`, `LIMIT limitAmount 2(FETCH(IXSCAN a_1 {a:[[MaxKey, MinKey]]}))`, ``, 2, 2},
			{`{"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$addFields": {"d": "$$ROOT"}}, {"$group": {"_id": "$d"}}], "cursor": {}}`, `FETCH(` + a1 + `)`, ``, 2, 2},
			// A scan of the text index for each term.
			{`{"find": "c", "filter": {"$text": {"$search": "x"}}}`, `TEXT c_text(TEXT_MATCH(FETCH(IXSCAN c_text)))`, ``, 2, 2},
			{`{"find": "c", "filter": {"$text": {"$search": "x w"}, "a": 3}}`, `FETCH filter {a:{$eq:3}}(TEXT c_text(TEXT_MATCH(FETCH(OR(IXSCAN c_text, IXSCAN c_text)))))`, ``, 3, 6},
			{`{"find": "c", "filter": {"$text": {"$search": "x w -y"}}, "projection": {"s": {"$meta": "textScore"}}}`, `PROJECTION_DEFAULT {s:{$meta:textScore}}(TEXT c_text(TEXT_MATCH(TEXT_OR(IXSCAN c_text, IXSCAN c_text))))`, ``, 3, 3},
		}},
		{"8.0", []step{
			{`{"aggregate": "c", "pipeline": [{"$match": {"c": "x"}}, {"$skip": 1}, {"$limit": 1}], "cursor": {}}`, `LIMIT limitAmount 1(SKIP(COLLSCAN filter {c:{$eq:x}}))`, ``, 0, 0},
			{`{"find": "k", "filter": {"_id": 5}}`, `CLUSTERED_IXSCAN filter {_id:{$eq:5}} minRecord 5 maxRecord 5`, ``, 0, 1},
			{`{"find": "k", "filter": {"_id": {"$gte": 3, "$lt": 7}, "a": 1}}`, `CLUSTERED_IXSCAN filter {$and:[{a:{$eq:1}},{_id:{$lt:7}},{_id:{$gte:3}}]} minRecord 3 maxRecord 7`, ``, 0, 3},
			{`{"find": "k", "filter": {"a": 1}}`, `COLLSCAN filter {a:{$eq:1}}`, ``, 0, 4},
			{`{"find": "c", "filter": {"$text": {"$search": "x"}}}`, `TEXT_MATCH c_text(FETCH(IXSCAN c_text))`, ``, 2, 2},
		}},
	} {
		d := mongotest.Start(t, mongotest.Version(test.version))
		c := dial(t, d.Hosts()[0])
		if test.version == "8.0" {
			setup = append(setup, clustered...)
		}
		for _, s := range setup {
			ok(t, command(t, c, extJSON(t, s)))
		}
		for _, s := range test.steps {
			reply := ok(t, command(t, c, extJSON(t, `{"explain": `+s.command+`, "verbosity": "executionStats", "$db": "t"}`)))
			planner, stats := planOf(reply, "queryPlanner"), planOf(reply, "executionStats")
			plan, _ := planner.Lookup("winningPlan").Document()
			if got := outline(plan); got != s.want {
				t.Errorf("%s: %s\n got %s\nwant %s", test.version, s.command, got, s.want)
			}
			var rejected []string
			for v := range bson.Raw(planner.Lookup("rejectedPlans").Value).Values() {
				rejected = append(rejected, outline(v.Value))
			}
			if got := strings.Join(rejected, "; "); s.rejected != "" && got != s.rejected {
				t.Errorf("%s: %s\n rejects %s\nwant %s", test.version, s.command, got, s.rejected)
			}
			ran, _ := stats.Lookup("executionStages").Document()
			if got, want := stageNames(ran), stageNames(plan); got != want {
				t.Errorf("%s: %s: %s ran, and %s is planned", test.version, s.command, got, want)
			}
			keys, _ := stats.Lookup("totalKeysExamined").AsInt64()
			docs, _ := stats.Lookup("totalDocsExamined").AsInt64()
			if (s.keys != 0 || s.docs != 0) && (keys != s.keys || docs != s.docs) {
				t.Errorf("%s: %s examines %d keys and %d documents, want %d and %d", test.version, s.command, keys, docs, s.keys, s.docs)
			}
		}
	}
}

// stageNames are the stages of a plan, and that each has done as many works as it says.
func stageNames(stage bson.Raw) string {
	name, _ := stage.Lookup("stage").StringValue()
	if works, ok := stage.Lookup("works").AsInt64(); ok {
		advanced, _ := stage.Lookup("advanced").AsInt64()
		need, _ := stage.Lookup("needTime").AsInt64()
		end, _ := stage.Lookup("isEOF").AsInt64()
		if sum := advanced + need; sum != works && sum+end != works {
			name += fmt.Sprintf(" with %d works of %d and %d", works, advanced, need)
		}
	}
	if in, ok := stage.Lookup("inputStage").Document(); ok {
		name += "(" + stageNames(in) + ")"
	}
	if v := stage.Lookup("inputStages"); v.Type != 0 {
		for in := range bson.Raw(v.Value).Values() {
			name += "(" + stageNames(in.Value) + ")"
		}
	}
	return name
}
