package read

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

func needsOfAggregate(r *server.Request, body bson.Raw) []account.Need {
	coll, _ := body.Lookup("aggregate").StringValue()
	return pipelineNeeds(r.DB, coll, body)
}

// stageActions are the actions of the stages that do not read the collection.
var stageActions = map[string]string{"$collStats": "collStats", "$indexStats": "indexStats", "$planCacheStats": "planCacheRead", "$changeStream": "changeStream"}

// pipelineNeeds returns the actions that a pipeline needs privileges for.
func pipelineNeeds(db, coll string, body bson.Raw) []account.Need {
	list := []account.Need{account.Need{Action: "find", DB: db, Coll: coll}}
	first := true
	for s := range bson.Raw(body.Lookup("pipeline").Value).Values() {
		for name, v := range bson.Raw(s.Value).All() {
			spec := bson.Raw(v.Value)
			from := func(key string) (string, string) {
				if c, ok := v.StringValue(); ok {
					return db, c
				}
				if c, ok := spec.Lookup(key).StringValue(); ok {
					if other, ok := spec.Lookup("db").StringValue(); ok {
						return other, c
					}
					return db, c
				}
				into := bson.Raw(spec.Lookup(key).Value)
				return bsondoc.MustString(into.Lookup("db")), bsondoc.MustString(into.Lookup("coll"))
			}
			switch name {
			case "$currentOp":
				if own, _ := spec.Lookup("allUsers").Boolean(); own && first {
					list[0] = account.Need{Action: "inprog"}
				} else {
					list = list[1:]
				}
			case "$listSessions":
				if all, _ := spec.Lookup("allUsers").Boolean(); all {
					list[0] = account.Need{Action: "listSessions"}
				} else {
					list = list[1:]
				}
			case "$listLocalSessions", "$documents":
				list = list[1:]
			case "$collStats", "$indexStats", "$planCacheStats":
				list[0] = account.Need{Action: stageActions[name], DB: db, Coll: coll}
			case "$changeStream":
				list = append(list, account.Need{Action: "changeStream", DB: db, Coll: coll})
			case "$lookup", "$graphLookup":
				if spec.Lookup("from").Type != 0 {
					d, c := from("from")
					list = append(list, account.Need{Action: "find", DB: d, Coll: c})
				}
			case "$unionWith":
				d, c := from("coll")
				list = append(list, account.Need{Action: "find", DB: d, Coll: c})
			case "$out":
				d, c := from("coll")
				list = append(list, server.Privileges(d+"."+c, server.Bypassing(body, "insert", "remove")...)...)
			case "$merge":
				d, c := from("into")
				if d == "" {
					d = db
				}
				list = append(list, server.Privileges(d+"."+c, server.Bypassing(body, "insert", "update")...)...)
			}
			first = false
		}
	}
	return list
}
