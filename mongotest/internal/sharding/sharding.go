// Package sharding says where the documents of sharded collections are: shard keys, chunks, and
// which shards a query needs.
package sharding

import (
	"math"
	"slices"
	"sort"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Metadata says where the documents of a sharded collection are: its shard key, and which shard has
// which range of it. A document belongs to the shard that has the chunk of its key; others may have
// one, too, that a migration has left behind. It is never changed; a split or a move makes a new
// one. It is the Sharding of the collection in the stores of all shards that have it.
type Metadata struct {
	Key    bson.Raw
	Fields []keyField
	Unique bool
	Epoch  bson.ObjectID
	Chunks []chunk // in order; the first one begins at MinKey, each ends where the next one begins
	Major  uint32  // of the newest chunk version
	// Balancing is what configureCollectionBalancing has set.
	Balancing Balancing
}

// Balancing is what somebody wants of the balancer for a collection. The zero value wants nothing
// else than what it does anyway.
type Balancing struct {
	ChunkSize int32 // in MiB; 0: DefaultChunkSize
	Off       bool  // no chunk is moved
	NoMerging bool  // no chunks are merged of themselves
}

// DefaultChunkSize is how large the chunks of a collection may be, in MiB.
const DefaultChunkSize = 128

// Size returns how large chunks may be, in MiB.
func (b Balancing) Size() int32 {
	if b.ChunkSize == 0 {
		return DefaultChunkSize
	}
	return b.ChunkSize
}

// Balanced returns the metadata with other wishes for the balancer.
func (s *Metadata) Balanced(b Balancing) *Metadata {
	n := s.copy()
	n.Balancing = b
	return n
}

type keyField struct {
	Path   string
	hashed bool
}

// chunk is a range of shard keys on one shard.
type chunk struct {
	Min          []bson.RawValue // a value per field of the key
	Shard        int
	Major, Minor uint32
}

var (
	MinKey = bson.RawValue{Type: bson.TypeMinKey}
	MaxKey = bson.RawValue{Type: bson.TypeMaxKey}
)

// New returns the metadata of a collection that has just been sharded: one chunk on the primary
// shard, or for an empty collection with a hashed key as many as wanted, two on every shard if that
// is 0.
func New(key bson.Raw, unique, empty bool, primary, shards, wanted int) *Metadata {
	s := &Metadata{Key: bsondoc.Copy(key), Unique: unique, Epoch: bson.NewObjectID(), Major: 1}
	for k, v := range s.Key.All() {
		s.Fields = append(s.Fields, keyField{k, v.Type == bson.TypeString})
	}
	s.Chunks = []chunk{{Min: s.Pad(nil, MinKey), Shard: primary, Major: 1}}
	if !empty || !s.Fields[0].hashed || shards < 2 && wanted == 0 {
		return s
	}
	if wanted == 0 {
		wanted = 2 * shards
	}
	half := math.MaxInt64 / int64(wanted) // of a part of all 64-bit numbers
	at := -half * int64(wanted-2)
	s.Chunks[0].Shard = 0
	each := max(wanted/shards, 1)
	for i := 1; i < wanted; i++ {
		s.Chunks = append(s.Chunks, chunk{Min: s.Pad([]bson.RawValue{bsondoc.Int64Value(at)}, MinKey),
			Shard: i / each % shards, Major: 1, Minor: uint32(i)})
		at += 2 * half
	}
	return s
}

// Of returns the metadata of a collection, nil if it is not sharded: a shard does not look at it
// either for clients that come past the mongos.
func Of(c *store.Coll) *Metadata {
	if c == nil || !c.Sharded() {
		return nil
	}
	s, _ := c.Sharding.(*Metadata)
	return s
}

// Moved reports whether documents may belong to other shards than they did by an earlier metadata
// of the collection.
func (s *Metadata) Moved(since any) bool {
	old, ok := since.(*Metadata)
	return !ok || !Same(old, s) || old.Major != s.Major
}

// Same reports whether two metadata are versions of one: a collection that was sharded anew, or got
// another key, has another. nil is that of a collection that is not sharded.
func Same(a, b *Metadata) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Epoch == b.Epoch
}

// Renamed returns the metadata with other names for the fields of its key.
func (s *Metadata) Renamed(name func(path string) string) *Metadata {
	out := *s
	out.Fields = slices.Clone(s.Fields)
	out.Key = bsondoc.Build(func(b *bsondoc.Builder) {
		for k, v := range s.Key.All() {
			b.Value(name(k), v.Type, v.Value)
		}
	})
	for i := range out.Fields {
		out.Fields[i].Path = name(out.Fields[i].Path)
	}
	return &out
}

// ShardVersion returns the version of the newest chunk of a shard, (0, 0) if it has none: what a
// mongos and the shard compare to find out whether they know the same chunks of the shard. Splits
// and merges raise the minor version only, which does not matter to that.
func (s *Metadata) ShardVersion(shard int) (major, minor uint32) {
	for _, c := range s.Chunks {
		if c.Shard == shard && (c.Major > major || c.Major == major && c.Minor > minor) {
			major, minor = c.Major, c.Minor
		}
	}
	return major, minor
}

// Accepts reports whether a shard with this metadata takes a command from a mongos with another
// one: no chunk of the shard has gone or come since.
func (s *Metadata) Accepts(sent *Metadata, shard int) bool {
	if s == sent {
		return true
	}
	if s == nil || !Same(s, sent) {
		return false
	}
	want, _ := s.ShardVersion(shard)
	got, _ := sent.ShardVersion(shard)
	return want == got
}

// Paths returns the fields of the key.
func (s *Metadata) Paths() []string {
	var list []string
	for _, f := range s.Fields {
		list = append(list, f.Path)
	}
	return list
}

// Pad fills the rest of a key's values with the lowest or the highest value.
func (s *Metadata) Pad(values []bson.RawValue, with bson.RawValue) []bson.RawValue {
	values = slices.Clone(values)
	for len(values) < len(s.Fields) {
		values = append(values, with)
	}
	return values
}

// KeyOf returns the shard key of a document; a field that is missing counts as null.
func (s *Metadata) KeyOf(doc bson.Raw) ([]bson.RawValue, error) {
	values := make([]bson.RawValue, len(s.Fields))
	for i, f := range s.Fields {
		v, err := shardKeyValue(doc, f.Path)
		if err != nil {
			return nil, err
		}
		if f.hashed {
			v = bsondoc.Int64Value(expr.HashKey(v))
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

// KeyDocument returns values as a document with the key's fields, as chunk bounds are shown.
func (s *Metadata) KeyDocument(values []bson.RawValue) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	for i, f := range s.Fields {
		doc = bson.AppendRawValue(doc, f.Path, values[i])
	}
	return bson.EndDocument(doc, at)
}

// CompareKeys compares two shard keys field by field.
func CompareKeys(a, b []bson.RawValue) int {
	for i := range a {
		if c := query.Compare(a[i], b[i], nil); c != 0 {
			return c
		}
	}
	return 0
}

// ChunkAt returns the position of the chunk that has a key.
func (s *Metadata) ChunkAt(key []bson.RawValue) int {
	return sort.Search(len(s.Chunks), func(i int) bool { return CompareKeys(s.Chunks[i].Min, key) > 0 }) - 1
}

// Max returns the end of a chunk.
func (s *Metadata) Max(i int) []bson.RawValue {
	if i+1 < len(s.Chunks) {
		return s.Chunks[i+1].Min
	}
	return s.Pad(nil, MaxKey)
}

// ShardOf returns the shard that a document is on.
func (s *Metadata) ShardOf(doc bson.Raw) int {
	key, err := s.KeyOf(doc)
	if err != nil {
		return s.Chunks[0].Shard // cannot be: such documents are refused
	}
	return s.Chunks[s.ChunkAt(key)].Shard
}

// Shards returns the shards that have chunks, in order.
func (s *Metadata) Shards() []int {
	var list []int
	for _, c := range s.Chunks {
		list = append(list, c.Shard)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// maxTargets bounds how many ranges of keys a query is taken apart into; one with more goes to all
// shards.
const maxTargets = 1000

// KeyIn returns the shard key that a filter says as equality conditions; ok is false if it leaves
// one of the key's fields open.
func (s *Metadata) KeyIn(f *query.Filter) (key []bson.RawValue, ok bool) {
	if key, ok = f.Exact(s.Paths()); !ok {
		return nil, false
	}
	for i, field := range s.Fields {
		if field.hashed {
			key[i] = bsondoc.Int64Value(expr.HashKey(key[i]))
		}
	}
	return key, true
}

// Place returns the one shard that a key belongs on, for a command that compares by some collation.
func (s *Metadata) Place(ns string, key []bson.RawValue, simple bool) (int, error) {
	for i, v := range key {
		switch v.Type {
		case bson.TypeString, bson.TypeEmbeddedDocument, bson.TypeArray:
			if !simple {
				return 0, srverr.New(srverr.ShardKeyNotFound,
					"Cannot target single shard due to collation of key %s for namespace %s", s.Fields[i].Path, ns)
			}
		}
	}
	if CompareKeys(key, s.Pad(nil, MaxKey)) >= 0 { // no chunk includes its end
		return 0, srverr.New(srverr.ShardKeyNotFound, "Cannot target single shard using key %s for namespace %s",
			bsontext.Document(s.KeyDocument(key)), ns)
	}
	return s.Chunks[s.ChunkAt(key)].Shard, nil
}

// PlaceOf returns the shard that a new document belongs on.
func (s *Metadata) PlaceOf(ns string, doc bson.Raw) (int, error) {
	key, err := s.KeyOf(doc)
	if err != nil {
		return 0, err
	}
	return s.Place(ns, key, true)
}

// ArrayAt returns the first field of the key that is or lies in an array; ok is false if there is
// none, and the document can have a place.
func (s *Metadata) ArrayAt(doc bson.Raw) (path string, ok bool) {
	for _, f := range s.Fields {
		if _, err := shardKeyValue(doc, f.Path); err != nil {
			return f.Path, true
		}
	}
	return "", false
}

// Target returns the shards that may have documents which match a filter, in order.
func (s *Metadata) Target(f *query.Filter, simple bool) (shards []int) {
	type span struct {
		lo, hi []bson.RawValue
		open   bool // the end is not part of it
		point  bool
	}
	spans := []span{{point: true}}
	for _, field := range s.Fields {
		intervals, ok := f.Bounds(field.Path, false, simple)
		if field.hashed {
			intervals, ok = hashPoints(intervals, ok)
		}
		if !ok || len(spans)*len(intervals) > maxTargets {
			break
		}
		var next []span
		points := true
		for _, p := range spans {
			for _, iv := range intervals {
				n := span{slices.Concat(p.lo, []bson.RawValue{iv.Lo}), slices.Concat(p.hi, []bson.RawValue{iv.Hi}),
					iv.HiOpen, iv.IsPoint()}
				points = points && n.point
				next = append(next, n)
			}
		}
		spans = next
		if !points {
			break
		}
	}
	for _, p := range spans {
		end := MaxKey
		if p.open {
			end = MinKey
		}
		hi := s.Pad(p.hi, end)
		last := s.ChunkAt(hi)
		if p.open && last > 0 && CompareKeys(s.Chunks[last].Min, hi) == 0 {
			last--
		}
		for i := s.ChunkAt(s.Pad(p.lo, MinKey)); i <= last; i++ {
			shards = append(shards, s.Chunks[i].Shard)
		}
	}
	slices.Sort(shards)
	return slices.Compact(shards)
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
		h := bsondoc.Int64Value(expr.HashKey(iv.Lo))
		points = append(points, query.Interval{Lo: h, Hi: h})
	}
	return points, true
}

// Version returns the version of the newest chunk, which is the collection's.
func (s *Metadata) Version() (major, minor uint32) {
	for _, c := range s.Chunks {
		if c.Major > major || c.Major == major && c.Minor > minor {
			major, minor = c.Major, c.Minor
		}
	}
	return major, minor
}

// Split returns the metadata with a chunk divided at a key; ok is false if it is a bound of the
// chunk.
func (s *Metadata) Split(at []bson.RawValue) (n *Metadata, ok bool) {
	i := s.ChunkAt(at)
	if CompareKeys(s.Chunks[i].Min, at) == 0 || CompareKeys(s.Max(i), at) == 0 {
		return s, false
	}
	n = s.copy()
	n.Chunks = slices.Insert(n.Chunks, i+1, n.Chunks[i])
	n.Chunks[i+1].Min = at
	major, minor := s.Version()
	for j := i; j <= i+1; j++ {
		minor++
		n.Chunks[j].Major, n.Chunks[j].Minor = major, minor
	}
	return n, true
}

func (s *Metadata) copy() *Metadata {
	n := *s
	n.Chunks = slices.Clone(s.Chunks)
	return &n
}

// Move returns the metadata with a chunk on another shard. Another chunk of the old shard gets a
// new version, too, if there is one, so that both shards know that something has moved.
func (s *Metadata) Move(i, to int) *Metadata {
	n := s.copy()
	n.Major++
	from := n.Chunks[i].Shard
	n.Chunks[i].Shard, n.Chunks[i].Major, n.Chunks[i].Minor = to, n.Major, 0
	if j := slices.IndexFunc(n.Chunks, func(c chunk) bool { return c.Shard == from }); j >= 0 {
		n.Chunks[j].Major, n.Chunks[j].Minor = n.Major, 1
	}
	return n
}

// Merge returns the metadata with all chunks from one to another as a single one; they must be on
// one shard.
func (s *Metadata) Merge(from, to int) *Metadata {
	n := s.copy()
	n.Chunks = slices.Delete(n.Chunks, from+1, to+1)
	major, minor := s.Version()
	n.Chunks[from].Major, n.Chunks[from].Minor = major, minor+1
	return n
}

// Range returns a function that reports whether a document's key lies in a chunk.
func (s *Metadata) Range(chunk int) func(doc bson.Raw) bool {
	lo, hi := s.Chunks[chunk].Min, s.Max(chunk)
	last := chunk == len(s.Chunks)-1
	return func(doc bson.Raw) bool {
		key, err := s.KeyOf(doc)
		return err == nil && CompareKeys(lo, key) <= 0 && (last || CompareKeys(key, hi) < 0)
	}
}

// Divided returns the metadata of a collection that is divided at keys, which are in order and none
// of which is the lowest: each range is on a shard of its own.
func (s *Metadata) Divided(at [][]bson.RawValue) *Metadata {
	n := s.copy()
	n.Chunks = []chunk{{Min: s.Pad(nil, MinKey)}}
	for i, key := range at {
		n.Chunks = append(n.Chunks, chunk{Min: key, Shard: i + 1})
	}
	return n
}

// Hashed reports whether a field of the key is hashed; first, whether it is the first one.
func (s *Metadata) Hashed() (some, first bool) {
	for _, f := range s.Fields {
		some = some || f.hashed
	}
	return some, s.Fields[0].hashed
}

// Reach is how far a filter goes, whatever the chunks are.
type Reach int

// The reaches.
const (
	OneKey    Reach = iota // it names one shard key: one shard has it
	SomeKeys               // it bounds the shard key: that may be several shards
	AllShards              // it leaves the shard key open
)

// Reach returns how far a filter goes.
func (s *Metadata) Reach(f *query.Filter, simple bool) Reach {
	if _, ok := s.KeyIn(f); ok && simple {
		return OneKey
	}
	intervals, ok := f.Bounds(s.Fields[0].Path, false, simple)
	if s.Fields[0].hashed {
		intervals, ok = hashPoints(intervals, ok)
	}
	if !ok || len(intervals) == 1 && intervals[0].Lo.Type == bson.TypeMinKey &&
		intervals[0].Hi.Type == bson.TypeMaxKey {
		return AllShards
	}
	return SomeKeys
}

// UniqueInShards reports whether every shard can see to it alone that an index is unique: it begins
// with the fields of the shard key, in any order of values, or is that of _id.
func UniqueInShards(key, pattern bson.Raw) bool {
	names := func(doc bson.Raw) (list []string) {
		for k := range doc.All() {
			list = append(list, k)
		}
		return list
	}
	want, have := names(key), names(pattern)
	if len(have) == 1 && have[0] == "_id" {
		return true
	}
	return len(have) >= len(want) && slices.Equal(have[:len(want)], want)
}

// Median returns the key in the middle of a chunk's documents, nil if there is none to split at.
func (s *Metadata) Median(c *store.Coll, i int, steps *work.Meter) []bson.RawValue {
	var keys [][]bson.RawValue
	scan := store.NewScan(c, false, nil)
	for {
		steps.Do(1)
		_, doc, ok := scan.Next()
		if !ok {
			break
		}
		if key, err := s.KeyOf(doc); err == nil && s.ChunkAt(key) == i {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, work.Counting(steps, CompareKeys))
	for _, k := range keys[len(keys)/2:] {
		if CompareKeys(k, s.Chunks[i].Min) > 0 {
			return k
		}
	}
	return nil
}

// CheckDocuments refuses to shard a collection with a document that cannot have a place.
func (s *Metadata) CheckDocuments(c *store.Coll, steps *work.Meter) error {
	scan := store.NewScan(c, false, nil)
	for {
		steps.Do(1)
		_, doc, ok := scan.Next()
		if !ok {
			return nil
		}
		if _, err := s.KeyOf(doc); err != nil {
			return err
		}
	}
}
