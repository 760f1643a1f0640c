package mongo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"allium"
	abson "allium/bson"
	"allium/stats/batch"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// A Cursor iterates over documents. It is not safe for concurrent use.
type Cursor struct {
	// Current is the document that Next advanced to. It is valid until the next call of Next,
	// TryNext or Close: copy it to keep it.
	Current bson.Raw

	coder
	inner   *allium.Cursor[coding.View] // nil for one of NewCursorFromDocuments
	batches *batch.Batches              // of inner
	docs    []bson.Raw                  // that are left of NewCursorFromDocuments
	err     error
	cause   error // of inner, that err was made of
	over    bool  // there is nothing more to come, or Close was called
	failed  bool  // Next has failed: it is not tried again, also if a context had ended
	left    int   // what RemainingBatchLength returned before that
	late    error // of All, which Err returns once Next was called again
}

func newCursor(inner *allium.Cursor[coding.View], c coder) *Cursor {
	return &Cursor{inner: inner, coder: c, batches: batch.Of(inner)}
}

// NewCursorFromDocuments returns a cursor over documents, with an error that Err returns.
func NewCursorFromDocuments(documents []any, preloadedErr error, registry *bson.Registry) (*Cursor, error) {
	c := &Cursor{coder: coder{registry: registry}, err: preloadedErr}
	for i, d := range documents {
		if d == nil {
			return nil, fmt.Errorf("invalid document at index %d: %w", i, ErrNilDocument)
		}
		if b, ok := d.([]byte); ok {
			d = bson.Raw(b)
		}
		doc, err := c.way().Marshal(d)
		if err != nil {
			return nil, err
		}
		c.docs = append(c.docs, bson.Raw(doc))
	}
	return c, nil
}

// BatchCursorFromCursor returns nil: cursors have no driver.BatchCursor inside.
//
// Deprecated: it is for the official driver's own packages.
func BatchCursorFromCursor(*Cursor) *driver.BatchCursor { return nil }

// ID returns the server's id of the cursor, 0 once the server has none any more.
func (c *Cursor) ID() int64 {
	if c.inner == nil || c.over {
		return 0
	}
	return c.inner.ID()
}

// Next advances to the next document. It returns false at the end, and after an error.
func (c *Cursor) Next(ctx context.Context) bool { return c.next(ctx, true) }

// TryNext is Next for cursors that tail: it asks the server once at the most.
func (c *Cursor) TryNext(ctx context.Context) bool { return c.next(ctx, false) }

func (c *Cursor) next(ctx context.Context, block bool) bool {
	if c.over || c.failed {
		if c.late != nil {
			c.err = c.late
		}
		return false
	}
	if c.inner == nil {
		if len(c.docs) == 0 || c.err != nil {
			c.finish()
			return false
		}
		c.Current, c.docs = c.docs[0], c.docs[1:]
		return true
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ended := ctx.Err()
	if c.Current != nil && c.batches.Left() == 0 && c.inner.ID() != 0 {
		c.Current = bytes.Clone(c.Current) // it stays if there are no documents in the next batch
	}
	found := false
	if block {
		found = c.inner.Next(ctx)
	} else {
		found = c.inner.TryNext(ctx)
	}
	if found {
		c.Current = bson.Raw(c.inner.Current().Document)
		return true
	}
	err := c.inner.Err()
	switch {
	case err != nil && ended != nil:
		c.err = ended
	case err != c.cause:
		c.err = moreFailed(err)
	}
	c.cause, c.failed = err, err != nil
	if c.inner.ID() == 0 {
		c.finish()
	}
	return false
}

// Err returns the error of the last call.
func (c *Cursor) Err() error { return c.err }

// Decode decodes the current document into the variable that val points to.
func (c *Cursor) Decode(val any) error {
	return c.way().Unmarshal(abson.TypeEmbeddedDocument, c.Current, val)
}

// finish marks that no more documents come.
func (c *Cursor) finish() {
	if !c.over {
		c.left = c.RemainingBatchLength()
		c.over = true
	}
}

// Close ends the cursor.
func (c *Cursor) Close(ctx context.Context) error {
	c.finish()
	if c.inner == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ended := ctx.Err()
	if err := c.inner.Close(ctx); err != nil && ended == nil {
		return failure(err)
	} else if err != nil {
		return ended
	}
	return nil
}

// All decodes the documents that are left into the slice that results points to, and closes the
// cursor. What is in the slice is overwritten.
func (c *Cursor) All(ctx context.Context, results any) error {
	p := reflect.ValueOf(results)
	if p.Kind() != reflect.Pointer {
		return fmt.Errorf("results argument must be a pointer to a slice, but was a %s", p.Kind())
	}
	slice := p.Elem()
	if slice.Kind() == reflect.Interface {
		slice = slice.Elem()
	}
	if slice.Kind() != reflect.Slice {
		return fmt.Errorf("results argument must be a pointer to a slice, but was a pointer to %s", slice.Kind())
	}
	// What the program sees of the cursor is what it saw before.
	defer func(current bson.Raw, err error, left int) {
		_ = c.Close(ctx)
		c.Current, c.err, c.left = current, err, left
	}(bytes.Clone(c.Current), c.err, c.RemainingBatchLength())
	if c.err != nil && c.inner == nil {
		return c.err
	}
	way := c.way()
	elem := slice.Type().Elem()
	out, n := slice.Slice(0, slice.Cap()), 0
	for c.Next(ctx) {
		if n == out.Len() {
			out = reflect.Append(out, reflect.Zero(elem))
			out = out.Slice(0, out.Cap())
		}
		// As with the official driver, an element that is there already is decoded into.
		if err := way.Unmarshal(abson.TypeEmbeddedDocument, c.Current, out.Index(n).Addr().Interface()); err != nil {
			return err
		}
		n++
	}
	if err := c.Err(); err != nil {
		c.late = err
		return err
	}
	p.Elem().Set(out.Slice(0, n))
	return nil
}

// documents returns copies of the documents that are left, and closes the cursor.
func (c *Cursor) documents(ctx context.Context) ([]bson.Raw, error) {
	defer c.Close(ctx)
	docs := []bson.Raw{}
	for c.Next(ctx) {
		docs = append(docs, bytes.Clone(c.Current))
	}
	return docs, c.Err()
}

// RemainingBatchLength returns how many documents are left of the current batch.
func (c *Cursor) RemainingBatchLength() int {
	if c.over {
		return c.left
	}
	if c.inner == nil {
		return len(c.docs)
	}
	return c.batches.Left()
}

// SetBatchSize says how many documents the next batches have at most.
func (c *Cursor) SetBatchSize(batchSize int32) {
	if c.inner != nil {
		c.batches.SetSize(batchSize)
	}
}

// SetMaxAwaitTime says how long the server waits for documents, if the cursor tails.
func (c *Cursor) SetMaxAwaitTime(dur time.Duration) {
	if c.inner != nil {
		c.batches.SetMaxAwaitTime(dur)
	}
}

// SetComment says what the server's logs have beside the commands that fetch the next batches.
func (c *Cursor) SetComment(comment any) {
	if c.inner == nil {
		return
	}
	v, err := c.any(comment)
	if err == nil {
		err = c.batches.SetComment(v)
	}
	if err != nil {
		c.err = errors.Join(c.err, err)
	}
}
