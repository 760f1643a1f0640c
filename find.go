package allium

import (
	"context"
	"errors"
	"sync"
	"time"

	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
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
	if o.Exhaust && (o.Limit != 0 || o.CursorType != CursorNonTailable) {
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
		r := cursor.Reading{Type: cursor.Type(o.CursorType), TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), BatchSize: or(o.BatchSize, 0),
			Limit: o.Limit, Exhaust: o.Exhaust, Comment: o.Comment}
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

// fill sets what the options say in a command. It is the only place that does, also for
// FindOneOptions.
func (o *FindOptions) fill(cmd *command.Find) {
	cmd.Sort, cmd.Projection, cmd.Hint, cmd.Min, cmd.Max = o.Sort, o.Projection, o.Hint, o.Min, o.Max
	cmd.Collation, cmd.Let, cmd.Comment, cmd.RawData = o.Collation.raw(), o.Let, o.Comment, o.RawData
	cmd.Skip, cmd.Limit, cmd.BatchSize = o.Skip, o.Limit, o.BatchSize
	cmd.AllowDiskUse, cmd.AllowPartialResults, cmd.NoCursorTimeout = o.AllowDiskUse, o.AllowPartialResults, o.NoCursorTimeout
	cmd.ReturnKey, cmd.ShowRecordID = o.ReturnKey, o.ShowRecordID
	cmd.Tailable, cmd.AwaitData = o.CursorType != CursorNonTailable, o.CursorType == CursorTailableAwait
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
		Sort: o.Sort, Projection: o.Projection, Skip: o.Skip, Hint: o.Hint, Collation: o.Collation, Let: o.Let, Comment: o.Comment,
		MaxTime: o.MaxTime, Min: o.Min, Max: o.Max, AllowDiskUse: o.AllowDiskUse, AllowPartialResults: o.AllowPartialResults,
		ReturnKey: o.ReturnKey, ShowRecordID: o.ShowRecordID,
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
	r, err := command.ParseCursor(res.Reply)
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
