// Package users has the commands about users and roles. The registry that they change is in package
// account.
package users

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, c := range []*server.Command{
		{Name: "createUser", Needs: needsOfDefinition("createUser"), Run: runCreateUser},
		{Name: "updateUser", Needs: needsOfUpdate, Run: runUpdateUser},
		{Name: "dropUser", Needs: server.OnDB("dropUser"), Run: runDropUser},
		{Name: "dropAllUsersFromDatabase", Needs: server.OnDB("dropUser"), Run: runDropAllUsers},
		{Name: "grantRolesToUser", Needs: needsOfGrants("grantRole"), Run: runGrantRoles},
		{Name: "revokeRolesFromUser", Needs: needsOfGrants("revokeRole"), Run: runGrantRoles},
	} {
		c.WriteConcern, c.Mongos.Config = true, true
		server.Register(c)
	}
	server.Register(&server.Command{Name: "usersInfo", Needs: needsOfUsersInfo, Where: server.OptIn, Mongos: onConfig,
		Run: runUsersInfo})
}

func checkRoles(r *server.Request, list []account.Role) error {
	for _, rn := range list {
		if !r.Node.Data().Accounts().HasRole(rn) {
			return srverr.New(srverr.RoleNotFound, "No role named %s@%s", rn.Role, rn.DB)
		}
	}
	return nil
}

func runCreateUser(r *server.Request, dst []byte) ([]byte, error) {
	a, err := parseUser(r)
	if err != nil {
		return dst, err
	}
	bad := func(text string) ([]byte, error) { return dst, srverr.New(srverr.BadValue, "%s", text) }
	switch {
	case r.DB == "local":
		return bad("Cannot create users in the local database")
	case a.password == nil && r.DB != account.ExternalDB:
		return bad("Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	case a.password != nil && r.DB == account.ExternalDB:
		return bad("Cannot set the password for users defined on the '$external' database")
	case !a.hasRoles:
		return bad("\"createUser\" command requires a \"roles\" array")
	case a.name == "":
		return bad("User document needs 'user' field to be non-empty")
	case a.digested && (a.mechanisms == nil || slices.Contains(a.mechanisms, account.ScramSHA256)):
		return bad("Use of SCRAM-SHA-256 requires undigested passwords")
	}
	if err := checkRoles(r, a.roles); err != nil {
		return dst, err
	}
	d := r.Node.Data()
	if d.Accounts().Find(a.name, r.DB) != nil {
		return dst, srverr.New(51003, "User \"%s@%s\" already exists", a.name, r.DB)
	}
	password := ""
	if a.password != nil {
		password = *a.password
	}
	u, err := account.New(a.name, r.DB, password, a.roles, a.mechanisms)
	if err != nil {
		return dst, err
	}
	u.Custom, u.Restrictions = a.custom, someRestrictions(a.restrictions)
	d.AddUser(u)
	r.NoteChange()
	return dst, nil
}

func runUpdateUser(r *server.Request, dst []byte) ([]byte, error) {
	a, err := parseUser(r)
	if err != nil {
		return dst, err
	}
	if a.password == nil && !a.hasRoles && a.mechanisms == nil && a.custom == nil && a.restrictions == nil {
		return dst, srverr.New(srverr.BadValue, "Must specify at least one field to update in updateUser")
	}
	if a.digested && (a.mechanisms == nil || slices.Contains(a.mechanisms, account.ScramSHA256)) {
		return dst, srverr.New(srverr.BadValue, "Use of SCRAM-SHA-256 requires undigested passwords")
	}
	if err := checkRoles(r, a.roles); err != nil {
		return dst, err
	}
	old := r.Node.Data().Accounts().Find(a.name, r.DB)
	if old == nil {
		return dst, srverr.New(srverr.UserNotFound, "User %s@%s not found", a.name, r.DB)
	}
	u := *old
	if a.password == nil { // there is nothing that another mechanism's credentials could be made of
		for _, m := range a.mechanisms {
			if !slices.Contains(old.Mechanisms, m) {
				return dst, srverr.New(srverr.BadValue, "mechanisms field must be a subset of previously set mechanisms")
			}
		}
	}
	if a.hasRoles {
		u.Roles = a.roles
	}
	if a.custom != nil {
		u.Custom = a.custom
	}
	if a.restrictions != nil {
		u.Restrictions = someRestrictions(a.restrictions)
	}
	if a.mechanisms != nil {
		u.Mechanisms = a.mechanisms
	}
	if a.password != nil {
		if err := u.SetPassword(*a.password); err != nil {
			return dst, err
		}
	}
	r.Node.Data().Accounts().Add(&u)
	r.NoteChange()
	return dst, nil
}

func runDropUser(r *server.Request, dst []byte) ([]byte, error) {
	name, _, err := nameAndArguments(r)
	if err != nil {
		return dst, err
	}
	if r.Node.Data().Accounts().Remove(func(u *account.User) bool { return u.Name == name && u.DB == r.DB }) == 0 {
		return dst, srverr.New(srverr.UserNotFound, "User '%s@%s' not found", name, r.DB)
	}
	r.NoteChange()
	return dst, nil
}

func runDropAllUsers(r *server.Request, dst []byte) ([]byte, error) {
	if _, err := arguments(r); err != nil {
		return dst, err
	}
	n := r.Node.Data().Accounts().Remove(func(u *account.User) bool { return u.DB == r.DB })
	r.NoteChange()
	return appendDropped(r, dst, n), nil
}

// appendDropped appends how many users or roles there were.
func appendDropped(r *server.Request, dst []byte, n int) []byte {
	if r.Version().AtLeast(5, 0) {
		return bson.AppendInt32(dst, "n", int32(n))
	}
	return bson.AppendInt64(dst, "n", int64(n))
}

func runGrantRoles(r *server.Request, dst []byte) ([]byte, error) {
	name, body, err := nameAndArguments(r)
	if err != nil {
		return dst, err
	}
	list, err := grantedRoles(r, body)
	if err != nil {
		return dst, err
	}
	old := r.Node.Data().Accounts().Find(name, r.DB)
	if old == nil {
		return dst, srverr.New(srverr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name, r.DB)
	}
	if err := checkRoles(r, list); err != nil {
		return dst, err
	}
	u := *old
	u.Roles = changedRoles(u.Roles, list, strings.HasPrefix(r.Cmd.Name, "grant"))
	r.Node.Data().Accounts().Add(&u)
	r.NoteChange()
	return dst, nil
}

// changedRoles returns the roles without those of a list, or with them at the end.
func changedRoles(roles, list []account.Role, grant bool) []account.Role {
	roles = slices.DeleteFunc(slices.Clone(roles), func(rn account.Role) bool { return slices.Contains(list, rn) })
	if grant {
		roles = append(roles, list...)
	}
	return roles
}

func runUsersInfo(r *server.Request, dst []byte) ([]byte, error) {
	body, err := arguments(r)
	if err != nil {
		return dst, err
	}
	match, err := userQuery(r, r.Arg(), true)
	if err != nil {
		return dst, err
	}
	privileges, err := args.ExtractBool(body, "showPrivileges", false)
	if err != nil {
		return dst, err
	}
	credentials, err := args.ExtractBool(body, "showCredentials", false)
	if err != nil {
		return dst, err
	}
	restrictions, err := args.ExtractFlag(body, "showAuthenticationRestrictions")
	if err != nil {
		return dst, err
	}
	privileges = privileges || restrictions // both ask for everything about the user
	var filter *query.Filter
	if v := body.Lookup("filter"); !v.IsZero() {
		if v.Type != bson.TypeEmbeddedDocument {
			return dst, srverr.New(srverr.TypeMismatch, "filter must be an Object")
		}
		if filter, err = query.ParseFilter(v.Value, r.FullOptions("admin", nil, nil)); err != nil {
			return dst, err
		}
	}
	if v := r.Arg(); privileges && (filter != nil || isAll(v) || wantsAllDBs(v)) {
		return dst, srverr.New(srverr.IllegalOperation,
			"Privilege or restriction details require exact-match usersInfo queries")
	}
	at, dst := bson.BeginArrayElement(dst, "users")
	i := 0
	list := r.Node.Data().Accounts().List(match)
	if r.Version().AtLeast(5, 0) { // by names, and only then by databases
		slices.SortStableFunc(list, func(a, b *account.User) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, u := range list {
		start, doc := bson.BeginDocument(nil)
		doc = bson.EndDocument(appendUser(r, doc, u, credentials, privileges, restrictions), start)
		if filter != nil {
			if ok, err := filter.Match(doc); err != nil {
				return dst, err
			} else if !ok {
				continue
			}
		}
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), doc...)
		i++
	}
	return bson.EndDocument(dst, at), nil
}

// wantsAllDBs reports whether usersInfo's argument is {forAllDBs: true}.
func wantsAllDBs(v bson.RawValue) bool {
	return v.Type == bson.TypeEmbeddedDocument && bson.Raw(v.Value).Lookup("forAllDBs").AsBool()
}

// userQuery reads usersInfo's argument: a name, a document, 1 for the whole database, or at the top
// an array of names and documents.
func userQuery(r *server.Request, v bson.RawValue, top bool) (func(*account.User) bool, error) {
	if top && isAll(v) {
		return func(u *account.User) bool { return u.DB == r.DB }, nil
	}
	if top && wantsAllDBs(v) {
		return func(*account.User) bool { return true }, nil
	}
	if top && v.Type == bson.TypeArray {
		var any []func(*account.User) bool
		for e := range bson.Raw(v.Value).Values() {
			f, err := userQuery(r, e, false)
			if err != nil {
				return nil, err
			}
			any = append(any, f)
		}
		if any == nil {
			return nil, srverr.New(srverr.BadValue, "$and/$or/$nor must be a nonempty array")
		}
		return func(u *account.User) bool {
			return slices.ContainsFunc(any, func(f func(*account.User) bool) bool { return f(u) })
		}, nil
	}
	name, err := parseName(r, v, "user")
	return func(u *account.User) bool { return u.Name == name.Role && u.DB == name.DB }, err
}

func appendUser(r *server.Request, dst []byte, u *account.User, credentials, privileges, restrictions bool) []byte {
	dst = bson.AppendString(dst, "_id", u.DB+"."+u.Name)
	dst = bson.AppendBinary(dst, "userId", bson.BinaryUUID, u.Id[:])
	dst = bsondoc.Append(dst, "user", u.Name, "db", u.DB)
	if credentials {
		dst = u.AppendCredentials(dst)
	}
	if privileges {
		dst = appendMechanisms(u, dst)
	}
	if u.Custom != nil {
		dst = bson.AppendDocument(dst, "customData", u.Custom)
	}
	dst = account.AppendRoles(dst, "roles", u.Roles)
	if privileges {
		inherited, all := r.Node.Data().Accounts().Inherited(u.Roles)
		dst = account.AppendRoles(dst, "inheritedRoles", inherited)
		dst = bsondoc.AppendDocuments(dst, "inheritedPrivileges", account.MergePrivileges(all))
		dst = appendLists(dst, "inheritedAuthenticationRestrictions",
			r.Node.Data().Accounts().RestrictionsOf(inherited))
		if restrictions && u.Restrictions != nil {
			dst = bson.AppendRawValue(dst, "authenticationRestrictions",
				bson.RawValue{Type: bson.TypeArray, Value: u.Restrictions})
		}
		return dst
	}
	return appendMechanisms(u, dst)
}

func appendMechanisms(u *account.User, dst []byte) []byte {
	if u.DB == account.ExternalDB {
		return bsondoc.AppendStrings(dst, "mechanisms", []string{"external"})
	}
	return bsondoc.AppendStrings(dst, "mechanisms", u.SortedMechanisms())
}
