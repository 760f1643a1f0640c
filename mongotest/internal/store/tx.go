package store

import (
	"math"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Tx is the right to write, for as long as the function runs that Store.Write or Txn.Write called.
type Tx struct {
	s     *Store
	txn   *Txn // nil outside of transactions
	edit  uint64
	colls tree[string, *Coll]
	dirty bool
	log   []*Entry
	ts    bson.Timestamp
	wall  time.Time
	keys  []string
	stmt  int32
	write *Statement // nil: not a retryable write
	uuid  *[16]byte  // of the next collection that it makes; nil: a new one
	freed int64      // bytes that it took out of what it changes

	tag   any                   // see Tag
	guard func(ns string) error // see Guard

	quiet    bool // what it writes is not an event of the group
	together bool // see Together
	sub      []Tx // of a group: the right to write to each shard

	work *work.Meter // of the command that writes; nil: nobody counts
	done KeyCounts

	firstKeys  [4]string // where keys, the marks in them, and log begin
	firstMarks [8]int
	firstLog   [1]*Entry
}

// Count makes the loops of the writer count their steps, so that they end with the command: the
// Store.Write or Txn.Write that called the function then returns its error.
func (tx *Tx) Count(m *work.Meter) {
	tx.work = m
	for i := range tx.sub {
		tx.sub[i].work = m
	}
}

// Guard makes the writer ask before it changes a collection; an error stops it. nil: it asks
// nobody.
func (tx *Tx) Guard(allowed func(ns string) error) {
	tx.guard = allowed
	for i := range tx.sub {
		tx.sub[i].guard = allowed
	}
}

// allowed asks the guard.
func (tx *Tx) allowed(ns string) error {
	if tx.guard == nil {
		return nil
	}
	return tx.guard(ns)
}

// KeyCounts is how many keys of indexes were added and taken away.
type KeyCounts struct{ Added, Removed int64 }

// Plus adds counts.
func (k KeyCounts) Plus(o KeyCounts) KeyCounts {
	return KeyCounts{k.Added + o.Added, k.Removed + o.Removed}
}

// Minus takes counts away.
func (k KeyCounts) Minus(o KeyCounts) KeyCounts {
	return KeyCounts{k.Added - o.Added, k.Removed - o.Removed}
}

// KeyCounts returns how many keys the writer has added and taken away so far.
func (tx *Tx) KeyCounts() KeyCounts {
	n := tx.done
	for i := range tx.sub {
		n = n.Plus(tx.sub[i].done)
	}
	return n
}

// Together says that what is written to several shards of a group belongs together: no rollback of
// one of them undoes its part, as if each shard had waited until its majority has it. That goes for
// documents that move between shards, and for what a cluster decides as a whole.
func (tx *Tx) Together() { tx.together = true }

// Assign gives the next collection that is made this UUID.
func (tx *Tx) Assign(uuid [16]byte) {
	tx.uuid = &uuid
	for i := range tx.sub {
		tx.sub[i].uuid = &uuid
	}
}

// Written returns the time of what was written to a shard of a group; ok is false if nothing was.
func (tx *Tx) Written(shard int) (ts bson.Timestamp, ok bool) {
	sub := &tx.sub[shard]
	return sub.ts, sub.dirty
}

// Blocked is the error of a write that an open transaction is in the way of: wait until Done is
// closed and write again.
type Blocked struct{ Done <-chan struct{} }

// Error says so.
func (b *Blocked) Error() string { return "a transaction holds what is to be written" }

// ErrWriteConflict is the error of a transaction that writes what somebody else wrote since its
// snapshot.
func errWriteConflict() error {
	return srverr.New(
		srverr.WriteConflict, "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.")
}

// Statement names the retryable write that the following changes belong to.
func (tx *Tx) Statement(s Statement) {
	tx.stmt = s.ID
	if s.LSID == nil {
		tx.write = nil
	} else if tx.write == nil || tx.write.Number != s.Number || &tx.write.LSID[0] != &s.LSID[0] {
		write := s
		write.ID = 0
		tx.write = &write
	}
	for i := range tx.sub {
		tx.sub[i].stmt, tx.sub[i].write = tx.stmt, tx.write
	}
}

// Coll returns a collection as the writer sees it, nil if there is none.
func (tx *Tx) Coll(ns string) *Coll {
	if tx.sub != nil {
		return tx.groupColl(ns)
	}
	c, _ := tx.colls.get(ns)
	return c
}

// State returns what the writer sees, its own writes included.
func (tx *Tx) State() *State {
	if tx.sub != nil {
		st := tx.s.join(nil, func(shard *Store) *State { return tx.sub[shard.shard].State() })
		st.TS = tx.TS()
		return st
	}
	return &State{TS: tx.ts, colls: tx.colls}
}

// TS returns the timestamp of the last write.
func (tx *Tx) TS() bson.Timestamp {
	ts := tx.ts
	for i := range tx.sub {
		if sub := &tx.sub[i]; sub.ts.Compare(ts) > 0 {
			ts = sub.ts
		}
	}
	return ts
}

// Dirty reports whether anything was written.
func (tx *Tx) Dirty() bool {
	return tx.dirty || slices.ContainsFunc(tx.sub, func(sub Tx) bool { return sub.dirty })
}

func (tx *Tx) tick() bson.Timestamp {
	if tx.s.opts.Tick != nil && tx.txn == nil {
		tx.ts = tx.s.opts.Tick()
		tx.wall = tx.s.opts.Now()
	}
	return tx.ts
}

// Tag keeps something beside the documents that are inserted or updated from now on, for as long as
// they exist: see Coll.Tag. nil ends that. Transactions must not use it.
func (tx *Tx) Tag(tag any) {
	tx.tag = tag
	for i := range tx.sub {
		tx.sub[i].tag = tag
	}
}

// Retag keeps the same beside documents that stay as they are. It returns the collection with that.
func (tx *Tx) Retag(c *Coll, rids []string) *Coll {
	if tx.sub != nil {
		if c.parts == nil {
			return tx.sub[c.shard].Retag(c, rids)
		}
		for _, rid := range rids {
			sub := &tx.sub[rid[0]]
			if part, _ := sub.colls.get(c.NS); part != nil {
				sub.Retag(part, []string{rid[1:]})
			}
		}
		return tx.groupColl(c.NS)
	}
	c = tx.writable(c)
	for _, rid := range rids {
		tx.work.Do(1)
		c.tags.set(tx.edit, rid, tx.tag)
	}
	tx.record(Entry{Op: OpNoop, coll: c.Info})
	return c
}

// Logged reports whether changes are kept: for the change log, or for a transaction's commit.
func (tx *Tx) Logged() bool {
	if len(tx.sub) > 0 {
		return tx.sub[0].Logged()
	}
	return tx.txn != nil || tx.s.opts.Tick != nil
}

func (tx *Tx) record(e Entry) {
	tx.dirty = true
	tx.tick()
	if !tx.Logged() {
		return
	}
	e.TS, e.wall, e.stmt, e.write = tx.ts, tx.wall.UnixMilli(), tx.stmt, tx.write
	if tx.quiet {
		e.flags |= quiet
	}
	tx.log = append(tx.log, &e)
}

// recordWrite records the change of a document. rid is kept for the commit of the transaction.
func (tx *Tx) recordWrite(e Entry, rid string, delta any) {
	if !tx.Logged() {
		tx.dirty = true
		return
	}
	if tx.txn == nil {
		rid = ""
		if e.Op == OpDelete && !e.coll.PreImages {
			e.before = refer(e.coll.documentKey(e.before.raw()))
		}
	}
	if rid != "" || delta != nil {
		e.more = &entryDetail{rid: rid, delta: delta}
	}
	tx.record(e)
}

// writable returns a copy of the collection that may be changed.
func (tx *Tx) writable(c *Coll) *Coll {
	if c.edit == tx.edit {
		return c
	}
	w := &Coll{Info: c.Info, recs: c.recs, bytes: c.bytes, edit: tx.edit, tags: c.tags}
	w.idx = append(w.firstIdx[:0], c.idx...)
	tx.colls.set(tx.edit, c.NS, w)
	return w
}

// documentKey returns what identifies a document in the change log.
func (c *Info) documentKey(doc bson.Raw) bson.Raw {
	at, key := bson.BeginDocument(make([]byte, 0, 32))
	hasID := false
	for _, path := range c.KeyPaths {
		hasID = hasID || path == "_id"
		if v := doc.Lookup(strings.Split(path, ".")...); v.Type != 0 {
			key = bson.AppendRawValue(key, path, v)
		}
	}
	if !hasID {
		key = bson.AppendRawValue(key, "_id", doc.Lookup("_id"))
	}
	return bson.EndDocument(key, at)
}

// maxRecordID is how long the key of an _id in a clustered collection may be.
const maxRecordID = 8 << 20

// recordIDLength is how long the server's key of an _id is, which is rid here.
func recordIDLength(id bson.RawValue, rid string) int {
	switch id.Type {
	case bson.TypeString:
		return len(id.Value) - 5 + 2 // the type in front, and a NUL behind
	case bson.TypeBinary:
		return len(id.Value) - 5 + 7
	}
	return len(rid)
}

func floatOf(v bson.RawValue) float64 { f, _ := v.Double(); return f }

// Insert adds a document, which must have an _id and must not change any more. It returns the
// collection with the document in it.
func (tx *Tx) Insert(c *Coll, doc bson.Raw) (*Coll, error) {
	tx.work.Do(1 + len(doc)>>10)
	if tx.sub != nil {
		return tx.groupInsert(c, doc)
	}
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	id := doc.Lookup("_id")
	rid := c.newRecord(id)
	if c.Clustered && recordIDLength(id, rid) > maxRecordID {
		return c, srverr.New(5894900, "Size of the _id is larger than the limit of %d bytes for a clustered collection",
			maxRecordID)
	}
	keys, marks, multikey, err := tx.newKeys(c, rid, nil, doc)
	if err != nil {
		if c.Capped && tx.txn == nil && srverr.CodeOf(err) == srverr.DuplicateKey {
			// Room is made before the index is looked at, in a transaction of its own.
			if room, failed := tx.trimCapped(tx.writable(c), rid, 1, int64(len(doc))); failed == nil {
				return room, err
			}
		}
		return c, err
	}
	if c.Clustered {
		if _, ok := c.recs.get(rid); ok {
			return c, clusteredDuplicate(c, id)
		}
		if err := tx.lockKey(c, c.UUID, "", rid); err != nil {
			return c, err
		}
	}
	c = tx.writable(c)
	c.recs.set(tx.edit, rid, refer(doc))
	c.bytes += int64(len(doc))
	tx.done.Added += int64(len(keys))
	tx.addKeys(c, doc, keys, marks, multikey)
	if tx.tag != nil {
		c.tags.set(tx.edit, rid, tx.tag)
	}
	if tx.txn != nil {
		tx.s.intents[intent{c.UUID, rid}] = tx.txn
		tx.txn.intents = append(tx.txn.intents, intent{c.UUID, rid})
	}
	tx.recordWrite(Entry{Op: OpInsert, coll: c.Info, after: refer(doc)}, rid, nil)
	if c.Capped {
		return tx.trimCapped(c, rid, 0, 0)
	}
	return c, nil
}

// Duplicate is the error of an insert into a clustered collection that has a document of this _id.
func (c *Coll) Duplicate(id bson.RawValue) error { return clusteredDuplicate(c, id) }

func clusteredDuplicate(c *Coll, id bson.RawValue) error {
	// The server fails to read back from the key what it wants to show of these.
	switch d, ok := id.Decimal128(); {
	case id.IsNumber() && math.IsNaN(floatOf(id)) || ok && d.IsNaN():
		return srverr.New(50819, "Failed to read the _id of a duplicate: it is not a number")
	case id.Type == bson.TypeDouble && math.IsInf(floatOf(id), 0) || ok && d.IsInf(0):
		return srverr.New(50826, "Failed to read the _id of a duplicate: it is infinite")
	}
	x := (&IndexInfo{Name: "_id_", Pattern: bson.Raw("\x0e\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00"),
		Fields: []IndexField{{Path: "_id"}}}).Prepare()
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(bson.AppendRawValue(doc, "_id", id), at)
	return duplicateKey(c.NS, x, string(x.encode(nil, 0, id)), doc)
}

// trimCapped removes the oldest documents of a capped collection until it is within its bounds with
// as many documents and bytes more as are about to come.
func (tx *Tx) trimCapped(c *Coll, newest string, docs, bytes int64) (*Coll, error) {
	for c.bytes+bytes > c.Size || c.Max > 0 && int64(c.recs.len())+docs > c.Max {
		tx.work.Do(1)
		it := c.recs.first()
		if !it.valid() || it.key() == newest {
			break
		}
		var err error
		if c, err = tx.remove(c, it.key(), it.value().raw()); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Update replaces a document by another one with the same _id. replaced tells whether the change
// log is to call it a replacement; delta is kept for it. It returns the collection with the change.
func (tx *Tx) Update(c *Coll, rid string, old, doc bson.Raw, replaced bool, delta any) (*Coll, error) {
	tx.work.Do(1 + len(doc)>>10)
	if tx.sub != nil {
		return tx.groupUpdate(c, rid, old, doc, replaced, delta)
	}
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	if err := tx.lockRecord(c, rid); err != nil {
		return c, err
	}
	c, err := tx.put(c, rid, old, doc)
	if err != nil {
		return c, err
	}
	e := Entry{Op: OpUpdate, coll: c.Info, before: refer(old), after: refer(doc)}
	if replaced {
		e.Op = OpReplace
	}
	tx.recordWrite(e, rid, delta)
	return c, nil
}

// put writes a new version of a document.
func (tx *Tx) put(c *Coll, rid string, old, doc bson.Raw) (*Coll, error) {
	keys, marks, multikey, err := tx.newKeys(c, rid, old, doc)
	if err != nil {
		return c, err
	}
	var oldKeys []string
	suffix := c.suffix(rid)
	c = tx.writable(c)
	for i := range c.idx {
		ix := &c.idx[i]
		if ix.unchanged(old, doc) {
			continue
		}
		oldKeys, _, _ = ix.keys(oldKeys[:0], old, suffix, tx.work)
		fresh := keySet{list: keys[:marks[i+1]], from: marks[i]}
		kept := 0
		for _, k := range oldKeys {
			tx.work.Do(1)
			if !fresh.has(k) {
				ix.remove(tx.edit, k)
			} else {
				kept++
			}
		}
		tx.done = tx.done.Plus(KeyCounts{int64(marks[i+1] - marks[i] - kept), int64(len(oldKeys) - kept)})
	}
	c.recs.set(tx.edit, rid, refer(doc))
	c.bytes += int64(len(doc) - len(old))
	tx.freed += int64(len(old)) + perChange
	tx.addKeys(c, doc, keys, marks, multikey)
	if tx.tag != nil {
		c.tags.set(tx.edit, rid, tx.tag)
	}
	return c, nil
}

// unchanged tells cheaply that both documents have the same keys.
func (x *IndexInfo) unchanged(old, doc bson.Raw) bool {
	if x.checks {
		return x.sameSpecial(old, doc)
	}
	return x.single != "" && x.Partial == nil && old.Lookup(x.single).Equal(doc.Lookup(x.single))
}

// newKeys returns the keys of doc in all indexes (those of index i are keys[marks[i]:marks[i+1]])
// after checking that no unique one exists already. old is the document that it replaces, if any.
func (tx *Tx) newKeys(c *Coll, rid string, old, doc bson.Raw) (keys []string, marks []int, multikey uint64, err error) {
	keys, marks = tx.keys[:0], append(tx.firstMarks[:0], 0)
	suffix := c.suffix(rid)
	for i := range c.idx {
		ix := &c.idx[i]
		if old != nil && ix.unchanged(old, doc) {
			marks = append(marks, len(keys))
			continue
		}
		var multi bool
		if keys, multi, err = ix.keys(keys, doc, suffix, tx.work); err != nil {
			return keys, marks, 0, err
		}
		if multi {
			multikey |= 1 << i
		}
		if ix.Unique || ix.PrepareUnique {
			for _, entry := range keys[marks[i]:] {
				tx.work.Do(1)
				k := entry[:len(entry)-len(suffix)]
				if _, taken := ix.getOther(k, rid); taken {
					return keys, marks, 0, duplicateKey(c.NS, ix.IndexInfo, k, doc)
				} else if old != nil && ix.has(entry) {
					continue
				} else if err = tx.lockKey(c, c.UUID, ix.Name, k); err != nil {
					return keys, marks, 0, err
				}
			}
		}
		marks = append(marks, len(keys))
	}
	tx.keys = keys
	return keys, marks, multikey, nil
}

// Fits checks that the indexes of a collection can hold a document, but for the unique ones.
func (tx *Tx) Fits(c *Coll, doc bson.Raw) error {
	for i := range c.idx {
		if _, _, err := c.idx[i].keys(nil, doc, "", tx.work); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) addKeys(c *Coll, doc bson.Raw, keys []string, marks []int, multikey uint64) {
	for i := range c.idx {
		ix := &c.idx[i]
		for _, k := range keys[marks[i]:marks[i+1]] {
			tx.work.Do(1)
			ix.add(tx.edit, k)
		}
		if multikey&(1<<i) != 0 {
			ix.Multikey, ix.Arrays = true, ix.Arrays.with(ix.IndexInfo, doc)
		}
	}
}

// Delete removes a document. It returns the collection without it.
func (tx *Tx) Delete(c *Coll, rid string, old bson.Raw) (*Coll, error) {
	tx.work.Do(1 + len(old)>>10)
	if tx.sub != nil {
		return tx.groupDelete(c, rid, old)
	}
	if err := tx.use(c.NS); err != nil {
		return c, err
	}
	if err := tx.lockRecord(c, rid); err != nil {
		return c, err
	}
	return tx.remove(c, rid, old)
}

func (tx *Tx) remove(c *Coll, rid string, old bson.Raw) (*Coll, error) {
	c = tx.take(c, rid, old)
	tx.recordWrite(Entry{Op: OpDelete, coll: c.Info, before: refer(old)}, rid, nil)
	return c, nil
}

// take takes a document out of the records and the indexes.
func (tx *Tx) take(c *Coll, rid string, old bson.Raw) *Coll {
	c = tx.writable(c)
	c.recs.delete(tx.edit, rid)
	if c.tags.len() > 0 {
		c.tags.delete(tx.edit, rid)
	}
	c.bytes -= int64(len(old))
	tx.freed += int64(len(old)) + perChange
	var keys []string
	suffix := c.suffix(rid)
	for i := range c.idx {
		ix := &c.idx[i]
		keys, _, _ = ix.keys(keys[:0], old, suffix, tx.work)
		tx.done.Removed += int64(len(keys))
		for _, k := range keys {
			tx.work.Do(1)
			ix.remove(tx.edit, k)
		}
	}
	return c
}

// Truncate removes all documents without noting each of them.
func (tx *Tx) Truncate(c *Coll) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.Truncate(part)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	w := tx.writable(c)
	tx.freed += w.footprint()
	w.clear()
	tx.record(Entry{Op: OpNoop, coll: c.Info})
	return w, nil
}
