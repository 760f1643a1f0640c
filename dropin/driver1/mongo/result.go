package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/internal/dialect"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/x/mongo/driver"
)

// A SingleResult is the document that an operation has returned, or its error.
type SingleResult struct {
	inner *v2mongo.SingleResult
	err   error // nil for that of inner
}

func resultOf(res *v2mongo.SingleResult) *SingleResult { return &SingleResult{inner: res} }

// registryOf returns a registry of version 2, the default one for nil.
func registryOf(r *bsoncodec.Registry) *v2bson.Registry {
	if r == nil {
		r = bson.DefaultRegistry
	}
	return dialect.Registry(r)
}

// NewSingleResultFromDocument returns a result with a document and an error.
func NewSingleResultFromDocument(document any, err error, registry *bsoncodec.Registry) *SingleResult {
	return resultOf(v2mongo.NewSingleResultFromDocument(document, err, registryOf(registry)))
}

// Decode decodes the document into the variable that v points to.
func (sr *SingleResult) Decode(v any) error {
	if err := sr.Err(); err != nil {
		return err
	}
	return failure(sr.inner.Decode(v))
}

// Raw returns the document.
func (sr *SingleResult) Raw() (bson.Raw, error) {
	if sr.err != nil || sr.inner == nil {
		return nil, sr.Err()
	}
	doc, err := sr.inner.Raw()
	return bson.Raw(doc), failure(err)
}

// DecodeBytes returns the document.
//
// Deprecated: use Raw.
func (sr *SingleResult) DecodeBytes() (bson.Raw, error) { return sr.Raw() }

// Err returns the error of the operation, ErrNoDocuments if there is no document.
func (sr *SingleResult) Err() error {
	switch {
	case sr.err != nil:
		return sr.err
	case sr.inner == nil:
		return ErrNoDocuments
	}
	return failure(sr.inner.Err())
}

// A Cursor iterates over documents. It is not safe for concurrent use.
type Cursor struct {
	// Current is the document that Next advanced to. It is valid until the next call of Next or
	// TryNext.
	Current bson.Raw

	inner *v2mongo.Cursor
}

func newCursor(c *v2mongo.Cursor, err error) (*Cursor, error) {
	return cursorOf(c), failure(err)
}

func cursorOf(c *v2mongo.Cursor) *Cursor {
	if c == nil {
		return nil
	}
	return &Cursor{inner: c}
}

// NewCursorFromDocuments returns a cursor over documents, with an error.
func NewCursorFromDocuments(documents []any, err error, registry *bsoncodec.Registry) (*Cursor, error) {
	return newCursor(v2mongo.NewCursorFromDocuments(documents, err, registryOf(registry)))
}

// ID returns the server's number of the cursor, 0 if it has no more documents there.
func (c *Cursor) ID() int64 { return c.inner.ID() }

func (c *Cursor) advanced(ok bool) bool {
	c.Current = bson.Raw(c.inner.Current)
	return ok
}

// Next advances to the next document, and waits for one if the cursor tails.
func (c *Cursor) Next(ctx context.Context) bool { return c.advanced(c.inner.Next(ctx)) }

// TryNext is Next, and asks the server once at most.
func (c *Cursor) TryNext(ctx context.Context) bool { return c.advanced(c.inner.TryNext(ctx)) }

// Decode decodes the current document into the variable that val points to.
func (c *Cursor) Decode(val any) error { return c.inner.Decode(val) }

// Err returns the error of the last call.
func (c *Cursor) Err() error { return failure(c.inner.Err()) }

// Close ends the cursor.
func (c *Cursor) Close(ctx context.Context) error { return failure(c.inner.Close(ctx)) }

// All decodes the documents that are left into the slice that results points to, and closes the
// cursor. What is in the slice is overwritten.
func (c *Cursor) All(ctx context.Context, results any) error {
	return failure(c.inner.All(ctx, results))
}

// RemainingBatchLength returns how many documents are left of the current batch.
func (c *Cursor) RemainingBatchLength() int { return c.inner.RemainingBatchLength() }

// SetBatchSize says how many documents the next batches have at most.
func (c *Cursor) SetBatchSize(batchSize int32) { c.inner.SetBatchSize(batchSize) }

// SetMaxTime says how long the server waits for documents, if the cursor tails.
func (c *Cursor) SetMaxTime(dur time.Duration) { c.inner.SetMaxAwaitTime(dur) }

// SetComment says what the server's logs have beside the commands that fetch the next batches.
func (c *Cursor) SetComment(comment any) { c.inner.SetComment(comment) }

// BatchCursorFromCursor returns nil: there are no cursors of package driver.
//
// Deprecated: use the Cursor.
func BatchCursorFromCursor(*Cursor) *driver.BatchCursor { return nil }

// A StreamType says what a change stream is about.
type StreamType uint8

// The types.
const (
	CollectionStream StreamType = iota
	DatabaseStream
	ClientStream
)

// A ChangeStream iterates over changes as they happen. It is not safe for concurrent use.
type ChangeStream struct {
	// Current is the event that Next advanced to. It is valid until the next call of Next or
	// TryNext.
	Current bson.Raw

	inner *v2mongo.ChangeStream
}

func streamOf(cs *v2mongo.ChangeStream, err error) (*ChangeStream, error) {
	if err != nil {
		return nil, failure(err)
	}
	return &ChangeStream{inner: cs}, nil
}

// ID returns the server's number of the cursor, 0 if it is closed.
func (cs *ChangeStream) ID() int64 { return cs.inner.ID() }

// Next waits for the next event, and advances to it.
func (cs *ChangeStream) Next(ctx context.Context) bool { return cs.advanced(cs.inner.Next(ctx)) }

// TryNext is Next, and asks the server once at most.
func (cs *ChangeStream) TryNext(ctx context.Context) bool {
	return cs.advanced(cs.inner.TryNext(ctx))
}

func (cs *ChangeStream) advanced(ok bool) bool {
	if cs.inner != nil {
		cs.Current = bson.Raw(cs.inner.Current)
	}
	return ok
}

// Decode decodes the current event into the variable that val points to.
func (cs *ChangeStream) Decode(val any) error { return failure(cs.inner.Decode(val)) }

// Err returns the error that has ended the stream.
func (cs *ChangeStream) Err() error { return failure(cs.inner.Err()) }

// Close ends the stream.
func (cs *ChangeStream) Close(ctx context.Context) error { return failure(cs.inner.Close(ctx)) }

// ResumeToken returns the token of the last event.
func (cs *ChangeStream) ResumeToken() bson.Raw { return bson.Raw(cs.inner.ResumeToken()) }

// RemainingBatchLength returns how many events are left of the current batch.
func (cs *ChangeStream) RemainingBatchLength() int { return cs.inner.RemainingBatchLength() }

// SetBatchSize says how many events the next batches have at most.
func (cs *ChangeStream) SetBatchSize(size int32) { cs.inner.SetBatchSize(size) }
