package store

import (
	"encoding/binary"
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/query"
)

// Bounds say which keys of an index a scan is for: for each field the intervals in which its value
// must lie. A scan looks at a key, and where one of its values lies outside it goes on at the next
// key that may fit. The zero value is for no key.
type Bounds struct {
	fields [][]fieldRange // in the order of the index
	// A single stretch of the index: keys from lo on and before hi ("" is the end). What is
	// behind it is never looked at.
	single bool
	lo, hi string
	masks  []byte // of each field: 0xff where it descends
}

// fieldRange is an interval of encoded values of a field.
type fieldRange struct {
	lo, hi         string
	loOpen, hiOpen bool
}

func (r *fieldRange) has(v string) bool {
	return (v > r.lo || v == r.lo && !r.loOpen) && (v < r.hi || v == r.hi && !r.hiOpen)
}

func (r *fieldRange) point() bool { return r.lo == r.hi && !r.loOpen && !r.hiOpen }

// Bounds encodes intervals of the index's fields, which are in ascending order of values whatever
// the order of the field. A field that has none left over takes no key.
func (ix *Index) Bounds(intervals [][]query.Interval) Bounds {
	b := Bounds{fields: make([][]fieldRange, len(intervals)), masks: make([]byte, len(intervals))}
	for i, list := range intervals {
		down := ix.KeyFields[i].Descending
		if down {
			b.masks[i] = 0xff
		}
		ranges := make([]fieldRange, 0, len(list))
		for j := range list {
			in := &list[j]
			if down {
				in = &list[len(list)-1-j]
			}
			r := fieldRange{string(ix.encodeRaw(nil, i, in.Lo)), string(ix.encodeRaw(nil, i, in.Hi)), in.LoOpen,
				in.HiOpen}
			if down {
				r.lo, r.hi, r.loOpen, r.hiOpen = r.hi, r.lo, r.hiOpen, r.loOpen
			}
			ranges = append(ranges, r)
		}
		b.fields[i] = ranges
	}
	b.simplify()
	return b
}

// RangeBounds is for the keys of one stretch.
func RangeBounds(r Range) Bounds { return Bounds{single: true, lo: r.Lo, hi: r.Hi} }

// SingleInterval reports whether the bounds are one stretch of the index.
func (b *Bounds) SingleInterval() bool { return b.single }

var lowest, highest = string([]byte{kindMin}), string([]byte{keyKind(bson.TypeMaxKey)})

// all reports whether a field's intervals take every value.
func all(list []fieldRange, mask byte) bool {
	if len(list) != 1 || list[0].loOpen || list[0].hiOpen {
		return false
	}
	lo, hi := list[0].lo, list[0].hi
	if mask != 0 {
		lo, hi = hi, lo
	}
	return len(lo) == 1 && len(hi) == 1 && lo[0]^mask == lowest[0] && hi[0]^mask == highest[0]
}

// simplify finds out whether the bounds are one stretch: points of the first fields, one interval
// of the next, all values of the others.
func (b *Bounds) simplify() {
	i, prefix := 0, ""
	for ; i < len(b.fields); i++ {
		list := b.fields[i]
		if len(list) != 1 {
			return
		}
		if !list[0].point() {
			break
		}
		prefix += list[0].lo
	}
	for j := i + 1; j < len(b.fields); j++ {
		if !all(b.fields[j], b.masks[j]) {
			return
		}
	}
	b.single = true
	if i == len(b.fields) {
		b.lo, b.hi = prefix, successor(prefix)
		return
	}
	r := &b.fields[i][0]
	b.lo, b.hi = prefix+r.lo, prefix+r.hi
	if r.loOpen {
		b.lo = successor(b.lo)
	}
	if !r.hiOpen {
		b.hi = successor(b.hi)
	}
}

// empty reports whether no key can fit.
func (b *Bounds) empty() bool {
	if b.single {
		return b.hi != "" && b.lo >= b.hi
	}
	for _, list := range b.fields {
		if len(list) == 0 {
			return true
		}
	}
	return len(b.fields) == 0
}

// target is where a scan goes on: at the first key that is not less than at, or backward at the
// last one that is less; backward with an empty at at the last key of all.
type target struct{ at string }

// start is where a scan begins.
func (b *Bounds) start(backward bool) target {
	switch {
	case b.single && backward:
		return target{b.hi}
	case b.single:
		return target{b.lo}
	case backward:
		return b.before("", 0, len(b.fields[0])-1)
	}
	return b.from("", 0, 0)
}

// from is the least key with a prefix whose field i lies in interval n or behind it.
func (b *Bounds) from(prefix string, i, n int) target {
	for ; i < len(b.fields); i, n = i+1, 0 {
		r := &b.fields[i][n]
		prefix += r.lo
		if r.loOpen {
			return target{successor(prefix)}
		}
	}
	return target{prefix}
}

// before is the greatest key with a prefix whose field i lies in interval n or before it.
func (b *Bounds) before(prefix string, i, n int) target {
	for ; i < len(b.fields); i++ {
		r := &b.fields[i][n]
		prefix += r.hi
		if r.hiOpen {
			return target{prefix}
		}
		if i+1 < len(b.fields) {
			n = len(b.fields[i+1]) - 1
		}
	}
	return target{successor(prefix)}
}

// verdict is what bounds say of a key.
type verdict uint8

const (
	fits   verdict = iota
	beyond         // it does not, but one after it may: go on at the target
	passed         // nor does any after it
)

// check looks at a key of the index.
func (b *Bounds) check(key string, backward bool) (verdict, target) {
	if b.single {
		if backward && key < b.lo || !backward && b.hi != "" && key >= b.hi {
			return passed, target{}
		}
		return fits, target{}
	}
	at := 0
	for i, list := range b.fields {
		end := valueEnd(key, at, b.masks[i])
		v := key[at:end]
		n, in := place(list, v, backward)
		if in {
			at = end
			continue
		}
		prefix := key[:at]
		switch {
		case !backward && n < len(list):
			return beyond, b.from(prefix, i, n)
		case backward && n >= 0:
			return beyond, b.before(prefix, i, n)
		case i == 0:
			return passed, target{}
		case backward:
			return beyond, target{prefix}
		}
		return beyond, target{successor(prefix)}
	}
	return fits, target{}
}

// place returns the interval that a value lies in, or else the next one in the direction.
func place(list []fieldRange, v string, backward bool) (n int, in bool) {
	lo, hi := 0, len(list) // the first interval that does not end before v
	for lo < hi {
		mid := (lo + hi) / 2
		if r := &list[mid]; r.hi < v || r.hi == v && r.hiOpen {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(list) && list[lo].has(v) {
		return lo, true
	}
	if backward {
		return lo - 1, false
	}
	return lo, false
}

// KeyEnd returns how many bytes the first value takes of what AppendKey appended in ascending
// order; -1: it is not whole. Unlike the keys of an index, such bytes may come from a client.
func KeyEnd(key []byte) (n int) {
	defer func() {
		// What walks over keys relies on their being whole: else it comes to their end too early.
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			n = -1
		default:
			panic(r)
		}
	}()
	if n = valueEnd(string(key), 0, 0); n == 0 || n > len(key) {
		return -1
	}
	return n
}

// valueEnd returns where the encoded value ends that begins at a place of a key. mask is what its
// bytes are inverted with.
func valueEnd(key string, at int, mask byte) int {
	if at >= len(key) {
		return at
	}
	kind := key[at] ^ mask
	at++
	switch kind {
	case kindMin, keyKind(bson.TypeUndefined), keyKind(bson.TypeNull), keyKind(bson.TypeMaxKey):
		return at
	}
	return contentEnd(key, at, kind, mask)
}

func contentEnd(key string, at int, kind, mask byte) int {
	switch kind {
	case keyKind(bson.TypeDouble):
		negative := (key[at]^mask)&0x80 == 0
		at += 9
		if key[at-1]^mask == 0 {
			return at
		}
		end := mask
		if negative {
			end = ^mask
		}
		for at += 2; key[at] != end; at++ {
		}
		return at + 1
	case keyKind(bson.TypeString), keyKind(bson.TypeJavaScript):
		return escapedEnd(key, at, mask)
	case keyKind(bson.TypeEmbeddedDocument):
		for key[at]^mask != kindEnd {
			k := key[at] ^ mask
			for at++; key[at]^mask != 0; at++ {
			}
			at = contentEnd(key, at+1, k, mask)
		}
		return at + 1
	case keyKind(bson.TypeArray):
		for key[at]^mask != kindEnd {
			at = contentEnd(key, at+1, key[at]^mask, mask)
		}
		return at + 1
	case keyKind(bson.TypeBinary), keyKind(bson.TypeDBPointer):
		var n [4]byte
		for i := range n {
			n[i] = key[at+i] ^ mask
		}
		return at + int(binary.BigEndian.Uint32(n[:]))
	case keyKind(bson.TypeObjectID):
		return at + 12
	case keyKind(bson.TypeBoolean):
		return at + 1
	case keyKind(bson.TypeDateTime), keyKind(bson.TypeTimestamp):
		return at + 8
	case keyKind(bson.TypeRegex):
		for range 2 {
			for ; key[at]^mask != 0; at++ {
			}
			at++
		}
		return at
	case keyKind(bson.TypeCodeWithScope):
		return contentEnd(key, escapedEnd(key, at, mask), keyKind(bson.TypeEmbeddedDocument), mask)
	}
	return at
}

// escapedEnd returns where a text ends whose NUL bytes are escaped.
func escapedEnd(key string, at int, mask byte) int {
	for ; ; at++ {
		if key[at]^mask == 0 {
			if key[at+1]^mask == 0 {
				return at + 2
			}
			at++
		}
	}
}
