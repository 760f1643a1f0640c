package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/flavour"
	"allium/mongotest/internal/store"
)

// refuseInFlavour refuses what the server or service does not have that the deployment is like. The
// deployment's own connections, which fill it, may do everything.
func (r *Request) refuseInFlavour() error {
	f := r.Node.cfg.Like
	if f == nil || r.Conn.trusted {
		return nil
	}
	return f.Check(flavour.Command{Name: r.Cmd.Name, Body: r.Body, Sequences: r.sequenced})
}

// CheckNewCollection refuses a collection or view in a database where there can be none, or where
// there are as many as the server or service allows that the deployment is like.
func (r *Request) CheckNewCollection(st *store.State, db string) error {
	if err := CheckDatabaseCase(st, db); err != nil {
		return err
	}
	f := r.Node.cfg.Like
	if f == nil || len(f.Limits) == 0 || r.Conn.trusted {
		return nil
	}
	databases, collections, known := 0, 0, false
	for _, name := range st.Databases() {
		switch name {
		case "admin", "config", "local":
			continue
		case db:
			known = true
		}
		databases++
		st.Colls(name, func(c *store.Coll) bool {
			if !strings.HasPrefix(c.Name, "system.") { // the views' definitions, and buckets
				collections++
			}
			return true
		})
	}
	if !known {
		if err := f.Room(flavour.Databases, databases); err != nil {
			return err
		}
	}
	return f.Room(flavour.Collections, collections)
}

// sequenced yields the documents beside the body, with the field that each belongs to.
func (r *Request) sequenced(yield func(field string, doc bson.Raw) bool) {
	for _, s := range r.Sequences {
		for rest := s.Docs; len(rest) > 0; {
			doc, next, err := bson.ReadDocument(rest)
			if err != nil || !yield(s.ID, doc) {
				return
			}
			rest = next
		}
	}
}
