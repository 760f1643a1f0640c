package server

import (
	"cmp"
	"crypto/sha256"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/store"
)

// Collections of the database admin that are not stored: users, roles and versions are kept
// elsewhere, and are made into documents when somebody reads them, as tools for backups do.

// AuthSchemaVersion is the version of the form that users and roles have.
const AuthSchemaVersion = 5

// authColls are the names of these collections, in alphabetical order.
var authColls = []string{"system.roles", "system.users", "system.version"}

// AuthColls returns the collections of a database that there are without being stored.
func (r *Request) AuthColls(st *store.State, db string) (list []*store.Coll) {
	if db != "admin" {
		return nil
	}
	for _, name := range authColls {
		if c := r.authColl(st, namespace.Join(db, name)); c != nil {
			list = append(list, c)
		}
	}
	return list
}

// showAuth returns the state with such a collection, if ns is its name.
func (r *Request) showAuth(st *store.State, ns string) *store.State {
	if c := r.authColl(st, ns); c != nil {
		return st.With(c)
	}
	return st
}

// authColl returns such a collection, or nil. One that a client has made itself comes first.
func (r *Request) authColl(st *store.State, ns string) *store.Coll {
	if db, _ := namespace.Split(ns); db != "admin" || st.Coll(ns) != nil {
		return nil
	}
	docs := r.authDocuments(ns)
	if docs == nil {
		return nil
	}
	uuid := sha256.Sum256([]byte(ns)) // the same for everybody who asks
	return store.NewDerived(ns, [16]byte(uuid[:16]), store.Settings{}, docs)
}

func (r *Request) authDocuments(ns string) (docs []bson.Raw) {
	accounts := r.Node.data.Accounts()
	users := accounts.List(func(*account.User) bool { return true })
	roles := accounts.ListRoles(func(account.Role) bool { return true })
	switch ns {
	case "admin.system.users":
		for _, u := range users {
			docs = append(docs, u.Document())
		}
	case "admin.system.roles":
		for _, def := range roles {
			docs = append(docs, def.Document())
		}
	case "admin.system.version":
		docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("_id", "featureCompatibilityVersion").Str("version", r.Node.Compatibility())
		}))
		if len(users)+len(roles) > 0 {
			docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
				d.Str("_id", "authSchema")
				d.B = bson.AppendInt32(d.B, "currentVersion", AuthSchemaVersion)
			}))
		}
	}
	return docs
}

// Compatibility returns the feature compatibility version.
func (n *Node) Compatibility() string {
	return cmp.Or(n.data.Compatibility(), n.cfg.Version.Series())
}
