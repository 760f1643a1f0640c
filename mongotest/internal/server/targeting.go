package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"strings"
)

// What a mongos checks and does because a collection is sharded: which shards a command goes to,
// and what writes may do to the shard key.

// AnyShard reports whether a write of one document may go to several shards, which find out among
// themselves who does it: since 7.1.
func (r *Request) AnyShard() bool { return r.Version().AtLeast(7, 1) }

// Aim sends a statement to some shards only.
func (op *Selection) Aim(r *Request, shards ...int) {
	op.Targets = shards
	r.Routing.Targeted(shards)
}

// AimAt sends a statement to the shard of a key. An error begins with what the statement wanted.
func (op *Selection) AimAt(r *Request, s *sharding.Metadata, ns string, key []bson.RawValue, want string) error {
	shard, err := s.Place(ns, key, op.Coll == nil)
	if err != nil {
		if want != "" {
			want += " :: caused by :: "
		}
		return srverr.From(err).Prefix(want)
	}
	op.Aim(r, shard)
	return nil
}

// What errors of an upsert's target begin and end with.
const (
	TargetUpsert = "Failed to target upsert by query"
	NoExactKey   = " :: could not extract exact shard key"
)

// TargetMerge finds the shards that $merge updates a document on.
func (op *Selection) TargetMerge(r *Request, c *store.Coll, upsert bool) error {
	x, err := r.Route(c, c.NS)
	s := x.Table
	if err != nil || s == nil {
		return err
	}
	op.Targets = s.Target(op.Filter, op.Coll == nil)
	if key, ok := s.KeyIn(op.Filter); ok {
		return op.AimAt(r, s, c.NS, key, TargetUpsert)
	}
	if upsert && !r.AnyShard() {
		return srverr.New(srverr.ShardKeyNotFound, TargetUpsert+NoExactKey)
	}
	return nil
}

// CheckShardKey checks that an update, of several documents if multi, leaves the shard key of a
// collection alone, or may change it.
func (op *Selection) CheckShardKey(r *Request, c *store.Coll, multi bool, old, doc bson.Raw) error {
	return op.CheckKeyOf(r, sharding.Of(c), multi, old, doc)
}

// CheckKeyOf is CheckShardKey by a collection's metadata, nil if it is not sharded.
func (op *Selection) CheckKeyOf(r *Request, s *sharding.Metadata, multi bool, old, doc bson.Raw) error {
	if s == nil {
		return nil
	}
	same := true
	for _, f := range s.Fields {
		path := strings.Split(f.Path, ".")
		same = same && old.Lookup(path...).Equal(doc.Lookup(path...))
	}
	if same {
		return nil
	}
	if path, ok := s.ArrayAt(doc); ok {
		return srverr.New(srverr.NotSingleValueField,
			"After applying the update to the document, the field '%s' was found to be an array or array descendant.",
			path)
	}
	_, exact := s.KeyIn(op.Filter)
	switch {
	case !exact && !r.AnyShard():
		return srverr.New(31025, "Shard key update is not allowed without specifying the full shard key in the query")
	case multi:
		return srverr.New(srverr.InvalidOptions,
			"Multi-update operations are not allowed when updating the shard key field.")
	case !r.HasTxnNumber:
		return srverr.New(srverr.IllegalOperation,
			"Must run update to shard key field in a multi-statement transaction or with retryWrites: true.")
	}
	return nil
}

// StatsOfShards makes of the reply to collStats that of a mongos, which says what each shard has.
func (r *Request) StatsOfShards(reply bson.Raw, dst []byte) []byte {
	c := r.Node.Store().Latest().Coll(r.Namespace())
	s := sharding.Of(c)
	d := bsondoc.Builder{B: dst}
	if d.Flag("sharded", s != nil); s == nil {
		d.Str("primary", ShardName(r.Routing.FirstShard()))
	}
	for k, v := range reply.All() {
		if k != "wiredTiger" && k != "indexDetails" {
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	}
	chunks := 1
	if s != nil {
		chunks = len(s.Chunks)
	}
	d.B = bson.AppendInt32(d.B, "nchunks", int32(chunks))
	d.Doc("shards", bsondoc.Build(func(d *bsondoc.Builder) {
		scale, _ := reply.Lookup("scaleFactor").AsInt64()
		for _, doc := range r.PerShard(c, func(part *store.Coll) bson.Raw {
			if part == nil {
				return reply
			}
			at, doc := bson.BeginDocument(nil)
			doc = bson.AppendString(doc, "ns", r.Namespace())
			return bson.EndDocument(r.AppendCollStats(doc, part, max(scale, 1)), at)
		}) {
			d.Doc(bsondoc.MustString(doc.Lookup("shard")), bsondoc.Build(func(d *bsondoc.Builder) {
				for k, v := range doc.All() {
					if k != "shard" {
						d.B = bson.AppendRawValue(d.B, k, v)
					}
				}
			}))
		}
	}))
	return d.B
}

// targetDatabase refuses to write into a database that the cluster does not have, as servers before
// 5.0 do.
func (r *Request) targetDatabase(db string) error {
	if r.MapReduce || db == "" || !namespace.ValidDB(db) || r.Version().AtLeast(5, 0) {
		return nil // mapReduce makes it, and the stage itself has something to say of a bad name
	}
	return r.DatabaseKnown(db)
}

// CheckStages refuses the stages that cannot work on a sharded collection, and those that write
// into a database that there is not.
func (r *Request) CheckStages(st *store.State, db string, stages []bson.Raw) error {
	return pipeline.Walk(pipeline.Namespace{DB: db}, stages, func(s pipeline.Stage) error {
		if to, ok := s.Writes(); ok {
			if err := r.targetDatabase(to.DB); err != nil {
				return err
			}
		}
		if ns, ok := s.Unsharded(r.Version()); ok && sharding.Of(st.Coll(ns.String())) != nil {
			return srverr.New(28769, "%s cannot be sharded", ns)
		}
		return nil
	})
}
