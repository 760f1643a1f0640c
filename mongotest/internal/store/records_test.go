package store

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"allium/bson"
)

// Records that are numbers are found, and walked over from any bound, as the strings would be that
// their record ids are.
func TestRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, clustered := range []bool{false, true} {
		r := records{clustered: clustered}
		var want []string
		for n := range uint64(300) {
			if rid := recordID(n * 3); rng.IntN(4) > 0 {
				r.set(1, rid, refer(benchDoc(int(n))))
				want = append(want, rid)
			}
		}
		for range 50 {
			i := rng.IntN(len(want))
			r.delete(1, want[i])
			want = slices.Delete(want, i, i+1)
		}
		if r.len() != len(want) {
			t.Fatalf("%d records, want %d", r.len(), len(want))
		}
		bounds := []string{"", "\x00", strings.Repeat("\xff", recordLen), strings.Repeat("\xff", recordLen+2), "\xff"}
		for n := range uint64(910) {
			rid := recordID(n)
			bounds = append(bounds, rid, rid+"\x00", rid[:recordLen-1])
		}
		for _, bound := range bounds {
			i, _ := slices.BinarySearch(want, bound)
			at := r.seek(bound)
			if at.valid() != (i < len(want)) || at.valid() && at.key() != want[i] {
				t.Fatalf("clustered %v: seek %x", clustered, bound)
			}
			before := r.seekBefore(bound)
			if before.valid() != (i > 0) || before.valid() && before.key() != want[i-1] {
				t.Fatalf("clustered %v: seekBefore %x", clustered, bound)
			}
			_, has := r.get(bound)
			if has != slices.Contains(want, bound) {
				t.Fatalf("clustered %v: get %x: %v", clustered, bound, has)
			}
		}
		i := 0
		for it := r.first(); it.valid(); it.next() {
			if it.key() != want[i] {
				t.Fatalf("clustered %v: record %d is %x", clustered, i, it.key())
			}
			i++
		}
		for it := r.last(); it.valid(); it.prev() {
			if i--; it.key() != want[i] {
				t.Fatalf("clustered %v: record %d is %x, backward", clustered, i, it.key())
			}
		}
		if i != 0 {
			t.Errorf("clustered %v: %d records left", clustered, i)
		}
	}
}

// An entry gives key and record id back, and is found by its key only.
func TestEntries(t *testing.T) {
	for _, clustered := range []bool{false, true} {
		e := entries{clustered: clustered}
		c := newColl(&Info{Settings: Settings{Clustered: clustered}}, 1)
		keys := []string{"a\x00", "a\x01\x00", "b\x00", "b\x00\x00", ""}
		for i, k := range keys[:3] {
			rid := recordID(uint64(i + 1))
			if clustered {
				rid += strings.Repeat("x", i*200)
			}
			entry := k + c.suffix(rid)
			if key, got := splitEntry(entry, clustered); key != k || got != rid {
				t.Errorf("clustered %v: %q of %q", clustered, key, got)
			}
			e.add(1, entry)
			if got, ok := e.get(k); !ok || got != rid {
				t.Errorf("clustered %v: %q has %q, %v", clustered, k, got, ok)
			}
			if _, ok := e.getOther(k, rid); ok || !e.has(entry) || e.has(k+c.suffix(rid+"\x00")) {
				t.Errorf("clustered %v: %q is another's", clustered, k)
			}
			if other, ok := e.getOther(k, "nobody"); !ok || other != rid {
				t.Errorf("clustered %v: %q is nobody's: %q", clustered, k, other)
			}
		}
		second := recordID(9)
		e.add(1, keys[0]+c.suffix(second))
		if other, ok := e.getOther(keys[0], recordID(1)); !ok || other != second {
			t.Errorf("clustered %v: the second of %q is %q, %v", clustered, keys[0], other, ok)
		}
		for _, k := range keys[3:] {
			if rid, ok := e.get(k); ok {
				t.Errorf("clustered %v: %q has %q", clustered, k, rid)
			}
		}
		e.remove(1, keys[0]+c.suffix(second))
		if e.tree.len() != 3 {
			t.Errorf("clustered %v: %d entries", clustered, e.tree.len())
		}
	}
}

// What is kept beside a document stays until the document goes, in each state as it was then.
func TestTags(t *testing.T) {
	s := New(Options{Tick: testClock()})
	write := func(ns string, f func(tx *Tx, c *Coll) error) *Coll {
		t.Helper()
		if err := s.Write(func(tx *Tx) error { return f(tx, tx.Coll(ns)) }); err != nil {
			t.Fatal(err)
		}
		return s.Latest().Coll("db.d")
	}
	check := func(what string, c *Coll, want ...any) {
		t.Helper()
		i := 0
		for scan := NewScan(c, false, nil); ; i++ {
			rid, _, ok := scan.Next()
			if !ok {
				break
			}
			if i >= len(want) || c.Tag(rid) != want[i] {
				t.Errorf("%s: document %d has %v", what, i, c.Tag(rid))
			}
		}
		if i != len(want) {
			t.Errorf("%s: %d documents", what, i)
		}
	}
	write("", func(tx *Tx, _ *Coll) error {
		c, err := tx.Create("db.c", Settings{}, IDIndex(nil, nil))
		for i := 0; i < 4 && err == nil; i++ {
			if tx.Tag(nil); i%2 == 1 {
				tx.Tag(i)
			}
			c, err = tx.Insert(c, benchDoc(i))
		}
		return err
	})
	first := s.Latest().Coll("db.c")
	check("inserted", first, nil, 1, nil, 3)
	c := write("db.c", func(tx *Tx, c *Coll) error { return tx.Rename(c, "db.d", c.Raw) })
	check("renamed", c, nil, 1, nil, 3)
	ids := make([]string, 4)
	for i := range ids {
		ids[i], _, _ = c.ByID(benchDoc(i).Lookup("_id"))
	}
	c = write("db.d", func(tx *Tx, c *Coll) error {
		tx.Tag("new")
		c = tx.Retag(c, ids[:2])
		c, err := tx.Update(c, ids[2], benchDoc(2), benchDoc(2), true, nil)
		tx.Tag(nil)
		if err == nil {
			_, err = tx.Update(c, ids[3], benchDoc(3), benchDoc(3), true, nil)
		}
		return err
	})
	check("updated", c, "new", "new", "new", 3)
	c = write("db.d", func(tx *Tx, c *Coll) error { _, err := tx.Delete(c, ids[0], benchDoc(0)); return err })
	check("deleted", c, "new", "new", 3)
	if c.Tag(ids[0]) != nil || c.tags.len() != 3 {
		t.Errorf("%d tags are left", c.tags.len())
	}
	c = write("db.d", func(tx *Tx, c *Coll) error { _, err := tx.Truncate(c); return err })
	check("emptied", c)
	check("at first", first, nil, 1, nil, 3)
}

// What documents of 85 bytes take in the store, beside their size: 64 bytes, and 35 more with an
// index of numbers. The bounds leave room for what else is allocated meanwhile.
func TestMemoryOfSmallDocuments(t *testing.T) {
	const n = 20_000
	live := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	s := benchStore(t, n, false)
	if each := (live() - before) / n; each > 175 {
		t.Errorf("a document takes %d bytes", each)
	}
	err := s.Write(func(tx *Tx) error {
		at, pattern := bson.BeginDocument(nil)
		pattern = bson.EndDocument(bson.AppendInt32(pattern, "n", 1), at)
		_, err := tx.CreateIndex(tx.Coll(benchColl), (&IndexInfo{Name: "n_1", Pattern: pattern, Fields: []IndexField{{Path: "n"}}}).Prepare())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if each := (live() - before) / n; each > 215 {
		t.Errorf("a document takes %d bytes with an index", each)
	}
	if got := s.Latest().Coll(benchColl).Index("n_1").Keys(); got != n {
		t.Errorf("%d keys", got)
	}
	runtime.KeepAlive(s)
}
