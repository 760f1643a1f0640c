package store

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/query"
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

	tag any // see Tag

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
	return srverr.New(srverr.WriteConflict, "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.")
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

// logged reports whether changes are kept: for the change log, or for a transaction's commit.
func (tx *Tx) logged() bool { return tx.txn != nil || tx.s.opts.Tick != nil }

func (tx *Tx) record(e Entry) {
	tx.dirty = true
	tx.tick()
	if !tx.logged() {
		return
	}
	e.TS, e.wall, e.stmt, e.write, e.quiet = tx.ts, tx.wall.UnixMilli(), tx.stmt, tx.write, tx.quiet
	tx.log = append(tx.log, &e)
}

// recordWrite records the change of a document. rid is kept for the commit of the transaction.
func (tx *Tx) recordWrite(e Entry, rid string, delta any) {
	if !tx.logged() {
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
	if c.Capped && int64(len(doc)) > c.Size {
		return c, srverr.New(srverr.BadValue, "object to insert exceeds cappedMaxSize")
	}
	id := doc.Lookup("_id")
	rid := c.newRecord(id)
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
	x := (&IndexInfo{Name: "_id_", Pattern: bson.Raw("\x0e\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00"), Fields: []IndexField{{Path: "_id"}}}).Prepare()
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

// newUUID returns a random UUID.
func newUUID() (u [16]byte) {
	rand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// idPattern is {_id: 1}.
func idPattern() bson.Raw {
	at, doc := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendInt32(doc, "_id", 1), at)
}

// IDIndex returns the definition of an _id index.
func IDIndex(coll *query.Collation, spec bson.Raw) *IndexInfo {
	return (&IndexInfo{Name: "_id_", Spec: spec, Pattern: idPattern(), Fields: []IndexField{{Path: "_id"}}, IsID: true, Unique: true, Collation: coll}).Prepare()
}

// Create makes a collection or view. It must not exist.
func (tx *Tx) Create(ns string, set Settings, id *IndexInfo) (*Coll, error) {
	if tx.sub != nil {
		return tx.sub[tx.s.place(ns)].Create(ns, set, id)
	}
	db, name, _ := strings.Cut(ns, ".")
	// Nobody is locked out: of several transactions that make the same collection the first one to
	// commit wins.
	if tx.txn != nil && tx.s.latest.Load().Coll(ns) != nil && tx.txn.base.Coll(ns) == nil {
		return nil, CatalogChanged()
	}
	info := &Info{NS: ns, DB: db, Name: name, UUID: newUUID(), Settings: set, lastRecord: newCounter(), shard: tx.s.shard}
	if tx.uuid != nil {
		info.UUID, tx.uuid = *tx.uuid, nil
	}
	c := newColl(info, tx.edit)
	if id != nil {
		c.idx = []Index{newIndex(info, id)}
	}
	tx.record(Entry{Op: OpCreate, coll: info, more: &entryDetail{doc: set.Raw, info: info, idx: indexInfos(c)}})
	info.Since = tx.ts
	tx.colls.set(tx.edit, ns, c)
	if tx.txn != nil {
		tx.txn.lock(ns)
	}
	return c, nil
}

// perKey is about what a key takes in an index, and perRecord what a document takes beside its
// bytes.
const (
	perKey    = 48
	perRecord = 32
)

// footprint is about how much memory the collection takes.
func (c *Coll) footprint() int64 {
	n := c.bytes + int64(c.recs.len())*perRecord
	for i := range c.idx {
		n += int64(c.idx[i].Keys()) * perKey
	}
	return n
}

func newCounter() *atomic.Uint64 { return new(atomic.Uint64) }

// Created reports whether the collection came to be in the transaction that tx is part of.
func (tx *Tx) Created(c *Coll) bool {
	if tx.sub != nil {
		return tx.sub[c.shard].Created(c)
	}
	if tx.txn == nil {
		return false
	}
	before := tx.txn.base.Coll(c.NS)
	return before == nil || before.UUID != c.UUID
}

func indexInfos(c *Coll) []*IndexInfo {
	var list []*IndexInfo
	for i := range c.idx {
		list = append(list, c.idx[i].IndexInfo)
	}
	return list
}

// Drop removes a collection or view.
func (tx *Tx) Drop(c *Coll) error {
	if tx.sub != nil {
		return tx.each(c, func(sub *Tx, part *Coll) error { return sub.Drop(part) })
	}
	if err := tx.change(c.NS); err != nil {
		return err
	}
	tx.colls.delete(tx.edit, c.NS)
	tx.freed += c.footprint()
	tx.record(Entry{Op: OpDrop, coll: c.Info})
	return nil
}

// DropDatabase notes that a database whose collections were dropped is gone.
func (tx *Tx) DropDatabase(db string) {
	if tx.sub != nil {
		tx.sub[tx.s.place(db+".")].DropDatabase(db)
		return
	}
	tx.record(Entry{Op: OpDropDatabase, coll: &Info{NS: db}})
}

// Rename gives a collection another name; one that has it is dropped first.
func (tx *Tx) Rename(c *Coll, to string) error {
	if tx.sub != nil {
		return tx.groupRename(c, to)
	}
	for _, ns := range []string{c.NS, to} {
		if err := tx.change(ns); err != nil {
			return err
		}
	}
	e := Entry{Op: OpRename, coll: c.Info, more: &entryDetail{to: to}}
	if target := tx.Coll(to); target != nil {
		at, more := bson.BeginDocument(nil)
		more = bson.AppendBinary(more, "dropTarget", bson.BinaryUUID, target.UUID[:])
		e.more.doc = bson.EndDocument(more, at)
		tx.colls.delete(tx.edit, to)
		tx.freed += target.footprint()
	}
	info := *c.Info
	info.NS = to
	info.DB, info.Name, _ = strings.Cut(to, ".")
	tx.colls.delete(tx.edit, c.NS)
	tx.record(e)
	info.Since = tx.ts
	tx.colls.set(tx.edit, to, &Coll{Info: &info, recs: c.recs, idx: c.idx, bytes: c.bytes, tags: c.tags})
	return nil
}

// Modify gives a collection other settings.
func (tx *Tx) Modify(c *Coll, set Settings, more bson.Raw) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.Modify(part, set, more)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	w := tx.writable(c)
	info := *c.Info
	info.Settings = set
	w.Info = &info
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more}})
	return w, nil
}

// Exclude waits, with the Blocked error, for the transactions that use a collection: what its
// caller is about to change they could not see.
func (tx *Tx) Exclude(c *Coll) error {
	if tx.sub != nil {
		return tx.each(c, func(sub *Tx, part *Coll) error { return sub.change(part.NS) })
	}
	return tx.change(c.NS)
}

// SetSharding says where the documents of a collection are from now on, and what its shard key is.
// more describes a collection that was not sharded before in the change log, which does not hear of
// later changes (nil). Transactions that use the collection are not in the way.
func (tx *Tx) SetSharding(c *Coll, sharding any, paths []string, more bson.Raw) *Coll {
	if tx.sub != nil {
		tx.Together()
		_ = tx.each(c, func(sub *Tx, part *Coll) error {
			sub.SetSharding(part, sharding, paths, more)
			return nil
		})
		return tx.groupColl(c.NS)
	}
	w := tx.writable(c)
	info := *c.Info
	info.Sharding, info.KeyPaths = sharding, paths
	w.Info = &info
	op := OpNoop
	if more != nil {
		op = OpShardCollection
	}
	tx.record(Entry{Op: op, coll: c.Info, more: &entryDetail{doc: more}})
	return w
}

// CreateIndex builds an index. A document that does not fit it fails the whole.
func (tx *Tx) CreateIndex(c *Coll, x *IndexInfo) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.CreateIndex(part, x)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	ix, err := tx.build(c, x)
	if err != nil {
		return c, err
	}
	w := tx.writable(c)
	w.idx = append(w.idx, ix)
	tx.record(Entry{Op: OpCreateIndexes, coll: c.Info, more: &entryDetail{doc: x.Spec, idx: []*IndexInfo{x}}})
	return w, nil
}

// build makes an index of the documents that there are. It sorts the keys first: a tree that grows
// at its end is made faster, and has full nodes.
func (tx *Tx) build(c *Coll, x *IndexInfo) (Index, error) {
	ix := newIndex(c.Info, x)
	var keys []string
	list := make([]indexEntry, 0, c.recs.len())
	for it := c.recs.first(); it.valid(); it.next() {
		tx.work.Do(1)
		var multi bool
		var err error
		suffix := c.suffix(it.key())
		if keys, multi, err = x.keys(keys[:0], it.value().raw(), suffix, tx.work); err != nil {
			return ix, err
		}
		if multi {
			ix.Multikey, ix.Arrays = true, ix.Arrays.with(x, it.value().raw())
		}
		for _, entry := range keys {
			tx.work.Do(1)
			list = append(list, indexEntry{entry, len(entry) - len(suffix)})
		}
	}
	slices.SortFunc(list, work.Counting(tx.work, func(a, b indexEntry) int { return strings.Compare(a.entry, b.entry) }))
	if x.Unique {
		for i := 1; i < len(list); i++ {
			if e := list[i]; e.key() == list[i-1].key() { // the server, too, looks in the order of the keys
				_, rid := splitEntry(e.entry, ix.clustered)
				doc, _ := c.recs.get(rid)
				return ix, duplicateKey(c.NS, x, e.key(), doc.raw())
			}
		}
	}
	for _, e := range list {
		tx.work.Do(1)
		ix.tree.set(tx.edit, e.entry, struct{}{})
	}
	return ix, nil
}

// indexEntry is an entry of an index that is made, with the length of its key.
type indexEntry struct {
	entry string
	n     int
}

func (e indexEntry) key() string { return e.entry[:e.n] }

// DropIndex removes an index.
func (tx *Tx) DropIndex(c *Coll, name string) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.DropIndex(part, name)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	w := tx.writable(c)
	for i := range w.idx {
		if w.idx[i].Name == name {
			x := w.idx[i].IndexInfo
			tx.freed += int64(w.idx[i].Keys()) * perKey
			w.idx = append(w.idx[:i], w.idx[i+1:]...)
			tx.record(Entry{Op: OpDropIndexes, coll: c.Info, more: &entryDetail{doc: x.Spec}})
			break
		}
	}
	return w, nil
}

// Duplicates returns the documents that share a key of an index with others, by key.
func (tx *Tx) Duplicates(c *Coll, name string) (groups [][]bson.Raw, err error) {
	if tx.sub != nil {
		err = tx.each(c, func(sub *Tx, part *Coll) error {
			more, err := sub.Duplicates(part, name)
			groups = append(groups, more...)
			return err
		})
		return groups, err
	}
	for i := range c.idx {
		ix := &c.idx[i]
		if ix.Name != name {
			continue
		}
		at := map[string]int{}
		var first []bson.Raw
		var keys []string
		for it := c.recs.first(); it.valid(); it.next() {
			if keys, _, err = ix.keys(keys[:0], it.value().raw(), "", tx.work); err != nil {
				return nil, err
			}
			for _, k := range keys {
				tx.work.Do(1)
				n, ok := at[k]
				if !ok {
					n = len(first)
					at[k], first, groups = n, append(first, it.value().raw()), append(groups, nil)
					continue
				}
				if groups[n] == nil {
					groups[n] = append(groups[n], first[n])
				}
				groups[n] = append(groups[n], it.value().raw())
			}
		}
	}
	return slices.DeleteFunc(groups, func(g []bson.Raw) bool { return g == nil }), nil
}

// RebuildIndex replaces an index by one with another definition and keys of its own.
func (tx *Tx) RebuildIndex(c *Coll, x *IndexInfo, more bson.Raw) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.RebuildIndex(part, x, more)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	ix, err := tx.build(c, x)
	if err != nil {
		return c, err
	}
	w := tx.writable(c)
	for i := range w.idx {
		if w.idx[i].Name == x.Name {
			w.idx[i] = ix
		}
	}
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more}})
	return w, nil
}

// ModifyIndex replaces an index's definition by one with the same keys.
func (tx *Tx) ModifyIndex(c *Coll, x *IndexInfo, more bson.Raw) (*Coll, error) {
	if tx.sub != nil {
		return tx.eachColl(c, func(sub *Tx, part *Coll) error {
			_, err := sub.ModifyIndex(part, x, more)
			return err
		})
	}
	if err := tx.change(c.NS); err != nil {
		return c, err
	}
	w := tx.writable(c)
	for i := range w.idx {
		if w.idx[i].Name == x.Name {
			w.idx[i].IndexInfo = x
		}
	}
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more}})
	return w, nil
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
