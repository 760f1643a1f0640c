package schema_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/collation"
	"allium/mongotest"
	"allium/patterns/schema"
)

// one returns a schema of one collection.
func one(o allium.CreateCollectionOptions, indexes ...allium.IndexModel) schema.Schema {
	return schema.Schema{Collections: []schema.Collection{{Name: "c", Options: o, Indexes: indexes}}}
}

// TestDuplicates plans unique indexes on drawn documents: Plan tells of duplicates exactly if the
// server refuses to build the index, and its sample finds documents.
func TestDuplicates(t *testing.T) {
	refused := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := allium.IndexModel{Unique: true, Keys: [](bson.D){{{Key: "a", Value: 1}}, {{Key: "a.b", Value: -1}}, {{Key: "a", Value: 1}, {Key: "b", Value: 1}}, {{Key: "b.c", Value: 1}, {Key: "a", Value: 1}}}[r.IntN(4)]}
		switch r.IntN(4) {
		case 0:
			m.Sparse = true
		case 1:
			m.PartialFilter = bson.D{{Key: "b", Value: bson.D{{Key: "$exists", Value: true}}}}
		case 2:
			m.Collation = &allium.Collation{Locale: "en", Strength: collation.Secondary}
		}
		var value func(depth int) any
		value = func(depth int) any {
			switch k := r.IntN(12); {
			case k == 0:
				return nil
			case k == 1:
				return []any{"x", "X", "y"}[r.IntN(3)]
			case k == 2:
				return []any{int64(1), 1.0, 2.5}[r.IntN(3)]
			case k == 3 && depth == 0:
				list := bson.A{}
				for range r.IntN(3) {
					list = append(list, value(1))
				}
				return list
			case k < 8:
				return bson.D{{Key: []string{"b", "c"}[r.IntN(2)], Value: r.IntN(40)}}
			}
			return r.IntN(100)
		}
		_, db := start(t, mongotest.Standalone())
		for i := range 1 + r.IntN(6) {
			d := bson.D{{Key: "_id", Value: i}}
			arrays := 0
			for _, k := range []string{"a", "b"} {
				if r.IntN(4) > 0 {
					v := value(0)
					if _, ok := v.(bson.A); ok {
						if arrays++; arrays > 1 {
							continue // two arrays have no index
						}
					}
					d = append(d, bson.E{Key: k, Value: v})
				}
			}
			if _, err := db.Collection("c").InsertOne(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		changes, err := schema.Plan(t.Context(), db, one(allium.CreateCollectionOptions{}, m))
		if err != nil || len(changes) != 1 {
			t.Fatalf("seed %d: %v, %v", seed, changes, err)
		}
		_, built := db.Collection("c").CreateIndex(t.Context(), m)
		if built != nil {
			refused++
		}
		if told := changes[0].Problem != ""; told != (built != nil) {
			docs, _ := db.Collection("c").All(t.Context(), bson.D{})
			t.Errorf("seed %d: index %v of %v: the server says %v, Plan %q", seed, m, docs, built, changes[0].Problem)
		}
	}
	if refused < 50 || refused > 350 {
		t.Errorf("%d of 400 are refused: the test draws too little of one kind", refused)
	}
}

// TestPlanTells wants each kind of difference told as what it is, and what it costs.
func TestPlanTells(t *testing.T) {
	day := 24 * time.Hour
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	series := func(granularity, field string) allium.CreateCollectionOptions {
		return allium.CreateCollectionOptions{TimeSeries: bson.D{{Key: "timeField", Value: field}, {Key: "granularity", Value: granularity}}}
	}
	a := func(m allium.IndexModel) allium.IndexModel { m.Keys = bson.D{{Key: "a", Value: 1}}; return m }
	none := allium.CreateCollectionOptions{}
	for _, c := range []struct {
		name             string
		version          string
		there, declared  schema.Schema
		action           schema.Action
		what, cost, warn string // parts of what is told
	}{
		{"an index", "8.0", one(none), one(none, a(allium.IndexModel{})), schema.Create, "keys", "builds an index on 3 documents", ""},
		{"hidden", "4.4", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{Hidden: true})), schema.Modify, "hidden: nothing, declared true", "", ""},
		{"shown", "4.4", one(none, a(allium.IndexModel{Hidden: true})), one(none, a(allium.IndexModel{})), schema.Modify, "hidden", "", ""},
		{"sparse", "8.0", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{Sparse: true})), schema.Rebuild, "sparse", "builds an index", "no such index"},
		{"unique", "8.0", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{Unique: true})), schema.Modify, "unique", "reads the index's keys of 3 documents", "1 key occurs"},
		{"unique before 6.0", "5.0", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{Unique: true})), schema.Rebuild, "unique", "builds", "no such index"},
		{"no longer unique", "8.0", one(none, allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Unique: true}), one(none, allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}), schema.Rebuild, "unique", "builds", ""},
		{"expires later", "4.4", one(none, a(allium.IndexModel{ExpireAfter: &day})), one(none, a(allium.IndexModel{ExpireAfter: new(2 * day)})), schema.Modify, "expireAfterSeconds: 86400, declared 172800", "", ""},
		{"expires at all", "8.0", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{ExpireAfter: &day})), schema.Modify, "expireAfterSeconds", "", "will delete 2 documents"},
		{"expires at all before 6.0", "5.0", one(none, a(allium.IndexModel{})), one(none, a(allium.IndexModel{ExpireAfter: &day})), schema.Rebuild, "expireAfterSeconds", "builds", "will delete"},
		{"collation of an index", "8.0", one(none, a(allium.IndexModel{Name: "x"})), one(none, a(allium.IndexModel{Name: "x", Collation: &allium.Collation{Locale: "de"}})), schema.Rebuild, "collation", "", ""},
		{"another name", "8.0", one(none, a(allium.IndexModel{Name: "x"})), one(none, a(allium.IndexModel{Name: "y"})), schema.Rebuild, "its name is x", "", ""},
		{"an index that is not declared", "8.0", one(none, a(allium.IndexModel{})), one(none), schema.Drop, "not declared", "", ""},
		{"a validator", "8.0", one(none), one(allium.CreateCollectionOptions{Validator: bson.D{{Key: "n", Value: 1}}}), schema.Modify, "validator", "checks no document", "2 documents"},
		{"a validator that is off", "8.0", one(none), one(allium.CreateCollectionOptions{Validator: bson.D{{Key: "n", Value: 1}}, ValidationLevel: "off"}), schema.Modify, "validator", "", ""},
		{"a validator that is not declared", "8.0", one(allium.CreateCollectionOptions{Validator: bson.D{{Key: "n", Value: bson.D{{Key: "$exists", Value: true}}}}}), one(none), schema.Drop, "validator", "", ""},
		{"images", "8.0", one(none), one(allium.CreateCollectionOptions{PreAndPostImages: new(true)}), schema.Modify, "changeStreamPreAndPostImages", "", ""},
		{"images before 6.0", "5.0", one(none), one(allium.CreateCollectionOptions{PreAndPostImages: new(true)}), schema.Impossible, "changeStreamPreAndPostImages", "", "6.0"},
		{"collation", "8.0", one(none), one(allium.CreateCollectionOptions{Collation: &allium.Collation{Locale: "de"}}), schema.Impossible, "collation", "", "new collection"},
		{"capped", "8.0", one(none), one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}), schema.Impossible, "capped", "", "new collection"},
		{"a larger bound", "8.0", one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}), one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 8192}), schema.Modify, "size: 4096, declared 8192", "", ""},
		{"a smaller bound", "8.0", one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 8192}), one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}), schema.Drop, "size", "", "deletes"},
		{"a bound before 6.0", "5.0", one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}), one(allium.CreateCollectionOptions{Capped: true, SizeInBytes: 8192}), schema.Impossible, "size", "", "6.0"},
		{"coarser buckets", "8.0", one(series("seconds", "a")), one(series("hours", "a")), schema.Modify, `granularity: "seconds", declared "hours"`, "", ""},
		{"finer buckets", "8.0", one(series("hours", "a")), one(series("seconds", "a")), schema.Impossible, "granularity", "", "coarser"},
		{"another time field", "8.0", one(series("hours", "a")), one(series("hours", "b")), schema.Impossible, "timeField", "", "new collection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, db := start(t, mongotest.Version(c.version))
			if _, err := schema.Apply(t.Context(), db, c.there); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "n", Value: i}, {Key: "a", Value: []time.Time{time.Now(), old, old}[i]}}); err != nil {
					t.Fatal(err)
				}
			}
			changes, err := schema.Plan(t.Context(), db, c.declared)
			if err != nil || len(changes) != 1 {
				t.Fatalf("%v, %v", changes, err)
			}
			got := changes[0]
			if got.Action != c.action || !strings.Contains(got.What, c.what) || !strings.Contains(got.Cost, c.cost) || !strings.Contains(got.Problem, c.warn) || c.cost == "" && got.Cost != "" && c.action == schema.Impossible {
				t.Errorf("%+v", got)
			}
			if quick, err := schema.Plan(t.Context(), db, c.declared, schema.PlanOptions{NoScan: true}); err != nil || len(quick) != 1 || quick[0].Sample != "" {
				t.Errorf("without a scan: %v, %v", quick, err)
			}
			made, err := schema.Apply(t.Context(), db, c.declared)
			if done := len(made) == 1 && err == nil; done != (!got.Told() && got.Action != schema.Impossible) && !strings.Contains(got.Problem, "cannot be unique") {
				t.Errorf("Apply makes %v, %v", made, err)
			}
		})
	}
}

// TestGoesOn: a change that fails keeps no other from being made, except in a collection that could
// not be created; an index that cannot become unique is as before.
func TestGoesOn(t *testing.T) {
	d, db := start(t, mongotest.ReplicaSet(1))
	for range 2 {
		if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Collection("c").CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	x := func(k string) allium.IndexModel { return allium.IndexModel{Keys: bson.D{{Key: k, Value: 1}}} }
	unique := x("a")
	unique.Unique = true
	s := schema.Schema{Collections: []schema.Collection{
		{Name: "c", Indexes: []allium.IndexModel{unique, x("b"), {Keys: bson.D{{Key: "z", Value: "nothing"}}}, x("d")}},
		{Name: "bad", Options: allium.CreateCollectionOptions{Validator: bson.D{{Key: "$no", Value: 1}}}, Indexes: []allium.IndexModel{x("a")}},
		{Name: "good", Indexes: []allium.IndexModel{x("a")}},
	}}
	d.FailCommand(mongotest.Fail{Commands: []string{"createIndexes"}, Times: 1, Code: 11602})
	made, err := schema.Apply(t.Context(), db, s)
	var names []string
	for _, c := range made {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	if want := []string{"c.b_1", "c.d_1", "good", "good.a_1"}; !slices.Equal(names, want) {
		t.Errorf("made %v, want %v", names, want)
	}
	text := fmt.Sprint(err)
	for _, part := range []string{"c.a_1", "CannotConvertIndexToUnique", "c.z_nothing", "modify c", "create bad", "bad.a_1", "could not be created", "4 changes failed"} {
		if part != "modify c" && !strings.Contains(text, part) {
			t.Errorf("the error does not say %q: %v", part, text)
		}
	}
	if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
		t.Errorf("the index is left prepared to be unique: %v", err)
	}
	if names, err := db.ListCollectionNames(t.Context(), allium.ListCollectionsOptions{Filter: bson.D{{Key: "name", Value: "bad"}}}); err != nil || len(names) > 0 {
		t.Errorf("an index made the collection that could not be created: %v, %v", names, err)
	}
}

// TestSearchIndexes applies search indexes twice, changes one, and drops one.
func TestSearchIndexes(t *testing.T) {
	_, db := start(t, mongotest.Search(0))
	with := func(list ...allium.SearchIndexModel) schema.Schema {
		return schema.Schema{Collections: []schema.Collection{{Name: "c", SearchIndexes: list}}}
	}
	def := func(dynamic bool) bson.D {
		return bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: dynamic}}}}
	}
	vector := bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: 3}, {Key: "similarity", Value: "cosine"}}}}}
	first := with(allium.SearchIndexModel{Definition: def(true)}, allium.SearchIndexModel{Name: "v", Type: "vectorSearch", Definition: vector})
	for i, c := range []struct {
		s    schema.Schema
		o    schema.ApplyOptions
		made int
	}{
		{first, schema.ApplyOptions{}, 3}, {first, schema.ApplyOptions{}, 0},
		{with(allium.SearchIndexModel{Definition: def(false)}), schema.ApplyOptions{}, 1},
		{with(allium.SearchIndexModel{Definition: def(false)}), schema.ApplyOptions{Drop: true}, 1},
		{with(allium.SearchIndexModel{Definition: def(false)}), schema.ApplyOptions{Drop: true}, 0},
	} {
		made, err := schema.Apply(t.Context(), db, c.s, c.o)
		if err != nil || len(made) != c.made {
			t.Errorf("%d: %v, %v", i, made, err)
		}
	}
	live, err := schema.Read(t.Context(), db)
	if err != nil || len(live.Collections) != 1 || len(live.Collections[0].SearchIndexes) != 1 {
		t.Errorf("%+v, %v", live, err)
	}
	_, without := start(t)
	if _, err := schema.Apply(t.Context(), without, first); err == nil || !strings.Contains(err.Error(), "Atlas") {
		t.Errorf("a server without search indexes: %v", err)
	}
}

// TestTablesAreTheDrivers: what this package takes for the fields of an index and of a collection
// is what the driver sends.
func TestTablesAreTheDrivers(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	sent := map[string]bson.Raw{}
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "createIndexes" || c.Name == "create" { // those come one after the other, a monitor's do not
			sent[c.Name] = slices.Clone(c.Body)
		}
		return nil, nil
	})
	db := connect(t, d)
	doc := func(k string) bson.D { return bson.D{{Key: k, Value: 1}} }
	all := &allium.Collation{Locale: "de", CaseLevel: new(true), CaseFirst: "upper", Strength: 2, NumericOrdering: new(false), Alternate: "shifted", MaxVariable: "space", Normalization: new(true), Backwards: new(true)}
	index := allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: "text"}, {Key: "c", Value: -1.0}}, Unique: true, Sparse: true, Hidden: true, ExpireAfter: new(time.Minute), PartialFilter: doc("p"), Collation: all,
		Weights: doc("w"), DefaultLanguage: "de", LanguageOverride: "l", TextVersion: 2, SphereVersion: 3, Bits: 4, Min: new(1.5), Max: new(2.0), WildcardProjection: doc("x"), StorageEngine: doc("s"), Version: 1, Clustered: true, Background: new(true)}
	create := allium.CreateCollectionOptions{Capped: true, SizeInBytes: 5, MaxDocuments: 6, Validator: doc("v"), ValidationLevel: "off", ValidationAction: "warn", Collation: all, ViewOn: "x", Pipeline: bson.A{}, TimeSeries: doc("t"),
		ExpireAfter: new(time.Hour), ClusteredIndex: doc("c"), PreAndPostImages: new(true), IDIndex: doc("i"), StorageEngine: doc("s"), IndexOptionDefaults: doc("o")}
	_, _ = db.Collection("c").CreateIndex(t.Context(), index)
	_ = db.CreateCollection(t.Context(), "c", create)
	var b bytes.Buffer
	if err := schema.WriteJSON(&b, schema.Schema{Collections: []schema.Collection{{Name: "c", Options: create, Indexes: []allium.IndexModel{index}}}}); err != nil {
		t.Fatal(err)
	}
	file, err := bson.ParseExtJSON(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	compare := func(what string, got, sent bson.Raw, rest ...string) {
		n := 0
		for k, v := range sent.All() {
			if n++; !slices.Contains(rest, k) && bson.Compare(got.Lookup(k), v) != 0 {
				if a, b := got.Lookup(k).String(), v.String(); k != "collation" || !sameElements(got.Lookup(k), v) {
					t.Errorf("%s: %s is %s, the driver sends %s", what, k, a, b)
				}
			}
		}
		for k := range got.All() {
			if sent.Lookup(k).IsZero() {
				t.Errorf("%s: the driver sends no %s", what, k)
			}
		}
		if n < 10 {
			t.Errorf("%s: the driver sent %v", what, sent)
		}
	}
	model, _ := sent["createIndexes"].Lookup("indexes", "0").Document()
	got, _ := file.Lookup("collections", "0", "indexes", "0").Document()
	compare("index", got, model, "name")
	changes, err := schema.Diff(schema.Schema{}, schema.Schema{Collections: []schema.Collection{{Name: "c", Indexes: []allium.IndexModel{index}}}})
	if name, _ := model.Lookup("name").StringValue(); err != nil || changes[1].Index != name {
		t.Errorf("the index's name is %q, the driver sends %q (%v)", changes[1].Index, name, err)
	}
	got, _ = file.Lookup("collections", "0", "options").Document()
	compare("collection", got, sent["create"], "create", "lsid", "$db", "txnNumber", "writeConcern")
}

func sameElements(a, b bson.RawValue) bool {
	x, _ := a.Document()
	y, _ := b.Document()
	n := 0
	for k, v := range y.All() {
		if n++; bson.Compare(x.Lookup(k), v) != 0 {
			return false
		}
	}
	for range x.All() {
		n--
	}
	return n == 0
}

// TestWriteGoCompiles writes schemas that were read as Go source, runs it, and compares what it
// declares.
func TestWriteGoCompiles(t *testing.T) {
	const cases = 20
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "patterns", "schema", "testdata"), "written-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var all []schema.Schema
	joined := "package main\n\nimport \"allium/patterns/schema\"\n\nfunc main() {\n\tvar s schema.Schema\n\tfor _, one := range []schema.Schema{"
	for seed := range uint64(cases) {
		_, db := start(t, mongotest.Standalone())
		r := drawer{rand.New(rand.NewPCG(seed, 9)), 8}
		s := r.schema()
		if _, err := schema.Apply(t.Context(), db, s); err != nil {
			t.Fatal(err)
		}
		live, err := schema.Read(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for i := range live.Collections { // they stand in one file in the end
			live.Collections[i].Name += fmt.Sprint("_", seed)
			if on := &live.Collections[i].Options.ViewOn; *on != "" {
				*on += fmt.Sprint("_", seed)
			}
		}
		all = append(all, live)
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("s%d.go", seed)))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("S%d", seed)
		if err := schema.WriteGo(f, live, schema.WriteGoOptions{Package: "main", Variable: name}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		joined += name + ", "
	}
	joined += "} {\n\t\ts.Collections = append(s.Collections, one.Collections...)\n\t}\n\tschema.Main(s)\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(joined), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "./patterns/schema/testdata/"+filepath.Base(dir))
	cmd.Dir = root
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	back, err := schema.ReadJSON(&out)
	if err != nil {
		t.Fatal(err)
	}
	var live schema.Schema
	for _, s := range all {
		live.Collections = append(live.Collections, s.Collections...)
	}
	if len(live.Collections) < cases {
		t.Errorf("%d collections", len(live.Collections))
	}
	if diff, err := schema.Diff(live, back, schema.DiffOptions{Whole: true}); err != nil || diff != nil {
		t.Errorf("%v, %v", diff, err)
	}
}

// TestChecks: what no database can have is refused before anything is sent.
func TestChecks(t *testing.T) {
	x := func(k string) allium.IndexModel { return allium.IndexModel{Keys: bson.D{{Key: k, Value: 1}}} }
	for what, s := range map[string]schema.Schema{
		"no name":     {Collections: []schema.Collection{{}}},
		"twice":       {Collections: []schema.Collection{{Name: "a"}, {Name: "a"}}},
		"for itself":  {Collections: []schema.Collection{{Name: "allium_leases"}}},
		"server's":    {Collections: []schema.Collection{{Name: "system.views"}}},
		"view":        {Collections: []schema.Collection{{Name: "a", Options: allium.CreateCollectionOptions{ViewOn: "b"}, Indexes: []allium.IndexModel{x("a")}}}},
		"no keys":     one(allium.CreateCollectionOptions{}, allium.IndexModel{}),
		"index twice": one(allium.CreateCollectionOptions{}, x("a"), x("a")),
		"_id":         one(allium.CreateCollectionOptions{}, x("_id")),
		"no document": one(allium.CreateCollectionOptions{Validator: 3}),
		"no def":      {Collections: []schema.Collection{{Name: "a", SearchIndexes: []allium.SearchIndexModel{{}}}}},
	} {
		if changes, err := schema.Diff(schema.Schema{}, s); err == nil {
			t.Errorf("%s: %v", what, changes)
		}
	}
	if _, err := schema.Diff(schema.Schema{}, schema.Schema{}, schema.DiffOptions{Server: "new"}); err == nil {
		t.Error("a version that is none is taken")
	}
	for _, text := range []string{"", "x", "[]", `{"collection": []}`, `{"collections": [{"name": "a", "options": {"cap": true}}]}`, `{"collections": [{"name": "a", "index": []}]}`} {
		if s, err := schema.ReadJSON(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}
