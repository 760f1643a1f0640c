package users

import (
	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{Name: "_mergeAuthzCollections", AdminOnly: true, Needs: server.OnDB("createUser"),
		WriteConcern: true, Mongos: onConfig, Run: runMerge})
}

// mergeSpec are the arguments of _mergeAuthzCollections.
type mergeSpec struct {
	users, roles, db string
	drop             bool
}

var mergeArgs = &args.Table[mergeSpec]{Name: "_mergeAuthzCollections", Required: []string{"db", "drop"},
	Fields: map[string]args.Field[mergeSpec]{
		"tempUsersCollection": args.String(func(q *mergeSpec) *string { return &q.users }),
		"tempRolesCollection": args.String(func(q *mergeSpec) *string { return &q.roles }),
		"db":                  args.String(func(q *mergeSpec) *string { return &q.db }),
		"drop":                args.SafeBool(func(q *mergeSpec) *bool { return &q.drop }),
	}}

// runMerge adds the users and roles that a restore has put into collections. With drop, those of
// the database that are not there are removed.
func runMerge(r *server.Request, dst []byte) ([]byte, error) {
	var q mergeSpec
	if err := mergeArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	if q.users == "" && q.roles == "" {
		return dst, srverr.New(srverr.BadValue,
			"Must provide at least one of \"tempUsersCollection\" and \"tempRolesCollection\"")
	}
	if q.roles != "" {
		if err := mergeRoles(r, q.roles, q.db, q.drop); err != nil {
			return dst, err
		}
	}
	if q.users != "" {
		if err := mergeUsers(r, q.users, q.db, q.drop); err != nil {
			return dst, err
		}
	}
	r.NoteChange()
	return dst, nil
}

func mergeUsers(r *server.Request, ns, db string, drop bool) error {
	merged := map[account.Role]*account.User{}
	err := eachTemporary(r, ns, func(doc bson.Raw) error {
		u, err := account.UserOf(doc)
		if err == nil && (db == "" || u.DB == db) {
			merged[account.Role{Role: u.Name, DB: u.DB}] = u
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, u := range merged {
		r.Node.Data().AddUser(u)
	}
	if drop {
		r.Node.Data().Accounts().Remove(func(u *account.User) bool {
			return (db == "" || u.DB == db) && merged[account.Role{Role: u.Name, DB: u.DB}] == nil
		})
	}
	return nil
}

func mergeRoles(r *server.Request, ns, db string, drop bool) error {
	merged := map[account.Role]*account.CustomRole{}
	err := eachTemporary(r, ns, func(doc bson.Raw) error {
		def, err := account.RoleOf(doc)
		if err == nil && (db == "" || def.Name.DB == db) {
			merged[def.Name] = def
		}
		return err
	})
	if err != nil {
		return err
	}
	accounts := r.Node.Data().Accounts()
	for _, def := range merged {
		accounts.AddRole(def)
	}
	if drop {
		accounts.DropRoles(func(name account.Role) bool { return (db == "" || name.DB == db) && merged[name] == nil })
	}
	return nil
}

// eachTemporary calls the function with the documents of a collection that a restore has filled.
func eachTemporary(r *server.Request, ns string, f func(doc bson.Raw) error) error {
	if err := namespace.CheckFull(ns); err != nil {
		return err
	}
	st, err := r.Snapshot(ns)
	if err != nil {
		return err
	}
	c := st.Coll(ns)
	if c == nil {
		return nil
	}
	for s := store.NewScan(c, false, nil); ; {
		_, doc, ok := s.Next()
		if !ok {
			return nil
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}
