package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/option"
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
	// if the pipeline opens a cursor that waits. It must be less than the timeout.
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
	if err := aggregate(ctx, c.scope, c.err, c.name, pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// Aggregate runs a pipeline on a collection like Collection.Aggregate, and decodes its documents as
// V.
//
//	cur, err := allium.Aggregate[Count](ctx, users, pipeline)
func Aggregate[V, T any](ctx context.Context, c *Collection[T], pipeline any, opts ...AggregateOptions) (*Cursor[V], error) {
	cur := &Cursor[V]{}
	if err := aggregate(ctx, c.scope, c.err, c.name, pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// Aggregate runs a pipeline on the database itself. The pipeline must begin with a stage such as
// $currentOp or $documents.
func (db *Database) Aggregate(ctx context.Context, pipeline any, opts ...AggregateOptions) (*Cursor[bson.D], error) {
	cur := &Cursor[bson.D]{}
	if err := aggregate(ctx, db.scope, db.err, "", pipeline, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// aggregate opens cur over a pipeline on a collection or, with name empty, on a database.
func aggregate(ctx context.Context, s scope, scopeErr error, name string, pipeline any, cur *cursor.Cursor, opts []AggregateOptions) error {
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
		BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation.raw(), Comment: o.Comment, Hint: o.Hint, Let: o.Let,
		RawData: o.RawData, Writes: command.HasWriteStage(stages.Value), SearchIndexes: command.ListsSearchIndexes(stages.Value),
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
		err = cur.Prepare(&op, cursor.Reading{Type: cursorType(stages.Value), TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), MaxAwait: o.MaxAwaitTime, BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
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
