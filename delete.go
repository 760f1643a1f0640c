package allium

import (
	"context"
	"time"

	"allium/internal/command"
	"allium/internal/option"
)

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
