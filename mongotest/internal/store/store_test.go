package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

// testClock is a clock for stores in tests.
func testClock() func() bson.Timestamp {
	var ts bson.Timestamp
	return func() bson.Timestamp {
		ts.I++
		return bson.Timestamp{T: 1, I: ts.I}
	}
}

func testDoc(id, a int32, tags ...int32) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "_id", id)
	doc = bson.AppendInt32(doc, "a", a)
	list, doc := bson.BeginArrayElement(doc, "tags")
	for i, t := range tags {
		doc = bson.AppendInt32Value(bson.AppendIndexHeader(doc, bson.TypeInt32, i), t)
	}
	return bson.EndDocument(bson.EndDocument(doc, list), at)
}

func int32Of(v bson.RawValue) int32 { n, _ := v.Int32(); return n }

func index(name string, unique bool, fields ...IndexField) *IndexInfo {
	at, pattern := bson.BeginDocument(nil)
	for _, f := range fields {
		pattern = bson.AppendInt32(pattern, f.Path, 1)
	}
	return (&IndexInfo{Name: name, Fields: fields, Unique: unique, Pattern: bson.EndDocument(pattern, at)}).Prepare()
}

// newTestStore returns a store with a collection t.c that has a plain, a descending, a compound and
// a multikey index.
func newTestStore(t testing.TB, tick func() bson.Timestamp) *Store {
	s := New(Options{Tick: tick})
	err := s.Write(func(tx *Tx) error {
		c, err := tx.Create("t.c", Settings{}, IDIndex(nil, nil))
		if err != nil {
			return err
		}
		for _, x := range []*IndexInfo{
			index("a", false, IndexField{Path: "a"}), index("down", false, IndexField{Path: "a", Descending: true}, IndexField{Path: "_id"}),
			index("tags", false, IndexField{Path: "tags"}),
		} {
			if c, err = tx.CreateIndex(c, x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// model is what the collection should hold.
type model map[int32]bson.Raw

func checkModel(t *testing.T, what string, st *State, want model) {
	t.Helper()
	c := st.Coll("t.c")
	if c.Count() != int64(len(want)) {
		t.Fatalf("%s: %d documents, want %d", what, c.Count(), len(want))
	}
	bytes := int64(0)
	for id, doc := range want {
		bytes += int64(len(doc))
		if _, got, ok := c.ByID(doc.Lookup("_id")); !ok || !bson.Equal(got, doc) {
			t.Fatalf("%s: _id %d is %s, want %s", what, id, got, doc)
		}
	}
	if c.Bytes() != bytes {
		t.Fatalf("%s: %d bytes, want %d", what, c.Bytes(), bytes)
	}
	for _, back := range []bool{false, true} {
		for i := range c.Indexes() {
			checkIndex(t, what, c, &c.Indexes()[i], back, want)
		}
	}
}

// checkIndex walks over an index: every document once, in order.
func checkIndex(t *testing.T, what string, c *Coll, ix *Index, back bool, want model) {
	t.Helper()
	scan := NewIndexScan(c, ix, back, []Range{{}})
	var seen []int32
	var last []byte
	for {
		_, doc, ok := scan.Next()
		if !ok {
			break
		}
		seen = append(seen, int32Of(doc.Lookup("_id")))
		key := []byte(scan.Position())
		if last != nil && (!back && string(key) < string(last) || back && string(key) > string(last)) {
			t.Fatalf("%s: index %s is out of order", what, ix.Name)
		}
		last = key
	}
	slices.Sort(seen)
	if !slices.Equal(seen, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("%s: index %s has %v, want %v", what, ix.Name, seen, slices.Sorted(maps.Keys(want)))
	}
	keys := 0
	var list []string
	for _, doc := range want {
		list, _, _ = ix.keys(list[:0], doc, "", nil)
		keys += len(list)
	}
	if ix.Keys() != keys {
		t.Fatalf("%s: index %s has %d keys, want %d", what, ix.Name, ix.Keys(), keys)
	}
}

// TestStoreModel compares the store with a map over random writes, some of them in transactions,
// and checks that older states stay what they were.
func TestStoreModel(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := newTestStore(t, testClock())
		want := model{}
		type past struct {
			st   *State
			want model
		}
		var history []past
		for range 120 {
			next := maps.Clone(want)
			commit := rng.IntN(4) > 0
			ops := func(tx *Tx) error {
				for range rng.IntN(12) {
					if err := randomWrite(t, rng, tx, next); err != nil {
						return err
					}
				}
				return nil
			}
			switch rng.IntN(3) {
			case 0: // a transaction
				txn := s.Begin(s.Latest())
				for range 3 {
					if err := txn.Write(ops); err != nil {
						t.Fatal(err)
					}
				}
				checkModel(t, "in the transaction", txn.State(), next)
				checkModel(t, "outside of the transaction", s.Latest(), want)
				if !commit {
					txn.Abort()
				} else if _, err := txn.Commit(nil, 1); err != nil {
					t.Fatal(err)
				}
			default:
				err := s.Write(func(tx *Tx) error {
					if err := ops(tx); err != nil || commit {
						return err
					}
					return srverr.New(1, "undo")
				})
				if err != nil && commit {
					t.Fatal(err)
				}
			}
			if commit {
				want = next
			}
			if rng.IntN(10) == 0 {
				history = append(history, past{s.Latest(), maps.Clone(want)})
			}
		}
		checkModel(t, "at the end", s.Latest(), want)
		for i, p := range history {
			checkModel(t, fmt.Sprintf("state %d", i), p.st, p.want)
			if at, ok := s.At(p.st.TS); !ok || at.TS != p.st.TS {
				t.Fatalf("the state at %v is not in the history", p.st.TS)
			}
		}
		if len(history) > 0 {
			p := history[len(history)/2]
			if _, _, err := s.Rollback(p.st.TS); err != nil {
				t.Fatal(err)
			}
			checkModel(t, "after the rollback", s.Latest(), p.want)
		}
	}
}

func randomWrite(t *testing.T, rng *rand.Rand, tx *Tx, want model) error {
	c := tx.Coll("t.c")
	id := int32(rng.IntN(60))
	var tags []int32
	for range rng.IntN(4) {
		tags = append(tags, int32(rng.IntN(5)))
	}
	doc := testDoc(id, int32(rng.IntN(10)), tags...)
	old, exists := want[id]
	rid, _, _ := c.ByID(doc.Lookup("_id"))
	var err error
	switch {
	case rng.IntN(3) == 0 && exists:
		_, err = tx.Delete(c, rid, old)
		delete(want, id)
	case exists && rng.IntN(4) > 0:
		_, err = tx.Update(c, rid, old, doc, false, nil)
		want[id] = doc
	default:
		_, err = tx.Insert(c, doc)
		if exists {
			if srverr.CodeOf(err) != srverr.DuplicateKey {
				t.Fatalf("a second document with the same _id: %v", err)
			}
			return nil
		}
		want[id] = doc
	}
	return err
}

// TestTransactionConflicts checks who may write what while a transaction is open.
func TestTransactionConflicts(t *testing.T) {
	s := newTestStore(t, testClock())
	insert := func(id int32) func(*Tx) error {
		return func(tx *Tx) error {
			_, err := tx.Insert(tx.Coll("t.c"), testDoc(id, id))
			return err
		}
	}
	update := func(id, a int32) func(*Tx) error {
		return func(tx *Tx) error {
			rid, old, ok := tx.Coll("t.c").ByID(testDoc(id, 0).Lookup("_id"))
			if !ok {
				return srverr.New(1, "not found")
			}
			_, err := tx.Update(tx.Coll("t.c"), rid, old, testDoc(id, a), false, nil)
			return err
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conflict := func(err error) {
		t.Helper()
		if srverr.CodeOf(err) != srverr.WriteConflict {
			t.Fatalf("want a write conflict, got %v", err)
		}
	}
	must(s.Write(insert(1)))
	a, b := s.Begin(s.Latest()), s.Begin(s.Latest())
	must(a.Write(update(1, 5)))
	conflict(b.Write(update(1, 6)))
	if _, ok := s.Write(update(1, 7)).(*Blocked); !ok {
		t.Fatal("a write in the way of a transaction is not blocked")
	}
	must(a.Write(insert(2)))
	if _, ok := s.Write(insert(2)).(*Blocked); !ok {
		t.Fatal("an insert in the way of a transaction is not blocked")
	}
	must(s.Write(insert(3)))
	conflict(b.Write(insert(3)))
	_, err := a.Commit(nil, 1)
	must(err)
	<-a.done
	conflict(b.Write(update(1, 6)))
	b.Abort()
	must(s.Write(update(1, 7)))
	if _, ok := s.Write(func(tx *Tx) error { return tx.Drop(tx.Coll("t.c")) }).(*Blocked); ok {
		t.Fatal("nobody uses the collection any more")
	}
}

// TestConcurrentReaders lets readers look at states while a writer is busy; the race detector
// watches.
func TestConcurrentReaders(t *testing.T) {
	s := newTestStore(t, testClock())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c := s.Latest().Coll("t.c")
				n := int64(0)
				scan := NewScan(c, false, nil)
				for _, _, ok := scan.Next(); ok; _, _, ok = scan.Next() {
					n++
				}
				if n != c.Count() {
					t.Errorf("%d documents, counted %d", c.Count(), n)
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	want := model{}
	for range 300 {
		if err := s.Write(func(tx *Tx) error { return randomWrite(t, rng, tx, want) }); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}

// TestBounds compares what an index scan over a filter's bounds finds with a scan of everything.
func TestBounds(t *testing.T) {
	s := newTestStore(t, nil)
	rng := rand.New(rand.NewPCG(3, 3))
	want := model{}
	if err := s.Write(func(tx *Tx) error {
		for range 300 {
			if err := randomWrite(t, rng, tx, want); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c := s.Latest().Coll("t.c")
	for _, text := range []string{
		`{"a": 3}`, `{"a": {"$gt": 3}}`, `{"a": {"$gte": 2, "$lt": 5}}`, `{"a": {"$in": [1, 7, 3]}}`, `{"a": {"$in": []}}`, `{"tags": 2}`,
		`{"tags": {"$gt": 1, "$lt": 4}}`, `{"a": {"$ne": 3}}`, `{"a": 4, "_id": {"$gt": 10}}`, `{"a": {"$in": [1, 2]}, "_id": {"$lt": 30}}`, `{"_id": 5}`, `{"a": null}`,
	} {
		var spec bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		f, err := query.ParseFilter(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		var expected []int32
		for id, doc := range want {
			if ok, _ := f.Match(doc); ok {
				expected = append(expected, id)
			}
		}
		slices.Sort(expected)
		for i := range c.Indexes() {
			ix := &c.Indexes()[i]
			ranges, score := ix.Ranges(f, true)
			if score == 0 {
				ranges = []Range{{}}
			}
			for _, back := range []bool{false, true} {
				scan := NewIndexScan(c, ix, back, ranges)
				var got []int32
				for {
					_, doc, ok := scan.Next()
					if !ok {
						break
					}
					if ok, _ := f.Match(doc); ok {
						got = append(got, int32Of(doc.Lookup("_id")))
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, expected) {
					t.Errorf("%s by index %s (backward %v): %v, want %v", text, ix.Name, back, got, expected)
				}
			}
		}
	}
}
