package read

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/store"
)

// leavesShard are the stages that are not done where the documents are, even if one shard has them
// all.
var leavesShard = map[string]bool{"$out": true, "$lookup": true, "$graphLookup": true, "$unionWith": true, "$facet": true, "$collStats": true, "$indexStats": true}

// relay returns how a mongos passes on the cursor of a pipeline that one shard does alone, nil if
// none does. c may be nil.
func relay(r *server.Request, c *store.Coll, ns string, stages []bson.Raw, coll *query.Collation, let bson.Raw, writes bool) (*server.Relay, error) {
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
		name, v := bsondoc.FirstElement(stage)
		if leavesShard[name] {
			return nil, nil
		}
		if i == 0 && name == "$match" {
			filter = v.Value
		}
	}
	f, err := query.ParseFilter(filter, r.FullOptions(ns, coll, let))
	if err != nil || len(s.Target(f, coll == nil)) != 1 {
		return nil, err
	}
	return &server.Relay{NS: ns, Own: true}, nil
}
