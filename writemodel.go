package allium

import (
	"fmt"

	"allium/bson"
	"allium/internal/command"
	"allium/mongoerr"
)

// WriteModel is one write of a bulk write: an InsertModel, UpdateModel, ReplaceModel or
// DeleteModel, or a pointer to one.
type WriteModel interface {
	statement() statement
}

// InsertModel inserts a document.
type InsertModel struct {
	Document any
}

// UpdateModel updates the first document that matches the filter or, with Many, all of them. See
// UpdateOptions for its fields.
type UpdateModel struct {
	Filter       any
	Update       any
	Many         bool
	Upsert       bool
	Sort         any
	ArrayFilters any
	Collation    *Collation
	Hint         any
}

// ReplaceModel replaces the first document that matches the filter. See UpdateOptions for its
// fields.
type ReplaceModel struct {
	Filter      any
	Replacement any
	Upsert      bool
	Sort        any
	Collation   *Collation
	Hint        any
}

// DeleteModel deletes the first document that matches the filter or, with Many, all of them.
type DeleteModel struct {
	Filter    any
	Many      bool
	Collation *Collation
	Hint      any
}

type writeKind uint8

const (
	insertKind writeKind = iota
	updateKind
	deleteKind
)

// statement is a WriteModel as the commands take it; its kind says which of the other fields is
// set.
type statement struct {
	kind   writeKind
	insert any
	update command.UpdateStatement
	delete command.DeleteStatement
}

func (m InsertModel) statement() statement { return statement{kind: insertKind, insert: m.Document} }

func (m UpdateModel) statement() statement {
	return statement{kind: updateKind, update: command.UpdateStatement{Filter: m.Filter, Update: m.Update, Multi: m.Many, Upsert: m.Upsert,
		Sort: m.Sort, ArrayFilters: m.ArrayFilters, Collation: m.Collation.raw(), Hint: m.Hint}}
}

func (m ReplaceModel) statement() statement {
	return statement{kind: updateKind, update: command.UpdateStatement{Filter: m.Filter, Update: m.Replacement, Replacement: true, Upsert: m.Upsert,
		Sort: m.Sort, Collation: m.Collation.raw(), Hint: m.Hint}}
}

func (m DeleteModel) statement() statement {
	return statement{kind: deleteKind, delete: command.DeleteStatement{Filter: m.Filter, Multi: m.Many, Collation: m.Collation.raw(), Hint: m.Hint}}
}

// isNilModel reports whether a model is nil or a nil pointer.
func isNilModel(m WriteModel) bool {
	switch p := m.(type) {
	case nil:
		return true
	case *InsertModel:
		return p == nil
	case *UpdateModel:
		return p == nil
	case *ReplaceModel:
		return p == nil
	case *DeleteModel:
		return p == nil
	}
	return false
}

// checkModels finds what is wrong with the n writes of a bulk write before any of them is sent. on
// says in errors what a write is on, as " on app.users", where the operation does not.
func checkModels(o *bson.Options, n int, at func(int) WriteModel, on func(int) string) error {
	var scratch []byte
	for i := range n {
		m := at(i)
		if isNilModel(m) {
			return fmt.Errorf("write %d%s is nil", i, on(i))
		}
		var err error
		switch s := m.statement(); s.kind {
		case insertKind:
			if command.IsNil(&s.insert) {
				err = mongoerr.ErrNilDocument
			}
		case updateKind:
			if s.update.Multi && s.update.Sort != nil {
				err = errSortMany
				break
			}
			scratch, err = s.update.Check(o, scratch)
		case deleteKind:
			scratch, err = s.delete.Check(o, scratch)
		}
		if err != nil {
			return fmt.Errorf("write %d%s: %w", i, on(i), err)
		}
	}
	return nil
}
