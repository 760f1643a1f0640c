package server

import (
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	for _, c := range []*Command{
		{Name: "isdbgrid", Run: runIsDBGrid},
		{Name: "listShards", AdminOnly: true, Run: runListShards},
		{Name: "enableSharding", AdminOnly: true, WriteConcern: true, Run: runEnableSharding},
		{Name: "shardCollection", AdminOnly: true, Run: runShardCollection},
		{Name: "addShard", AdminOnly: true, WriteConcern: true, Run: runAddShard},
		{Name: "removeShard", AdminOnly: true, WriteConcern: true, Run: runRemoveShard},
		{Name: "split", AdminOnly: true, Run: runSplit},
		{Name: "moveChunk", AdminOnly: true, Run: runMoveChunk},
		{Name: "movePrimary", AdminOnly: true, WriteConcern: true, Run: runMovePrimary},
		{Name: "refineCollectionShardKey", AdminOnly: true, Run: runMovePrimary},
		{Name: "balancerStatus", AdminOnly: true, Run: runBalancerStatus},
		{Name: "balancerStart", AdminOnly: true, Run: runNothing},
		{Name: "balancerStop", AdminOnly: true, Run: runNothing},
	} {
		c.Where, c.Roles = Anywhere, []Role{Mongos}
		register(c)
	}
	register(&Command{Name: "flushRouterConfig", AdminOnly: true, Where: Anywhere, Run: runFlushRouter})
	register(&Command{Name: "getShardMap", AdminOnly: true, Where: Anywhere, Run: runShardMap})
	register(&Command{Name: "getShardVersion", AdminOnly: true, Where: Anywhere, Run: runShardVersion})
}

// cluster is the sharding metadata of a data set. Documents are not placed on shards: where the chunks are is only
// remembered. Safe for concurrent use.
type cluster struct {
	mu   sync.Mutex
	dbs  map[string]bool
	keys map[string]shardedCollection
}

// shardedCollection is what shardCollection was told.
type shardedCollection struct {
	key    bson.Raw
	unique bool
	uuid   [16]byte
}

// ShardKey returns the shard key of a collection ("db.coll"), nil if it is not sharded.
func (d *Data) ShardKey(ns string) bson.Raw {
	d.cluster.mu.Lock()
	defer d.cluster.mu.Unlock()
	return d.cluster.keys[ns].key
}

// forgetSharding drops the metadata of a database, or of one collection.
func (d *Data) forgetSharding(db, ns string) {
	d.cluster.mu.Lock()
	defer d.cluster.mu.Unlock()
	if ns != "" {
		delete(d.cluster.keys, ns)
		return
	}
	delete(d.cluster.dbs, db)
	for k := range d.cluster.keys {
		if strings.HasPrefix(k, db+".") {
			delete(d.cluster.keys, k)
		}
	}
}

func (r *Request) databaseKnown(db string) error {
	d := r.Node.data
	d.cluster.mu.Lock()
	known := d.cluster.dbs[db]
	d.cluster.mu.Unlock()
	if !known && !(d.HasDatabase != nil && d.HasDatabase(db)) {
		return srverr.New(srverr.NamespaceNotFound, "database %s not found", db)
	}
	return nil
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
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}

func runEnableSharding(r *Request, dst []byte) ([]byte, error) {
	db, ok := r.Arg().StringValue()
	if !ok || !ValidDBName(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "invalid db name specified: %s", db)
	}
	c := &r.Node.data.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dbs == nil {
		c.dbs = map[string]bool{}
	}
	c.dbs[db] = true
	return dst, nil
}

// shardedNS reads the collection that a sharding command is about.
func (r *Request) shardedNS() (db, ns string, err error) {
	ns, ok := r.Arg().StringValue()
	if !ok {
		return "", "", srverr.New(srverr.BadValue, "collection name has invalid type %s", bsontext.TypeName(r.Arg().Type))
	}
	db, coll, ok := cutDot(ns)
	if !ok || coll == "" || !ValidDBName(db) {
		return "", "", srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return db, ns, nil
}

func runShardCollection(r *Request, dst []byte) ([]byte, error) {
	key := r.Body.Lookup("key")
	switch {
	case key.IsZero():
		return dst, missingField("ShardCollection.key")
	case key.Type != bson.TypeEmbeddedDocument:
		return dst, wrongType("ShardCollection.key", key.Type, "object")
	}
	db, ns, err := r.shardedNS()
	if err != nil {
		return dst, err
	}
	d := r.Node.data
	if r.Node.cfg.Version.AtLeast(6, 0) {
		d.cluster.mu.Lock()
		if d.cluster.dbs == nil {
			d.cluster.dbs = map[string]bool{}
		}
		d.cluster.dbs[db] = true // enableSharding is not needed any more
		d.cluster.mu.Unlock()
	} else if err := r.databaseKnown(db); err != nil {
		return dst, err
	}
	if strings.HasPrefix(ns[len(db)+1:], "system.") {
		return dst, srverr.New(srverr.IllegalOperation, "can't shard system namespaces")
	}
	unique := r.Body.Lookup("unique").AsBool()
	if err := checkShardKey(key.Value, unique); err != nil {
		return dst, err
	}
	d.cluster.mu.Lock()
	old, sharded := d.cluster.keys[ns]
	d.cluster.mu.Unlock()
	if sharded && string(old.key) != string(key.Value) {
		return dst, srverr.New(srverr.AlreadyInitialized, "sharding already enabled for collection %s with options { _id: \"%s\" }", ns, ns)
	}
	if !sharded {
		old = shardedCollection{key: append(bson.Raw(nil), key.Value...), unique: unique, uuid: newSessionID().ID}
		if d.PrepareShard != nil {
			if err := d.PrepareShard(ns, old.key, unique); err != nil {
				return dst, err
			}
		}
		d.cluster.mu.Lock()
		if d.cluster.keys == nil {
			d.cluster.keys = map[string]shardedCollection{}
		}
		d.cluster.keys[ns] = old
		d.cluster.mu.Unlock()
		if err := r.noteShardCollection(ns, old); err != nil {
			return dst, err
		}
	}
	dst = bson.AppendString(dst, "collectionsharded", ns)
	return bson.AppendBinary(dst, "collectionUUID", bson.BinaryUUID, old.uuid[:]), nil
}

// noteShardCollection lets change streams know.
func (r *Request) noteShardCollection(ns string, sc shardedCollection) error {
	at, more := bson.BeginDocument(nil)
	more = bson.AppendDocument(more, "shardKey", sc.key)
	more = bson.AppendBool(more, "unique", sc.unique)
	more = bson.AppendInt64(more, "numInitialChunks", 0)
	more = bson.AppendBool(more, "presplitHashedZones", false)
	more = bson.EndDocument(more, at)
	return r.write(func(tx *store.Tx) error {
		if c := tx.Coll(ns); c != nil {
			return tx.ShardCollection(c, more)
		}
		return nil
	})
}

func checkShardKey(key bson.Raw, unique bool) error {
	if key.IsEmpty() {
		return srverr.New(srverr.BadValue, "Shard key is empty")
	}
	for k, v := range key.All() {
		if s, ok := v.StringValue(); ok && s == "hashed" {
			if unique {
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

// knownSharded refuses what needs a sharded collection.
func (r *Request) knownSharded() error {
	db, ns, err := r.shardedNS()
	if err != nil {
		return err
	}
	if err := r.databaseKnown(db); err != nil {
		return err
	}
	if r.Node.data.ShardKey(ns) == nil {
		return srverr.New(srverr.NamespaceNotSharded, "Collection '%s' is not sharded.", ns)
	}
	return nil
}

func runSplit(r *Request, dst []byte) ([]byte, error) { return dst, r.knownSharded() }

func runMoveChunk(r *Request, dst []byte) ([]byte, error) {
	if err := r.knownSharded(); err != nil {
		return dst, err
	}
	to, _ := r.Body.Lookup("to").StringValue()
	if !r.Node.data.isShard(to) {
		return dst, srverr.New(srverr.ShardNotFound, "Could not move chunk in '%s' to shard '%s' because that shard does not exist", mustString(r.Arg()), to)
	}
	return bson.AppendInt32(dst, "millis", 0), nil
}

func mustString(v bson.RawValue) string {
	s, _ := v.StringValue()
	return s
}

func runMovePrimary(r *Request, dst []byte) ([]byte, error) {
	db, _, _ := cutDot(mustString(r.Arg()))
	return dst, r.databaseKnown(db)
}

func runAddShard(r *Request, dst []byte) ([]byte, error) {
	if _, ok := r.Arg().StringValue(); !ok {
		return dst, srverr.New(srverr.FailedToParse, "The first argument to addShard must be a string")
	}
	return dst, srverr.New(srverr.OperationFailed, "shards cannot be added to this cluster")
}

func runRemoveShard(r *Request, dst []byte) ([]byte, error) {
	name := mustString(r.Arg())
	if !r.Node.data.isShard(name) {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
	}
	return dst, srverr.New(srverr.IllegalOperation, "shards cannot be removed from this cluster")
}

func runBalancerStatus(r *Request, dst []byte) ([]byte, error) {
	dst = bson.AppendString(dst, "mode", "full")
	dst = bson.AppendBool(dst, "inBalancerRound", false)
	return bson.AppendInt64(dst, "numBalancerRounds", 0), nil
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
	return bson.AppendBool(dst, "flushed", true), nil
}

func runShardMap(r *Request, dst []byte) ([]byte, error) {
	if err := r.shardingEnabled(); err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "map")
	for i := range r.Node.data.shards {
		dst = bson.AppendString(dst, shardName(i), r.Node.data.shardHost(i))
	}
	return bson.EndDocument(dst, at), nil
}

func runShardVersion(r *Request, dst []byte) ([]byte, error) {
	if r.Node.role == Mongos {
		db, ns, err := r.shardedNS()
		if err != nil {
			return dst, err
		}
		if err := r.databaseKnown(db); err != nil {
			return dst, err
		}
		if r.Node.data.ShardKey(ns) == nil {
			return dst, srverr.New(srverr.NamespaceNotSharded, "Collection %s is not sharded.", ns)
		}
		return bson.AppendTimestamp(dst, "version", bson.Timestamp{T: 1}), nil
	}
	dst = bson.AppendString(dst, "configServer", "")
	dst = bson.AppendBool(dst, "inShardedMode", false)
	dst = bson.AppendTimestamp(dst, "mine", bson.Timestamp{})
	return bson.AppendString(dst, "global", "UNKNOWN"), nil
}
