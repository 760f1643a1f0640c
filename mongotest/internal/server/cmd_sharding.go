package server

import (
	"errors"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	for _, c := range []*Command{
		{Name: "isdbgrid", Run: runIsDBGrid},
		{Name: "listShards", AdminOnly: true, Run: runListShards},
		{Name: "enableSharding", AdminOnly: true, WriteConcern: true, Run: runEnableSharding},
		{Name: "shardCollection", AdminOnly: true, WriteConcern: true, Run: runShardCollection},
		{Name: "refineCollectionShardKey", AdminOnly: true, Run: runRefine},
		{Name: "reshardCollection", AdminOnly: true, Run: runReshard},
		{Name: "unshardCollection", AdminOnly: true, Run: runUnshard},
		{Name: "addShard", AdminOnly: true, WriteConcern: true, Run: runAddShard},
		{Name: "removeShard", AdminOnly: true, WriteConcern: true, Run: runRemoveShard},
		{Name: "split", AdminOnly: true, Run: runSplit},
		{Name: "moveChunk", AdminOnly: true, Run: runMoveChunk},
		{Name: "moveRange", AdminOnly: true, Run: runMoveChunk},
		{Name: "mergeChunks", AdminOnly: true, Run: runMergeChunks},
		{Name: "movePrimary", AdminOnly: true, WriteConcern: true, Run: runMovePrimary},
		{Name: "addShardToZone", AdminOnly: true, WriteConcern: true, Run: runZone},
		{Name: "removeShardFromZone", AdminOnly: true, WriteConcern: true, Run: runZone},
		{Name: "balancerStatus", AdminOnly: true, Run: runBalancerStatus},
		{Name: "balancerStart", AdminOnly: true, Run: runBalancerSwitch},
		{Name: "balancerStop", AdminOnly: true, Run: runBalancerSwitch},
	} {
		c.Where, c.Roles = Anywhere, []Role{Mongos}
		if c.Name == "moveChunk" || c.Name == "mergeChunks" { // shards have them, too
			run := c.Run
			c.Roles, c.Run = nil, func(r *Request, dst []byte) ([]byte, error) {
				if r.Node.role != Mongos {
					return OnlyOnShards(r, dst)
				}
				return run(r, dst)
			}
		}
		Register(c)
	}
	Register(&Command{Name: "flushRouterConfig", AdminOnly: true, Where: Anywhere, Run: runFlushRouter})
	Register(&Command{Name: "getShardMap", AdminOnly: true, Where: Anywhere, Run: runShardMap})
	Register(&Command{Name: "getShardVersion", AdminOnly: true, Where: Anywhere, Run: runShardVersion})
}

func runIsDBGrid(r *Request, dst []byte) ([]byte, error) {
	dst = bson.AppendInt32(dst, "isdbgrid", 1)
	return bson.AppendString(dst, "hostname", r.Node.addr), nil
}

func runListShards(r *Request, dst []byte) ([]byte, error) {
	at, dst := bson.BeginArrayElement(dst, "shards")
	for i := range r.Node.data.shards {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendString(d, "_id", shardName(i))
		d = bson.AppendString(d, "host", r.Node.data.shardHost(i))
		d = bson.AppendInt32(d, "state", 1)
		if r.Node.cfg.Version.Has(release.Reply, "listShards.topologyTime") {
			d = bson.AppendTimestamp(d, "topologyTime", r.Node.data.born)
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}

func runEnableSharding(r *Request, dst []byte) ([]byte, error) {
	db, ok := r.Arg().StringValue()
	if !ok || !namespace.ValidDB(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "invalid db name specified: %s", db)
	}
	d := r.Node.data
	shard := r.Body.Lookup("primaryShard")
	if !shard.IsZero() && shard.Type != bson.TypeString && !r.Node.cfg.Version.AtLeast(5, 0) {
		return dst, srverr.New(13111, "wrong type for field (primaryShard) %s != string", bsontext.TypeName(shard.Type))
	}
	at, known := d.primaryShard(db)
	if name, ok := shard.StringValue(); ok && known && name != shardName(at) {
		return dst, srverr.New(srverr.NamespaceExists, "database already created on a primary which is different from: %s", name)
	}
	d.AddDatabase(db)
	if name, ok := r.Body.Lookup("primaryShard").StringValue(); ok {
		i := d.ShardNumber(name)
		if i < 0 {
			return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
		}
		if !known {
			d.setPrimaryShard(db, i)
		}
	}
	return dst, nil
}

// ShardedNS reads the collection that a sharding command is about.
func (r *Request) ShardedNS() (db, ns string, err error) {
	ns, ok := r.Arg().StringValue()
	if !ok {
		return "", "", srverr.New(srverr.BadValue, "collection name has invalid type %s", bsontext.TypeName(r.Arg().Type))
	}
	db, coll, ok := cutDot(ns)
	if !ok || coll == "" || !namespace.ValidDB(db) {
		return "", "", srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return db, ns, nil
}

// keyArg reads the shard key that a command is given.
func (r *Request) keyArg(command string) (bson.Raw, error) {
	key := r.Body.Lookup("key")
	switch {
	case key.IsZero():
		return nil, arg.MissingField(command + ".key")
	case key.Type == bson.TypeNull:
		return nil, srverr.New(srverr.BadValue, "Shard key is empty")
	case key.Type != bson.TypeEmbeddedDocument:
		return nil, arg.WrongType(command+".key", key.Type, "object")
	}
	return key.Value, nil
}

func runShardCollection(r *Request, dst []byte) ([]byte, error) {
	key, err := r.keyArg("ShardCollection")
	if err != nil {
		return dst, err
	}
	db, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	if r.Node.cfg.Version.AtLeast(6, 0) {
		r.Node.data.AddDatabase(db) // enableSharding is not needed any more
	} else if err := r.databaseKnown(db); err != nil {
		return dst, err
	}
	if strings.HasPrefix(ns[len(db)+1:], "system.") {
		return dst, srverr.New(srverr.IllegalOperation, "can't shard system namespaces")
	}
	unique := r.Body.Lookup("unique").AsBool()
	if err := checkShardKey(key, unique); err != nil {
		return dst, err
	}
	var uuid [16]byte
	err = r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		if s := sharding.Of(c); s != nil {
			uuid = c.UUID
			if !index.SamePattern(s.Key, key) || s.Unique != unique {
				return srverr.New(srverr.AlreadyInitialized, "sharding already enabled for collection %s with options { _id: \"%s\" }", ns, ns)
			}
			return nil
		}
		c, err := r.prepareShard(tx, c, ns, key, unique)
		if err != nil {
			return err
		}
		uuid = c.UUID
		primary, _ := r.Node.data.primaryShard(db)
		s := sharding.New(key, unique, c.Count() == 0, primary, r.Node.data.shards)
		if err := checkDocuments(s, c); err != nil {
			return err
		}
		tx.SetSharding(c, s, s.Paths(), bsondoc.Build(func(d *bsondoc.Builder) {
			d.Doc("shardKey", s.Key).Flag("unique", unique)
			d.B = bson.AppendInt64(d.B, "numInitialChunks", 0)
			d.Flag("presplitHashedZones", false)
		}))
		return nil
	})
	if err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "collectionsharded", ns)
	if r.Node.cfg.Version.AtLeast(6, 0) {
		return dst, nil
	}
	return bson.AppendBinary(dst, "collectionUUID", bson.BinaryUUID, uuid[:]), nil
}

// checkDocuments refuses to shard a collection with a document that cannot have a place.
func checkDocuments(s *sharding.Metadata, c *store.Coll) error {
	scan := store.NewScan(c, false, nil)
	for {
		_, doc, ok := scan.Next()
		if !ok {
			return nil
		}
		if _, err := s.KeyOf(doc); err != nil {
			return err
		}
	}
}

// prepareShard makes sure that a collection that is about to be sharded exists and has an index for
// the key.
func (r *Request) prepareShard(tx *store.Tx, c *store.Coll, ns string, key bson.Raw, unique bool) (*store.Coll, error) {
	if c == nil {
		var err error
		if c, err = r.CreateImplicitly(tx, ns); err != nil {
			return nil, err
		}
	}
	if c.View {
		return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	has := false
	for i := range c.Indexes() {
		x := c.Indexes()[i].IndexInfo
		prefix := index.IsPrefix(key, x.Pattern)
		if x.Unique && !x.IsID && !prefix {
			return nil, srverr.New(srverr.InvalidOptions, "can't shard collection '%s' with unique index on %s and proposed shard key %s. Uniqueness can't be maintained unless shard key is a prefix",
				ns, bsontext.Document(x.Pattern), bsontext.Document(key))
		}
		if prefix && x.Partial == nil && !x.Sparse {
			has = has || !unique || x.Unique && index.SamePattern(key, x.Pattern) || x.IsID
		}
	}
	switch {
	case has:
		return c, nil
	case c.Count() > 0:
		return nil, srverr.New(srverr.InvalidOptions, "Please create an index that starts with the proposed shard key before sharding the collection")
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

// shardIndexName returns the name that an index with this key gets by default.
func shardIndexName(key bson.Raw) string {
	var parts []string
	for k, v := range key.All() {
		s, ok := v.StringValue()
		if !ok {
			n, _ := arg.Number(v)
			s = bsontext.Double(float64(n))
		}
		parts = append(parts, k, s)
	}
	return strings.Join(parts, "_")
}

func checkShardKey(key bson.Raw, unique bool) error {
	if key.IsEmpty() {
		return srverr.New(srverr.BadValue, "Shard key is empty")
	}
	hashed := 0
	for k, v := range key.All() {
		if s, ok := v.StringValue(); ok && s == "hashed" && hashed == 0 {
			if hashed++; unique {
				return srverr.New(srverr.InvalidOptions, "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed field by declaring an additional (non-hashed) unique index on the field.")
			}
			continue
		}
		if n, ok := v.AsInt64(); !ok || n != 1 {
			return srverr.New(srverr.BadValue, "Shard key %s can contain at most one 'hashed' field, and/or multiple numerical fields set to a value of 1. Failed to parse field %s", bsontext.Document(key), k)
		}
	}
	return nil
}

// changeSharding gives a sharded collection the metadata that f makes of what it has.
func (r *Request) changeSharding(f func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error)) error {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return err
	}
	if err := r.databaseKnown(db); err != nil {
		return err
	}
	return r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		s := sharding.Of(c)
		if s == nil {
			return srverr.New(srverr.NamespaceNotSharded, "Collection '%s' is not sharded.", ns)
		}
		n, err := f(tx, c, s)
		if err != nil {
			return err
		}
		if n == nil {
			tx.SetSharding(c, nil, nil, nil)
		} else if n != s {
			tx.SetSharding(c, n, n.Paths(), nil)
		}
		return nil
	})
}

// boundArg returns the values of the shard key that a document has; hashed fields are taken as they
// are.
func boundArg(s *sharding.Metadata, doc bson.Raw) ([]bson.RawValue, error) {
	var values []bson.RawValue
	for _, f := range s.Fields {
		v := doc.Lookup(strings.Split(f.Path, ".")...)
		if direct := doc.Lookup(f.Path); direct.Type != 0 {
			v = direct
		}
		if v.Type == 0 {
			return nil, srverr.New(srverr.BadValue, "no shard key found in chunk query %s", bsontext.Document(doc))
		}
		values = append(values, bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)})
	}
	return values, nil
}

// chunkArg returns the chunk that find, bounds or min names.
func (r *Request) chunkArg(s *sharding.Metadata) (int, error) {
	if find, ok := r.Body.Lookup("find").Document(); ok {
		if _, err := boundArg(s, find); err != nil {
			return 0, err
		}
		key, err := s.KeyOf(find)
		return s.ChunkAt(key), err
	}
	lo, ok := r.Body.Lookup("bounds", "0").Document()
	if !ok {
		if lo, ok = r.Body.Lookup("min").Document(); !ok {
			return 0, srverr.New(srverr.BadValue, "need to specify query or bounds")
		}
	}
	key, err := boundArg(s, lo)
	if err != nil {
		return 0, err
	}
	return s.ChunkAt(key), nil
}

func runSplit(r *Request, dst []byte) ([]byte, error) {
	return dst, r.changeSharding(func(_ *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		var at []bson.RawValue
		for _, f := range []struct {
			name, want string
			is         bson.Type
		}{{"find", "object", bson.TypeEmbeddedDocument}, {"bounds", "array", bson.TypeArray}, {"middle", "object", bson.TypeEmbeddedDocument}} {
			if v := r.Body.Lookup(f.name); !v.IsZero() && v.Type != f.is {
				return nil, wrongChunkArg(f.name, f.want, v)
			}
		}
		middle, ok := r.Body.Lookup("middle").Document()
		if ok && middle.IsEmpty() && r.Body.Lookup("find").IsZero() && r.Body.Lookup("bounds").IsZero() {
			return nil, srverr.New(0, "need to specify find/bounds or middle")
		}
		if ok && !middle.IsEmpty() {
			var err error
			if at, err = boundArg(s, middle); err != nil {
				return nil, err
			}
		} else {
			i, err := r.chunkArg(s)
			if err != nil {
				return nil, err
			}
			if at = median(s, c, i); at == nil {
				return nil, srverr.New(srverr.CannotSplit, "chunk cannot be split: it has a single key or none")
			}
		}
		n, ok := s.Split(at)
		if !ok {
			return nil, srverr.New(0, "new split key %s is a boundary key of existing chunk [%s,%s)", bsontext.Document(s.KeyDocument(at)),
				bsontext.Document(s.KeyDocument(at)), bsontext.Document(s.KeyDocument(s.Max(s.ChunkAt(at)))))
		}
		return n, nil
	})
}

// median returns the key in the middle of a chunk's documents, nil if there is none to split at.
func median(s *sharding.Metadata, c *store.Coll, i int) []bson.RawValue {
	var keys [][]bson.RawValue
	scan := store.NewScan(c, false, nil)
	for {
		_, doc, ok := scan.Next()
		if !ok {
			break
		}
		if key, err := s.KeyOf(doc); err == nil && s.ChunkAt(key) == i {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, sharding.CompareKeys)
	for _, k := range keys[len(keys)/2:] {
		if sharding.CompareKeys(k, s.Chunks[i].Min) > 0 {
			return k
		}
	}
	return nil
}

func runMoveChunk(r *Request, dst []byte) ([]byte, error) {
	name, ok := r.Body.Lookup("to").StringValue()
	if r.Cmd.Name == "moveRange" {
		name, ok = r.Body.Lookup("toShard").StringValue()
	}
	to := r.Node.data.ShardNumber(name)
	err := r.changeSharding(func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		if !ok && r.Cmd.Name == "moveChunk" {
			return nil, srverr.New(srverr.TypeMismatch, "'to' must be of type String")
		}
		if to < 0 && !r.Node.cfg.Version.AtLeast(5, 0) {
			return nil, srverr.New(srverr.ShardNotFound, "moveChunk destination shard does not exist")
		}
		if to < 0 {
			return nil, srverr.New(srverr.ShardNotFound, "Could not move chunk in '%s' to shard '%s' because that shard does not exist", bsondoc.MustString(r.Arg()), name)
		}
		i, err := r.chunkArg(s)
		if err != nil || s.Chunks[i].Shard == to {
			return s, err
		}
		wait := r.Body.Lookup("_waitForDelete").AsBool() || r.Body.Lookup("waitForDelete").AsBool()
		return r.Node.data.migrate(tx, c, s, i, to, wait)
	})
	if err != nil || r.Cmd.Name == "moveRange" {
		return dst, err
	}
	return bson.AppendInt32(dst, "millis", 0), nil
}

// wrongChunkArg is the error of an argument of the commands about chunks.
func wrongChunkArg(name, want string, v bson.RawValue) error {
	return srverr.New(0, "wrong type for '%s' field, expected %s, found %s", name, want, bsontext.Element(name, v))
}

// checkMergeBounds checks the types of mergeChunks' bounds.
func checkMergeBounds(v bson.RawValue) error {
	if !v.IsZero() && v.Type != bson.TypeArray {
		return wrongChunkArg("bounds", "vector array", v)
	}
	empty := true
	for k, e := range bson.Raw(v.Value).All() {
		empty = false
		if e.Type != bson.TypeEmbeddedDocument {
			return srverr.From(wrongChunkArg(k, "object", e)).Prefix("error parsing element " + k + " of field bounds :: caused by :: ")
		}
	}
	if empty {
		return srverr.New(0, "no bounds were specified")
	}
	return nil
}

func runMergeChunks(r *Request, dst []byte) ([]byte, error) {
	return dst, r.changeSharding(func(_ *store.Tx, _ *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		if err := checkMergeBounds(r.Body.Lookup("bounds")); err != nil {
			return nil, err
		}
		lo, ok1 := r.Body.Lookup("bounds", "0").Document()
		hi, ok2 := r.Body.Lookup("bounds", "1").Document()
		if !ok1 || !ok2 {
			return nil, srverr.New(srverr.BadValue, "need to specify the bounds of the chunks to merge")
		}
		min, err := boundArg(s, lo)
		if err != nil {
			return nil, err
		}
		max, err := boundArg(s, hi)
		if err != nil {
			return nil, err
		}
		from, to := s.ChunkAt(min), s.ChunkAt(max)-1
		if sharding.CompareKeys(max, s.Pad(nil, sharding.MaxKey)) == 0 {
			to++
		}
		if from >= to || sharding.CompareKeys(s.Chunks[from].Min, min) != 0 || sharding.CompareKeys(s.Max(to), max) != 0 {
			return nil, srverr.New(srverr.IllegalOperation, "could not merge chunks, collection %s range %s -> %s does not contain more than one chunk of exactly these bounds", bsondoc.MustString(r.Arg()), bsontext.Document(lo), bsontext.Document(hi))
		}
		for i := from; i <= to; i++ {
			if s.Chunks[i].Shard != s.Chunks[from].Shard {
				return nil, srverr.New(srverr.IllegalOperation, "could not merge chunks, collection %s does not contain a chunk range on one shard", bsondoc.MustString(r.Arg()))
			}
		}
		return s.Merge(from, to), nil
	})
}

// runRefine adds fields to a shard key.
func runRefine(r *Request, dst []byte) ([]byte, error) {
	return dst, r.changeSharding(func(_ *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		key, err := r.keyArg("refineCollectionShardKey")
		if err != nil {
			return nil, err
		}
		if err := checkShardKey(key, false); err != nil {
			return nil, err
		}
		if !index.IsPrefix(s.Key, key) {
			return nil, srverr.New(srverr.InvalidOptions, "refineCollectionShardKey shard key %s does not extend the current shard key %s", bsontext.Document(key), bsontext.Document(s.Key))
		}
		if !slices.ContainsFunc(c.Indexes(), func(x store.Index) bool { return index.IsPrefix(key, x.Pattern) }) {
			return nil, srverr.New(srverr.InvalidOptions, "Please create an index that starts with the proposed shard key before refining the shard key")
		}
		n := sharding.New(key, s.Unique, false, 0, 1)
		n.Major, n.Chunks = s.Major, slices.Clone(s.Chunks)
		for i := range n.Chunks {
			n.Chunks[i].Min = n.Pad(n.Chunks[i].Min, sharding.MinKey)
		}
		return n, checkDocuments(n, c)
	})
}

// runReshard distributes a collection anew by another key.
func runReshard(r *Request, dst []byte) ([]byte, error) {
	key, err := r.keyArg("reshardCollection")
	if err != nil {
		return dst, err
	}
	if err := checkShardKey(key, false); err != nil {
		return dst, err
	}
	return dst, r.changeSharding(func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		n := sharding.New(key, false, false, s.Chunks[0].Shard, r.Node.data.shards)
		n.Major = s.Major + 1
		if err := checkDocuments(n, c); err != nil {
			return nil, err
		}
		return n, tx.Spread(c, n, 0)
	})
}

func runUnshard(r *Request, dst []byte) ([]byte, error) {
	return dst, r.changeSharding(func(tx *store.Tx, c *store.Coll, _ *sharding.Metadata) (*sharding.Metadata, error) {
		return nil, tx.Spread(c, nil, r.Node.data.place(c.NS))
	})
}

func runMovePrimary(r *Request, dst []byte) ([]byte, error) {
	name, ok := r.Arg().StringValue()
	if !ok {
		return dst, srverr.New(srverr.InvalidNamespace, "'movePrimary' must be of type String")
	}
	if r.Body.Lookup("to").IsZero() {
		return dst, arg.MissingField("MovePrimary.to")
	}
	db, _, _ := cutDot(name)
	if err := r.databaseKnown(db); err != nil {
		return dst, err
	}
	to := bsondoc.MustString(r.Body.Lookup("to"))
	i := r.Node.data.ShardNumber(to)
	if i < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", to)
	}
	return dst, r.Write(func(tx *store.Tx) error {
		var list []*store.Coll
		tx.State().Colls(db, func(c *store.Coll) bool {
			if !c.Sharded() {
				list = append(list, c)
			}
			return true
		})
		for _, c := range list {
			if err := tx.Spread(c, nil, i); err != nil {
				return err
			}
		}
		r.Node.data.setPrimaryShard(db, i)
		return nil
	})
}

func runAddShard(r *Request, dst []byte) ([]byte, error) {
	if _, ok := r.Arg().StringValue(); !ok {
		return dst, srverr.New(srverr.FailedToParse, "The first argument to addShard must be a string")
	}
	return dst, srverr.New(srverr.OperationFailed, "shards cannot be added to this cluster")
}

func (r *Request) shardArg() (string, error) {
	name := bsondoc.MustString(r.Arg())
	if r.Node.data.ShardNumber(name) < 0 {
		return name, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
	}
	return name, nil
}

func runRemoveShard(r *Request, dst []byte) ([]byte, error) {
	if _, err := r.shardArg(); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.IllegalOperation, "shards cannot be removed from this cluster")
}

// runZone adds a shard to a zone, or takes it out. The balancer moves
// chunks to the shards of their zones if it runs.
func runZone(r *Request, dst []byte) ([]byte, error) {
	zone, err := arg.ExtractString(r.Body, "zone")
	if err != nil {
		return dst, err
	}
	shard := bsondoc.MustString(r.Arg())
	if r.Node.data.ShardNumber(shard) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "shard %s does not exist", shard)
	}
	c := &r.Node.data.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.zones == nil {
		c.zones = map[string][]string{}
	}
	rest := slices.DeleteFunc(slices.Clone(c.zones[shard]), func(z string) bool { return z == zone })
	if r.Cmd.Name == "addShardToZone" {
		rest = append(rest, zone)
	}
	c.zones[shard] = rest
	return dst, nil
}

func (r *Request) shardingEnabled() error {
	if r.Node.role != Mongos {
		return srverr.New(srverr.ShardingStateNotInitialized, "Sharding is not enabled")
	}
	return nil
}

func runFlushRouter(r *Request, dst []byte) ([]byte, error) {
	if err := r.shardingEnabled(); err != nil {
		return dst, err
	}
	if v := r.Arg(); v.Type != bson.TypeString && v.Type != bson.TypeBoolean && !v.IsNumber() && !r.Node.cfg.Version.AtLeast(5, 0) {
		return dst, srverr.New(13111, "wrong type for field (flushRouterConfig) %s != string", bsontext.TypeName(v.Type))
	}
	return bson.AppendBool(dst, "flushed", true), nil
}

func runShardMap(r *Request, dst []byte) ([]byte, error) {
	if err := r.shardingEnabled(); err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "map")
	type shard struct{ name, conn string }
	shards := []shard{{"config", "config/localhost:27017"}}
	for i := range r.Node.data.shards {
		shards = append(shards, shard{shardName(i), r.Node.data.shardHost(i)})
	}
	for _, s := range shards {
		dst = bson.AppendString(dst, s.name, s.conn)
	}
	dst = bson.EndDocument(dst, at)
	if !r.Node.cfg.Version.Has(release.Reply, "getShardMap.hosts") {
		return dst, nil
	}
	at, dst = bson.BeginDocumentElement(dst, "hosts")
	for _, s := range shards {
		_, host, _ := strings.Cut(s.conn, "/")
		dst = bson.AppendString(dst, host, s.name)
	}
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "connStrings")
	for _, s := range shards {
		dst = bson.AppendString(dst, s.conn, s.name)
	}
	return bson.EndDocument(dst, at), nil
}

func runShardVersion(r *Request, dst []byte) ([]byte, error) {
	if r.Node.role == Mongos {
		if r.Arg().Type != bson.TypeString {
			return dst, srverr.New(srverr.BadValue, "namespace has invalid type %s", bsontext.TypeName(r.Arg().Type))
		}
		var version bson.Timestamp
		var epoch bson.ObjectID
		err := r.changeSharding(func(_ *store.Tx, _ *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
			version, epoch = bson.Timestamp{T: s.Major, I: s.Chunks[len(s.Chunks)-1].Minor}, s.Epoch
			return s, nil
		})
		var e *srverr.Error
		if errors.As(err, &e) && e.Code == srverr.NamespaceNotSharded {
			return dst, srverr.New(srverr.NamespaceNotSharded, "Collection %s is not sharded.", bsondoc.MustString(r.Arg()))
		}
		if err != nil {
			return dst, err
		}
		dst = bson.AppendTimestamp(dst, "version", version)
		return bson.AppendObjectID(dst, "versionEpoch", epoch), nil
	}
	if _, _, err := r.ShardedNS(); err != nil {
		return dst, err
	}
	dst = bson.AppendString(dst, "configServer", "")
	dst = bson.AppendBool(dst, "inShardedMode", false)
	dst = bson.AppendTimestamp(dst, "mine", bson.Timestamp{})
	return bson.AppendString(dst, "global", "UNKNOWN"), nil
}
