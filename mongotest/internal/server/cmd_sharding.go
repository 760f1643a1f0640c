package server

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	changes := OnMongos{Forgets: ForgetsValue}
	for _, c := range []*Command{
		{Name: "listShards", Needs: OnCluster("listShards"), Run: runListShards},
		{Name: "enableSharding", Needs: OnNamespace("enableSharding"), WriteConcern: true, Mongos: changes, Run: runEnableSharding},
		{Name: "shardCollection", Needs: OnNamespace("enableSharding"), WriteConcern: true, Mongos: changes, Run: runShardCollection},
		{Name: "refineCollectionShardKey", Needs: OnNamespace("refineCollectionShardKey"), Mongos: changes, Run: runRefine},
		{Name: "reshardCollection", Needs: OnNamespace("reshardCollection"), Mongos: changes, Run: runReshard},
		{Name: "unshardCollection", Needs: OnNamespace("reshardCollection"), Mongos: changes, Run: runUnshard},
		{Name: "addShard", Needs: OnCluster("addShard"), WriteConcern: true, Run: runAddShard},
		{Name: "removeShard", Needs: OnCluster("removeShard"), WriteConcern: true, Run: runRemoveShard},
		{Name: "split", Needs: OnNamespace("splitChunk"), Mongos: changes, Run: runSplit},
		{Name: "moveChunk", Needs: OnNamespace("moveChunk"), Mongos: changes, Run: runMoveChunk},
		{Name: "moveRange", Needs: OnNamespace("moveChunk"), Mongos: changes, Run: runMoveChunk},
		{Name: "mergeChunks", Needs: OnNamespace("moveChunk"), Mongos: changes, Run: runMergeChunks},
		{Name: "clearJumboFlag", Needs: OnNamespace("clearJumboFlag"), Run: runClearJumbo},
		{Name: "movePrimary", Needs: OnNamespace("moveChunk"), WriteConcern: true, Mongos: changes, Run: runMovePrimary},
		{Name: "balancerStatus", Needs: OnCluster("enableSharding"), Run: runBalancerStatus},
		{Name: "balancerStart", Needs: OnCluster("enableSharding"), Run: runBalancerSwitch},
		{Name: "balancerStop", Needs: OnCluster("enableSharding"), Run: runBalancerSwitch},
	} {
		c.AdminOnly, c.Where, c.Roles, c.Mongos.Config = true, Anywhere, []Role{Mongos}, true
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
	Register(&Command{Name: "isdbgrid", Roles: []Role{Mongos}, Needs: Free, Where: Anywhere, Run: runIsDBGrid})
	Register(&Command{Name: "flushRouterConfig", AdminOnly: true, Needs: OnCluster("flushRouterConfig"), Where: Anywhere, Run: runFlushRouter})
	Register(&Command{Name: "getShardMap", AdminOnly: true, Needs: OnCluster("getShardMap"), Where: Anywhere, Run: runShardMap})
	Register(&Command{Name: "getShardVersion", AdminOnly: true, Needs: OnNamespace("getShardVersion"), Where: Anywhere, Run: runShardVersion})
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
	if db == "admin" || db == "local" {
		return dst, srverr.New(srverr.InvalidOptions, "can't shard %s database", db)
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
	name, ok := shard.StringValue()
	on := -1
	if ok {
		on = d.ShardNumber(name)
	}
	d.addDatabase(db, on)
	if ok && on < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
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

// changeSharding gives a sharded collection the metadata that f makes of what it has.
func (r *Request) changeSharding(f func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error)) error {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return err
	}
	return r.changeShardingOf(db, ns, f)
}

func (r *Request) changeShardingOf(db, ns string, f func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error)) error {
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

// refineStruct and collectionStatusStruct are what these commands take.
var (
	refineStruct = &idl.Struct{Name: "refineCollectionShardKey", Required: []string{"key"}, Fields: map[string]idl.Field{
		"key": {Kind: idl.Any},
	}}
	collectionStatusStruct = &idl.Struct{Name: "balancerCollectionStatus"}
)

// runRefine adds fields to a shard key.
func runRefine(r *Request, dst []byte) ([]byte, error) {
	const name = "refineCollectionShardKey"
	v := r.Arg()
	ns, ok := v.StringValue()
	if !ok && v.Type != bson.TypeNull && v.Type != bson.TypeUndefined {
		return dst, arg.WrongType(name+"."+name, v.Type, "string")
	}
	if err := refineStruct.ParseCommand(r, func(string, bson.RawValue) error { return nil }); err != nil {
		return dst, err
	}
	key, err := r.keyArg(name)
	if err != nil {
		return dst, err
	}
	db, _, _ := cutDot(ns)
	return dst, r.changeShardingOf(db, ns, func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		if err := checkShardKey(key, false); err != nil {
			return nil, err
		}
		if !index.IsPrefix(s.Key, key) {
			return nil, srverr.New(srverr.InvalidOptions, "refineCollectionShardKey shard key %s does not extend the current shard key %s", bsontext.Document(key), bsontext.Document(s.Key))
		}
		if index.SamePattern(s.Key, key) {
			return s, nil
		}
		has := slices.ContainsFunc(c.Indexes(), func(x store.Index) bool {
			return usableIndex(key, &x) && !x.Multikey && (!s.Unique || x.Unique && index.SamePattern(key, x.Pattern))
		})
		if !has {
			return nil, srverr.New(srverr.InvalidOptions, "Please create an index that starts with the proposed shard key before refining the shard key")
		}
		n := sharding.New(key, s.Unique, false, 0, 1, 0)
		n.Major, n.Chunks = s.Major, slices.Clone(s.Chunks)
		for i := range n.Chunks {
			n.Chunks[i].Min = n.Pad(n.Chunks[i].Min, sharding.MinKey)
		}
		if err := checkDocuments(n, c, r.Meter()); err != nil {
			return nil, err
		}
		return n, tx.Exclude(c)
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
		n := sharding.New(key, false, false, s.Chunks[0].Shard, r.Node.data.shards, 0)
		n.Major = s.Major + 1
		if err := checkDocuments(n, c, r.Meter()); err != nil {
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
	switch v := r.Body.Lookup("to"); {
	case v.IsZero() || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
		return dst, arg.MissingField("MovePrimary.to")
	case v.Type != bson.TypeString:
		return dst, arg.WrongType("MovePrimary.to", v.Type, "string")
	}
	db, _, _ := cutDot(name)
	if db == "admin" || db == "config" || db == "local" {
		return dst, srverr.New(srverr.InvalidOptions, "Can't move primary for %s database", db)
	}
	if err := r.databaseKnown(db); err != nil {
		return dst, err
	}
	to := bsondoc.MustString(r.Body.Lookup("to"))
	if to == "" {
		return dst, srverr.New(srverr.InvalidOptions, "you have to specify where you want to move it")
	}
	i := r.Node.data.ShardNumber(to)
	if i < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Could not move database '%s' to shard '%s' :: caused by :: Shard %s not found", db, to, to)
	}
	return dst, r.Write(func(tx *store.Tx) error {
		var list []*store.Coll
		tx.State().Colls(db, func(c *store.Coll) bool {
			list = append(list, c)
			return true
		})
		for _, c := range list {
			if c.Sharded() {
				tx.Extend(c, i) // whoever asks this shard past the mongoses finds it
				continue
			}
			if err := tx.Spread(c, nil, i); err != nil {
				return err
			}
		}
		r.Node.data.setPrimaryShard(db, i)
		return nil
	})
}

// runAddShard refuses: the shards of a cluster are made with it.
func runAddShard(r *Request, dst []byte) ([]byte, error) {
	if _, ok := r.Arg().StringValue(); !ok {
		return dst, srverr.New(srverr.FailedToParse, "The first argument to addShard must be a string")
	}
	if v := r.Body.Lookup("name"); !v.IsZero() {
		name, err := arg.ExtractString(r.Body, "name")
		if err != nil {
			return dst, err
		}
		if name == "" {
			return dst, srverr.New(srverr.BadValue, "shard name cannot be empty")
		}
	}
	return dst, srverr.New(srverr.OperationFailed, "shards cannot be added to this cluster")
}

// runRemoveShard refuses likewise.
func runRemoveShard(r *Request, dst []byte) ([]byte, error) {
	name, ok := r.Arg().StringValue()
	if !ok {
		return dst, srverr.New(srverr.TypeMismatch, "Field '%s' must be of type string", r.Name)
	}
	if r.Node.data.ShardNumber(name) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
	}
	if r.Node.data.shards == 1 {
		return dst, srverr.New(srverr.IllegalOperation, "Operation not allowed because it would remove the last shard")
	}
	return dst, srverr.New(srverr.IllegalOperation, "shards cannot be removed from this cluster")
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
	if name, named := r.Arg().StringValue(); named {
		r.Node.tables.forget(strings.TrimSuffix(name, "."))
	} else {
		r.Node.tables.clear()
	}
	return bson.AppendBool(dst, "flushed", true), nil
}

func runShardMap(r *Request, dst []byte) ([]byte, error) {
	if err := r.shardingEnabled(); err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "map")
	type shard struct{ name, conn string }
	shards := []shard{{"config", r.Node.data.ShardHost(r.Node.data.shards)}}
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
		_, hosts, _ := strings.Cut(s.conn, "/")
		for host := range strings.SplitSeq(hosts, ",") {
			dst = bson.AppendString(dst, host, s.name)
		}
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
		ns := bsondoc.MustString(r.Arg())
		db, _, _ := cutDot(ns)
		if err := r.databaseKnown(db); err != nil {
			return dst, err
		}
		s := r.Node.tables.coll(r.Node.Store(), ns)
		if s == nil {
			return dst, srverr.New(srverr.NamespaceNotSharded, "Collection %s is not sharded.", ns)
		}
		var version bson.Timestamp
		version.T, version.I = s.Version()
		dst = bson.AppendTimestamp(dst, "version", version)
		return bson.AppendObjectID(dst, "versionEpoch", s.Epoch), nil
	}
	_, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	d := r.Node.data
	dst = bson.AppendString(dst, "configServer", "")
	dst = bson.AppendBool(dst, "inShardedMode", d.whole != nil)
	dst = bson.AppendTimestamp(dst, "mine", bson.Timestamp{})
	if d.whole == nil {
		return bson.AppendString(dst, "global", "UNKNOWN"), nil
	}
	var version bson.Timestamp
	r.Node.Store()
	if s := metadataOf(d.whole.made().Latest(), ns); s != nil {
		version.T, version.I = s.ShardVersion(d.number)
	}
	return bson.AppendTimestamp(dst, "global", version), nil
}
