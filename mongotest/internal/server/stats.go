package server

import (
	"os"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// stats serves the aggregation stages that tell about the deployment.
func (e *pipelineEnv) stats(stage string, ns pipeline.Namespace, spec bson.Raw) (pipeline.Iterator, error) {
	r := e.run.r
	c := e.state().Coll(ns.String())
	switch stage {
	case "$collStats":
		if c != nil && c.View && (spec.Lookup("count").Type != 0 || spec.Lookup("storageStats").Type != 0 || spec.Lookup("queryExecStats").Type != 0) {
			return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		}
		if c == nil {
			for k := range spec.All() {
				if k == "count" || k == "storageStats" {
					return nil, srverr.New(40481, "Unable to retrieve %s in $collStats stage: Collection [%s] not found.", k, ns)
				}
			}
		}
		return pipeline.FromSlice(r.perShard(c, r.collStatsDocument(ns.String(), c, spec))), nil
	case "$indexStats":
		var docs []bson.Raw
		if c != nil {
			for i := range c.Indexes() {
				docs = append(docs, r.perShard(c, r.indexStats(&c.Indexes()[i]))...)
			}
		}
		return pipeline.FromSlice(docs), nil
	case "$planCacheStats":
		if c == nil {
			return nil, srverr.New(50933, "collection '%s' does not exist", ns)
		}
		return pipeline.FromSlice(nil), nil
	}
	return r.Node.systemStage(r, stage, spec)
}

// perShard returns what the shards that have a collection yield, each with its name, or on a mongod
// the document as it is.
func (r *Request) perShard(c *store.Coll, doc bson.Raw) []bson.Raw {
	if r.Node.role != Mongos {
		return []bson.Raw{doc}
	}
	counts := map[int]int64{}
	if s := sharding.Of(c); s != nil {
		for _, i := range s.Shards() {
			counts[i] = 0
			if part := c.Part(i); part != nil {
				counts[i] = part.Count()
			}
		}
	} else {
		counts[r.firstShard()] = 0
		if c != nil {
			counts[r.firstShard()] = c.Count()
		}
	}
	var list []bson.Raw
	for i := range r.Node.data.shards {
		if _, ok := counts[i]; !ok {
			continue
		}
		first := true
		list = append(list, bsondoc.Build(func(b *bsondoc.Builder) {
			for k, v := range doc.All() {
				switch k {
				case "count":
					b.B = bsondoc.AppendShortest(b.B, k, counts[i])
				case "host":
					b.Str(k, r.Node.data.shardHost(i))
				default:
					b.B = bson.AppendRawValue(b.B, k, v)
				}
				if first {
					b.Str("shard", shardName(i))
					first = false
				}
			}
		}))
	}
	return list
}

// systemStage serves the stages about operations and sessions.
func (n *Node) systemStage(_ *Request, stage string, _ bson.Raw) (pipeline.Iterator, error) {
	switch stage {
	case "$listLocalSessions", "$listSessions":
		var docs []bson.Raw
		for _, s := range n.data.sessions.All(func(session.ID) bool { return true }) {
			docs = append(docs, s.Document())
		}
		return pipeline.FromSlice(docs), nil
	case "$listCachedAndActiveUsers":
		return pipeline.FromSlice(n.activeUsers()), nil
	case "$currentOp":
		return pipeline.FromSlice(n.CurrentOps()), nil
	}
	return nil, srverr.New(srverr.CommandNotSupported, "%s is not supported here", stage)
}

// collStatsDocument returns what $collStats yields.
func (r *Request) collStatsDocument(ns string, c *store.Coll, spec bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "ns", ns)
	if host, err := os.Hostname(); err == nil {
		doc = bson.AppendString(doc, "host", host)
	}
	doc = bson.AppendDateTime(doc, "localTime", bson.NewDateTime(r.Node.data.Clock.Now()))
	for k := range spec.All() {
		switch k {
		case "count":
			if r.Node.cfg.Version.AtLeast(5, 0) {
				doc = bson.AppendInt64(doc, "count", c.Count())
			} else {
				doc = bsondoc.AppendShortest(doc, "count", c.Count())
			}
		case "storageStats":
			one, d := bson.BeginDocumentElement(doc, "storageStats")
			doc = bson.EndDocument(r.AppendCollStats(d, c, 1), one)
		case "latencyStats":
			one, d := bson.BeginDocumentElement(doc, "latencyStats")
			for _, kind := range []string{"reads", "writes", "commands", "transactions"} {
				sub, x := bson.BeginDocumentElement(d, kind)
				x = bson.AppendInt64(x, "latency", 0)
				d = bson.EndDocument(bson.AppendInt64(x, "ops", 0), sub)
			}
			doc = bson.EndDocument(d, one)
		}
	}
	return bson.EndDocument(doc, at)
}

// indexStats returns an index's document of $indexStats.
func (r *Request) indexStats(ix *store.Index) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "name", ix.Name)
	doc = bson.AppendDocument(doc, "key", ix.Pattern)
	doc = bson.AppendString(doc, "host", r.Node.addr)
	one, doc := bson.BeginDocumentElement(doc, "accesses")
	doc = bson.AppendInt64(doc, "ops", ix.Uses.Load())
	doc = bson.AppendDateTime(doc, "since", bson.NewDateTime(ix.Since))
	doc = bson.EndDocument(doc, one)
	doc = bson.AppendDocument(doc, "spec", ix.Spec)
	return bson.EndDocument(doc, at)
}

// AppendCollStats appends a collection's sizes as collStats shows them, divided by scale.
func (r *Request) AppendCollStats(dst []byte, c *store.Coll, scale int64) []byte {
	v5 := r.Node.cfg.Version.AtLeast(5, 0)
	count, bytes := c.Count(), c.Bytes()
	dst = bsondoc.AppendShortest(dst, "size", bytes/scale)
	dst = bsondoc.AppendShortest(dst, "count", count)
	if count > 0 {
		dst = bsondoc.AppendShortest(dst, "avgObjSize", bytes/count)
	}
	if v5 {
		dst = bsondoc.AppendShortest(dst, "numOrphanDocs", 0)
	}
	dst = bsondoc.AppendShortest(dst, "storageSize", int64(DiskSize(bytes))/scale)
	if v5 {
		dst = bsondoc.AppendShortest(dst, "freeStorageSize", 0)
	}
	dst = bson.AppendBool(dst, "capped", c.Capped)
	if c.Capped {
		dst = bsondoc.AppendShortest(dst, "max", c.Max)
		dst = bsondoc.AppendShortest(dst, "maxSize", c.Size/scale)
		if !v5 {
			dst = bsondoc.AppendShortest(dst, "sleepCount", 0)
			dst = bsondoc.AppendShortest(dst, "sleepMS", 0)
		}
	}
	dst = appendWiredTiger(dst, "wiredTiger", "collection-"+bsondoc.UUIDString(c.UUID))
	dst = bson.AppendInt32(dst, "nindexes", int32(len(c.Indexes())))
	total := int64(0)
	at, sizes := bson.BeginDocumentElement(nil, "indexSizes")
	details, dst := bson.BeginDocumentElement(dst, "indexDetails")
	for i := range c.Indexes() {
		ix := &c.Indexes()[i]
		size := int64(DiskSize(int64(ix.Keys()) * 32))
		total += size
		sizes = bsondoc.AppendShortest(sizes, ix.Name, size/scale)
		dst = appendWiredTiger(dst, ix.Name, "index-"+bsondoc.UUIDString(c.UUID)+"-"+ix.Name)
	}
	dst = bson.EndDocument(dst, details)
	sizes = bson.EndDocument(sizes, at)
	dst = bsondoc.AppendStrings(dst, "indexBuilds", nil)
	dst = bsondoc.AppendShortest(dst, "totalIndexSize", total/scale)
	dst = bsondoc.AppendShortest(dst, "totalSize", (total+int64(DiskSize(bytes)))/scale)
	dst = append(dst, sizes...)
	return bson.AppendInt32(dst, "scaleFactor", int32(scale))
}

// appendWiredTiger appends what the storage engine would tell of a file, as far as there is
// something to tell.
func appendWiredTiger(dst []byte, key, file string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	meta, dst := bson.BeginDocumentElement(dst, "metadata")
	dst = bson.EndDocument(bson.AppendInt32(dst, "formatVersion", 1), meta)
	dst = bson.AppendString(dst, "type", "file")
	dst = bson.AppendString(dst, "uri", "statistics:table:"+file)
	return bson.EndDocument(dst, at)
}

// pageSize is the least that a file on disk takes.
const pageSize = 4096

// DatabaseSize returns what a database would take on disk, roughly.
func DatabaseSize(st *store.State, db string) float64 {
	size := 0.0
	st.Colls(db, func(c *store.Coll) bool {
		size += DiskSize(c.Bytes())
		for range c.Indexes() {
			size += pageSize
		}
		return true
	})
	return max(size, 2*pageSize)
}

// DiskSize returns what so many bytes take, in whole pages.
func DiskSize(bytes int64) float64 { return float64((bytes/pageSize + 1) * pageSize) }

// searchIndexes are the documents of $listSearchIndexes.
func (e *pipelineEnv) searchIndexes(ns pipeline.Namespace, spec bson.Raw) pipeline.Iterator {
	c := e.state().Coll(ns.String())
	if c == nil || c.View {
		return pipeline.FromSlice(nil)
	}
	n := e.run.r.Node
	return pipeline.FromSlice(n.cfg.Search.List(c.UUID, n.addr, spec, n.data.Clock.Now()))
}
