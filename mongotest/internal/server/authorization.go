package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/srverr"
)

// Needs is an action on a collection.
func Needs(action, db, coll string) account.Need {
	return account.Need{Action: action, DB: db, Coll: coll}
}

// needs returns the actions that a command needs privileges for.
func (r *Request) needs(name string, body bson.Raw) []account.Need {
	coll := ""
	for _, v := range body.All() {
		coll, _ = v.StringValue()
		break
	}
	on := func(action string) account.Need { return Needs(action, r.DB, coll) }
	switch name {
	case "getMore":
		coll, _ = body.Lookup("collection").StringValue()
		if coll == "$cmd.aggregate" || strings.HasPrefix(coll, "$cmd.") {
			return nil // whoever could open it may go on
		}
	case "update":
		return []account.Need{on("update")}
	case "findAndModify":
		if body.Lookup("remove").AsBool() {
			return []account.Need{on("find"), on("remove")}
		}
		return []account.Need{on("find"), on("update")}
	case "bulkWrite":
		var list []account.Need
		for v := range bson.Raw(body.Lookup("nsInfo").Value).Values() {
			ns, _ := bson.Raw(v.Value).Lookup("ns").StringValue()
			db, name := namespace.Split(ns)
			list = append(list, Needs("insert", db, name))
		}
		return list
	case "aggregate":
		stages := body.Lookup("pipeline")
		if _, ok := body.Lookup("aggregate").StringValue(); !ok {
			coll = ""
		}
		return pipelineNeeds(r.DB, coll, bson.Raw(stages.Value))
	case "explain":
		if inner, ok := body.Lookup("explain").Document(); ok {
			for k := range inner.All() {
				if c := table[k]; c != nil {
					return r.needs(c.Name, inner)
				}
				break
			}
		}
		return []account.Need{on("find")}
	case "renameCollection":
		from, to := coll, bsondoc.MustString(body.Lookup("to"))
		fromDB, fromColl := namespace.Split(from)
		toDB, toColl := namespace.Split(to)
		if fromDB == toDB {
			return []account.Need{Needs("renameCollectionSameDB", fromDB, fromColl)}
		}
		return []account.Need{Needs("find", fromDB, fromColl), Needs("dropCollection", fromDB, fromColl), Needs("insert", toDB, toColl)}
	case "usersInfo":
		if u := r.Conn.user; u != nil && r.DB == u.DB && coll == u.Name {
			return nil
		}
	}
	if a, ok := collectionActions[name]; ok {
		return []account.Need{on(a)}
	}
	if a, ok := databaseActions[name]; ok {
		return []account.Need{{Action: a, DB: r.DB}}
	}
	if a, ok := shardingNeeds[name]; ok {
		db, c := namespace.Split(coll)
		return []account.Need{Needs(a, db, c)}
	}
	if a, ok := clusterActions[name]; ok {
		return []account.Need{{Action: a}}
	}
	if freeCommands[name] {
		return nil
	}
	return []account.Need{{Action: name}} // a command of the cluster that is called like its action
}

// stageActions are the actions of the stages that do not read the collection.
var stageActions = map[string]string{"$collStats": "collStats", "$indexStats": "indexStats", "$planCacheStats": "planCacheRead", "$changeStream": "changeStream"}

// pipelineNeeds returns the actions that a pipeline needs privileges for.
func pipelineNeeds(db, coll string, stages bson.Raw) []account.Need {
	list := []account.Need{Needs("find", db, coll)}
	first := true
	for s := range stages.Values() {
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
				list[0] = Needs(stageActions[name], db, coll)
			case "$changeStream":
				list = append(list, Needs("changeStream", db, coll))
			case "$lookup", "$graphLookup":
				if spec.Lookup("from").Type != 0 {
					d, c := from("from")
					list = append(list, Needs("find", d, c))
				}
			case "$unionWith":
				d, c := from("coll")
				list = append(list, Needs("find", d, c))
			case "$out":
				d, c := from("coll")
				list = append(list, Needs("insert", d, c), Needs("remove", d, c))
			case "$merge":
				d, c := from("into")
				if d == "" {
					d = db
				}
				list = append(list, Needs("insert", d, c), Needs("update", d, c))
			}
			first = false
		}
	}
	return list
}

// authorize refuses a command that needs authentication from a client that has none, and one that
// the client's user may not run.
func (r *Request) authorize() error {
	if !r.Node.cfg.Auth || r.Cmd.NoAuth {
		return nil
	}
	u := r.Conn.user
	if u == nil {
		return srverr.New(srverr.Unauthorized, "command %s requires authentication", r.Cmd.Name)
	}
	for _, n := range r.needs(r.Cmd.Name, r.Body) {
		if r.May(n) || n.Action == "createCollection" && r.May(Needs("insert", n.DB, n.Coll)) {
			continue
		}
		return srverr.New(srverr.Unauthorized, "not authorized on %s to execute command %s", r.DB, bsontext.Document(r.Body))
	}
	return nil
}

// May reports whether the client's user may do something, with the roles that the user has now.
func (r *Request) May(n account.Need) bool {
	if !r.Node.cfg.Auth || r.Conn.user == nil {
		return !r.Node.cfg.Auth
	}
	u := r.Node.data.accounts.Find(r.Conn.user.Name, r.Conn.user.DB)
	return u != nil && r.Node.data.accounts.May(u.Roles, n)
}

// freeCommands need no privilege: every authenticated user may run them.
var freeCommands = account.ActionSet(`ping hello isMaster buildInfo connectionStatus saslStart saslContinue authenticate logout endSessions startSession refreshSessions
	killSessions commitTransaction abortTransaction whatsmyuri getLastError getPrevError isdbgrid listCommands features waitForFailPoint configureFailPoint
	killCursors getnonce resetError listDatabases mapReduce testCommand validateDBMetadata`)

// commandActions are the actions that commands need whose actions depend on nothing else: on the
// collection, the database or the cluster.
var (
	collectionActions = map[string]string{
		"find": "find", "getMore": "find", "count": "find", "distinct": "find", "insert": "insert", "delete": "remove", "listIndexes": "listIndexes",
		"collStats": "collStats", "dataSize": "find", "create": "createCollection", "createIndexes": "createIndex", "drop": "dropCollection",
		"dropIndexes": "dropIndex", "reIndex": "reIndex", "collMod": "collMod", "convertToCapped": "convertToCapped", "compact": "compact",
		"validate": "validate", "planCacheClear": "planCacheWrite", "createSearchIndexes": "createIndex", "listSearchIndexes": "listIndexes",
		"dropSearchIndex": "dropIndex", "updateSearchIndex": "createIndex",
	}
	databaseActions = map[string]string{
		"listCollections": "listCollections", "dbStats": "dbStats", "dbHash": "dbHash", "dropDatabase": "dropDatabase", "profile": "enableProfiler",
		"_mergeAuthzCollections": "createUser", "createUser": "createUser", "dropUser": "dropUser", "dropAllUsersFromDatabase": "dropUser", "updateUser": "changePassword", "usersInfo": "viewUser",
		"grantRolesToUser": "grantRole", "revokeRolesFromUser": "revokeRole", "createRole": "createRole", "dropRole": "dropRole",
		"dropAllRolesFromDatabase": "dropRole", "rolesInfo": "viewRole", "updateRole": "revokeRole", "grantPrivilegesToRole": "grantRole",
		"revokePrivilegesFromRole": "revokeRole", "grantRolesToRole": "grantRole", "revokeRolesFromRole": "revokeRole",
	}
	clusterActions = map[string]string{
		"currentOp": "inprog", "killOp": "killop", "fsync": "fsync", "fsyncUnlock": "unlock", "killAllSessions": "killAnySession",
		"killAllSessionsByPattern": "killAnySession", "replSetReconfig": "replSetConfigure", "replSetInitiate": "replSetConfigure",
		"replSetStepDown": "replSetStateChange", "replSetStepUp": "replSetStateChange", "replSetFreeze": "replSetStateChange",
		"replSetMaintenance": "replSetStateChange", "balancerStart": "enableSharding", "balancerStop": "enableSharding", "balancerStatus": "enableSharding",
		"addShardToZone": "enableSharding", "removeShardFromZone": "enableSharding",
	}
	// shardingNeeds are the actions of commands whose value is a whole namespace.
	shardingNeeds = map[string]string{
		"enableSharding": "enableSharding", "shardCollection": "enableSharding", "split": "splitChunk", "moveChunk": "moveChunk", "moveRange": "moveChunk",
		"mergeChunks": "moveChunk", "movePrimary": "moveChunk", "refineCollectionShardKey": "refineCollectionShardKey",
		"reshardCollection": "reshardCollection", "unshardCollection": "reshardCollection", "getShardVersion": "getShardVersion",
	}
)
