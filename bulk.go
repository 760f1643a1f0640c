package allium

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// BulkWriteOptions are the options of BulkWrite. The zero value of a field leaves it to the server.
type BulkWriteOptions struct {
	// Unordered continues after an error, and lets the driver send writes of the same kind
	// together.
	Unordered bool
	// BypassDocumentValidation lets the writes store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Let defines variables for aggregation expressions in updates and deletes.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the whole operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// BulkWriteResult is the result of BulkWrite.
type BulkWriteResult struct {
	InsertedCount int64
	MatchedCount  int64
	ModifiedCount int64
	DeletedCount  int64
	UpsertedCount int64
	// InsertedIDs and UpsertedIDs hold the _id of every inserted and upserted document, by the
	// index of its write.
	InsertedIDs map[int]any
	UpsertedIDs map[int]any
	// Acknowledged is false if the write concern is unacknowledged; the counts are then 0.
	Acknowledged bool
}

// BulkWrite runs several writes on one collection, in order unless Unordered is set. Consecutive
// writes of one kind are sent together; an unordered bulk write sends all writes of one kind
// together. If writes fail, the error is a *mongoerr.BulkWriteError whose indexes are those of
// models, and the result covers the writes that are known to have succeeded.
//
// All messages go in one session. Each is retried separately, unless it holds an update or a delete
// of many documents.
func (c *Collection[T]) BulkWrite(ctx context.Context, models []WriteModel, opts ...BulkWriteOptions) (BulkWriteResult, error) {
	o, err := option.Merge(opts), error(nil)
	if len(models) == 0 {
		err = errNoWrites
	} else {
		err = checkModels(c.bson, len(models), func(i int) WriteModel { return models[i] }, func(int) string { return "" })
	}
	if err != nil {
		return BulkWriteResult{}, c.failed(ctx, "bulkWrite", c.name, err)
	}
	b := bulk[T]{coll: c, models: models, opts: o}
	b.result.InsertedIDs, b.result.UpsertedIDs = map[int]any{}, map[int]any{}
	err = c.operation(ctx, "bulkWrite", c.name, b.all)
	return b.result, err
}

// all runs all writes.
func (b *bulk[T]) all(ctx context.Context) error {
	w := writer{scope: &b.coll.scope, err: b.coll.err, timeout: b.opts.Timeout}
	defer w.done()
	for _, run := range groups(b.models, b.opts.Unordered) {
		if err := b.run(ctx, &w, run); err != nil {
			return err
		}
		if !b.opts.Unordered && len(b.errs.WriteErrors) > 0 || b.errs.Err != nil {
			break
		}
	}
	if len(b.errs.WriteErrors) == 0 && len(b.errs.WriteConcernErrors) == 0 && b.errs.Err == nil {
		return nil
	}
	return w.limit.Explain(&b.errs)
}

var errNoWrites = errors.New("no writes given")

// group is a list of writes that go into one command, by their indexes.
type group struct {
	kind    writeKind
	indexes []int
}

// groups divides writes into commands.
func groups(models []WriteModel, unordered bool) []group {
	var out []group
	all := make([]int, len(models)) // their own indexes: a group of neighbours is a part of it
	for i, m := range models {
		all[i] = i
		kind := m.statement().kind
		at := len(out) - 1
		if unordered {
			at = slices.IndexFunc(out, func(g group) bool { return g.kind == kind })
		}
		if at < 0 || out[at].kind != kind {
			out = append(out, group{kind: kind})
			at = len(out) - 1
		}
		if g := &out[at]; unordered {
			g.indexes = append(g.indexes, i)
		} else {
			g.indexes = all[i-len(g.indexes) : i+1 : i+1]
		}
	}
	return out
}

// bulk is the state of a BulkWrite.
type bulk[T any] struct {
	coll   *Collection[T]
	models []WriteModel
	opts   BulkWriteOptions
	result BulkWriteResult
	errs   mongoerr.BulkWriteError
}

// run runs one group and adds up what it did.
func (b *bulk[T]) run(ctx context.Context, w *writer, g group) error {
	var cmd command.Batch
	var docs *documents
	switch o, name, ordered := &b.opts, b.coll.name, !b.opts.Unordered; g.kind {
	case insertKind:
		docs = &documents{bson: b.coll.bson, n: len(g.indexes), at: func(i int) any { return new(b.models[g.indexes[i]].statement().insert) }}
		cmd = &command.Insert{Collection: name, Docs: docs, Ordered: ordered, BypassDocumentValidation: o.BypassDocumentValidation, Comment: o.Comment, RawData: o.RawData}
	case updateKind:
		u := &command.Update{Collection: name, Ordered: ordered, BypassDocumentValidation: o.BypassDocumentValidation, Let: o.Let, Comment: o.Comment, RawData: o.RawData}
		for _, i := range g.indexes {
			u.Statements = append(u.Statements, b.models[i].statement().update)
		}
		cmd = u
	case deleteKind:
		d := &command.Delete{Collection: name, Ordered: ordered, Let: o.Let, Comment: o.Comment, RawData: o.RawData}
		for _, i := range g.indexes {
			d.Statements = append(d.Statements, b.models[i].statement().delete)
		}
		cmd = d
	}
	done, err := w.many(ctx, cmd, !b.opts.Unordered)
	b.result.Acknowledged = done.acknowledged
	failed, ok := errors.AsType[*mongoerr.BulkWriteError](err)
	switch {
	case ok:
		for _, e := range failed.WriteErrors {
			e.Index = g.indexes[e.Index]
		}
		b.errs.WriteErrors = append(b.errs.WriteErrors, failed.WriteErrors...)
		b.errs.WriteConcernErrors = append(b.errs.WriteConcernErrors, failed.WriteConcernErrors...)
		for _, l := range failed.Labels {
			failure.AddTo(&b.errs.Labels, l)
		}
		b.errs.Err = failed.Err
	case err != nil && b.started():
		b.errs.Err = err
	case err != nil:
		return err
	}
	switch g.kind {
	case insertKind:
		b.result.InsertedCount += done.n
		docs.inserted(b.result.InsertedIDs, done, failed, g.indexes)
	case updateKind:
		b.result.MatchedCount += done.n - int64(len(done.upserted))
		b.result.ModifiedCount += done.modified
		b.result.UpsertedCount += int64(len(done.upserted))
		for i, id := range done.upserted {
			b.result.UpsertedIDs[g.indexes[i]] = id
		}
	case deleteKind:
		b.result.DeletedCount += done.n
	}
	return nil
}

// started reports whether anything is known already that an error must not hide: a write that was
// done, or another error.
func (b *bulk[T]) started() bool {
	r := &b.result
	return r.InsertedCount+r.MatchedCount+r.DeletedCount+r.UpsertedCount > 0 || len(b.errs.WriteErrors)+len(b.errs.WriteConcernErrors) > 0
}

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
