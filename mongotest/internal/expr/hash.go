package expr

import (
	"hash/maphash"
	"math"

	"allium/bson"
)

var hashSeed = maphash.MakeSeed()

// Hash returns a hash that is the same for values that Compare takes for equal, whatever their
// types.
func (e *Env) Hash(v bson.RawValue) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	e.hash(&h, v)
	return h.Sum64()
}

func (e *Env) hash(h *maphash.Hash, v bson.RawValue) {
	switch v.Type {
	case 0, bson.TypeUndefined:
		h.WriteByte(0)
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		h.WriteByte(1)
		f := toDouble(v)
		switch {
		case math.IsNaN(f):
			f = math.NaN()
		case f == 0:
			f = 0
		}
		maphash.WriteComparable(h, math.Float64bits(f+0))
	case bson.TypeString, bson.TypeSymbol:
		h.WriteByte(2)
		if e.Compare == nil { // a collation takes different strings for equal
			h.Write(v.Value)
		}
	case bson.TypeEmbeddedDocument:
		h.WriteByte(3)
		for key, item := range bson.Raw(v.Value).All() {
			h.WriteString(key)
			e.hash(h, item)
		}
	case bson.TypeArray:
		h.WriteByte(4)
		for item := range bson.Raw(v.Value).Values() {
			e.hash(h, item)
		}
	default:
		h.WriteByte(byte(v.Type))
		h.Write(v.Value)
	}
}

// Groups maps values to numbers: equal values to the same one.
type Groups struct {
	env     *Env
	buckets map[uint64][]int
	keys    []bson.RawValue
}

// NewGroups returns an empty set of groups.
func NewGroups(env *Env) *Groups { return &Groups{env: env, buckets: map[uint64][]int{}} }

// Index returns the number of a value, and whether it is new; numbers count up from 0.
func (g *Groups) Index(v bson.RawValue) (i int, added bool) {
	h := g.env.Hash(v)
	for _, i := range g.buckets[h] {
		if g.env.compare(g.keys[i], v) == 0 {
			return i, false
		}
	}
	g.buckets[h] = append(g.buckets[h], len(g.keys))
	g.keys = append(g.keys, v)
	return len(g.keys) - 1, true
}

// Keys returns the first value of each group, by number.
func (g *Groups) Keys() []bson.RawValue { return g.keys }
