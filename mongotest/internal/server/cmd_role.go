package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "createRole", WriteConcern: true, Run: runCreateRole})
	register(&Command{Name: "dropRole", WriteConcern: true, Run: runDropRole})
	register(&Command{Name: "dropAllRolesFromDatabase", WriteConcern: true, Run: runDropAllRoles})
	register(&Command{Name: "rolesInfo", Where: OptIn, Run: runRolesInfo})
}

func runCreateRole(r *Request, dst []byte) ([]byte, error) {
	name, ok := r.Arg().StringValue()
	if !ok {
		return dst, wrongFieldType("createRole", "string", r.Arg())
	}
	rn := account.Role{Role: name, DB: r.DB}
	if account.BuiltinRoles[name] || account.AdminRoles[name] && r.DB == "admin" {
		return dst, srverr.New(srverr.BadValue, "Cannot create roles with the same name as a built-in role")
	}
	privileges, roles := r.Body.Lookup("privileges"), r.Body.Lookup("roles")
	for _, f := range []struct {
		name string
		v    bson.RawValue
	}{{"privileges", privileges}, {"roles", roles}} {
		if f.v.Type != bson.TypeArray {
			return dst, srverr.New(srverr.BadValue, "\"createRole\" command requires a \"%s\" array", f.name)
		}
	}
	list, err := parseRoles(roles, r.DB)
	if err != nil {
		return dst, err
	}
	if err := r.checkRoles(list); err != nil {
		return dst, err
	}
	def := &account.CustomRole{Name: rn, Roles: list}
	for p := range bson.Raw(privileges.Value).Values() {
		for a := range bson.Raw(bson.Raw(p.Value).Lookup("actions").Value).Values() {
			if s, _ := a.StringValue(); !actions[s] {
				return dst, srverr.New(srverr.FailedToParse, "Unrecognized action privilege strings: %s", s)
			}
		}
		def.Privileges = append(def.Privileges, slices.Clone(p.Value))
	}
	accounts := &r.Node.data.accounts
	if accounts.HasRole(rn) {
		return dst, srverr.New(51002, "Role \"%s@%s\" already exists", name, r.DB)
	}
	accounts.AddRole(def)
	r.noted()
	return dst, nil
}

// actions are the privilege actions that a role may name.
var actions = func() map[string]bool {
	m := map[string]bool{}
	for _, a := range []string{
		"find", "insert", "remove", "update", "bypassDocumentValidation", "useUUID", "changeCustomData", "changeOwnCustomData",
		"changeOwnPassword", "changePassword", "createCollection", "createIndex", "createRole", "createUser", "dropCollection",
		"dropRole", "dropUser", "enableProfiler", "grantRole", "killCursors", "revokeRole", "setAuthenticationRestriction",
		"unlock", "viewRole", "viewUser", "authSchemaUpgrade", "cleanupOrphaned", "cpuProfiler", "inprog", "invalidateUserCache",
		"killop", "planCacheRead", "planCacheWrite", "storageDetails", "changeStream", "appendOplogNote", "replSetConfigure",
		"replSetGetConfig", "replSetGetStatus", "replSetHeartbeat", "replSetStateChange", "resync", "addShard",
		"clearJumboFlag", "enableSharding", "flushRouterConfig", "getShardMap", "getShardVersion", "listShards", "moveChunk",
		"removeShard", "shardingState", "splitChunk", "splitVector", "applicationMessage", "closeAllDatabases", "collMod",
		"compact", "connPoolSync", "convertToCapped", "dropConnections", "dropDatabase", "dropIndex", "forceUUID", "fsync",
		"getDefaultRWConcern", "getParameter", "hostInfo", "logRotate", "reIndex", "renameCollectionSameDB", "setDefaultRWConcern",
		"setParameter", "shutdown", "touch", "impersonate", "listSessions", "killAnySession", "collStats", "connPoolStats",
		"dbHash", "dbStats", "getCmdLineOpts", "getLog", "indexStats", "listDatabases", "listCollections", "listIndexes", "netstat",
		"serverStatus", "validate", "top", "anyAction", "internal",
	} {
		m[a] = true
	}
	return m
}()

func runDropRole(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if r.Node.data.accounts.DropRoles(func(rn account.Role) bool { return rn.Role == name && rn.DB == r.DB }) == 0 {
		return dst, srverr.New(srverr.RoleNotFound, "No role named %s@%s", name, r.DB)
	}
	r.noted()
	return dst, nil
}

func runDropAllRoles(r *Request, dst []byte) ([]byte, error) {
	n := r.Node.data.accounts.DropRoles(func(rn account.Role) bool { return rn.DB == r.DB })
	r.noted()
	return bson.AppendInt64(dst, "n", int64(n)), nil
}

func runRolesInfo(r *Request, dst []byte) ([]byte, error) {
	name, one := r.Arg().StringValue()
	db := r.DB
	if doc := bson.Raw(r.Arg().Value); r.Arg().Type == bson.TypeEmbeddedDocument {
		name, one = doc.Lookup("role").StringValue()
		db, _ = doc.Lookup("db").StringValue()
	}
	privileges := r.Body.Lookup("showPrivileges").AsBool()
	found := r.Node.data.accounts.ListRoles(func(rn account.Role) bool { return rn.DB == db && (!one || rn.Role == name) })
	at, dst := bson.BeginArrayElement(dst, "roles")
	for i, def := range found {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendString(d, "role", def.Name.Role)
		d = bson.AppendString(d, "db", def.Name.DB)
		d = bson.AppendBool(d, "isBuiltin", false)
		d = appendRoles(d, "roles", def.Roles)
		d = appendRoles(d, "inheritedRoles", def.Roles)
		if privileges {
			for _, key := range []string{"privileges", "inheritedPrivileges"} {
				list, e := bson.BeginArrayElement(d, key)
				for j, p := range def.Privileges {
					e = append(bson.AppendIndexHeader(e, bson.TypeEmbeddedDocument, j), p...)
				}
				d = bson.EndDocument(e, list)
			}
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}
