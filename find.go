package allium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// FindOptions are the options of Find. The zero value of a field leaves it to the server.
type FindOptions struct {
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}.
	Sort any
	// Projection selects the fields to return.
	Projection any
	// Skip is the number of documents to skip.
	Skip int64
	// Limit is the maximum number of documents; 0 means all. A negative limit asks for a single
	// batch of at most that many.
	Limit int64
	// BatchSize is the maximum number of documents in each reply. A negative size asks for a single
	// batch of at most that many; 0 makes the first batch empty. Nil leaves it to the server.
	BatchSize *int32
	// CursorType makes the cursor tail a capped collection.
	CursorType CursorType
	// Exhaust lets the server stream batches without a round trip for each. Meanwhile the cursor
	// pins its connection; closing the cursor before its end closes that connection, and so does a
	// context or timeout that ends while Next waits. It excludes Limit and CursorType. In a
	// transaction, and with a mongos before 7.1, the cursor asks for each batch all the same.
	Exhaust bool
	// MaxAwaitTime is how long the server waits for new documents before it sends an empty batch to
	// a CursorTailableAwait cursor, to the millisecond; Next then asks again. It must be less than
	// the timeout.
	MaxAwaitTime time.Duration
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Collation says how strings are compared.
	Collation *Collation
	// Let defines variables for aggregation expressions in the filter.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// Min and Max are the inclusive lower and the exclusive upper bound of the index that Hint
	// names.
	Min, Max any
	// AllowDiskUse lets the server sort on disk.
	AllowDiskUse *bool
	// AllowPartialResults returns partial results if some shards are unavailable.
	AllowPartialResults bool
	// NoCursorTimeout keeps the server from closing the cursor when it is idle.
	NoCursorTimeout bool
	// ReturnKey returns only the index keys, ShowRecordID adds the server's record number as
	// $recordId.
	ReturnKey, ShowRecordID bool
	// RawData reads the stored buckets of a time series collection (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode or CursorType
	// says otherwise; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Find returns a cursor over the documents that match the filter. The cursor fetches further
// batches as it is read. Find is retried once after a network error or a failover, unless the
// client's RetryReads is off; fetching a further batch is not retried.
//
//	cur, err := users.Find(ctx, bson.M{"age": bson.M{"$gte": 18}}, allium.FindOptions{Limit: 10})
func (c *Collection[T]) Find(ctx context.Context, filter any, opts ...FindOptions) (*Cursor[T], error) {
	o := option.Merge(opts)
	if o.Exhaust && (o.Limit != 0 || o.CursorType != "") {
		return nil, c.failed(ctx, "find", c.name, errors.New("option Exhaust excludes Limit and CursorType"))
	}
	cmd := &command.Find{Collection: c.name, Filter: filter}
	o.fill(cmd)
	cur := &Cursor[T]{}
	op := exec.NewOp(cmd)
	err := c.err
	if err == nil {
		err = c.inherits(ctx, &op, o.Timeout)
	}
	if err == nil {
		err = maxTime(&op, o.MaxTime, &cmd.MaxTimeMS)
	}
	if err == nil {
		r := cursor.Reading{Type: cursor.Type(o.CursorType), TimeoutMode: cursor.TimeoutMode(o.TimeoutMode),
			BatchSize: or(o.BatchSize, 0),
			Limit:     o.Limit, Exhaust: o.Exhaust, Comment: o.Comment}
		if o.CursorType == CursorTailableAwait || o.MaxAwaitTime < 0 {
			r.MaxAwait = o.MaxAwaitTime
		}
		err = cur.cur.Prepare(&op, r)
	}
	if err != nil {
		return nil, c.failed(ctx, "find", c.name, err)
	}
	res, err := c.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	return cur, cur.cur.Open(ctx, c.client.cursors, &op, res)
}

// Query is Find for a loop: an iterator over the documents that match the filter. An error of Find
// or of a later batch is its last element; a document that does not decode as T is an error between
// others, as with Cursor.Seq. The command is sent when the loop begins, and again for another loop;
// leaving the loop closes the cursor.
//
//	for user, err := range users.Query(ctx, bson.M{"age": bson.M{"$gte": 18}}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(user.Name)
//	}
func (c *Collection[T]) Query(ctx context.Context, filter any, opts ...FindOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cur, err := c.Find(ctx, filter, opts...)
		if err != nil {
			yield(*new(T), err)
			return
		}
		cur.Seq(ctx)(yield)
	}
}

// All returns all documents that match the filter: Find, and Cursor.All. It leaves out those that
// do not decode as T; its error is then a mongoerr.DecodeErrors, which holds them. On any other
// error it returns the documents before it.
func (c *Collection[T]) All(ctx context.Context, filter any, opts ...FindOptions) ([]T, error) {
	cur, err := c.Find(ctx, filter, opts...)
	if err != nil {
		return nil, err
	}
	return cur.All(ctx)
}

// fill sets what the options say in a command. It is the only place that does, also for
// FindOneOptions.
func (o *FindOptions) fill(cmd *command.Find) {
	cmd.Sort, cmd.Projection, cmd.Hint, cmd.Min, cmd.Max = o.Sort, o.Projection, o.Hint, o.Min, o.Max
	cmd.Collation, cmd.Let, cmd.Comment, cmd.RawData = o.Collation.raw(), o.Let, o.Comment, o.RawData
	cmd.Skip, cmd.Limit, cmd.BatchSize = o.Skip, o.Limit, o.BatchSize
	cmd.AllowDiskUse, cmd.AllowPartialResults, cmd.NoCursorTimeout = o.AllowDiskUse, o.AllowPartialResults,
		o.NoCursorTimeout
	cmd.ReturnKey, cmd.ShowRecordID = o.ReturnKey, o.ShowRecordID
	cmd.Tailable, cmd.AwaitData = o.CursorType != "", o.CursorType == CursorTailableAwait
}

// FindOneOptions are the options of FindOne. The zero value of a field leaves it to the server.
type FindOneOptions struct {
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}, and determines which
	// document is first.
	Sort any
	// Projection selects the fields to return.
	Projection any
	// Skip is the number of documents to skip.
	Skip int64
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Collation says how strings are compared.
	Collation *Collation
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// Min and Max are the inclusive lower and the exclusive upper bound of the index that Hint
	// names.
	Min, Max any
	// AllowDiskUse lets the server sort on disk, or not. Nil leaves it to the server.
	AllowDiskUse *bool
	// AllowPartialResults returns partial results if some shards are unavailable.
	AllowPartialResults bool
	// ReturnKey returns only the index keys.
	ReturnKey bool
	// ShowRecordID adds the server's record number as $recordId.
	ShowRecordID bool
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// widen returns the options as those of Find.
func (o *FindOneOptions) widen() FindOptions {
	return FindOptions{
		Sort: o.Sort, Projection: o.Projection, Skip: o.Skip, Hint: o.Hint, Collation: o.Collation, Let: o.Let,
		Comment: o.Comment,
		MaxTime: o.MaxTime, Min: o.Min, Max: o.Max, AllowDiskUse: o.AllowDiskUse,
		AllowPartialResults: o.AllowPartialResults,
		ReturnKey:           o.ReturnKey, ShowRecordID: o.ShowRecordID,
		RawData: o.RawData, Timeout: o.Timeout,
	}
}

// findOneCall is an operation of FindOne. It is used again: nothing refers to an operation once it
// has ended and its reply has been read.
type findOneCall struct {
	op    exec.Op
	cmd   command.Find
	into  any // what the document is decoded into
	found bool
	read  func(*exec.Op, exec.Result) error // its method decode, made once
}

var findOneCalls = sync.Pool{New: func() any {
	c := new(findOneCall)
	c.read = c.decode
	return c
}}

func (c *findOneCall) release() {
	*c = findOneCall{read: c.read}
	findOneCalls.Put(c)
}

// decode decodes the document of the reply, if there is one.
func (c *findOneCall) decode(_ *exec.Op, res exec.Result) error {
	r, err := command.ParseCursor(res.Reply, command.FirstBatch)
	if err != nil {
		return c.op.Named(err)
	}
	raw, err := r.First()
	switch {
	case err != nil:
		return c.op.Named(err)
	case raw == nil:
		return nil
	}
	if err := decode(c.op.BSON, raw, c.into); err != nil {
		return undecoded(&c.op, -1, raw, err)
	}
	c.found = true
	return nil
}

// FindOne returns the first document that matches the filter. If there is none, the error is
// mongoerr.ErrNoDocuments. If it does not decode as T, the error is a *mongoerr.DecodeError, which
// holds it.
//
//	ada, err := users.FindOne(ctx, bson.M{"name": "Ada"})
func (c *Collection[T]) FindOne(ctx context.Context, filter any, opts ...FindOneOptions) (T, error) {
	var doc T
	o, err := option.Merge(opts), c.err
	if err != nil {
		return doc, c.failed(ctx, "find", c.name, err)
	}
	call := findOneCalls.Get().(*findOneCall)
	defer call.release()
	call.cmd.Collection, call.cmd.Filter = c.name, filter
	if len(opts) > 0 {
		all := o.widen()
		all.fill(&call.cmd)
	}
	call.cmd.Limit, call.cmd.SingleBatch = 1, true
	call.op = exec.NewOp(&call.cmd)
	if err := c.inherits(ctx, &call.op, o.Timeout); err != nil {
		return doc, c.failed(ctx, "find", c.name, err)
	}
	if err := maxTime(&call.op, o.MaxTime, &call.cmd.MaxTimeMS); err != nil {
		return doc, c.failed(ctx, "find", c.name, err)
	}
	call.into, call.op.Read = &doc, call.read
	res, err := c.run(ctx, &call.op)
	if err != nil {
		var zero T
		return zero, err
	}
	res.Release()
	if !call.found {
		return doc, mongoerr.ErrNoDocuments
	}
	return doc, nil
}

// FindOneAndUpdateOptions are the options of FindOneAndUpdate. The zero value of a field leaves it
// to the server.
type FindOneAndUpdateOptions struct {
	// ReturnNew returns the document as it is after the change, not before.
	ReturnNew bool
	// Upsert inserts a document if none matches.
	Upsert bool
	// Sort determines which document is changed if several match.
	Sort any
	// Projection selects the fields to return.
	Projection any
	// ArrayFilters is a slice of documents that select the array elements which an update with
	// $[name] changes.
	ArrayFilters any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// FindOneAndReplaceOptions are the options of FindOneAndReplace. The zero value of a field leaves
// it to the server.
type FindOneAndReplaceOptions struct {
	// ReturnNew returns the document as it is after the change, not before.
	ReturnNew bool
	// Upsert inserts a document if none matches the filter.
	Upsert bool
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}, and determines which
	// document is first.
	Sort any
	// Projection selects the fields to return.
	Projection any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// FindOneAndDeleteOptions are the options of FindOneAndDelete. The zero value of a field leaves it
// to the server.
type FindOneAndDeleteOptions struct {
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}, and determines which
	// document is first.
	Sort any
	// Projection selects the fields to return.
	Projection any
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// MaxTime bounds the server's work, to the millisecond. A Timeout replaces it.
	//
	// Deprecated: set Timeout, which bounds the whole operation.
	MaxTime time.Duration
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// fill sets what the options say in a command. It is the only place that does, also for
// FindOneAndReplaceOptions and FindOneAndDeleteOptions.
func (o *FindOneAndUpdateOptions) fill(cmd *command.FindAndModify) {
	cmd.New, cmd.Upsert, cmd.Sort, cmd.Projection, cmd.ArrayFilters = o.ReturnNew, o.Upsert, o.Sort, o.Projection,
		o.ArrayFilters
	cmd.BypassDocumentValidation, cmd.Collation, cmd.Hint = o.BypassDocumentValidation, o.Collation.raw(), o.Hint
	cmd.Let, cmd.Comment, cmd.RawData = o.Let, o.Comment, o.RawData
}

// widen returns the options as those of FindOneAndUpdate.
func (o *FindOneAndReplaceOptions) widen() FindOneAndUpdateOptions {
	return FindOneAndUpdateOptions{
		ReturnNew: o.ReturnNew, Upsert: o.Upsert, Sort: o.Sort, Projection: o.Projection,
		BypassDocumentValidation: o.BypassDocumentValidation,
		Collation:                o.Collation, Hint: o.Hint, Let: o.Let, Comment: o.Comment, MaxTime: o.MaxTime,
		RawData: o.RawData,
		Timeout: o.Timeout,
	}
}

// widen returns the options as those of FindOneAndUpdate.
func (o *FindOneAndDeleteOptions) widen() FindOneAndUpdateOptions {
	return FindOneAndUpdateOptions{
		Sort: o.Sort, Projection: o.Projection, Collation: o.Collation, Hint: o.Hint, Let: o.Let, Comment: o.Comment,
		MaxTime: o.MaxTime, RawData: o.RawData, Timeout: o.Timeout,
	}
}

// FindOneAndUpdate updates the first document that matches the filter and returns it as it was
// before or, with ReturnNew, as it is after the update. If no document matches, if an upsert has
// none to return, or if the write concern is unacknowledged, the error is mongoerr.ErrNoDocuments.
// The update and retries are as for UpdateOne. With a *mongoerr.WriteConcernError, the document is
// returned, too: the update was done, on fewer members than were asked for. If there is no
// document, the error is mongoerr.ErrNoDocuments as well.
//
// If the document does not decode as T, the error is a *mongoerr.DecodeError, which holds it: it
// has been updated all the same. FindOneAndReplace and FindOneAndDelete do the same.
func (c *Collection[T]) FindOneAndUpdate(ctx context.Context, filter, update any,
	opts ...FindOneAndUpdateOptions) (T, error) {
	o := option.Merge(opts)
	return findAndModify[T](ctx, &c.handle, &command.FindAndModify{Filter: filter, Update: update}, &o)
}

// FindOneAndReplace replaces the first document that matches the filter and returns it as it was
// before or, with ReturnNew, as it is after the replacement. If there is none, the error is
// mongoerr.ErrNoDocuments.
func (c *Collection[T]) FindOneAndReplace(ctx context.Context, filter any, replacement T,
	opts ...FindOneAndReplaceOptions) (T, error) {
	return findOneAndReplace[T](ctx, &c.handle, filter, &replacement, opts)
}

// findOneAndReplace is FindOneAndReplace by a document that replacement points to.
func findOneAndReplace[T any](ctx context.Context, c *handle, filter, replacement any,
	opts []FindOneAndReplaceOptions) (T, error) {
	o := option.Merge(opts)
	if command.IsNil(replacement) {
		var zero T
		return zero, c.failed(ctx, "findAndModify", c.name, fmt.Errorf("replacement: %w", mongoerr.ErrNilDocument))
	}
	all := o.widen()
	return findAndModify[T](ctx, c, &command.FindAndModify{Filter: filter, Update: replacement, Replacement: true},
		&all)
}

// FindOneAndDelete deletes the first document that matches the filter and returns it. If there is
// none, the error is mongoerr.ErrNoDocuments.
func (c *Collection[T]) FindOneAndDelete(ctx context.Context, filter any, opts ...FindOneAndDeleteOptions) (T, error) {
	o := option.Merge(opts)
	all := o.widen()
	return findAndModify[T](ctx, &c.handle, &command.FindAndModify{Filter: filter, Remove: true}, &all)
}

// undecoded makes the error of a document of an operation's reply that does not decode.
func undecoded(op *exec.Op, index int64, doc bson.Raw, err error) *mongoerr.DecodeError {
	return &mongoerr.DecodeError{Command: op.Command.Name(), Namespace: op.Namespace(), Index: index,
		Document: bytes.Clone(doc), Wrapped: err}
}

// findAndModify runs a command with the options of any of the three operations.
func findAndModify[T any](ctx context.Context, c *handle, cmd *command.FindAndModify,
	o *FindOneAndUpdateOptions) (T, error) {
	var doc T
	cmd.Collection = c.name
	o.fill(cmd)
	op := exec.NewOp(cmd)
	err := c.err
	if err == nil {
		err = c.inherits(ctx, &op, o.Timeout)
	}
	if err == nil {
		err = maxTime(&op, o.MaxTime, &cmd.MaxTimeMS)
	}
	if err != nil {
		return doc, c.failed(ctx, "findAndModify", c.name, err)
	}
	op.Read = func(op *exec.Op, res exec.Result) error {
		rejected, err := res.WriteErrors(op)
		if err != nil {
			return op.Named(err)
		}
		if err := exec.Refusal(rejected, res.Reply, res.Concern); err != nil {
			return err
		}
		raw, err := command.ParseFindAndModify(res.Reply)
		if err != nil {
			return op.Named(err)
		}
		concern := op.Explain(res.Unconfirmed()) // the write was done here, and the document says what it was
		if raw == nil {
			if concern != nil { // or the zero T would be taken for the document
				concern = failure.Join(concern, mongoerr.ErrNoDocuments)
			}
			return concern
		}
		if err := decode(op.BSON, raw, &doc); err != nil {
			doc = *new(T)
			return failure.Join(undecoded(op, -1, raw, err), concern)
		}
		return concern
	}
	res, err := c.run(ctx, &op)
	if err != nil {
		return doc, err
	}
	defer res.Release()
	// Nor is there one if the server was asked for no answer.
	if raw, _ := command.ParseFindAndModify(res.Reply); raw == nil {
		return doc, mongoerr.ErrNoDocuments
	}
	return doc, nil
}
