package server

import (
	"fmt"

	"allium/bson"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// cursorsDB is the database that its cursors are in.
const cursorsDB = "cursors"

// refuseInDataLake refuses what a data lake does not have.
func (r *Request) refuseInDataLake() error {
	if !r.Node.cfg.DataLake {
		return nil
	}
	if !r.Cmd.DataLake {
		return srverr.New(srverr.CommandNotSupported, "%s is not supported by Atlas Data Lake", r.Cmd.Name)
	}
	return pipeline.Walk(pipeline.Namespace{DB: r.DB}, pipeline.StagesIn(r.Body.Lookup("pipeline")),
		func(s pipeline.Stage) error {
			if _, writes := s.Writes(); writes {
				return srverr.New(srverr.CommandNotSupported, "%s is not supported by Atlas Data Lake", s.Name)
			}
			return nil
		})
}

// cursorNS returns the namespace of a cursor's own.
func cursorNS(id int64) string { return fmt.Sprintf("%s.c%x", cursorsDB, id) }

// Load stores documents without a client. They must have an _id.
func (n *Node) Load(db, coll string, docs []bson.Raw) error {
	n.data.AddDatabase(db)
	return n.Store().Write(func(tx *store.Tx) error {
		c, err := tx.Create(namespace.Join(db, coll), store.Settings{}, store.IDIndex(nil, IDIndexSpec(nil)))
		for _, doc := range docs {
			if err == nil {
				c, err = tx.Insert(c, doc)
			}
		}
		return err
	})
}
