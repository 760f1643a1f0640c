package allium

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"allium/bson"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/option"
)

// Cursor iterates over the documents that an operation found. It fetches them from the server in
// batches. It is not safe for concurrent use, Next and Close included. A cursor must be closed
// unless it was read to its end, also after an error; Seq and All do it by themselves. Behind a
// load balancer an open cursor keeps a connection for itself. So does one with FindOptions.Exhaust
// while the server sends its batches.
//
// What a document decodes into is the caller's. Only a codec of the user's (bson.CodecFor) sees the
// document where it lies in the batch; what it keeps of those bytes is valid until the cursor moves
// on or is closed.
//
//	for user, err := range cur.Seq(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
type Cursor[T any] struct {
	cur     cursor.Cursor
	current T
}

// CursorType says what a cursor does at the end of what there is.
type CursorType string

// The types of cursors. Tailable ones are for capped collections, and stay open at their end, as
// tail -f does: Next asks again for what was inserted since. That of a TailableAwait cursor waits
// for it.
const (
	NonTailable   CursorType = ""
	Tailable      CursorType = "tailable"
	TailableAwait CursorType = "tailableAwait"
)

// TimeoutMode says what a timeout bounds of an operation that opens a cursor.
type TimeoutMode string

// The timeout modes. The empty TimeoutMode is TimeoutPerIteration for tailable cursors, which have no other one, and
// TimeoutOverLifetime for the rest. A mode may only be named where there is a timeout.
const (
	TimeoutOverLifetime TimeoutMode = "cursorLifetime" // the operation and all Nexts together
	TimeoutPerIteration TimeoutMode = "iteration"      // the operation, and then each Next by itself
)

// Next moves to the next document, which Current returns then. It returns false at the end and on
// an error, which Err tells apart. It waits for the server if the batch that was fetched last is
// used up.
//
// A Tailable cursor is never at its end while its ID is not 0: Next may be called again later. A
// TailableAwait cursor's Next returns when there is a document, or when ctx or the timeout ends. A
// Next of either that timed out, or whose context ended, may be called again while the ID is not 0,
// and misses nothing. Until then, the cursor may keep the connection that its reply is to arrive
// on. Every other error ends the iteration.
func (c *Cursor[T]) Next(ctx context.Context) bool { return c.next(ctx, true) }

// TryNext is Next for those who do other things in between: it asks the server once at the most. If
// there is no document, it returns false and Err returns nil.
func (c *Cursor[T]) TryNext(ctx context.Context) bool { return c.next(ctx, false) }

func (c *Cursor[T]) next(ctx context.Context, block bool) bool {
	if !c.cur.Advance(ctx, block) {
		return false
	}
	var zero T
	c.current = zero // decoded in place, since a variable of its own would be allocated for each document
	if err := decode(c.cur.BSON(), c.cur.Raw(), &c.current); err != nil {
		c.current = zero
		c.cur.Fail(fmt.Errorf("decode document %d: %w", c.cur.Index(), err))
		return false
	}
	return true
}

// Current returns the document that Next moved to.
func (c *Cursor[T]) Current() T { return c.current }

// Err returns the error that ended the iteration, nil if there was none.
func (c *Cursor[T]) Err() error { return c.cur.Err() }

// ID returns the server's id of the cursor, 0 once the server has sent its last batch.
func (c *Cursor[T]) ID() int64 { return c.cur.ID() }

// CloseCursorOptions are the options of Cursor.Close.
type CloseCursorOptions struct {
	// Timeout bounds the operation. Nil: the timeout that the cursor was opened with, which begins
	// anew.
	Timeout *time.Duration
}

// Close ends the cursor and frees it on the server. It may be called more than once, and after the
// end. It takes as long as the timeout or, without one, ten seconds at the most. Once ctx has
// ended, the cursor is freed in the background, which Client.Close waits for.
func (c *Cursor[T]) Close(ctx context.Context, opts ...CloseCursorOptions) error {
	o, err := option.One(opts)
	switch {
	case err != nil:
		return fmt.Errorf("close cursor: %w", err)
	case ctx == nil:
		return errNilContext
	case o.Timeout == nil:
		c.cur.Close(ctx)
		return nil
	case *o.Timeout < 0:
		return fmt.Errorf("close cursor: timeout is %v, want 0 or more", *o.Timeout)
	}
	c.cur.CloseWithin(ctx, exec.NewLimit(o.Timeout, timeoutSources["operation"]))
	return nil
}

// Seq returns an iterator over the documents that are left. It yields an error at most once, at its
// end, and closes the cursor, also when the loop is left early.
func (c *Cursor[T]) Seq(ctx context.Context) iter.Seq2[T, error] {
	return sequence(ctx, &c.cur, c.Next, &c.current)
}

// iterated is a cursor or a change stream without its type.
type iterated interface {
	Err() error
	Close(ctx context.Context) error
}

// sequence is the Seq of a cursor or a change stream: next moves current on.
func sequence[V any](ctx context.Context, c iterated, next func(context.Context) bool, current *V) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if ctx == nil {
			yield(none, errNilContext)
			return
		}
		defer c.Close(ctx)
		for next(ctx) {
			if !yield(*current, nil) {
				return
			}
		}
		if err := c.Err(); err != nil {
			yield(none, err)
		}
	}
}

// All returns the documents that are left, and closes the cursor. On an error it returns those that
// came before it.
func (c *Cursor[T]) All(ctx context.Context) ([]T, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	defer c.cur.Close(ctx)
	all := []T{}
	for c.cur.Advance(ctx, true) {
		var zero T
		all = append(all, zero)
		if err := decode(c.cur.BSON(), c.cur.Raw(), &all[len(all)-1]); err != nil {
			c.cur.Fail(fmt.Errorf("decode document %d: %w", c.cur.Index(), err))
			return all[:len(all)-1], c.cur.Err()
		}
	}
	return all, c.cur.Err()
}

// Batches returns an iterator over the batches that are left, as the arrays of documents that the
// server sent, without decoding them. It yields an error at most once, at its end, and closes the
// cursor, also when the loop is left early. What Next has moved past is not in the first one.
//
//	for batch, err := range cur.Batches(ctx) {
//		for doc := range batch.Values() {
//			...
//		}
//	}
func (c *Cursor[T]) Batches(ctx context.Context) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		if ctx == nil {
			yield(nil, errNilContext)
			return
		}
		defer c.cur.Close(ctx)
		for c.cur.Advance(ctx, true) {
			batch, err := c.cur.Remaining()
			if err != nil || !yield(batch, nil) {
				break
			}
		}
		if err := c.cur.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// decode decodes a document. A bson.Raw gets a copy, since the batch's memory is used again.
func decode(o *bson.Options, raw bson.Raw, v any) error {
	if r, ok := v.(*bson.Raw); ok {
		*r = bytes.Clone(raw)
		return nil
	}
	if o == nil {
		return bson.Unmarshal(raw, v)
	}
	return o.Unmarshal(raw, v)
}

// marshalAppend appends a document of the user's.
func marshalAppend(o *bson.Options, dst []byte, v any) ([]byte, error) {
	if o == nil {
		return bson.MarshalAppend(dst, v)
	}
	return o.MarshalAppend(dst, v)
}
