package store

import (
	"fmt"
	"runtime"
	"testing"

	"allium/bson"
)

// benchColl is a collection of documents of about 91 bytes with an index beside that of _id.
const benchColl = "db.c"

func benchDoc(i int) bson.Raw {
	var id bson.ObjectID
	id[0], id[1], id[9], id[10], id[11] = 0x65, 1, byte(i>>16), byte(i>>8), byte(i)
	at, doc := bson.BeginDocument(make([]byte, 0, 96))
	doc = bson.AppendObjectID(doc, "_id", id)
	doc = bson.AppendInt32(doc, "n", int32(i%1000))
	doc = bson.AppendString(doc, "name", fmt.Sprintf("name%06d", i))
	doc = bson.AppendString(doc, "text", "tttttttttttttttttttttttt")
	return bson.EndDocument(doc, at)
}

// benchStore has n documents.
func benchStore(tb testing.TB, n int, secondary bool) *Store {
	tb.Helper()
	s := New(Options{})
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	must(s.Write(func(tx *Tx) error {
		c, err := tx.Create(benchColl, Settings{}, IDIndex(nil, nil))
		if err == nil && secondary {
			at, pattern := bson.BeginDocument(nil)
			_, err = tx.CreateIndex(c, (&IndexInfo{Name: "n_1", Pattern: bson.EndDocument(bson.AppendInt32(pattern, "n", 1), at), Fields: []IndexField{{Path: "n"}}}).Prepare())
		}
		return err
	}))
	for from := 0; from < n; from += 1000 {
		must(s.Write(func(tx *Tx) error {
			c := tx.Coll(benchColl)
			for i := from; i < min(n, from+1000); i++ {
				var err error
				if c, err = tx.Insert(c, benchDoc(i)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return s
}

func BenchmarkStore(b *testing.B) {
	const n = 50_000
	b.Run("insert", func(b *testing.B) {
		b.ReportAllocs()
		s := benchStore(b, 0, true)
		docs := make([]bson.Raw, b.N)
		for i := range docs {
			docs[i] = benchDoc(i)
		}
		b.ResetTimer()
		for _, doc := range docs {
			_ = s.Write(func(tx *Tx) error { _, err := tx.Insert(tx.Coll(benchColl), doc); return err })
		}
	})
	b.Run("many inserts", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			benchStore(b, 5000, true)
		}
	})
	s := benchStore(b, n, true)
	c := s.Latest().Coll(benchColl)
	b.Run("by id", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, doc, ok := c.ByID(benchDoc(i % n).Lookup("_id")); !ok || doc == nil {
				b.Fatal("no document")
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			scan, got := NewScan(c, false, nil), 0
			for _, ok := scan.NextDoc(); ok; _, ok = scan.NextDoc() {
				got++
			}
			if got != n {
				b.Fatal(got)
			}
		}
	})
	for _, index := range []string{"_id_", "n_1"} {
		b.Run("index "+index, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				scan, got := NewIndexScan(c, c.Index(index), false, []Range{{}}), 0
				for _, _, ok := scan.Next(); ok; _, _, ok = scan.Next() {
					got++
				}
				if got != n {
					b.Fatal(got)
				}
			}
		})
	}
	b.Run("one of an index", func(b *testing.B) {
		b.ReportAllocs()
		lo := string(AppendKey(nil, benchDoc(500).Lookup("n"), nil, false))
		for range b.N {
			if _, _, ok := NewIndexScan(c, c.Index("n_1"), false, []Range{{Lo: lo}}).Next(); !ok {
				b.Fatal("no document")
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			rid, old, _ := s.Latest().Coll(benchColl).ByID(benchDoc(i % n).Lookup("_id"))
			doc := append(bson.Raw(nil), old...)
			doc[24]++ // n
			_ = s.Write(func(tx *Tx) error { _, err := tx.Update(tx.Coll(benchColl), rid, old, doc, false, nil); return err })
		}
	})
	b.Run("memory", func(b *testing.B) {
		for _, secondary := range []bool{false, true} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s := benchStore(b, n, secondary)
			runtime.GC()
			runtime.ReadMemStats(&after)
			ratio := float64(after.HeapAlloc-before.HeapAlloc) / float64(s.Latest().Coll(benchColl).Bytes())
			b.ReportMetric(ratio, map[bool]string{false: "times-bson", true: "times-bson-with-index"}[secondary])
			runtime.KeepAlive(s)
		}
	})
}
