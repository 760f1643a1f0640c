package account

import (
	"maps"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// Which roles may do what, as the server's manual lists the actions of its built-in roles, and
// which actions commands need.

// ActionSet returns the words of the lists as a set.
func ActionSet(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for _, a := range strings.Fields(l) {
			m[a] = true
		}
	}
	return m
}

const (
	readActions      = "changeStream collStats dbHash dbStats find killCursors listIndexes listCollections listSearchIndexes planCacheRead"
	readWriteActions = readActions + " convertToCapped createCollection dropCollection createIndex dropIndex insert remove renameCollectionSameDB update " +
		"cleanupStructuredEncryptionData compactStructuredEncryptionData " + searchActions
	dbAdminActions = "bypassDocumentValidation collMod collStats compact convertToCapped createCollection createIndex dbHash dbStats dropCollection dropDatabase " +
		"dropIndex enableProfiler indexStats killCursors listCollections listIndexes planCacheIndexFilter planCacheRead planCacheWrite reIndex " +
		"renameCollectionSameDB storageDetails validate listSearchIndexes configureQueryAnalyzer " + searchActions
	searchActions    = "createSearchIndexes dropSearchIndex updateSearchIndex"
	userAdminActions = "changeCustomData changePassword createRole createUser dropRole dropUser grantRole revokeRole setAuthenticationRestriction viewRole viewUser"
	monitorActions   = "checkFreeMonitoringStatus connPoolStats getCmdLineOpts getDefaultRWConcern getLog getParameter getShardMap hostInfo inprog listDatabases listSessions listShards " +
		"netstat replSetGetConfig replSetGetStatus serverStatus shardingState top getClusterParameter " +
		"listClusterCatalog listSampledQueries querySettings queryStatsRead queryStatsReadTransformed shardedDataDistribution"
	hostActions    = "applicationMessage closeAllDatabases compact connPoolSync flushRouterConfig fsync invalidateUserCache killAnyCursor killAnySession killop logRotate resync rotateCertificates setParameter shutdown unlock"
	managerActions = "addShard appendOplogNote applicationMessage cleanupOrphaned flushRouterConfig getClusterParameter getDefaultRWConcern listSessions listShards " +
		"querySettings removeShard replSetConfigure replSetGetConfig replSetGetStatus replSetStateChange resync setClusterParameter setDefaultRWConcern setFeatureCompatibilityVersion setFreeMonitoring"
	shardingActions = "enableSharding moveChunk splitChunk splitVector clearJumboFlag getShardVersion refineCollectionShardKey reshardCollection moveCollection unshardCollection " +
		"analyzeShardKey configureQueryAnalyzer"
	backupActions  = "find collStats dbStats listCollections listIndexes"
	restoreActions = "bypassDocumentValidation collMod convertToCapped createCollection createIndex dropCollection insert remove update renameCollectionSameDB listCollections"
	monitorAnyDB   = "collStats dbStats getShardVersion indexStats useUUID"
)

// grant is what a built-in role may do.
type grant struct {
	onDB    map[string]bool // on the role's own database, or on all if it is one of admin's
	cluster map[string]bool // on the cluster
}

var builtinGrants = map[string]grant{
	"read":                 {onDB: ActionSet(readActions)},
	"readWrite":            {onDB: ActionSet(readWriteActions)},
	"dbAdmin":              {onDB: ActionSet(dbAdminActions)},
	"userAdmin":            {onDB: ActionSet(userAdminActions)},
	"dbOwner":              {onDB: ActionSet(readWriteActions, dbAdminActions, userAdminActions)},
	"enableSharding":       {onDB: ActionSet("enableSharding")},
	"readAnyDatabase":      {onDB: ActionSet(readActions), cluster: ActionSet("listDatabases")},
	"readWriteAnyDatabase": {onDB: ActionSet(readWriteActions), cluster: ActionSet("listDatabases")},
	"dbAdminAnyDatabase":   {onDB: ActionSet(dbAdminActions), cluster: ActionSet("listDatabases applyOps")},
	"userAdminAnyDatabase": {onDB: ActionSet(userAdminActions),
		cluster: ActionSet("authSchemaUpgrade invalidateUserCache listDatabases")},
	"clusterMonitor": {onDB: ActionSet(monitorAnyDB), cluster: ActionSet(monitorActions)},
	"hostManager":    {onDB: ActionSet("killCursors"), cluster: ActionSet(hostActions)},
	"clusterManager": {onDB: ActionSet(shardingActions), cluster: ActionSet(managerActions)},
	"clusterAdmin": {onDB: ActionSet(monitorAnyDB, shardingActions, "killCursors dropDatabase"),
		cluster: ActionSet(monitorActions, hostActions, managerActions)},
	"backup": {onDB: ActionSet(backupActions),
		cluster: ActionSet("appendOplogNote getParameter listDatabases serverStatus")},
	"restore": {onDB: ActionSet(restoreActions, userAdminActions),
		cluster: ActionSet("bypassWriteBlockingMode getParameter setUserWriteBlockMode")},
}

// rootOf are the roles that root has the privileges of, as the manual lists them.
var rootOf = []string{"readWriteAnyDatabase", "dbAdminAnyDatabase", "userAdminAnyDatabase", "clusterAdmin", "restore",
	"backup"}

// BuiltinPrivileges returns the privileges of a role that nobody has to make; nil if it is none.
func BuiltinPrivileges(r Role) (list [][]byte) {
	if !IsBuiltin(r) {
		return nil
	}
	if r.Role == "__system" {
		return [][]byte{privilegeOf(bsondoc.Of("anyResource", true), []string{"anyAction"})}
	}
	names := []string{r.Role}
	if r.Role == "root" {
		names = rootOf
	}
	onDB, cluster := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		maps.Copy(onDB, builtinGrants[name].onDB)
		maps.Copy(cluster, builtinGrants[name].cluster)
	}
	db := r.DB
	if adminRoles[r.Role] && !builtinRoles[r.Role] {
		db = "" // all
	}
	if len(cluster) > 0 {
		list = append(list, privilegeOf(bsondoc.Of("cluster", true), sortedNames(cluster)))
	}
	if len(onDB) > 0 {
		list = append(list, privilegeOf(bsondoc.Of("db", db, "collection", ""), sortedNames(onDB)))
	}
	return list
}

// MergePrivileges returns the privileges with one for each resource, which has the actions of all.
func MergePrivileges(list [][]byte) (merged [][]byte) {
	at := map[string]int{}
	var actions [][]string
	for _, p := range list {
		resource := bson.Raw(bson.Raw(p).Lookup("resource").Value)
		i, ok := at[string(resource)]
		if !ok {
			i = len(merged)
			at[string(resource)] = i
			merged, actions = append(merged, resource), append(actions, nil)
		}
		for a := range bson.Raw(bson.Raw(p).Lookup("actions").Value).Values() {
			actions[i] = append(actions[i], bsondoc.MustString(a))
		}
	}
	for i := range merged {
		merged[i] = privilegeOf(merged[i], actions[i])
	}
	return merged
}

// Need is an action that a command does: on a collection, on a database (coll is empty), or on the
// cluster (db is empty).
type Need struct{ Action, DB, Coll string }

// May reports whether a user with these roles may do it.
func (g *Registry) May(roles []Role, n Need) bool {
	seen := map[Role]bool{}
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
		if b, ok := builtinGrants[rn.Role]; ok && (builtinRoles[rn.Role] || rn.DB == "admin") {
			if b.grants(rn, n) {
				return true
			}
			continue
		}
		g.mu.Lock()
		def := g.roles[rn]
		g.mu.Unlock()
		if def == nil {
			continue
		}
		for _, p := range def.Privileges {
			if privilegeCovers(p, n) {
				return true
			}
		}
		roles = append(roles, def.Roles...)
	}
	return false
}

// privateColls are the collections of the database admin that hold users and roles. The roles that
// go for all collections of a database do not reach them: privateReaders do.
var (
	privateActions = ActionSet("find collStats dbStats listIndexes")
	privateColls   = map[string]bool{"system.users": true, "system.roles": true, "system.version": true}
	privateReaders = map[string]bool{"backup": true, "restore": true, "userAdminAnyDatabase": true}
)

func (g grant) grants(rn Role, n Need) bool {
	switch {
	case n.DB == "":
		return g.cluster[n.Action]
	case n.DB == "admin" && privateColls[n.Coll]:
		return privateReaders[rn.Role] && (privateActions[n.Action] || g.onDB[n.Action])
	case builtinRoles[rn.Role]:
		return rn.DB == n.DB && g.onDB[n.Action]
	case (n.DB == "local" || n.DB == "config") && strings.HasSuffix(rn.Role, "AnyDatabase"):
		return false
	}
	return g.onDB[n.Action]
}

// privilegeCovers reports whether a privilege of a role that was created covers an action.
func privilegeCovers(p bson.Raw, n Need) bool {
	found := false
	for a := range bson.Raw(p.Lookup("actions").Value).Values() {
		s, _ := a.StringValue()
		found = found || s == n.Action || s == "anyAction"
	}
	res := bson.Raw(p.Lookup("resource").Value)
	if !found || res.Lookup("anyResource").AsBool() {
		return found
	}
	if n.DB == "" {
		return res.Lookup("cluster").AsBool()
	}
	db, ok := res.Lookup("db").StringValue()
	coll, _ := res.Lookup("collection").StringValue()
	return ok && (db == "" || db == n.DB) && (coll == "" || coll == n.Coll)
}
