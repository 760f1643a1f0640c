package read

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
)

// needsOfAggregate are the privileges for what the pipeline does.
var needsOfAggregate = server.NeedsBy("those of the stages of its pipeline",
	func(r *server.Request, body bson.Raw) (list []account.Need) {
		ns := pipeline.Namespace{DB: r.DB, Coll: bsondoc.MustString(body.Lookup("aggregate"))}
		bypass := body.Lookup("bypassDocumentValidation").AsBool()
		for _, u := range pipeline.Uses(ns, pipeline.StagesIn(body.Lookup("pipeline")), bypass) {
			list = append(list, account.Need{Action: u.Action, DB: u.NS.DB, Coll: u.NS.Coll})
		}
		return list
	})
