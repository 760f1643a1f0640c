package read

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// stats serves the aggregation stages that tell about the deployment.
func (e *pipelineEnv) stats(stage string, ns pipeline.Namespace, spec bson.Raw) (pipeline.Iterator, error) {
	r := e.run.Request
	c := e.state().Coll(ns.String())
	switch stage {
	case "$listClusterCatalog":
		return pipeline.FromSlice(clusterCatalog(r, e.state(), ns.DB, spec)), nil
	case "$listCatalog":
		return pipeline.FromSlice(listCatalog(r, e.state(), ns)), nil
	case "$querySettings":
		return pipeline.FromSlice(querySettings(r, spec.Lookup("showDebugQueryShape").AsBool())), nil
	case "$listSampledQueries":
		if r.Node.OfCluster() || r.Node.Role() == server.Standalone {
			return nil, server.RefuseAnalysis(r, stage)
		}
		of, _ := spec.Lookup("namespace").StringValue()
		var docs []bson.Raw
		for _, x := range r.Node.Data().Sampler().List(of, r.Node.Data().Clock.Now()) {
			docs = append(docs, x.Document())
		}
		return pipeline.FromSlice(docs), nil
	case "$queryStats":
		return pipeline.FromSlice(queryStats(r, spec)), nil
	case "$shardedDataDistribution":
		if !r.Router() {
			return nil, srverr.New(srverr.IllegalOperation, "%s can only be run on a mongos", stage)
		}
		return pipeline.FromSlice(dataDistribution(r, e.state())), nil
	case "$collStats":
		if c != nil && c.View && (spec.Lookup("count").Type != 0 || spec.Lookup("storageStats").Type != 0 ||
			spec.Lookup("queryExecStats").Type != 0) {
			return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		}
		if c == nil {
			if docs, ok := r.Node.SystemDocuments(ns.String()); ok {
				return pipeline.FromSlice([]bson.Raw{collStatsDocument(r, ns.String(), nil, int64(len(docs)), spec)}),
					nil
			}
			for k := range spec.All() {
				if k != "count" && k != "storageStats" && k != "queryExecStats" {
					continue
				}
				if k == "queryExecStats" && !r.Version().AllParsed() {
					return nil, srverr.New(31142, "Unable to retrieve %s in $collStats stage: Collection [%s] not found.", k, ns)
				}
				if r.Version().AtLeast(5, 0) {
					return nil, srverr.New(srverr.NamespaceNotFound,
						"PlanExecutor error during aggregation :: caused by :: Unable to retrieve %s in $collStats stage :: caused by :: Collection [%s] not found.", k, ns)
				}
				return nil, srverr.New(40481, "Unable to retrieve %s in $collStats stage: Collection [%s] not found.",
					k, ns)
			}
		}
		return pipeline.FromSlice(r.PerShard(c, func(part *store.Coll) bson.Raw {
			return collStatsDocument(r, ns.String(), part, documentsOf(r, part, spec), spec)
		})), nil
	case "$indexStats":
		var docs []bson.Raw
		if c != nil {
			for i := range c.Indexes() {
				docs = append(docs,
					r.PerShard(c, func(*store.Coll) bson.Raw { return indexStats(r, &c.Indexes()[i]) })...)
			}
		}
		return pipeline.FromSlice(docs), nil
	case "$planCacheStats":
		if c == nil {
			return nil, srverr.New(50933, "collection '%s' does not exist", ns)
		}
		var docs []bson.Raw
		for _, e := range r.Node.Memory.Cached(c) {
			docs = append(docs, cachedPlan(r, &e))
		}
		return pipeline.FromSlice(docs), nil
	}
	return systemStage(r.Node, r, stage, spec)
}

// cachedPlan is an entry of the plan cache as $planCacheStats shows it.
func cachedPlan(r *server.Request, e *planner.Cached) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		if r.Version().AtLeast(5, 0) {
			d.Str("version", "1")
		}
		d.Doc("createdFromQuery", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Doc("query", bsondoc.OrEmpty(e.Query)).Doc("sort", bsondoc.OrEmpty(e.Sort)).Doc("projection",
				bsondoc.OrEmpty(e.Projection))
			if e.Collation != nil {
				d.Doc("collation", e.Collation)
			}
		}))
		d.Str("queryHash", e.Hash)
		if r.Version().AtLeast(8, 0) {
			d.Str("planCacheShapeHash", e.Hash)
		}
		d.Str("planCacheKey", e.KeyHash).Flag("isActive", e.Active)
		d.B = bson.AppendInt64(d.B, "works", e.Works)
		d.B = bson.AppendDateTime(d.B, "timeOfCreation", bson.NewDateTime(r.Node.Data().Clock.Now()))
		best := e.Trial.Plans[e.Trial.Best[0]]
		d.Doc("cachedPlan", bsondoc.Build(func(d *bsondoc.Builder) { d.B = best.Append(d.B, sortLimit(r), false) }))
		var stats [][]byte
		scores, list := bson.BeginArrayElement(nil, "candidatePlanScores")
		for i, k := range e.Trial.Best {
			s := e.Trial.Plans[k]
			keys, docs := s.Examined()
			stats = append(stats, bsondoc.Build(func(d *bsondoc.Builder) {
				d.B = bsondoc.Append(d.B, "nReturned", int32(s.Advanced), "executionTimeMillisEstimate", int32(0),
					"totalKeysExamined", int32(keys), "totalDocsExamined", int32(docs))
				d.Doc("executionStages",
					bsondoc.Build(func(d *bsondoc.Builder) { d.B = s.Append(d.B, sortLimit(r), true) }))
			}))
			list = bson.AppendDoubleValue(bson.AppendIndexHeader(list, bson.TypeDouble, i), e.Trial.Scores[k])
		}
		d.B = bsondoc.AppendDocuments(d.B, "creationExecStats", stats)
		d.B = append(d.B, bson.EndDocument(list, scores)...)
		d.Flag("indexFilterSet", e.Filtered)
		d.B = bson.AppendInt64(d.B, "estimatedSizeBytes", int64(len(e.Key)+len(e.Query)+2000))
		d.Str("host", r.Node.Addr())
	})
}

// systemStage serves the stages about operations and sessions.
func systemStage(n *server.Node, _ *server.Request, stage string, spec bson.Raw) (pipeline.Iterator, error) {
	switch stage {
	case "$listLocalSessions", "$listSessions":
		var docs []bson.Raw
		wanted := map[[32]byte]bool{}
		if list, ok := spec.Lookup("users").Array(); ok {
			for v := range list.Values() {
				name, _ := bson.Raw(v.Value).Lookup("user").StringValue()
				db, _ := bson.Raw(v.Value).Lookup("db").StringValue()
				wanted[server.UserDigest(name, db)] = true
			}
		}
		for _, s := range n.Data().Sessions().All(func(id session.ID) bool {
			return len(wanted) == 0 || wanted[id.UID]
		}) {
			docs = append(docs, s.Document())
		}
		return pipeline.FromSlice(docs), nil
	case "$listCachedAndActiveUsers":
		return pipeline.FromSlice(n.ActiveUsers()), nil
	case "$currentOp":
		list := n.CurrentOps(spec.Lookup("idleConnections").AsBool(), spec.Lookup("truncateOps").AsBool())
		if v := spec.Lookup("idleSessions"); v.IsZero() || v.AsBool() {
			list = append(list, n.InactiveTransactions()...)
		}
		if spec.Lookup("idleCursors").AsBool() {
			list = append(list, n.IdleCursors()...)
		}
		return pipeline.FromSlice(append(list, n.Data().Sampler().Progress()...)), nil
	}
	return nil, srverr.New(srverr.CommandNotSupported, "%s is not supported here", stage)
}

// documentsOf returns the count of $collStats, which is of buckets in a time series collection.
func documentsOf(r *server.Request, c *store.Coll, spec bson.Raw) int64 {
	switch {
	case c == nil || spec.Lookup("count").IsZero():
		return 0
	case c.TimeSeries:
		return series.Of(c, series.BucketsOf(c), r.Version(), r.Meter()).Coll().Count()
	}
	return c.Count()
}

// collStatsDocument returns what $collStats yields. The collection is nil if it is not stored.
func collStatsDocument(r *server.Request, ns string, c *store.Coll, count int64, spec bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "ns", ns)
	doc = bson.AppendString(doc, "host", r.Node.Addr())
	doc = bson.AppendDateTime(doc, "localTime", bson.NewDateTime(r.Node.Data().Clock.Now()))
	if v := spec.Lookup("latencyStats"); !v.IsZero() {
		one, d := bson.BeginDocumentElement(doc, "latencyStats")
		doc = bson.EndDocument(r.Node.AppendLatencies(d, c, bson.Raw(v.Value).Lookup("histograms").AsBool()), one)
	}
	if v := spec.Lookup("storageStats"); !v.IsZero() {
		scale := int64(1)
		if n, ok := args.NumberOf(bson.Raw(v.Value).Lookup("scale")); ok && n > 0 {
			scale = n
		}
		one, d := bson.BeginDocumentElement(doc, "storageStats")
		if c == nil {
			d, _ = r.AppendSystemStats(d, ns, scale)
		} else {
			d = r.AppendCollStats(d, c, scale)
		}
		doc = bson.EndDocument(d, one)
	}
	if v := spec.Lookup("count"); !v.IsZero() {
		doc = bsondoc.AppendShortest(doc, "count", count)
	}
	if v := spec.Lookup("queryExecStats"); !v.IsZero() && r.Version().AtLeast(4, 4) {
		total, tailable := r.Node.Scans(c)
		doc = bsondoc.Append(doc, "queryExecStats",
			bsondoc.Of("collectionScans", bsondoc.Of("total", total, "nonTailable", total-tailable)))
	}
	return bson.EndDocument(doc, at)
}

// indexStats returns an index's document of $indexStats.
func indexStats(r *server.Request, ix *store.Index) bson.Raw {
	return bsondoc.Of("name", ix.Name, "key", ix.Pattern, "host", r.Node.Addr(),
		"accesses", bsondoc.Of("ops", ix.Uses.Load(), "since", bson.NewDateTime(ix.Since)), "spec", ix.Spec)
}

// searchIndexes are the documents of $listSearchIndexes.
func (e *pipelineEnv) searchIndexes(ns pipeline.Namespace, spec bson.Raw) pipeline.Iterator {
	c := e.state().Coll(ns.String())
	if c == nil || c.View {
		return pipeline.FromSlice(nil)
	}
	n := e.run.Request.Node
	return pipeline.FromSlice(n.Config().Search.List(c.UUID, n.Addr(), spec, n.Data().Clock.Now()))
}
