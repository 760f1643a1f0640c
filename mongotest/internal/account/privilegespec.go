package account

import (
	"fmt"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// ParsePrivileges reads the privileges of a role of a database: documents with a resource and
// actions. Only these two are kept, with the actions in order and each once. Servers before 5.0
// (old) say what is wrong with a resource in words of their own.
func ParsePrivileges(list bson.Raw, db string, old bool) ([][]byte, error) {
	failed := func(format string, args ...any) error { return srverr.New(srverr.FailedToParse, format, args...) }
	var privileges [][]byte
	for e := range list.Values() {
		if e.Type != bson.TypeEmbeddedDocument {
			return nil, failed("Elements in privilege arrays must be objects")
		}
		p := bson.Raw(e.Value)
		resource, names := p.Lookup("resource"), p.Lookup("actions")
		switch {
		case resource.IsZero():
			if names.IsZero() || names.Type == bson.TypeArray {
				return nil, failed("missing resource field")
			}
		case resource.Type != bson.TypeEmbeddedDocument && resource.Type != bson.TypeArray:
			return nil, failed("wrong type for 'resource' field, expected Object/Array, found %s",
				bsontext.Element("resource", resource))
		}
		if !names.IsZero() && names.Type != bson.TypeArray {
			return nil, failed("wrong type for 'actions' field, expected vector array, found %s",
				bsontext.Element("actions", names))
		}
		if old {
			if err := checkResourceTypes(resource.Value); err != nil {
				return nil, err
			}
		}
		named, err := actionNames(names.Value)
		if err != nil {
			return nil, err
		}
		if old {
			if err := checkResourceForm(resource.Value); err != nil {
				return nil, err
			}
		}
		if err := checkActions(named); err != nil {
			return nil, err
		}
		if err := checkResource(resource.Value, db); err != nil {
			return nil, err
		}
		privileges = append(privileges, privilegeOf(resource.Value, named))
	}
	return privileges, nil
}

// actionNames returns the names in a list of actions, sorted and each once.
func actionNames(list bson.Raw) ([]string, error) {
	if list == nil || list.IsEmpty() {
		return nil, srverr.New(srverr.FailedToParse, "missing actions field")
	}
	var names []string
	for k, a := range list.All() {
		s, ok := a.StringValue()
		if !ok {
			return nil, srverr.New(srverr.FailedToParse,
				"error parsing element %s of field actions :: caused by :: wrong type for '%s' field, expected string, found %s", k, k, bsontext.Element(k, a))
		}
		names = append(names, s)
	}
	return names, nil
}

// checkActions refuses names that no action has, and tells all of them.
func checkActions(names []string) error {
	var unknown []string
	for _, s := range names {
		if !actions[s] {
			unknown = append(unknown, s)
		}
	}
	if unknown != nil {
		return srverr.New(srverr.FailedToParse, "Unrecognized action privilege strings: %s", strings.Join(unknown, ","))
	}
	return nil
}

// privilegeOf returns a privilege as it is kept.
func privilegeOf(resource bson.Raw, names []string) []byte {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return bsondoc.Build(func(d *bsondoc.Builder) {
		start, b := bson.BeginDocument(bson.AppendHeader(d.B, bson.TypeEmbeddedDocument, "resource"))
		for _, k := range []string{"anyResource", "cluster", "db", "collection"} {
			if v := resource.Lookup(k); !v.IsZero() {
				b = bson.AppendRawValue(b, k, v)
			}
		}
		d.B = bsondoc.AppendStrings(bson.EndDocument(b, start), "actions", names)
	})
}

// checkResourceTypes refuses a resource whose fields have the wrong types.
func checkResourceTypes(doc bson.Raw) error {
	for _, f := range []struct {
		name, expected string
		t              bson.Type
	}{
		{"anyResource", "boolean", bson.TypeBoolean}, {"cluster", "boolean", bson.TypeBoolean},
		{"db", "string", bson.TypeString}, {"collection", "string", bson.TypeString},
	} {
		if v := doc.Lookup(f.name); !v.IsZero() && v.Type != f.t {
			return srverr.New(srverr.FailedToParse, "wrong type for '%s' field, expected %s, found %s", f.name,
				f.expected, bsontext.Element(f.name, v))
		}
	}
	return nil
}

// checkResourceForm refuses a resource that does not name exactly one kind of thing.
func checkResourceForm(doc bson.Raw) error {
	has := func(name string) bool { return !doc.Lookup(name).IsZero() }
	if has("db") != has("collection") {
		return srverr.New(srverr.FailedToParse, "resource must set both db and collection or set neither, but not exactly one.")
	}
	kinds := 0
	for _, name := range []string{"anyResource", "cluster", "db"} {
		if has(name) {
			kinds++
		}
	}
	if kinds != 1 {
		return srverr.New(srverr.FailedToParse,
			"resource must have exactly db and collection set, or have only cluster set  or have only anyResource set")
	}
	for _, name := range []string{"anyResource", "cluster"} {
		if has(name) && !doc.Lookup(name).AsBool() {
			return srverr.New(srverr.FailedToParse, "%s must be true when specified", name)
		}
	}
	return nil
}

// checkResource refuses a resource that is outside of the role's database, unless that is admin.
func checkResource(doc bson.Raw, db string) error {
	_, inDB := doc.Lookup("db").StringValue()
	_, inColl := doc.Lookup("collection").StringValue()
	target, _ := doc.Lookup("db").StringValue()
	everywhere := doc.Lookup("cluster").AsBool() || doc.Lookup("anyResource").AsBool()
	if !everywhere && !(inDB && inColl) {
		return srverr.New(
			srverr.FailedToParse, "resource pattern must include 'db' and 'collection' fields, 'systemBuckets' field, 'cluster' field or 'anyResource' field")
	}
	if db != "admin" && (everywhere || target != db) {
		return srverr.New(srverr.InvalidRoleModification,
			"Roles on the '%s' database cannot be granted privileges that target other databases or the cluster", db)
	}
	return nil
}

// CheckGrants reports why a role cannot be granted others.
func (g *Registry) CheckGrants(to Role, list []Role) error {
	for _, r := range list {
		switch {
		case r == to:
			return srverr.New(srverr.InvalidRoleModification, "Cannot grant role %s to itself.", to)
		case to.DB != "admin" && r.DB != to.DB:
			return srverr.New(srverr.InvalidRoleModification,
				"Roles on the '%s' database cannot be granted roles from other databases", to.DB)
		case !g.HasRole(r):
			return srverr.New(srverr.RoleNotFound, "Cannot grant nonexistent role %s", r)
		case g.reaches(r, to, map[Role]bool{}):
			return srverr.New(srverr.InvalidRoleModification,
				"Granting %s to %s would introduce a cycle in the role graph", r, to)
		}
	}
	return nil
}

// reaches reports whether a role has another one, perhaps by way of others.
func (g *Registry) reaches(from, to Role, seen map[Role]bool) bool {
	def := g.FindRole(from)
	if def == nil || seen[from] {
		return false
	}
	seen[from] = true
	for _, r := range def.Roles {
		if r == to || g.reaches(r, to, seen) {
			return true
		}
	}
	return false
}

// String returns the role as messages show it.
func (r Role) String() string { return fmt.Sprintf("%s@%s", r.Role, r.DB) }

// FindRole returns a role that a client made, nil if there is none of this name.
func (g *Registry) FindRole(r Role) *CustomRole {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roles[r]
}

// Inherited returns the roles that those of a list have, themselves included, each once, and the
// privileges of all.
func (g *Registry) Inherited(list []Role) (roles []Role, privileges [][]byte) {
	seen := map[Role]bool{}
	var walk func([]Role)
	walk = func(list []Role) {
		for _, r := range list {
			if seen[r] {
				continue
			}
			seen[r] = true
			roles = append(roles, r)
			if def := g.FindRole(r); def != nil {
				privileges = append(privileges, def.Privileges...)
				walk(def.Roles)
			} else {
				privileges = append(privileges, BuiltinPrivileges(r)...)
			}
		}
	}
	walk(list)
	return roles, privileges
}

// removeGrantsLocked takes a role that was dropped from all users and roles that had it.
func (g *Registry) removeGrantsLocked(r Role) {
	without := func(list []Role) []Role {
		var rest []Role
		for _, x := range list {
			if x != r {
				rest = append(rest, x)
			}
		}
		return rest
	}
	for k, u := range g.byName {
		v := *u
		v.Roles = without(u.Roles)
		g.byName[k] = &v
	}
	for k, def := range g.roles {
		v := *def
		v.Roles = without(def.Roles)
		g.roles[k] = &v
	}
}

// BuiltinRoles returns the roles that a database has without anybody having made them.
func BuiltinRoles(db string) []Role {
	var list []Role
	for _, name := range sortedNames(builtinRoles) {
		list = append(list, Role{name, db})
	}
	if db == "admin" {
		for _, name := range sortedNames(adminRoles) {
			list = append(list, Role{name, db})
		}
	}
	return list
}

// IsBuiltin reports whether the role is one that nobody has to make.
func IsBuiltin(r Role) bool { return builtinRoles[r.Role] || adminRoles[r.Role] && r.DB == "admin" }

// actions are the privilege actions that a role may name.
var actions = func() map[string]bool {
	m := map[string]bool{}
	for _, a := range []string{
		"find", "insert", "remove", "update", "bypassDocumentValidation", "useUUID", "changeCustomData",
		"changeOwnCustomData",
		"changeOwnPassword", "changePassword", "createCollection", "createIndex", "createRole", "createUser",
		"dropCollection",
		"dropRole", "dropUser", "enableProfiler", "grantRole", "killCursors", "revokeRole",
		"setAuthenticationRestriction",
		"unlock", "viewRole", "viewUser", "authSchemaUpgrade", "cleanupOrphaned", "cpuProfiler", "inprog",
		"invalidateUserCache",
		"killop", "planCacheRead", "planCacheWrite", "storageDetails", "changeStream", "appendOplogNote",
		"replSetConfigure",
		"replSetGetConfig", "replSetGetStatus", "replSetHeartbeat", "replSetStateChange", "resync", "addShard",
		"clearJumboFlag", "enableSharding", "flushRouterConfig", "getShardMap", "getShardVersion", "listShards",
		"moveChunk",
		"removeShard", "shardingState", "splitChunk", "splitVector", "applicationMessage", "closeAllDatabases",
		"collMod",
		"compact", "connPoolSync", "convertToCapped", "dropConnections", "dropDatabase", "dropIndex", "forceUUID",
		"fsync",
		"getDefaultRWConcern", "getParameter", "hostInfo", "logRotate", "reIndex", "renameCollectionSameDB",
		"setDefaultRWConcern",
		"setParameter", "shutdown", "touch", "impersonate", "listSessions", "killAnySession", "collStats",
		"connPoolStats",
		"dbHash", "dbStats", "getCmdLineOpts", "getLog", "indexStats", "listDatabases", "listCollections",
		"listIndexes", "netstat",
		"serverStatus", "validate", "top", "anyAction", "internal", "planCacheIndexFilter", "killAnyCursor",
		"refineCollectionShardKey",
		"reshardCollection", "createSearchIndexes", "dropSearchIndex", "listSearchIndexes", "updateSearchIndex",
		"replSetResizeOplog",
		"compactStructuredEncryptionData", "cleanupStructuredEncryptionData", "getClusterParameter",
		"setClusterParameter",
		"setFeatureCompatibilityVersion", "rotateCertificates", "trafficRecord", "checkFreeMonitoringStatus",
		"setFreeMonitoring",
		"applyOps", "emptycapped", "checkMetadataConsistency", "getDatabaseVersion",
		"setUserWriteBlockMode", "bypassWriteBlockingMode", "moveCollection", "unshardCollection",
		"shardedDataDistribution", "listClusterCatalog", "querySettings", "queryStatsRead",
		"queryStatsReadTransformed", "analyzeShardKey", "configureQueryAnalyzer", "listSampledQueries",
	} {
		m[a] = true
	}
	return m
}()
