package allium

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

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
	cmd.New, cmd.Upsert, cmd.Sort, cmd.Projection, cmd.ArrayFilters = o.ReturnNew, o.Upsert, o.Sort, o.Projection, o.ArrayFilters
	cmd.BypassDocumentValidation, cmd.Collation, cmd.Hint = o.BypassDocumentValidation, o.Collation.raw(), o.Hint
	cmd.Let, cmd.Comment, cmd.RawData = o.Let, o.Comment, o.RawData
}

// widen returns the options as those of FindOneAndUpdate.
func (o *FindOneAndReplaceOptions) widen() FindOneAndUpdateOptions {
	return FindOneAndUpdateOptions{
		ReturnNew: o.ReturnNew, Upsert: o.Upsert, Sort: o.Sort, Projection: o.Projection, BypassDocumentValidation: o.BypassDocumentValidation,
		Collation: o.Collation, Hint: o.Hint, Let: o.Let, Comment: o.Comment, MaxTime: o.MaxTime, RawData: o.RawData, Timeout: o.Timeout,
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
// returned, too: the update was done, on fewer members than were asked for.
//
// If the document does not decode as T, the error is a *mongoerr.DecodeError, which holds it: it
// has been updated all the same. FindOneAndReplace and FindOneAndDelete do the same.
func (c *Collection[T]) FindOneAndUpdate(ctx context.Context, filter, update any, opts ...FindOneAndUpdateOptions) (T, error) {
	o := option.Merge(opts)
	return c.findAndModify(ctx, &command.FindAndModify{Filter: filter, Update: update}, &o)
}

// FindOneAndReplace replaces the first document that matches the filter and returns it as it was
// before or, with ReturnNew, as it is after the replacement. If there is none, the error is
// mongoerr.ErrNoDocuments.
func (c *Collection[T]) FindOneAndReplace(ctx context.Context, filter any, replacement T, opts ...FindOneAndReplaceOptions) (T, error) {
	o := option.Merge(opts)
	if command.IsNil(&replacement) {
		var zero T
		return zero, c.failed(ctx, "findAndModify", c.name, fmt.Errorf("replacement: %w", mongoerr.ErrNilDocument))
	}
	all := o.widen()
	return c.findAndModify(ctx, &command.FindAndModify{Filter: filter, Update: &replacement, Replacement: true}, &all)
}

// FindOneAndDelete deletes the first document that matches the filter and returns it. If there is
// none, the error is mongoerr.ErrNoDocuments.
func (c *Collection[T]) FindOneAndDelete(ctx context.Context, filter any, opts ...FindOneAndDeleteOptions) (T, error) {
	o := option.Merge(opts)
	all := o.widen()
	return c.findAndModify(ctx, &command.FindAndModify{Filter: filter, Remove: true}, &all)
}

// undecoded makes the error of a document of an operation's reply that does not decode.
func undecoded(op *exec.Op, index int64, doc bson.Raw, err error) *mongoerr.DecodeError {
	return &mongoerr.DecodeError{Command: op.Command.Name(), Namespace: op.Namespace(), Index: index, Document: bytes.Clone(doc), Wrapped: err}
}

// findAndModify runs a command with the options of any of the three operations.
func (c *Collection[T]) findAndModify(ctx context.Context, cmd *command.FindAndModify, o *FindOneAndUpdateOptions) (T, error) {
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
		if raw := command.ParseFindAndModify(res.Reply); raw != nil {
			if err := decode(op.BSON, raw, &doc); err != nil {
				doc = *new(T)
				return failure.Join(undecoded(op, -1, raw, err), concernError(op, &res))
			}
		}
		return concernError(op, &res) // the write was done here, and the document says what it was
	}
	res, err := c.run(ctx, &op)
	if err != nil {
		return doc, err
	}
	defer res.Release()
	if command.ParseFindAndModify(res.Reply) == nil { // nor is there one if the server was asked for no answer
		return doc, mongoerr.ErrNoDocuments
	}
	return doc, nil
}

// concernError returns the error of a write concern that a reply reports beside its result.
func concernError(op *exec.Op, res *exec.Result) error {
	if res.Concern == nil {
		return nil
	}
	return op.Explain(res.Concern)
}
