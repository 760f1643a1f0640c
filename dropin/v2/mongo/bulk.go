package mongo

import (
	"context"
	"errors"
	"fmt"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// BulkWriteResult is the result of Collection.BulkWrite.
type BulkWriteResult struct {
	InsertedCount int64
	MatchedCount  int64
	ModifiedCount int64
	DeletedCount  int64
	UpsertedCount int64
	UpsertedIDs   map[int64]any // by the index of the write
	Acknowledged  bool
}

// A write is one of a bulk write, whatever model it came as.
type write struct {
	kind                                  writeKind
	document, filter, update, replacement any
	collation                             *options.Collation
	upsert                                *bool
	hint, sort                            any
	filters                               []any
}

type writeKind int

const (
	insertOne writeKind = iota
	deleteOne
	deleteMany
	replaceOne
	updateOne
	updateMany
)

// model makes Allium's model of a write.
func (w *write) model(coll *allium.Collection[abson.Raw], c coder) (m allium.WriteModel, err error) {
	if w.kind == insertOne {
		doc, err := c.document(w.document)
		if err != nil {
			return m, err
		}
		return coll.InsertOneModel(doc), nil
	}
	if w.filter == nil {
		if w.kind == deleteOne || w.kind == deleteMany {
			return m, errors.New("delete filter cannot be nil")
		}
		return m, errors.New("update filter cannot be nil")
	}
	filter, err := c.document(w.filter)
	if err != nil {
		return m, err
	}
	a := arguments{coder: c}
	hint, sort, filters := a.hint(w.hint), a.ordered(w.sort, "sort"), a.filters(w.filters)
	if a.err != nil {
		return m, a.err
	}
	col, upsert := collated(w.collation), set(w.upsert)
	switch w.kind {
	case deleteOne:
		return coll.DeleteOneModel(filter, allium.DeleteModelOptions{Collation: col, Hint: hint}), nil
	case deleteMany:
		return coll.DeleteManyModel(filter, allium.DeleteModelOptions{Collation: col, Hint: hint}), nil
	case replaceOne:
		doc, err := c.replacement(w.replacement)
		if err != nil {
			return m, err
		}
		return coll.ReplaceOneModel(filter, doc,
			allium.ReplaceModelOptions{Upsert: upsert, Sort: sort, Collation: col, Hint: hint}), nil
	}
	update, err := c.update(w.update)
	if err != nil {
		return m, err
	}
	o := allium.UpdateModelOptions{Upsert: upsert, Sort: sort, ArrayFilters: filters, Collation: col, Hint: hint}
	if w.kind == updateOne {
		return coll.UpdateOneModel(filter, update, o), nil
	}
	return coll.UpdateManyModel(filter, update, o), nil
}

// writeOf returns what a model says.
func writeOf(model any) (*write, error) {
	switch m := model.(type) {
	case *InsertOneModel:
		return &write{kind: insertOne, document: m.Document}, nil
	case *ClientInsertOneModel:
		return &write{kind: insertOne, document: m.Document}, nil
	case *DeleteOneModel:
		return &write{kind: deleteOne, filter: m.Filter, collation: m.Collation, hint: m.Hint}, nil
	case *ClientDeleteOneModel:
		return &write{kind: deleteOne, filter: m.Filter, collation: m.Collation, hint: m.Hint}, nil
	case *DeleteManyModel:
		return &write{kind: deleteMany, filter: m.Filter, collation: m.Collation, hint: m.Hint}, nil
	case *ClientDeleteManyModel:
		return &write{kind: deleteMany, filter: m.Filter, collation: m.Collation, hint: m.Hint}, nil
	case *ReplaceOneModel:
		return &write{kind: replaceOne, filter: m.Filter, replacement: m.Replacement, collation: m.Collation,
			upsert: m.Upsert, hint: m.Hint, sort: m.Sort}, nil
	case *ClientReplaceOneModel:
		return &write{kind: replaceOne, filter: m.Filter, replacement: m.Replacement, collation: m.Collation,
			upsert: m.Upsert, hint: m.Hint, sort: m.Sort}, nil
	case *UpdateOneModel:
		return &write{kind: updateOne, filter: m.Filter, update: m.Update, collation: m.Collation, upsert: m.Upsert,
			hint: m.Hint, sort: m.Sort, filters: m.ArrayFilters}, nil
	case *ClientUpdateOneModel:
		return &write{kind: updateOne, filter: m.Filter, update: m.Update, collation: m.Collation, upsert: m.Upsert,
			hint: m.Hint, sort: m.Sort, filters: m.ArrayFilters}, nil
	case *UpdateManyModel:
		return &write{kind: updateMany, filter: m.Filter, update: m.Update, collation: m.Collation, upsert: m.Upsert,
			hint: m.Hint, filters: m.ArrayFilters}, nil
	case *ClientUpdateManyModel:
		return &write{kind: updateMany, filter: m.Filter, update: m.Update, collation: m.Collation, upsert: m.Upsert,
			hint: m.Hint, filters: m.ArrayFilters}, nil
	}
	return nil, fmt.Errorf("%T is no write model of this package", model)
}

// BulkWrite runs several writes, in order unless the options say otherwise.
func (coll *Collection) BulkWrite(ctx context.Context, models []WriteModel,
	opts ...options.Lister[options.BulkWriteOptions]) (*BulkWriteResult, error) {
	if len(models) == 0 {
		return nil, fmt.Errorf("invalid models: %w", ErrEmptySlice)
	}
	for i, m := range models {
		if isNil(m) {
			return nil, fmt.Errorf("invalid model at index %d: %w", i, ErrNilDocument)
		}
	}
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		if ctx.Err() != nil {
			return &BulkWriteResult{UpsertedIDs: map[int64]any{}}, err
		}
		return nil, err
	}
	writes := make([]allium.WriteModel, len(models))
	for i, m := range models {
		w, err := writeOf(m)
		if err != nil {
			return nil, err
		}
		if writes[i], err = w.model(coll.inner, coll.coder); err != nil {
			return &BulkWriteResult{UpsertedIDs: map[int64]any{}}, err
		}
	}
	a := arguments{coder: coll.coder}
	settings := allium.BulkWriteOptions{
		Unordered: unordered(o.Ordered), BypassDocumentValidation: yes(o.BypassDocumentValidation),
		Let: a.optional(o.Let), Comment: a.comment(o.Comment), RawData: rawData(o.Internal),
	}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := inner.BulkWrite(ctx, writes, settings)
	out := &BulkWriteResult{
		InsertedCount: res.InsertedCount, MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount,
		DeletedCount:  res.DeletedCount,
		UpsertedCount: res.UpsertedCount, UpsertedIDs: map[int64]any{}, Acknowledged: res.Acknowledged,
	}
	if err != nil && !settings.Unordered {
		out.Acknowledged = false // as the official driver has it
	}
	for i, id := range res.UpsertedIDs {
		out.UpsertedIDs[int64(i)] = coll.resultID(id)
	}
	var bulk *mongoerr.BulkWriteError
	if errors.As(err, &bulk) && (len(bulk.WriteErrors) > 0 || len(bulk.WriteConcernErrors) > 0) {
		return out, bulkWriteException(bulk, models)
	}
	return out, failure(err)
}

// A ClientBulkWrite is a write of Client.BulkWrite, and the collection that it is for.
type ClientBulkWrite struct {
	Database   string
	Collection string
	Model      ClientWriteModel
}

// ClientBulkWriteResult is the result of Client.BulkWrite.
type ClientBulkWriteResult struct {
	InsertedCount     int64
	MatchedCount      int64
	ModifiedCount     int64
	DeletedCount      int64
	UpsertedCount     int64
	InsertResults     map[int]ClientBulkWriteInsertResult // by the index of the write
	UpdateResults     map[int]ClientBulkWriteUpdateResult
	DeleteResults     map[int]ClientBulkWriteDeleteResult
	Acknowledged      bool
	HasVerboseResults bool // whether the maps are filled
}

// ClientBulkWriteInsertResult is the result of an insert.
type ClientBulkWriteInsertResult struct{ InsertedID any }

// ClientBulkWriteUpdateResult is the result of an update or a replacement.
type ClientBulkWriteUpdateResult struct {
	MatchedCount  int64
	ModifiedCount int64
	UpsertedID    any // nil if nothing was inserted
}

// ClientBulkWriteDeleteResult is the result of a delete.
type ClientBulkWriteDeleteResult struct{ DeletedCount int64 }

// BulkWrite runs writes to any collections (server 8.0 and later).
func (c *Client) BulkWrite(ctx context.Context, writes []ClientBulkWrite,
	opts ...options.Lister[options.ClientBulkWriteOptions]) (*ClientBulkWriteResult, error) {
	if c.opts.AutoEncryptionOptions != nil {
		return nil, errors.New("bulkWrite does not currently support automatic encryption")
	}
	if len(writes) == 0 {
		return nil, fmt.Errorf("invalid writes: %w", ErrEmptySlice)
	}
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	empty := c.bulkResult(&allium.BulkWriteResult{Acknowledged: true}, set(o.VerboseResults))
	if ctx, err = c.context(ctx); err != nil {
		return empty, err
	}
	models := make([]allium.WriteModel, len(writes))
	for i, w := range writes {
		if isNil(w.Model) {
			return empty, fmt.Errorf("error from model at index %d: %w", i, ErrNilDocument)
		}
		m, err := writeOf(w.Model)
		if err != nil {
			return empty, err
		}
		coll := allium.CollectionOf[abson.Raw](c.inner.Database(w.Database), w.Collection)
		if models[i], err = m.model(coll, c.coder); err != nil {
			return empty, err
		}
	}
	a := arguments{coder: c.coder}
	settings := allium.ClientBulkWriteOptions{
		Unordered: unordered(o.Ordered), VerboseResults: set(o.VerboseResults),
		WriteConcern:             writeConcern(o.WriteConcern),
		BypassDocumentValidation: o.BypassDocumentValidation, Let: a.optional(o.Let), Comment: a.comment(o.Comment),
		RawData: rawData(o.Internal),
	}
	if fields, err := c.commandFields(o.Internal); err != nil {
		return nil, err
	} else if fields != nil {
		settings.CommandFields = fields
	}
	if a.err != nil {
		return nil, a.err
	}
	if uuids, isSet := collectionUUIDs(o.Internal); isSet {
		if len(uuids) != len(writes) {
			return nil, fmt.Errorf("invalid collectionUUIDs: got %d UUIDs for %d writes", len(uuids), len(writes))
		}
		settings.CollectionUUIDs = uuids
	}
	res, err := c.inner.BulkWrite(ctx, models, settings)
	out := c.bulkResult(&res, settings.VerboseResults)
	if err == nil {
		return out, nil
	}
	var bulk *mongoerr.BulkWriteError
	out.Acknowledged = true
	if !errors.As(err, &bulk) {
		return out, failure(err)
	}
	e := ClientBulkWriteException{}
	if bulk.Err != nil {
		top := WriteError{Message: failure(bulk.Err).Error()}
		var server *mongoerr.ServerError
		if errors.As(bulk.Err, &server) {
			top = WriteError{Code: int(server.Code), Message: server.Message, Raw: []byte(server.Raw)}
		}
		e.WriteError = &top
	}
	for _, w := range bulk.WriteConcernErrors {
		e.WriteConcernErrors = append(e.WriteConcernErrors, *writeConcernError(w))
	}
	for _, w := range bulk.WriteErrors {
		if e.WriteErrors == nil {
			e.WriteErrors = map[int]WriteError{}
		}
		e.WriteErrors[w.Index] = writeError(w)
	}
	if res.InsertedCount+res.MatchedCount+res.ModifiedCount+res.DeletedCount+res.UpsertedCount > 0 {
		e.PartialResult = out
	}
	return out, e
}

func (c *Client) bulkResult(res *allium.BulkWriteResult, verbose bool) *ClientBulkWriteResult {
	out := &ClientBulkWriteResult{
		InsertedCount: res.InsertedCount, MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount,
		DeletedCount:  res.DeletedCount,
		UpsertedCount: res.UpsertedCount, Acknowledged: res.Acknowledged, HasVerboseResults: verbose,
		InsertResults: map[int]ClientBulkWriteInsertResult{}, UpdateResults: map[int]ClientBulkWriteUpdateResult{},
		DeleteResults: map[int]ClientBulkWriteDeleteResult{},
	}
	for i, id := range res.InsertedIDs {
		out.InsertResults[i] = ClientBulkWriteInsertResult{c.resultID(id)}
	}
	for i, u := range res.Updates {
		r := ClientBulkWriteUpdateResult{
			MatchedCount:  u.MatchedCount + u.UpsertedCount, // as the server counts
			ModifiedCount: u.ModifiedCount,
		}
		if u.UpsertedID != nil {
			r.UpsertedID = c.resultID(u.UpsertedID)
		}
		out.UpdateResults[i] = r
	}
	for i, d := range res.Deletes {
		out.DeleteResults[i] = ClientBulkWriteDeleteResult{d.DeletedCount}
	}
	return out
}
