package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// runText runs a pipeline, given as {"p": [...]}, on documents, given as {"d": [...]}, and shows
// the results or "code text".
func runText(t testing.TB, stages, docs string, version expr.Version) string {
	t.Helper()
	m := newMemory()
	ns := Namespace{"test", "c"}
	for v := range bson.Raw(parseDoc(t, `{"d":`+docs+`}`).Lookup("d").Value).Values() {
		m.colls[ns] = append(m.colls[ns], bson.Raw(v.Value))
	}
	list, err := StagesOf(parseDoc(t, `{"p":`+stages+`}`).Lookup("p"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stages, `{"$documents"`) {
		ns.Coll = ""
	}
	out, err := m.run(list, &Options{Env: m, NS: ns, Version: version})
	if err != nil {
		e := srverr.From(err)
		return expr.Text(bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, e.Code)}) + " " + e.Msg
	}
	var texts []string
	for _, doc := range out {
		texts = append(texts, expr.Text(bsondoc.DocumentValue(doc)))
	}
	return strings.Join(texts, " ")
}

func (m *memory) run(stages []bson.Raw, o *Options) ([]bson.Raw, error) {
	p, err := Parse(stages, o)
	if err != nil {
		return nil, err
	}
	var src Iterator
	if p.NeedsSource() {
		if src, err = m.Find(o.NS, p.TakeMatch()); err != nil {
			return nil, err
		}
	}
	it, err := p.Run(src)
	if err != nil {
		return nil, err
	}
	return collect(it, memoryLimit)
}

// runOn runs a pipeline on documents.
func runOn(t testing.TB, docs, stages string) ([]bson.Raw, error) {
	t.Helper()
	m := newMemory()
	ns := Namespace{"test", "c"}
	for v := range bson.Raw(parseDoc(t, `{"d":`+docs+`}`).Lookup("d").Value).Values() {
		m.colls[ns] = append(m.colls[ns], bson.Raw(v.Value))
	}
	list, err := StagesOf(parseDoc(t, `{"p":`+stages+`}`).Lookup("p"))
	if err != nil {
		t.Fatal(err)
	}
	return m.run(list, &Options{Env: m, NS: ns, Version: release.At(8, 0, 0)})
}

// Window functions subtract dates exactly, and keep decimals.
func TestWindowNumbers(t *testing.T) {
	at := func(ms ...int) (docs string) {
		for i, m := range ms {
			docs += fmt.Sprintf(`,{"_id":%d,"t":{"$date":{"$numberLong":"%d"}},"v":%d,"d":{"$numberDecimal":"%d.10"}}`, i, 1589811030000+m, i, i)
		}
		return "[" + docs[1:] + "]"
	}
	const decimals = `[{"_id":1,"d":{"$numberDecimal":"1.1"},"x":{"$numberDecimal":"1"}},{"_id":2,"d":{"$numberDecimal":"2.3"},"x":{"$numberDecimal":"2"}},{"_id":3,"x":3},{"_id":4,"d":{"$numberDecimal":"4.5"},"x":4}]`
	const trucks = `[{"_id":1,"t":{"$date":"2020-05-18T14:10:30Z"},"v":1295.1},{"_id":2,"t":{"$date":"2020-05-18T14:11:00Z"},"v":1295.63}]`
	for _, c := range []struct{ sortBy, function, docs, want string }{
		{"t", `"$derivative":{"input":"$v","unit":"hour"},"window":{"documents":[-1,0]}`, at(0, 1), `{"$numberDouble":"3600000.0"}`},
		{"t", `"$derivative":{"input":"$v","unit":"day"},"window":{"documents":[-1,0]}`, at(0, 1), `{"$numberDouble":"86400000.0"}`},
		{"t", `"$derivative":{"input":"$v","unit":"week"},"window":{"documents":[-1,0]}`, at(0, 7), `{"$numberDouble":"86400000.0"}`},
		{"t", `"$derivative":{"input":"$v","unit":"hour"},"window":{"documents":[-1,0]}`, trucks, `{"$numberDouble":"63.60000000002401"}`},
		{"t", `"$derivative":{"input":"$d","unit":"second"},"window":{"documents":[-1,0]}`, at(0, 4), `{"$numberDecimal":"250.00"}`},
		{"t", `"$integral":{"input":"$v","unit":"hour"},"window":{"documents":["unbounded","current"]}`, at(0, 1), `{"$numberDouble":"1.3888888888888888E-07"}`},
		{"t", `"$integral":{"input":"$d","unit":"second"},"window":{"documents":["unbounded","current"]}`, at(0, 2000), `{"$numberDecimal":"1.20"}`},
		{"_id", `"$derivative":{"input":"$d"},"window":{"documents":[0,1]}`, decimals[:strings.Index(decimals, `,{"_id":2`)] + `,{"_id":2,"d":{"$numberDecimal":"1.3"}},{"_id":2,"d":{"$numberDecimal":"1.3"}}]`, `null`},
		{"_id", `"$expMovingAvg":{"input":"$d","N":3}`, decimals, `{"$numberDecimal":"3.100"}`},
		{"_id", `"$expMovingAvg":{"input":"$d","alpha":0.1}`, decimals, `{"$numberDecimal":"1.548`},
		{"_id", `"$expMovingAvg":{"input":"$v","N":2}`, `[{"_id":1,"v":13},{"_id":2,"v":15.4},{"_id":3,"v":12},{"_id":4,"v":11.7}]`, `{"$numberDouble":"12.088888888888889"}`},
		{"_id", `"$covariancePop":["$d","$x"]`, decimals, `{"$numberDecimal":"`},
		{"_id", `"$covarianceSamp":["$_id","$x"]`, `[{"_id":1,"x":1},{"_id":2,"x":2},{"_id":3,"x":3},{"_id":4,"x":4}]`, `{"$numberDouble":"1.66666666666666`},
		{"_id", `"$linearFill":"$d"`, decimals, `{"$numberDecimal":"4.5"}`},
	} {
		out, err := runOn(t, c.docs, `[{"$setWindowFields":{"sortBy":{"`+c.sortBy+`":1},"output":{"w":{`+c.function+`}}}}]`)
		if err != nil {
			t.Errorf("%s: %v", c.function, err)
			continue
		}
		text, err := bson.MarshalExtJSON(bson.D{{Key: "w", Value: out[len(out)-1].Lookup("w")}}, true)
		if got := strings.TrimSuffix(strings.TrimPrefix(string(text), `{"w":`), "}"); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s, %v", c.function, got, c.want, err)
		}
	}
	out, err := runOn(t, decimals, `[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"w":{"$linearFill":"$d"}}}}]`)
	if err != nil || out[2].Lookup("w").Type != bson.TypeDecimal128 || out[2].Lookup("w").String() != `{"$numberDecimal":"3.4"}` {
		t.Errorf("filled with %v, %v", out, err)
	}
}

func TestStages(t *testing.T) {
	const numbers = `[{"_id":1,"g":"a","x":1},{"_id":2,"g":"a","x":4},{"_id":3,"g":"b","x":2},{"_id":4,"g":"b"},{"_id":5,"g":"b","x":8}]`
	for _, c := range []struct{ stages, docs, want string }{
		{`[{"$documents":[{"a":1},{"a":2}]},{"$match":{"a":2}}]`, `[]`, `{a: 2}`},
		{`[{"$setWindowFields":{"partitionBy":"$g","sortBy":{"_id":1},"output":{"s":{"$sum":"$x","window":{"documents":["unbounded","current"]}}}}},{"$project":{"s":1}}]`, numbers,
			`{_id: 1, s: 1} {_id: 2, s: 5} {_id: 3, s: 2} {_id: 4, s: 2} {_id: 5, s: 10}`},
		{`[{"$setWindowFields":{"sortBy":{"g":1},"output":{"r":{"$rank":{}},"d":{"$denseRank":{}},"n":{"$documentNumber":{}}}}},{"$project":{"r":1,"d":1,"n":1}}]`, numbers,
			`{_id: 1, r: 1, d: 1, n: 1} {_id: 2, r: 1, d: 1, n: 2} {_id: 3, r: 3, d: 2, n: 3} {_id: 4, r: 3, d: 2, n: 4} {_id: 5, r: 3, d: 2, n: 5}`},
		{`[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"p":{"$shift":{"output":"$x","by":-1,"default":0}}}}},{"$project":{"p":1}}]`, numbers,
			`{_id: 1, p: 0} {_id: 2, p: 1} {_id: 3, p: 4} {_id: 4, p: 2} {_id: 5, p: null}`},
		{`[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"a":{"$avg":"$x","window":{"range":[-1,1]}}}}},{"$project":{"a":1}},{"$limit":2}]`, numbers,
			`{_id: 1, a: 2.5} {_id: 2, a: 2.33333}`},
		{`[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"v":{"$derivative":{"input":"$x"},"window":{"documents":[-1,0]}}}}},{"$project":{"v":1}},{"$limit":3}]`, numbers,
			`{_id: 1, v: null} {_id: 2, v: 3} {_id: 3, v: -2}`},
		{`[{"$fill":{"sortBy":{"_id":1},"output":{"x":{"method":"linear"}}}},{"$project":{"x":1}},{"$skip":2}]`, numbers, `{_id: 3, x: 2} {_id: 4, x: 5} {_id: 5, x: 8}`},
		{`[{"$fill":{"output":{"x":{"value":{"$literal":7}}}}},{"$match":{"_id":4}}]`, numbers, `{_id: 4, g: "b", x: 7}`},
		{`[{"$fill":{"partitionByFields":["g"],"sortBy":{"_id":1},"output":{"x":{"method":"locf"}}}},{"$match":{"_id":4}}]`, numbers, `{_id: 4, g: "b", x: 2}`},
		{`[{"$match":{"_id":{"$lt":3}}},{"$densify":{"field":"x","range":{"step":1,"bounds":"full"}}},{"$project":{"_id":0,"x":1}}]`, numbers, `{x: 1} {x: 2} {x: 3} {x: 4}`},
		{`[{"$densify":{"field":"x","partitionByFields":["g"],"range":{"step":5,"bounds":"partition"}}},{"$project":{"_id":0}}]`, `[{"g":"b","x":0},{"g":"B","x":10},{"g":"b","x":10},{"g":"B","x":20}]`,
			`{g: "B", x: 10} {g: "B", x: 15} {g: "B", x: 20} {g: "b", x: 0} {g: "b", x: 5} {g: "b", x: 10}`},
		{`[{"$densify":{"field":"t","range":{"step":1,"unit":"day","bounds":[{"$date":"2020-02-28T00:00:00Z"},{"$date":"2020-03-02T00:00:00Z"}]}}}]`, `[{"t":{"$date":"2020-02-29T00:00:00Z"}}]`,
			`{t: 2020-02-28T00:00:00.000Z} {t: 2020-02-29T00:00:00.000Z} {t: 2020-03-01T00:00:00.000Z}`},
		{`[{"$group":{"_id":"$g","t":{"$top":{"sortBy":{"x":-1},"output":"$_id"}},"n":{"$firstN":{"n":2,"input":"$x"}},"c":{"$count":{}}}},{"$sort":{"_id":1}}]`, numbers,
			`{_id: "a", t: 2, n: [1, 4], c: 2} {_id: "b", t: 5, n: [2, null], c: 3}`},
		{`[{"$group":{"_id":null,"b":{"$bottomN":{"n":2,"sortBy":{"x":1},"output":"$x"}},"m":{"$median":{"input":"$x","method":"approximate"}}}}]`, numbers, `{_id: null, b: [4, 8], m: 2}`},
		{`[{"$lookup":{"from":"c","localField":"g","foreignField":"g","let":{"i":"$_id"},"pipeline":[{"$match":{"$expr":{"$lt":["$_id","$$i"]}}},{"$project":{"_id":1}}],"as":"r"}},{"$match":{"_id":5}}]`, numbers,
			`{_id: 5, g: "b", x: 8, r: [{_id: 3}, {_id: 4}]}`},
		{`[{"$graphLookup":{"from":"c","startWith":"$_id","connectFromField":"x","connectToField":"_id","as":"r","depthField":"d","maxDepth":2}},{"$match":{"_id":1}},{"$project":{"r":{"$map":{"input":"$r","in":["$$this._id","$$this.d"]}}}}]`, numbers, `{_id: 1, r: [[1, 0]]}`},
		{`[{"$redact":{"$cond":[{"$eq":["$x",8]},"$$PRUNE","$$DESCEND"]}},{"$count":"n"}]`, numbers, `{n: 4}`},
		{`[{"$limit":"x"}]`, numbers, `5107201 invalid argument to $limit stage: Expected a number in: $limit: "x"`},
		{`[{"$setWindowFields":{"output":{"r":{"$rank":{}}}}}]`, numbers, `5371602 $rank must be specified with a top level sortBy expression with exactly one element`},
		{`[{"$project":{"a":{"$getField":"x"}}},{"$match":{"_id":2}}]`, numbers, `{_id: 2, a: 4}`},
		{`[{"$addFields":{}},{"$limit":1}]`, numbers, `{_id: 1, g: "a", x: 1}`},
		{`[{"$match":{"$sampleRate":1}},{"$count":"n"}]`, numbers, `{n: 5}`},
		{`[{"$match":{"$sampleRate":"x"}}]`, numbers, `2 argument to $sampleRate must be a numeric type`}, // as in a find
		{`[{"$match":{"$sampleRate":2}}]`, numbers, `2 numeric argument to $sampleRate must be in [0, 1]`},
		{`[{"$unset":["g","x"]},{"$unionWith":{"coll":"c","pipeline":[{"$match":{"_id":1}}]}},{"$skip":4}]`, numbers, `{_id: 5} {_id: 1, g: "a", x: 1}`},
		{`[{"$project":{"r":{"$divide":["$x",0]}}}]`, numbers, `2 PlanExecutor error during aggregation :: caused by :: can't $divide by zero`},
		{`[{"$listSearchIndexes":{}}]`, numbers, `6047401 $listSearchIndexes stage is only allowed on MongoDB Atlas`},
		{`[{"$nope":1}]`, numbers, `40324 Unrecognized pipeline stage name: '$nope'`},
	} {
		if got := runText(t, c.stages, c.docs, expr.Version{Major: 8}); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.stages, got, c.want)
		}
	}
}

// The arguments of a window function are read in their order, and the first that is wrong is the
// error; what is missing comes last.
func TestWindowArguments(t *testing.T) {
	const average = "9 $expMovingAvg must have exactly one of the following sets of arguments: {input: ..., N: ...} or {input: ..., alpha: ...}"
	for _, c := range []struct{ function, want string }{
		{`"$shift":1`, "9 Argument to $shift must be an object"},
		{`"$shift":{"a":1,"by":"x"}`, "9 Unknown argument in $shift"},
		{`"$shift":{"by":"x","a":1}`, `9 '$shift:by' field must be an integer, but found by: "x"`},
		{`"$shift":{"output":"$x","default":"$x","by":"x"}`, "9 '$shift:default' expression must yield a constant value."},
		{`"$shift":{"output":{"$nope":1},"by":"x"}`, "168 Unrecognized expression '$nope'"},
		{`"$shift":{"by":1}`, "9 $shift requires 'output' and 'by' to be specified"},
		{`"$shift":{"output":"$x"}`, "9 $shift requires 'output' and 'by' to be specified"},
		{`"$expMovingAvg":1`, average},
		{`"$expMovingAvg":{"input":"$x","a":1,"N":0}`, average},
		{`"$expMovingAvg":{"N":0,"a":1}`, "9 'N' field must be an integer greater than zero, but found N: 0"},
		{`"$expMovingAvg":{"alpha":2,"input":{"$nope":1}}`, "9 'alpha' must be between 0 and 1 (exclusive), found alpha: 2"},
		{`"$expMovingAvg":{"alpha":0.5}`, average},
		{`"$expMovingAvg":{"input":"$x"}`, average},
		{`"$derivative":1`, "9 $derivative expects an object, but got $derivative: 1"},
		{`"$derivative":{"a%d":1,"unit":"year"}`, "9 $derivative got unexpected argument: a%d"},
		{`"$integral":{"unit":"year","a":1}`, "5490710 unit must be 'week' or smaller"},
		{`"$integral":{"unit":"day"}`, "9 $integral requires an 'input' expression"},
		{`"$rank":{},"a":1`, "5371601 Rank style window functions take no other arguments"},
		{`"$documentNumber":{},"$rank":{}`, "5371601 Rank style window functions take no other arguments"},
		{`"$covarianceSamp":["$x",{"$nope":1}]`, "168 Unrecognized expression '$nope'"},
	} {
		stages := `[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"v":{` + c.function + `}}}}]`
		if got := runText(t, stages, `[]`, expr.Version{Major: 8}); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.function, got, c.want)
		}
	}
}

// TestStageVersions checks that stages and window functions are unknown to servers that do not have
// them, and that the table of features says of each whether it is built.
func TestStageVersions(t *testing.T) {
	n := 0
	for _, f := range release.Features {
		for _, name := range strings.Fields(f.Names) {
			stages, unknown := `[{"`+name+`":{}}]`, "40324 Unrecognized pipeline stage name: '"+name+"'"
			built := isStage(name)
			switch f.Kind {
			case release.Window:
				stages, unknown = `[{"$setWindowFields":{"output":{"x":{"`+name+`":{}}}}}]`, "9 Unrecognized window function, "+name
				_, built = windowKinds[name]
				built = built || expr.IsAccumulator(name, &expr.Env{})
			case release.Stage:
			default:
				continue
			}
			n++
			if built != (f.State != release.NotBuilt) {
				t.Errorf("%s is built: %t, and %v says the table", name, built, f.State)
			}
			if got := runText(t, stages, `[]`, release.At(4, 2, 0)); f.Kind == release.Stage && !f.In(release.At(4, 2, 0)) && got != unknown {
				t.Errorf("%s in 4.2: %s", name, got)
			}
			if got := runText(t, stages, `[]`, f.Since); built == strings.HasPrefix(got, unknown) || !built && !strings.Contains(got, "mongotest does not") {
				t.Errorf("%s in %v: %s", name, f.Since, got)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names", n)
	}
}

func isStage(name string) bool { return stages[name] != nil }

// FuzzPipeline parses and runs arbitrary stages: no panic.
func FuzzPipeline(f *testing.F) {
	for _, seed := range []string{
		`{"p":[{"$match":{"a":1}},{"$group":{"_id":"$g","n":{"$sum":1}}},{"$sort":{"n":-1}}]}`,
		`{"p":[{"$bucketAuto":{"groupBy":"$x","buckets":3,"granularity":"R5"}}]}`,
		`{"p":[{"$facet":{"a":[{"$unwind":"$x"}],"b":[{"$sample":{"size":1}}]}}]}`,
		`{"p":[{"$lookup":{"from":"c","localField":"x","foreignField":"x","as":"r.s"}},{"$merge":{"into":"m","whenMatched":[{"$set":{"a":"$$new.x"}}]}}]}`,
		`{"p":[{"$setWindowFields":{"sortBy":{"x":1},"output":{"a.b":{"$sum":1,"window":{"range":[-1,"unbounded"]}}}}},{"$fill":{"output":{"x":{"value":1}}}}]}`,
		`{"p":[{"$densify":{"field":"x","range":{"step":0.5,"bounds":"partition"}}},{"$redact":"$$KEEP"},{"$replaceWith":{"a":"$x"}},{"$project":{"a.b":{"$add":["$a",1]}}}]}`,
		`{"p":[{"$geoNear":{"near":[0,0],"distanceField":"d"}}]}`, `{"p":[{"$graphLookup":{"from":"c","startWith":"$x","connectFromField":"x","connectToField":"_id","as":"r"}}]}`,
	} {
		f.Add([]byte(parseDoc(f, seed)))
	}
	var docs []bson.Raw
	for v := range bson.Raw(parseDoc(f, `{"d":[{"_id":1,"x":1,"g":"a"},{"_id":2,"x":[1,2]},{"_id":3,"x":{"b":1}},{"_id":4,"x":2.5},{"_id":5}]}`).Lookup("d").Value).Values() {
		docs = append(docs, bson.Raw(v.Value))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc := bson.Raw(data)
		if doc.Validate() != nil {
			return
		}
		stages, err := StagesOf(doc.Lookup("p"))
		if err != nil {
			return
		}
		m := newMemory()
		ns := Namespace{"test", "c"}
		m.colls[ns] = docs
		if out, err := m.run(stages, &Options{Env: m, NS: ns, Version: expr.Version{Major: 8}, ReplicaSet: true}); err == nil {
			for _, d := range out {
				if d.Validate() != nil && len(d) < 1<<20 {
					t.Errorf("result is no BSON: %x", []byte(d))
				}
			}
		}
	})
}

// withView is a deployment in which "v" is a view on "c".
type withView struct {
	*memory
	stages []bson.Raw
}

func (w *withView) Resolve(ns Namespace) (Namespace, []bson.Raw, error) {
	if ns.Coll == "v" {
		return Namespace{ns.DB, "c"}, w.stages, nil
	}
	return ns, nil, nil
}

// TestViewVariables checks that the variables of a view do not get in the way of those of the
// pipeline that reads it.
func TestViewVariables(t *testing.T) {
	m := newMemory()
	ns := Namespace{"test", "c"}
	m.colls[ns] = []bson.Raw{parseDoc(t, `{"_id":1,"a":[5,6]}`), parseDoc(t, `{"_id":2,"a":[7]}`)}
	view, _ := StagesOf(parseDoc(t, `{"p":[{"$project":{"m":{"$map":{"input":"$a","as":"x","in":{"$add":["$$x",1]}}}}}]}`).Lookup("p"))
	list, _ := StagesOf(parseDoc(t, `{"p":[{"$lookup":{"from":"v","let":{"i":"$_id"},"pipeline":[{"$match":{"$expr":{"$eq":["$_id","$$i"]}}},{"$project":{"m":1,"i":"$$i"}}],"as":"r"}},{"$project":{"r":1}}]}`).Lookup("p"))
	p, err := Parse(list, &Options{Env: &withView{m, view}, NS: ns})
	if err != nil {
		t.Fatal(err)
	}
	it, err := p.Run(FromSlice(m.colls[ns]))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := collect(it, memoryLimit)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{_id: 1, r: [{_id: 1, m: [6, 7], i: 1}]}`, `{_id: 2, r: [{_id: 2, m: [8], i: 2}]}`}
	for i, doc := range docs {
		if got := expr.Text(bsondoc.DocumentValue(doc)); got != want[i] {
			t.Errorf("got %s, want %s", got, want[i])
		}
	}
}

// geoIndexed is a deployment whose collections have a geo index on "l".
type geoIndexed struct{ *memory }

func (geoIndexed) GeoIndex(Namespace, string) (string, error) { return "l", nil }

func (g geoIndexed) FindNear(ns Namespace, f *query.Filter) (Iterator, error) { return g.Find(ns, f) }

func TestGeoNear(t *testing.T) {
	m := newMemory()
	ns := Namespace{"test", "c"}
	for _, text := range []string{`{"_id":1,"l":{"type":"Point","coordinates":[0,1]}}`, `{"_id":2,"l":{"type":"Point","coordinates":[0,0.5]}}`, `{"_id":3}`, `{"_id":4,"l":[3,4]}`} {
		m.colls[ns] = append(m.colls[ns], parseDoc(t, text))
	}
	for stages, want := range map[string]string{
		`{"p":[{"$geoNear":{"near":{"type":"Point","coordinates":[0,0]},"distanceField":"d","maxDistance":200000}},{"$project":{"d":{"$round":"$d"}}}]}`: `{_id: 2, d: 55659} {_id: 1, d: 111319}`,
		`{"p":[{"$geoNear":{"near":[0,0],"distanceField":"p.d","query":{"_id":4}}},{"$project":{"p":1}}]}`:                                               `{_id: 4, p: {d: 5}}`,
	} {
		list, _ := StagesOf(parseDoc(t, stages).Lookup("p"))
		docs, err := m.run(list, &Options{Env: geoIndexed{m}, NS: ns})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, doc := range docs {
			got = append(got, expr.Text(bsondoc.DocumentValue(doc)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n got %s\nwant %s", stages, got, want)
		}
	}
}
