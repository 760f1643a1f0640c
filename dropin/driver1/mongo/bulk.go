package mongo

import (
	"context"
	"reflect"

	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
)

// BulkWriteResult is the result of BulkWrite.
type BulkWriteResult struct {
	InsertedCount int64
	MatchedCount  int64
	ModifiedCount int64
	DeletedCount  int64
	UpsertedCount int64
	UpsertedIDs   map[int64]any // by the index of the write
}

func bulkResult(res *v2mongo.BulkWriteResult) *BulkWriteResult {
	if res == nil {
		return nil
	}
	return &BulkWriteResult{
		InsertedCount: res.InsertedCount, MatchedCount: res.MatchedCount, ModifiedCount: res.ModifiedCount,
		DeletedCount:  res.DeletedCount,
		UpsertedCount: res.UpsertedCount, UpsertedIDs: res.UpsertedIDs,
	}
}

// BulkWrite runs writes.
func (coll *Collection) BulkWrite(ctx context.Context, models []WriteModel,
	opts ...*options.BulkWriteOptions) (*BulkWriteResult, error) {
	if len(models) == 0 {
		return nil, ErrEmptySlice
	}
	inner := make([]v2mongo.WriteModel, len(models))
	for i, m := range models {
		if m == nil || reflect.ValueOf(m).IsNil() {
			return nil, ErrNilDocument
		}
		if filter := reflect.ValueOf(m).Elem().FieldByName("Filter"); filter.IsValid() && filter.IsNil() {
			return nil, ErrNilDocument
		}
		inner[i] = m.model()
	}
	res, err := coll.inner.BulkWrite(ctx, inner, with(opts, options.MergeBulkWriteOptions, convert.BulkWrite)...)
	if bulk, ok := err.(v2mongo.BulkWriteException); ok {
		return bulkResult(res), bulkWriteException(bulk, models)
	}
	if err == nil {
		err = unacknowledged(res.Acknowledged)
	}
	return bulkResult(res), failure(err)
}
