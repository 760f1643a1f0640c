package users

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
)

// needsOfDefinition is for commands that make or change a user or a role, and so grant what is in
// the definition.
func needsOfDefinition(action string) server.Needs {
	return server.NeedsBy(action+" on the database; grantRole where what is granted holds",
		func(r *server.Request, body bson.Raw) []account.Need {
			return append([]account.Need{{Action: action, DB: r.DB}}, needsOfGranted(r, body, "grantRole")...)
		})
}

// needsOfGrants is for commands that grant or revoke.
func needsOfGrants(action string) server.Needs {
	return server.NeedsBy(action+" where what is granted holds", func(r *server.Request, body bson.Raw) []account.Need {
		return needsOfGranted(r, body, action)
	})
}

// needsOfGranted returns an action on the database of each role and of each privilege. Privileges
// on several databases, or on the cluster, are admin's.
func needsOfGranted(r *server.Request, body bson.Raw, action string) (list []account.Need) {
	on := func(db string) {
		if need := (account.Need{Action: action, DB: db}); !slices.Contains(list, need) {
			list = append(list, need)
		}
	}
	roles, _ := body.Lookup("roles").Array()
	granted, _ := parseRoles(r, roles) // of a list that cannot be read nothing is granted
	for _, role := range granted {
		on(role.DB)
	}
	for p := range r.Documents(body, "privileges") {
		db := bsondoc.MustString(p.Lookup("resource", "db"))
		if db == "" {
			db = "admin"
		}
		on(db)
	}
	return list
}

// isUser reports whether a command is about the client's own user.
func isUser(r *server.Request, body bson.Raw) bool {
	_, v := bsondoc.FirstElement(body)
	name, ok := v.StringValue()
	u := r.Conn.User()
	return ok && u != nil && u.DB == r.DB && u.Name == name
}

var needsOfUsersInfo = server.NeedsBy("viewUser on the database, unless it asks for the user itself",
	func(r *server.Request, body bson.Raw) []account.Need {
		if isUser(r, body) {
			return nil
		}
		return []account.Need{{Action: "viewUser", DB: r.DB}}
	})

// needsOfUpdate are an action for each thing that is changed: some of one's own may be allowed to a
// user alone.
var needsOfUpdate = server.NeedsBy(
	"on the database what it changes: changePassword, changeCustomData, revokeRole, setAuthenticationRestriction; "+
		"grantRole where what is granted holds", func(r *server.Request, body bson.Raw) []account.Need {
		var list []account.Need
		for _, change := range []struct{ field, action, own string }{
			{"pwd", "changePassword", "changeOwnPassword"}, {"customData", "changeCustomData", "changeOwnCustomData"},
			{"roles", "revokeRole", ""}, {"authenticationRestrictions", "setAuthenticationRestriction", ""},
		} {
			own := account.Need{Action: change.own, DB: r.DB}
			if body.Lookup(change.field).IsZero() || change.own != "" && isUser(r, body) && r.May(own) {
				continue
			}
			list = append(list, account.Need{Action: change.action, DB: r.DB})
		}
		return append(list, needsOfGranted(r, body, "grantRole")...)
	})
