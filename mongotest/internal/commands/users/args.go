package users

import (
	"bytes"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The arguments of the commands about users and roles. Since version 5.0 their parsers are
// generated ones. Before, they were alike: first unknown fields, then the name, then each field in
// an order of its own.

type fields = map[string]args.Field[args.None]

// tables are the arguments of each command beside those of all commands.
var tables = map[string]*args.Table[args.None]{}

// named is the first argument of commands about one user or role.
var named = args.String[args.None](nil)

func init() {
	const roles, privileges, restrictions = "roles", "privileges", "authenticationRestrictions"
	list, flag := args.List[args.None](nil), args.Bool[args.None](nil)
	of := func(command string, first args.Field[args.None], fields fields, required ...string) {
		tables[command] = &args.Table[args.None]{Name: command, Value: first, Fields: fields, Required: required}
	}
	for _, name := range []string{"createUser", "updateUser"} {
		of(name, named, fields{
			"pwd": args.String[args.None](nil), "digestPassword": flag, "customData": args.Object[args.None](nil),
			roles:        list,
			restrictions: restrictionsOf(name), "mechanisms": args.Strings[args.None](nil),
		})
	}
	tables["createUser"].Required = []string{roles}
	for _, name := range []string{"createRole", "updateRole"} {
		of(name, named, fields{privileges: args.Objects[args.None](nil), roles: list,
			restrictions: restrictionsOf(name)})
	}
	tables["createRole"].Required = []string{privileges, roles}
	for _, name := range []string{"grantRolesToUser", "revokeRolesFromUser", "grantRolesToRole",
		"revokeRolesFromRole"} {
		of(name, named, fields{roles: list}, roles)
	}
	for _, name := range []string{"grantPrivilegesToRole", "revokePrivilegesFromRole"} {
		of(name, named, fields{privileges: args.Objects[args.None](nil)}, privileges)
	}
	for _, name := range []string{"dropUser", "dropRole"} {
		of(name, named, fields{})
	}
	for _, name := range []string{"dropAllUsersFromDatabase", "dropAllRolesFromDatabase"} {
		of(name, args.Field[args.None]{}, fields{})
	}
	of("usersInfo", args.Field[args.None]{}, fields{"showPrivileges": flag, "showCredentials": flag,
		"showAuthenticationRestrictions": flag,
		"showCustomData":                 flag, "filter": args.Object[args.None](nil)})
	of("rolesInfo", args.Field[args.None]{}, fields{"showPrivileges": {}, "showBuiltinRoles": flag,
		"showAuthenticationRestrictions": flag})
}

// restrictionsOf is a list of addresses from which and to which a client may connect.
func restrictionsOf(command string) args.Field[args.None] {
	addresses := args.Any[args.None](nil).Then(func(_ *args.None, v args.Value) error {
		return checkAddresses(command+".authenticationRestrictions", v.Name, v.RawValue)
	})
	entry := &args.Table[args.None]{Name: command + ".authenticationRestrictions",
		Fields: fields{"clientSource": addresses, "serverAddress": addresses}}
	return args.Objects[args.None](nil).Then(func(_ *args.None, v args.Value) error {
		for _, doc := range v.Documents() {
			if err := entry.Parse(v.From, doc, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// arguments checks the fields of a command and returns those that are given: since version 5.0 null
// is none.
func arguments(r *server.Request) (bson.Raw, error) {
	table := tables[r.Cmd.Name]
	if r.Version().AtLeast(5, 0) {
		err := table.ParseCommand(r, nil)
		return withoutNulls(r.Body), err
	}
	first := true
	for k := range r.Body.All() {
		if _, ok := table.Fields[k]; !first && !ok && !r.Generic(k) {
			return nil, srverr.New(srverr.BadValue, "\"%s\" is not a valid argument to %s", k, r.Cmd.Name)
		}
		first = false
	}
	return r.Body, nil
}

func withoutNulls(doc bson.Raw) bson.Raw {
	at, out := bson.BeginDocument(nil)
	for k, v := range doc.All() {
		if v.Type != bson.TypeNull && v.Type != bson.TypeUndefined {
			out = bson.AppendRawValue(out, k, v)
		}
	}
	return bson.EndDocument(out, at)
}

// nameAndArguments returns the name of the user or role that the command is about, and its other
// arguments.
func nameAndArguments(r *server.Request) (name string, body bson.Raw, err error) {
	if body, err = arguments(r); err != nil {
		return "", nil, err
	}
	name, ok := r.Arg().StringValue()
	if !ok {
		return "", nil, args.NotA(r.Cmd.Name, "string", r.Arg())
	}
	return name, body, nil
}

// userArgs are the arguments of createUser and updateUser.
type userArgs struct {
	name         string
	password     *string
	roles        []account.Role
	hasRoles     bool
	mechanisms   []string
	digested     bool
	custom       []byte
	restrictions bson.Raw // nil: not given
}

func parseUser(r *server.Request) (a userArgs, err error) {
	name, body, err := nameAndArguments(r)
	if err != nil {
		return a, err
	}
	a.name = name
	if v := body.Lookup("pwd"); !v.IsZero() {
		s, ok := v.StringValue()
		if !ok {
			return a, args.NotA("pwd", "string", v)
		}
		if s == "" && !r.Version().AtLeast(5, 0) {
			return a, srverr.New(srverr.BadValue, "User passwords must not be empty")
		}
		a.password = &s
	}
	byServer, err := args.ExtractBool(body, "digestPassword", true)
	if err != nil {
		return a, err
	}
	a.digested = !byServer
	custom, err := args.ExtractObject(body, "customData")
	if err != nil {
		return a, err
	}
	a.custom = bytes.Clone(custom)
	list, err := args.ExtractArray(body, "roles")
	if err != nil {
		return a, err
	}
	if a.roles, err = parseRoles(r, list); err != nil {
		return a, err
	}
	a.hasRoles = list != nil
	if v := body.Lookup("authenticationRestrictions"); !v.IsZero() {
		if v.Type != bson.TypeArray {
			return a, srverr.New(srverr.BadValue, "authenticationRestrictions must be an array")
		}
		if a.restrictions, err = parseRestrictions(v.Value, "restriction"); err != nil {
			return a, err
		}
	}
	a.mechanisms, err = parseMechanisms(r, body.Lookup("mechanisms"))
	return a, err
}

func parseMechanisms(r *server.Request, v bson.RawValue) (list []string, err error) {
	switch {
	case v.IsZero():
		return nil, nil
	case v.Type != bson.TypeArray:
		return nil, srverr.New(srverr.UnsupportedFormat, "mechanisms field must be an array")
	}
	for e := range bson.Raw(v.Value).Values() {
		m, ok := e.StringValue()
		if !ok {
			return nil, srverr.New(srverr.BadValue, "mechanisms field must be an array of strings")
		}
		if m != account.ScramSHA1 && m != account.ScramSHA256 {
			return nil, srverr.New(srverr.BadValue, "Unknown auth mechanism '%s'", m)
		}
		list = append(list, m)
	}
	switch {
	case list != nil:
	case r.Version().AtLeast(5, 0):
		return nil, srverr.New(srverr.BadValue, "mechanisms field must not be empty")
	default:
		return nil, srverr.New(srverr.UnsupportedFormat, "mechanisms field must not be empty")
	}
	return list, nil
}

// parseRestrictions checks authenticationRestrictions and returns a copy. what names them in
// errors. A text that is no address is kept, and met by no connection: see SERVER-128184.
func parseRestrictions(list bson.Raw, what string) (bson.Raw, error) {
	for e := range list.Values() {
		if e.Type != bson.TypeEmbeddedDocument {
			return nil, srverr.New(srverr.UnsupportedFormat,
				"%s array sub-documents must be address restriction objects", what)
		}
		for k, v := range bson.Raw(e.Value).All() {
			if k != "clientSource" && k != "serverAddress" {
				return nil, srverr.New(srverr.FailedToParse, "BSON field 'address restriction.%s' is an unknown field.",
					k)
			}
			if err := checkAddresses("address restriction", k, v); err != nil {
				return nil, err
			}
		}
	}
	return append(bson.Raw{}, list...), nil
}

// checkAddresses checks the types of a text or of a list of texts.
func checkAddresses(within, field string, v bson.RawValue) error {
	field = within + "." + field
	if v.Type != bson.TypeArray && v.Type != bson.TypeString {
		return srverr.New(
			srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '[array, string]'", field,
			bsontext.TypeName(v.Type))
	}
	if v.Type == bson.TypeArray {
		for i, item := range bson.Raw(v.Value).All() {
			if item.Type != bson.TypeString {
				return args.WrongType(field+"."+i, item.Type, "string")
			}
		}
	}
	return nil
}

// parseRoles reads a list of names and of documents {role, db}.
func parseRoles(r *server.Request, roles bson.Raw) ([]account.Role, error) {
	var list []account.Role
	for e := range roles.Values() {
		rn, err := parseName(r, e, "role")
		if err != nil {
			return nil, err
		}
		list = append(list, rn)
	}
	return list, nil
}

// parseName reads the name of a user or role: a string, or a document with the field and db.
func parseName(r *server.Request, v bson.RawValue, field string) (rn account.Role, err error) {
	since50 := r.Version().AtLeast(5, 0)
	switch {
	case v.Type == bson.TypeString:
		s, _ := v.StringValue()
		return account.Role{Role: s, DB: r.DB}, nil
	case v.Type == bson.TypeEmbeddedDocument && since50:
		return parseNameDocument(v.Value, field)
	case v.Type == bson.TypeEmbeddedDocument:
		if rn.Role, err = args.ExtractString(v.Value, field); err != nil {
			return rn, err
		}
		rn.DB, err = args.ExtractString(v.Value, "db")
		return rn, err
	case since50:
		return rn, srverr.New(srverr.BadValue, "%s must be either a string or an object", kindOfName(field))
	}
	return rn, srverr.New(srverr.BadValue, "User and role names must be either strings or objects")
}

// kindOfName is what errors since version 5.0 call a name by its field.
func kindOfName(field string) string {
	if field == "user" {
		return "UserName"
	}
	return "RoleName"
}

// parseNameDocument reads a name as servers since version 5.0 do.
func parseNameDocument(doc bson.Raw, field string) (rn account.Role, err error) {
	kind := kindOfName(field)
	seen := map[string]bool{}
	for k, v := range doc.All() {
		if k != field && k != "db" {
			return rn, srverr.New(srverr.BadValue, "%s contains an unknown field named: '%s", kind, k) // sic
		}
		s, ok := v.StringValue()
		switch {
		case !ok:
			return rn, srverr.New(srverr.BadValue, "%s must contain a string field named: %s. But, has type %s", kind,
				k, bsontext.TypeName(v.Type))
		case k == field:
			rn.Role = s
		default:
			rn.DB = s
		}
		seen[k] = true
	}
	for _, k := range []string{field, "db"} {
		if !seen[k] {
			return rn, srverr.New(srverr.BadValue, "%s must contain a field named: %s", kind, k)
		}
	}
	return rn, nil
}

// grantedRoles reads the roles that a command gives or takes.
func grantedRoles(r *server.Request, body bson.Raw) ([]account.Role, error) {
	list, err := args.ExtractArray(body, "roles")
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, args.Missing("roles")
	}
	roles, err := parseRoles(r, list)
	if err == nil && len(roles) == 0 {
		err = srverr.New(srverr.BadValue, "%s command requires a non-empty \"roles\" array", r.Cmd.Name)
	}
	return roles, err
}

// isAll reports whether the argument of usersInfo or rolesInfo asks for all of the database.
func isAll(v bson.RawValue) bool {
	n, _ := args.NumberOf(v)
	return v.IsNumber() && n == 1
}
