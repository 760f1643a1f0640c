package query

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/work"
)

// Many rows are sorted by numbers that begin like the values: most comparisons are of two numbers,
// and only rows whose numbers are equal are compared as a whole.

// SortByKey sorts rows by their keys, which s.Key has made; equal ones keep their order. It counts
// steps: see [work.Catch].
func SortByKey[T any](s *Sort, rows []T, key func(row *T) []bson.RawValue) {
	first := func(row *T) bson.RawValue { return key(row)[0] }
	sortRows(rows, first, s.fields[0].Descending, s.coll, s.work, func(a, b *T) int {
		return s.CompareKeys(key(a), key(b))
	})
}

// SortByValue sorts rows by a value of each; equal ones keep their order. It counts steps.
func SortByValue[T any](rows []T, value func(row *T) bson.RawValue, coll *Collation, m *work.Meter) {
	sortRows(rows, value, false, coll, m, func(a, b *T) int {
		m.Do(1)
		return Compare(value(a), value(b), coll)
	})
}

// fewRows is how many rows are not worth a number for each.
const fewRows = 12

// sortRows sorts by compare, which orders by the first value before all else.
func sortRows[T any](rows []T, first func(row *T) bson.RawValue, descending bool, coll *Collation, m *work.Meter,
	compare func(a, b *T) int) {
	if len(rows) <= fewRows {
		for i := 1; i < len(rows); i++ {
			for j := i; j > 0 && compare(&rows[j], &rows[j-1]) < 0; j-- {
				rows[j], rows[j-1] = rows[j-1], rows[j]
			}
		}
		return
	}
	var p prefixes
	p.coll = coll
	for i := range rows {
		p.note(first(&rows[i]))
	}
	type numbered struct {
		number uint64
		at     int
	}
	order := make([]numbered, len(rows))
	for i := range rows {
		m.Do(1)
		n := p.of(first(&rows[i]))
		if descending {
			n = ^n
		}
		order[i] = numbered{n, i}
	}
	slices.SortFunc(order, func(a, b numbered) int {
		if a.number != b.number {
			m.Do(1)
			return cmp.Compare(a.number, b.number)
		}
		if c := compare(&rows[a.at], &rows[b.at]); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
	sorted := make([]T, len(rows))
	for i, o := range order {
		sorted[i] = rows[o.at]
	}
	copy(rows, sorted)
}

// prefixes makes numbers that order values as Compare does, as far as they go: of two values
// whose numbers differ, that of the lesser is less. A number is the rank of the type, and the
// beginning of what is compared by it.
type prefixes struct {
	coll     *Collation
	decimals bool   // numbers among them have no more than the rank
	shared   []byte // how all strings begin
	strings  bool   // there was one
}

// note tells of a value that there will be.
func (p *prefixes) note(v bson.RawValue) {
	switch v.Type {
	case bson.TypeDecimal128:
		p.decimals = true
	case bson.TypeString, bson.TypeSymbol:
		s := stringData(v)
		if !p.strings {
			p.strings, p.shared = true, s
			return
		}
		n := 0
		for n < len(p.shared) && n < len(s) && p.shared[n] == s[n] {
			n++
		}
		p.shared = p.shared[:n]
	}
}

// of returns the number of a value that was noted.
func (p *prefixes) of(v bson.RawValue) uint64 {
	rank := uint64(canonicalType(v.Type)+1) << 56
	switch v.Type {
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64:
		if !p.decimals {
			return rank | floatOrder(Float(v))>>8
		}
	case bson.TypeString, bson.TypeSymbol:
		if p.coll == nil {
			return rank | leading(stringData(v)[len(p.shared):])
		}
	case bson.TypeObjectID:
		return rank | leading(v.Value)
	case bson.TypeDateTime:
		return rank | (binary.LittleEndian.Uint64(v.Value)^1<<63)>>8
	case bson.TypeTimestamp:
		return rank | binary.LittleEndian.Uint64(v.Value)>>8
	}
	return rank
}

// leading returns the first seven bytes as a number.
func leading(b []byte) uint64 {
	var first [8]byte
	copy(first[1:], b)
	return binary.BigEndian.Uint64(first[:])
}

// floatOrder returns a number that orders floats as the server does: NaN is the least, and both
// zeros are equal.
func floatOrder(f float64) uint64 {
	switch {
	case f != f:
		return 0
	case f == 0:
		return 1 << 63
	case f < 0:
		return ^math.Float64bits(f)
	}
	return math.Float64bits(f) | 1<<63
}
