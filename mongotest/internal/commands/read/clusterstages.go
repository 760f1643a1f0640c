package read

// Stages about the collections of the whole deployment, and the shards that have them.

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/store"
)

// databasesOf are the databases that a stage tells about which runs on db: all, if that is admin.
func databasesOf(st *store.State, db string) []string {
	if db != "admin" {
		return []string{db}
	}
	names := append(st.Databases(), "admin", "config", "local")
	slices.Sort(names)
	return slices.Compact(names)
}

// clusterCatalog are the documents of $listClusterCatalog: the collections of the database, those
// of all in the database admin. On a mongod none is sharded.
func clusterCatalog(r *server.Request, st *store.State, db string, spec bson.Raw) (docs []bson.Raw) {
	for _, db := range databasesOf(st, db) {
		st.Colls(db, func(c *store.Coll) bool {
			docs = append(docs, catalogEntry(r, db, server.DescribeCollection(c, false), c, spec))
			return true
		})
		r.Node.DescribeSystemCollections(db, false, func(doc bson.Raw) {
			docs = append(docs, catalogEntry(r, db, doc, nil, spec))
		})
	}
	return docs
}

// catalogEntry makes an entry of listCollections one of $listClusterCatalog; c is nil for what is
// not stored.
func catalogEntry(r *server.Request, db string, doc bson.Raw, c *store.Coll, spec bson.Raw) bson.Raw {
	var meta *sharding.Metadata
	if c != nil {
		meta = sharding.Of(c)
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range doc.All() {
			if k != "name" {
				d.B = bson.AppendRawValue(d.B, k, v)
				continue
			}
			d.Str("ns", db+"."+bsondoc.MustString(v)).Str("db", db)
		}
		d.Flag("sharded", meta != nil)
		if meta != nil {
			d.Doc("shardKey", meta.Key)
		}
		if spec.Lookup("shards").AsBool() {
			d.B = bsondoc.AppendStrings(d.B, "shards", shardsOf(r, c, meta))
		}
		if meta != nil && spec.Lookup("balancingConfiguration").AsBool() {
			b := meta.Balancing
			d.Flag("balancingEnabled", !b.Off)
			d.Doc("balancingEnabledReason", bsondoc.Of("enableBalancing", !b.Off, "allowMigrations", true))
			d.Flag("autoMergingEnabled", !b.NoMerging)
			d.B = bson.AppendInt32(d.B, "chunkSize", b.Size())
		}
	})
}

// listCatalog are the documents of $listCatalog: what the catalogue keeps of a collection, or of
// all in every database.
func listCatalog(r *server.Request, st *store.State, ns pipeline.Namespace) (docs []bson.Raw) {
	list := func(c *store.Coll) bool {
		if c.View || c.TimeSeries {
			docs = append(docs, viewInCatalog(c))
		}
		if !c.View && (!c.TimeSeries || series.ListsBuckets(r.Version())) {
			docs = append(docs, r.PerShard(c, collInCatalog)...)
		}
		return true
	}
	if ns.Coll != "" {
		if c := st.Coll(ns.String()); c != nil {
			list(c)
		}
		return docs
	}
	for _, db := range databasesOf(st, ns.DB) {
		st.Colls(db, list)
	}
	return docs
}

// viewInCatalog is the entry of a view, or of a time series collection, which is one of its
// buckets.
func viewInCatalog(c *store.Coll) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("db", c.DB).Str("name", c.Name)
		if c.View {
			d.Str("type", "view")
		} else {
			d.Str("type", "timeseries")
		}
		d.Str("ns", c.NS).Str("_id", c.NS)
		if !c.View {
			d.Str("viewOn", series.BucketsName(c))
		}
		for k, v := range c.Raw.All() {
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	})
}

// collInCatalog is the entry of a collection that is stored.
func collInCatalog(c *store.Coll) bson.Raw {
	name, uuid, options := c.Name, c.UUID, c.Raw
	if c.TimeSeries {
		name, uuid = series.BucketsName(c), series.BucketsUUID(c)
		options, _ = series.DescribeBuckets(c, false).Lookup("options").Document()
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		ns := namespace.Join(c.DB, name)
		d.Str("db", c.DB).Str("name", name).Str("type", "collection")
		d.Doc("md", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("ns", ns)
			d.Doc("options", bsondoc.Build(func(d *bsondoc.Builder) {
				d.B = bson.AppendBinary(d.B, "uuid", bson.BinaryUUID, uuid[:])
				for k, v := range options.All() {
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}))
			var indexes [][]byte
			for i := range c.Indexes() {
				indexes = append(indexes, bsondoc.Of("spec", c.Indexes()[i].Spec, "ready", true))
			}
			d.B = bsondoc.AppendDocuments(d.B, "indexes", indexes)
		}))
		d.Doc("idxIdent", bsondoc.Build(func(d *bsondoc.Builder) {
			for i := range c.Indexes() {
				d.Str(c.Indexes()[i].Name, "index-"+bsondoc.UUIDString(uuid)+"-"+c.Indexes()[i].Name)
			}
		}))
		d.Str("ns", ns).Str("ident", "collection-"+bsondoc.UUIDString(uuid))
	})
}

// shardsOf names the shards that have something of a collection; none if it is not in a cluster.
func shardsOf(r *server.Request, c *store.Coll, meta *sharding.Metadata) (names []string) {
	switch {
	case !r.Router() || c == nil:
	case meta == nil:
		names = append(names, server.ShardName(c.Shard()))
	default:
		for _, i := range meta.Shards() {
			names = append(names, server.ShardName(i))
		}
	}
	return names
}

// dataDistribution are the documents of $shardedDataDistribution: what each shard has of each
// sharded collection, and what it has left of migrations.
func dataDistribution(r *server.Request, st *store.State) (docs []bson.Raw) {
	steps := r.Meter()
	sharded := func(c *store.Coll) bool {
		meta := sharding.Of(c)
		if meta == nil {
			return true
		}
		var shards [][]byte
		for i := range r.Node.Data().Shards() {
			part := c.Part(i)
			if part == nil && !slices.Contains(meta.Shards(), i) {
				continue
			}
			var owned, orphans, ownedBytes, orphanBytes int64
			if part != nil {
				for scan := store.NewScan(part, false, nil); ; {
					_, doc, ok := scan.Next()
					if !ok {
						break
					}
					steps.Do(1)
					if meta.ShardOf(doc) == i {
						owned, ownedBytes = owned+1, ownedBytes+int64(len(doc))
					} else {
						orphans, orphanBytes = orphans+1, orphanBytes+int64(len(doc))
					}
				}
			}
			shards = append(shards, bsondoc.Of("shardName", server.ShardName(i), "numOrphanedDocs", orphans,
				"numOwnedDocuments", owned, "ownedSizeBytes", ownedBytes, "orphanedSizeBytes", orphanBytes))
		}
		docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("ns", c.NS)
			d.B = bsondoc.AppendDocuments(d.B, "shards", shards)
		}))
		return true
	}
	for _, db := range st.Databases() {
		st.Colls(db, sharded)
	}
	return docs
}
