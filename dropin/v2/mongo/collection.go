package mongo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Collection is a handle to a collection. It is safe for concurrent use.
type Collection struct {
	client *Client
	db     *Database
	inner  *allium.Collection[abson.Raw]
	name   string
	coder
	quiet bool // writes are not acknowledged
}

// settings returns the options as Allium's, and takes over those of encoding.
func (coll *Collection) settings(o *options.CollectionOptions) allium.CollectionOptions {
	s := allium.CollectionOptions{ReadPreference: readPreference(o.ReadPreference),
		ReadConcern: readConcern(o.ReadConcern), WriteConcern: writeConcern(o.WriteConcern)}
	if o.WriteConcern != nil {
		coll.quiet = !o.WriteConcern.Acknowledged()
	}
	if o.Registry != nil || o.BSONOptions != nil {
		coll.coder = coll.coder.with(o.Registry, o.BSONOptions)
		s.BSON = coll.way().Options()
	}
	return s
}

// Clone returns a collection with other settings.
func (coll *Collection) Clone(opts ...options.Lister[options.CollectionOptions]) *Collection {
	o, _ := merged(opts)
	clone := *coll
	settings := clone.settings(o)
	if coll.inner != nil {
		clone.inner = coll.inner.With(settings)
	}
	return &clone
}

// Name returns the name.
func (coll *Collection) Name() string { return coll.name }

// Database returns the database.
func (coll *Collection) Database() *Database { return coll.db }

// Drop deletes the collection. One that does not exist is no error.
func (coll *Collection) Drop(ctx context.Context, opts ...options.Lister[options.DropCollectionOptions]) error {
	o, err := built(opts)
	if err != nil {
		return err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return err
	}
	fields, err := coll.optional(o.EncryptedFields)
	if err != nil {
		return err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return err
	}
	return commandFailed(inner.Drop(ctx, allium.DropOptions{EncryptedFields: fields}))
}

// InsertOneResult is the result of InsertOne.
type InsertOneResult struct {
	InsertedID   any // the document's own _id, or an ObjectID that was made for it
	Acknowledged bool
}

// InsertOne inserts a document, with a new _id if it has none.
func (coll *Collection) InsertOne(ctx context.Context, document any,
	opts ...options.Lister[options.InsertOneOptions]) (*InsertOneResult, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	doc, err := coll.document(document)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	comment, err := coll.any(o.Comment)
	if err != nil {
		return nil, err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := inner.InsertOne(
		ctx, doc, allium.InsertOneOptions{BypassDocumentValidation: yes(o.BypassDocumentValidation), Comment: comment,
			RawData: rawData(o.Internal)})
	if err != nil {
		return nil, failure(err)
	}
	return &InsertOneResult{InsertedID: coll.resultID(res.InsertedID), Acknowledged: res.Acknowledged}, nil
}

// InsertManyResult is the result of InsertMany.
type InsertManyResult struct {
	InsertedIDs  []any // of the documents that were inserted, in their order
	Acknowledged bool
}

// InsertMany inserts the documents of a slice. Documents without an _id get one.
func (coll *Collection) InsertMany(ctx context.Context, documents any,
	opts ...options.Lister[options.InsertManyOptions]) (*InsertManyResult, error) {
	v := reflect.ValueOf(documents)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("invalid documents: %w", ErrNotSlice)
	}
	if v.Len() == 0 {
		return nil, fmt.Errorf("invalid documents: %w", ErrEmptySlice)
	}
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	docs := make([]abson.Raw, v.Len())
	way := coll.way()
	for i := range docs {
		val := v.Index(i).Interface()
		switch b := val.(type) {
		case nil:
			return nil, ErrNilDocument
		case []byte:
			val = bson.Raw(b)
		}
		if docs[i], err = way.Marshal(val); err != nil {
			return nil, MarshalError{Value: val, Err: err}
		}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	comment, err := coll.any(o.Comment)
	if err != nil {
		return nil, err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := inner.InsertMany(ctx, docs, allium.InsertManyOptions{
		Unordered: unordered(o.Ordered), BypassDocumentValidation: yes(o.BypassDocumentValidation), Comment: comment,
		RawData: rawData(o.Internal),
	})
	err = manyFailed(err)
	if _, refused := err.(BulkWriteException); err != nil && !refused {
		return nil, err
	}
	out := &InsertManyResult{InsertedIDs: make([]any, 0, len(res.InsertedIDs)), Acknowledged: res.Acknowledged}
	for i := range docs {
		if id, ok := res.InsertedIDs[i]; ok {
			out.InsertedIDs = append(out.InsertedIDs, coll.resultID(id))
		}
	}
	return out, err
}

// yes returns a flag that is sent only if it is true.
func yes(flag *bool) *bool {
	if !set(flag) {
		return nil
	}
	return flag
}

func unordered(ordered *bool) bool { return ordered != nil && !*ordered }

// DeleteResult is the result of DeleteOne and DeleteMany.
type DeleteResult struct {
	DeletedCount int64
	Acknowledged bool
}

// DeleteOne deletes the first document that matches the filter.
func (coll *Collection) DeleteOne(ctx context.Context, filter any,
	opts ...options.Lister[options.DeleteOneOptions]) (*DeleteResult, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	many := options.DeleteManyOptions(*o)
	return coll.delete(ctx, filter, &many, false, (*allium.Collection[abson.Raw]).DeleteOne)
}

// DeleteMany deletes all documents that match the filter.
func (coll *Collection) DeleteMany(ctx context.Context, filter any,
	opts ...options.Lister[options.DeleteManyOptions]) (*DeleteResult, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	return coll.delete(ctx, filter, o, true, (*allium.Collection[abson.Raw]).DeleteMany)
}

func (coll *Collection) delete(ctx context.Context, filter any, o *options.DeleteManyOptions, many bool,
	run func(*allium.Collection[abson.Raw], context.Context, any,
		...allium.DeleteOptions) (allium.DeleteResult, error)) (*DeleteResult, error) {
	f, err := coll.document(filter)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	a := arguments{coder: coll.coder}
	d := allium.DeleteOptions{Collation: collated(o.Collation), Comment: a.comment(o.Comment), Hint: a.hint(o.Hint),
		Let: a.optional(o.Let), RawData: rawData(o.Internal)}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := run(inner, ctx, f, d)
	if err != nil {
		failed := failure(err)
		if !many || !partly(failed) {
			return nil, failed
		}
		return &DeleteResult{DeletedCount: res.DeletedCount, Acknowledged: true}, failed
	}
	return &DeleteResult{DeletedCount: res.DeletedCount, Acknowledged: res.Acknowledged}, nil
}

// partly reports whether a write was done in spite of an error: the result is returned, too.
func partly(err error) bool {
	_, ok := err.(WriteException)
	return ok
}

// arguments encodes what an operation is given, and keeps the first error.
type arguments struct {
	coder
	err error
}

func (a *arguments) take(f func() (any, error)) any {
	if a.err != nil {
		return nil
	}
	v, err := f()
	if err != nil {
		a.err = err
		return nil
	}
	return v
}

func (a *arguments) comment(val any) any {
	if val == nil {
		return nil
	}
	return a.take(func() (any, error) { return a.coder.any(val) })
}

func (a *arguments) hint(val any) any {
	if val == nil {
		return nil
	}
	return a.take(func() (any, error) { return a.coder.hint(val) })
}

func (a *arguments) optional(val any) any {
	if val == nil {
		return nil
	}
	return a.take(func() (any, error) { return a.coder.optional(val) })
}

func (a *arguments) ordered(val any, name string) any {
	if val == nil {
		return nil
	}
	return a.take(func() (any, error) { return a.coder.ordered(val, name) })
}

func (a *arguments) filters(val []any) any {
	if val == nil {
		return nil
	}
	return a.take(func() (any, error) { return a.coder.filters(val) })
}

// UpdateResult is the result of UpdateOne, UpdateMany and ReplaceOne.
type UpdateResult struct {
	MatchedCount  int64
	ModifiedCount int64
	UpsertedCount int64
	UpsertedID    any // nil if nothing was inserted
	Acknowledged  bool
}

// UpdateByID updates the document with an _id.
func (coll *Collection) UpdateByID(ctx context.Context, id any, update any,
	opts ...options.Lister[options.UpdateOneOptions]) (*UpdateResult, error) {
	if id == nil {
		return nil, fmt.Errorf("invalid id: %w", ErrNilValue)
	}
	return coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, update, opts...)
}

// UpdateOne updates the first document that matches the filter.
func (coll *Collection) UpdateOne(ctx context.Context, filter any, update any,
	opts ...options.Lister[options.UpdateOneOptions]) (*UpdateResult, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	many := options.UpdateManyOptions{
		ArrayFilters: o.ArrayFilters, BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation,
		Comment: o.Comment,
		Hint:    o.Hint, Upsert: o.Upsert, Let: o.Let, Internal: o.Internal,
	}
	return coll.update(ctx, filter, update, &many, o.Sort, false,
		(*allium.Collection[abson.Raw]).UpdateOne)
}

// UpdateMany updates all documents that match the filter.
func (coll *Collection) UpdateMany(ctx context.Context, filter any, update any,
	opts ...options.Lister[options.UpdateManyOptions]) (*UpdateResult, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	return coll.update(ctx, filter, update, o, nil, true,
		(*allium.Collection[abson.Raw]).UpdateMany)
}

func (coll *Collection) update(ctx context.Context, filter, update any, o *options.UpdateManyOptions, sort any,
	many bool, run func(*allium.Collection[abson.Raw], context.Context, any, any,
		...allium.UpdateOptions) (allium.UpdateResult, error)) (*UpdateResult, error) {
	f, err := coll.document(filter)
	if err != nil {
		return nil, err
	}
	u, err := coll.coder.update(update)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	a := arguments{coder: coll.coder}
	settings := allium.UpdateOptions{
		Upsert: set(o.Upsert), ArrayFilters: a.filters(o.ArrayFilters), Sort: a.ordered(sort, "sort"),
		BypassDocumentValidation: yes(o.BypassDocumentValidation),
		Collation:                collated(o.Collation), Hint: a.hint(o.Hint), Let: a.optional(o.Let),
		Comment: a.comment(o.Comment),
		RawData: rawData(o.Internal),
	}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := run(inner, ctx, f, u, settings)
	return coll.updated(res, many, err)
}

func (coll *Collection) updated(res allium.UpdateResult, many bool, err error) (*UpdateResult, error) {
	out := &UpdateResult{MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount,
		UpsertedCount: res.UpsertedCount, Acknowledged: res.Acknowledged}
	if res.UpsertedID != nil {
		out.UpsertedID = coll.resultID(res.UpsertedID)
	}
	if err != nil {
		failed := failure(err)
		if !many || !partly(failed) {
			return nil, failed
		}
		out.Acknowledged = true
		return out, failed
	}
	return out, nil
}

// ReplaceOne replaces the first document that matches the filter.
func (coll *Collection) ReplaceOne(ctx context.Context, filter any, replacement any,
	opts ...options.Lister[options.ReplaceOptions]) (*UpdateResult, error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	f, err := coll.document(filter)
	if err != nil {
		return nil, err
	}
	r, err := coll.coder.replacement(replacement)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	a := arguments{coder: coll.coder}
	settings := allium.ReplaceOptions{
		Upsert: set(o.Upsert), Sort: a.ordered(o.Sort, "sort"),
		BypassDocumentValidation: yes(o.BypassDocumentValidation), Collation: collated(o.Collation),
		Hint: a.hint(o.Hint), Let: a.optional(o.Let), Comment: a.comment(o.Comment),
		RawData: rawData(o.Internal),
	}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	res, err := inner.ReplaceOne(ctx, f, r, settings)
	return coll.updated(res, false, err)
}

// Aggregate runs a pipeline.
func (coll *Collection) Aggregate(ctx context.Context, pipeline any,
	opts ...options.Lister[options.AggregateOptions]) (*Cursor, error) {
	return aggregate(ctx, coll.client, coll.db, coll.name, coll.coder,
		func(ctx context.Context, stages any, o allium.AggregateOptions) (*allium.Cursor[coding.View], error) {
			return allium.Aggregate[coding.View](ctx, coll.inner, stages, o)
		}, pipeline, opts)
}

// CountDocuments counts the documents that match the filter.
func (coll *Collection) CountDocuments(ctx context.Context, filter any,
	opts ...options.Lister[options.CountOptions]) (int64, error) {
	o, err := merged(opts)
	if err != nil {
		return 0, err
	}
	f, err := coll.document(filter)
	if err != nil {
		return 0, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return 0, err
	}
	a := arguments{coder: coll.coder}
	settings := allium.CountOptions{Skip: set(o.Skip), Limit: set(o.Limit), Hint: a.hint(o.Hint),
		Collation: collated(o.Collation), Comment: a.comment(o.Comment), RawData: rawData(o.Internal),
		MaxTime: maxTime(o.Internal)}
	if a.err != nil {
		return 0, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return 0, err
	}
	n, err := inner.CountDocuments(ctx, f, settings)
	var reply *mongoerr.ReplyError
	if errors.As(err, &reply) && (reply.Field == "n" || missing(err) && reply.Field == "cursor.firstBatch") {
		return 0, fmt.Errorf("invalid response from server, no '%s' field", strings.TrimPrefix(reply.Field, "cursor."))
	}
	return n, commandFailed(err)
}

// EstimatedDocumentCount counts the documents by what is known of the collection.
func (coll *Collection) EstimatedDocumentCount(ctx context.Context,
	opts ...options.Lister[options.EstimatedDocumentCountOptions]) (int64, error) {
	o, err := built(opts)
	if err != nil {
		return 0, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return 0, err
	}
	comment, err := coll.any(o.Comment)
	if err != nil {
		return 0, err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return 0, err
	}
	n, err := inner.EstimatedDocumentCount(ctx,
		allium.EstimatedCountOptions{Comment: comment, RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal)})
	if missing(err) || mongoerr.HasCode(err, codeNamespaceNotFound) {
		return 0, nil
	}
	return n, commandFailed(err)
}

// Distinct finds the distinct values of a field.
func (coll *Collection) Distinct(ctx context.Context, fieldName string, filter any,
	opts ...options.Lister[options.DistinctOptions]) *DistinctResult {
	o, err := merged(opts)
	if err != nil {
		return &DistinctResult{err: err}
	}
	f, err := coll.document(filter)
	if err != nil {
		return &DistinctResult{err: err}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return &DistinctResult{err: err}
	}
	a := arguments{coder: coll.coder}
	settings := allium.DistinctOptions{Collation: collated(o.Collation), Comment: a.comment(o.Comment),
		Hint: a.hint(o.Hint), RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal)}
	if a.err != nil {
		return &DistinctResult{err: a.err}
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return &DistinctResult{err: err}
	}
	values, err := allium.Distinct[abson.RawValue](ctx, inner, fieldName, f, settings)
	if err != nil {
		return &DistinctResult{err: commandFailed(err)}
	}
	start, out := abson.BeginDocument(nil)
	for i, v := range values {
		out = append(abson.AppendIndexHeader(out, v.Type, i), v.Value...)
	}
	return &DistinctResult{coder: coll.coder, array: bson.RawArray(abson.EndDocument(out, start))}
}

// Watch opens a change stream over the collection.
func (coll *Collection) Watch(ctx context.Context, pipeline any,
	opts ...options.Lister[options.ChangeStreamOptions]) (*ChangeStream, error) {
	return watch(ctx, coll.client, coll.coder, coll.inner, pipeline, opts)
}

// Indexes returns what creates, drops and lists the collection's indexes.
func (coll *Collection) Indexes() IndexView { return IndexView{coll} }

// SearchIndexes returns what creates, drops and lists the collection's search indexes.
func (coll *Collection) SearchIndexes() SearchIndexView { return SearchIndexView{coll} }
