package cluster

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The commands about single chunks: split, moveChunk, mergeChunks, clearJumboFlag. Most of their
// refusals have no code: the server reports them as plain text.

// refusal is an error without a code.
func refusal(format string, args ...any) error { return srverr.New(0, format, args...) }

// wrongChunkArg is the error of an argument of another type.
func wrongChunkArg(name, want string, v bson.RawValue) error {
	return refusal("wrong type for '%s' field, expected %s, found %s", name, want, bsontext.Element(name, v))
}

// keyBound returns a shard key as clients write it in bounds and split points: a document with a
// value for every field of the key, of hashed fields the hash itself. ok is false if one is
// missing, or cannot be part of a shard key.
func keyBound(s *sharding.Metadata, doc bson.Raw) (key []bson.RawValue, ok bool) {
	for _, f := range s.Fields {
		v := doc.Lookup(f.Path) // {"a.b": 1} and {a: {b: 1}} say the same
		if v.Type == 0 {
			v = doc.Lookup(strings.Split(f.Path, ".")...)
		}
		if v.Type == 0 || v.Type == bson.TypeArray {
			return nil, false
		}
		key = append(key, bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)})
	}
	return key, true
}

// rangeText shows a range of keys. The server writes it in two ways.
func rangeText(s *sharding.Metadata, lo, hi []bson.RawValue, comma string) string {
	return "[" + bsontext.Document(s.KeyDocument(lo)) + comma + bsontext.Document(s.KeyDocument(hi)) + ")"
}

// chunkFound returns the chunk of the documents that a query finds, which must say what the whole
// key is.
func chunkFound(r *server.Request, s *sharding.Metadata, find bson.Raw) (int, error) {
	f, err := query.ParseFilter(find, r.FullOptions(bsondoc.MustString(r.Arg()), nil, nil))
	if err != nil {
		return 0, err
	}
	key, ok := s.KeyIn(f)
	if !ok {
		return 0, refusal("no shard key found in chunk query %s", bsontext.Document(find))
	}
	return s.ChunkAt(key), nil
}

// chunkBetween returns the chunk that has exactly these bounds.
func chunkBetween(s *sharding.Metadata, bounds bson.Raw) (int, error) {
	var ends [2]bson.Raw
	for i, name := range []string{"0", "1"} {
		v := bounds.Lookup(name)
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			return 0, srverr.New(10065, "invalid parameter: expected an object (%s)", name)
		}
		ends[i] = v.Value
	}
	lo, ok1 := keyBound(s, ends[0])
	hi, ok2 := keyBound(s, ends[1])
	if !ok1 || !ok2 {
		return 0, refusal("shard key bounds [%s,%s) are not valid for shard key pattern %s", bsontext.Document(ends[0]),
			bsontext.Document(ends[1]), bsontext.Document(s.Key))
	}
	i := s.ChunkAt(lo)
	if sharding.CompareKeys(s.Chunks[i].Min, lo) != 0 || sharding.CompareKeys(s.Max(i), hi) != 0 {
		return 0, refusal("no chunk found with the shard key bounds %s", rangeText(s, lo, hi, ", "))
	}
	return i, nil
}

// splitArgs are the arguments of split, of which exactly one says what to split.
type splitArgs struct{ find, bounds, middle bson.Raw }

func parseSplit(r *server.Request) (a splitArgs, err error) {
	field := func(name, want string, is bson.Type, to *bson.Raw) error {
		v := r.Body.Lookup(name)
		if !v.IsZero() && v.Type != is {
			return wrongChunkArg(name, want, v)
		}
		if !v.IsZero() && !bson.Raw(v.Value).IsEmpty() {
			*to = v.Value
		}
		return nil
	}
	if err := field("find", "object", bson.TypeEmbeddedDocument, &a.find); err != nil {
		return a, err
	}
	if err := field("bounds", "array", bson.TypeArray, &a.bounds); err != nil {
		return a, err
	}
	switch {
	case a.bounds != nil && a.bounds.Lookup("1").IsZero():
		return a, refusal("upper bound not specified")
	case a.find != nil && a.bounds != nil:
		return a, refusal("cannot specify bounds and query at the same time")
	}
	if err := field("middle", "object", bson.TypeEmbeddedDocument, &a.middle); err != nil {
		return a, err
	}
	switch {
	case a.find == nil && a.bounds == nil && a.middle == nil:
		return a, refusal("need to specify find/bounds or middle")
	case a.find != nil && a.middle != nil:
		return a, refusal("cannot specify find and middle together")
	case a.bounds != nil && a.middle != nil:
		return a, refusal("cannot specify bounds and middle together")
	}
	return a, nil
}

// runSplit divides a chunk at a key that is given, or in the middle of its documents.
func runSplit(r *server.Request, dst []byte) ([]byte, error) {
	return dst, changeSharding(r, func(_ *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		a, err := parseSplit(r)
		if err != nil {
			return nil, err
		}
		if a.middle != nil {
			at, ok := keyBound(s, a.middle)
			if !ok {
				return nil, refusal("new split key %s is not valid for shard key pattern %s",
					bsontext.Document(a.middle), bsontext.Document(s.Key))
			}
			n, ok := s.Split(at)
			if !ok {
				i := s.ChunkAt(at)
				return nil, refusal("new split key %s is a boundary key of existing chunk %s",
					bsontext.Document(s.KeyDocument(at)), rangeText(s, s.Chunks[i].Min, s.Max(i), ","))
			}
			return n, nil
		}
		var i int
		if a.find != nil {
			i, err = chunkFound(r, s, a.find)
		} else {
			i, err = chunkBetween(s, a.bounds)
		}
		if err != nil {
			return nil, err
		}
		at := s.Median(c, i, r.Meter())
		if at == nil {
			return nil, srverr.New(srverr.CannotSplit, "Unable to find median in chunk because chunk is indivisible.")
		}
		n, _ := s.Split(at)
		return n, nil
	})
}

// chunkNamed returns the chunk that find or bounds names; moveRange says min.
func chunkNamed(r *server.Request, s *sharding.Metadata) (int, error) {
	if r.Cmd.Name == "moveRange" {
		lo, ok := r.Body.Lookup("min").Document()
		if !ok {
			return 0, srverr.New(srverr.BadValue, "Provide the 'min' bound of the range to move")
		}
		key, ok := keyBound(s, lo)
		if !ok {
			return 0, srverr.New(srverr.BadValue, "The bound %s is not valid for shard key pattern %s",
				bsontext.Document(lo), bsontext.Document(s.Key))
		}
		return s.ChunkAt(key), nil
	}
	object := func(name string) bson.Raw { // everything else counts as not given
		if v := r.Body.Lookup(name); (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) &&
			!bson.Raw(v.Value).IsEmpty() {
			return v.Value
		}
		return nil
	}
	find, bounds := object("find"), object("bounds")
	switch {
	case (find == nil) == (bounds == nil):
		return 0, refusal("need to specify either a find query, or both lower and upper bounds.")
	case find != nil:
		return chunkFound(r, s, find)
	}
	return chunkBetween(s, bounds)
}

func runMoveChunk(r *server.Request, dst []byte) ([]byte, error) {
	name, ok := r.Body.Lookup("to").StringValue()
	if r.Cmd.Name == "moveRange" {
		name, ok = r.Body.Lookup("toShard").StringValue()
	}
	to := r.Node.Data().ShardNumber(name)
	err := changeSharding(r, func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		if !ok && r.Cmd.Name == "moveChunk" {
			return nil, srverr.New(srverr.TypeMismatch, "'to' must be of type String")
		}
		if name == "" && r.Cmd.Name == "moveChunk" {
			return nil, refusal("you have to specify where you want to move the chunk")
		}
		if to < 0 && !r.Version().AtLeast(5, 0) {
			return nil, srverr.New(srverr.ShardNotFound, "moveChunk destination shard does not exist")
		}
		if to < 0 {
			return nil, srverr.New(srverr.ShardNotFound,
				"Could not move chunk in '%s' to shard '%s' because that shard does not exist",
				bsondoc.MustString(r.Arg()), name)
		}
		i, err := chunkNamed(r, s)
		if err != nil || s.Chunks[i].Shard == to {
			return s, err
		}
		wait := r.Body.Lookup("_waitForDelete").AsBool() || r.Body.Lookup("waitForDelete").AsBool()
		return r.Node.Data().Migrate(tx, c, s, i, to, wait)
	})
	if err != nil || r.Cmd.Name == "moveRange" {
		return dst, err
	}
	return bson.AppendInt32(dst, "millis", 0), nil
}

// mergeBounds returns the two ends of what mergeChunks merges.
func mergeBounds(v bson.RawValue) (lo, hi bson.Raw, err error) {
	if !v.IsZero() && v.Type != bson.TypeArray {
		return nil, nil, wrongChunkArg("bounds", "vector array", v)
	}
	var bounds []bson.Raw
	for k, e := range bson.Raw(v.Value).All() {
		if e.Type != bson.TypeEmbeddedDocument {
			return nil, nil, srverr.From(wrongChunkArg(k, "object", e)).Prefix("error parsing element " + k +
				" of field bounds :: caused by :: ")
		}
		bounds = append(bounds, e.Value)
	}
	switch {
	case len(bounds) == 0:
		return nil, nil, refusal("no bounds were specified")
	case len(bounds) != 2:
		return nil, nil, refusal("only a min and max bound may be specified")
	case bounds[0].IsEmpty():
		return nil, nil, refusal("no min key specified")
	case bounds[1].IsEmpty():
		return nil, nil, refusal("no max key specified")
	}
	return bounds[0], bounds[1], nil
}

// runMergeChunks makes one chunk of several that lie next to each other on one shard.
func runMergeChunks(r *server.Request, dst []byte) ([]byte, error) {
	return dst, changeSharding(r, func(_ *store.Tx, _ *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		lo, hi, err := mergeBounds(r.Body.Lookup("bounds"))
		if err != nil {
			return nil, err
		}
		min, ok1 := keyBound(s, lo)
		max, ok2 := keyBound(s, hi)
		if !ok1 || !ok2 {
			return nil, refusal("shard key bounds [%s,%s) are not valid for shard key pattern %s",
				bsontext.Document(lo), bsontext.Document(hi), bsontext.Document(s.Key))
		}
		cannot := func(why string) error {
			return srverr.New(srverr.IllegalOperation, "could not merge chunks, collection %s %s",
				bsondoc.MustString(r.Arg()), why)
		}
		if sharding.CompareKeys(min, max) >= 0 {
			return nil, cannot("range starting at " + bsontext.Document(lo) + " does not end after it, at " +
				bsontext.Document(hi))
		}
		from, to := s.ChunkAt(min), s.ChunkAt(max)-1
		if sharding.CompareKeys(max, s.Pad(nil, sharding.MaxKey)) == 0 {
			to = len(s.Chunks) - 1
		}
		if to < from || sharding.CompareKeys(s.Chunks[from].Min, min) != 0 ||
			sharding.CompareKeys(s.Max(to), max) != 0 {
			return nil, cannot("range starting at " + bsontext.Document(lo) + " and ending at " +
				bsontext.Document(hi) + " does not consist of whole chunks")
		}
		if from == to {
			return nil, cannot("already contains chunk for " + rangeText(s, min, max, ", "))
		}
		for i := from; i <= to; i++ {
			if s.Chunks[i].Shard != s.Chunks[from].Shard {
				return nil, cannot("does not have the chunks in the range " + rangeText(s, min, max, ", ") +
					" on one shard")
			}
		}
		return s.Merge(from, to), nil
	})
}

// jumboSpec are the arguments of clearJumboFlag.
type jumboSpec struct {
	find   bson.Raw
	bounds bson.Raw
	ends   int
}

var clearJumboArgs = &args.Table[jumboSpec]{Name: "clearJumboFlag", Value: args.String[jumboSpec](nil).Must(),
	Fields: map[string]args.Field[jumboSpec]{
		"find": args.Object(func(q *jumboSpec) *bson.Raw { return &q.find }),
		"bounds": args.Objects[jumboSpec](nil).Then(func(q *jumboSpec, v args.Value) error {
			q.bounds, q.ends = v.Value, len(v.Documents())
			return nil
		}),
	}}

// runClearJumbo takes a mark from a chunk which says that it is too large to move. No chunk ever
// gets it here.
func runClearJumbo(r *server.Request, dst []byte) ([]byte, error) {
	var q jumboSpec
	if err := clearJumboArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	find, bounds, ends := q.find, q.bounds, q.ends
	return dst, changeSharding(r, func(_ *store.Tx, _ *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		var err error
		switch {
		case bounds != nil && ends != 2:
			err = srverr.New(srverr.InvalidOptions, "bounds can only have exactly 2 elements")
		case bounds != nil && find != nil:
			err = srverr.New(srverr.InvalidOptions, "cannot specify both bounds and find")
		case bounds == nil && find == nil:
			err = srverr.New(srverr.InvalidOptions, "need to specify find or bounds")
		case find != nil:
			_, err = chunkFound(r, s, find)
		default:
			_, err = chunkBetween(s, bounds)
		}
		return s, err
	})
}
