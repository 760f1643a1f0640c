package cursor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
)

// Cursor iterates over the documents of a cursor of the server's, without decoding them. It belongs
// to one goroutine at a time. It must be closed unless it was read to its end. The zero Cursor has
// no documents.
type Cursor struct {
	registry *Registry
	exec     *exec.Executor
	bson     *bson.Options

	id       int64 // 0: the server has no cursor (any more)
	db, coll string
	server   *topology.Server
	// the connection that the cursor is pinned to, behind a load balancer or while the server
	// streams
	conn       *pool.Conn
	implicit   *session.ServerSession
	borrowed   bool  // the implicit session is that of an operation, which goes on in it
	operation  int64 // the id of an operation of several commands, which the cursor's share; else 0
	session    *session.Session
	batchSize  int32
	limit      int64 // 0: none
	seen       int64 // documents that the server has sent
	comment    any
	kind       Type
	exhaust    bool          // the server may send batches without being asked
	within     exec.Limit    // timeoutMS, over the cursor's life or, with refresh, of each Next
	refresh    bool          // the timeout begins anew with each Next
	maxAwait   time.Duration // how long a getMore waits for data; 0 leaves it to the server
	awaits     bool          // a getMore waits for data
	registered bool

	result    exec.Result // holds the batch's memory
	batch     []byte      // the elements of the batch that are not read yet
	postBatch bson.Raw    // the batch's postBatchResumeToken, in the batch's memory
	raw       bson.Raw    // the current document
	next      int         // the index of the next document in the batch
	sealed    error       // why the current document is still encrypted
	err       error
	goesOn    bool // err does not end the iteration: the next call goes on
	closed    bool
	abandoned bool // closed by the program before the end

	wireVersion int32 // of the connection of a getMore that failed
	replyLost   bool  // its reply cannot arrive any more
}

// Type says what a cursor does at the end of what there is.
type Type string

// The types of cursors.
const (
	NonTailable   Type = ""
	Tailable      Type = "tailable"
	TailableAwait Type = "tailableAwait" // waits for what is inserted
)

// TimeoutMode says what a timeout bounds of an operation that opens a cursor.
type TimeoutMode string

// The timeout modes.
const (
	DefaultTimeout TimeoutMode = ""               // PerIteration for tailable cursors, OverLifetime for the rest
	OverLifetime   TimeoutMode = "cursorLifetime" // the operation and all calls together
	PerIteration   TimeoutMode = "iteration"      // the operation, and then each call by itself
)

// Reading says how a cursor is read.
type Reading struct {
	Type        Type
	TimeoutMode TimeoutMode
	MaxAwait    time.Duration // how long a getMore waits for data, if Type is TailableAwait; 0: the server's choice
	MaxTime     time.Duration // what a getMore has as maxTimeMS whatever Type is; 0: nothing
	BatchSize   int32
	Limit       int64 // how many documents there are at most; 0: no limit
	Exhaust     bool  // the server may send batches without being asked
	Comment     any
}

// await returns what the getMores have as maxTimeMS. How long to wait says nothing of a cursor that
// does not wait, whose server would refuse it (specification: CRUD, "maxAwaitTimeMS").
func (r *Reading) await() time.Duration {
	if r.Type == TailableAwait && r.MaxAwait > 0 {
		return r.MaxAwait
	}
	return r.MaxTime
}

// Prepare checks how a cursor is to be read, and gives the operation that opens it, which has its
// limit already, what follows from that.
func (c *Cursor) Prepare(op *exec.Op, r Reading) error {
	switch {
	case r.Type != NonTailable && r.Type != Tailable && r.Type != TailableAwait:
		return fmt.Errorf("option CursorType is %q, want %s, %s or nothing", r.Type, Tailable, TailableAwait)
	case r.TimeoutMode != DefaultTimeout && r.TimeoutMode != OverLifetime && r.TimeoutMode != PerIteration:
		return fmt.Errorf("option TimeoutMode is %q, want %s, %s or nothing", r.TimeoutMode, OverLifetime, PerIteration)
	case r.TimeoutMode != DefaultTimeout && op.Timeout == nil:
		return errors.New("option TimeoutMode is set, but no timeout is")
	case r.Type != NonTailable && r.TimeoutMode == OverLifetime:
		return errors.New(
			"the timeout of a tailable cursor cannot bound its whole life: its TimeoutMode is TimeoutPerIteration")
	}
	if err := CheckAwait(op, cmp.Or(r.MaxAwait, r.MaxTime)); err != nil {
		return err
	}
	await := r.await()
	comment, err := freeze(op.BSON, r.Comment)
	if err != nil {
		return fmt.Errorf("comment: %w", err)
	}
	if op.Timeout != nil {
		op.Timeout = new(*op.Timeout)
	}
	c.kind, c.batchSize, c.comment, c.maxAwait = r.Type, r.BatchSize, comment, await
	c.limit, c.exhaust, c.awaits = max(r.Limit, 0), r.Exhaust, r.Type == TailableAwait || await > 0
	c.refresh = r.Type != NonTailable || r.TimeoutMode == PerIteration
	// The context that a cursor is opened with need not be the one that it is read with, so that
	// its deadline must not bound the cursor's life on the server.
	op.NoMaxTime = op.NoMaxTime || op.Deadline.IsZero() || c.refresh && r.Type != TailableAwait
	return nil
}

// freeze encodes a comment that later commands carry, too: the program may change its value.
func freeze(o *bson.Options, comment any) (any, error) {
	switch comment.(type) {
	case nil, string:
		return comment, nil
	}
	if o == nil {
		o = &bson.Options{}
	}
	return o.MarshalValue(comment)
}

// CheckAwait checks how long the getMores of a cursor wait for data against the limit of the
// operation that opens it.
func CheckAwait(op *exec.Op, d time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("MaxAwaitTime is %v, want 0 or more", d)
	case op.Timeout != nil && *op.Timeout > 0 && d >= *op.Timeout:
		return fmt.Errorf("MaxAwaitTime is %v, want less than %s, %v", d, op.Source, *op.Timeout)
	}
	return nil
}

// SetComment sets the comment of the commands that follow, as Prepare does.
func (c *Cursor) SetComment(comment any) { c.comment = comment }

// SetFrozenComment is SetComment for a value of the program's, which may change it later.
func (c *Cursor) SetFrozenComment(comment any) error {
	frozen, err := freeze(c.bson, comment)
	if err == nil {
		c.comment = frozen
	}
	return err
}

// SetBatchSize sets how many documents the getMores that follow ask for, 0 for the server's choice.
func (c *Cursor) SetBatchSize(n int32) { c.batchSize = n }

// SetMaxAwait sets how long the getMores that follow wait for data, 0 for the server's choice.
func (c *Cursor) SetMaxAwait(d time.Duration) {
	c.maxAwait = d
	c.awaits = c.awaits || d > 0
}

// Left returns how many documents of the batch Advance has not come to.
func (c *Cursor) Left() (n int) {
	for rest := c.batch; len(rest) > 0; n++ {
		_, _, after, err := bson.ReadElement(rest)
		if err != nil {
			break
		}
		rest = after
	}
	return n
}

// Inside returns what is inside of a cursor or a change stream of the root package, nil if c is
// neither.
var Inside func(c any) *Cursor

// Borrow leaves the implicit session to the operation that the cursor is a part of, which gives it
// back after the cursor is closed.
func (c *Cursor) Borrow() { c.borrowed = true }

// Open takes over the reply of the command that made the cursor. When the client was closed while
// the command was under way, the cursor is freed, in the time that the operation has left, and the
// error is ErrClientClosed.
func (c *Cursor) Open(ctx context.Context, reg *Registry, op *exec.Op, res exec.Result) error {
	c.registry, c.exec, c.db, c.bson = reg, reg.exec, op.DB, op.BSON
	c.server, c.conn, c.implicit, c.session = res.Server, res.Conn, res.Implicit, op.Session
	c.within, c.operation = op.Limit, op.ID
	r, err := command.ParseCursor(res.Reply, command.FirstBatch)
	if err != nil {
		c.release()
		res.Release()
		return op.Named(err)
	}
	c.take(res, r)
	if r.ID == 0 {
		c.release()
		return nil
	}
	c.registered = reg.add(c, openCursor{id: r.ID, db: c.db, coll: c.coll, server: c.server, pinned: c.conn != nil})
	if !c.registered {
		c.err = op.Named(mongoerr.ErrClientClosed)
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		c.CloseWithin(ctx, op.Limit)
		return c.err
	}
	return nil
}

// take makes r the current batch.
func (c *Cursor) take(res exec.Result, r command.CursorReply) {
	c.result.Release()
	c.result, c.batch, c.postBatch, c.id = res, r.Batch.Elements(), r.PostBatchResumeToken, r.ID
	c.next = 0
	if db, coll, ok := cutNamespace(r.NS()); ok {
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

// unstream gives back the connection that the server streamed over. If it is not done with that,
// the connection is closed. One that leads through a load balancer stays the cursor's.
func (c *Cursor) unstream() {
	if c.conn != nil && c.conn.Hello().Kind != event.LoadBalancer {
		conn := c.conn
		c.conn = nil // a listener of Return may panic
		conn.Return()
	}
}

// release gives back what the cursor holds besides its batch: its session and its connection.
func (c *Cursor) release() {
	if c.registered {
		c.registry.remove(c)
		c.registered = false
	}
	if !c.borrowed {
		c.exec.PutSession(c.implicit)
	}
	conn := c.conn
	c.implicit, c.conn, c.id = nil, nil, 0
	if conn != nil {
		conn.Return()
	}
}

// Advance moves to the next document, fetching batches if need be: one at the most without block,
// or if the cursor tails without waiting.
func (c *Cursor) Advance(ctx context.Context, block bool) bool {
	if c.goesOn {
		c.err, c.goesOn = nil, false
	}
	if ctx == nil && c.err == nil {
		c.Fail(c.Named(failure.ErrNilContext))
	}
	if c.abandoned && c.err == nil { // else what is left would look like the end
		c.err = c.Named(errCursorClosed)
	}
	var began time.Time
	for asked := false; c.err == nil && !c.closed; asked = true {
		if len(c.batch) > 0 {
			if err := c.read(); err != nil {
				c.Fail(err)
				return false
			}
			return true
		}
		if c.id == 0 || c.limit > 0 && c.seen >= c.limit {
			c.Close(ctx)
			c.abandoned = false // everything was read
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
func (c *Cursor) read() error {
	_, v, rest, err := bson.ReadElement(c.batch)
	if err == nil && v.Type != bson.TypeEmbeddedDocument {
		err = errNotDocument
	}
	if err != nil {
		return c.Named(fmt.Errorf("server's batch is malformed: %w", err))
	}
	c.batch, c.raw, c.sealed = rest, v.Value, c.result.Sealed[c.next]
	c.next++
	c.seen++
	return nil
}

var errCursorClosed = errors.New("it is closed, with documents that were not read")

var errNotDocument = errors.New("an element is not a document")

// Named says what the cursor reads that a client-side error is about.
func (c *Cursor) Named(err error) error {
	coll := c.coll
	if strings.HasPrefix(coll, "$cmd.") {
		coll = "" // it is on the database
	}
	return exec.Named("cursor", c.db, coll, err)
}

// Fail ends the iteration with an error. What the server still has of the cursor is left to Close:
// the time for it may be up, and a connection behind a load balancer stays the cursor's
// (specification: Load Balancers, "Behaviour With Cursors").
func (c *Cursor) Fail(err error) {
	c.err = err
	c.unstream()
	if c.id == 0 {
		c.release()
	}
}

// Undecoded makes the error of the current document, which the program cannot decode.
func (c *Cursor) Undecoded(err error) *mongoerr.DecodeError {
	e := &mongoerr.DecodeError{Command: "cursor", Namespace: c.db, Index: c.Index(), Document: bytes.Clone(c.raw),
		Wrapped: err}
	if c.coll != "" && !strings.HasPrefix(c.coll, "$cmd.") {
		e.Namespace += "." + c.coll
	}
	return e
}

// Pass makes e the error of the call. It does not end the iteration: the next call goes on behind
// the document.
func (c *Cursor) Pass(e *mongoerr.DecodeError) { c.err, c.goesOn = e, true }

// interrupted deals with an error of a getMore. A tailable cursor goes on after time was up if
// nothing can have been lost: nothing was sent, or the connection is kept that the reply will
// arrive on. Otherwise it ends here, so that its ID says so.
func (c *Cursor) interrupted(ctx context.Context, err error) {
	switch {
	case c.kind == NonTailable:
		c.Fail(err)
	case c.id != 0 && failure.OutOfTime(err) && !c.replyLost:
		c.err, c.goesOn = err, true
	default:
		c.Fail(err)
		c.Close(ctx)
	}
}

// op makes the operation of a command about the cursor, which goes where the cursor lives, in its
// session.
func (c *Cursor) op(cmd command.Command) exec.Op {
	op := exec.NewOp(cmd)
	op.ID, op.DB, op.BSON, op.Session, op.Implicit = c.operation, c.db, c.bson, c.session, c.implicit
	op.Server, op.Conn, op.Limit = c.server, c.conn, c.within
	return op
}

// getMore fetches the next batch. began is when the call began that needs it.
func (c *Cursor) getMore(ctx context.Context, began time.Time) error {
	if ctx == nil {
		return failure.ErrNilContext
	}
	c.result.Release() // a batch has up to 16 MB: the next one comes into the same memory
	c.raw, c.postBatch = nil, nil
	size := c.batchSize
	if c.limit > 0 && size > 0 {
		size = int32(min(int64(size), c.limit-c.seen))
	}
	op := c.op(&command.GetMore{ID: c.id, Collection: c.coll, BatchSize: size, Comment: c.comment})
	op.Exhaust, op.KeepLate, op.Began, op.NoMaxTime, op.MaxAwait = c.exhaust, c.kind != NonTailable, began, true,
		c.maxAwait
	op.Awaits = c.awaits
	res, err := c.exec.Run(ctx, &op)
	if err != nil {
		c.wireVersion = res.WireVersion
		if res.Conn != nil {
			c.conn = res.Conn
		}
		c.replyLost = res.Sent && !(c.conn != nil && c.conn.Owed())
		if cursorGone(err) {
			c.id = 0 // there is nothing left to kill
		}
		return err
	}
	if res.Conn != nil {
		c.conn = res.Conn
	}
	r, err := command.ParseCursor(res.Reply, command.NextBatch)
	if err != nil {
		res.Release()
		return op.Named(err)
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
	return mongoerr.HasCode(err, errcode.CursorNotFound) || mongoerr.HasCode(err, errcode.CursorKilled)
}

// killTimeout bounds how long closing a cursor may take.
const killTimeout = 10 * time.Second

// Close ends the cursor: it tells the server to forget it, if the server still has it, and gives
// everything back. The timeout of the operation that opened the cursor begins anew for it
// (specification: Client Side Operations Timeout, "Cursors"). Once ctx has ended, that happens in
// the background. Its error, that of killCursors, is rarely of interest: the server forgets idle
// cursors by itself.
func (c *Cursor) Close(ctx context.Context) error { return c.CloseWithin(ctx, c.within.Refreshed()) }

// CloseWithin is Close with a limit of its own.
func (c *Cursor) CloseWithin(ctx context.Context, limit exec.Limit) error {
	if c.closed {
		return nil
	}
	c.closed, c.abandoned = true, c.id != 0 || len(c.batch) > 0
	err := c.free(ctx, limit, killTimeout, false)
	c.result.Release()
	c.batch, c.postBatch = nil, nil
	return err
}

// free kills the cursor, if the server still has it, and gives back its connection and, unless a
// resume goes on in it, its session. Without a limit, it takes most at the most.
func (c *Cursor) free(ctx context.Context, limit exec.Limit, most time.Duration, resumes bool) error {
	passed := resumes
	defer func() {
		if !passed { // code of the program's has panicked or ended the goroutine
			if c.id != 0 {
				c.registry.rescue(c.remains(nil))
			}
			c.release()
		}
	}()
	c.unstream()
	passed = true
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
	r := c.remains(implicit)
	r.lasts = resumes || c.borrowed
	c.implicit, c.conn = nil, nil
	c.release()
	if resumes {
		c.implicit = implicit
	}
	return r.free(ctx, limit, most, c.registry)
}

// remains returns what is left of the cursor, with its implicit session.
func (c *Cursor) remains(implicit *session.ServerSession) *remains {
	return &remains{exec: c.exec, openCursor: openCursor{id: c.id, db: c.db, coll: c.coll, server: c.server},
		comment:   c.comment,
		operation: c.operation, bson: c.bson, session: c.session, implicit: implicit, conn: c.conn}
}

// Remaining moves past the documents that are left of the batch, and returns an array of them
// behind the current one.
func (c *Cursor) Remaining() (bson.Raw, error) {
	first := -1
	for i := range c.result.Sealed {
		if i >= c.next-1 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		err := c.Named(c.result.Sealed[first])
		c.Fail(err)
		return nil, err
	}
	start, dst := bson.BeginDocument(make([]byte, 0, len(c.raw)+len(c.batch)+16))
	dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0), c.raw...)
	for n := 1; len(c.batch) > 0; n++ {
		if err := c.read(); err != nil {
			c.Fail(err)
			return nil, err
		}
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n), c.raw...)
	}
	return bson.EndDocument(dst, start), nil
}

// Raw returns the document that Advance moved to. It is valid until the next call.
func (c *Cursor) Raw() bson.Raw { return c.raw }

// Sealed returns why the document that Advance moved to cannot be decrypted, nil if it is in plain.
func (c *Cursor) Sealed() error { return c.sealed }

// Index returns which of the cursor's documents that is, from 0.
func (c *Cursor) Index() int64 { return c.seen - 1 }

// Err returns the error of the last call, nil if there was none.
func (c *Cursor) Err() error { return c.err }

// ID returns the server's id of the cursor, 0 once the server has none any more.
func (c *Cursor) ID() int64 { return c.id }

// BSON returns the options that the documents are decoded with.
func (c *Cursor) BSON() *bson.Options { return c.bson }
