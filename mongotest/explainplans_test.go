package mongotest_test

import (
	"fmt"
	"slices"
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
	unique := []string{
		`{"createIndexes": "u", "indexes": [{"key": {"m": 1}, "name": "m_1", "unique": true}], "$db": "t"}`,
		`{"insert": "u", "documents": [{"_id": 1, "m": "x"}, {"_id": 2, "m": "y"}], "$db": "t"}`,
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
			{`{"find": "c", "filter": {"$text": {"$search": "x"}}}`, `TEXT c_text(TEXT_MATCH(FETCH(OR(IXSCAN c_text))))`, ``, 2, 2},
			{`{"find": "c", "filter": {"$text": {"$search": "x w"}, "a": 3}}`, `FETCH filter {a:{$eq:3}}(TEXT c_text(TEXT_MATCH(FETCH(OR(IXSCAN c_text, IXSCAN c_text)))))`, ``, 3, 6},
			{`{"find": "c", "filter": {"$text": {"$search": "x w -y"}}, "projection": {"s": {"$meta": "textScore"}}}`, `PROJECTION_DEFAULT {s:{$meta:textScore}}(TEXT c_text(TEXT_MATCH(TEXT_OR(IXSCAN c_text, IXSCAN c_text))))`, ``, 3, 3},
		}},
		{"8.0", []step{
			{`{"aggregate": "c", "pipeline": [{"$match": {"c": "x"}}, {"$skip": 1}, {"$limit": 1}], "cursor": {}}`, `LIMIT limitAmount 1(SKIP(COLLSCAN filter {c:{$eq:x}}))`, ``, 0, 0},
			{`{"find": "k", "filter": {"_id": 5}}`, `EXPRESS_CLUSTERED_IXSCAN`, ``, 0, 1},
			// One document is found past the planner: by _id or by an index.
			{`{"find": "c", "filter": {"_id": 2}}`, `EXPRESS_IXSCAN _id_`, ``, 1, 1},
			{`{"find": "c", "filter": {"_id": 2}, "projection": {"a": 1}, "limit": 1}`, `EXPRESS_IXSCAN _id_`, ``, 1, 1},
			{`{"find": "c", "filter": {"_id": 2}, "hint": "_id_"}`, `FETCH(IXSCAN _id_ {_id:[[2, 2]]})`, ``, 1, 1},
			{`{"find": "c", "filter": {"a": 2}, "limit": 1}`, `EXPRESS_IXSCAN a_1`, ``, 1, 1},
			{`{"find": "c", "filter": {"a": 2}, "limit": 2}`, `LIMIT limitAmount 2(FETCH(IXSCAN a_1 {a:[[2, 2]]}))`, ``, 2, 2},
			{`{"find": "c", "filter": {"a": null}, "limit": 1}`, `LIMIT limitAmount 1(FETCH filter {a:{$eq:null}}(IXSCAN a_1 {a:[[undefined, undefined],[null, null]]}))`, ``, 0, 0},
			{`{"find": "c", "filter": {"b": 5}, "limit": 1}`, `LIMIT limitAmount 1(FETCH(IXSCAN b_1 {b:[[5, 5]]}))`, ``, 1, 1}, // an array has several keys
			{`{"find": "u", "filter": {"m": "x"}}`, `EXPRESS_IXSCAN m_1`, ``, 1, 1},
			{`{"find": "u", "filter": {"m": "x"}, "collation": {"locale": "de"}}`, `COLLSCAN filter {m:{$eq:x}}`, ``, 0, 2},
			{`{"find": "u", "filter": {"m": {"$gt": "x"}}}`, `FETCH(IXSCAN m_1 {m:[(\x\, {})]})`, ``, 1, 1},
			{`{"find": "u", "filter": {"m": "nosuch"}}`, `EXPRESS_IXSCAN m_1`, ``, 0, 0},
			{`{"find": "u", "filter": {"m": "x"}, "sort": {"n": 1}}`, `SORT(FETCH(IXSCAN m_1 {m:[[\x\, \x\]]}))`, ``, 1, 1},
			{`{"count": "c", "query": {"_id": 2}}`, `COUNT(IDHACK)`, ``, 1, 1},
			{`{"find": "k", "filter": {"_id": {"$gte": 3, "$lt": 7}, "a": 1}}`, `CLUSTERED_IXSCAN filter {$and:[{a:{$eq:1}},{_id:{$lt:7}},{_id:{$gte:3}}]} minRecord 3 maxRecord 7`, ``, 0, 3},
			{`{"find": "k", "filter": {"a": 1}}`, `COLLSCAN filter {a:{$eq:1}}`, ``, 0, 4},
			{`{"find": "c", "filter": {"$text": {"$search": "x"}}}`, `TEXT_MATCH c_text(FETCH(IXSCAN c_text))`, ``, 2, 2},
		}},
	} {
		d := mongotest.Start(t, mongotest.Version(test.version))
		c := dial(t, d.Hosts()[0])
		if test.version == "8.0" {
			setup = append(append(setup, clustered...), unique...)
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

// What explanations of versions have besides plans: which plan is in the cache, how many steps a
// scan takes, what the server goes by.
func TestExplainByVersion(t *testing.T) {
	for _, test := range []struct {
		version string
		want    map[string]string
	}{
		{"4.4", map[string]string{"serverParameters": "", "executionStats.executionStages.works": "5", "executionStats.executionStages.needTime": "3"}},
		{"5.0", map[string]string{"executionStats.executionStages.works": "5", "queryPlanner.winningPlan.isCached": "",
			"serverParameters.internalQueryMaxAddToSetBytes": "104857600", "serverParameters.internalQueryFrameworkControl": ""}},
		{"7.0", map[string]string{"executionStats.executionStages.works": "4", "executionStats.executionStages.needTime": "2",
			"serverParameters.internalQueryFrameworkControl": `"trySbeRestricted"`, "serverParameters.internalQueryPlannerIgnoreIndexWithCollationForRegex": ""}},
		{"8.0", map[string]string{"queryPlanner.winningPlan.isCached": "false", "executionStats.executionStages.isCached": "false",
			"executionStats.executionStages.works": "4", "serverParameters.internalQueryPlannerIgnoreIndexWithCollationForRegex": "1",
			"serverParameters.internalQueryProhibitBlockingMergeOnMongoS": "0"}},
	} {
		d := mongotest.Start(t, mongotest.Version(test.version))
		c := dial(t, d.Hosts()[0])
		do := func(cmd string) bson.Raw { t.Helper(); return ok(t, command(t, c, extJSON(t, cmd))) }
		do(`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 2, "b": 2}, {"_id": 3, "a": 3}], "$db": "t"}`)
		reply := do(`{"explain": {"find": "c", "filter": {"a": 1}}, "verbosity": "executionStats", "$db": "t"}`)
		for path, want := range test.want {
			if got := reply.Lookup(strings.Split(path, ".")...).String(); got != want && !(want == "" && reply.Lookup(strings.Split(path, ".")...).Type == 0) {
				t.Errorf("%s: %s is %s, want %s", test.version, path, got, want)
			}
		}
		if test.version != "8.0" {
			continue
		}
		// Once the cache has a plan that is in use, explain tells which one it is.
		do(`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1}, "name": "b_1"}], "$db": "t"}`)
		for range 2 {
			do(`{"find": "c", "filter": {"a": 2, "b": 2}, "$db": "t"}`)
		}
		for filter, want := range map[string]string{`{"a": 1, "b": 1}`: "true", `{"a": 1, "b": {"$gt": 1}}`: "false"} {
			reply := do(`{"explain": {"find": "c", "filter": ` + filter + `}, "verbosity": "allPlansExecution", "$db": "t"}`)
			for path, want := range map[string]string{"queryPlanner.winningPlan": want, "queryPlanner.rejectedPlans.0": "false",
				"executionStats.executionStages": want, "executionStats.allPlansExecution.0.executionStages": want} {
				if got := reply.Lookup(append(strings.Split(path, "."), "isCached")...).String(); got != want {
					t.Errorf("%s of %s is %s, want %s", path, filter, got, want)
				}
			}
		}
		do(`{"setParameter": 1, "internalQueryMaxAddToSetBytes": 1000, "$db": "admin"}`)
		reply = do(`{"explain": {"find": "c"}, "$db": "t"}`)
		if got := reply.Lookup("serverParameters", "internalQueryMaxAddToSetBytes").String(); got != "1000" {
			t.Errorf("a parameter that was set is shown as %s", got)
		}
		do(`{"profile": 2, "$db": "t"}`)
		do(`{"find": "c", "filter": {"_id": 1}, "$db": "t"}`)
		do(`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}], "$db": "t"}`)
		do(`{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}], "$db": "t"}`)
		do(`{"findAndModify": "c", "query": {"_id": 2}, "update": {"$set": {"x": 1}}, "$db": "t"}`)
		do(`{"find": "c", "filter": {"a": 3}, "limit": 1, "$db": "t"}`)
		do(`{"profile": 0, "$db": "t"}`)
		var got []string
		for v := range bson.Raw(do(`{"find": "system.profile", "$db": "t"}`).Lookup("cursor", "firstBatch").Value).Values() {
			s, _ := bson.Raw(v.Value).Lookup("planSummary").StringValue()
			if stage, ok := bson.Raw(v.Value).Lookup("execStats", "stage").StringValue(); ok {
				s += " " + stage
			}
			got = append(got, s)
		}
		want := []string{"EXPRESS_IXSCAN { _id: 1 } EXPRESS_IXSCAN", "EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE EXPRESS_IXSCAN",
			"EXPRESS_IXSCAN { _id: 1 },EXPRESS_DELETE EXPRESS_IXSCAN", "IDHACK IDHACK", "EXPRESS_IXSCAN { a: 1 } EXPRESS_IXSCAN"}
		if !slices.Equal(got, want) {
			t.Errorf("the profile has %q, want %q", got, want)
		}
	}
}
