package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/store"
)

var version = release.At(8, 0, 0)

func doc(t testing.TB, extJSON string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(extJSON), &d); err != nil {
		t.Fatalf("%s: %v", extJSON, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// collection returns a collection with 300 documents {_id: i, a: i % 10, b: -i} and these indexes.
func collection(t testing.TB, indexes ...string) *store.Coll {
	t.Helper()
	s := store.New(store.Options{})
	err := s.Write(func(tx *store.Tx) error {
		c, err := tx.Create("db.c", store.Settings{}, store.IDIndex(nil, doc(t, `{"v": 2, "key": {"_id": 1}, "name": "_id_"}`)))
		for i := 0; i < len(indexes) && err == nil; i++ {
			var spec *index.Spec
			var info *store.IndexInfo
			if spec, err = index.Parse(version, doc(t, indexes[i]), true, false, nil); err == nil {
				if info, err = spec.Define(version, c); err == nil {
					c, err = tx.CreateIndex(c, info)
				}
			}
		}
		for i := 0; i < 300 && err == nil; i++ {
			c, err = tx.Insert(c, doc(t, fmt.Sprintf(`{"_id": %d, "a": %d, "b": %d}`, i, i%10, -i)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Latest().Coll("db.c")
}

// command is a running command, which ends with err.
type command struct {
	asked int
	err   error
}

func (c *command) Interrupted() error {
	c.asked++
	return c.err
}

func TestPlan(t *testing.T) {
	a, ab, bBack := `{"key": {"a": 1}, "name": "a"}`, `{"key": {"a": 1, "b": 1}, "name": "ab"}`, `{"key": {"b": -1}, "name": "b"}`
	for _, test := range []struct {
		indexes      []string
		filter, sort string
		hint         string
		index        string // what is chosen; empty: the collection
		sorted, back bool
		first        int32 // the _id of the first document
		n            int
	}{
		{indexes: []string{a}, n: 300},
		{indexes: []string{a}, filter: `{"a": 3}`, index: "a", first: 3, n: 30},
		{indexes: []string{bBack}, filter: `{"a": 3}`, first: 3, n: 30},
		{indexes: []string{a, ab}, filter: `{"a": 3}`, index: "a", first: 3, n: 30},
		{indexes: []string{a, ab}, filter: `{"a": 3, "b": {"$lt": -200}}`, index: "ab", first: 293, n: 10},
		{indexes: []string{a, ab}, filter: `{"a": 3}`, sort: `{"a": 1, "b": 1}`, index: "ab", sorted: true, first: 293, n: 30},
		{indexes: []string{a, ab}, filter: `{"a": 3}`, sort: `{"a": -1, "b": -1}`, index: "ab", sorted: true, back: true, first: 3, n: 30},
		{indexes: []string{a}, filter: `{"a": 3}`, sort: `{"b": 1}`, index: "a", first: 293, n: 30},
		{indexes: []string{bBack}, sort: `{"b": -1}`, index: "b", sorted: true, first: 0, n: 300},
		{indexes: []string{bBack}, sort: `{"b": 1}`, index: "b", sorted: true, back: true, first: 299, n: 300},
		{indexes: []string{a, bBack}, filter: `{"a": 3}`, hint: `{"b": -1}`, index: "b", first: 3, n: 30},
		{indexes: []string{a}, filter: `{"a": 3}`, hint: `{"$natural": -1}`, back: true, first: 293, n: 30},
		// Indexes without keys of their own here.
		{indexes: []string{`{"key": {"a": "hashed"}, "name": "h"}`}, hint: `{"a": "hashed"}`, index: "h", first: 6, n: 300},
		{indexes: []string{`{"key": {"a": "hashed"}, "name": "h"}`}, filter: `{"a": 3}`, sort: `{"b": 1}`, hint: `{"a": "hashed"}`, index: "h", first: 293, n: 30},
		{indexes: []string{`{"key": {"$**": 1}, "name": "w"}`}, filter: `{"a": 3}`, hint: `{"$**": 1}`, index: "w", first: 3, n: 30},
		{indexes: []string{`{"key": {"a": 1}, "name": "a", "hidden": true}`}, filter: `{"a": 3}`, first: 3, n: 30},
		{indexes: []string{`{"key": {"a": 1}, "name": "p", "partialFilterExpression": {"a": {"$gt": 5}}}`}, filter: `{"a": 3}`, first: 3, n: 30},
		{indexes: []string{`{"key": {"a": 1}, "name": "p", "partialFilterExpression": {"a": {"$gt": 5}}}`}, filter: `{"a": 7}`, index: "p", first: 7, n: 30},
		{indexes: []string{`{"key": {"b": 1}, "name": "s", "sparse": true}`}, sort: `{"b": 1}`, first: 299, n: 300},
	} {
		name := fmt.Sprintf("%s %s %s with %d", test.filter, test.sort, test.hint, len(test.indexes))
		t.Run(name, func(t *testing.T) {
			access := &Access{Coll: collection(t, test.indexes...)}
			var err error
			if test.filter != "" {
				if access.Filter, err = query.ParseFilter(doc(t, test.filter), nil); err != nil {
					t.Fatal(err)
				}
			}
			if test.sort != "" {
				if access.Sort, err = query.ParseSort(doc(t, test.sort), nil); err != nil {
					t.Fatal(err)
				}
			}
			if test.hint != "" {
				access.Hint = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc(t, test.hint)}
			}
			p, err := access.Plan()
			if err != nil {
				t.Fatal(err)
			}
			chosen := ""
			if p.Index != nil {
				chosen = p.Index.Name
			}
			if chosen != test.index || p.Sorted != test.sorted || p.Back != test.back {
				t.Errorf("index %q, sorted %t, back %t", chosen, p.Sorted, p.Back)
			}
			if wantSort := test.sort != "" && !test.sorted; (p.Sort != nil) != wantSort {
				t.Errorf("there is something left to sort: %t", p.Sort != nil)
			}
			it, _ := p.Open(&command{}, "db.c")
			n := 0
			for ; ; n++ {
				d, err := it.Next()
				if err != nil {
					t.Fatal(err)
				}
				if d == nil {
					break
				}
				if id, _ := d.Lookup("_id").Int32(); n == 0 && id != test.first {
					t.Errorf("the first document is %d, not %d", id, test.first)
				}
			}
			if n != test.n {
				t.Errorf("%d documents, not %d", n, test.n)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	str := func(s string) bson.RawValue {
		return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
	}
	c := collection(t, `{"key": {"a": 1}, "name": "a"}`)
	for _, test := range []struct {
		name   string
		access Access
		want   string
	}{
		{"unknown hint", Access{Hint: str("b")}, "hint provided does not correspond to an existing index"},
		{"bounds without a hint", Access{Min: doc(t, `{"a": 1}`)}, "a hint of which index to use must be provided"},
		{"bounds of another index", Access{Min: doc(t, `{"b": 1}`), Hint: str("a")}, "not compatible with min/max"},
		{"bounds the wrong way", Access{Min: doc(t, `{"a": 5}`), Max: doc(t, `{"a": 2}`), Hint: str("a")}, "does not come before"},
		{"shard out of reach", Access{Reach: func(...int) error { return errors.New("no primary") }}, "no primary"},
	} {
		test.access.Coll = c
		if _, err := test.access.Plan(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	f, err := query.ParseFilter(doc(t, `{"b": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	noScan := Access{Coll: c, Filter: f, NoScan: func() bool { return true }}
	if _, err := noScan.Plan(); err == nil || !strings.Contains(err.Error(), "notablescan") {
		t.Errorf("without a scan: %v", err)
	}
}

// TestScanIsInterrupted: a scan asks now and then whether its command goes on, even if no document
// matches.
func TestScanIsInterrupted(t *testing.T) {
	f, err := query.ParseFilter(doc(t, `{"a": 99}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Access{Coll: collection(t), Filter: f}).Plan()
	if err != nil {
		t.Fatal(err)
	}
	killed := errors.New("killed")
	cmd := &command{err: killed}
	it, _ := p.Open(cmd, "db.c")
	if _, err := it.Next(); err != killed || cmd.asked != 1 {
		t.Errorf("%v after %d questions", err, cmd.asked)
	}
}

// TestRangeIndex: the index of a range begins with the fields of the pattern and may go on.
func TestRangeIndex(t *testing.T) {
	for _, test := range []struct {
		index, pattern string
		ok             bool
	}{
		{`{"key": {"a": 1}, "name": "x"}`, `{"a": 1}`, true},
		{`{"key": {"a": 1, "b": 1}, "name": "x"}`, `{"a": 1}`, true},
		{`{"key": {"a": 1}, "name": "x"}`, `{"a": 1, "b": 1}`, false},
		{`{"key": {"b": 1, "a": 1}, "name": "x"}`, `{"a": 1}`, false},
		{`{"key": {"a": 1}, "name": "x", "sparse": true}`, `{"a": 1}`, false},
	} {
		if _, ok := RangeIndex(collection(t, test.index), doc(t, test.pattern)); ok != test.ok {
			t.Errorf("%s for %s: %t", test.index, test.pattern, ok)
		}
	}
}

func TestIndexFilters(t *testing.T) {
	var f IndexFilters
	c, d := collection(t, `{"key": {"a": 1}, "name": "x"}`), collection(t, `{"key": {"a": 1}, "name": "x"}`)
	shape := func(field string) string { return "eq" + field }
	f.Clear(c, shape("a")) // there is nothing
	f.Set(c, IndexFilter{shape("a"), doc(t, `{"n": 1}`)})
	f.Set(c, IndexFilter{shape("b"), doc(t, `{"n": 2}`)})
	f.Set(c, IndexFilter{shape("a"), doc(t, `{"n": 3}`)})
	f.Set(d, IndexFilter{shape("a"), doc(t, `{"n": 4}`)})
	want := func(c *store.Coll, numbers ...int32) {
		t.Helper()
		var got []int32
		for _, x := range f.List(c) {
			n, _ := x.Entry.Lookup("n").Int32()
			got = append(got, n)
		}
		if fmt.Sprint(got) != fmt.Sprint(numbers) {
			t.Errorf("%v, not %v", got, numbers)
		}
	}
	want(c, 2, 3)
	f.Clear(c, shape("b"))
	want(c, 3)
	f.Clear(c, "")
	want(c)
	want(d, 4)
}
