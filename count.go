package allium

import (
	"context"
	"fmt"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/mongoerr"
)

// CountOptions are the options of CountDocuments and Count. The zero value of a field leaves it to
// the server.
type CountOptions struct {
	// Skip is the number of documents to skip, Limit the maximum to count; 0 means all.
	Skip, Limit int64
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Collation says how strings are compared.
	Collation *Collation
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData counts the buckets of a time series collection (server 8.2 and later).
	// It is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// CountDocuments counts the documents that match the filter. It counts exactly, by an aggregation,
// and may run in a transaction. To count all documents, EstimatedDocumentCount is faster.
//
// The filter becomes a $match stage, which does not support $where, $near and $nearSphere: use
// $expr and $geoWithin instead
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/match/#restrictions).
func (c *Collection[T]) CountDocuments(ctx context.Context, filter any, opts ...CountOptions) (int64, error) {
	o, err := option.Merge(opts), c.err
	var pipeline bson.RawValue
	if err == nil {
		pipeline, err = countPipeline(c.bson, filter, o.Skip, o.Limit)
	}
	if err != nil {
		return 0, c.failed(ctx, "aggregate", c.name, err)
	}
	cmd := &command.Aggregate{Collection: c.name, Pipeline: pipeline, Hint: o.Hint, Collation: o.Collation.raw(), Comment: o.Comment, RawData: o.RawData, SingleResult: true}
	op, err := c.op(ctx, cmd, o.Timeout)
	if err != nil {
		return 0, c.failed(ctx, "aggregate", c.name, err)
	}
	if err := maxTime(&op, o.MaxTime, &cmd.MaxTimeMS); err != nil {
		return 0, c.failed(ctx, "aggregate", c.name, err)
	}
	return counted(ctx, &c.scope, &op, parseSum)
}

// countPipeline makes the pipeline of the CRUD specification: $match, $skip, $limit, and $group
// with a sum.
func countPipeline(o *bson.Options, filter any, skip, limit int64) (bson.RawValue, error) {
	start, dst := bson.BeginDocument(nil)
	n := 0
	stage := func() int {
		at, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
		dst, n = d, n+1
		return at
	}
	at := stage()
	dst, err := command.AppendDocument(o, dst, "$match", filter)
	if err != nil {
		return bson.RawValue{}, fmt.Errorf("filter: %w", err)
	}
	dst = bson.EndDocument(dst, at)
	for _, s := range []struct {
		name string
		n    int64
	}{{"$skip", skip}, {"$limit", limit}} {
		if s.n != 0 {
			at := stage()
			dst = bson.EndDocument(bson.AppendInt64(dst, s.name, s.n), at)
		}
	}
	at = stage()
	group, dst := bson.BeginDocumentElement(dst, "$group")
	dst = bson.AppendInt32(dst, "_id", 1)
	sum, dst := bson.BeginDocumentElement(dst, "n")
	dst = bson.EndDocument(bson.AppendInt32(dst, "$sum", 1), sum)
	dst = bson.EndDocument(bson.EndDocument(dst, group), at)
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}, nil
}

// EstimatedCountOptions are the options of EstimatedDocumentCount; see CountOptions.
type EstimatedCountOptions struct {
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData counts the stored buckets of a time series collection (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// EstimatedDocumentCount returns the number of documents in the collection from its metadata. It
// may be wrong after an unclean shutdown and on sharded clusters. It cannot run in a transaction.
// It runs the command count
// (https://www.mongodb.com/docs/manual/reference/command/count/#behavior), which Stable API version
// 1 includes from server 5.0.9 and 5.3.2 on: do not use it with a strict Stable API on older
// servers.
func (c *Collection[T]) EstimatedDocumentCount(ctx context.Context, opts ...EstimatedCountOptions) (int64, error) {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return 0, c.failed(ctx, "count", c.name, err)
	}
	cmd := &command.Count{Collection: c.name, Comment: o.Comment, RawData: o.RawData}
	return c.count(ctx, cmd, o.MaxTime, o.Timeout)
}

// Count counts the documents that match the filter with the command count: faster than
// CountDocuments, but not exact on a sharded cluster, where it may count orphaned documents, and
// not possible in a transaction.
//
// Deprecated: use CountDocuments or EstimatedDocumentCount. Count is for programs that migrate from
// an older driver.
func (c *Collection[T]) Count(ctx context.Context, filter any, opts ...CountOptions) (int64, error) {
	o, err := option.Merge(opts), c.err
	if err == nil && command.IsNil(filter) {
		err = fmt.Errorf("filter: %w", mongoerr.ErrNilDocument)
	}
	if err != nil {
		return 0, c.failed(ctx, "count", c.name, err)
	}
	cmd := &command.Count{Collection: c.name, Filter: filter, Skip: o.Skip, Limit: o.Limit, Hint: o.Hint, Collation: o.Collation.raw(),
		Comment: o.Comment, RawData: o.RawData}
	return c.count(ctx, cmd, o.MaxTime, o.Timeout)
}

// count runs the command count.
func (c *Collection[T]) count(ctx context.Context, cmd *command.Count, maxTimeOpt time.Duration, timeout *time.Duration) (int64, error) {
	op, err := c.op(ctx, cmd, timeout)
	if err != nil {
		return 0, op.Named(err)
	}
	if err := maxTime(&op, maxTimeOpt, &cmd.MaxTimeMS); err != nil {
		return 0, op.Named(err)
	}
	return counted(ctx, &c.scope, &op, command.ParseN)
}

// parseSum finds the number in the reply to an aggregate that counts: no document has come as far
// as the sum if there is none.
func parseSum(reply bson.Raw) (int64, error) {
	r, err := command.ParseCursor(reply)
	if err != nil {
		return 0, err
	}
	doc, err := r.First()
	if err != nil || doc == nil {
		return 0, err
	}
	return command.ParseN(doc)
}

// countCall is a command that answers a number, on its way.
type countCall struct {
	op    exec.Op
	parse func(reply bson.Raw) (int64, error) // finds the number
	n     int64
	read  func(*exec.Op, exec.Result) error // its method take, made once
}

var countCalls = sync.Pool{New: func() any {
	c := new(countCall)
	c.read = c.take
	return c
}}

func (c *countCall) take(op *exec.Op, res exec.Result) (err error) {
	if c.n, err = c.parse(res.Reply); err != nil {
		return op.Named(err)
	}
	return nil
}

// counted runs an operation that returns a number, which parse finds in its reply.
func counted(ctx context.Context, s *scope, op *exec.Op, parse func(reply bson.Raw) (int64, error)) (int64, error) {
	c := countCalls.Get().(*countCall)
	defer func() {
		*c = countCall{read: c.read}
		countCalls.Put(c)
	}()
	c.op, c.parse, c.op.Read = *op, parse, c.read
	res, err := s.run(ctx, &c.op)
	if err != nil {
		return 0, err
	}
	res.Release()
	return c.n, nil
}
