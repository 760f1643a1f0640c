package write

import (
	"allium/bson"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Explained is the statement of a write command that explain is about.
type Explained struct {
	*server.Selection
	NS    string
	Stage string // what a plan does with the documents: UPDATE or DELETE
	One   bool   // it is done with the first document

	// Fields is the projection of a findAndModify that has one.
	Fields bson.Raw

	op  *updateOp
	fam *findAndModify // nil: it is another command
}

// Upserts reports whether the statement inserts a document if none matches.
func (e *Explained) Upserts() bool { return e.op.upsert }

// ReturnsNew reports whether a findAndModify returns what it inserts.
func (e *Explained) ReturnsNew() bool { return e.fam != nil && e.fam.returnNew }

// Modifies reports whether the statement would change a document.
func (e *Explained) Modifies(r *server.Request, doc bson.Raw) (bool, error) {
	_, at, err := e.Filter.MatchIndex(doc)
	if err != nil {
		return false, err
	}
	_, modified, err := e.op.update.Apply(doc, at, updateClock(r))
	return modified, err
}

// ToExplain reads the findAndModify, update or delete that a request explains. An update or a
// delete must have one statement.
func ToExplain(r *server.Request) (Explained, error) {
	if r.Cmd.Name == "findAndModify" {
		var q findAndModify
		ns, err := r.Collection(srverr.InvalidNamespace)
		if err == nil {
			err = q.parse(r)
		}
		stage := "UPDATE"
		if q.remove {
			stage = "DELETE"
		}
		return Explained{&q.op.Selection, ns, stage, true, q.fields, &q.op, &q}, err
	}
	if err := r.Cmd.Parse(r); err != nil {
		return Explained{}, err
	}
	w := batchOf(r)
	if len(w.updates)+len(w.deletes) != 1 {
		return Explained{}, srverr.New(srverr.InvalidLength, "explained write batches must be of size 1")
	}
	stage, op := "UPDATE", (*updateOp)(nil)
	if len(w.updates) > 0 {
		op = &w.updates[0]
	} else {
		stage, op = "DELETE", &w.deletes[0].updateOp
	}
	one := len(w.updates) > 0 && !op.multi || len(w.deletes) > 0 && w.deletes[0].one
	op.Let = w.let
	return Explained{&op.Selection, w.ns, stage, one, nil, op, nil}, nil
}

// Parse parses the statement for its collection, which may be nil.
func (e *Explained) Parse(r *server.Request, c *store.Coll) error {
	if err := e.op.parse(r, e.NS, c); err != nil || e.fam == nil {
		return err
	}
	_, err := e.fam.projection(r, e.NS, e.op)
	return err
}
