package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What a mongos checks and does because a collection is sharded: which shards a command goes to,
// and what writes may do to the shard key.

// Targeted notes which shards a command goes to, the first of which may be the one that knows a
// transaction's outcome.
func (r *Request) Targeted(shards []int) {
	if len(shards) > 0 {
		r.shards = shards
	}
}

// TargetedShards returns the shards that the command goes to, as far as it has noted them.
func (r *Request) TargetedShards() []int { return r.shards }

// FirstShard returns the shard that a command went to, the primary shard of its database unless it
// is known better.
func (r *Request) FirstShard() int {
	if len(r.shards) > 0 {
		return r.shards[0]
	}
	i, _ := r.Node.data.primaryShard(r.DB)
	return i
}

// reached returns the shards that a command went to.
func (r *Request) reached() []int {
	if len(r.shards) > 0 {
		return r.shards
	}
	return []int{r.FirstShard()}
}

// explainShards turns a shard's explanation of a query into a mongos's: the plan is to send it to
// shards, each of which has its own.
func (r *Request) explainShards(reply bson.Raw, dst []byte) []byte {
	shards := r.reached()
	stage := "SINGLE_SHARD"
	if len(shards) > 1 {
		stage = "SHARD_MERGE"
		if explained, ok := r.Arg().Document(); ok && explained.Lookup("sort").Type != 0 {
			stage = "SHARD_MERGE_SORT"
		}
	}
	list := func(d *bsondoc.Builder, key string, f func(i int, d *bsondoc.Builder)) {
		at, b := bson.BeginArrayElement(d.B, key)
		for n, i := range shards {
			b = append(bson.AppendIndexHeader(b, bson.TypeEmbeddedDocument, n), bsondoc.Build(func(d *bsondoc.Builder) { f(i, d) })...)
		}
		d.B = bson.EndDocument(b, at)
	}
	planner := bson.Raw(reply.Lookup("queryPlanner").Value)
	d := bsondoc.Builder{B: dst}
	d.Doc("queryPlanner", bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendInt32(d.B, "mongosPlannerVersion", 1)
		d.Doc("winningPlan", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("stage", stage)
			list(d, "shards", func(i int, d *bsondoc.Builder) {
				d.Str("shardName", shardName(i)).Str("connectionString", r.Node.data.shardHost(i))
				d.B = bson.AppendRawValue(d.B, "serverInfo", reply.Lookup("serverInfo"))
				d.B = append(d.B, planner.Elements()...)
			})
		}))
	}))
	if stats, ok := reply.Lookup("executionStats").Document(); ok {
		d.Doc("executionStats", bsondoc.Build(func(d *bsondoc.Builder) {
			for k, v := range stats.All() {
				if k != "executionStages" && k != "executionSuccess" {
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}
			d.Doc("executionStages", bsondoc.Build(func(d *bsondoc.Builder) {
				d.Str("stage", stage)
				list(d, "shards", func(i int, d *bsondoc.Builder) {
					d.Str("shardName", shardName(i))
					for _, k := range []string{"executionSuccess", "executionStages"} {
						d.B = bson.AppendRawValue(d.B, k, stats.Lookup(k))
					}
				})
			}))
		}))
	}
	for k, v := range reply.All() {
		if k != "queryPlanner" && k != "executionStats" {
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	}
	return d.B
}

// statsOfShards turns collStats into a mongos's, which says what each shard has.
func (r *Request) statsOfShards(reply bson.Raw, dst []byte) []byte {
	c := r.Node.Store().Latest().Coll(r.Namespace())
	s := sharding.Of(c)
	d := bsondoc.Builder{B: dst}
	if d.Flag("sharded", s != nil); s == nil {
		d.Str("primary", shardName(r.FirstShard()))
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
		for _, doc := range r.PerShard(c, reply) {
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

// cannotBeSharded refuses a sharded collection where a stage takes none.
func cannotBeSharded(st *store.State, ns string) error {
	if sharding.Of(st.Coll(ns)) != nil {
		return srverr.New(28769, "%s cannot be sharded", ns)
	}
	return nil
}

// CheckStages refuses the stages that cannot work on a sharded collection: $out to one, and before
// 5.1 joins from one.
func (r *Request) CheckStages(st *store.State, db string, stages []bson.Raw) error {
	for _, doc := range stages {
		for name, v := range doc.All() {
			var coll string
			switch name {
			case "$out":
				coll, _ = v.StringValue()
				if spec, ok := v.Document(); ok {
					coll = bsondoc.MustString(spec.Lookup("coll"))
					if other, ok := spec.Lookup("db").StringValue(); ok {
						db = other
					}
				}
			case "$lookup", "$graphLookup":
				if spec, ok := v.Document(); ok && !r.Node.cfg.Version.AtLeast(5, 1) {
					coll = bsondoc.MustString(spec.Lookup("from"))
				}
			}
			if coll == "" {
				continue
			}
			if err := cannotBeSharded(st, namespace.Join(db, coll)); err != nil {
				return err
			}
		}
	}
	return nil
}
