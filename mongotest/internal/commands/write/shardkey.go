package write

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"strings"
)

// What a mongos checks in writes to sharded collections: the shards that they go to, and what they
// may do to the shard key.

// anyShard reports whether a write of one document may go to several shards, which find out among
// themselves who does it: since 7.1.
func anyShard(r *server.Request) bool { return r.Node.Config().Version.AtLeast(7, 1) }

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

// checkUpdate checks that an update goes to the shards that it may go to.
func checkUpdate(s *sharding.Metadata, r *server.Request, op *updateOp) error {
	shards, exact := s.Target(op.Filter, op.Coll == nil)
	r.Targeted(shards)
	switch {
	case anyShard(r):
		return nil
	case op.findAndModify && !exact:
		return srverr.New(srverr.ShardKeyNotFound, "Query for sharded findAndModify must contain the shard key")
	case op.upsert && !exact:
		return srverr.New(srverr.ShardKeyNotFound, "Failed to target upsert by query :: could not extract exact shard key")
	case op.multi || len(shards) <= 1:
		return nil
	}
	if _, ok := op.Filter.IDEquality(); ok {
		return nil
	}
	if op.update.IsReplacement() {
		if _, err := s.KeyOf(op.u.Value); err == nil && hasKey(s, op.u.Value) {
			return nil
		}
	}
	return srverr.New(srverr.InvalidOptions, "A {multi:false} update on a sharded collection must either contain an exact match on _id or must target a single shard but this update targeted _id (and have the collection default collation) or must target a single shard (and have the simple collation), but this update targeted %d shards. Update request: %s, shard key pattern: %s",
		len(shards), op.requestText(false), bsontext.Document(s.Key))
}

// hasKey reports whether a document has all fields of the shard key.
func hasKey(s *sharding.Metadata, doc bson.Raw) bool {
	for _, f := range s.Fields {
		if doc.Lookup(strings.Split(f.Path, ".")...).Type == 0 {
			return false
		}
	}
	return true
}

// checkDelete does the same for a delete.
func checkDelete(s *sharding.Metadata, r *server.Request, op *deleteOp) error {
	shards, exact := s.Target(op.Filter, op.Coll == nil)
	r.Targeted(shards)
	if anyShard(r) || !op.one || exact {
		return nil
	}
	if op.findAndModify {
		return srverr.New(srverr.ShardKeyNotFound, "Query for sharded findAndModify must contain the shard key")
	}
	if _, ok := op.Filter.IDEquality(); ok {
		return nil
	}
	return srverr.New(srverr.ShardKeyNotFound, "A single delete on a sharded collection must contain an exact match on _id (and have the collection default collation) or contain the shard key (and have the simple collation). Delete request: %s, shard key pattern: %s",
		op.requestText(true), bsontext.Document(s.Key))
}

// checkChange checks that an update leaves the shard key alone, or may change it.
func checkChange(s *sharding.Metadata, r *server.Request, op *updateOp, old, doc bson.Raw) error {
	same := true
	for _, f := range s.Fields {
		path := strings.Split(f.Path, ".")
		same = same && old.Lookup(path...).Equal(doc.Lookup(path...))
	}
	if same {
		return nil
	}
	if _, err := s.KeyOf(doc); err != nil {
		return srverr.New(srverr.NotSingleValueField, "After applying the update to the document {_id: %s , ...}, the shard key was found to be an array or array descendant.", bsontext.Value(doc.Lookup("_id")))
	}
	_, exact := s.Target(op.Filter, op.Coll == nil)
	switch {
	case !exact && !anyShard(r):
		return srverr.New(31025, "Shard key update is not allowed without specifying the full shard key in the query")
	case op.multi:
		return srverr.New(srverr.InvalidOptions, "Multi-update operations are not allowed when updating the shard key field.")
	case !r.HasTxnNumber:
		return srverr.New(srverr.IllegalOperation, "Must run update to shard key field in a multi-statement transaction or with retryWrites: true.")
	}
	return nil
}
