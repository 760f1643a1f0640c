package store

import (
	"errors"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/work"
)

// newLargeStore has a collection t.c with an index on tags, and as many documents as asked for.
func newLargeStore(t *testing.T, docs int) *Store {
	t.Helper()
	s := newTestStore(t, testClock())
	err := s.Write(func(tx *Tx) (err error) {
		c := tx.Coll("t.c")
		for i := range docs {
			if c, err = tx.Insert(c, testDoc(int32(1000+i), int32(docs-i), int32(i))); err != nil {
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

// TestEnds ends writers in the middle of what takes long: they look at the command after a bounded
// number of steps, and leave nothing behind.
func TestEnds(t *testing.T) {
	const many = 3000
	ended := errors.New("ended")
	tags := make([]int32, many)
	for i := range tags {
		tags[i] = int32(i)
	}
	large := testDoc(1, 1, tags...)
	each := func(tx *Tx, c *Coll, f func(c *Coll, rid string, doc bson.Raw) (*Coll, error)) (err error) {
		for scan := NewScan(c, false, nil); ; {
			rid, doc, ok := scan.Next()
			if !ok {
				return nil
			}
			if c, err = f(c, rid, doc); err != nil {
				return err
			}
		}
	}
	for name, fn := range map[string]func(tx *Tx, c *Coll) error{
		"an index": func(tx *Tx, c *Coll) error {
			_, err := tx.CreateIndex(c, index("new", false, IndexField{Path: "a"}))
			return err
		},
		"a rebuilt index": func(tx *Tx, c *Coll) error {
			_, err := tx.RebuildIndex(c, index("a", true, IndexField{Path: "a"}), nil)
			return err
		},
		"duplicates":              func(tx *Tx, c *Coll) error { _, err := tx.Duplicates(c, "a"); return err },
		"a document of many keys": func(tx *Tx, c *Coll) error { _, err := tx.Insert(c, large); return err },
		"deletes": func(tx *Tx, c *Coll) error {
			return each(tx, c, func(c *Coll, rid string, doc bson.Raw) (*Coll, error) { return tx.Delete(c, rid, doc) })
		},
		"updates": func(tx *Tx, c *Coll) error {
			return each(tx, c, func(c *Coll, rid string, doc bson.Raw) (*Coll, error) {
				return tx.Update(c, rid, doc, testDoc(int32Of(doc.Lookup("_id")), -1), true, nil)
			})
		},
	} {
		for _, inTxn := range []bool{false, true} {
			s := newLargeStore(t, many)
			before := s.Latest()
			write := s.Write
			if inTxn {
				txn := s.Begin(before)
				defer txn.Abort()
				write = txn.Write
			}
			looks := 0
			err := write(func(tx *Tx) error {
				tx.Count(work.New(func() error { looks++; return ended }))
				return fn(tx, tx.Coll("t.c"))
			})
			if err != ended || looks != 1 {
				t.Errorf("%s: %v after %d looks", name, err, looks)
			}
			if s.Latest() != before {
				t.Errorf("%s: there is a new state", name)
			}
			if err := s.Write(func(tx *Tx) error { return nil }); err != nil {
				t.Errorf("%s: the store is not usable: %v", name, err)
			}
			if !inTxn {
				if err := s.Write(func(tx *Tx) error { return fn(tx, tx.Coll("t.c")) }); err != nil {
					t.Errorf("%s: without an end: %v", name, err)
				}
			}
		}
	}
}

// split places documents on two shards by their _id.
type split int32

func (p split) ShardOf(doc bson.Raw) int {
	if int32Of(doc.Lookup("_id")) < int32(p) {
		return 0
	}
	return 1
}

func (split) Moved(since any) bool { return false }

// TestMovesEnd ends what moves documents between shards.
func TestMovesEnd(t *testing.T) {
	const many = 3000
	ended := errors.New("ended")
	all := func(bson.Raw) bool { return true }
	for name, fn := range map[string]func(tx *Tx, c *Coll) error{
		"a chunk that moves": func(tx *Tx, c *Coll) error { return tx.Move(c, 0, 1, all) },
		"orphans": func(tx *Tx, c *Coll) error {
			return tx.Clean(tx.SetSharding(c, split(0), []string{"_id"}, nil), 0, all)
		},
		"another shard key": func(tx *Tx, c *Coll) error { return tx.Spread(c, split(0), 0) },
	} {
		tick := testClock()
		o := Options{Tick: tick}
		g := NewGroup(o, []*Store{New(o), New(o)}, func(string) int { return 0 })
		err := g.Write(func(tx *Tx) error {
			c, err := tx.Create("t.c", Settings{}, IDIndex(nil, nil))
			if err != nil {
				return err
			}
			tx.SetSharding(c, split(many), []string{"_id"}, nil)
			for i := range many {
				if _, err := tx.Insert(tx.Coll("t.c"), testDoc(int32(i), 0)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []error{ended, nil} {
			before := g.Latest()
			looks := 0
			err = g.Write(func(tx *Tx) error {
				tx.Count(work.New(func() error { looks++; return end }))
				return fn(tx, tx.Coll("t.c"))
			})
			switch {
			case err != end:
				t.Errorf("%s: %v, want %v", name, err, end)
			case end != nil && (looks != 1 || g.Latest() != before):
				t.Errorf("%s: %d looks, a new state: %v", name, looks, g.Latest() != before)
			case end == nil && looks < 2:
				t.Errorf("%s: %d looks without an end", name, looks)
			}
		}
	}
}

// TestManyKeys has a document whose array has many keys, some of them twice: it is put in, changed
// and taken out in time that grows with their number, not with its square.
func TestManyKeys(t *testing.T) {
	const many = 40_000
	tags := make([]int32, 0, 2*many)
	for i := range many {
		tags = append(tags, int32(i), int32(i/2))
	}
	s := newTestStore(t, nil)
	id := bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, 1)}
	change := func(fn func(tx *Tx, c *Coll) error) {
		t.Helper()
		if err := s.Write(func(tx *Tx) error { return fn(tx, tx.Coll("t.c")) }); err != nil {
			t.Fatal(err)
		}
	}
	keys := func() int { return s.Latest().Coll("t.c").Index("tags").Keys() }
	none := keys()
	change(func(tx *Tx, c *Coll) error { _, err := tx.Insert(c, testDoc(1, 1, tags...)); return err })
	if n := keys() - none; n != many {
		t.Errorf("%d keys, want %d", n, many)
	}
	change(func(tx *Tx, c *Coll) error {
		rid, old, _ := c.ByID(id)
		_, err := tx.Update(c, rid, old, testDoc(1, 1, tags[many:]...), true, nil)
		return err
	})
	if n := keys() - none; n != many-many/4 {
		t.Errorf("%d keys after an update, want %d", n, many-many/4)
	}
	change(func(tx *Tx, c *Coll) error {
		rid, old, _ := c.ByID(id)
		_, err := tx.Delete(c, rid, old)
		return err
	})
	if n := keys(); n != none {
		t.Errorf("%d keys stay", n-none)
	}
}
