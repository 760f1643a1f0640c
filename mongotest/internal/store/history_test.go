package store

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/norace"
)

// largeDoc returns a document of about this many bytes.
func largeDoc(id int32, size int) bson.Raw {
	at, doc := bson.BeginDocument(make([]byte, 0, size+64))
	doc = bson.AppendInt32(doc, "_id", id)
	return bson.EndDocument(bson.AppendBinary(doc, "b", bson.BinaryGeneric, make([]byte, size)), at)
}

// churn inserts and deletes documents one by one.
func churn(t *testing.T, s *Store, n int, doc func() bson.Raw) {
	t.Helper()
	for range n {
		doc := doc()
		insertDocs(t, s, "t.churn", doc)
		err := s.Write(func(tx *Tx) error {
			c := tx.Coll("t.churn")
			rid, doc, _ := c.ByID(doc.Lookup("_id"))
			_, err := tx.Delete(c, rid, doc)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// insertDocs inserts documents into a collection that is made if it does not exist.
func insertDocs(t *testing.T, s *Store, ns string, docs ...bson.Raw) {
	t.Helper()
	err := s.Write(func(tx *Tx) (err error) {
		c := tx.Coll(ns)
		if c == nil {
			c, err = tx.Create(ns, Settings{}, nil)
		}
		for _, doc := range docs {
			if err == nil {
				c, err = tx.Insert(c, doc)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// keeps tells how many states and pins the store holds, and whether its timer runs. The timer
// changes them under the same lock.
func (s *Store) keeps() (states, pins int, armed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.history), len(s.pins), s.timer != nil
}

// logBytes tells how large the change log is.
func (s *Store) logBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logSize
}

// What was written and deleted is not kept beyond a bound, and hardly at all some minutes later,
// although nothing is written any more.
func TestHistoryOfLargeDocuments(t *testing.T) {
	norace.Skip(t, "it writes 200 MB on one goroutine")
	synctest.Test(t, func(t *testing.T) {
		before := liveHeap()
		s := New(Options{Tick: testClock()})
		churn(t, s, 200, func() bson.Raw { return largeDoc(1, 1<<20) })
		if used := liveHeap() - before; used > maxHistory+MaxLogBytes/2 {
			t.Errorf("%d MB are kept of 200 MB", used>>20)
		}
		s.mu.Lock()
		oldest := s.history[0].ts
		s.mu.Unlock()
		if _, ok := s.At(oldest); !ok {
			t.Error("the oldest state cannot be read")
		}
		time.Sleep(settledLogAge - settled)
		synctest.Wait()
		if size := s.logBytes(); size < MaxLogBytes/4 {
			t.Errorf("the change log has %d MB left before a change stream may come back to it", size>>20)
		}
		time.Sleep(2 * settled)
		synctest.Wait()
		if used := liveHeap() - before; used > 2*(settledHistory+settledLog) {
			t.Errorf("%d MB are kept after %v", used>>20, settledLogAge+settled)
		}
		if states, _, armed := s.keeps(); armed && states == 1 {
			t.Error("the timer goes on")
		}
		runtime.KeepAlive(s)
	})
}

// Whatever one write or one transaction adds to the change log is whole there afterwards: a change
// stream that had seen all before it can go on.
func TestLogOfLargeWrites(t *testing.T) {
	norace.Skip(t, "it writes a log of large documents on one goroutine")
	large := largeDoc(1, 1<<20)
	many := make([]bson.Raw, maxLogEntries+100)
	for i := range many {
		many[i] = testDoc(int32(i), 1)
	}
	larges := make([]bson.Raw, MaxLogBytes>>20)
	for i := range larges {
		larges[i] = largeDoc(int32(i), 1<<20)
	}
	for name, docs := range map[string][]bson.Raw{"large": larges, "many": many} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Tick: testClock()})
			churn(t, s, 20, func() bson.Raw { return large })
			seen := s.Latest().TS
			insertDocs(t, s, "t.d", docs...)
			log := s.Latest().Log()
			n := 0
			for _, e := range log {
				if e.Op == OpInsert && e.NS() == "t.d" {
					n++
				}
			}
			if n != len(docs) || log[0].Op == OpTrimmed && log[0].TS.Compare(seen) > 0 {
				t.Errorf("%d of %d inserts are left, behind %v; what was before ended at %v", n, len(docs), log[0].TS, seen)
			}
			insertDocs(t, s, "t.c", testDoc(1, 1), testDoc(2, 1), testDoc(3, 1))
			if log := s.Latest().Log(); len(log) > maxLogEntries || s.logBytes() > MaxLogBytes {
				t.Errorf("later, the log has %d entries and %d bytes", len(log), s.logBytes())
			}
		})
	}
	t.Run("transaction", func(t *testing.T) {
		s := New(Options{Tick: testClock()})
		var log []*Entry
		for i := range 10 {
			for range 5 { // five entries of one time
				log = append(log, &Entry{TS: bson.Timestamp{T: 1, I: uint32(i)}, Op: OpInsert, coll: new(Info), after: refer(testDoc(int32(i), 1))})
			}
		}
		for keep := 1; keep <= len(log)-5; keep++ {
			got := s.trimLog(slices.Clone(log), keep, MaxLogBytes)
			size := 0
			for _, e := range got[1:] {
				size += e.size()
			}
			if n := len(got) - 1; got[0].Op != OpTrimmed || n%5 != 0 || n < keep || n >= keep+5 || got[0].TS == got[1].TS || s.logSize != size {
				t.Errorf("of %d entries to keep there are %d, behind %v", keep, n, got[0].TS)
			}
		}
	})
}

// Small states stay readable for the window, and no longer, whether or not anything is written. The
// timer then has nothing to do.
func TestHistoryWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Tick: testClock(), Window: func() time.Duration { return time.Minute }})
		insertDocs(t, s, "t.c", testDoc(1, 1))
		first := s.Latest().TS
		insertDocs(t, s, "t.c", testDoc(2, 1))
		for _, step := range []struct {
			after time.Duration
			ok    bool
		}{{0, true}, {50 * time.Second, true}, {30 * time.Second, false}} {
			time.Sleep(step.after)
			synctest.Wait()
			st, ok := s.At(first)
			if ok != step.ok || ok && st.Coll("t.c").Count() != 1 {
				t.Errorf("%v later: readable %v", step.after, ok)
			}
		}
		if states, _, armed := s.keeps(); armed || states != 1 {
			t.Errorf("%d states, timer %v", states, armed)
		}
		if log := s.Latest().Log(); len(log) != 3 || log[0].Op != OpCreate { // small: it is not trimmed
			t.Errorf("the change log has %d entries", len(log))
		}
	})
}

// The old state of a large collection goes with the drop, unless a member still needs it; that of
// a small one stays.
func TestHistoryOfDrops(t *testing.T) {
	large := largeDoc(1, 1<<20)
	for _, test := range []struct {
		name   string
		docs   int
		behind bool
		kept   bool
	}{{"large", 80, false, false}, {"small", 2, false, true}, {"behind", 80, true, true}} {
		t.Run(test.name, func(t *testing.T) {
			needed := bson.Timestamp{T: math.MaxUint32}
			s := New(Options{Tick: testClock(), KeepSince: func() (bson.Timestamp, bool) { return needed, test.behind }})
			for range test.docs {
				insertDocs(t, s, "t.c", large)
			}
			at := s.Latest().TS
			needed = at
			if err := s.Write(func(tx *Tx) error { return tx.Drop(tx.Coll("t.c")) }); err != nil {
				t.Fatal(err)
			}
			insertDocs(t, s, "t.other", testDoc(1, 1))
			st, ok := s.At(at)
			if ok != test.kept || ok && st.Coll("t.c").Count() != int64(test.docs) {
				t.Errorf("the state before the drop is readable: %v", ok)
			}
			if log := s.Latest().Log(); log[len(log)-3].Op != OpDrop {
				t.Errorf("the drop is not in the change log: %d", log[len(log)-3].Op)
			}
			if !test.behind {
				return
			}
			needed = s.Latest().TS // the member has caught up
			s.Settle()
			if states, _, _ := s.keeps(); states > 3 {
				if _, ok := s.At(at); !ok {
					t.Error("the state is gone, but younger ones are kept")
				}
			}
		})
	}
}

// Pinned states go when their time is over, or when they keep too much.
func TestPinsAreBounded(t *testing.T) {
	large := largeDoc(1, 1<<20)
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Tick: testClock()})
		insertDocs(t, s, "t.c", testDoc(1, 1))
		first := s.Latest().TS
		if _, ok := s.Pin(first, time.Hour); !ok {
			t.Fatal("cannot be pinned")
		}
		doc := func() bson.Raw { return large }
		churn(t, s, 100, doc)
		if _, ok := s.Pin(first, time.Hour); !ok {
			t.Error("the pinned state is gone after 100 MB")
		}
		churn(t, s, 200, doc)
		if _, ok := s.Pin(first, time.Hour); ok {
			t.Error("the pinned state is there after 300 MB")
		}
		second := s.Latest().TS
		s.Pin(second, 20*time.Minute)
		insertDocs(t, s, "t.c", testDoc(2, 1))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if states, pins, _ := s.keeps(); pins != 1 || states != 1 {
			t.Errorf("%d pins, %d states", pins, states)
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if _, pins, armed := s.keeps(); pins != 0 || armed {
			t.Errorf("%d pins, timer %v", pins, armed)
		}
	})
}

// Deletes keep the key only, unless the collection keeps images; an open transaction can still
// commit them.
func TestEntriesOfDeletes(t *testing.T) {
	for _, images := range []bool{false, true} {
		s := New(Options{Tick: testClock()})
		doc := testDoc(7, 1)
		err := s.Write(func(tx *Tx) error {
			c, err := tx.Create("t.c", Settings{PreImages: images, KeyPaths: []string{"a", "_id"}}, IDIndex(nil, nil))
			for i := range int32(2) {
				if err == nil {
					c, err = tx.Insert(c, testDoc(i, i))
				}
			}
			if err == nil {
				_, err = tx.Insert(c, doc)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		remove := func(tx *Tx) error {
			c := tx.Coll("t.c")
			rid, doc, _ := c.ByID(doc.Lookup("_id"))
			_, err := tx.Delete(c, rid, doc)
			return err
		}
		txn := s.Begin(s.Latest())
		if err := txn.Write(remove); err != nil {
			t.Fatal(err)
		}
		if e := txn.log[0]; e.Op != OpDelete || !bson.Equal(e.Before(), doc) || int32Of(e.Key().Lookup("_id")) != 7 {
			t.Errorf("in the transaction: %v, key %v", e.Before(), e.Key())
		}
		if _, err := txn.Commit(bson.Raw("\x05\x00\x00\x00\x00"), 3); err != nil {
			t.Fatal(err)
		}
		insertDocs(t, s, "t.c", doc)
		s.Write(func(tx *Tx) error {
			tx.Statement(Statement{LSID: bson.Raw("\x05\x00\x00\x00\x00"), Number: 9, ID: 2})
			return remove(tx)
		})
		log := s.Latest().Log()
		for i, e := range []*Entry{log[len(log)-3], log[len(log)-1]} {
			if images && !bson.Equal(e.Before(), doc) || !images && e.Before() != nil {
				t.Errorf("images %v: before is %v", images, e.Before())
			}
			if key := e.Key(); int32Of(key.Lookup("_id")) != 7 || int32Of(key.Lookup("a")) != 1 {
				t.Errorf("images %v: the key is %v", images, key)
			}
			lsid, number, _ := e.Txn()
			if (lsid != nil) != (i == 0) || i == 0 && number != 3 {
				t.Errorf("transaction %v, %d", lsid, number)
			}
			if w := e.Statement(); (w.LSID != nil) != (i == 1) || i == 1 && (w.Number != 9 || w.ID != 2) {
				t.Errorf("statement %v", w)
			}
		}
	}
}

// A document's reference takes no length but the document's own.
func TestRefer(t *testing.T) {
	doc := testDoc(1, 2, 3)
	if got := refer(doc).raw(); !bson.Equal(got, doc) || cap(got) != len(doc) {
		t.Errorf("%v with room for %d", got, cap(got))
	}
	if refer(nil).raw() != nil || refer(nil).size() != 0 {
		t.Error("no document")
	}
	defer func() {
		if recover() == nil {
			t.Error("a document that is cut short is taken")
		}
	}()
	refer(doc[:len(doc)-1])
}
