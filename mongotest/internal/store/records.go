package store

import (
	"encoding/binary"
	"strings"
)

// recordLen is how many bytes a record id has that is a number, the greatest first: enough for all
// documents that a process can make, and as few as let the entry of an index on numbers or dates
// take 16 bytes.
const recordLen = 6

// recordID returns the record id of a number.
func recordID(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return string(b[8-recordLen:])
}

// records are a collection's documents by record id. That is the key of the _id in a clustered
// collection, and else a number, which is kept as one because a string would take three times as
// much.
type records struct {
	clustered bool
	numbers   tree[uint64, document]
	keys      tree[string, document]
}

// numberOf returns the smallest number whose record id is not less; ok is false if there is none.
func numberOf(rid string) (n uint64, ok bool) {
	var b [8]byte
	copy(b[8-recordLen:], rid)
	n = binary.BigEndian.Uint64(b[:])
	if len(rid) > recordLen {
		n++
	}
	return n, n>>(8*recordLen) == 0
}

func (r *records) len() int { return r.numbers.len() + r.keys.len() }

func (r *records) get(rid string) (doc document, ok bool) {
	switch {
	case r.clustered:
		return r.keys.get(rid)
	case len(rid) != recordLen:
		return doc, false
	}
	n, _ := numberOf(rid)
	return r.numbers.get(n)
}

func (r *records) set(edit uint64, rid string, doc document) {
	switch {
	case r.clustered:
		r.keys.set(edit, rid, doc)
	case len(rid) != recordLen:
		panic("store: a record id is not a number")
	default:
		n, _ := numberOf(rid)
		r.numbers.set(edit, n, doc)
	}
}

func (r *records) delete(edit uint64, rid string) {
	if r.clustered {
		r.keys.delete(edit, rid)
	} else if len(rid) == recordLen {
		n, _ := numberOf(rid)
		r.numbers.delete(edit, n)
	}
}

// recordIter walks over records in either direction.
type recordIter struct {
	numbers treeIter[uint64, document]
	keys    *treeIter[string, document] // nil: numbers does it
}

func (r *records) iter(numbers treeIter[uint64, document], keys treeIter[string, document]) (it recordIter) {
	if r.clustered {
		it.keys = &keys
	} else {
		it.numbers = numbers
	}
	return it
}

func (r *records) first() recordIter { return r.iter(r.numbers.first(), r.keys.first()) }

func (r *records) last() recordIter { return r.iter(r.numbers.last(), r.keys.last()) }

// seek puts the iterator on the first record that is not smaller, seekBefore on the last one that
// is smaller.
func (r *records) seek(rid string) (it recordIter) {
	if r.clustered {
		return r.iter(it.numbers, r.keys.seek(rid))
	}
	if n, ok := numberOf(rid); ok {
		it.numbers = r.numbers.seek(n)
	}
	return it
}

func (r *records) seekBefore(rid string) (it recordIter) {
	if r.clustered {
		return r.iter(it.numbers, r.keys.seekBefore(rid))
	}
	n, ok := numberOf(rid)
	if !ok {
		return r.last()
	}
	it.numbers = r.numbers.seekBefore(n)
	return it
}

func (it *recordIter) valid() bool {
	if it.keys != nil {
		return it.keys.valid()
	}
	return it.numbers.valid()
}

func (it *recordIter) next() {
	if it.keys != nil {
		it.keys.next()
	} else {
		it.numbers.next()
	}
}

func (it *recordIter) prev() {
	if it.keys != nil {
		it.keys.prev()
	} else {
		it.numbers.prev()
	}
}

// key returns the record id, which it makes if that is a number.
func (it *recordIter) key() string {
	if it.keys != nil {
		return it.keys.key()
	}
	return recordID(it.numbers.key())
}

func (it *recordIter) value() document {
	if it.keys != nil {
		return it.keys.value()
	}
	return it.numbers.value()
}

// entries are what an index keeps in order: the encoded key of each, and the record id behind it,
// which is a part of the same string so that an entry is one. Behind a record id that is no number
// stands how long it is.
type entries struct {
	clustered bool
	tree      tree[string, struct{}]
}

// suffix returns what stands behind a key in the entries of a record.
func (c *Coll) suffix(rid string) string {
	if !c.Clustered {
		return rid
	}
	b := make([]byte, 0, len(rid)+4)
	return viewString(binary.BigEndian.AppendUint32(append(b, rid...), uint32(len(rid))))
}

// splitEntry takes an entry apart.
func splitEntry(entry string, clustered bool) (key, rid string) {
	end, n := len(entry), recordLen
	if clustered {
		end -= 4
		n = int(binary.BigEndian.Uint32([]byte(entry[end:])))
	}
	return entry[:end-n], entry[end-n : end]
}

// get returns the first record that has a key.
func (e *entries) get(key string) (rid string, ok bool) {
	entry, ok := e.tree.atLeast(key)
	if !ok || !strings.HasPrefix(entry, key) {
		return "", false
	}
	k, rid := splitEntry(entry, e.clustered)
	return rid, len(k) == len(key) // no key begins with another one
}

// getOther returns a record that has a key, but not this one.
func (e *entries) getOther(key, rid string) (other string, ok bool) {
	if other, ok = e.get(key); !ok || other != rid {
		return other, ok
	}
	for it := e.tree.seek(key); it.valid() && strings.HasPrefix(it.key(), key); it.next() {
		if k, other := splitEntry(it.key(), e.clustered); len(k) == len(key) && other != rid {
			return other, true
		}
	}
	return "", false
}

func (e *entries) has(entry string) bool {
	_, ok := e.tree.get(entry)
	return ok
}

func (e *entries) add(edit uint64, entry string) { e.tree.set(edit, entry, struct{}{}) }

func (e *entries) remove(edit uint64, entry string) { e.tree.delete(edit, entry) }

// newIndex returns an empty index of a collection.
func newIndex(c *Info, x *IndexInfo) Index {
	return Index{IndexInfo: x, entries: entries{clustered: c.Clustered}}
}

// newColl returns an empty collection.
func newColl(info *Info, edit uint64, idx ...*IndexInfo) *Coll {
	c := &Coll{Info: info, edit: edit, recs: records{clustered: info.Clustered}}
	for _, x := range idx {
		c.idx = append(c.idx, newIndex(info, x))
	}
	return c
}

// clear removes all documents.
func (c *Coll) clear() {
	c.recs, c.tags, c.bytes = records{clustered: c.Clustered}, tree[string, any]{}, 0
	for i := range c.idx {
		c.idx[i].entries, c.idx[i].Multikey, c.idx[i].Arrays = newIndex(c.Info, c.idx[i].IndexInfo).entries, false, nil
	}
}
