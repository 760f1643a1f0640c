package server

import (
	"crypto/md5"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// sharding says where the documents of a sharded collection are: its shard key, and which shard has which range of it. All shards
// share one store: a document is on the shard that has the chunk of its key. It is never changed; a split or a move makes a
// new one. It is the Sharding of the store's collection.
type sharding struct {
	key    bson.Raw
	fields []keyField
	unique bool
	epoch  bson.ObjectID
	chunks []chunk // in order; the first one begins at MinKey, each ends where the next one begins
	major  uint32  // of the newest chunk version
}

type keyField struct {
	path   string
	hashed bool
}

// chunk is a range of shard keys on one shard.
type chunk struct {
	min          []bson.RawValue // a value per field of the key
	shard        int
	major, minor uint32
}

var (
	minKey = bson.RawValue{Type: bson.TypeMinKey}
	maxKey = bson.RawValue{Type: bson.TypeMaxKey}
)

// newSharding returns the metadata of a collection that has just been sharded: one chunk on the primary shard, or for an empty
// collection with a hashed key two on every shard.
func newSharding(key bson.Raw, unique, empty bool, primary, shards int) *sharding {
	s := &sharding{key: copyRaw(key), unique: unique, epoch: bson.NewObjectID(), major: 1}
	for k, v := range s.key.All() {
		s.fields = append(s.fields, keyField{k, v.Type == bson.TypeString})
	}
	s.chunks = []chunk{{min: s.pad(nil, minKey), shard: primary, major: 1}}
	if !empty || !s.fields[0].hashed || shards < 2 {
		return s
	}
	n := 2 * shards
	size := math.MaxInt64/int64(n)*2 + 1 // a part of all 64-bit numbers
	s.chunks[0].shard = 0
	for i := 1; i < n; i++ {
		at := int64Value(int64(i-n/2) * size)
		s.chunks = append(s.chunks, chunk{min: s.pad([]bson.RawValue{at}, minKey), shard: i / 2, major: 1, minor: uint32(i)})
	}
	return s
}

// shardingOf returns the metadata of a collection, nil if it is not sharded.
func shardingOf(c *store.Coll) *sharding {
	if c == nil {
		return nil
	}
	s, _ := c.Sharding.(*sharding)
	return s
}

// paths returns the fields of the key.
func (s *sharding) paths() []string {
	var list []string
	for _, f := range s.fields {
		list = append(list, f.path)
	}
	return list
}

// pad fills the rest of a key's values with the lowest or the highest value.
func (s *sharding) pad(values []bson.RawValue, with bson.RawValue) []bson.RawValue {
	values = slices.Clone(values)
	for len(values) < len(s.fields) {
		values = append(values, with)
	}
	return values
}

// keyOf returns the shard key of a document; a field that is missing counts as null.
func (s *sharding) keyOf(doc bson.Raw) ([]bson.RawValue, error) {
	values := make([]bson.RawValue, len(s.fields))
	for i, f := range s.fields {
		v, err := shardKeyValue(doc, f.path)
		if err != nil {
			return nil, err
		}
		if f.hashed {
			v = int64Value(hashValue(v))
		}
		values[i] = v
	}
	return values, nil
}

func shardKeyValue(doc bson.Raw, path string) (bson.RawValue, error) {
	arrays := srverr.New(srverr.ShardKeyNotFound, "Shard key cannot contain array values or array descendants.")
	for {
		name, rest, dotted := strings.Cut(path, ".")
		v := doc.Lookup(name)
		switch {
		case v.Type == bson.TypeArray:
			return v, arrays
		case v.Type == 0 || dotted && v.Type != bson.TypeEmbeddedDocument:
			return bson.RawValue{Type: bson.TypeNull}, nil
		case !dotted:
			return v, nil
		}
		doc, path = v.Value, rest
	}
}

// keyDocument returns values as a document with the key's fields, as chunk bounds are shown.
func (s *sharding) keyDocument(values []bson.RawValue) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	for i, f := range s.fields {
		doc = bson.AppendRawValue(doc, f.path, values[i])
	}
	return bson.EndDocument(doc, at)
}

func compareKeys(a, b []bson.RawValue) int {
	for i := range a {
		if c := query.Compare(a[i], b[i], nil); c != 0 {
			return c
		}
	}
	return 0
}

// chunkAt returns the position of the chunk that has a key.
func (s *sharding) chunkAt(key []bson.RawValue) int {
	return sort.Search(len(s.chunks), func(i int) bool { return compareKeys(s.chunks[i].min, key) > 0 }) - 1
}

// max returns the end of a chunk.
func (s *sharding) max(i int) []bson.RawValue {
	if i+1 < len(s.chunks) {
		return s.chunks[i+1].min
	}
	return s.pad(nil, maxKey)
}

// shardOf returns the shard that a document is on.
func (s *sharding) shardOf(doc bson.Raw) int {
	key, err := s.keyOf(doc)
	if err != nil {
		return s.chunks[0].shard // cannot be: such documents are refused
	}
	return s.chunks[s.chunkAt(key)].shard
}

// shards returns the shards that have chunks, in order.
func (s *sharding) shards() []int {
	var list []int
	for _, c := range s.chunks {
		list = append(list, c.shard)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// maxTargets bounds how many ranges of keys a query is taken apart into; one with more goes to all shards.
const maxTargets = 1000

// target returns the shards that may have documents which match a filter, in order; exact tells that the filter says what the
// whole key is.
func (s *sharding) target(f *query.Filter, simple bool) (shards []int, exact bool) {
	type span struct {
		lo, hi []bson.RawValue
		open   bool // the end is not part of it
		point  bool
	}
	spans := []span{{point: true}}
	exact = true
	for _, field := range s.fields {
		intervals, ok := f.Bounds(field.path, false, simple)
		if field.hashed {
			intervals, ok = hashPoints(intervals, ok)
		}
		if !ok || len(spans)*len(intervals) > maxTargets {
			exact = false
			break
		}
		var next []span
		points := true
		for _, p := range spans {
			for _, iv := range intervals {
				n := span{slices.Concat(p.lo, []bson.RawValue{iv.Lo}), slices.Concat(p.hi, []bson.RawValue{iv.Hi}), iv.HiOpen, iv.IsPoint()}
				points = points && n.point
				next = append(next, n)
			}
		}
		spans = next
		if !points {
			exact = false
			break
		}
	}
	for _, p := range spans {
		end := maxKey
		if p.open {
			end = minKey
		}
		hi := s.pad(p.hi, end)
		last := s.chunkAt(hi)
		if p.open && last > 0 && compareKeys(s.chunks[last].min, hi) == 0 {
			last--
		}
		for i := s.chunkAt(s.pad(p.lo, minKey)); i <= last; i++ {
			shards = append(shards, s.chunks[i].shard)
		}
	}
	slices.Sort(shards)
	return slices.Compact(shards), exact && len(spans) == 1
}

// hashPoints turns single values into those of their hashes; a range of values is all hashes.
func hashPoints(list []query.Interval, ok bool) ([]query.Interval, bool) {
	if !ok {
		return nil, false
	}
	var points []query.Interval
	for _, iv := range list {
		if !iv.IsPoint() {
			return nil, false
		}
		h := int64Value(hashValue(iv.Lo))
		points = append(points, query.Interval{Lo: h, Hi: h})
	}
	return points, true
}

// split returns the metadata with a chunk divided at a key.
func (s *sharding) split(at []bson.RawValue) (*sharding, bool) {
	i := s.chunkAt(at)
	if compareKeys(s.chunks[i].min, at) == 0 {
		return s, false
	}
	n := *s
	n.chunks = slices.Insert(slices.Clone(s.chunks), i+1, s.chunks[i])
	n.chunks[i+1].min = at
	for j := i; j <= i+1; j++ {
		n.chunks[j].major, n.chunks[j].minor = s.major, s.chunks[i].minor+uint32(j-i)+1
	}
	return &n, true
}

// move returns the metadata with a chunk on another shard.
func (s *sharding) move(i, to int) *sharding {
	n := *s
	n.major++
	n.chunks = slices.Clone(s.chunks)
	n.chunks[i].shard, n.chunks[i].major, n.chunks[i].minor = to, n.major, 0
	return &n
}

// merge returns the metadata with all chunks from one to another as a single one; they must be on one shard.
func (s *sharding) merge(from, to int) *sharding {
	n := *s
	n.chunks = slices.Delete(slices.Clone(s.chunks), from+1, to+1)
	n.chunks[from].major, n.chunks[from].minor = s.major, s.chunks[to].minor+1
	return &n
}

// canonicalHashTypes are the numbers that stand for a value's type in its hash; numbers have one for all.
var canonicalHashTypes = map[bson.Type]int32{
	bson.TypeMinKey: -1, bson.TypeMaxKey: 127, bson.TypeUndefined: 0, bson.TypeNull: 5, bson.TypeDouble: 10, bson.TypeInt32: 10,
	bson.TypeInt64: 10, bson.TypeDecimal128: 10, bson.TypeString: 15, bson.TypeSymbol: 15, bson.TypeEmbeddedDocument: 20,
	bson.TypeArray: 25, bson.TypeBinary: 30, bson.TypeObjectID: 35, bson.TypeBoolean: 40, bson.TypeDateTime: 45,
	bson.TypeTimestamp: 47, bson.TypeRegex: 50, bson.TypeDBPointer: 55, bson.TypeJavaScript: 60, bson.TypeCodeWithScope: 65,
}

// hashValue returns the hash that hashed indexes and hashed shard keys order values by.
func hashValue(v bson.RawValue) int64 {
	sum := md5.Sum(appendHashInput([]byte{0, 0, 0, 0}, nil, v))
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

func appendHashInput(dst []byte, name *string, v bson.RawValue) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(canonicalHashTypes[v.Type]))
	if name != nil {
		dst = append(append(dst, *name...), 0)
	}
	switch {
	case v.IsNumber():
		n, _ := number(v) // without its fraction
		return binary.LittleEndian.AppendUint64(dst, uint64(n))
	case v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray:
		for k, e := range bson.Raw(v.Value).All() {
			dst = appendHashInput(dst, &k, e)
		}
		return dst
	}
	return append(dst, v.Value...)
}
