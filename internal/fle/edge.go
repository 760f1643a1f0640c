package fle

import (
	"errors"
	"fmt"

	"allium/bson"
)

// A value of a range field is found by its edges: the leading bits of its number, and "root" for
// none of them. A query looks for the edges that cover its range.

// rootEdge stands for all values.
const rootEdge = "root"

// Trim returns the trim factor that a field of the domain has: factor, or the default. The edges of
// fewer bits are left out, which saves space and makes queries of large ranges slower.
func (d *Domain) Trim(factor *int32) (int32, error) {
	if factor == nil {
		return int32(min(DefaultTrimFactor, d.bits-1)), nil
	}
	if *factor < 0 {
		return 0, fmt.Errorf("trimFactor must be >= 0, but got %d", *factor)
	}
	if *factor != 0 && int(*factor) >= d.bits {
		//lint:ignore ST1005 the text is that of other drivers
		return 0, fmt.Errorf(
			"Trim factor (%d) must be less than the total number of bits (%d) used to represent any element in the domain.", *factor, d.bits)
	}
	return *factor, nil
}

var errSparsity = errors.New("sparsity must be 1 or larger")

// prefix returns the first n bits of number, "root" for none.
func (d *Domain) prefix(number uint128, n int) string {
	if n == 0 {
		return rootEdge
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = '0' + number.bit(d.bits-1-i)
	}
	return string(b)
}

// Edges returns the edges of v: the root unless it is trimmed, all bits (the leaf), then the others
// from short to long.
func (d *Domain) Edges(v bson.RawValue, sparsity int64, trim int32) ([]string, error) {
	if sparsity < 1 {
		return nil, errSparsity
	}
	number, err := d.encode(v)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, 2+int64(d.bits)/sparsity)
	if trim == 0 {
		out = append(out, rootEdge)
	}
	leaf := d.prefix(number, d.bits)
	out = append(out, leaf)
	for n := max(int(trim), 1); n < d.bits; n++ {
		if int64(n)%sparsity == 0 {
			out = append(out, leaf[:n])
		}
	}
	return out, nil
}

// Cover returns the fewest edges that the values of a range have, and no other value has. An
// infinite bound is an open side and stands for the least or the greatest value, which is in the
// range then.
func (d *Domain) Cover(e *RangeEdges, sparsity int64, trim int32) ([]string, error) {
	if sparsity < 1 {
		return nil, errSparsity
	}
	least, greatest := d.Bounds()
	lower, lowerIn := e.Lower, e.LowerIn
	if isOpen(lower, -1) {
		lower, lowerIn = least, true
	}
	upper, upperIn := e.Upper, e.UpperIn
	if isOpen(upper, 1) {
		upper, upperIn = greatest, true
	}
	low, err := d.encode(lower)
	if err != nil {
		return nil, err
	}
	high, err := d.encode(upper)
	if err != nil {
		return nil, err
	}
	if high.less(low) {
		return nil, errors.New("lower bound must be less than or equal to the upper bound of the range")
	}
	if !lowerIn {
		if !low.less(d.top) || bson.Compare(lower, greatest) == 0 {
			//lint:ignore ST1005 the text is that of other drivers
			return nil, fmt.Errorf(
				"Lower bound must be less than the range maximum (%s) if lower bound is excluded from range",
				text(greatest))
		}
		low = low.add(uint128{lo: 1})
	}
	if !upperIn {
		if high == (uint128{}) || bson.Compare(upper, least) == 0 {
			//lint:ignore ST1005 the text is that of other drivers
			return nil, fmt.Errorf(
				"Upper bound must be greater than the range minimum (%s) if upper bound is excluded from range",
				text(least))
		}
		high = high.sub(uint128{lo: 1})
	}
	c := cover{domain: d, low: low, high: high, sparsity: sparsity, trim: int(trim)}
	c.visit(uint128{}, 0)
	if len(c.edges) > maxCover {
		return nil, fmt.Errorf("the range needs more than %d edges: a smaller sparsity makes them fewer", maxCover)
	}
	return c.edges, nil
}

func isOpen(v bson.RawValue, sign int) bool {
	f, ok := v.Double()
	return ok && f == inf(sign)
}

// maxCover is more edges than the payload of a query can have within the 16 MiB of a document.
const maxCover = 1 << 17

// cover collects the edges of a range.
type cover struct {
	domain    *Domain
	low, high uint128
	sparsity  int64
	trim      int
	edges     []string
}

// visit looks at the values from first whose leading level bits are those of first.
func (c *cover) visit(first uint128, level int) {
	last := first.add(ones(c.domain.bits - level))
	if c.high.less(first) || last.less(c.low) || len(c.edges) > maxCover {
		return
	}
	leaf := level == c.domain.bits
	inside := !first.less(c.low) && !c.high.less(last)
	if inside && (leaf || level >= c.trim && int64(level)%c.sparsity == 0) {
		c.edges = append(c.edges, c.domain.prefix(first, level))
		return
	}
	if leaf {
		return
	}
	c.visit(first, level+1)
	c.visit(first.add(power(c.domain.bits-level-1)), level+1)
}
