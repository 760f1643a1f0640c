package qe

import (
	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/srverr"
)

// State is an ESC collection as it is read: it returns the document with an _id.
type State func(id fle.Token) (bson.Raw, bool)

// ID returns t as the _id of a document of a state collection.
func ID(t fle.Token) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, bson.BinaryGeneric, t[:])}
}

// positions are those of a token in ESC: of its anchors, and of its entries.
type positions struct {
	nullAnchor        bool
	anchor, firstFree uint64 // of the last anchor; the first that there can be
	counted           uint64 // by the anchors
	entry             uint64 // the last
}

// locate finds the positions of a token. Anchors and entries stand without gaps, anchors from the
// one that the null anchor names, entries from the one that the last anchor counts.
func (s State) locate(esc fle.Token) (positions, error) {
	tag, value := fle.CountTag(esc), fle.CountValue(esc)
	return s.locateBy(tag, value, func(n uint64) bool {
		_, ok := s(fle.Entry(tag, n))
		return ok
	})
}

func (s State) locateBy(tag, value fle.Token, hasEntry func(uint64) bool) (p positions, err error) {
	read := func(n uint64) (bool, error) {
		doc, ok := s(fle.Anchor(tag, n))
		if !ok {
			return false, nil
		}
		b, _ := doc.Lookup("value").Binary()
		anchor, counted, err := fle.OpenAnchor(value, b.Data)
		if err != nil {
			return false, srverr.New(srverr.InternalError, "malformed state of an encrypted collection: %v", err)
		}
		if n == 0 {
			p.anchor = anchor
		}
		p.counted = counted
		return true, nil
	}
	if p.nullAnchor, err = read(0); err != nil {
		return p, err
	}
	p.firstFree = p.anchor + 1
	p.anchor = last(p.anchor, func(n uint64) bool { _, ok := s(fle.Anchor(tag, n)); return ok })
	if p.anchor >= p.firstFree {
		if _, err = read(p.anchor); err != nil {
			return p, err
		}
	}
	p.entry = p.counted
	if hasEntry != nil {
		p.entry = last(p.counted, hasEntry)
	}
	return p, nil
}

// last returns the greatest n for which has reports true, given that it does for all up to it and
// for none above; from if there is none above from.
func last(from uint64, has func(uint64) bool) uint64 {
	step := uint64(1)
	for has(from + step) {
		from += step
		step *= 2
	}
	// The first that is missing lies within the last step.
	low, high := from, from+step
	for high-low > 1 {
		if mid := low + (high-low)/2; has(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// count returns how often a token was inserted.
func (s State) count(esc fle.Token) (uint64, error) {
	p, err := s.locate(esc)
	return p.entry, err
}
