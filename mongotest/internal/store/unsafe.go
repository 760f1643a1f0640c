package store

import (
	"encoding/binary"
	"unsafe"

	"allium/bson"
)

// viewString returns the bytes as a string without copying them; it must not outlive them.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// document refers to a document's bytes, which say themselves how many they are: a third of the
// size of a slice.
type document struct{ p *byte }

// refer returns the reference to a document, or to none if doc is nil. The document must be one:
// its length has to be what its first bytes say.
func refer(doc bson.Raw) document {
	if doc == nil {
		return document{}
	}
	if len(doc) < 5 || int(binary.LittleEndian.Uint32(doc)) != len(doc) {
		panic("store: the length of a document is not what it says")
	}
	return document{unsafe.SliceData(doc)}
}

// size returns how many bytes the document has, 0 if there is none.
func (d document) size() int {
	if d.p == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(unsafe.Slice(d.p, 4)))
}

// raw returns the document, nil if there is none.
func (d document) raw() bson.Raw {
	n := d.size()
	if n == 0 {
		return nil
	}
	return unsafe.Slice(d.p, n)
}
