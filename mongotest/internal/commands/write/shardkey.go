package write

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
)

// What a mongos checks in writes to sharded collections: the shards that they go to, and what they
// may do to the shard key.

// requestText shows a statement in an error.
func (op *updateOp) requestText(remove bool) string {
	return bsontext.Document(bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("q", op.Q)
		if remove {
			d.B = bson.AppendInt32(d.B, "limit", 1)
		} else {
			d.B = bson.AppendRawValue(d.B, "u", op.u)
		}
		if op.Hint.Type != 0 {
			d.B = bson.AppendRawValue(d.B, "hint", op.Hint)
		}
		if !remove {
			d.Flag("multi", op.multi).Flag("upsert", op.upsert)
		}
		if op.Collation != nil {
			d.Doc("collation", op.Collation)
		}
	}))
}

// saysID reports whether the statement is about one _id, compared as the collection does.
func (op *updateOp) saysID() bool {
	id, ok := op.Filter.Exact([]string{"_id"})
	if !ok {
		return false
	}
	switch id[0].Type {
	case bson.TypeString, bson.TypeEmbeddedDocument:
		return op.Collation == nil || op.Coll == nil
	}
	return true
}

// targetReplacement is what errors of a replacement's target begin with.
const targetReplacement = "Failed to target update by replacement document"

// checkUpdate finds the shards that an update goes to, and refuses it if it must go to one only and
// does not say to which.
func checkUpdate(s *sharding.Metadata, r *server.Request, op *updateOp, ns string) error {
	key, exact := s.KeyIn(op.Filter)
	switch {
	case exact && op.findAndModify:
		return op.AimAt(r, s, ns, key, "")
	case exact && op.upsert:
		return op.AimAt(r, s, ns, key, server.TargetUpsert)
	case r.AnyShard():
	case op.findAndModify:
		return srverr.New(srverr.ShardKeyNotFound, "Query for sharded findAndModify must contain the shard key")
	case op.upsert:
		return srverr.New(srverr.ShardKeyNotFound, server.TargetUpsert+server.NoExactKey)
	}
	shards := s.Target(op.Filter, op.Coll == nil)
	op.Aim(r, shards...)
	switch {
	case r.AnyShard() || len(shards) <= 1:
		return nil
	case op.update.IsReplacement():
		key, err := s.KeyOf(op.u.Value)
		if err != nil {
			return srverr.New(srverr.ShardKeyNotFound, targetReplacement+server.NoExactKey)
		}
		return op.AimAt(r, s, ns, key, targetReplacement)
	case op.multi || op.saysID():
		return nil
	}
	return srverr.New(
		srverr.InvalidOptions, "A {multi:false} update on a sharded collection must either contain an exact match on _id or must target a single shard but this update targeted _id (and have the collection default collation) or must target a single shard (and have the simple collation), but this update targeted %d shards. Update request: %s, shard key pattern: %s",
		len(shards), op.requestText(false), bsontext.Document(s.Key))
}

// checkDelete does the same for a delete.
func checkDelete(s *sharding.Metadata, r *server.Request, op *deleteOp, ns string) error {
	if key, exact := s.KeyIn(op.Filter); exact {
		if err := op.AimAt(r, s, ns, key, ""); err == nil || op.findAndModify {
			return err
		}
	}
	op.Aim(r, s.Target(op.Filter, op.Coll == nil)...)
	switch {
	case r.AnyShard() || !op.one:
		return nil
	case op.findAndModify:
		return srverr.New(srverr.ShardKeyNotFound, "Query for sharded findAndModify must contain the shard key")
	case op.saysID():
		return nil
	}
	return srverr.New(
		srverr.ShardKeyNotFound, "A single delete on a sharded collection must contain an exact match on _id (and have the collection default collation) or contain the shard key (and have the simple collation). Delete request: %s, shard key pattern: %s",
		op.requestText(true), bsontext.Document(s.Key))
}
