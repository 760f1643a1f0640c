package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// generator makes random documents, queries and indexes of few fields and values, so that they have
// to do with each other.
type generator struct{ *rand.Rand }

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// scalar leaves out undefined, which $nin and the keys of the server's indexes see differently.
func (g *generator) scalar() string {
	return g.pick(`1`, `2`, `3`, `2.5`, `null`, `"x"`, `"X"`, `"y"`, `true`, `{"$numberDouble": "NaN"}`, `{"$minKey": 1}`, `{"$maxKey": 1}`)
}

func (g *generator) value(depth int) string {
	switch n := g.IntN(8); {
	case n < 5 || depth == 0:
		return g.scalar()
	case n == 5:
		return g.object(depth - 1)
	}
	var list []string
	for range g.IntN(4) {
		list = append(list, g.value(depth-1))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (g *generator) object(depth int) string {
	var list []string
	for _, k := range []string{"a", "b", "c"} {
		if g.IntN(3) > 0 {
			list = append(list, fmt.Sprintf("%q: %s", k, g.value(depth)))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g *generator) path() string { return g.pick("a", "b", "c", "a.b", "a.c", "b.a", "a.b.c") }

// queried is a path that may name an element of an array.
func (g *generator) queried() string {
	if g.IntN(8) == 0 {
		return g.pick("a.0", "b.1.a")
	}
	return g.path()
}

func (g *generator) operator() string {
	switch g.IntN(12) {
	case 0, 1:
		return fmt.Sprintf(`{"$eq": %s}`, g.condition())
	case 2, 3, 4:
		return fmt.Sprintf(`{"%s": %s}`, g.pick("$lt", "$lte", "$gt", "$gte"), g.condition())
	case 5:
		return fmt.Sprintf(`{"$in": [%s, %s]}`, g.condition(), g.condition())
	case 6:
		return fmt.Sprintf(`{"$ne": %s}`, g.condition())
	case 7:
		return fmt.Sprintf(`{"$exists": %s}`, g.pick("true", "false"))
	case 8:
		return fmt.Sprintf(`{"$not": {"%s": %s}}`, g.pick("$gt", "$lte"), g.condition())
	case 9:
		return fmt.Sprintf(`{"$elemMatch": {"$gte": %s, "$lt": %s}}`, g.condition(), g.condition())
	case 10:
		return fmt.Sprintf(`{"$elemMatch": {"b": %s, "c": %s}}`, g.operator(), g.operator())
	}
	return g.pick(`{"$type": "string"}`, `{"$type": "number"}`, `{"$regex": "^x"}`, `{"$regex": "x"}`, `{"$mod": [2, 1]}`, `{"$size": 2}`, `{"$nin": [1, null]}`,
		`{"$gt": 1, "$lt": 3}`, `{"$all": [1, 2]}`)
}

// condition is a value that a filter may compare with.
func (g *generator) condition() string {
	for {
		if v := g.value(1); !strings.Contains(v, "undefined") {
			return v
		}
	}
}

func (g *generator) filter(depth int) string {
	var list []string
	for range 1 + g.IntN(2) {
		switch n := g.IntN(8); {
		case n == 0 && depth > 0:
			list = append(list, fmt.Sprintf(`"$or": [%s, %s]`, g.filter(depth-1), g.filter(depth-1)))
		case n == 1 && depth > 0:
			list = append(list, fmt.Sprintf(`"$and": [%s, %s]`, g.filter(depth-1), g.filter(depth-1)))
		case n == 2:
			list = append(list, fmt.Sprintf(`%q: %s`, g.queried(), g.condition()))
		default:
			list = append(list, fmt.Sprintf(`%q: %s`, g.queried(), g.operator()))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g *generator) index(i int) string {
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf(`{"key": {%q: "hashed"}, "name": "i%d", "sparse": %s}`, g.pick("a", "b"), i, g.pick("true", "false"))
	case 1:
		return fmt.Sprintf(`{"key": {"$**": %s}, "name": "i%d"}`, g.pick("1", "-1"), i)
	case 2:
		return fmt.Sprintf(`{"key": {%q: 1}, "name": "i%d", "sparse": true}`, g.path(), i)
	case 3:
		return fmt.Sprintf(`{"key": {%q: 1}, "name": "i%d", "partialFilterExpression": {"b": {"$gt": 1}}}`, g.path(), i)
	}
	p, q := g.path(), g.path()
	if p != q && g.IntN(4) == 0 {
		return fmt.Sprintf(`{"key": {%q: 1, %q: -1}, "name": "i%d", "sparse": true}`, p, q, i)
	}
	if p == q {
		return fmt.Sprintf(`{"key": {%q: %s}, "name": "i%d"}`, p, g.pick("1", "-1"), i)
	}
	return fmt.Sprintf(`{"key": {%q: %s, %q: %s}, "name": "i%d"}`, p, g.pick("1", "-1"), q, g.pick("1", "-1"), i)
}

// TestPlansAgree: whatever the query and the indexes are, each plan that is considered yields the
// documents that match, each once, and in the wanted order if it says so.
func TestPlansAgree(t *testing.T) {
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	for round := range 60 {
		s := store.New(store.Options{})
		err := s.Write(func(tx *store.Tx) error {
			_, err := tx.Create("db.c", store.Settings{}, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var docs, indexes []string
		for i := range 1 + g.IntN(3) {
			if ix := g.index(i); tryIndex(t, s, ix) {
				indexes = append(indexes, ix)
			}
		}
		for range 25 {
			d := g.object(2)
			if tryInsert(t, s, d) {
				docs = append(docs, d)
			}
		}
		c := s.Latest().Coll("db.c")
		for range 40 {
			filter, order := g.filter(1), ""
			if g.IntN(3) == 0 {
				order = fmt.Sprintf(`{%q: %s}`, g.path(), g.pick("1", "-1"))
			}
			checkPlans(t, c, filter, order, func() string {
				return fmt.Sprintf("seed %d round %d\nindexes %s\ndocuments %s", seed, round, strings.Join(indexes, "\n\t"), strings.Join(docs, "\n\t"))
			})
			if t.Failed() {
				return
			}
		}
	}
}

// TestPlansAgreeOn keeps what TestPlansAgree has found.
func TestPlansAgreeOn(t *testing.T) {
	docs := []string{`{"a": [[2]]}`, `{"a": [[2, 3]]}`, `{"a": [2]}`, `{"a": {"0": [2]}}`, `{"a": {"0": 2}}`, `{"a": [{"b": 2}]}`,
		`{"a": [[{"b": 2}]]}`, `{"a": []}`, `{"a": [[]]}`, `{"a": "x", "c": 1}`, `{"c": true}`, `{"a": {"c": 3}, "c": 1}`,
		`{"a": {"c": 8}, "c": 1}`, `{"a": {"c": 9}}`, `{"a": {"c": [2, "x"]}, "c": 2}`}
	for _, tc := range []struct {
		indexes, filters []string
	}{
		// An array within an array has one key in a wildcard index, and what is in it has none.
		{[]string{`{"key": {"$**": 1}, "name": "i1"}`}, []string{`{"a.0": 2}`, `{"a.0": {"$gt": 1}}`, `{"a.0": {"$in": [2]}}`,
			`{"a.0": {"$elemMatch": {"$gte": 2, "$lt": 3}}}`, `{"a.0": {"$elemMatch": {"$eq": 2}}}`, `{"a.0": {"$elemMatch": {"b": 2}}}`,
			`{"a.0.b": 2}`, `{"a.0.1": 3}`, `{"a.0": {"$type": "int"}}`, `{"a.0": {"$mod": [2, 0]}}`, `{"a.0": {"$not": {"$gt": 1}}}`,
			// Scans of the same path that look at other paths in the index are not one.
			`{"$or": [{"a.0": "x"}, {"a.0": {"$exists": true}}]}`, `{"$or": [{"a": 2}, {"a": {"$exists": true}}]}`}},
		// A scan that is joined with another in one plan is as it was in the next.
		{[]string{`{"key": {"a.c": -1, "a.b.c": 1}, "name": "i0"}`, `{"key": {"a.c": 1}, "name": "i1", "sparse": true}`},
			[]string{`{"$or": [{"a.c": 7}, {"a.c": {"$exists": true}}], "c": {"$exists": true}}`,
				`{"$or": [{"a.c": {"$gt": 5}}, {"a.c": {"$exists": true}}], "c": {"$exists": true}}`,
				`{"$or": [{"a.c": 3}, {"a.c": [2, "x"]}], "c": {"$exists": true}}`}},
	} {
		s := store.New(store.Options{})
		if err := s.Write(func(tx *store.Tx) error {
			_, err := tx.Create("db.c", store.Settings{}, nil)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, ix := range tc.indexes {
			tryIndex(t, s, ix)
		}
		for _, d := range docs {
			tryInsert(t, s, d)
		}
		for _, filter := range tc.filters {
			for _, order := range []string{"", `{"a": 1}`} {
				checkPlans(t, s.Latest().Coll("db.c"), filter, order, func() string { return strings.Join(tc.indexes, " ") })
			}
		}
	}
}

// checkPlans compares each plan for a query with a scan of the collection. It returns how many of
// them had an index.
func checkPlans(t *testing.T, c *store.Coll, filter, order string, where func() string) (indexed int) {
	t.Helper()
	a := &Access{Coll: c}
	var err error
	if a.Filter, err = query.ParseFilter(doc(t, filter), nil); err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	if order != "" {
		a.Wants.SortSpec = doc(t, order)
		if a.Sort, err = query.ParseSort(a.Wants.SortSpec, nil); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for scan := store.NewScan(c, false, nil); ; {
		rid, d, ok := scan.Next()
		if !ok {
			break
		}
		if ok, err := a.Filter.Match(d); err != nil {
			t.Fatal(err)
		} else if ok {
			want = append(want, rid)
		}
	}
	p, err := a.Plan()
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	plans := append([]*Stage{p.Whole()}, p.Rejected...)
	for _, s := range plans {
		s = s.Clone()
		s.Walk(func(s *Stage) {
			if s.Index != nil {
				indexed++
			}
		})
		var got []string
		var last []bson.RawValue
		e := p.env()
		for {
			var r row
			st, err := s.work(e, &r)
			if err != nil {
				return indexed // parallel arrays cannot be sorted
			}
			if st == isEOF {
				break
			}
			if st != advanced {
				continue
			}
			got = append(got, r.rid)
			if a.Sort == nil {
				continue
			}
			key, err := a.Sort.Key(r.document(), nil)
			if err != nil {
				return indexed
			}
			key = slices.Clone(key)
			if last != nil && a.Sort.CompareKeys(last, key) > 0 {
				t.Errorf("%s sorted by %s with %s: %v comes behind %v\n%s", filter, order, s.signature(), key, last, where())
				return indexed
			}
			last = key
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s sorted by %s with %s: %d documents, not %d\n%s", filter, order, s.signature(), len(got), len(want), where())
			return indexed
		}
	}
	return indexed
}

// valid reports whether a text is a filter.
func valid(t *testing.T, filter string) bool {
	_, err := query.ParseFilter(doc(t, filter), nil)
	return err == nil
}

// tryIndex makes an index, if it can be made.
func tryIndex(t *testing.T, s *store.Store, spec string) bool {
	return s.Write(func(tx *store.Tx) error {
		c := tx.Coll("db.c")
		parsed, err := index.Parse(version, doc(t, spec), true, false, nil)
		if err != nil {
			return err
		}
		info, err := parsed.Define(version, c)
		if err == nil {
			_, err = tx.CreateIndex(c, info)
		}
		return err
	}) == nil
}

// tryInsert inserts a document, if the indexes take it.
func tryInsert(t *testing.T, s *store.Store, d string) bool {
	return s.Write(func(tx *store.Tx) error {
		_, err := tx.Insert(tx.Coll("db.c"), doc(t, d))
		return err
	}) == nil
}
