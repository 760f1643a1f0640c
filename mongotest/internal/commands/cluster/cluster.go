// Package cluster has the commands of sharded clusters: databases and their shards, shard keys,
// chunks, zones, the balancer, and what a mongos and its shards tell of all that. What they change
// is kept in packages server (databases, the balancer) and sharding (chunks, zones).
package cluster

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/index"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	changes := server.OnMongos{Forgets: server.ForgetsValue}
	for _, c := range []*server.Command{
		{Name: "listShards", Needs: server.OnCluster("listShards"), Run: runListShards},
		{Name: "enableSharding", Needs: server.OnNamespace("enableSharding"), WriteConcern: true, Mongos: changes,
			Run: runEnableSharding},
		{Name: "shardCollection", Needs: server.OnNamespace("enableSharding"), WriteConcern: true, Mongos: changes,
			Run: runShardCollection},
		{Name: "refineCollectionShardKey", Needs: server.OnNamespace("refineCollectionShardKey"), Mongos: changes,
			Run: runRefine},
		{Name: "reshardCollection", Needs: server.OnNamespace("reshardCollection"), Mongos: changes, Run: runReshard},
		{Name: "abortReshardCollection", Needs: server.OnNamespace("reshardCollection"), Run: runAbortMove},
		{Name: "commitReshardCollection", Needs: server.OnNamespace("reshardCollection"), Run: runAbortMove},
		{Name: "unshardCollection", Needs: server.OnNamespace("unshardCollection"), Mongos: changes, Run: runUnshard},
		{Name: "abortUnshardCollection", Needs: server.OnNamespace("unshardCollection"), Run: runAbortMove},
		{Name: "moveCollection", Needs: server.OnNamespace("moveCollection"), Mongos: changes, Run: runMoveCollection},
		{Name: "abortMoveCollection", Needs: server.OnNamespace("moveCollection"), Run: runAbortMove},
		{Name: "addShard", Needs: server.OnCluster("addShard"), WriteConcern: true, Run: runAddShard},
		{Name: "removeShard", Needs: server.OnCluster("removeShard"), WriteConcern: true, Run: runRemoveShard},
		{Name: "split", Needs: server.OnNamespace("splitChunk"), Mongos: changes, Run: runSplit},
		{Name: "moveChunk", Needs: server.OnNamespace("moveChunk"), Mongos: changes, Run: runMoveChunk},
		{Name: "moveRange", Needs: server.OnNamespace("moveChunk"), Mongos: changes, Run: runMoveChunk},
		{Name: "mergeChunks", Needs: server.OnNamespace("moveChunk"), Mongos: changes, Run: runMergeChunks},
		{Name: "mergeAllChunksOnShard", Needs: server.OnNamespace("moveChunk"), Mongos: changes, Run: runMergeAll},
		{Name: "configureCollectionBalancing", Needs: server.OnNamespace("enableSharding"),
			Run: runCollectionBalancing},
		{Name: "clearJumboFlag", Needs: server.OnNamespace("clearJumboFlag"), Run: runClearJumbo},
		{Name: "movePrimary", Needs: server.OnNamespace("moveChunk"), WriteConcern: true, Mongos: changes,
			Run: runMovePrimary},
		{Name: "balancerStatus", Needs: server.OnCluster("enableSharding"), Run: runBalancerStatus},
		{Name: "balancerStart", Needs: server.OnCluster("enableSharding"), Run: runBalancerSwitch},
		{Name: "balancerStop", Needs: server.OnCluster("enableSharding"), Run: runBalancerSwitch},
	} {
		c.AdminOnly, c.Where, c.Roles, c.Mongos.Config = true, server.Anywhere, []server.Role{server.Mongos}, true
		if c.Name == "moveChunk" || c.Name == "mergeChunks" { // shards have them, too
			c.Roles, c.Mongos.Run, c.Run = nil, c.Run, server.OnlyOnShards
		}
		server.Register(c)
	}
	server.Register(&server.Command{Name: "isdbgrid", Roles: []server.Role{server.Mongos}, Needs: server.Free,
		Where: server.Anywhere, Run: runIsDBGrid})
	server.Register(&server.Command{Name: "flushRouterConfig", AdminOnly: true,
		Needs: server.OnCluster("flushRouterConfig"), Where: server.Anywhere, Run: runFlushRouter})
	server.Register(&server.Command{Name: "getShardMap", AdminOnly: true, Needs: server.OnCluster("getShardMap"),
		Where: server.Anywhere, Run: runShardMap})
	server.Register(&server.Command{Name: "getShardVersion", AdminOnly: true,
		Needs: server.OnNamespace("getShardVersion"), Where: server.Anywhere,
		Mongos: server.OnMongos{Run: runTableVersion}, Run: runShardVersion})
}

func runIsDBGrid(r *server.Request, dst []byte) ([]byte, error) {
	dst = bson.AppendInt32(dst, "isdbgrid", 1)
	return bson.AppendString(dst, "hostname", r.Node.Addr()), nil
}

func runListShards(r *server.Request, dst []byte) ([]byte, error) {
	at, dst := bson.BeginArrayElement(dst, "shards")
	for i := range r.Node.Data().Shards() {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendString(d, "_id", server.ShardName(i))
		d = bson.AppendString(d, "host", r.Node.Data().ShardHost(i))
		d = bson.AppendInt32(d, "state", 1)
		if r.Version().Has(release.Reply, "listShards.topologyTime") {
			d = bson.AppendTimestamp(d, "topologyTime", r.Node.Data().Born())
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}

func runEnableSharding(r *server.Request, dst []byte) ([]byte, error) {
	db, ok := r.Arg().StringValue()
	if !ok || !namespace.ValidDB(db) {
		return dst, srverr.New(srverr.InvalidNamespace, "invalid db name specified: %s", db)
	}
	if db == "admin" || db == "local" {
		return dst, srverr.New(srverr.InvalidOptions, "can't shard %s database", db)
	}
	d := r.Node.Data()
	shard := r.Body.Lookup("primaryShard")
	if !shard.IsZero() && shard.Type != bson.TypeString && !r.Version().AtLeast(5, 0) {
		return dst, srverr.New(13111, "wrong type for field (primaryShard) %s != string", bsontext.TypeName(shard.Type))
	}
	at, known := d.PrimaryShard(db)
	if name, ok := shard.StringValue(); ok && known && name != server.ShardName(at) {
		return dst, srverr.New(srverr.NamespaceExists,
			"database already created on a primary which is different from: %s", name)
	}
	name, ok := shard.StringValue()
	on := -1
	if ok {
		on = d.ShardNumber(name)
	}
	d.AddDatabaseOn(db, on)
	if ok && on < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
	}
	return dst, nil
}

// notSharded refuses what only a sharded collection can do.
func notSharded(r *server.Request, ns string) error {
	text := "Collection %s is not sharded."
	if r.Version().AtLeast(7, 0) {
		text = "Expected collection %s to be sharded"
	}
	return srverr.New(srverr.NamespaceNotSharded, text, ns)
}

// changeSharding gives a sharded collection the metadata that f makes of what it has.
func changeSharding(r *server.Request,
	f func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error)) error {
	db, ns, err := r.ShardedNS()
	if err != nil {
		return err
	}
	return changeShardingOf(r, db, ns, f)
}

func changeShardingOf(r *server.Request, db, ns string,
	f func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error)) error {
	if err := r.DatabaseKnown(db); err != nil {
		return err
	}
	return r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		s := sharding.Of(c)
		if s == nil {
			return notSharded(r, ns)
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

// refineSpec are the arguments of refineCollectionShardKey.
type refineSpec struct {
	ns  string
	key bson.RawValue
}

var (
	refineArgs = &args.Table[refineSpec]{Name: "refineCollectionShardKey", Required: []string{"key"},
		Value: args.String(func(q *refineSpec) *string { return &q.ns }),
		Fields: map[string]args.Field[refineSpec]{
			"key": args.Any(func(q *refineSpec) *bson.RawValue { return &q.key }),
		}}
	collectionStatusArgs = &args.Table[string]{Name: "balancerCollectionStatus",
		Value: args.String(func(ns *string) *string { return ns })}
)

// runRefine adds fields to a shard key.
func runRefine(r *server.Request, dst []byte) ([]byte, error) {
	var q refineSpec
	if err := refineArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	key, err := keyArg(refineArgs.Name, q.key)
	if err != nil {
		return dst, err
	}
	db, _, _ := strings.Cut(q.ns, ".")
	return dst, changeShardingOf(r, db, q.ns,
		func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
			if err := checkShardKey(key, false); err != nil {
				return nil, err
			}
			if !index.IsPrefix(s.Key, key) {
				return nil, srverr.New(srverr.InvalidOptions,
					"refineCollectionShardKey shard key %s does not extend the current shard key %s",
					bsontext.Document(key), bsontext.Document(s.Key))
			}
			if index.SamePattern(s.Key, key) {
				return s, nil
			}
			has := slices.ContainsFunc(c.Indexes(), func(x store.Index) bool {
				return usableIndex(key, &x) && !x.Multikey &&
					(!s.Unique || x.Unique && index.SamePattern(key, x.Pattern))
			})
			if !has {
				return nil, srverr.New(srverr.InvalidOptions,
					"Please create an index that starts with the proposed shard key before refining the shard key")
			}
			n := sharding.New(key, s.Unique, false, 0, 1, 0)
			n.Major, n.Chunks, n.Balancing = s.Major, slices.Clone(s.Chunks), s.Balancing
			for i := range n.Chunks {
				n.Chunks[i].Min = n.Pad(n.Chunks[i].Min, sharding.MinKey)
			}
			if err := n.CheckDocuments(c, r.Meter()); err != nil {
				return nil, err
			}
			return n, tx.Exclude(c)
		})
}

// runReshard distributes a collection anew by another key.
func runReshard(r *server.Request, dst []byte) ([]byte, error) {
	key, err := keyArg("reshardCollection", r.Body.Lookup("key"))
	if err != nil {
		return dst, err
	}
	if err := checkShardKey(key, false); err != nil {
		return dst, err
	}
	return dst, changeSharding(r, func(tx *store.Tx, c *store.Coll, s *sharding.Metadata) (*sharding.Metadata, error) {
		n := sharding.New(key, false, false, s.Chunks[0].Shard, r.Node.Data().Shards(), 0)
		n.Major, n.Balancing = s.Major+1, s.Balancing
		if err := n.CheckDocuments(c, r.Meter()); err != nil {
			return nil, err
		}
		return n, tx.Spread(c, n, 0)
	})
}

func runMovePrimary(r *server.Request, dst []byte) ([]byte, error) {
	name, ok := r.Arg().StringValue()
	if !ok {
		return dst, srverr.New(srverr.InvalidNamespace, "'movePrimary' must be of type String")
	}
	switch v := r.Body.Lookup("to"); {
	case v.IsZero() || args.IsNull(v):
		return dst, args.MissingField("MovePrimary.to")
	case v.Type != bson.TypeString:
		return dst, args.WrongType("MovePrimary.to", v.Type, "string")
	}
	db, _, _ := strings.Cut(name, ".")
	if db == "admin" || db == "config" || db == "local" {
		return dst, srverr.New(srverr.InvalidOptions, "Can't move primary for %s database", db)
	}
	if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	to := bsondoc.MustString(r.Body.Lookup("to"))
	if to == "" {
		return dst, srverr.New(srverr.InvalidOptions, "you have to specify where you want to move it")
	}
	i := r.Node.Data().ShardNumber(to)
	if i < 0 {
		return dst, srverr.New(srverr.ShardNotFound,
			"Could not move database '%s' to shard '%s' :: caused by :: Shard %s not found", db, to, to)
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
			if r.Node.MovedAlone(c) {
				continue
			}
			if err := tx.Spread(c, nil, i); err != nil {
				return err
			}
		}
		r.Node.Data().SetPrimaryShard(db, i)
		return nil
	})
}

// runAddShard refuses: the shards of a cluster are made with it.
func runAddShard(r *server.Request, dst []byte) ([]byte, error) {
	if _, ok := r.Arg().StringValue(); !ok {
		return dst, srverr.New(srverr.FailedToParse, "The first argument to addShard must be a string")
	}
	if v := r.Body.Lookup("name"); !v.IsZero() {
		name, err := args.ExtractString(r.Body, "name")
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
func runRemoveShard(r *server.Request, dst []byte) ([]byte, error) {
	name, ok := r.Arg().StringValue()
	if !ok {
		return dst, srverr.New(srverr.TypeMismatch, "Field '%s' must be of type string", r.Name)
	}
	if r.Node.Data().ShardNumber(name) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s not found", name)
	}
	if r.Node.Data().Shards() == 1 {
		return dst, srverr.New(srverr.IllegalOperation, "Operation not allowed because it would remove the last shard")
	}
	return dst, srverr.New(srverr.IllegalOperation, "shards cannot be removed from this cluster")
}

func shardingEnabled(r *server.Request) error {
	if r.Routing == nil {
		return srverr.New(srverr.ShardingStateNotInitialized, "Sharding is not enabled")
	}
	return nil
}

func runFlushRouter(r *server.Request, dst []byte) ([]byte, error) {
	if err := shardingEnabled(r); err != nil {
		return dst, err
	}
	if v := r.Arg(); v.Type != bson.TypeString && v.Type != bson.TypeBoolean && !v.IsNumber() &&
		!r.Version().AtLeast(5, 0) {
		return dst, srverr.New(13111, "wrong type for field (flushRouterConfig) %s != string",
			bsontext.TypeName(v.Type))
	}
	if name, named := r.Arg().StringValue(); named {
		r.Node.ForgetTables(strings.TrimSuffix(name, "."))
	} else {
		r.Node.ForgetTables("")
	}
	return bson.AppendBool(dst, "flushed", true), nil
}

func runShardMap(r *server.Request, dst []byte) ([]byte, error) {
	if err := shardingEnabled(r); err != nil {
		return dst, err
	}
	at, dst := bson.BeginDocumentElement(dst, "map")
	type shard struct{ name, conn string }
	shards := []shard{{"config", r.Node.Data().ShardHost(r.Node.Data().Shards())}}
	for i := range r.Node.Data().Shards() {
		shards = append(shards, shard{server.ShardName(i), r.Node.Data().ShardHost(i)})
	}
	for _, s := range shards {
		dst = bson.AppendString(dst, s.name, s.conn)
	}
	dst = bson.EndDocument(dst, at)
	if !r.Version().Has(release.Reply, "getShardMap.hosts") {
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

// runTableVersion answers getShardVersion on a mongos, by its table.
func runTableVersion(r *server.Request, dst []byte) ([]byte, error) {
	if r.Arg().Type != bson.TypeString {
		return dst, srverr.New(srverr.BadValue, "namespace has invalid type %s", bsontext.TypeName(r.Arg().Type))
	}
	ns := bsondoc.MustString(r.Arg())
	db, _, _ := strings.Cut(ns, ".")
	if err := r.DatabaseKnown(db); err != nil {
		return dst, err
	}
	s := r.Node.Sharding(ns)
	if s == nil {
		return dst, notSharded(r, ns)
	}
	var version bson.Timestamp
	version.T, version.I = s.Version()
	dst = bson.AppendTimestamp(dst, "version", version)
	return bson.AppendObjectID(dst, "versionEpoch", s.Epoch), nil
}

func runShardVersion(r *server.Request, dst []byte) ([]byte, error) {
	_, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	version, ok := r.Node.ShardVersion(ns)
	dst = bson.AppendString(dst, "configServer", "")
	dst = bson.AppendBool(dst, "inShardedMode", ok)
	dst = bson.AppendTimestamp(dst, "mine", bson.Timestamp{})
	if !ok {
		return bson.AppendString(dst, "global", "UNKNOWN"), nil
	}
	return bson.AppendTimestamp(dst, "global", version), nil
}

func runBalancerStatus(r *server.Request, dst []byte) ([]byte, error) {
	mode, rounds := r.Node.Data().Balancer()
	dst = bson.AppendString(dst, "mode", mode)
	dst = bson.AppendBool(dst, "inBalancerRound", false)
	return bson.AppendInt64(dst, "numBalancerRounds", rounds), nil
}

// runBalancerSwitch is balancerStart and balancerStop.
func runBalancerSwitch(r *server.Request, dst []byte) ([]byte, error) {
	r.Node.Store() // there is something to balance from now on
	r.Node.Data().SwitchBalancer(r.Cmd.Name == "balancerStart")
	return dst, nil
}
