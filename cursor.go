package allium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
)

// Cursor iterates over the documents that an operation found. It fetches them from the server in batches. It is not safe
// for concurrent use, Next and Close included. A cursor must be closed unless it was read to its end, also after an error;
// Seq and All do it by themselves. Behind a load balancer an open cursor keeps a connection for itself.
// So does one with FindOptions.Exhaust while the server sends its batches.
//
// What a document decodes into is the caller's. Only a codec of the user's (bson.CodecFor) sees the document where it lies in the
// batch; what it keeps of those bytes is valid until the cursor moves on or is closed.
//
//	for user, err := range cur.Seq(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
type Cursor[T any] struct {
	cursor
	current T
}

// cursor is the part of a Cursor that does not depend on the type of its documents.
type cursor struct {
	client *Client
	exec   *exec.Executor
	bson   *bson.Options

	id         int64 // 0: the server has no cursor (any more)
	db, coll   string
	server     *topology.Server
	conn       *pool.Conn // the connection that the cursor is pinned to, behind a load balancer or while the server streams
	implicit   *session.ServerSession
	session    *session.Session
	batchSize  int32
	limit      int64 // 0: none
	seen       int64 // documents that the server has sent
	comment    any
	kind       CursorType
	exhaust    bool          // the server may send batches without being asked
	within     exec.Limit    // timeoutMS, over the cursor's life or, with refresh, of each Next
	refresh    bool          // the timeout begins anew with each Next
	maxAwait   time.Duration // how long a getMore waits for data; 0 leaves it to the server
	registered bool

	result    exec.Result // holds the batch's memory
	batch     []byte      // the elements of the batch that are not read yet
	postBatch bson.Raw    // the batch's postBatchResumeToken, in the batch's memory
	raw       bson.Raw    // the current document
	err       error
	goesOn    bool // err says that time was up, and the next call may go on
	closed    bool

	wireVersion int32 // of the connection of a getMore that failed
	lost        bool  // its reply cannot arrive any more
}

// CursorType says what a cursor does at the end of what there is.
type CursorType uint8

// The types of cursors. Tailable ones are for capped collections, and stay open at their end, as tail -f does: Next asks again for
// what was inserted since. That of a TailableAwait cursor waits for it.
const (
	NonTailable CursorType = iota
	Tailable
	TailableAwait
)

// TimeoutMode says what a timeout bounds of an operation that opens a cursor (specification: Client Side Operations Timeout,
// "Cursors").
type TimeoutMode uint8

// The timeout modes. DefaultTimeoutMode is TimeoutPerIteration for tailable cursors, which have no other one, and TimeoutOverLifetime
// for the rest. A mode may only be named where there is a timeout.
const (
	DefaultTimeoutMode  TimeoutMode = iota
	TimeoutOverLifetime             // the operation and all Nexts together
	TimeoutPerIteration             // the operation, and then each Next by itself
)

// reading says how a cursor is read.
type reading struct {
	kind      CursorType
	mode      TimeoutMode
	maxAwait  time.Duration
	batchSize int32
	comment   any
}

// prepare checks how a cursor is to be read, and gives the operation that opens it, which has its limit already, what follows from
// that.
func (c *cursor) prepare(op *exec.Op, r reading) error {
	switch {
	case r.mode > TimeoutPerIteration || r.kind > TailableAwait:
		return errors.New("the option TimeoutMode or CursorType has a value that does not exist")
	case r.mode != DefaultTimeoutMode && op.Timeout == nil:
		return errors.New("option TimeoutMode is set, but no timeout is")
	case r.kind != NonTailable && r.mode == TimeoutOverLifetime:
		return errors.New("the timeout of a tailable cursor cannot bound its whole life: its TimeoutMode is TimeoutPerIteration")
	case r.maxAwait < 0:
		return negative("MaxAwaitTime", r.maxAwait)
	case op.Timeout != nil && *op.Timeout > 0 && r.maxAwait >= *op.Timeout:
		return fmt.Errorf("MaxAwaitTime is %v, want less than %s, %v", r.maxAwait, op.Source, *op.Timeout)
	}
	c.kind, c.batchSize, c.comment, c.maxAwait = r.kind, r.batchSize, r.comment, r.maxAwait
	c.refresh = r.kind != NonTailable || r.mode == TimeoutPerIteration
	// The context that a cursor is opened with need not be the one that it is read with, so that its deadline must not bound the
	// cursor's life on the server.
	op.NoMaxTime = op.NoMaxTime || op.Deadline.IsZero() || c.refresh && r.kind != TailableAwait
	return nil
}

// open takes over the reply of the command that made the cursor.
func (c *cursor) open(client *Client, op *exec.Op, res exec.Result) error {
	c.client, c.exec, c.db, c.bson = client, client.exec, op.DB, op.BSON
	c.server, c.conn, c.implicit, c.session = res.Server, res.Conn, res.Implicit, op.Session
	c.within = op.Limit
	r, err := command.ParseCursor(res.Reply)
	if err != nil {
		c.release()
		res.Release()
		return err
	}
	c.take(res, r)
	if r.ID == 0 {
		c.release()
	} else {
		client.cursors.add(c, openCursor{id: r.ID, db: c.db, coll: c.coll, server: c.server, pinned: c.conn != nil})
		c.registered = true
	}
	return nil
}

// take makes r the current batch.
func (c *cursor) take(res exec.Result, r command.CursorReply) {
	c.result.Release()
	c.result, c.batch, c.postBatch, c.id = res, r.Batch.Elements(), r.PostBatchResumeToken, r.ID
	if db, coll, ok := cutNamespace(r.NS); ok {
		c.db, c.coll = db, coll
	}
}

func cutNamespace(ns string) (db, coll string, ok bool) {
	for i := range len(ns) {
		if ns[i] == '.' {
			return ns[:i], ns[i+1:], true
		}
	}
	return "", "", false
}

// unstream gives back the connection that the server streamed over. If it is not done with that, the connection is closed. One that
// leads through a load balancer stays the cursor's.
func (c *cursor) unstream() {
	if c.conn != nil && c.conn.Hello().Kind != event.LoadBalancer {
		c.conn.Return()
		c.conn = nil
	}
}

// release gives back what the cursor holds besides its batch: its session and its connection.
func (c *cursor) release() {
	if c.registered {
		c.client.cursors.remove(c)
		c.registered = false
	}
	c.exec.PutSession(c.implicit)
	c.implicit = nil
	if c.conn != nil {
		c.conn.Return()
		c.conn = nil
	}
	c.id = 0
}

// advance moves to the next document, fetching batches if need be: one at the most without block, or if the cursor tails without
// waiting.
func (c *cursor) advance(ctx context.Context, block bool) bool {
	if c.goesOn {
		c.err, c.goesOn = nil, false
		if c.closed {
			c.err = errCursorClosed
		}
	}
	if ctx == nil && c.err == nil {
		c.fail(errNilContext)
	}
	var began time.Time
	for asked := false; c.err == nil && !c.closed; asked = true {
		if len(c.batch) > 0 {
			if err := c.read(); err != nil {
				c.fail(err)
				return false
			}
			return true
		}
		if c.id == 0 || c.limit > 0 && c.seen >= c.limit {
			c.close(ctx)
			return false
		}
		if asked && (!block || c.kind == Tailable) {
			return false
		}
		if !asked {
			began = time.Now()
			if c.refresh {
				c.within = c.within.Refreshed()
			}
		}
		if err := c.getMore(ctx, began); err != nil {
			c.interrupted(ctx, err)
			return false
		}
	}
	return false
}

// read moves to the next document of the batch.
func (c *cursor) read() error {
	_, v, rest, err := bson.ReadElement(c.batch)
	if err == nil && v.Type != bson.TypeEmbeddedDocument {
		err = errNotDocument
	}
	if err != nil {
		return fmt.Errorf("server's batch is malformed: %w", err)
	}
	c.batch, c.raw = rest, v.Value
	c.seen++
	return nil
}

var errCursorClosed = errors.New("cursor is closed")

var errNotDocument = errors.New("an element is not a document")

// fail ends the iteration with an error. What the server still has of the cursor is left to Close: the time for it may be up, and a
// connection behind a load balancer stays the cursor's (specification: Load Balancers, "Behaviour With Cursors").
func (c *cursor) fail(err error) {
	c.err = err
	c.unstream()
	if c.id == 0 {
		c.release()
	}
}

// interrupted deals with an error of a getMore. A tailable cursor goes on after time was up if nothing can have been lost: nothing
// was sent, or the connection is kept that the reply will arrive on. Otherwise it ends here, so that its ID says so.
func (c *cursor) interrupted(ctx context.Context, err error) {
	switch {
	case c.kind == NonTailable:
		c.fail(err)
	case c.id != 0 && timedOut(err) && !c.lost:
		c.err, c.goesOn = err, true
	default:
		c.fail(err)
		c.close(ctx)
	}
}

// op makes the operation of a command about the cursor, which goes where the cursor lives, in its session.
func (c *cursor) op(cmd command.Command) exec.Op {
	op := exec.NewOp(cmd)
	op.DB, op.BSON, op.Session, op.Implicit, op.Server, op.Conn, op.Limit = c.db, c.bson, c.session, c.implicit, c.server, c.conn, c.within
	return op
}

// getMore fetches the next batch. began is when the call began that needs it.
func (c *cursor) getMore(ctx context.Context, began time.Time) error {
	if ctx == nil {
		return errNilContext
	}
	size := c.batchSize
	if c.limit > 0 && size > 0 {
		size = int32(min(int64(size), c.limit-c.seen))
	}
	op := c.op(&command.GetMore{ID: c.id, Collection: c.coll, BatchSize: size, Comment: c.comment})
	op.Exhaust, op.KeepLate, op.Began, op.NoMaxTime, op.MaxAwait = c.exhaust, c.kind != NonTailable, began, true, c.maxAwait
	res, err := c.exec.Run(ctx, &op)
	if err != nil {
		c.wireVersion = res.WireVersion
		if res.Conn != nil {
			c.conn = res.Conn
		}
		c.lost = res.Sent && !(c.conn != nil && c.conn.Owed())
		if cursorGone(err) {
			c.id = 0 // there is nothing left to kill
		}
		return err
	}
	if res.Conn != nil {
		c.conn = res.Conn
	}
	r, err := command.ParseCursor(res.Reply)
	if err != nil {
		res.Release()
		return err
	}
	c.take(res, r)
	if c.id == 0 {
		c.release()
	} else if c.conn != nil && !c.conn.Streaming() {
		c.unstream() // the server wants to be asked again
	}
	return nil
}

// cursorGone reports whether the server said that it does not have the cursor any more.
func cursorGone(err error) bool {
	return mongoerr.HasCode(err, codeCursorNotFound) || mongoerr.HasCode(err, codeCursorKilled)
}

// killTimeout bounds how long closing a cursor may take.
const killTimeout = 10 * time.Second

// close ends the cursor: it tells the server to forget it, if the server still has it, and gives everything back. The timeout of
// the operation that opened the cursor begins anew for it (specification: Client Side Operations Timeout, "Cursors"). Once ctx has
// ended, that happens in the background. Its error, that of killCursors, is rarely of interest: the server forgets idle cursors by
// itself.
func (c *cursor) close(ctx context.Context) error { return c.closeWithin(ctx, c.within.Refreshed()) }

func (c *cursor) closeWithin(ctx context.Context, limit exec.Limit) error {
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.free(ctx, limit, killTimeout, false)
	c.result.Release()
	c.batch, c.postBatch = nil, nil
	return err
}

// free kills the cursor, if the server still has it, and gives back its connection and, unless a resume goes on in it, its session.
// Without a limit, it takes most at the most.
func (c *cursor) free(ctx context.Context, limit exec.Limit, most time.Duration, resumes bool) error {
	c.unstream()
	implicit := c.implicit
	if resumes {
		c.implicit = nil // release leaves it alone
	}
	if c.id == 0 {
		c.release()
		if resumes {
			c.implicit = implicit
		}
		return nil
	}
	r := &remains{exec: c.exec, openCursor: openCursor{id: c.id, db: c.db, coll: c.coll, server: c.server}, comment: c.comment,
		bson: c.bson, session: c.session, implicit: implicit, resumes: resumes, conn: c.conn}
	c.implicit, c.conn = nil, nil
	c.release()
	if resumes {
		c.implicit = implicit
	}
	return r.free(ctx, limit, most, &c.client.background)
}

// Next moves to the next document, which Current returns then. It returns false at the end and on an error, which Err tells
// apart. It waits for the server if the batch that was fetched last is used up.
//
// A Tailable cursor is never at its end while its ID is not 0: Next may be called again later. A TailableAwait cursor's Next
// returns when there is a document, or when ctx or the timeout ends. A Next of either that timed out, or whose context ended, may
// be called again while the ID is not 0, and misses nothing. Until then, the cursor may keep the connection that its reply is to
// arrive on. Every other error ends the iteration.
func (c *Cursor[T]) Next(ctx context.Context) bool { return c.next(ctx, true) }

// TryNext is Next for those who do other things in between: it asks the server once at the most. If there is no document, it
// returns false and Err returns nil.
func (c *Cursor[T]) TryNext(ctx context.Context) bool { return c.next(ctx, false) }

func (c *Cursor[T]) next(ctx context.Context, block bool) bool {
	if !c.advance(ctx, block) {
		return false
	}
	var zero T
	c.current = zero // decoded in place, since a variable of its own would be allocated for each document
	if err := decode(c.bson, c.raw, &c.current); err != nil {
		c.current = zero
		c.fail(fmt.Errorf("decode document %d: %w", c.seen-1, err))
		return false
	}
	return true
}

// Current returns the document that Next moved to.
func (c *Cursor[T]) Current() T { return c.current }

// Err returns the error that ended the iteration, nil if there was none.
func (c *Cursor[T]) Err() error { return c.err }

// ID returns the server's id of the cursor, 0 once the server has sent its last batch.
func (c *Cursor[T]) ID() int64 { return c.id }

// CloseCursorOptions are the options of Cursor.Close.
type CloseCursorOptions struct {
	// Timeout bounds the operation. Nil: the timeout that the cursor was opened with, which begins anew.
	Timeout *time.Duration
}

// Close ends the cursor and frees it on the server. It may be called more than once, and after the end. It takes as long as the
// timeout or, without one, ten seconds at the most. Once ctx has ended, the cursor is freed in the background, which Client.Close
// waits for.
func (c *Cursor[T]) Close(ctx context.Context, opts ...CloseCursorOptions) error {
	o, err := option.One(opts)
	switch {
	case err != nil:
		return fmt.Errorf("close cursor: %w", err)
	case ctx == nil:
		return errNilContext
	case o.Timeout == nil:
		c.close(ctx)
		return nil
	case *o.Timeout < 0:
		return fmt.Errorf("close cursor: timeout is %v, want 0 or more", *o.Timeout)
	}
	c.closeWithin(ctx, exec.NewLimit(o.Timeout, timeoutSources["operation"]))
	return nil
}

// Seq returns an iterator over the documents that are left. It yields an error at most once, at its end, and closes the
// cursor, also when the loop is left early.
func (c *Cursor[T]) Seq(ctx context.Context) iter.Seq2[T, error] {
	return sequence(ctx, &c.cursor, c.Next, &c.current)
}

// sequence is the Seq of a cursor or a change stream: next moves current on.
func sequence[V any](ctx context.Context, c *cursor, next func(context.Context) bool, current *V) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if ctx == nil {
			yield(none, errNilContext)
			return
		}
		defer c.close(ctx)
		for next(ctx) {
			if !yield(*current, nil) {
				return
			}
		}
		if c.err != nil {
			yield(none, c.err)
		}
	}
}

// All returns the documents that are left, and closes the cursor. On an error it returns those that came before it.
func (c *Cursor[T]) All(ctx context.Context) ([]T, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	defer c.close(ctx)
	all := []T{}
	for c.advance(ctx, true) {
		var zero T
		all = append(all, zero)
		if err := decode(c.bson, c.raw, &all[len(all)-1]); err != nil {
			c.fail(fmt.Errorf("decode document %d: %w", c.seen-1, err))
			return all[:len(all)-1], c.err
		}
	}
	return all, c.err
}

// Batches returns an iterator over the batches that are left, as the arrays of documents that the server sent, without decoding
// them. It yields an error at most once, at its end, and closes the cursor, also when the loop is left early. What Next has
// moved past is not in the first one.
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
		defer c.close(ctx)
		for c.advance(ctx, true) {
			start, dst := bson.BeginDocument(make([]byte, 0, len(c.raw)+len(c.batch)+16))
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0), c.raw...)
			n := 1
			for len(c.batch) > 0 {
				if err := c.read(); err != nil {
					c.fail(err)
					break
				}
				dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n), c.raw...)
				n++
			}
			if c.err != nil || !yield(bson.EndDocument(dst, start), nil) {
				break
			}
		}
		if c.err != nil {
			yield(nil, c.err)
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
