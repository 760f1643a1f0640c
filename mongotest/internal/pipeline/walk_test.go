package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// usesText shows what a pipeline does as "action@db.coll", each thing once and sorted.
func usesText(list []Use) string {
	var out []string
	for _, u := range list {
		s := u.Action
		if u.NS.DB != "" {
			s += "@" + u.NS.String()
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func stagesOf(t testing.TB, text string) []bson.Raw {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(`{"p": `+text+`}`), &doc); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return StagesIn(doc.Lookup("p"))
}

func TestUses(t *testing.T) {
	for _, test := range []struct{ stages, want string }{
		{`[]`, "find@db.c"},
		{`[{"$match": {"$lookup": {"from": "d"}}}]`, "find@db.c"},
		{`[{"$lookup": {"from": "d"}}]`, "find@db.c find@db.d"},
		{`[{"$lookup": {"from": {"db": "config", "coll": "x"}}}]`, "find@config.x find@db.c"},
		{`[{"$lookup": {"pipeline": [{"$documents": []}, {"$lookup": {"from": "d"}}]}}]`, "find@db.c find@db.d"},
		{`[{"$lookup": {"from": "d", "pipeline": [{"$collStats": {}}]}}]`, "collStats@db.d find@db.c"},
		{`[{"$graphLookup": {"from": "d"}}]`, "find@db.c find@db.d"},
		{`[{"$unionWith": "d"}]`, "find@db.c find@db.d"},
		{`[{"$unionWith": {"coll": "d", "pipeline": [{"$unionWith": "e"}]}}]`, "find@db.c find@db.d find@db.e"},
		{`[{"$unionWith": {"coll": "d", "pipeline": {"0": {"$unionWith": "e"}}}}]`, "find@db.c find@db.d find@db.e"}, // servers take that, too
		{`[{"$facet": {"a": [{"$lookup": {"from": "d"}}], "b": []}}]`, "find@db.c find@db.d"},
		{`[{"$rankFusion": {"input": {"pipelines": {"a": [{"$lookup": {"from": "d"}}]}}}}]`, "find@db.c find@db.d"},
		{`[{"$rankFusion": {"input": {"pipelines": 1}}}, {"$rankFusion": {"pipelines": {"a": [{"$lookup": {"from": "d"}}]}}}]`, "find@db.c"},
		{`[{"$facet": 1}, {"$lookup": 2}, {"$unionWith": {"coll": 3}}, {"$out": 4}, {"$nothing": 5}, 6]`, "find@db.c"},
		{`[{"$out": "d"}]`, "find@db.c insert@db.d remove@db.d"},
		{`[{"$out": {"db": "e", "coll": "d"}}]`, "find@db.c insert@e.d remove@e.d"},
		{`[{"$merge": "d"}]`, "find@db.c insert@db.d update@db.d"},
		{`[{"$merge": {"into": {"coll": "d"}}}]`, "find@db.c insert@db.d update@db.d"},
		{`[{"$merge": {"into": {"db": "e", "coll": "d"}, "whenMatched": "fail"}}]`, "find@db.c insert@e.d"},
		{`[{"$merge": {"into": "d", "whenNotMatched": "discard"}}]`, "find@db.c update@db.d"},
		{`[{"$documents": []}]`, ""},
		{`[{"$collStats": {}}, {"$lookup": {"from": "d"}}]`, "collStats@db.c find@db.d"},
		{`[{"$indexStats": {}}]`, "indexStats@db.c"},
		{`[{"$planCacheStats": {}}]`, "planCacheRead@db.c"},
		{`[{"$changeStream": {}}]`, "changeStream@db.c find@db.c"},
		{`[{"$currentOp": {}}]`, ""},
		{`[{"$currentOp": {"allUsers": true}}]`, "inprog"},
		{`[{"$listLocalSessions": {"allUsers": true}}]`, "listSessions"},
	} {
		if got := usesText(Uses(Namespace{"db", "c"}, stagesOf(t, test.stages), false)); got != test.want {
			t.Errorf("%s does %q, want %q", test.stages, got, test.want)
		}
	}
	if got := usesText(Uses(Namespace{"db", "c"}, stagesOf(t, `[{"$facet": {"f": []}}, {"$merge": "d"}]`), true)); got != "bypassDocumentValidation@db.d find@db.c insert@db.d update@db.d" {
		t.Errorf("past validators it does %q", got)
	}
}

// What stages do is the same wherever they stand: a pipeline of nested stages does what the stages
// do one by one.
func TestUsesOfNested(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		flat := map[string]bool{"find@db.c": true}
		nested := randomStages(r, 4, flat)
		var want []string
		for use := range flat {
			want = append(want, use)
		}
		slices.Sort(want)
		if got := usesText(Uses(Namespace{"db", "c"}, stagesOf(t, nested), false)); got != strings.Join(want, " ") {
			t.Fatalf("%s does %q, its stages one by one %q", nested, got, want)
		}
	}
}

// randomStages returns a pipeline of stages that hold others, down to a depth, and notes what each
// of them does by itself.
func randomStages(r *rand.Rand, depth int, flat map[string]bool) string {
	var list []string
	for range r.IntN(3) + 1 {
		coll := fmt.Sprintf("c%d", r.IntN(20))
		inner := "[]"
		if depth > 0 {
			inner = randomStages(r, depth-1, flat)
		}
		stage := []string{
			`{"$match": {"x": 1}}`,
			`{"$graphLookup": {"from": "` + coll + `"}}`,
			`{"$unionWith": "` + coll + `"}`,
			`{"$unionWith": {"coll": "` + coll + `", "pipeline": ` + inner + `}}`,
			`{"$lookup": {"from": "` + coll + `", "as": "x", "pipeline": ` + inner + `}}`,
			`{"$lookup": {"pipeline": ` + inner + `, "from": "` + coll + `"}}`,
			`{"$facet": {"a": [{"$limit": 1}], "b": ` + inner + `}}`,
			`{"$rankFusion": {"combination": {"a": []}, "input": {"pipelines": {"a": [{"$limit": 1}], "b": ` + inner + `}}}}`,
		}
		i := r.IntN(len(stage))
		if i < 3 && depth > 0 {
			i = 3 + r.IntN(len(stage)-3) // so that nothing that was noted is left out
		}
		if i != 0 && i < 6 {
			flat["find@db."+coll] = true
		}
		list = append(list, stage[i])
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// The stages of a pipeline are visited in its order, those of a sub-pipeline after their stage.
func TestWalk(t *testing.T) {
	var names []string
	visit := func(s Stage) error {
		names = append(names, s.Name+"("+s.NS.Coll+")")
		return nil
	}
	if err := Walk(Namespace{"db", "c"}, stagesOf(t, `[{"$facet": {"a": [{"$skip": 1}, {"$lookup": {"from": "d", "pipeline": [{"$limit": 1}]}}], "b": [{"$sort": {"x": 1}}]}}, {"$count": "n"}]`), visit); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "$facet(c) $skip(c) $lookup(c) $limit(d) $sort(c) $count(c)" {
		t.Errorf("visited %s", got)
	}
}

// Every part of a specification is rewritten once: sub-pipelines at their paths, the filter, and
// all else as an expression.
func TestRewrite(t *testing.T) {
	for _, test := range []struct{ stage, want string }{
		{`{"$match": {"a": 1}}`, `{"F":{"a":1}}`},
		{`{"$match": 1}`, `{"E":1}`},
		{`{"$project": {"a": 1}}`, `{"E":{"a":1}}`},
		{`{"$geoNear": {"query": {"a": 1}, "near": [1]}}`, `{"query":{"F":{"a":1}},"near":{"E":[1]}}`},
		{`{"$lookup": {"from": "d", "pipeline": [{"$limit": 1}], "let": {"pipeline": []}}}`, `{"from":{"E":"d"},"pipeline":[{"P":[{"$limit":1}]}],"let":{"E":{"pipeline":[]}}}`},
		{`{"$facet": {"a": [{"$limit": 1}], "b": 2}}`, `{"a":[{"P":[{"$limit":1}]}],"b":{"E":2}}`},
		{`{"$rankFusion": {"input": {"pipelines": {"a": [{"$limit": 1}]}, "x": 1}, "combination": {"weights": {"a": 1}}}}`,
			`{"input":{"pipelines":{"a":[{"P":[{"$limit":1}]}]},"x":{"E":1}},"combination":{"E":{"weights":{"a":1}}}}`},
		{`{"$rankFusion": {"input": {"pipelines": 3}}}`, `{"input":{"pipelines":{"E":3}}}`},
	} {
		s := StageOf(Namespace{"db", "c"}, stagesOf(t, "["+test.stage+"]")[0])
		wrap := func(key string, v bson.RawValue) bson.Raw { return bsondoc.Single(key, v) }
		got, err := s.Rewrite(Parts{
			Pipeline: func(stages []bson.Raw) ([]bson.Raw, error) {
				var list []bson.RawValue
				for _, doc := range stages {
					list = append(list, bsondoc.DocumentValue(doc))
				}
				return []bson.Raw{wrap("P", bsondoc.ArrayValue(list...))}, nil
			},
			Filter:     func(f bson.Raw) (bson.Raw, error) { return wrap("F", bsondoc.DocumentValue(f)), nil },
			Expression: func(v bson.RawValue) (bson.RawValue, error) { return bsondoc.DocumentValue(wrap("E", v)), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := bson.Raw(got.Value).String(); compactJSON(text) != test.want {
			t.Errorf("%s becomes\n%s, want\n%s", test.stage, compactJSON(text), test.want)
		}
	}
}

// compactJSON returns relaxed JSON without spaces.
func compactJSON(text string) string { return strings.ReplaceAll(text, " ", "") }

func FuzzWalk(f *testing.F) {
	for _, text := range []string{`{"p": [{"$lookup": {"from": "d", "pipeline": [{"$facet": {"a": [{"$out": {"db": "x"}}]}}]}}]}`, `{"p": {"0": {"$merge": {"into": {"coll": 1}}}}}`} {
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(text), &doc); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := bson.Raw(data)
		if doc.Validate() != nil {
			return
		}
		stages := StagesIn(doc.Lookup("p"))
		Uses(Namespace{"db", "c"}, stages, true)
		_ = Walk(Namespace{"db", "c"}, stages, func(s Stage) error { return s.CheckV1() })
	})
}
