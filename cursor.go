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
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// Cursor iterates over the documents that an operation found. It fetches them from the server in
// batches. It is not safe for concurrent use, Next and Close included. A cursor must be closed
// unless it was read to its end, also after an error; Seq and All close it. Behind a load balancer
// an open cursor pins its connection. So does a cursor with FindOptions.Exhaust while the server
// streams its batches.
//
// Decoded documents belong to the caller. Only a user's codec (bson.CodecFor) sees the bytes of the
// batch itself; they are valid until the cursor advances or is closed.
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

// Package stats/batch shows the batches of cursors and change streams.
func init() {
	cursor.Inside = func(c any) *cursor.Cursor {
		if c, ok := c.(interface{ inside() *cursor.Cursor }); ok {
			return c.inside()
		}
		return nil
	}
}

func (c *Cursor[T]) inside() *cursor.Cursor { return &c.cur }

func (s *ChangeStream[T]) inside() *cursor.Cursor { return &s.stream.Cursor }

// CursorType says what a cursor does after the last document.
type CursorType string

// The types of cursors; without one a cursor ends with the last document. Tailable cursors are for
// capped collections and stay open after the last document, like tail -f: Next asks for documents
// inserted since. With CursorTailableAwait, the server waits for them.
const (
	CursorTailable      CursorType = "tailable"
	CursorTailableAwait CursorType = "tailableAwait"
)

// TimeoutMode says what the timeout of an operation that opens a cursor bounds.
type TimeoutMode string

// The timeout modes. The empty TimeoutMode is TimeoutPerIteration for tailable cursors, which
// support no other mode, and TimeoutOverLifetime for the rest. Setting a mode without a timeout is
// an error.
const (
	TimeoutOverLifetime TimeoutMode = "cursorLifetime" // the operation and all Nexts together
	TimeoutPerIteration TimeoutMode = "iteration"      // the operation, and then each Next by itself
)

// Next advances to the next document and makes Current return it. It returns false at the end and
// on an error; Err tells them apart. It fetches a batch when the current one is used up.
//
// A document that does not decode as T is a *mongoerr.DecodeError, which holds it. It does not end
// the iteration: call Next again to go on behind it.
//
//	for {
//		for cur.Next(ctx) {
//			use(cur.Current())
//		}
//		odd, ok := errors.AsType[*mongoerr.DecodeError](cur.Err())
//		if !ok {
//			return cur.Err() // nil at the end
//		}
//		setAside(odd.Document)
//	}
//
// A tailable cursor has not ended while its ID is not 0: Next may be called again later. With
// CursorTailableAwait, Next returns when there is a document, or when ctx or the timeout ends.
// After a timeout or a cancelled context, Next may be called again while the ID is not 0, and no
// document is lost. Until then, the cursor may keep the connection on which a reply is owed. Every
// other error ends the iteration.
func (c *Cursor[T]) Next(ctx context.Context) bool { return c.next(ctx, true) }

// TryNext makes at most one round trip. If there is no document, it returns false and Err returns
// nil.
func (c *Cursor[T]) TryNext(ctx context.Context) bool { return c.next(ctx, false) }

func (c *Cursor[T]) next(ctx context.Context, block bool) bool {
	if !c.cur.Advance(ctx, block) {
		return false
	}
	var zero T
	c.current = zero // decoded in place, since a variable of its own would be allocated for each document
	if err := decodeNext(&c.cur, &c.current); err != nil {
		c.current = zero
		c.cur.Pass(c.cur.Undecoded(err))
		return false
	}
	return true
}

// Current returns the document that Next advanced to.
func (c *Cursor[T]) Current() T { return c.current }

// Err returns the error of the last Next or TryNext, nil if there was none.
func (c *Cursor[T]) Err() error { return c.cur.Err() }

// ID returns the server's id of the cursor, 0 once the server has sent its last batch.
func (c *Cursor[T]) ID() int64 { return c.cur.ID() }

// CloseCursorOptions are the options of Cursor.Close.
type CloseCursorOptions struct {
	// Timeout bounds the operation. Nil: the timeout that the cursor was opened with, restarted.
	Timeout *time.Duration
}

// Close ends the cursor and frees it on the server. It may be called more than once, and after the
// end. It takes at most the timeout or, without one, ten seconds. If ctx has ended, the cursor is
// freed in the background; Client.Close waits for that. A server that cannot be reached is told in
// the background when it is back.
func (c *Cursor[T]) Close(ctx context.Context, opts ...CloseCursorOptions) error {
	o := option.Merge(opts)
	switch {
	case ctx == nil:
		return errNilContext
	case o.Timeout == nil:
		c.cur.Close(ctx)
		return nil
	case *o.Timeout < 0:
		return c.cur.Named(fmt.Errorf("close: timeout is %v, want 0 or more", *o.Timeout))
	}
	c.cur.CloseWithin(ctx, exec.NewLimit(o.Timeout, timeoutSources["operation"]))
	return nil
}

// Seq returns an iterator over the remaining documents. For a document that does not decode as T it
// yields the zero T and a *mongoerr.DecodeError, which holds it, and goes on behind it unless the
// loop is left. Any other error is its last element. It closes the cursor, also when the loop is
// left early.
func (c *Cursor[T]) Seq(ctx context.Context) iter.Seq2[T, error] {
	return sequence(ctx, &c.cur, c.Next, &c.current)
}

// iterated is a cursor or a change stream without its type.
type iterated interface {
	Err() error
	Close(ctx context.Context) error
}

// sequence is the Seq of a cursor or a change stream: next moves current on, which for a document
// that does not decode has what does.
func sequence[V any](ctx context.Context, c iterated, next func(context.Context) bool, current *V) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if ctx == nil {
			yield(none, errNilContext)
			return
		}
		defer c.Close(ctx)
		for {
			if next(ctx) {
				if !yield(*current, nil) {
					return
				}
				continue
			}
			err := c.Err()
			if _, odd := err.(*mongoerr.DecodeError); !odd {
				if err != nil {
					yield(none, err)
				}
				return
			}
			if !yield(*current, err) {
				return
			}
		}
	}
}

// All returns the remaining documents and closes the cursor. It reads to the end also if documents
// do not decode as T: it leaves them out, and its error is a mongoerr.DecodeErrors, which holds
// them all. On any other error it returns the documents before it.
func (c *Cursor[T]) All(ctx context.Context) ([]T, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	defer c.cur.Close(ctx)
	all := []T{}
	var odd mongoerr.DecodeErrors
	for c.cur.Advance(ctx, true) {
		var zero T
		all = append(all, zero)
		if err := decodeNext(&c.cur, &all[len(all)-1]); err != nil {
			all[len(all)-1] = zero
			all, odd = all[:len(all)-1], append(odd, c.cur.Undecoded(err))
		}
	}
	if odd == nil {
		return all, c.cur.Err()
	}
	return all, failure.Join(c.cur.Err(), odd)
}

// Batches returns an iterator over the remaining batches: the server's arrays of documents, not
// decoded. It yields at most one error, as its last element, and closes the cursor, also when the
// loop is left early. The first one does not contain documents that Next has passed.
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

// decodeNext decodes the document that a cursor has moved to.
func decodeNext(c *cursor.Cursor, v any) error {
	if err := c.Sealed(); err != nil {
		return err
	}
	return decode(c.BSON(), c.Raw(), v)
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

// marshalAppend appends a user's document.
func marshalAppend(o *bson.Options, dst []byte, v any) ([]byte, error) {
	if o == nil {
		return bson.MarshalAppend(dst, v)
	}
	return o.MarshalAppend(dst, v)
}
