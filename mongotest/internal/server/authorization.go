package server

import (
	"iter"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/srverr"
)

// Needs says which privileges a command needs. The zero value says nothing: [Register] refuses it,
// except for commands that run before a client has authenticated.
type Needs struct {
	Text string // as docs/mongotest-commands.md has it
	// of returns the actions for a body, which is not the request's if that explains it.
	of func(r *Request, body bson.Raw) []account.Need
}

// NeedsBy returns needs that depend on the command's arguments. text begins with an action.
func NeedsBy(text string, of func(r *Request, body bson.Raw) []account.Need) Needs {
	return Needs{text, of}
}

// Free is what every authenticated user may run.
var Free = NeedsBy("none", func(*Request, bson.Raw) []account.Need { return nil })

// Internal is what only servers do.
var Internal = OnCluster("internal")

// OnColl is for commands whose value is a collection.
func OnColl(actions ...string) Needs {
	return NeedsBy(strings.Join(actions, ", ")+" on the collection", func(r *Request, body bson.Raw) []account.Need {
		return r.OnTarget(body, actions...)
	})
}

// OnNamespace is for commands whose value is a whole namespace, or a database.
func OnNamespace(action string) Needs {
	return NeedsBy(action+" on the namespace", func(_ *Request, body bson.Raw) []account.Need {
		_, v := bsondoc.FirstElement(body)
		return Privileges(bsondoc.MustString(v), action)
	})
}

// OnDB is for commands about the database that they run on.
func OnDB(action string) Needs {
	return NeedsBy(action+" on the database", func(r *Request, _ bson.Raw) []account.Need {
		return []account.Need{{Action: action, DB: r.DB}}
	})
}

// OnCluster is for commands about the deployment.
func OnCluster(actions ...string) Needs {
	return NeedsBy(strings.Join(actions, ", ")+" on the cluster", func(*Request, bson.Raw) []account.Need {
		return onEach(account.Need{}, actions)
	})
}

// Privileges returns actions on a namespace, or on a database.
func Privileges(ns string, actions ...string) []account.Need {
	db, coll := namespace.Split(ns)
	return onEach(account.Need{DB: db, Coll: coll}, actions)
}

// OnTarget returns actions on the collection that a command names first.
func (r *Request) OnTarget(body bson.Raw, actions ...string) []account.Need {
	_, v := bsondoc.FirstElement(body)
	coll, _ := v.StringValue()
	return onEach(account.Need{DB: r.DB, Coll: coll}, actions)
}

func onEach(n account.Need, actions []string) []account.Need {
	list := make([]account.Need, len(actions))
	for i, action := range actions {
		list[i] = n
		list[i].Action = action
	}
	return list
}

// Bypassing adds to the actions of writes what bypassDocumentValidation needs.
func Bypassing(body bson.Raw, actions ...string) []string {
	if body.Lookup("bypassDocumentValidation").AsBool() {
		actions = append(actions, "bypassDocumentValidation")
	}
	return actions
}

// Documents yields the documents of an argument that is an array of them, in the body or in a
// document sequence, before anybody has checked them.
func (r *Request) Documents(body bson.Raw, field string) iter.Seq[bson.Raw] {
	return func(yield func(bson.Raw) bool) {
		list, _ := body.Lookup(field).Array()
		for v := range list.Values() {
			if doc, ok := v.Document(); ok && !yield(doc) {
				return
			}
		}
		for of, doc := range r.sequenced {
			if of == field && !yield(doc) {
				return
			}
		}
	}
}

// authorize refuses a command that needs authentication from a client that has none, and one that
// the client's user may not run.
func (r *Request) authorize() error {
	if !r.Node.cfg.Auth || r.Cmd.NoAuth || r.Conn.trusted {
		return nil
	}
	u := r.Conn.user
	if u == nil && r.Cmd.Strangers != nil && r.Cmd.Strangers(r.Version()) {
		return nil
	}
	if u == nil {
		if r.Version().AtLeast(7, 0) {
			return srverr.New(srverr.Unauthorized, "Command %s requires authentication", r.Cmd.Name)
		}
		return srverr.New(srverr.Unauthorized, "command %s requires authentication", r.Cmd.Name)
	}
	for _, n := range r.NeedsOf(r.Cmd, r.Body) {
		if !r.May(n) {
			return srverr.New(srverr.Unauthorized, "not authorized on %s to execute command %s", r.DB,
				bsontext.Document(shown(r.Body)))
		}
	}
	return nil
}

// NeedsOf returns what a command with this body needs.
func (r *Request) NeedsOf(c *Command, body bson.Raw) []account.Need {
	if c.Needs.of == nil {
		return nil
	}
	return c.Needs.of(r, body)
}

// May reports whether the client's user may do something, with the roles that the user has now.
func (r *Request) May(n account.Need) bool {
	if !r.Node.cfg.Auth || r.Conn.trusted {
		return true
	}
	if r.Conn.user == nil {
		return false
	}
	u := r.Node.data.accounts.Find(r.Conn.user.Name, r.Conn.user.DB)
	return u != nil && r.Node.data.accounts.May(u.Roles, n)
}
