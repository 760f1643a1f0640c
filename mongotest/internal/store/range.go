package store

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/query"
)

// maxRanges bounds how many ranges of a compound index are looked up for lists of values on several
// fields.
const maxRanges = 10000

// nothing is a range without keys.
var nothing = Range{Lo: "\xff", Hi: "\xff"}

// Ranges returns the parts of the index in which the documents that match a filter have their keys:
// it looks at the leading field, and as long as that is bound to single values at the next one,
// unless both lead into the same array.
// score tells how much that narrows the index down, 0 for not at all; sameCollation that the index
// compares strings as the filter does.
func (ix *Index) Ranges(f *query.Filter, sameCollation bool) (ranges []Range, score int) {
	if f == nil || !ix.ByValue() {
		return nil, 0
	}
	prefixes := []string{""}
	for i, field := range ix.Fields {
		intervals, ok := f.Bounds(field.Path, ix.Multikey, sameCollation)
		if !ok {
			break
		}
		if ix.Multikey && ix.sharesRoot(i) {
			break // another element of the array may fulfill the condition: it has another key
		}
		if i == 0 && ix.Sparse && admitsNull(intervals) {
			return nil, 0 // documents without the field match but are not in the index
		}
		if len(intervals) == 0 {
			return []Range{nothing}, 2 * len(ix.Fields)
		}
		if len(prefixes)*len(intervals) > maxRanges {
			break
		}
		var points []string
		var next []Range
		all := true
		for _, prefix := range prefixes {
			for j := range intervals {
				in := intervals[j]
				if field.Descending {
					in = intervals[len(intervals)-1-j]
				}
				if in.IsPoint() {
					p := string(ix.encode([]byte(prefix), i, in.Lo))
					points = append(points, p)
					next = append(next, Range{Lo: p, Hi: successor(p)})
					continue
				}
				all = false
				next = append(next, ix.interval(prefix, i, in))
			}
		}
		ranges = next
		if !all {
			return ranges, score + 1
		}
		prefixes, score = points, score+2
	}
	return ranges, score
}

// sharesRoot reports whether a field of the pattern begins with the name that one before it begins
// with, so that both may lead into the same array.
func (ix *Index) sharesRoot(i int) bool {
	root, _, _ := strings.Cut(ix.Fields[i].Path, ".")
	for _, f := range ix.Fields[:i] {
		if other, _, _ := strings.Cut(f.Path, "."); other == root {
			return true
		}
	}
	return false
}

func admitsNull(list []query.Interval) bool {
	null := bson.RawValue{Type: bson.TypeNull}
	for _, i := range list {
		if bson.Compare(i.Lo, null) <= 0 && bson.Compare(i.Hi, null) >= 0 {
			return true
		}
	}
	return false
}

// interval returns the range of an interval of values of field i behind a prefix of the values
// before it.
func (ix *Index) interval(prefix string, i int, in query.Interval) Range {
	lo, hi := string(ix.encode([]byte(prefix), i, in.Lo)), string(ix.encode([]byte(prefix), i, in.Hi))
	loOpen, hiOpen := in.LoOpen, in.HiOpen
	if ix.Fields[i].Descending {
		lo, hi, loOpen, hiOpen = hi, lo, hiOpen, loOpen
	}
	if loOpen {
		lo = successor(lo)
	}
	if !hiOpen {
		hi = successor(hi)
	}
	return Range{Lo: lo, Hi: hi}
}

// Between returns the range of the keys from min on and before max; a nil one is no bound. ok is
// false if the bounds do not have exactly the index's fields, or an end that is not behind its
// start, which inOrder tells.
func (ix *Index) Between(min, max bson.Raw) (r Range, ok, inOrder bool) {
	bound := func(doc bson.Raw) (string, bool) {
		var b []byte
		i := 0
		for k, v := range doc.All() {
			if i >= len(ix.Fields) || ix.Fields[i].Path != k {
				return "", false
			}
			b = ix.encodeRaw(b, i, v)
			i++
		}
		return string(b), i == len(ix.Fields)
	}
	ok = ix.ByValue()
	if ok && min != nil {
		r.Lo, ok = bound(min)
	}
	if ok && max != nil {
		r.Hi, ok = bound(max)
	}
	return r, ok, ok && (max == nil || r.Lo < r.Hi)
}

// successor returns the first string behind all that start with prefix.
func successor(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) > 0 {
		b[len(b)-1]++
	}
	return string(b) // empty stands for the end
}
