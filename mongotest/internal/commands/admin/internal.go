package admin

import (
	"crypto/md5"
	"crypto/tls"
	"encoding/hex"
	"time"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Commands that servers have for their own tests and for each other. Clients see little more of
// them than that they exist.

func init() {
	for _, c := range []*server.Command{
		{Name: "echo", NoAuth: true, Run: runEcho},
		{Name: "whatsmysni", AdminOnly: true, NoAuth: true, Run: runSNI},
		{Name: "sleep", Needs: server.Free, AdminOnly: true, Run: runSleep},
		{Name: "splitVector", Needs: server.OnNamespace("splitVector"), Run: runSplitVector},
		{Name: "invalidateUserCache", AdminOnly: true, Needs: server.OnCluster("invalidateUserCache"),
			Run: server.Nothing},
		{Name: "netstat", Needs: server.OnCluster("netstat"), AdminOnly: true, Roles: []server.Role{server.Mongos},
			Run: runNetstat},
		{Name: "_hashBSONElement", Needs: server.Free, Run: runHashElement},
		{Name: "startRecordingTraffic", Needs: server.OnCluster("trafficRecord"), Parse: parseRecording,
			Run: server.Nothing},
		{Name: "stopRecordingTraffic", Needs: server.OnCluster("trafficRecord"), Run: runStopRecording},
		{Name: "cleanupOrphaned", Roles: server.Mongod, AdminOnly: true, Needs: server.OnCluster("cleanupOrphaned"),
			Run: server.OnlyOnShards},
		{Name: "checkShardingIndex", Roles: server.Mongod, Needs: server.OnNamespace("find"), Run: server.OnlyOnShards},
		{Name: "shardingState", Roles: server.Mongod, AdminOnly: true, Needs: server.OnCluster("shardingState"),
			Run: runShardingState},
	} {
		c.Where = server.Anywhere
		server.Register(c)
	}
	server.Register(&server.Command{Name: "captrunc", Needs: server.Free, Roles: server.Mongod, WriteConcern: true,
		Run: runCapTrunc})
	server.Register(&server.Command{Name: "stageDebug", Needs: server.Free, Roles: server.Mongod, Run: runStageDebug})
	server.Register(&server.Command{Name: "filemd5", Needs: needsOfFileMD5, Where: server.OptIn, Run: runFileMD5})
	server.Register(&server.Command{Name: "appendOplogNote", AdminOnly: true,
		Needs: server.OnCluster("appendOplogNote"), WriteConcern: true, Run: runOplogNote})
	for _, c := range []*server.Command{
		{Name: "prepareTransaction", Txn: server.TxnLater, WriteConcern: true, Run: runNoReplication},
		{Name: "coordinateCommitTransaction", Txn: server.TxnEnds, WriteConcern: true, Run: runNoReplication},
		{Name: "internalRenameIfOptionsAndIndexesMatch", WriteConcern: true, Run: runInternalRename},
		{Name: "voteCommitIndexBuild", Run: runVoteIndexBuild},
	} {
		c.Roles, c.AdminOnly, c.Needs = server.Mongod, true, server.Internal
		server.Register(c)
	}
	for _, name := range []string{"_recvChunkStart", "_recvChunkStatus", "_recvChunkCommit", "_recvChunkAbort",
		"_transferMods",
		"_migrateClone", "_getNextSessionMods", "_shardsvrCloneCatalogData", "_shardsvrDropCollection",
		"_shardsvrMovePrimary",
		"_shardsvrShardCollection", "setShardVersion", "unsetSharding", "splitChunk",
		"_cloneCollectionOptionsFromPrimaryShard", "_flushDatabaseCacheUpdates", "_flushRoutingTableCacheUpdates"} {
		server.Register(&server.Command{Name: name, Roles: server.Mongod, AdminOnly: true, Needs: server.Internal,
			Where: server.Anywhere, Run: server.OnlyOnShards})
	}
	for _, name := range []string{"_configsvrAddShard", "_configsvrAddShardToZone", "_configsvrBalancerStart",
		"_configsvrBalancerStatus", "_configsvrBalancerStop",
		"_configsvrCommitChunkMerge", "_configsvrCommitChunkMigration", "_configsvrCommitChunkSplit",
		"_configsvrCreateCollection",
		"_configsvrCreateDatabase", "_configsvrDropCollection", "_configsvrDropDatabase", "_configsvrEnableSharding",
		"_configsvrMoveChunk",
		"_configsvrMovePrimary", "_configsvrRemoveShard", "_configsvrRemoveShardFromZone", "_configsvrShardCollection",
		"_configsvrUpdateZoneKeyRange", "_configsvrBalancerCollectionStatus", "_configsvrClearJumboFlag",
		"_configsvrCommitMovePrimary",
		"_configsvrEnsureChunkVersionIsGreaterThan", "_configsvrRefineCollectionShardKey"} {
		server.Register(&server.Command{Name: name, AdminOnly: true, Needs: server.Internal, Roles: server.Mongod,
			Run: runOnConfigServer})
	}
}

func runNetstat(_ *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendString(dst, "configserver", ""), nil
}

func runStopRecording(_ *server.Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.BadValue, "Traffic recording not active")
}

func runShardingState(_ *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendBool(dst, "enabled", false), nil
}

var needsOfFileMD5 = server.NeedsBy("find on the chunks of the files",
	func(r *server.Request, body bson.Raw) []account.Need {
		root, ok := body.Lookup("root").StringValue()
		if !ok {
			root = "fs"
		}
		return server.Privileges(r.DB+"."+root+".chunks", "find")
	})

// runOplogNote writes a note into the history of the replica set: something to wait for.
func runOplogNote(r *server.Request, dst []byte) ([]byte, error) {
	if r.Node.Role() == server.Standalone {
		return dst, srverr.New(srverr.NoReplicationEnabled, "Must have replication set up to run \"appendOplogNote\"")
	}
	data := r.Body.Lookup("data")
	switch {
	case data.IsZero():
		return dst, srverr.New(srverr.NoSuchKey, "Missing expected field \"data\"")
	case data.Type != bson.TypeEmbeddedDocument:
		return dst, srverr.New(srverr.TypeMismatch, "\"data\" had the wrong type. Expected object, found %s",
			bsontext.TypeName(data.Type))
	}
	r.NoteChange()
	return dst, nil
}

func runEcho(r *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendDocument(dst, "echo", r.Body), nil
}

// runSNI tells the name that the client gave when it began its TLS session.
func runSNI(r *server.Request, dst []byte) ([]byte, error) {
	r.IntegerOK = true
	if tc, ok := r.Conn.NetConn().(*tls.Conn); ok && tc.ConnectionState().ServerName != "" {
		return bson.AppendString(dst, "sni", tc.ConnectionState().ServerName), nil
	}
	return bson.AppendBool(dst, "sni", false), nil
}

func runSleep(r *server.Request, dst []byte) ([]byte, error) {
	ms := int64(10_000)
	for _, f := range []struct {
		name string
		unit int64
	}{{"seconds", 1000}, {"secs", 1000}, {"millis", 1}} {
		if v := r.Body.Lookup(f.name); !v.IsZero() {
			n, _ := args.NumberOf(v)
			ms = n * f.unit
		}
	}
	if ms <= 0 {
		return dst, nil
	}
	_, err := r.Wait(nil, time.Duration(ms)*time.Millisecond)
	return dst, err
}

// runCapTrunc removes the newest documents of a capped collection.
func runCapTrunc(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	n, _ := args.NumberOf(r.Body.Lookup("n"))
	if r.Body.Lookup("inc").AsBool() {
		n++
	}
	if n <= 0 {
		return dst, srverr.New(srverr.BadValue, "n must be a positive integer")
	}
	return dst, r.Write(func(tx *store.Tx) error {
		c := tx.Coll(ns)
		switch {
		case c == nil:
			return srverr.New(srverr.NamespaceNotFound, "collection %s does not exist", ns)
		case c.View:
			return srverr.New(srverr.CommandNotSupportedOnView, "captrunc is not supported on views: %s", ns)
		case !c.Capped:
			return srverr.New(srverr.IllegalOperation, "collection %s is not capped", ns)
		case n > c.Count():
			return srverr.New(srverr.IllegalOperation, "captrunc would remove all of %s", ns)
		}
		for range n {
			rid, doc, ok := store.NewScan(c, true, nil).Next()
			if !ok {
				break
			}
			var err error
			if c, err = tx.Delete(c, rid, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// runStageDebug fails as it does for anything but the stages of the server's own tests.
func runStageDebug(_ *server.Request, dst []byte) ([]byte, error) { return dst, &srverr.Error{} }

func runSplitVector(r *server.Request, dst []byte) ([]byte, error) {
	_, ns, err := r.ShardedNS()
	if err != nil {
		return dst, err
	}
	pattern, _ := r.Body.Lookup("keyPattern").Document()
	if pattern == nil || pattern.IsEmpty() {
		return dst, &srverr.Error{Msg: "no key pattern found in splitVector"}
	}
	st, err := r.Snapshot()
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if c == nil {
		return dst, srverr.New(srverr.NamespaceNotFound, "ns not found")
	}
	if _, ok := planner.RangeIndex(c, pattern); !ok {
		return dst, srverr.New(srverr.IndexNotFound, "couldn't find index over splitting key %s",
			bsontext.Document(pattern))
	}
	return bsondoc.AppendDocuments(dst, "splitKeys", nil), nil
}

// runFileMD5 answers with the digest of a GridFS file's chunks.
func runFileMD5(r *server.Request, dst []byte) ([]byte, error) {
	root := "fs"
	if v := r.Body.Lookup("root"); !v.IsZero() {
		var ok bool
		if root, ok = v.StringValue(); !ok {
			return dst, srverr.New(srverr.InvalidNamespace, "'root' must be of type String")
		}
	}
	ns := r.DB + "." + root + ".chunks"
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	sum, chunks := md5.New(), int32(0)
	if c := st.Coll(ns); c != nil {
		found := map[int64][]byte{}
		for s := store.NewScan(c, false, nil); ; {
			if err := r.Check(); err != nil {
				return dst, err
			}
			_, doc, ok := s.Next()
			if !ok {
				break
			}
			if id := doc.Lookup("files_id"); bson.Compare(id, r.Arg()) == 0 {
				n, _ := args.NumberOf(doc.Lookup("n"))
				data, _ := doc.Lookup("data").Binary()
				found[n] = data.Data
			}
		}
		for ; ; chunks++ {
			data, ok := found[int64(chunks)]
			if !ok {
				break
			}
			sum.Write(data)
		}
	}
	return bsondoc.Append(dst, "numChunks", chunks, "md5", hex.EncodeToString(sum.Sum(nil))), nil
}

// runHashElement answers with the hash that hashed indexes have of a value.
func runHashElement(r *server.Request, dst []byte) ([]byte, error) {
	key := r.Body.Lookup("key")
	if key.IsZero() {
		key = r.Arg()
	}
	seed, _ := args.NumberOf(r.Body.Lookup("seed"))
	return bsondoc.Append(dst, "key", key, "seed", int32(seed), "out", expr.SeededHash(key, int32(seed))), nil
}

var recordingArgs = &args.Table[args.None]{Name: "startRecordingTraffic", Required: []string{"filename"},
	Fields: map[string]args.Field[args.None]{
		"filename": args.String[args.None](nil), "bufferSize": args.Long[args.None](nil),
		"maxFileSize": args.Long[args.None](nil),
	}}

func parseRecording(r *server.Request) error { return recordingArgs.ParseCommand(r, nil) }

// runNoReplication refuses what only members of a replica set can do, and what clients cannot ask
// of these.
func runNoReplication(r *server.Request, dst []byte) ([]byte, error) {
	if r.Node.Role() == server.Standalone {
		return dst, srverr.New(srverr.ReadConcernMajorityNotEnabled, "'%s' is not supported on standalone nodes.",
			r.Cmd.Name)
	}
	return dst, srverr.New(srverr.CommandNotSupported, "'%s' is only for the members of a sharded cluster", r.Cmd.Name)
}

// runInternalRename is renameCollection with dropTarget for the server's own use.
func runInternalRename(r *server.Request, dst []byte) ([]byte, error) {
	from, err := args.ExtractString(r.Body, "from")
	if err != nil {
		return dst, err
	}
	to, err := args.ExtractString(r.Body, "to")
	if err != nil {
		return dst, err
	}
	return dst, r.Write(func(tx *store.Tx) error {
		c := tx.Coll(from)
		if c == nil {
			return srverr.New(srverr.NamespaceNotFound, "Source collection %s does not exist", from)
		}
		if old := tx.Coll(to); old != nil {
			if err := tx.Drop(old); err != nil {
				return err
			}
		}
		return tx.Rename(c, to, c.Raw)
	})
}

func runVoteIndexBuild(r *server.Request, dst []byte) ([]byte, error) {
	if err := replicated(r); err != nil {
		return dst, err
	}
	return dst, srverr.New(srverr.NamespaceNotFound, "no such index build")
}
