package server

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "createUser", WriteConcern: true, Run: runCreateUser})
	register(&Command{Name: "updateUser", WriteConcern: true, Run: runUpdateUser})
	register(&Command{Name: "dropUser", WriteConcern: true, Run: runDropUser})
	register(&Command{Name: "dropAllUsersFromDatabase", WriteConcern: true, Run: runDropAllUsers})
	register(&Command{Name: "usersInfo", Where: OptIn, Run: runUsersInfo})
	register(&Command{Name: "grantRolesToUser", WriteConcern: true, Run: runGrantRoles})
	register(&Command{Name: "revokeRolesFromUser", WriteConcern: true, Run: runGrantRoles})
}

// noted makes a change outside of the store count as a write.
func (r *Request) noted() {
	if r.Node.role == Standalone {
		return
	}
	ts := r.Node.data.Clock.Tick()
	r.Node.data.Wrote(ts)
	r.Wrote(ts)
}

func wrongFieldType(name, want string, v bson.RawValue) error {
	return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name, want, bsontext.TypeName(v.Type))
}

// userArgs are the arguments of createUser and updateUser.
type userArgs struct {
	name       string
	password   *string
	roles      []account.Role
	hasRoles   bool
	mechanisms []string
	digested   bool
	custom     []byte
}

func (r *Request) parseUser() (a userArgs, err error) {
	var ok bool
	if a.name, ok = r.Arg().StringValue(); !ok {
		return a, wrongFieldType(r.Cmd.Name, "string", r.Arg())
	}
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch k {
		case "pwd":
			s, ok := v.StringValue()
			if !ok {
				return a, wrongFieldType(k, "string", v)
			}
			if s == "" {
				return a, srverr.New(srverr.BadValue, "User passwords must not be empty")
			}
			a.password = &s
		case "roles":
			if a.roles, err = parseRoles(v, r.DB); err != nil {
				return a, err
			}
			a.hasRoles = true
		case "customData":
			if v.Type != bson.TypeEmbeddedDocument {
				return a, wrongFieldType(k, "object", v)
			}
			a.custom = append([]byte(nil), v.Value...)
		case "digestPassword":
			a.digested = !v.AsBool()
		case "authenticationRestrictions":
			if v.Type != bson.TypeArray {
				return a, srverr.New(srverr.BadValue, "authenticationRestrictions must be an array")
			}
		case "mechanisms":
			if v.Type != bson.TypeArray {
				return a, srverr.New(srverr.UnsupportedFormat, "mechanisms field must be an array")
			}
			for e := range bson.Raw(v.Value).Values() {
				m, _ := e.StringValue()
				if m != account.ScramSHA1 && m != account.ScramSHA256 {
					return a, srverr.New(srverr.BadValue, "Unknown auth mechanism '%s'", m)
				}
				a.mechanisms = append(a.mechanisms, m)
			}
			if a.mechanisms == nil {
				return a, srverr.New(srverr.UnsupportedFormat, "mechanisms field must not be empty")
			}
		default:
			if !r.generic(k) {
				return a, srverr.New(srverr.BadValue, "\"%s\" is not a valid argument to %s", k, r.Cmd.Name)
			}
		}
	}
	return a, nil
}

func parseRoles(v bson.RawValue, db string) ([]account.Role, error) {
	if v.Type != bson.TypeArray {
		return nil, wrongFieldType("roles", "array", v)
	}
	var list []account.Role
	for e := range bson.Raw(v.Value).Values() {
		switch e.Type {
		case bson.TypeString:
			s, _ := e.StringValue()
			list = append(list, account.Role{Role: s, DB: db})
		case bson.TypeEmbeddedDocument:
			var rn account.Role
			for _, f := range []struct {
				name string
				to   *string
			}{{"role", &rn.Role}, {"db", &rn.DB}} {
				v := bson.Raw(e.Value).Lookup(f.name)
				s, ok := v.StringValue()
				if v.IsZero() {
					return nil, srverr.New(srverr.NoSuchKey, "Missing expected field \"%s\"", f.name)
				}
				if !ok {
					return nil, wrongFieldType(f.name, "string", v)
				}
				*f.to = s
			}
			list = append(list, rn)
		default:
			return nil, srverr.New(srverr.BadValue, "User and role names must be either strings or objects")
		}
	}
	return list, nil
}

func (r *Request) checkRoles(list []account.Role) error {
	for _, rn := range list {
		if !r.Node.data.accounts.HasRole(rn) {
			return srverr.New(srverr.RoleNotFound, "No role named %s@%s", rn.Role, rn.DB)
		}
	}
	return nil
}

func runCreateUser(r *Request, dst []byte) ([]byte, error) {
	a, err := r.parseUser()
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
	if err := r.checkRoles(a.roles); err != nil {
		return dst, err
	}
	d := r.Node.data
	if d.accounts.Find(a.name, r.DB) != nil {
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
	u.Custom = a.custom
	d.AddUser(u)
	r.noted()
	return dst, nil
}

func runUpdateUser(r *Request, dst []byte) ([]byte, error) {
	a, err := r.parseUser()
	if err != nil {
		return dst, err
	}
	if a.password == nil && !a.hasRoles && a.mechanisms == nil && a.custom == nil {
		return dst, srverr.New(srverr.BadValue, "Must specify at least one field to update in updateUser")
	}
	if err := r.checkRoles(a.roles); err != nil {
		return dst, err
	}
	old := r.Node.data.accounts.Find(a.name, r.DB)
	if old == nil {
		return dst, srverr.New(srverr.UserNotFound, "User %s@%s not found", a.name, r.DB)
	}
	u := *old
	if a.hasRoles {
		u.Roles = a.roles
	}
	if a.custom != nil {
		u.Custom = a.custom
	}
	if a.mechanisms != nil {
		u.Mechanisms = a.mechanisms
	}
	if a.password != nil {
		if err := u.SetPassword(*a.password); err != nil {
			return dst, err
		}
	}
	r.Node.data.accounts.Add(&u)
	r.noted()
	return dst, nil
}

func runDropUser(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	if r.Node.data.accounts.Remove(func(u *account.User) bool { return u.Name == name && u.DB == r.DB }) == 0 {
		return dst, srverr.New(srverr.UserNotFound, "User '%s@%s' not found", name, r.DB)
	}
	r.noted()
	return dst, nil
}

func runDropAllUsers(r *Request, dst []byte) ([]byte, error) {
	n := r.Node.data.accounts.Remove(func(u *account.User) bool { return u.DB == r.DB })
	r.noted()
	return bson.AppendInt64(dst, "n", int64(n)), nil
}

func runGrantRoles(r *Request, dst []byte) ([]byte, error) {
	name, _ := r.Arg().StringValue()
	list, err := parseRoles(r.Body.Lookup("roles"), r.DB)
	if err != nil {
		return dst, err
	}
	old := r.Node.data.accounts.Find(name, r.DB)
	if old == nil {
		return dst, srverr.New(srverr.UserNotFound, "Could not find user \"%s\" for db \"%s\"", name, r.DB)
	}
	if err := r.checkRoles(list); err != nil {
		return dst, err
	}
	u := *old
	u.Roles = slices.DeleteFunc(slices.Clone(u.Roles), func(rn account.Role) bool { return slices.Contains(list, rn) })
	if strings.HasPrefix(r.Cmd.Name, "grant") {
		u.Roles = append(u.Roles, list...)
	}
	r.Node.data.accounts.Add(&u)
	r.noted()
	return dst, nil
}

func runUsersInfo(r *Request, dst []byte) ([]byte, error) {
	match, err := r.userQuery(r.Arg())
	if err != nil {
		return dst, err
	}
	credentials := r.Body.Lookup("showCredentials").AsBool()
	privileges := r.Body.Lookup("showPrivileges").AsBool()
	at, dst := bson.BeginArrayElement(dst, "users")
	for i, u := range r.Node.data.accounts.List(match) {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = appendUser(u, d, credentials, privileges)
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at), nil
}

// userQuery reads usersInfo's argument: a name, a document, an array of both, or 1 for the whole database.
func (r *Request) userQuery(v bson.RawValue) (func(*account.User) bool, error) {
	switch v.Type {
	case bson.TypeString:
		name, _ := v.StringValue()
		return func(u *account.User) bool { return u.Name == name && u.DB == r.DB }, nil
	case bson.TypeEmbeddedDocument:
		doc := bson.Raw(v.Value)
		if doc.Lookup("forAllDBs").AsBool() {
			return func(*account.User) bool { return true }, nil
		}
		name, _ := doc.Lookup("user").StringValue()
		db, _ := doc.Lookup("db").StringValue()
		return func(u *account.User) bool { return u.Name == name && u.DB == db }, nil
	case bson.TypeArray:
		var any []func(*account.User) bool
		for e := range bson.Raw(v.Value).Values() {
			f, err := r.userQuery(e)
			if err != nil {
				return nil, err
			}
			any = append(any, f)
		}
		return func(u *account.User) bool {
			return slices.ContainsFunc(any, func(f func(*account.User) bool) bool { return f(u) })
		}, nil
	}
	if !v.IsNumber() {
		return nil, srverr.New(srverr.BadValue, "User and role names must be either strings or objects")
	}
	return func(u *account.User) bool { return u.DB == r.DB }, nil
}

func appendUser(u *account.User, dst []byte, credentials, privileges bool) []byte {
	dst = bson.AppendString(dst, "_id", u.DB+"."+u.Name)
	dst = bson.AppendBinary(dst, "userId", bson.BinaryUUID, u.Id[:])
	dst = bson.AppendString(dst, "user", u.Name)
	dst = bson.AppendString(dst, "db", u.DB)
	if credentials {
		at, d := bson.BeginDocumentElement(dst, "credentials")
		for _, m := range u.SortedMechanisms() {
			c := u.Creds[m]
			inner, e := bson.BeginDocumentElement(d, m)
			e = bson.AppendInt32(e, "iterationCount", int32(c.Iterations))
			e = bson.AppendString(e, "salt", bsondoc.Base64String(c.Salt))
			e = bson.AppendString(e, "storedKey", bsondoc.Base64String(c.StoredKey))
			e = bson.AppendString(e, "serverKey", bsondoc.Base64String(c.ServerKey))
			d = bson.EndDocument(e, inner)
		}
		dst = bson.EndDocument(d, at)
	}
	if privileges {
		dst = appendMechanisms(u, dst)
	}
	if u.Custom != nil {
		dst = bson.AppendDocument(dst, "customData", u.Custom)
	}
	dst = appendRoles(dst, "roles", u.Roles)
	if privileges {
		dst = appendRoles(dst, "inheritedRoles", u.Roles)
		at, d := bson.BeginArrayElement(dst, "inheritedPrivileges")
		dst = bson.EndDocument(d, at)
		at, d = bson.BeginArrayElement(dst, "inheritedAuthenticationRestrictions")
		return bson.EndDocument(d, at)
	}
	return appendMechanisms(u, dst)
}

func appendMechanisms(u *account.User, dst []byte) []byte {
	if u.DB == account.ExternalDB {
		return bsondoc.AppendStrings(dst, "mechanisms", []string{"external"})
	}
	return bsondoc.AppendStrings(dst, "mechanisms", u.SortedMechanisms())
}

func appendRoles(dst []byte, key string, list []account.Role) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, rn := range list {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendString(d, "role", rn.Role)
		d = bson.AppendString(d, "db", rn.DB)
		dst = bson.EndDocument(d, start)
	}
	return bson.EndDocument(dst, at)
}
