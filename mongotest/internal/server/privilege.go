package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Which roles may do what, as the server's manual lists the actions of its built-in roles, and which actions commands need.

func actionSet(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for _, a := range strings.Fields(l) {
			m[a] = true
		}
	}
	return m
}

const (
	readActions      = "changeStream collStats dbHash dbStats find killCursors listIndexes listCollections planCacheRead"
	readWriteActions = readActions + " convertToCapped createCollection dropCollection createIndex dropIndex insert remove renameCollectionSameDB update"
	dbAdminActions   = "bypassDocumentValidation collMod collStats compact convertToCapped createCollection createIndex dbHash dbStats dropCollection dropDatabase " +
		"dropIndex enableProfiler indexStats killCursors listCollections listIndexes planCacheIndexFilter planCacheRead planCacheWrite reIndex " +
		"renameCollectionSameDB storageDetails validate"
	userAdminActions = "changeCustomData changePassword createRole createUser dropRole dropUser grantRole revokeRole setAuthenticationRestriction viewRole viewUser"
	monitorActions   = "connPoolStats getCmdLineOpts getDefaultRWConcern getLog getParameter getShardMap hostInfo inprog listDatabases listSessions listShards " +
		"netstat replSetGetConfig replSetGetStatus serverStatus shardingState top getClusterParameter"
	hostActions    = "applicationMessage closeAllDatabases connPoolSync flushRouterConfig fsync invalidateUserCache killAnyCursor killAnySession killop logRotate resync setParameter shutdown unlock"
	managerActions = "addShard appendOplogNote applicationMessage cleanupOrphaned flushRouterConfig getClusterParameter getDefaultRWConcern listSessions listShards " +
		"removeShard replSetConfigure replSetGetConfig replSetGetStatus replSetStateChange resync setClusterParameter setDefaultRWConcern setFeatureCompatibilityVersion"
	shardingActions = "enableSharding moveChunk splitChunk splitVector clearJumboFlag getShardVersion refineCollectionShardKey reshardCollection"
	backupActions   = "find collStats dbStats listCollections listIndexes"
	restoreActions  = "bypassDocumentValidation collMod convertToCapped createCollection createIndex dropCollection insert remove update renameCollectionSameDB listCollections"
	monitorAnyDB    = "collStats dbStats getShardVersion indexStats useUUID"
)

// grant is what a built-in role may do.
type grant struct {
	onDB    map[string]bool // on the role's own database, or on all if it is one of admin's
	cluster map[string]bool // on the cluster
}

var builtinGrants = map[string]grant{
	"read":                 {onDB: actionSet(readActions)},
	"readWrite":            {onDB: actionSet(readWriteActions)},
	"dbAdmin":              {onDB: actionSet(dbAdminActions)},
	"userAdmin":            {onDB: actionSet(userAdminActions)},
	"dbOwner":              {onDB: actionSet(readWriteActions, dbAdminActions, userAdminActions)},
	"enableSharding":       {onDB: actionSet("enableSharding")},
	"readAnyDatabase":      {onDB: actionSet(readActions), cluster: actionSet("listDatabases")},
	"readWriteAnyDatabase": {onDB: actionSet(readWriteActions), cluster: actionSet("listDatabases")},
	"dbAdminAnyDatabase":   {onDB: actionSet(dbAdminActions), cluster: actionSet("listDatabases applyOps")},
	"userAdminAnyDatabase": {onDB: actionSet(userAdminActions), cluster: actionSet("authSchemaUpgrade invalidateUserCache listDatabases")},
	"clusterMonitor":       {onDB: actionSet(monitorAnyDB), cluster: actionSet(monitorActions)},
	"hostManager":          {onDB: actionSet("killCursors"), cluster: actionSet(hostActions)},
	"clusterManager":       {onDB: actionSet(shardingActions), cluster: actionSet(managerActions)},
	"clusterAdmin":         {onDB: actionSet(monitorAnyDB, shardingActions, "killCursors dropDatabase"), cluster: actionSet(monitorActions, hostActions, managerActions)},
	"backup":               {onDB: actionSet(backupActions), cluster: actionSet("appendOplogNote getParameter listDatabases serverStatus")},
	"restore":              {onDB: actionSet(restoreActions, userAdminActions), cluster: actionSet("getParameter")},
}

// need is an action that a command does: on a collection, on a database (coll is empty), or on the cluster (db is empty).
type need struct{ action, db, coll string }

// may reports whether a user with these roles may do it.
func (d *Data) may(roles []RoleName, n need) bool {
	seen := map[RoleName]bool{}
	for len(roles) > 0 {
		rn := roles[0]
		roles = roles[1:]
		if seen[rn] {
			continue
		}
		seen[rn] = true
		if rn.DB == "admin" && (rn.Role == "root" || rn.Role == "__system") {
			return true
		}
		if g, ok := builtinGrants[rn.Role]; ok && (builtinRoles[rn.Role] || rn.DB == "admin") {
			if g.grants(rn, n) {
				return true
			}
			continue
		}
		d.users.mu.Lock()
		def := d.users.roles[rn]
		d.users.mu.Unlock()
		if def == nil {
			continue
		}
		for _, p := range def.privileges {
			if privilegeCovers(p, n) {
				return true
			}
		}
		roles = append(roles, def.roles...)
	}
	return false
}

func (g grant) grants(rn RoleName, n need) bool {
	switch {
	case n.db == "":
		return g.cluster[n.action]
	case builtinRoles[rn.Role]:
		return rn.DB == n.db && g.onDB[n.action]
	case (n.db == "local" || n.db == "config") && strings.HasSuffix(rn.Role, "AnyDatabase"):
		return false
	}
	return g.onDB[n.action]
}

// privilegeCovers reports whether a privilege of a role that was created covers an action.
func privilegeCovers(p bson.Raw, n need) bool {
	found := false
	for a := range bson.Raw(p.Lookup("actions").Value).Values() {
		s, _ := a.StringValue()
		found = found || s == n.action || s == "anyAction"
	}
	res := bson.Raw(p.Lookup("resource").Value)
	if !found || res.Lookup("anyResource").AsBool() {
		return found
	}
	if n.db == "" {
		return res.Lookup("cluster").AsBool()
	}
	db, ok := res.Lookup("db").StringValue()
	coll, _ := res.Lookup("collection").StringValue()
	return ok && (db == "" || db == n.db) && (coll == "" || coll == n.coll)
}

// freeCommands are open to everybody who has authenticated.
var freeCommands = actionSet(`ping hello isMaster buildInfo connectionStatus saslStart saslContinue authenticate logout endSessions startSession refreshSessions
	killSessions commitTransaction abortTransaction whatsmyuri getLastError getPrevError isdbgrid listCommands features waitForFailPoint configureFailPoint
	killCursors getnonce resetError listDatabases mapReduce testCommand validateDBMetadata`)

// commandActions are the actions that commands need whose actions depend on nothing else: on the collection, the database or the cluster.
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
		"createUser": "createUser", "dropUser": "dropUser", "dropAllUsersFromDatabase": "dropUser", "updateUser": "changePassword", "usersInfo": "viewUser",
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

// needs returns the actions that a command does.
func (r *Request) needs(name string, body bson.Raw) []need {
	coll := ""
	for _, v := range body.All() {
		coll, _ = v.StringValue()
		break
	}
	on := func(action string) need { return need{action, r.DB, coll} }
	switch name {
	case "getMore":
		coll, _ = body.Lookup("collection").StringValue()
		if coll == "$cmd.aggregate" || strings.HasPrefix(coll, "$cmd.") {
			return nil // whoever could open it may go on
		}
	case "update":
		return []need{on("update")}
	case "findAndModify":
		if body.Lookup("remove").AsBool() {
			return []need{on("find"), on("remove")}
		}
		return []need{on("find"), on("update")}
	case "bulkWrite":
		var list []need
		for v := range bson.Raw(body.Lookup("nsInfo").Value).Values() {
			ns, _ := bson.Raw(v.Value).Lookup("ns").StringValue()
			db, name := splitNS(ns)
			list = append(list, need{"insert", db, name})
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
		return []need{on("find")}
	case "renameCollection":
		from, to := coll, mustString(body.Lookup("to"))
		fromDB, fromColl := splitNS(from)
		toDB, toColl := splitNS(to)
		if fromDB == toDB {
			return []need{{"renameCollectionSameDB", fromDB, fromColl}}
		}
		return []need{{"find", fromDB, fromColl}, {"dropCollection", fromDB, fromColl}, {"insert", toDB, toColl}}
	case "usersInfo":
		if u := r.Conn.user; u != nil && r.DB == u.DB && coll == u.Name {
			return nil
		}
	}
	if a, ok := collectionActions[name]; ok {
		return []need{on(a)}
	}
	if a, ok := databaseActions[name]; ok {
		return []need{{action: a, db: r.DB}}
	}
	if a, ok := shardingNeeds[name]; ok {
		db, c := splitNS(coll)
		return []need{{a, db, c}}
	}
	if a, ok := clusterActions[name]; ok {
		return []need{{action: a}}
	}
	if freeCommands[name] {
		return nil
	}
	return []need{{action: name}} // a command of the cluster that is called like its action
}

// stageActions are the actions of the stages that do not read the collection.
var stageActions = map[string]string{"$collStats": "collStats", "$indexStats": "indexStats", "$planCacheStats": "planCacheRead", "$changeStream": "changeStream"}

// pipelineNeeds returns what a pipeline does.
func pipelineNeeds(db, coll string, stages bson.Raw) []need {
	list := []need{{"find", db, coll}}
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
				return mustString(into.Lookup("db")), mustString(into.Lookup("coll"))
			}
			switch name {
			case "$currentOp":
				if own, _ := spec.Lookup("allUsers").Boolean(); own && first {
					list[0] = need{action: "inprog"}
				} else {
					list = list[1:]
				}
			case "$listSessions":
				if all, _ := spec.Lookup("allUsers").Boolean(); all {
					list[0] = need{action: "listSessions"}
				} else {
					list = list[1:]
				}
			case "$listLocalSessions", "$documents":
				list = list[1:]
			case "$collStats", "$indexStats", "$planCacheStats":
				list[0] = need{stageActions[name], db, coll}
			case "$changeStream":
				list = append(list, need{"changeStream", db, coll})
			case "$lookup", "$graphLookup":
				if spec.Lookup("from").Type != 0 {
					d, c := from("from")
					list = append(list, need{"find", d, c})
				}
			case "$unionWith":
				d, c := from("coll")
				list = append(list, need{"find", d, c})
			case "$out":
				d, c := from("coll")
				list = append(list, need{"insert", d, c}, need{"remove", d, c})
			case "$merge":
				d, c := from("into")
				if d == "" {
					d = db
				}
				list = append(list, need{"insert", d, c}, need{"update", d, c})
			}
			first = false
		}
	}
	return list
}

// authorize refuses a command that needs authentication from a client that has none, and one that the client's user may not run.
func (r *Request) authorize() error {
	if !r.Node.cfg.Auth || r.Cmd.NoAuth {
		return nil
	}
	u := r.Conn.user
	if u == nil {
		return srverr.New(srverr.Unauthorized, "command %s requires authentication", r.Cmd.Name)
	}
	for _, n := range r.needs(r.Cmd.Name, r.Body) {
		if r.may(n) || n.action == "createCollection" && r.may(need{"insert", n.db, n.coll}) {
			continue
		}
		return srverr.New(srverr.Unauthorized, "not authorized on %s to execute command %s", r.DB, bsontext.Document(r.Body))
	}
	return nil
}

// may reports whether the client's user may do something, with the roles that the user has now.
func (r *Request) may(n need) bool {
	if !r.Node.cfg.Auth || r.Conn.user == nil {
		return !r.Node.cfg.Auth
	}
	u := r.Node.data.findUser(r.Conn.user.Name, r.Conn.user.DB)
	return u != nil && r.Node.data.may(u.Roles, n)
}
