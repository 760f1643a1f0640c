package allium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/mongoerr"
)

// AggregateOptions are the options of Aggregate. The zero value of a field leaves it to the server.
type AggregateOptions struct {
	// AllowDiskUse lets stages write temporary files.
	AllowDiskUse *bool
	// BatchSize is the maximum number of documents in each reply.
	BatchSize *int32
	// BypassDocumentValidation lets $out and $merge write documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for the pipeline's expressions.
	Let any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData reads the stored buckets of a time series collection (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// MaxAwaitTime is how long the server waits for new documents before it sends an empty batch,
	// if the pipeline begins with $changeStream, to the millisecond. It must be less than the
	// timeout. The cursors of other pipelines do not wait.
	MaxAwaitTime time.Duration
	// TimeoutMode says what the timeout bounds. TimeoutPerIteration cannot be used with $out and
	// $merge.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode says otherwise; a
	// pointer to 0 means no limit.
	Timeout *time.Duration
}

// Aggregate runs a pipeline, a slice of stages such as []bson.D or bson.A, and returns a cursor
// over its result. To decode the result as a type other than the collection's, use the function
// Aggregate.
//
// A pipeline that ends with $out or $merge is sent with the collection's write concern, and is not
// retried; its cursor is empty. The read preference counts for it only while all servers that are
// known are of 5.0 or later, which can write from a secondary; else it runs on the primary. One
// that begins with $listSearchIndexes is sent without a read concern, as search indexes want it.
func (c *Collection[T]) Aggregate(ctx context.Context, pipeline any, opts ...AggregateOptions) (*Cursor[T], error) {
	cur := &Cursor[T]{}
	if err := aggregate(ctx, c.inherited, c.err, c.name, pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// Aggregate runs a pipeline on a collection like Collection.Aggregate, and decodes its documents as
// V.
//
//	cur, err := allium.Aggregate[Count](ctx, users, pipeline)
func Aggregate[V any](ctx context.Context, coll AnyCollection, pipeline any,
	opts ...AggregateOptions) (*Cursor[V], error) {
	cur, c := &Cursor[V]{}, coll.base()
	if err := aggregate(ctx, c.inherited, c.err, c.name, pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// Aggregate runs a pipeline on the database itself. The pipeline must begin with a stage such as
// $currentOp or $documents.
func (db *Database) Aggregate(ctx context.Context, pipeline any, opts ...AggregateOptions) (*Cursor[bson.D], error) {
	cur := &Cursor[bson.D]{}
	if err := aggregate(ctx, db.inherited, db.err, "", pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// aggregate opens cur over a pipeline on a collection or, with name empty, on a database.
func aggregate(ctx context.Context, s inherited, scopeErr error, name string, pipeline any, cur *cursor.Cursor,
	opts []AggregateOptions) error {
	o, err := option.Merge(opts), scopeErr
	var stages bson.RawValue
	if err == nil {
		stages, err = encodePipeline(s.bson, pipeline)
	}
	if err != nil {
		return s.failed(ctx, "aggregate", name, err)
	}
	cmd := &command.Aggregate{
		Collection: name, Pipeline: stages, BatchSize: o.BatchSize, AllowDiskUse: o.AllowDiskUse,
		BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation.raw(), Comment: o.Comment,
		Hint: o.Hint, Let: o.Let,
		RawData: o.RawData, Writes: command.HasWriteStage(stages.Value),
		SearchIndexes: command.ListsSearchIndexes(stages.Value),
	}
	op, err := s.op(ctx, cmd, o.Timeout)
	if err != nil {
		return s.failed(ctx, "aggregate", name, err)
	}
	err = maxTime(&op, o.MaxTime, &cmd.MaxTimeMS)
	if err == nil && cmd.Writes && o.TimeoutMode == TimeoutPerIteration {
		err = errors.New("TimeoutPerIteration cannot be used with $out and $merge")
	}
	if err == nil {
		err = cur.Prepare(&op, cursor.Reading{Type: cursorType(stages.Value),
			TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), MaxAwait: o.MaxAwaitTime, BatchSize: or(o.BatchSize, 0),
			Comment: o.Comment})
	}
	if err != nil {
		return s.failed(ctx, "aggregate", name, err)
	}
	res, err := s.run(ctx, &op)
	if err != nil {
		return err
	}
	return cur.Open(ctx, s.client.cursors, &op, res)
}

// cursorType returns the type of the cursor that a pipeline makes: one of $changeStream waits for
// events.
func cursorType(pipeline bson.Raw) cursor.Type {
	for stage := range pipeline.Values() {
		doc, _ := stage.Document()
		for key := range doc.All() {
			if key == "$changeStream" {
				return cursor.TailableAwait
			}
			break
		}
		break
	}
	return cursor.NonTailable
}

// encodePipeline encodes a pipeline and checks that it is a list of stages.
func encodePipeline(o *bson.Options, pipeline any) (bson.RawValue, error) {
	dst, err := command.AppendPipeline(o, nil, "", pipeline)
	if err != nil {
		return bson.RawValue{}, fmt.Errorf("pipeline%w", err)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: dst[2:]}, nil
}

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
	cmd := &command.Aggregate{Collection: c.name, Pipeline: pipeline, Hint: o.Hint, Collation: o.Collation.raw(),
		Comment: o.Comment, RawData: o.RawData, SingleResult: true}
	op, err := c.op(ctx, cmd, o.Timeout)
	if err != nil {
		return 0, c.failed(ctx, "aggregate", c.name, err)
	}
	if err := maxTime(&op, o.MaxTime, &cmd.MaxTimeMS); err != nil {
		return 0, c.failed(ctx, "aggregate", c.name, err)
	}
	return counted(ctx, &c.inherited, &op, parseSum)
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
	cmd := &command.Count{Collection: c.name, Filter: filter, Skip: o.Skip, Limit: o.Limit, Hint: o.Hint,
		Collation: o.Collation.raw(),
		Comment:   o.Comment, RawData: o.RawData}
	return c.count(ctx, cmd, o.MaxTime, o.Timeout)
}

// count runs the command count.
func (c *Collection[T]) count(ctx context.Context, cmd *command.Count, maxTimeOpt time.Duration,
	timeout *time.Duration) (int64, error) {
	op, err := c.op(ctx, cmd, timeout)
	if err != nil {
		return 0, op.Named(err)
	}
	if err := maxTime(&op, maxTimeOpt, &cmd.MaxTimeMS); err != nil {
		return 0, op.Named(err)
	}
	return counted(ctx, &c.inherited, &op, command.ParseN)
}

// parseSum finds the number in the reply to an aggregate that counts: no document has come as far
// as the sum if there is none.
func parseSum(reply bson.Raw) (int64, error) {
	r, err := command.ParseCursor(reply, command.FirstBatch)
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
func counted(ctx context.Context, s *inherited, op *exec.Op, parse func(reply bson.Raw) (int64, error)) (int64, error) {
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

// DistinctOptions are the options of Distinct. The zero value of a field leaves it to the server.
type DistinctOptions struct {
	// Collation says how strings are compared.
	Collation *Collation
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Hint is the index to use, by its name or its keys.
	Hint any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData reads the stored buckets of a time series collection (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Distinct returns the distinct values of a field in the documents that match the filter, decoded
// as V. Array elements are separate values. Values that do not decode as V, such as a text among
// numbers, are left out, and the error is a mongoerr.DecodeErrors, which holds them: it comes with
// all the others.
//
//	names, err := allium.Distinct[string](ctx, users, "name", bson.D{})
func Distinct[V any](ctx context.Context, coll AnyCollection, field string, filter any,
	opts ...DistinctOptions) ([]V, error) {
	c := coll.base()
	o, err := option.Merge(opts), c.err
	if err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	cmd := &command.Distinct{Collection: c.name, Field: field, Filter: filter, Collation: o.Collation.raw(),
		Comment: o.Comment, Hint: o.Hint, RawData: o.RawData}
	op, err := c.op(ctx, cmd, o.Timeout)
	if err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	if err := maxTime(&op, o.MaxTime, &cmd.MaxTimeMS); err != nil {
		return nil, c.failed(ctx, "distinct", c.name, err)
	}
	var out []V
	op.Read = func(op *exec.Op, res exec.Result) error {
		found := res.Reply.Lookup("values")
		values, ok := found.Array()
		if !ok {
			return op.Named(&mongoerr.ReplyError{Field: "values", Type: found.Type, Want: "an array"})
		}
		out = []V{}
		var odd mongoerr.DecodeErrors
		for v := range values.Values() {
			out = append(out, *new(V))
			if err := decodeValue(op.BSON, v, &out[len(out)-1]); err != nil {
				e := undecoded(op, int64(len(out)-1+len(odd)), nil, err)
				e.Value = bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)}
				out, odd = out[:len(out)-1], append(odd, e)
			}
		}
		if odd == nil {
			return nil
		}
		return odd
	}
	res, err := c.run(ctx, &op)
	res.Release()
	return out, err
}

// decodeID decodes the _id that the server gave an upserted document. One that the program's
// options cannot decode is a bson.RawValue: the write was done, and must not look as if it had
// failed.
func decodeID(o *bson.Options, raw bson.RawValue) (id any) {
	if decodeValue(o, raw, &id) != nil {
		return bson.RawValue{Type: raw.Type, Value: bytes.Clone(raw.Value)}
	}
	return id
}

// decodeValue is decode for a value.
func decodeValue(o *bson.Options, raw bson.RawValue, v any) error {
	if r, ok := v.(*bson.RawValue); ok {
		*r = bson.RawValue{Type: raw.Type, Value: append([]byte{}, raw.Value...)}
		return nil
	}
	if o == nil {
		return raw.Unmarshal(v)
	}
	return o.UnmarshalValue(raw, v)
}
