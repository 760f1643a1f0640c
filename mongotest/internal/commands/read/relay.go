package read

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/store"
)

// relay returns how a mongos passes on the cursor of a pipeline that one shard does alone, nil if
// none does. c may be nil.
func relay(r *server.Request, c *store.Coll, ns string, stages []bson.Raw, coll *query.Collation, let bson.Raw,
	writes bool) (*server.Relay, error) {
	route, err := r.Route(c, ns)
	if err != nil {
		return nil, err
	}
	s := route.Table
	if s == nil {
		return &server.Relay{NS: ns, Own: writes}, nil
	}
	filter := bsondoc.OrEmpty(nil)
	for i, stage := range stages {
		s := pipeline.StageOf(pipeline.Namespace{}, stage)
		if s.LeavesShard() {
			return nil, nil
		}
		if i == 0 && s.Name == "$match" {
			filter = s.Spec.Value
		}
	}
	f, err := query.ParseFilter(filter, r.FullOptions(ns, coll, let))
	if err != nil || len(s.Target(f, coll == nil)) != 1 {
		return nil, err
	}
	return &server.Relay{NS: ns, Own: true}, nil
}
