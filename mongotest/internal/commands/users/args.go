package users

import (
	"bytes"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// The arguments of the commands about users and roles. Their parsers are alike: first unknown
// fields, then the name, then each field in an order of its own.

// userFields are the fields that each command takes beside those of all commands.
var userFields = map[string][]string{
	"createUser":               {"pwd", "digestPassword", "customData", "roles", "authenticationRestrictions", "mechanisms"},
	"updateUser":               {"pwd", "digestPassword", "customData", "roles", "authenticationRestrictions", "mechanisms"},
	"dropUser":                 {},
	"dropAllUsersFromDatabase": {},
	"grantRolesToUser":         {"roles"},
	"revokeRolesFromUser":      {"roles"},
	"usersInfo":                {"showPrivileges", "showCredentials", "showAuthenticationRestrictions", "showCustomData", "filter"},
	"createRole":               {"privileges", "roles", "authenticationRestrictions"},
	"updateRole":               {"privileges", "roles", "authenticationRestrictions"},
	"dropRole":                 {},
	"dropAllRolesFromDatabase": {},
	"grantPrivilegesToRole":    {"privileges"},
	"revokePrivilegesFromRole": {"privileges"},
	"grantRolesToRole":         {"roles"},
	"revokeRolesFromRole":      {"roles"},
	"rolesInfo":                {"showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions"},
}

// checkUserFields refuses fields that the command does not take.
func checkUserFields(r *server.Request) error {
	first := true
	for k := range r.Body.All() {
		if !first && !r.Generic(k) && !slices.Contains(userFields[r.Cmd.Name], k) {
			return srverr.New(srverr.BadValue, "\"%s\" is not a valid argument to %s", k, r.Cmd.Name)
		}
		first = false
	}
	return nil
}

// userName returns the name of the user or role that the command is about.
func userName(r *server.Request) (string, error) {
	if err := checkUserFields(r); err != nil {
		return "", err
	}
	name, ok := r.Arg().StringValue()
	if !ok {
		return "", args.NotA(r.Cmd.Name, "string", r.Arg())
	}
	return name, nil
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
	if a.name, err = userName(r); err != nil {
		return a, err
	}
	if v := r.Body.Lookup("pwd"); !v.IsZero() {
		s, ok := v.StringValue()
		if !ok {
			return a, args.NotA("pwd", "string", v)
		}
		if s == "" {
			return a, srverr.New(srverr.BadValue, "User passwords must not be empty")
		}
		a.password = &s
	}
	byServer, err := args.ExtractBool(r.Body, "digestPassword", true)
	if err != nil {
		return a, err
	}
	a.digested = !byServer
	custom, err := args.ExtractObject(r.Body, "customData")
	if err != nil {
		return a, err
	}
	a.custom = bytes.Clone(custom)
	list, err := args.ExtractArray(r.Body, "roles")
	if err != nil {
		return a, err
	}
	if a.roles, err = parseRoles(list, r.DB); err != nil {
		return a, err
	}
	a.hasRoles = list != nil
	if v := r.Body.Lookup("authenticationRestrictions"); !v.IsZero() {
		if v.Type != bson.TypeArray {
			return a, srverr.New(srverr.BadValue, "authenticationRestrictions must be an array")
		}
		if a.restrictions, err = parseRestrictions(v.Value, "restriction"); err != nil {
			return a, err
		}
	}
	a.mechanisms, err = parseMechanisms(r.Body.Lookup("mechanisms"))
	return a, err
}

func parseMechanisms(v bson.RawValue) (list []string, err error) {
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
	if list == nil {
		return nil, srverr.New(srverr.UnsupportedFormat, "mechanisms field must not be empty")
	}
	return list, nil
}

// parseRestrictions checks authenticationRestrictions and returns a copy. what names them in
// errors. A text that is no address is kept, and met by no connection: see SERVER-128184.
func parseRestrictions(list bson.Raw, what string) (bson.Raw, error) {
	for e := range list.Values() {
		if e.Type != bson.TypeEmbeddedDocument {
			return nil, srverr.New(srverr.UnsupportedFormat, "%s array sub-documents must be address restriction objects", what)
		}
		for k, v := range bson.Raw(e.Value).All() {
			switch {
			case k != "clientSource" && k != "serverAddress":
				return nil, srverr.New(srverr.FailedToParse, "BSON field 'address restriction.%s' is an unknown field.", k)
			case v.Type != bson.TypeArray && v.Type != bson.TypeString:
				return nil, srverr.New(srverr.TypeMismatch, "BSON field 'address restriction.%s' is the wrong type '%s', expected types '[array, string]'", k, bsontext.TypeName(v.Type))
			case v.Type == bson.TypeArray:
				for i, item := range bson.Raw(v.Value).All() {
					if item.Type != bson.TypeString {
						return nil, args.WrongType("address restriction."+k+"."+i, item.Type, "string")
					}
				}
			}
		}
	}
	return append(bson.Raw{}, list...), nil
}

// parseRoles reads a list of names and of documents {role, db}.
func parseRoles(roles bson.Raw, db string) ([]account.Role, error) {
	var list []account.Role
	for e := range roles.Values() {
		rn, err := parseName(e, "role", db)
		if err != nil {
			return nil, err
		}
		list = append(list, rn)
	}
	return list, nil
}

// parseName reads the name of a user or role: a string, or a document with the field and db.
func parseName(v bson.RawValue, field, db string) (rn account.Role, err error) {
	switch v.Type {
	case bson.TypeString:
		s, _ := v.StringValue()
		return account.Role{Role: s, DB: db}, nil
	case bson.TypeEmbeddedDocument:
		if rn.Role, err = args.ExtractString(v.Value, field); err != nil {
			return rn, err
		}
		rn.DB, err = args.ExtractString(v.Value, "db")
		return rn, err
	}
	return rn, srverr.New(srverr.BadValue, "User and role names must be either strings or objects")
}

// grantedRoles reads the roles that a command gives or takes.
func grantedRoles(r *server.Request) ([]account.Role, error) {
	list, err := args.ExtractArray(r.Body, "roles")
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, args.Missing("roles")
	}
	roles, err := parseRoles(list, r.DB)
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
