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
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/internal/session"
	"allium/mongoerr"
)

// InsertOneOptions are the options of InsertOne. The zero value of a field leaves it to the server.
type InsertOneOptions struct {
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData writes to the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// InsertOneResult is the result of InsertOne.
type InsertOneResult struct {
	// InsertedID is the document's _id: its own, as it decodes into an any, or the bson.ObjectID
	// that the driver generated. bson.Convert turns it into the program's own type of _id:
	//
	//	id, err := bson.Convert[UserID](res.InsertedID)
	InsertedID any
	// Acknowledged is false if the write concern is unacknowledged.
	Acknowledged bool
}

// InsertOne inserts a document. A document without _id gets a new ObjectID as its first field; the
// caller's value is not changed. If a unique index rejects the document, the error is a
// *mongoerr.WriteError that matches mongoerr.ErrDuplicateKey.
//
// InsertOne is retried once after a network error or a failover unless the client's RetryWrites is
// off, and is never applied twice. An error after a failover does not prove that the document was
// not inserted; within a Timeout, InsertOne is retried until there is a primary (see "Retries" in
// the package comment).
func (c *Collection[T]) InsertOne(ctx context.Context, doc T, opts ...InsertOneOptions) (InsertOneResult, error) {
	o := option.Merge(opts)
	docs := documents{n: 1, at: func(int) (any, *bson.Options) { return &doc, c.bson }}
	docs.ids = docs.first[:0]
	cmd := &command.Insert{Collection: c.name, Docs: &docs, Ordered: true,
		BypassDocumentValidation: o.BypassDocumentValidation, Comment: o.Comment, RawData: o.RawData}
	w := writer{inherited: &c.inherited, err: c.err, timeout: o.Timeout}
	_, acknowledged, err := w.one(ctx, cmd)
	res := InsertOneResult{Acknowledged: acknowledged}
	if len(docs.ids) > 0 {
		res.InsertedID = docs.ids[0]
	}
	return res, err
}

// InsertManyOptions are the options of InsertMany. The zero value of a field leaves it to the
// server.
type InsertManyOptions struct {
	// Unordered continues after an error. Otherwise the first error ends the operation.
	Unordered bool
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// InsertManyResult is the result of InsertMany.
type InsertManyResult struct {
	// InsertedIDs holds the _id of every document that was inserted, by its index in the argument,
	// each as in InsertOneResult.
	InsertedIDs map[int]any
	// Acknowledged is false if the write concern is unacknowledged; InsertedIDs then holds all.
	Acknowledged bool
}

// InsertMany inserts documents, in as few messages as the server's limits allow. Documents without
// _id get one, as with InsertOne. If the server rejects documents, the error is a
// *mongoerr.BulkWriteError, and the result lists those that were inserted.
func (c *Collection[T]) InsertMany(ctx context.Context, docs []T, opts ...InsertManyOptions) (InsertManyResult, error) {
	return c.insertMany(ctx, len(docs), func(i int) (any, *bson.Options) { return &docs[i], c.bson }, opts)
}

// insertMany inserts n documents; at gives a pointer to each, as documents.at does.
func (c *handle) insertMany(ctx context.Context, n int, at func(i int) (any, *bson.Options),
	opts []InsertManyOptions) (InsertManyResult, error) {
	o := option.Merge(opts)
	if n == 0 {
		return InsertManyResult{}, c.failed(ctx, "insert", c.name, errors.New("no documents given"))
	}
	src := documents{n: n, at: at}
	cmd := &command.Insert{Collection: c.name, Docs: &src, Ordered: !o.Unordered,
		BypassDocumentValidation: o.BypassDocumentValidation, Comment: o.Comment, RawData: o.RawData}
	w := writer{inherited: &c.inherited, err: c.err, timeout: o.Timeout}
	defer w.done()
	var done written
	err := c.operation(ctx, "insert", c.name, func(ctx context.Context) (err error) {
		done, err = w.many(ctx, cmd, !o.Unordered)
		return err
	})
	var failed *mongoerr.BulkWriteError
	errors.As(err, &failed)
	return InsertManyResult{InsertedIDs: src.inserted(make(map[int]any, len(src.ids)), done, failed, nil),
		Acknowledged: done.acknowledged}, err
}

// documents gives an insert command its documents: each with the _id that it has or, the same in
// every attempt, with a new one.
type documents struct {
	n   int
	at  func(i int) (any, *bson.Options) // a pointer to document i, and how it is encoded
	ids []any

	first [1]any // the memory of ids, for one document
}

// Len implements command.Documents.
func (d *documents) Len() int { return d.n }

// Append implements command.Documents.
func (d *documents) Append(dst []byte, i int) ([]byte, error) {
	start := len(dst)
	v, o := d.at(i)
	if command.IsNil(v) {
		return dst, mongoerr.ErrNilDocument
	}
	dst, err := marshalAppend(o, dst, v)
	if err != nil {
		return dst, err
	}
	dst, id, added := command.EnsureID(dst, start, func() bson.ObjectID {
		if i < len(d.ids) {
			if id, ok := d.ids[i].(bson.ObjectID); ok {
				return id
			}
		}
		return bson.NewObjectID()
	})
	if i < len(d.ids) {
		return dst, nil
	}
	if added {
		oid, _ := id.ObjectID()
		d.ids = append(d.ids, oid)
		return dst, nil
	}
	if id.Type == bson.TypeArray || id.Type == bson.TypeUndefined || id.Type == bson.TypeRegex {
		return dst, fmt.Errorf("_id is a BSON %s, which no document may have", id.Type)
	}
	var val any
	if err := decodeValue(o, id, &val); err != nil {
		return dst, err
	}
	d.ids = append(d.ids, val)
	return dst, nil
}

// inserted adds the _id of every document that was inserted to ids, by its index or, if there is a
// list of indexes, by the index that stands there, and returns ids.
func (d *documents) inserted(ids map[int]any, done written, failed *mongoerr.BulkWriteError,
	indexes []int) map[int]any {
	var rejected map[int]bool
	if failed != nil {
		rejected = make(map[int]bool, len(failed.WriteErrors))
		for _, e := range failed.WriteErrors {
			rejected[e.Index] = true
		}
	}
	for i := range min(done.statements, len(d.ids)) {
		at := i
		if indexes != nil {
			at = indexes[i]
		}
		if !rejected[at] {
			ids[at] = d.ids[i]
		}
	}
	return ids
}

// writer runs write commands for a collection.
type writer struct {
	inherited *inherited
	err       error // of the collection's name
	timeout   *time.Duration
	// limit is the timeout, which runs from the first command on, and id the operationId of all of
	// them.
	limit   exec.Limit
	started bool
	id      int64
	// implicit is the session of them all, nil before the first one has taken it.
	implicit *session.ServerSession
}

// done gives the implicit session back.
func (w *writer) done() {
	w.inherited.client.exec.PutSession(w.implicit)
	w.implicit = nil
}

// op prepares the operation.
func (w *writer) op(ctx context.Context, cmd command.Command) (exec.Op, error) {
	if w.id == 0 {
		w.id = w.inherited.client.exec.NewOperationID()
	}
	op := exec.NewOp(cmd)
	op.ID, op.DB = w.id, w.inherited.db
	err := w.err
	if err == nil {
		err = w.inherited.inherits(ctx, &op, w.timeout)
	}
	if !w.started {
		w.limit, w.started = op.Limit, true
	}
	op.Limit = w.limit
	if err != nil {
		err = op.Named(err)
	}
	return op, err
}

// one runs a write of a single statement. Its error is a *WriteError or a *WriteConcernError if the
// server rejected or could not confirm it; both for errors.As if the server did both.
func (w *writer) one(ctx context.Context, cmd command.Command) (reply writeReply, acknowledged bool, err error) {
	call := writeCalls.Get().(*writeCall)
	defer call.release()
	if call.op, err = w.op(ctx, cmd); err != nil {
		return writeReply{}, false, err
	}
	acknowledged = call.op.WriteConcern.Acknowledged()
	if reply, _, err = call.run(ctx, w.inherited); err != nil {
		return writeReply{}, false, err
	}
	switch rejected := len(reply.errors) > 0; {
	case rejected && reply.concern != nil:
		err = failure.Join(reply.errors[0], reply.ended)
	case rejected:
		err = reply.errors[0]
	case reply.concern != nil:
		err = reply.ended
	}
	return reply, acknowledged, call.op.Explain(err)
}

// writeReply is the reply to one write command, copied out of its buffer.
type writeReply struct {
	n, modified int64
	upserted    map[int]any
	errors      []*mongoerr.WriteError
	concern     *mongoerr.WriteConcernError
	ended       error // concern, or the operation's error beside it: see exec.Result
}

// writeCall is a write command on its way.
type writeCall struct {
	op    exec.Op
	batch command.Batch // nil for a single statement
	bson  *bson.Options
	reply writeReply
	read  func(*exec.Op, exec.Result) error // its method take, made once
}

var writeCalls = sync.Pool{New: func() any {
	c := new(writeCall)
	c.read = c.take
	return c
}}

func (c *writeCall) release() {
	*c = writeCall{read: c.read}
	writeCalls.Put(c)
}

// run runs the command of c.op and returns what its reply says, nothing if it is not acknowledged.
func (c *writeCall) run(ctx context.Context, s *inherited) (writeReply, exec.Result, error) {
	c.bson, c.reply = s.bson, writeReply{}
	if c.op.WriteConcern.Acknowledged() {
		c.op.Read = c.read
	}
	res, err := s.run(ctx, &c.op)
	if err != nil {
		return writeReply{}, res, err
	}
	res.Release()
	return c.reply, res, nil
}

// take copies a write command's reply. What cannot be is an error of the operation.
func (c *writeCall) take(op *exec.Op, res exec.Result) error {
	base, count, reply := 0, 1, &c.reply
	if c.batch != nil {
		base, count = c.batch.First(), c.batch.Count()
	}
	r, err := command.ParseWrite(res.Reply)
	if err != nil {
		return op.Named(err)
	}
	reply.n, reply.modified = r.N, r.NModified
	for _, u := range r.Upserted {
		if u.Index < 0 || u.Index >= count {
			return op.Named(contradiction("upserted", "says that statement %d of %d upserted", u.Index, count))
		}
		if reply.upserted == nil {
			reply.upserted = map[int]any{}
		}
		if _, twice := reply.upserted[base+u.Index]; twice {
			return op.Named(contradiction("upserted", "says twice that statement %d upserted", u.Index))
		}
		reply.upserted[base+u.Index] = decodeID(c.bson, u.ID)
	}
	var failed map[int]bool // made for the second error
	var odd *mongoerr.ReplyError
	for v := range r.WriteErrors.Values() {
		doc, ok := v.Document()
		if !ok {
			return op.Named(&mongoerr.ReplyError{Field: "element of writeErrors", Type: v.Type, Want: "a document"})
		}
		e := op.WriteError(doc, base, res.Server.Addr())
		if len(reply.errors) == 1 {
			failed = map[int]bool{reply.errors[0].Index: true}
		}
		switch {
		case odd != nil:
		case e.Index < base || e.Index >= base+count:
			odd = contradiction("writeErrors", "says that statement %d of %d failed", e.Index-base, count)
		case failed[e.Index]:
			odd = contradiction("writeErrors", "says twice that statement %d failed", e.Index-base)
		}
		if failed != nil {
			failed[e.Index] = true
		}
		reply.errors = append(reply.errors, e)
	}
	if odd != nil { // what they say is not the results', but it is not kept from the program either
		odd.WriteErrors, reply.errors = reply.errors, nil
		for _, e := range odd.WriteErrors {
			e.Reply = bytes.Clone(res.Reply)
		}
		return op.Named(odd)
	}
	if reply.concern = res.Concern; reply.concern != nil {
		failure.Name(reply.concern, op.Command.Name(), op.Namespace())
		reply.ended = res.Unconfirmed()
	}
	if c.batch == nil && reply.errors != nil {
		reply.errors[0].Reply = bytes.Clone(res.Reply)
	}
	return nil
}

// contradiction is the error of a reply's field that says what cannot be.
func contradiction(field, format string, args ...any) *mongoerr.ReplyError {
	return &mongoerr.ReplyError{Field: field, Contradiction: fmt.Sprintf(format, args...)}
}

// written sums up what the messages of a write did.
type written struct {
	writeReply
	statements   int // that were sent and answered
	acknowledged bool
}

// many runs a write of many statements, message by message, all in one session: the caller calls
// done afterwards. An ordered write ends with the first error.
func (w *writer) many(ctx context.Context, cmd command.Batch, ordered bool) (written, error) {
	var total written
	var writeErrors []*mongoerr.WriteError
	var concerns []*mongoerr.WriteConcernError
	var labels mongoerr.Labels
	var last error
	call := writeCalls.Get().(*writeCall)
	defer call.release()
	op := &call.op
	call.batch = cmd
	var err error
	if *op, err = w.op(ctx, cmd); err != nil {
		return total, err
	}
	total.acknowledged = op.WriteConcern.Acknowledged()
	for cmd.Left() > 0 {
		op.Retryable, op.Implicit, op.KeepSession = cmd.Retryable(1), w.implicit, true
		reply, res, err := call.run(ctx, w.inherited)
		if err == nil {
			w.implicit = res.Implicit
		} else {
			if total.statements == 0 && len(writeErrors) == 0 {
				return total, err
			}
			last = err
			break
		}
		if total.acknowledged {
			total.n += reply.n
			total.modified += reply.modified
			for i, id := range reply.upserted {
				if total.upserted == nil {
					total.upserted = map[int]any{}
				}
				total.upserted[i] = id
			}
			writeErrors = append(writeErrors, reply.errors...)
			if reply.concern != nil {
				concerns = append(concerns, reply.concern)
				for _, l := range reply.concern.Labels {
					failure.AddTo(&labels, l)
				}
			}
		}
		total.statements = cmd.First() + cmd.Count()
		if reply.ended != nil && reply.ended != error(reply.concern) {
			last = reply.ended
			break
		}
		if ordered && len(writeErrors) > 0 {
			total.statements = writeErrors[len(writeErrors)-1].Index
			break
		}
		cmd.Advance()
	}
	if len(writeErrors) == 0 && len(concerns) == 0 && last == nil {
		return total, nil
	}
	bulk := &mongoerr.BulkWriteError{WriteErrors: writeErrors, WriteConcernErrors: concerns, Err: last}
	bulk.Labels = labels
	return total, op.Explain(bulk)
}
