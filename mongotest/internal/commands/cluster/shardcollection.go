package cluster

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// shardCollection, and what refineCollectionShardKey and reshardCollection share with it.

// keyArg reads the shard key that a command is given.
func keyArg(command string, key bson.RawValue) (bson.Raw, error) {
	switch {
	case key.IsZero():
		return nil, args.MissingField(command + ".key")
	case key.Type == bson.TypeNull:
		return nil, srverr.New(srverr.BadValue, "Shard key is empty")
	case key.Type != bson.TypeEmbeddedDocument:
		return nil, args.WrongType(command+".key", key.Type, "object")
	}
	return key.Value, nil
}

// shardSpec is how a collection is to be sharded.
type shardSpec struct {
	key       bson.Raw
	unique    bool
	presplit  bool  // presplitHashedZones
	chunks    int64 // that it begins with; 0: as many as the server likes
	collation bson.Raw
}

var shardCollectionArgs = &args.Table[shardSpec]{Name: "ShardCollection", Lax: true, Required: []string{"key"},
	Fields: map[string]args.Field[shardSpec]{
		"key": args.Any[shardSpec](nil).Then(func(spec *shardSpec, v args.Value) (err error) {
			spec.key, err = keyArg("ShardCollection", v.RawValue)
			return err
		}),
		"unique":              args.Bool(func(spec *shardSpec) *bool { return &spec.unique }),
		"presplitHashedZones": args.Bool(func(spec *shardSpec) *bool { return &spec.presplit }),
		"numInitialChunks":    args.Number(func(spec *shardSpec) *int64 { return &spec.chunks }),
		"collation":           args.Object(func(spec *shardSpec) *bson.Raw { return &spec.collation }),
	}}

// check checks what does not depend on the collection.
func (spec *shardSpec) check(r *server.Request, db, ns string) error {
	if err := checkShardKey(spec.key, spec.unique); err != nil {
		return err
	}
	if strings.HasPrefix(ns[len(db)+1:], "system.") {
		return srverr.New(srverr.IllegalOperation, "can't shard system namespaces")
	}
	const perShard, total = 8192, 1000 * 1000
	if most := int64(r.Node.Data().Shards()) * perShard; spec.chunks < 0 || spec.chunks > most || spec.chunks > total {
		return srverr.New(
			srverr.InvalidOptions, "numInitialChunks cannot be more than either: %d, %d * number of shards; or %d",
			most, perShard, total)
	}
	return nil
}

// checkColl checks what the collection has to be like; c may be nil.
func (spec *shardSpec) checkColl(version release.Version, c *store.Coll) error {
	switch {
	case c == nil:
	case c.View:
		return srverr.New(srverr.CommandNotSupportedOnView, "Views cannot be sharded.")
	case c.Capped:
		return srverr.New(srverr.InvalidOptions, "can't shard a capped collection")
	}
	simple := false
	if spec.collation != nil {
		if !version.AtLeast(5, 0) || spec.collation.IsEmpty() {
			if _, err := args.ExtractString(spec.collation, "locale"); err != nil {
				return err
			}
		}
		collation, err := query.ParseCollation(version, spec.collation)
		if err != nil {
			return err
		}
		if simple = collation == nil; !simple {
			return srverr.New(
				srverr.BadValue, "The collation for shardCollection must be {locale: 'simple'}, but found: %s",
				bsontext.Document(spec.collation))
		}
	}
	if c != nil && c.Collation != nil && !simple {
		return srverr.New(
			srverr.BadValue, "Collection has default collation: %s. Must specify collation {locale: 'simple'}",
			bsontext.Document(c.Collation.Spec()))
	}
	return nil
}

func runShardCollection(r *server.Request, dst []byte) ([]byte, error) {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	var spec shardSpec
	if err := shardCollectionArgs.ParseCommand(r, &spec); err != nil {
		return dst, err
	}
	if db == "config" && ns != "config.system.sessions" {
		return dst, srverr.New(srverr.IllegalOperation, "only special collections in the config db may be sharded")
	}
	if r.Version().AtLeast(6, 0) {
		r.Node.Data().AddDatabase(db) // enableSharding is not needed any more
	} else if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	if err := spec.check(r, db, ns); err != nil {
		return dst, err
	}
	key, unique := spec.key, spec.unique
	var uuid [16]byte
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if err := spec.checkColl(r.Version(), c); err != nil {
			return err
		}
		if s := sharding.Of(c); s != nil {
			uuid = c.UUID
			if !index.SamePattern(s.Key, key) || s.Unique != unique {
				return srverr.New(srverr.AlreadyInitialized,
					"sharding already enabled for collection %s with options { _id: \"%s\" }", ns, ns)
			}
			return nil
		}
		c, err := prepareShard(r, tx, c, ns, key, unique)
		if err != nil {
			return err
		}
		uuid = c.UUID
		empty := c.Count() == 0
		if spec.chunks != 0 && !(empty && hashedField(key)) {
			return srverr.New(srverr.InvalidOptions,
				"numInitialChunks is only supported when the collection is empty and has a hashed field in the shard key pattern")
		}
		if spec.presplit && !(empty && hashedField(key) && r.Node.Data().Zones().Divide(ns)) {
			return srverr.New(
				31387, "'presplitHashedZones' is only supported when the collection is empty, zones are set up and shard key pattern has a hashed field")
		}
		s := sharding.New(key, unique, empty, c.Shard(), r.Node.Data().Shards(), int(max(spec.chunks, 0)))
		if err := s.CheckDocuments(c, r.Meter()); err != nil {
			return err
		}
		if err := tx.Exclude(c); err != nil {
			return err
		}
		tx.SetSharding(c, s, s.Paths(), bsondoc.Build(func(d *bsondoc.Builder) {
			d.Doc("shardKey", s.Key).Flag("unique", unique)
			d.B = bson.AppendInt64(d.B, "numInitialChunks", spec.chunks)
			d.Flag("presplitHashedZones", spec.presplit)
		}))
		return nil
	})
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "collectionsharded", ns)
	if r.Version().AtLeast(6, 0) {
		return dst, nil
	}
	return bson.AppendBinary(dst, "collectionUUID", bson.BinaryUUID, uuid[:]), nil
}

// hashedField reports whether a shard key has a hashed field.
func hashedField(key bson.Raw) bool {
	for v := range key.Values() {
		if v.Type == bson.TypeString {
			return true
		}
	}
	return false
}

// prepareShard makes sure that a collection that is about to be sharded exists and has an index for
// the key.
func prepareShard(r *server.Request, tx *store.Tx, c *store.Coll, ns string, key bson.Raw,
	unique bool) (*store.Coll, error) {
	if c == nil {
		var err error
		if c, err = r.CreateImplicitly(tx, ns); err != nil {
			return nil, err
		}
	}
	has := false
	for i := range c.Indexes() {
		x := &c.Indexes()[i]
		if x.Unique && !sharding.UniqueInShards(key, x.Pattern) {
			return nil, srverr.New(srverr.InvalidOptions,
				"can't shard collection '%s' with unique index on %s and proposed shard key %s. Uniqueness can't be maintained unless shard key is a prefix",
				ns, bsontext.Document(x.Pattern), bsontext.Document(key))
		}
		if !usableIndex(key, x) {
			continue
		}
		if has = true; unique && index.SamePattern(key, x.Pattern) && !x.Unique && !x.IsID {
			return nil, srverr.New(srverr.InvalidOptions,
				"can't shard collection %s, %s index not unique, and unique index explicitly specified", ns,
				bsontext.Document(key))
		}
		if x.Multikey {
			return nil, srverr.New(srverr.OperationFailed, "couldn't find valid index for shard key")
		}
	}
	switch {
	case has:
		return c, nil
	case c.Count() > 0:
		return nil, srverr.New(srverr.InvalidOptions,
			"Please create an index that starts with the proposed shard key before sharding the collection")
	}
	spec := bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("key", key).Str("name", shardIndexName(key))
		if unique {
			d.Flag("unique", true)
		}
	})
	parsed, err := r.ParseIndex(spec, false)
	if err != nil {
		return nil, err
	}
	info, err := r.FinishIndex(parsed, c)
	if err != nil {
		return nil, err
	}
	return tx.CreateIndex(c, info)
}

// usableIndex reports whether an index finds the documents of a range of shard keys: it begins with
// the key, has all documents, and orders strings by their bytes.
func usableIndex(key bson.Raw, x *store.Index) bool {
	return index.IsPrefix(key, x.Pattern) && x.Partial == nil && !x.Sparse && x.Collation == nil && x.Wild == nil
}

// shardIndexName returns the name that an index with this key gets by default. All fields that are
// not hashed count as 1.
func shardIndexName(key bson.Raw) string {
	var parts []string
	for k, v := range key.All() {
		s, ok := v.StringValue()
		if !ok {
			s = "1"
		}
		parts = append(parts, k, s)
	}
	return strings.Join(parts, "_")
}

// checkShardKey checks the pattern of a shard key.
func checkShardKey(key bson.Raw, unique bool) error {
	if key.IsEmpty() {
		return srverr.New(srverr.BadValue, "Shard key is empty")
	}
	hashed := 0
	for k, v := range key.All() {
		switch {
		case k == "":
			return srverr.New(srverr.BadValue, "Field %s is empty", k)
		case slices.Contains(strings.Split(k, "."), ""):
			return srverr.New(srverr.BadValue, "Field %s contains empty parts", k)
		}
		if s, ok := v.StringValue(); ok && s == "hashed" && hashed == 0 {
			hashed++
			continue
		}
		if n, ok := args.NumberOf(v); !ok || n != 1 {
			return srverr.New(
				srverr.BadValue, "Shard key %s can contain at most one 'hashed' field, and/or multiple numerical fields set to a value of 1. Failed to parse field %s", bsontext.Document(key), k)
		}
	}
	if hashed > 0 && unique {
		return srverr.New(
			srverr.InvalidOptions, "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed field by declaring an additional (non-hashed) unique index on the field.")
	}
	return nil
}
