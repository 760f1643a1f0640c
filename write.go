package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/internal/command"
	"allium/internal/option"
	"allium/mongoerr"
)

// UpdateOptions are the options of UpdateOne and UpdateMany. The zero value of a field leaves it to
// the server.
type UpdateOptions struct {
	// Upsert inserts a document if none matches.
	Upsert bool
	// ArrayFilters is a slice of documents that select the array elements which an update with
	// $[name] changes.
	ArrayFilters any
	// Sort determines which document UpdateOne changes if several match (server 8.0 and later).
	Sort any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// ReplaceOptions are the options of ReplaceOne. The zero value of a field leaves it to the server.
type ReplaceOptions struct {
	// Upsert inserts a document if none matches the filter.
	Upsert bool
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}, and determines which
	// document is first.
	Sort any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// UpdateResult is the result of UpdateOne, UpdateMany and ReplaceOne.
type UpdateResult struct {
	MatchedCount  int64 // documents that the filter matched
	ModifiedCount int64 // documents that were changed
	UpsertedCount int64 // documents that were inserted, 0 or 1
	// UpsertedID is the _id of the inserted document, nil if there is none.
	UpsertedID any
	// Acknowledged is false if the write concern is unacknowledged; the counts are then 0.
	Acknowledged bool
}

// UpdateOne updates the first document that matches the filter. update is a document of update
// operators, such as bson.M{"$set": bson.M{"age": 37}}, or an aggregation pipeline.
//
// UpdateOne is retried once after a network error or a failover unless the client's RetryWrites is
// off, and is never applied twice.
func (c *Collection[T]) UpdateOne(ctx context.Context, filter, update any, opts ...UpdateOptions) (UpdateResult, error) {
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: update}, opts)
}

// UpdateMany updates all documents that match the filter. It is not retried after a network error.
func (c *Collection[T]) UpdateMany(ctx context.Context, filter, update any, opts ...UpdateOptions) (UpdateResult, error) {
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: update, Multi: true}, opts)
}

// ReplaceOne replaces the first document that matches the filter, except for its _id. It is retried
// like UpdateOne.
func (c *Collection[T]) ReplaceOne(ctx context.Context, filter any, replacement T, opts ...ReplaceOptions) (UpdateResult, error) {
	o := option.Merge(opts)
	if command.IsNil(&replacement) {
		return UpdateResult{}, c.failed(ctx, "update", c.name, fmt.Errorf("replacement: %w", mongoerr.ErrNilDocument))
	}
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: &replacement, Replacement: true}, []UpdateOptions{{
		Upsert: o.Upsert, Sort: o.Sort, BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation, Hint: o.Hint,
		Let: o.Let, Comment: o.Comment, RawData: o.RawData, Timeout: o.Timeout,
	}})
}

var errSortMany = errors.New("option Sort cannot be used with a write of many documents")

func (c *Collection[T]) update(ctx context.Context, s command.UpdateStatement, opts []UpdateOptions) (UpdateResult, error) {
	o := option.Merge(opts)
	if s.Multi && o.Sort != nil {
		return UpdateResult{}, c.failed(ctx, "update", c.name, errSortMany)
	}
	s.Upsert, s.ArrayFilters, s.Sort, s.Collation, s.Hint = o.Upsert, o.ArrayFilters, o.Sort, o.Collation.raw(), o.Hint
	cmd := &command.Update{
		Collection: c.name, Statements: []command.UpdateStatement{s}, Ordered: true,
		BypassDocumentValidation: o.BypassDocumentValidation, Let: o.Let, Comment: o.Comment, RawData: o.RawData,
	}
	w := writer{scope: &c.scope, err: c.err, timeout: o.Timeout}
	reply, acknowledged, err := w.one(ctx, cmd)
	res := UpdateResult{MatchedCount: reply.n, ModifiedCount: reply.modified, Acknowledged: acknowledged}
	if id, ok := reply.upserted[0]; ok {
		// The server counts an upserted document among those that matched.
		res.UpsertedID, res.UpsertedCount = id, 1
		res.MatchedCount--
	}
	return res, err
}

// DeleteOptions are the options of DeleteOne and DeleteMany. The zero value of a field leaves it to
// the server.
type DeleteOptions struct {
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions in the filter.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// DeleteResult is the result of DeleteOne and DeleteMany.
type DeleteResult struct {
	DeletedCount int64
	// Acknowledged is false if the write concern is unacknowledged; the count is then 0.
	Acknowledged bool
}

// DeleteOne deletes the first document that matches the filter. It is retried once after a network
// error or a failover unless the client's RetryWrites is off, and is never applied twice.
func (c *Collection[T]) DeleteOne(ctx context.Context, filter any, opts ...DeleteOptions) (DeleteResult, error) {
	return c.delete(ctx, command.DeleteStatement{Filter: filter}, opts)
}

// DeleteMany deletes all documents that match the filter. It is not retried after a network error.
func (c *Collection[T]) DeleteMany(ctx context.Context, filter any, opts ...DeleteOptions) (DeleteResult, error) {
	return c.delete(ctx, command.DeleteStatement{Filter: filter, Multi: true}, opts)
}

func (c *Collection[T]) delete(ctx context.Context, s command.DeleteStatement, opts []DeleteOptions) (DeleteResult, error) {
	o := option.Merge(opts)
	s.Collation, s.Hint = o.Collation.raw(), o.Hint
	cmd := &command.Delete{Collection: c.name, Statements: []command.DeleteStatement{s}, Ordered: true, Let: o.Let, Comment: o.Comment, RawData: o.RawData}
	w := writer{scope: &c.scope, err: c.err, timeout: o.Timeout}
	reply, acknowledged, err := w.one(ctx, cmd)
	return DeleteResult{DeletedCount: reply.n, Acknowledged: acknowledged}, err
}
