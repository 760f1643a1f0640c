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
	"allium/internal/scope"
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

// BulkWriteResult is the result of a bulk write, of a collection or of a client. Beside an error it
// covers the writes that are known to have succeeded.
type BulkWriteResult struct {
	InsertedCount int64
	MatchedCount  int64
	ModifiedCount int64
	DeletedCount  int64
	UpsertedCount int64
	// InsertedIDs and UpsertedIDs hold the _id of every inserted and upserted document, by the
	// index of its write, as in InsertOneResult and UpdateResult. Client.BulkWrite fills them only
	// if VerboseResults is set.
	InsertedIDs map[int]any
	UpsertedIDs map[int]any
	// Updates and Deletes hold what each update, replacement and delete did, by its index.
	// Client.BulkWrite fills them if VerboseResults is set, and nothing else does.
	Updates map[int]UpdateResult
	Deletes map[int]DeleteResult
	// Acknowledged is false if the write concern is unacknowledged; the counts are then 0.
	Acknowledged bool
}

// BulkWrite runs several writes, which the collection made, in order unless Unordered is set.
// Consecutive writes of one kind are sent together; an unordered bulk write sends all writes of one
// kind together. If writes fail, the error is a *mongoerr.BulkWriteError whose indexes are those of
// models, and the result covers the writes that are known to have succeeded.
//
//	res, err := users.BulkWrite(ctx, []allium.WriteModel{
//		users.InsertOneModel(User{Name: "Alan"}),
//		users.DeleteManyModel(bson.M{"left": true}),
//	})
//
// All messages go in one session. Each is retried separately, unless it holds an update or a delete
// of many documents.
func (c *Collection[T]) BulkWrite(ctx context.Context, models []WriteModel,
	opts ...BulkWriteOptions) (BulkWriteResult, error) {
	o, err := option.Merge(opts), error(nil)
	if len(models) == 0 {
		err = errNoWrites
	} else {
		err = checkModels(models, c.client, &c.handle)
	}
	own := c.inherited
	if err == nil && c.scopes != nil {
		own.scoping = c.scopes.Begin(ctx)
		err = checkScopes(own.scoping, models)
	}
	if err != nil {
		return BulkWriteResult{}, c.failed(ctx, "bulkWrite", c.name, err)
	}
	b := bulk[T]{coll: c, inherited: &own, models: models, opts: o}
	b.result.InsertedIDs, b.result.UpsertedIDs = map[int]any{}, map[int]any{}
	err = c.operation(ctx, "bulkWrite", c.name, b.all)
	return b.result, err
}

// all runs all writes.
func (b *bulk[T]) all(ctx context.Context) error {
	w := writer{inherited: b.inherited, err: b.coll.err, timeout: b.opts.Timeout}
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
		kind := m.kind
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
	coll      *Collection[T]
	inherited *inherited // the collection's, with its scopes at work on all commands
	models    []WriteModel
	opts      BulkWriteOptions
	result    BulkWriteResult
	errs      mongoerr.BulkWriteError
}

// run runs one group and adds up what it did.
func (b *bulk[T]) run(ctx context.Context, w *writer, g group) error {
	var cmd command.Batch
	var docs *documents
	switch o, name, ordered := &b.opts, b.coll.name, !b.opts.Unordered; g.kind {
	case insertKind:
		docs = &documents{n: len(g.indexes), at: func(i int) (any, *bson.Options) {
			m := &b.models[g.indexes[i]]
			return &m.insert, m.on.bson
		}}
		cmd = &command.Insert{Collection: name, Docs: docs, Ordered: ordered,
			BypassDocumentValidation: o.BypassDocumentValidation, Comment: o.Comment, RawData: o.RawData}
	case updateKind:
		u := &command.Update{Collection: name, Ordered: ordered, BypassDocumentValidation: o.BypassDocumentValidation,
			Let: o.Let, Comment: o.Comment, RawData: o.RawData}
		for _, i := range g.indexes {
			u.Statements = append(u.Statements, *b.models[i].update)
		}
		cmd = u
	case deleteKind:
		d := &command.Delete{Collection: name, Ordered: ordered, Let: o.Let, Comment: o.Comment, RawData: o.RawData}
		for _, i := range g.indexes {
			d.Statements = append(d.Statements, *b.models[i].delete)
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
	return r.InsertedCount+r.MatchedCount+r.DeletedCount+r.UpsertedCount > 0 ||
		len(b.errs.WriteErrors)+len(b.errs.WriteConcernErrors) > 0
}

// A WriteModel is one write of a bulk write. The collection that it is for makes it, so that its
// document has the collection's type: see [Collection.InsertOneModel], UpdateOneModel,
// UpdateManyModel, ReplaceOneModel, DeleteOneModel and DeleteManyModel. A WriteModel may be used
// several times and from several goroutines; it keeps what it was given and does not copy it.
type WriteModel struct {
	on     *handle // nil in the zero value
	kind   writeKind
	insert any
	update *command.UpdateStatement
	delete *command.DeleteStatement
}

type writeKind uint8

const (
	insertKind writeKind = iota
	updateKind
	deleteKind
)

// UpdateModelOptions are the options of UpdateOneModel and UpdateManyModel. The zero value of a
// field leaves it to the server.
type UpdateModelOptions struct {
	// Upsert inserts a document if none matches.
	Upsert bool
	// Sort determines which document UpdateOneModel changes if several match (server 8.0 and
	// later).
	Sort any
	// ArrayFilters is a slice of documents that select the array elements which an update with
	// $[name] changes.
	ArrayFilters any
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
}

// ReplaceModelOptions are the options of ReplaceOneModel. The zero value of a field leaves it to
// the server.
type ReplaceModelOptions struct {
	// Upsert inserts a document if none matches the filter.
	Upsert bool
	// Sort determines which document is replaced if several match (server 8.0 and later).
	Sort any
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
}

// DeleteModelOptions are the options of DeleteOneModel and DeleteManyModel. The zero value of a
// field leaves it to the server.
type DeleteModelOptions struct {
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
}

// InsertOneModel is the write of a bulk write that inserts a document, as InsertOne does. It sends
// nothing.
func (c *Collection[T]) InsertOneModel(doc T) WriteModel {
	return WriteModel{on: &c.handle, kind: insertKind, insert: doc}
}

// UpdateOneModel is the write of a bulk write that updates the first document that matches the
// filter, as UpdateOne does. It sends nothing.
func (c *Collection[T]) UpdateOneModel(filter, update any, opts ...UpdateModelOptions) WriteModel {
	return c.updateModel(filter, update, false, opts)
}

// UpdateManyModel is the write of a bulk write that updates all documents that match the filter, as
// UpdateMany does. It sends nothing.
func (c *Collection[T]) UpdateManyModel(filter, update any, opts ...UpdateModelOptions) WriteModel {
	return c.updateModel(filter, update, true, opts)
}

func (c *handle) updateModel(filter, update any, many bool, opts []UpdateModelOptions) WriteModel {
	o := option.Merge(opts)
	return WriteModel{on: c, kind: updateKind, update: &command.UpdateStatement{BSON: c.bson, Filter: filter,
		Update: update, Multi: many, Upsert: o.Upsert,
		Sort: o.Sort, ArrayFilters: o.ArrayFilters, Collation: o.Collation.raw(), Hint: o.Hint}}
}

// ReplaceOneModel is the write of a bulk write that replaces the first document that matches the
// filter, as ReplaceOne does. It sends nothing.
func (c *Collection[T]) ReplaceOneModel(filter any, replacement T, opts ...ReplaceModelOptions) WriteModel {
	o := option.Merge(opts)
	return WriteModel{on: &c.handle, kind: updateKind,
		update: &command.UpdateStatement{BSON: c.bson, Filter: filter, Update: replacement, Replacement: true,
			Upsert: o.Upsert, Sort: o.Sort, Collation: o.Collation.raw(), Hint: o.Hint}}
}

// DeleteOneModel is the write of a bulk write that deletes the first document that matches the
// filter, as DeleteOne does. It sends nothing.
func (c *Collection[T]) DeleteOneModel(filter any, opts ...DeleteModelOptions) WriteModel {
	return c.deleteModel(filter, false, opts)
}

// DeleteManyModel is the write of a bulk write that deletes all documents that match the filter, as
// DeleteMany does. It sends nothing.
func (c *Collection[T]) DeleteManyModel(filter any, opts ...DeleteModelOptions) WriteModel {
	return c.deleteModel(filter, true, opts)
}

func (c *handle) deleteModel(filter any, many bool, opts []DeleteModelOptions) WriteModel {
	o := option.Merge(opts)
	return WriteModel{on: c, kind: deleteKind, delete: &command.DeleteStatement{BSON: c.bson, Filter: filter,
		Multi: many, Collation: o.Collation.raw(), Hint: o.Hint}}
}

var (
	errNoModel         = errors.New("it is the zero value: a collection makes a write, for example by InsertOneModel")
	errOtherClient     = errors.New("its collection is another client's")
	errOtherScope      = errors.New("its collection has another scope: the one that runs a bulk write makes its writes")
	errOtherCollection = errors.New("its collection is another one: use BulkWrite of the client")
)

// checkScopes finds writes that are not within the scopes of their collection, before any of them
// is sent. Documents that are inserted are looked at when they are encoded.
func checkScopes(run *scope.Run, models []WriteModel) error {
	for i, m := range models {
		var err error
		switch m.kind {
		case updateKind:
			err = run.Update(m.on.bson, new(*m.update))
		case deleteKind:
			err = run.Delete(m.on.bson, new(*m.delete))
		}
		if err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return nil
}

// checkModels finds what is wrong with the writes of a bulk write before any of them is sent. They
// are for collections of client or, unless coll is nil, for that collection alone.
func checkModels(models []WriteModel, client *Client, coll *handle) error {
	var scratch []byte
	for i := range models {
		m := &models[i]
		if m.on == nil {
			return fmt.Errorf("write %d: %w", i, errNoModel)
		}
		var err error
		switch {
		case m.on.client != client:
			err = errOtherClient
		case coll != nil && (m.on.db != coll.db || m.on.name != coll.name):
			err = errOtherCollection
		case coll != nil && m.on.scopes != coll.scopes:
			err = errOtherScope
		case m.on.err != nil:
			err = m.on.err
		case m.kind == insertKind:
			if command.IsNil(&m.insert) {
				err = mongoerr.ErrNilDocument
			}
		case m.kind == updateKind:
			if m.update.Multi && m.update.Sort != nil {
				err = errSortMany
				break
			}
			scratch, err = m.update.Check(m.on.bson, scratch)
		case m.kind == deleteKind:
			scratch, err = m.delete.Check(m.on.bson, scratch)
		}
		switch {
		case err == nil:
		case coll != nil && err != errOtherCollection: // the operation names the collection
			return fmt.Errorf("write %d: %w", i, err)
		default:
			return fmt.Errorf("write %d on %s.%s: %w", i, m.on.db, m.on.name, err)
		}
	}
	return nil
}
