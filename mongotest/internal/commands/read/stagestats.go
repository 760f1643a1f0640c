package read

import (
	"os"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
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
	case "$collStats":
		if c != nil && c.View && (spec.Lookup("count").Type != 0 || spec.Lookup("storageStats").Type != 0 || spec.Lookup("queryExecStats").Type != 0) {
			return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
		}
		if c == nil {
			if docs, ok := r.Node.SystemDocuments(ns.String()); ok {
				return pipeline.FromSlice([]bson.Raw{collStatsDocument(r, ns.String(), nil, int64(len(docs)), spec)}), nil
			}
			for k := range spec.All() {
				if k == "count" || k == "storageStats" {
					return nil, srverr.New(40481, "Unable to retrieve %s in $collStats stage: Collection [%s] not found.", k, ns)
				}
			}
		}
		return pipeline.FromSlice(r.PerShard(c, func(part *store.Coll) bson.Raw {
			return collStatsDocument(r, ns.String(), part, countOf(part), spec)
		})), nil
	case "$indexStats":
		var docs []bson.Raw
		if c != nil {
			for i := range c.Indexes() {
				docs = append(docs, r.PerShard(c, func(*store.Coll) bson.Raw { return indexStats(r, &c.Indexes()[i]) })...)
			}
		}
		return pipeline.FromSlice(docs), nil
	case "$planCacheStats":
		if c == nil {
			return nil, srverr.New(50933, "collection '%s' does not exist", ns)
		}
		return pipeline.FromSlice(nil), nil
	}
	return systemStage(r.Node, r, stage, spec)
}

// systemStage serves the stages about operations and sessions.
func systemStage(n *server.Node, _ *server.Request, stage string, spec bson.Raw) (pipeline.Iterator, error) {
	switch stage {
	case "$listLocalSessions", "$listSessions":
		var docs []bson.Raw
		for _, s := range n.Data().Sessions().All(func(session.ID) bool { return true }) {
			docs = append(docs, s.Document())
		}
		return pipeline.FromSlice(docs), nil
	case "$listCachedAndActiveUsers":
		return pipeline.FromSlice(n.ActiveUsers()), nil
	case "$currentOp":
		list := n.CurrentOps(spec.Lookup("idleConnections").AsBool())
		if v := spec.Lookup("idleSessions"); v.IsZero() || v.AsBool() {
			list = append(list, n.InactiveTransactions()...)
		}
		if spec.Lookup("idleCursors").AsBool() {
			list = append(list, n.IdleCursors()...)
		}
		return pipeline.FromSlice(list), nil
	}
	return nil, srverr.New(srverr.CommandNotSupported, "%s is not supported here", stage)
}

func countOf(c *store.Coll) int64 {
	if c == nil {
		return 0
	}
	return c.Count()
}

// collStatsDocument returns what $collStats yields. The collection is nil if it is not stored.
func collStatsDocument(r *server.Request, ns string, c *store.Coll, count int64, spec bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "ns", ns)
	if host, err := os.Hostname(); err == nil {
		doc = bson.AppendString(doc, "host", host)
	}
	doc = bson.AppendDateTime(doc, "localTime", bson.NewDateTime(r.Node.Data().Clock.Now()))
	for k, v := range spec.All() {
		switch k {
		case "count":
			if r.Node.Config().Version.AtLeast(5, 0) {
				doc = bson.AppendInt64(doc, "count", count)
			} else {
				doc = bsondoc.AppendShortest(doc, "count", count)
			}
		case "storageStats":
			scale := int64(1)
			if n, ok := bson.Raw(v.Value).Lookup("scale").AsInt64(); ok && n > 0 {
				scale = n
			}
			one, d := bson.BeginDocumentElement(doc, "storageStats")
			if c == nil {
				d, _ = r.AppendSystemStats(d, ns, scale)
			} else {
				d = r.AppendCollStats(d, c, scale)
			}
			doc = bson.EndDocument(d, one)
		case "latencyStats":
			one, d := bson.BeginDocumentElement(doc, "latencyStats")
			doc = bson.EndDocument(r.Node.AppendLatencies(d, c), one)
		}
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
