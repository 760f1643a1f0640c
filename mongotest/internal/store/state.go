package store

import (
	"slices"
	"strings"
	"sync/atomic"

	"allium/bson"
	"allium/mongotest/internal/query"
)

// State is the content of all databases at one moment. It never changes.
type State struct {
	TS    bson.Timestamp
	colls tree[string, *Coll] // by namespace
	log   []*Entry
	shown map[string]*Coll // derived collections, by namespace

	group  *Store // of which it is a state; nil: of a store that stands alone
	shards []*State
}

// Coll returns a collection or view, nil if there is none of this name.
func (st *State) Coll(ns string) *Coll {
	if c, ok := st.shown[ns]; ok {
		return c
	}
	return st.stored(ns)
}

// Colls calls f for every collection of a database ("" for all), in the order of their names, until
// it returns false.
func (st *State) Colls(db string, f func(*Coll) bool) {
	prefix := ""
	if db != "" {
		prefix = db + "."
	}
	if st.group != nil {
		st.collsOfGroup(prefix, f)
		return
	}
	for it := st.colls.seek(prefix); it.valid(); it.next() {
		if !strings.HasPrefix(it.key(), prefix) || !f(it.value()) {
			return
		}
	}
}

// Databases returns the names of the databases that have a collection, in order.
func (st *State) Databases() []string {
	var names []string
	if st.group != nil {
		for _, part := range st.shards {
			names = append(names, part.Databases()...)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	for it := st.colls.first(); it.valid(); {
		db := it.value().DB
		names = append(names, db)
		it = st.colls.seek(db + "/") // '/' follows '.'
	}
	return names
}

// Log returns the change log, oldest entry first, of the newest state; older ones have none. It
// must not be changed.
func (st *State) Log() []*Entry { return st.log }

// Settings are a collection's options as the store needs them.
type Settings struct {
	Raw        bson.Raw // what listCollections shows as options
	View       bool
	Capped     bool
	Size       int64 // bytes, of a capped collection
	Max        int64 // documents, of a capped collection; 0: no bound
	Clustered  bool  // ordered by _id, without an _id index
	ExpireSecs int64 // of a clustered or time series collection; 0: never
	Collation  *query.Collation
	NoIDIndex  bool
	PreImages  bool
	TimeSeries bool
	// Check validates a document before it is stored; nil: anything goes. Used by the command
	// layer.
	Check any
	// Sharding says where the documents are, nil if the collection is not sharded. Used by the
	// command layer.
	Sharding any
	// KeyPaths are the fields that identify a document in the change log beside _id: the shard key.
	KeyPaths []string
}

// Info is what identifies a collection and how it is set up. It is not changed once it is
// published.
type Info struct {
	NS, DB, Name string
	UUID         [16]byte
	Settings
	// Since is when the collection came to be what it is: a snapshot from before does not know it.
	Since bson.Timestamp

	lastRecord *atomic.Uint64
	derived    bool
	shard      int // of the store in its group
}

// Coll is a collection at one moment.
type Coll struct {
	*Info
	recs  records
	idx   []Index
	bytes int64
	edit  uint64
	tags  tree[string, any] // what the command layer keeps beside some documents, by record id
	parts []*Coll           // what the shards have of a sharded collection: this is a group's view of it

	firstIdx [1]Index // where idx begins in a version that a writer has made
}

// Index is an index at one moment.
type Index struct {
	*IndexInfo
	entries
	Multikey bool
	Arrays   *Arrays // nil: it is not multikey
}

// Keys returns how many keys the index has.
func (ix *Index) Keys() int { return ix.tree.len() }

// Count returns the number of documents, Bytes their size. A sharded collection's counts what
// migrations have left behind, too.
func (c *Coll) Count() int64 {
	n := int64(c.recs.len())
	for _, p := range c.parts {
		n += p.Count()
	}
	return n
}

// Bytes returns the size of all documents.
func (c *Coll) Bytes() int64 { return c.bytes }

// Indexes returns the indexes in the order they were made. The slice must not be changed.
func (c *Coll) Indexes() []Index { return c.idx }

// Index returns the index with this name, or nil.
func (c *Coll) Index(name string) *Index {
	for i := range c.idx {
		if c.idx[i].Name == name {
			return &c.idx[i]
		}
	}
	return nil
}

// Record returns the document with this record id.
func (c *Coll) Record(rid string) (bson.Raw, bool) {
	if c.parts != nil {
		part, rid := c.partOf(rid)
		if part == nil {
			return nil, false
		}
		return part.Record(rid)
	}
	doc, ok := c.recs.get(rid)
	return doc.raw(), ok
}

// Tag returns what Tx.Tag keeps beside a record, or nil.
func (c *Coll) Tag(rid string) any {
	if c.parts != nil {
		if c, rid = c.partOf(rid); c == nil {
			return nil
		}
	}
	if c.tags.len() == 0 {
		return nil
	}
	tag, _ := c.tags.get(rid)
	return tag
}

// Last returns the document that was inserted last.
func (c *Coll) Last() (rid string, doc bson.Raw, ok bool) {
	it := c.recs.last()
	if !it.valid() {
		return "", nil, false
	}
	return it.key(), it.value().raw(), true
}

// ByID returns the document whose _id is equal to id. Of a sharded collection several shards may
// have one; it is the first one's.
func (c *Coll) ByID(id bson.RawValue) (rid string, doc bson.Raw, ok bool) {
	for _, p := range c.parts {
		if rid, doc, ok = p.ByID(id); ok && c.placed(p, doc) {
			return string([]byte{byte(p.shard)}) + rid, doc, true
		}
	}
	if c.parts != nil {
		return "", nil, false
	}
	var buf [64]byte
	key := AppendKey(buf[:0], id, collator(c.Collation), false)
	if c.Clustered {
		rid = string(key)
		doc, ok = c.Record(rid)
		return rid, doc, ok
	}
	if len(c.idx) == 0 || !c.idx[0].IsID {
		for it := c.recs.first(); it.valid(); it.next() {
			if query.Compare(it.value().raw().Lookup("_id"), id, c.Collation) == 0 {
				return it.key(), it.value().raw(), true
			}
		}
		return "", nil, false
	}
	rid, ok = c.idx[0].get(viewString(key))
	if !ok {
		return "", nil, false
	}
	doc, ok = c.Record(rid)
	return rid, doc, ok
}

// HasIDs reports whether an _id is that of at most one document, which [Coll.ByID] finds: some
// collections of the database local have no index on it.
func (c *Coll) HasIDs() bool { return c.Clustered || len(c.idx) > 0 && c.idx[0].IsID }

// newRecord returns a fresh record id.
func (c *Coll) newRecord(id bson.RawValue) string {
	if c.Clustered {
		return string(AppendKey(nil, id, collator(c.Collation), false))
	}
	return recordID(c.lastRecord.Add(1))
}

// RecordNumber returns a record id as the number that $recordId shows.
func RecordNumber(rid string) int64 {
	if len(rid) == 1+recordLen { // with the shard's number in front
		rid = rid[1:]
	}
	if len(rid) != recordLen {
		return 0
	}
	n, _ := numberOf(rid)
	return int64(n)
}

// RecordAt returns the record id with this number, and whether the collection has the record.
func (c *Coll) RecordAt(number int64) (rid string, ok bool) {
	rid = recordID(uint64(number))
	_, ok = c.recs.get(rid)
	return rid, ok
}
