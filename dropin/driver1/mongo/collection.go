package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
)

// A Collection is a handle to a collection. It is safe for concurrent use.
type Collection struct {
	inner *v2mongo.Collection
	db    *Database
}

// Clone returns a collection with other settings.
func (coll *Collection) Clone(opts ...*options.CollectionOptions) (*Collection, error) {
	return &Collection{coll.inner.Clone(with(opts, options.MergeCollectionOptions, convert.Collection)...), coll.db},
		nil
}

// Name returns the name.
func (coll *Collection) Name() string { return coll.inner.Name() }

// Database returns the database.
func (coll *Collection) Database() *Database { return coll.db }

// Drop deletes the collection. One that does not exist is no error.
func (coll *Collection) Drop(ctx context.Context) error { return failure(coll.inner.Drop(ctx)) }

// InsertOneResult is the result of InsertOne.
type InsertOneResult struct {
	InsertedID any // the document's own _id, or an ObjectID that was made for it
}

// unacknowledged is the error of a write that no server has answered.
func unacknowledged(acknowledged bool) error {
	if acknowledged {
		return nil
	}
	return ErrUnacknowledgedWrite
}

// InsertOne inserts a document, with a new _id if it has none.
func (coll *Collection) InsertOne(ctx context.Context, document any,
	opts ...*options.InsertOneOptions) (*InsertOneResult, error) {
	res, err := coll.inner.InsertOne(ctx, document, with(opts, options.MergeInsertOneOptions, convert.InsertOne)...)
	if err != nil {
		return nil, failure(err)
	}
	return &InsertOneResult{InsertedID: res.InsertedID}, unacknowledged(res.Acknowledged)
}

// InsertManyResult is the result of InsertMany.
type InsertManyResult struct {
	InsertedIDs []any // of the documents that were inserted, in their order
}

// InsertMany inserts documents. Those without an _id get one.
func (coll *Collection) InsertMany(ctx context.Context, documents []any,
	opts ...*options.InsertManyOptions) (*InsertManyResult, error) {
	if len(documents) == 0 {
		return nil, ErrEmptySlice
	}
	res, err := coll.inner.InsertMany(ctx, documents, with(opts, options.MergeInsertManyOptions, convert.InsertMany)...)
	if res == nil {
		return nil, failure(err)
	}
	if err == nil {
		err = unacknowledged(res.Acknowledged)
	}
	return &InsertManyResult{InsertedIDs: res.InsertedIDs}, failure(err)
}

// DeleteResult is the result of DeleteOne and DeleteMany.
type DeleteResult struct {
	DeletedCount int64 `bson:"n"`
}

func deleteResult(res *v2mongo.DeleteResult, err error) (*DeleteResult, error) {
	if res == nil {
		return nil, failure(err)
	}
	if err == nil {
		err = unacknowledged(res.Acknowledged)
	}
	return &DeleteResult{DeletedCount: res.DeletedCount}, failure(err)
}

// DeleteOne deletes the first document that matches the filter.
func (coll *Collection) DeleteOne(ctx context.Context, filter any,
	opts ...*options.DeleteOptions) (*DeleteResult, error) {
	return deleteResult(coll.inner.DeleteOne(ctx, filter, with(opts, options.MergeDeleteOptions, convert.DeleteOne)...))
}

// DeleteMany deletes all documents that match the filter.
func (coll *Collection) DeleteMany(ctx context.Context, filter any,
	opts ...*options.DeleteOptions) (*DeleteResult, error) {
	return deleteResult(coll.inner.DeleteMany(ctx, filter,
		with(opts, options.MergeDeleteOptions, convert.DeleteMany)...))
}

// UpdateResult is the result of UpdateOne, UpdateMany and ReplaceOne.
type UpdateResult struct {
	MatchedCount  int64
	ModifiedCount int64
	UpsertedCount int64
	UpsertedID    any // nil if nothing was inserted
}

func updateResult(res *v2mongo.UpdateResult, err error) (*UpdateResult, error) {
	if res == nil {
		return nil, failure(err)
	}
	if err == nil {
		err = unacknowledged(res.Acknowledged)
	}
	return &UpdateResult{MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount,
		UpsertedCount: res.UpsertedCount, UpsertedID: res.UpsertedID}, failure(err)
}

// UpdateByID updates the document with an _id.
func (coll *Collection) UpdateByID(ctx context.Context, id any, update any,
	opts ...*options.UpdateOptions) (*UpdateResult, error) {
	return updateResult(coll.inner.UpdateByID(ctx, id, update,
		with(opts, options.MergeUpdateOptions, convert.UpdateOne)...))
}

// UpdateOne updates the first document that matches the filter.
func (coll *Collection) UpdateOne(ctx context.Context, filter any, update any,
	opts ...*options.UpdateOptions) (*UpdateResult, error) {
	return updateResult(coll.inner.UpdateOne(ctx, filter, update,
		with(opts, options.MergeUpdateOptions, convert.UpdateOne)...))
}

// UpdateMany updates all documents that match the filter.
func (coll *Collection) UpdateMany(ctx context.Context, filter any, update any,
	opts ...*options.UpdateOptions) (*UpdateResult, error) {
	return updateResult(coll.inner.UpdateMany(ctx, filter, update,
		with(opts, options.MergeUpdateOptions, convert.UpdateMany)...))
}

// ReplaceOne replaces the first document that matches the filter.
func (coll *Collection) ReplaceOne(ctx context.Context, filter any, replacement any,
	opts ...*options.ReplaceOptions) (*UpdateResult, error) {
	return updateResult(coll.inner.ReplaceOne(ctx, filter, replacement,
		with(opts, options.MergeReplaceOptions, convert.Replace)...))
}

// Aggregate runs a pipeline.
func (coll *Collection) Aggregate(ctx context.Context, pipeline any,
	opts ...*options.AggregateOptions) (*Cursor, error) {
	return newCursor(coll.inner.Aggregate(ctx, pipelineOf(pipeline),
		with(opts, options.MergeAggregateOptions, convert.Aggregate)...))
}

// CountDocuments counts the documents that match the filter.
func (coll *Collection) CountDocuments(ctx context.Context, filter any, opts ...*options.CountOptions) (int64, error) {
	n, err := coll.inner.CountDocuments(ctx, filter, with(opts, options.MergeCountOptions, convert.Count)...)
	return n, failure(err)
}

// EstimatedDocumentCount returns the number of documents that the server keeps.
func (coll *Collection) EstimatedDocumentCount(ctx context.Context,
	opts ...*options.EstimatedDocumentCountOptions) (int64, error) {
	n, err := coll.inner.EstimatedDocumentCount(ctx,
		with(opts, options.MergeEstimatedDocumentCountOptions, convert.EstimatedDocumentCount)...)
	return n, failure(err)
}

// Distinct returns the values of a field.
func (coll *Collection) Distinct(ctx context.Context, fieldName string, filter any,
	opts ...*options.DistinctOptions) ([]any, error) {
	res := coll.inner.Distinct(ctx, fieldName, filter, with(opts, options.MergeDistinctOptions, convert.Distinct)...)
	if err := res.Err(); err != nil {
		return nil, failure(err)
	}
	values := []any{}
	if err := res.Decode(&values); err != nil {
		return nil, err
	}
	return values, nil
}

// Find searches for documents.
func (coll *Collection) Find(ctx context.Context, filter any, opts ...*options.FindOptions) (cur *Cursor, err error) {
	return newCursor(coll.inner.Find(ctx, filter, with(opts, options.MergeFindOptions, convert.Find)...))
}

// FindOne searches for a document.
func (coll *Collection) FindOne(ctx context.Context, filter any, opts ...*options.FindOneOptions) *SingleResult {
	return resultOf(coll.inner.FindOne(ctx, filter, with(opts, options.MergeFindOneOptions, convert.FindOne)...))
}

// FindOneAndDelete deletes a document, and returns it.
func (coll *Collection) FindOneAndDelete(ctx context.Context, filter any,
	opts ...*options.FindOneAndDeleteOptions) *SingleResult {
	return written(coll.inner.FindOneAndDelete(ctx, filter,
		with(opts, options.MergeFindOneAndDeleteOptions, convert.FindOneAndDelete)...))
}

// FindOneAndReplace replaces a document, and returns it as it was before or is after.
func (coll *Collection) FindOneAndReplace(ctx context.Context, filter any, replacement any,
	opts ...*options.FindOneAndReplaceOptions) *SingleResult {
	return written(coll.inner.FindOneAndReplace(ctx, filter, replacement,
		with(opts, options.MergeFindOneAndReplaceOptions, convert.FindOneAndReplace)...))
}

// FindOneAndUpdate updates a document, and returns it as it was before or is after.
func (coll *Collection) FindOneAndUpdate(ctx context.Context, filter any, update any,
	opts ...*options.FindOneAndUpdateOptions) *SingleResult {
	return written(coll.inner.FindOneAndUpdate(ctx, filter, update,
		with(opts, options.MergeFindOneAndUpdateOptions, convert.FindOneAndUpdate)...))
}

// written is resultOf for a write: it may be unacknowledged.
func written(res *v2mongo.SingleResult) *SingleResult {
	out := resultOf(res)
	if !res.Acknowledged && errors.Is(res.Err(), v2mongo.ErrNoDocuments) {
		out.err = ErrUnacknowledgedWrite
	}
	return out
}

// Watch opens a change stream over the collection.
func (coll *Collection) Watch(ctx context.Context, pipeline any,
	opts ...*options.ChangeStreamOptions) (*ChangeStream, error) {
	return streamOf(coll.inner.Watch(ctx, pipelineOf(pipeline),
		with(opts, options.MergeChangeStreamOptions, convert.ChangeStream)...))
}

// Indexes returns the view of the collection's indexes.
func (coll *Collection) Indexes() IndexView { return IndexView{coll} }

// SearchIndexes returns the view of the collection's search indexes.
func (coll *Collection) SearchIndexes() SearchIndexView {
	return SearchIndexView{coll.inner.SearchIndexes()}
}

// UnmarshalBSON decodes the reply to an update.
//
// Deprecated: clients do it.
func (result *UpdateResult) UnmarshalBSON(b []byte) error {
	var reply struct {
		N        int64 `bson:"n"`
		Modified int64 `bson:"nModified"`
		Upserted []struct {
			ID any `bson:"_id"`
		} `bson:"upserted"`
	}
	if err := bson.Unmarshal(b, &reply); err != nil {
		return err
	}
	result.MatchedCount, result.ModifiedCount = reply.N, reply.Modified
	if len(reply.Upserted) > 0 {
		result.UpsertedID = reply.Upserted[0].ID
	}
	return nil
}
