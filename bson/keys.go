package bson

// The keys of documents repeat: a collection has a few dozen, in much the same order in each
// document. A decoder remembers those that it has seen, so that a key is compared with what is
// expected instead of being searched for its end, and so that the documents of a collection share
// the memory of their keys.

import "encoding/binary"

const (
	mostKeys    = 1024 // how many keys a decoder remembers
	longestKey  = 64   // bytes of a key that it remembers
	keyChunk    = 512  // bytes of keys that share memory
	keySlots    = 512  // of the table that finds a key
	fewestUses  = 16   // documents that the keys must serve until there are too many
	restFromNew = 256  // documents for which a decoder learns nothing if they did not
)

// keyTable holds the keys that a decoder has seen. All of them are ASCII, and so valid whatever the
// options say about UTF-8. The zero keyTable is empty.
type keyTable struct {
	entries []keyEntry // the first one stands for what surrounds a tree
	slots   []uint16   // the entry of a key by its hash; a later key takes an earlier one's place
	free    []byte     // of the chunk of keys
	served  int        // documents since the table was empty
	rest    int        // documents until the decoder learns keys again
}

// keyEntry is a key in the value of another, and what is expected next: the key that last followed
// in the same document, and the first one in its value. 0 expects nothing.
type keyEntry struct {
	key             string
	head, mask      uint64 // its first eight bytes, or all of it and the NUL behind it, and which bytes those are
	in, next, first uint16
}

// begins reports whether b, which holds at least eight bytes, begins with the key and a NUL.
func (e *keyEntry) begins(b []byte) bool {
	if binary.LittleEndian.Uint64(b)&e.mask != e.head {
		return false
	}
	n := len(e.key)
	return n < 8 || n < len(b) && b[n] == 0 && string(b[8:n]) == e.key[8:]
}

// begin gets the table ready for another tree. Documents whose keys do not repeat, as those of maps
// by name, gain nothing from it, and it leaves them alone for a while.
func (t *keyTable) begin() {
	switch {
	case t.entries == nil:
		t.entries, t.slots = make([]keyEntry, 1, 32), make([]uint16, keySlots)
	case t.rest > 0:
		t.rest--
	case len(t.entries) >= mostKeys:
		if t.served < fewestUses {
			t.rest = restFromNew
		}
		clear(t.slots)
		clear(t.entries)
		t.entries, t.free, t.served = t.entries[:1], nil, 0
	default:
		t.served++
	}
}

// follow returns the entry of a key that came after the key last in a document, or first if last is
// 0, and expects it there from now on. The document is the value of the key in.
func (t *keyTable) follow(in, last uint16, key []byte) uint16 {
	id := t.find(in, key)
	switch {
	case id == 0:
	case last == 0:
		t.entries[in].first = id
	default:
		t.entries[last].next = id
	}
	return id
}

// find returns the entry of a key in the value of another, which it makes if there is none; 0 if
// the key is none to remember. The key must be ASCII without a NUL.
func (t *keyTable) find(in uint16, key []byte) uint16 {
	n := len(key)
	if n > longestKey || t.rest > 0 || len(t.entries) >= mostKeys {
		return 0
	}
	slot := &t.slots[keyHash(in, key)]
	if i := *slot; i != 0 && t.entries[i].in == in && t.entries[i].key == string(key) {
		return i
	}
	if n > len(t.free) {
		t.free = make([]byte, keyChunk)
	}
	copy(t.free, key) // what is handed out is never written again
	i := uint16(len(t.entries))
	e := keyEntry{key: viewString(t.free[:n]), mask: ^uint64(0), in: in}
	var head [8]byte
	copy(head[:], key)
	if e.head = binary.LittleEndian.Uint64(head[:]); n < 7 {
		e.mask >>= 8 * (7 - n)
	}
	t.entries = append(t.entries, e)
	t.free = t.free[n:]
	*slot = i
	return i
}

// keyHash returns a slot for a key in the value of another, by its length and its first and last
// eight bytes.
func keyHash(in uint16, key []byte) uint {
	var x uint64
	if n := len(key); n >= 8 {
		x = binary.LittleEndian.Uint64(key) ^ binary.LittleEndian.Uint64(key[n-8:])<<1
	} else {
		for _, c := range key {
			x = x<<8 | uint64(c)
		}
	}
	x += uint64(len(key)) + uint64(in)<<48
	return uint(x * 0x9E3779B97F4A7C15 >> 55)
}
