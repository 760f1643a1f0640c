package store

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync/atomic"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/work"
)

// Writes to the catalog: collections, their settings, their indexes. Those to documents are in
// tx.go.

// NewUUID returns a random UUID.
func NewUUID() (u [16]byte) {
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
	return (&IndexInfo{Name: "_id_", Spec: spec, Pattern: idPattern(), Fields: []IndexField{{Path: "_id"}}, IsID: true,
		Unique: true, Collation: coll}).Prepare()
}

// Create makes a collection or view. It must not exist.
func (tx *Tx) Create(ns string, set Settings, id *IndexInfo) (*Coll, error) {
	if tx.sub != nil {
		return tx.sub[tx.s.place(ns)].Create(ns, set, id)
	}
	if err := tx.allowed(ns); err != nil {
		return nil, err
	}
	db, name, _ := strings.Cut(ns, ".")
	// Nobody is locked out: of several transactions that make the same collection the first one to
	// commit wins.
	if tx.txn != nil && tx.s.latest.Load().Coll(ns) != nil && tx.txn.base.Coll(ns) == nil {
		return nil, CatalogChanged()
	}
	info := &Info{NS: ns, DB: db, Name: name, UUID: NewUUID(), Settings: set, lastRecord: newCounter(),
		shard: tx.s.shard}
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

// Rename gives a collection another name, and the options that listCollections shows; one that has
// the name is dropped first.
func (tx *Tx) Rename(c *Coll, to string, options bson.Raw) error {
	if tx.sub != nil {
		return tx.groupRename(c, to, options)
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
	info.NS, info.Raw = to, options
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
	prev := stateBefore(c, nil, more)
	w := tx.writable(c)
	info := *c.Info
	info.Settings = set
	w.Info = &info
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more, prev: prev}})
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
	slices.SortFunc(list, work.Counting(tx.work, func(a, b indexEntry) int {
		return strings.Compare(a.entry, b.entry)
	}))
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
	prev := stateBefore(c, c.indexNamed(x.Name), more)
	w := tx.writable(c)
	for i := range w.idx {
		if w.idx[i].Name == x.Name {
			w.idx[i] = ix
		}
	}
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more, prev: prev}})
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
	prev := stateBefore(c, c.indexNamed(x.Name), more)
	w := tx.writable(c)
	for i := range w.idx {
		if w.idx[i].Name == x.Name {
			w.idx[i].IndexInfo = x
		}
	}
	tx.record(Entry{Op: OpModify, coll: c.Info, more: &entryDetail{doc: more, prev: prev}})
	return w, nil
}

// indexNamed returns the definition of an index, nil if there is none of this name.
func (c *Coll) indexNamed(name string) *IndexInfo {
	for i := range c.idx {
		if c.idx[i].Name == name {
			return c.idx[i].IndexInfo
		}
	}
	return nil
}

// stateBefore returns the options of a collection, and of an index those that a change is about.
func stateBefore(c *Coll, x *IndexInfo, change bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	options, doc := bson.BeginDocumentElement(doc, "collectionOptions")
	doc = bson.AppendBinary(doc, "uuid", bson.BinaryUUID, c.UUID[:])
	if len(c.Raw) > 0 {
		doc = append(doc, c.Raw.Elements()...)
	}
	doc = bson.EndDocument(doc, options)
	if x != nil {
		index, d := bson.BeginDocumentElement(doc, "indexOptions")
		for key := range bson.Raw(change.Lookup("index").Value).All() {
			switch {
			case key == "hidden":
				d = bson.AppendBool(d, key, x.Hidden)
			case key == "prepareUnique":
				d = bson.AppendBool(d, key, x.PrepareUnique)
			case key == "unique":
				d = bson.AppendBool(d, key, x.Unique)
			case key == "expireAfterSeconds" && x.Expire != nil:
				d = bson.AppendInt64(d, key, *x.Expire)
			}
		}
		doc = bson.EndDocument(d, index)
	}
	return bson.EndDocument(doc, at)
}
