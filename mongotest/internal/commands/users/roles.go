package users

import (
	"bytes"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "createRole", Needs: needsOfDefinition("createRole"), Run: runCreateRole},
		{Name: "updateRole", Needs: needsOfDefinition("revokeRole"), Run: runUpdateRole},
		{Name: "dropRole", Needs: server.OnDB("dropRole"), Run: runDropRole},
		{Name: "dropAllRolesFromDatabase", Needs: server.OnDB("dropRole"), Run: runDropAllRoles},
		{Name: "grantPrivilegesToRole", Needs: needsOfGrants("grantRole"), Run: runChangePrivileges},
		{Name: "revokePrivilegesFromRole", Needs: needsOfGrants("revokeRole"), Run: runChangePrivileges},
		{Name: "grantRolesToRole", Needs: needsOfGrants("grantRole"), Run: runChangeRoles},
		{Name: "revokeRolesFromRole", Needs: needsOfGrants("revokeRole"), Run: runChangeRoles},
	} {
		c.WriteConcern, c.Mongos.Config = true, true
		server.Register(c)
	}
	server.Register(&server.Command{Name: "rolesInfo", Needs: server.OnDB("viewRole"), Where: server.OptIn,
		Mongos: onConfig, Run: runRolesInfo})
	server.Register(&server.Command{Name: "_getUserCacheGeneration", AdminOnly: true, Needs: server.Internal,
		Where: server.Anywhere, Run: runCacheGeneration})
}

// onConfig is for commands about what the config servers keep.
var onConfig = server.OnMongos{Config: true}

// roleArgs are the arguments of createRole and updateRole.
type roleArgs struct {
	role                    account.Role
	privileges              [][]byte
	roles                   []account.Role
	hasPrivileges, hasRoles bool
	restrictions            bson.Raw // nil: not given
}

func parseRole(r *server.Request) (a roleArgs, err error) {
	name, body, err := nameAndArguments(r)
	if err != nil {
		return a, err
	}
	a.role = account.Role{Role: name, DB: r.DB}
	privileges, err := args.ExtractArray(body, "privileges")
	if err != nil {
		return a, err
	}
	list, err := args.ExtractArray(body, "roles")
	if err != nil {
		return a, err
	}
	if a.hasPrivileges = privileges != nil; a.hasPrivileges {
		if a.privileges, err = account.ParsePrivileges(privileges, r.DB,
			!r.Version().AtLeast(5, 0)); err != nil {
			return a, err
		}
	}
	if a.hasRoles = list != nil; a.hasRoles {
		if a.roles, err = parseRoles(r, list); err != nil {
			return a, err
		}
	}
	restrictions, err := args.ExtractArray(body, "authenticationRestrictions")
	if err != nil {
		return a, err
	}
	if restrictions != nil {
		a.restrictions, err = parseRestrictions(restrictions, "'authenticationRestrictions'")
	}
	return a, err
}

func runCreateRole(r *server.Request, dst []byte) ([]byte, error) {
	a, err := parseRole(r)
	if err != nil {
		return dst, err
	}
	bad := func(text string) ([]byte, error) { return dst, srverr.New(srverr.BadValue, "%s", text) }
	switch {
	case a.role.Role == "":
		return bad("Role name must be non-empty")
	case r.DB == "local":
		return bad("Cannot create roles in the local database")
	case r.DB == account.ExternalDB:
		return bad("Cannot create roles in the $external database")
	case account.IsBuiltin(a.role):
		return bad("Cannot create roles with the same name as a built-in role")
	case !a.hasPrivileges:
		return bad("\"createRole\" command requires a \"privileges\" array")
	case !a.hasRoles:
		return bad("\"createRole\" command requires a \"roles\" array")
	}
	accounts := r.Node.Data().Accounts()
	if err := accounts.CheckGrants(a.role, a.roles); err != nil {
		return dst, err
	}
	if accounts.HasRole(a.role) {
		return dst, srverr.New(51002, "Role \"%s\" already exists", a.role)
	}
	accounts.AddRole(&account.CustomRole{Name: a.role, Roles: a.roles, Privileges: a.privileges,
		Restrictions: someRestrictions(a.restrictions)})
	r.NoteChange()
	return dst, nil
}

func runUpdateRole(r *server.Request, dst []byte) ([]byte, error) {
	a, err := parseRole(r)
	if err != nil {
		return dst, err
	}
	if !a.hasPrivileges && !a.hasRoles && a.restrictions == nil {
		return dst, srverr.New(srverr.BadValue,
			"updateRole command requires at least one of \"privileges\" or \"roles\" to be specified")
	}
	return dst, changeRole(r, a.role, func(def *account.CustomRole) error {
		if a.hasRoles {
			if err := r.Node.Data().Accounts().CheckGrants(a.role, a.roles); err != nil {
				return err
			}
			def.Roles = a.roles
		}
		if a.hasPrivileges {
			def.Privileges = a.privileges
		}
		if a.restrictions != nil {
			def.Restrictions = someRestrictions(a.restrictions)
		}
		return nil
	})
}

// someRestrictions returns restrictions as they are kept: an empty list is none.
func someRestrictions(list bson.Raw) bson.Raw {
	if list.IsEmpty() {
		return nil
	}
	return list
}

// appendLists appends an array of arrays.
func appendLists(dst []byte, key string, lists []bson.Raw) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, l := range lists {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeArray, i), l...)
	}
	return bson.EndDocument(dst, at)
}

// changeRole changes a role that a client made.
func changeRole(r *server.Request, name account.Role, change func(*account.CustomRole) error) error {
	if account.IsBuiltin(name) {
		return srverr.New(srverr.InvalidRoleModification, "%s is a built-in role and cannot be modified.", name)
	}
	old := r.Node.Data().Accounts().FindRole(name)
	if old == nil {
		return srverr.New(srverr.RoleNotFound, "No role named %s", name)
	}
	def := *old
	if err := change(&def); err != nil {
		return err
	}
	r.Node.Data().Accounts().AddRole(&def)
	r.NoteChange()
	return nil
}

func runDropRole(r *server.Request, dst []byte) ([]byte, error) {
	name, _, err := nameAndArguments(r)
	if err != nil {
		return dst, err
	}
	role := account.Role{Role: name, DB: r.DB}
	if account.IsBuiltin(role) {
		return dst, srverr.New(srverr.InvalidRoleModification, "%s is a built-in role and cannot be modified.", role)
	}
	if r.Node.Data().Accounts().DropRoles(func(rn account.Role) bool { return rn == role }) == 0 {
		return dst, srverr.New(srverr.RoleNotFound, "No role named %s", role)
	}
	r.NoteChange()
	return dst, nil
}

func runDropAllRoles(r *server.Request, dst []byte) ([]byte, error) {
	if _, err := arguments(r); err != nil {
		return dst, err
	}
	n := r.Node.Data().Accounts().DropRoles(func(rn account.Role) bool { return rn.DB == r.DB })
	r.NoteChange()
	return appendDropped(r, dst, n), nil
}

func runChangePrivileges(r *server.Request, dst []byte) ([]byte, error) {
	name, body, err := nameAndArguments(r)
	if err != nil {
		return dst, err
	}
	list, err := args.ExtractArray(body, "privileges")
	switch {
	case err != nil:
		return dst, err
	case list == nil:
		return dst, args.Missing("privileges")
	}
	privileges, err := account.ParsePrivileges(list, r.DB, !r.Version().AtLeast(5, 0))
	if err != nil {
		return dst, err
	}
	if len(privileges) == 0 {
		return dst, srverr.New(srverr.BadValue, "%s command requires a non-empty \"privileges\" array", r.Cmd.Name)
	}
	return dst, changeRole(r, account.Role{Role: name, DB: r.DB}, func(def *account.CustomRole) error {
		def.Privileges = slices.Clone(def.Privileges)
		for _, p := range privileges {
			def.Privileges = changePrivilege(def.Privileges, p, r.Cmd.Name == "grantPrivilegesToRole")
		}
		return nil
	})
}

// changePrivilege adds the actions of a privilege to those on its resource, or takes them away.
func changePrivilege(list [][]byte, p bson.Raw, grant bool) [][]byte {
	resource := p.Lookup("resource")
	for i, old := range list {
		if !bytes.Equal(bson.Raw(old).Lookup("resource").Value, resource.Value) {
			continue
		}
		var actions []string
		have := stringSet(bson.Raw(old).Lookup("actions"))
		change := stringSet(p.Lookup("actions"))
		for _, a := range have {
			if grant || !slices.Contains(change, a) {
				actions = append(actions, a)
			}
		}
		for _, a := range change {
			if grant && !slices.Contains(have, a) {
				actions = append(actions, a)
			}
		}
		if actions == nil {
			return slices.Delete(list, i, i+1)
		}
		slices.Sort(actions)
		list[i] = privilegeOf(resource, actions)
		return list
	}
	if grant {
		list = append(list, p)
	}
	return list
}

func privilegeOf(resource bson.RawValue, actions []string) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, "resource", resource)
		d.B = bsondoc.AppendStrings(d.B, "actions", actions)
	})
}

func stringSet(v bson.RawValue) (list []string) {
	for e := range bson.Raw(v.Value).Values() {
		s, _ := e.StringValue()
		list = append(list, s)
	}
	return list
}

func runChangeRoles(r *server.Request, dst []byte) ([]byte, error) {
	name, body, err := nameAndArguments(r)
	if err != nil {
		return dst, err
	}
	list, err := grantedRoles(r, body)
	if err != nil {
		return dst, err
	}
	role := account.Role{Role: name, DB: r.DB}
	return dst, changeRole(r, role, func(def *account.CustomRole) error {
		grant := r.Cmd.Name == "grantRolesToRole"
		if grant {
			if err := r.Node.Data().Accounts().CheckGrants(role, list); err != nil {
				return err
			}
		}
		def.Roles = changedRoles(def.Roles, list, grant)
		return nil
	})
}

func runCacheGeneration(r *server.Request, dst []byte) ([]byte, error) {
	return bson.AppendObjectID(dst, "cacheGeneration", r.Node.ProcessID()), nil
}

func runRolesInfo(r *server.Request, dst []byte) ([]byte, error) {
	body, err := arguments(r)
	if err != nil {
		return dst, err
	}
	roles, err := askedRoles(r, body)
	if err != nil {
		return dst, err
	}
	privileges := false
	if v := body.Lookup("showPrivileges"); !v.IsZero() {
		if v.Type != bson.TypeBoolean && !v.IsNumber() {
			return dst, srverr.New(srverr.FailedToParse,
				"Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string 'asUserFragment', given: %s", bsontext.Element("showPrivileges", v))
		}
		privileges = v.AsBool()
	}
	restrictions, err := args.ExtractFlag(body, "showAuthenticationRestrictions")
	if err != nil {
		return dst, err
	}
	accounts := r.Node.Data().Accounts()
	at, dst := bson.BeginArrayElement(dst, "roles")
	for i, rn := range roles {
		def := accounts.FindRole(rn)
		builtin := def == nil
		if builtin {
			def = &account.CustomRole{Name: rn, Privileges: account.BuiltinPrivileges(rn)}
		}
		inherited, inheritedPrivileges := accounts.Inherited(def.Roles)
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bsondoc.Append(d, "role", rn.Role, "db", rn.DB, "isBuiltin", builtin)
		d = account.AppendRoles(d, "roles", def.Roles)
		d = account.AppendRoles(d, "inheritedRoles", inherited)
		if privileges {
			own := def.Privileges
			if !r.Version().AtLeast(5, 0) { // it shows the graph of roles that it has, later ones their documents
				own = account.MergePrivileges(own)
			}
			d = bsondoc.AppendDocuments(d, "privileges", own)
			d = bsondoc.AppendDocuments(d, "inheritedPrivileges",
				account.MergePrivileges(append(slices.Clone(own), inheritedPrivileges...)))
		}
		if restrictions {
			own := accounts.RestrictionsOf([]account.Role{rn})
			d = appendLists(d, "authenticationRestrictions", own)
			d = appendLists(d, "inheritedAuthenticationRestrictions",
				append(own, accounts.RestrictionsOf(inherited)...))
		}
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}

// askedRoles returns the roles that rolesInfo asks for and that there are.
func askedRoles(r *server.Request, body bson.Raw) ([]account.Role, error) {
	builtin, err := args.ExtractBool(body, "showBuiltinRoles", false)
	if err != nil {
		return nil, err
	}
	accounts := r.Node.Data().Accounts()
	var asked []account.Role
	switch v := r.Arg(); {
	case isAll(v):
		for _, def := range accounts.ListRoles(func(rn account.Role) bool { return rn.DB == r.DB }) {
			asked = append(asked, def.Name)
		}
		if builtin {
			asked = append(asked, account.BuiltinRoles(r.DB)...)
		}
	case v.Type == bson.TypeArray:
		asked, err = parseRoles(r, v.Value)
	default:
		asked = make([]account.Role, 1)
		asked[0], err = parseName(r, v, "role")
	}
	return slices.DeleteFunc(asked, func(rn account.Role) bool { return !accounts.HasRole(rn) }), err
}
