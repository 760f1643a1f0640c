package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// ClientWrite is one write of Client.BulkWrite: a model, and the collection that it is for.
type ClientWrite struct {
	Database   string
	Collection string
	Model      WriteModel
}

// ClientBulkWriteOptions are the options of Client.BulkWrite. The zero value of a field leaves it
// to the server.
type ClientBulkWriteOptions struct {
	// Unordered continues after an error. Otherwise the first error ends the operation.
	Unordered bool
	// VerboseResults asks for the result of each write in addition to the totals.
	VerboseResults bool
	// WriteConcern replaces the client's. In a transaction it must be nil.
	WriteConcern *consistency.WriteConcern
	// BypassDocumentValidation lets the writes store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Let defines variables for aggregation expressions in updates and deletes.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of time series collections (server 8.2 and later). It is
	// for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the whole operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// ClientBulkWriteResult is the result of Client.BulkWrite.
type ClientBulkWriteResult struct {
	InsertedCount int64
	UpsertedCount int64
	MatchedCount  int64
	ModifiedCount int64
	DeletedCount  int64
	// Acknowledged is false if the write concern is unacknowledged; the counts are then 0.
	Acknowledged bool
	// Verbose holds the results of the writes that were done, one by one. It is nil unless
	// VerboseResults was set.
	Verbose *ClientBulkWriteVerbose
}

// ClientBulkWriteVerbose holds the results of the writes that were done, by the index of the write.
type ClientBulkWriteVerbose struct {
	Inserts map[int]ClientInsertResult
	Updates map[int]ClientUpdateResult
	Deletes map[int]ClientDeleteResult
}

// ClientInsertResult is the result of one insert of a Client.BulkWrite.
type ClientInsertResult struct {
	// InsertedID is the document's _id: its own, or the bson.ObjectID that the driver generated.
	InsertedID any
}

// ClientUpdateResult is the result of one update or replacement of a Client.BulkWrite.
type ClientUpdateResult struct {
	MatchedCount  int64 // documents that the filter matched, including an upserted one
	ModifiedCount int64 // documents that were changed
	// Upserted reports whether a document was inserted. UpsertedID is its _id.
	Upserted   bool
	UpsertedID any
}

// ClientDeleteResult is the result of one delete of a Client.BulkWrite.
type ClientDeleteResult struct {
	DeletedCount int64
}

// ClientBulkWriteError collects the errors of a Client.BulkWrite. It embeds a
// mongoerr.BulkWriteError: WriteErrors, by the indexes of the writes, at most one unless the
// operation was unordered; WriteConcernErrors, at most one per message; Labels; and Err, an error
// that ended the operation early, such as a network error.
type ClientBulkWriteError struct {
	mongoerr.BulkWriteError
	// PartialResult covers the writes that succeeded. It is nil unless at least one write is known
	// to have succeeded.
	PartialResult *ClientBulkWriteResult
}

// BulkWrite runs writes on any collections of the deployment (server 8.0 and later), in the order
// given unless Unordered is set, in as few messages as the server's limits allow. If the server
// rejects writes, or another error occurs after the first message, the error is a
// *ClientBulkWriteError; the result covers the writes that are known to have succeeded.
//
// Each message is retried once after a network error or a failover, unless it holds an update or a
// delete of many documents; no write is applied twice. An unacknowledged write concern requires
// Unordered and excludes VerboseResults.
func (c *Client) BulkWrite(ctx context.Context, writes []ClientWrite, opts ...ClientBulkWriteOptions) (ClientBulkWriteResult, error) {
	o, err := option.Merge(opts), error(nil)
	if len(writes) == 0 {
		err = errNoWrites
	}
	s := c.scope()
	s.db = "admin"
	if o.WriteConcern != nil {
		s.writeConcern = o.WriteConcern
	}
	b := clientBulk{scope: &s, writes: clientWrites{list: writes}, opts: o}
	b.writes.docs = documents{bson: s.bson, n: len(writes), at: func(int) any { return &b.writes.statement.insert }}
	var op exec.Op
	if err == nil {
		op, err = b.op(ctx)
	}
	if err != nil {
		return ClientBulkWriteResult{}, s.failed(ctx, "bulkWrite", "", err)
	}
	var res ClientBulkWriteResult
	err = s.operation(ctx, "bulkWrite", "", func(ctx context.Context) (err error) {
		res, err = b.run(ctx, &op)
		return err
	})
	return res, err
}

// clientWrites gives a bulkWrite command its writes.
type clientWrites struct {
	list []ClientWrite
	docs documents
	// ordinals holds, for each write, how many inserts come before it: documents are numbered
	// without what is between them.
	ordinals []int32
	// statement is the write that was asked for last; what Write returns points into it.
	statement statement
	namespace string // of that write
}

// Len implements command.BulkWrites.
func (w *clientWrites) Len() int { return len(w.list) }

// Write implements command.BulkWrites.
func (w *clientWrites) Write(i int) command.BulkStatement {
	at := &w.list[i]
	w.statement = at.Model.statement()
	if n := len(at.Database); len(w.namespace) != n+1+len(at.Collection) || w.namespace[:n] != at.Database || w.namespace[n+1:] != at.Collection {
		w.namespace = at.Database + "." + at.Collection
	}
	s := command.BulkStatement{Namespace: w.namespace}
	switch w.statement.kind {
	case updateKind:
		s.Update = &w.statement.update
	case deleteKind:
		s.Delete = &w.statement.delete
	}
	return s
}

// AppendDocument implements command.BulkWrites.
func (w *clientWrites) AppendDocument(dst []byte, i int) ([]byte, error) {
	w.statement = w.list[i].Model.statement()
	return w.docs.Append(dst, int(w.ordinals[i]))
}

// on says in an error what write i is on.
func (w *clientWrites) on(i int) string {
	return " on " + w.list[i].Database + "." + w.list[i].Collection
}

// check finds what is wrong with the writes before any of them is sent, and numbers the inserts.
func (w *clientWrites) check(o *bson.Options) error {
	for i := range w.list {
		if err := failure.Join(checkName("database", w.list[i].Database), checkName("collection", w.list[i].Collection)); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	if err := checkModels(o, len(w.list), func(i int) WriteModel { return w.list[i].Model }, w.on); err != nil {
		return err
	}
	w.ordinals = make([]int32, len(w.list))
	n := int32(0)
	for i := range w.list {
		w.ordinals[i] = n
		if w.list[i].Model.statement().kind == insertKind {
			n++
		}
	}
	return nil
}

// clientBulk is the state of a Client.BulkWrite.
type clientBulk struct {
	scope  *scope
	writes clientWrites
	cmd    *command.BulkWrite
	opts   ClientBulkWriteOptions
	result ClientBulkWriteResult
	errs   ClientBulkWriteError
	// done says that it is certain that some write was done.
	done bool
}

// op checks what can be checked before anything is sent, and prepares the operation that all
// messages share.
func (b *clientBulk) op(ctx context.Context) (op exec.Op, err error) {
	o := &b.opts
	w := &b.writes
	if err := w.check(b.scope.bson); err != nil {
		return op, err
	}
	b.cmd = &command.BulkWrite{Writes: w, ErrorsOnly: !o.VerboseResults, Ordered: !o.Unordered, BypassDocumentValidation: o.BypassDocumentValidation,
		Let: o.Let, Comment: o.Comment, RawData: o.RawData}
	if op, err = b.scope.op(ctx, b.cmd, o.Timeout); err != nil {
		return op, err
	}
	op.ID = b.scope.client.exec.NewOperationID()
	if o.WriteConcern != nil && op.Session != nil && op.Session.Transaction().Running() {
		return op, errors.New("cannot set write concern after starting a transaction")
	}
	b.result.Acknowledged = op.WriteConcern.Acknowledged()
	switch {
	case b.result.Acknowledged:
	case o.VerboseResults:
		return op, errors.New("cannot request unacknowledged write concern and verbose results")
	case !o.Unordered:
		return op, errors.New("cannot request unacknowledged write concern and ordered writes")
	}
	if o.VerboseResults {
		b.result.Verbose = &ClientBulkWriteVerbose{Inserts: map[int]ClientInsertResult{}, Updates: map[int]ClientUpdateResult{}, Deletes: map[int]ClientDeleteResult{}}
	}
	b.cmd.CheckSize = !b.result.Acknowledged
	return op, nil
}

// run sends message after message.
func (b *clientBulk) run(ctx context.Context, op *exec.Op) (ClientBulkWriteResult, error) {
	defer func() { b.scope.client.exec.PutSession(op.Implicit) }()
	for b.cmd.Left() > 0 {
		op.Retryable = b.cmd.Retryable(1)
		res, err := b.scope.run(ctx, op)
		if err == nil {
			op.Implicit = res.Implicit // of all messages, and of their cursors
		}
		if err == nil && b.result.Acknowledged {
			err = b.read(ctx, op, res)
		}
		if err != nil {
			b.errs.Err = err
			break
		}
		if !b.opts.Unordered && len(b.errs.WriteErrors) > 0 {
			break
		}
		b.cmd.Advance()
	}
	e := &b.errs
	switch {
	case len(e.WriteErrors) > 0 || len(e.WriteConcernErrors) > 0 || e.Err != nil && b.done:
	case e.Err != nil:
		return b.result, e.Err // nothing is known beside it
	default:
		return b.result, nil
	}
	if b.done {
		e.PartialResult = &b.result
	}
	return b.result, op.Explain(e)
}

// read takes up what a message did: the counts of its reply, and what the results cursor says about
// its writes. An error is one that ends the operation.
func (b *clientBulk) read(ctx context.Context, op *exec.Op, res exec.Result) error {
	r := command.ParseBulkWrite(res.Reply)
	b.result.InsertedCount += r.Inserted
	b.result.UpsertedCount += r.Upserted
	b.result.MatchedCount += r.Matched
	b.result.ModifiedCount += r.Modified
	b.result.DeletedCount += r.Deleted
	if wc := res.Concern; wc != nil {
		failure.Name(wc, op.Command.Name(), "")
		b.errs.WriteConcernErrors = append(b.errs.WriteConcernErrors, wc)
		for _, l := range wc.Labels {
			failure.AddTo(&b.errs.Labels, l)
		}
	}
	// In an ordered operation, the error's index tells what came before it.
	b.done = b.done || r.Errors == 0 || b.opts.Unordered && r.Errors < int64(b.cmd.Count())
	var cur cursor.Cursor
	cur.SetComment(b.opts.Comment)
	cur.Borrow()
	if err := cur.Open(ctx, b.scope.client.cursors, op, res); err != nil {
		return err
	}
	before := len(b.errs.WriteErrors)
	err := b.outcomes(ctx, &cur, op, res.Server.Addr())
	if err == nil && r.Errors > 0 && len(b.errs.WriteErrors) == before {
		err = op.Named(fmt.Errorf("server's reply counts %d errors and its results hold none", r.Errors))
	}
	// What became of the cursor must not be ignored beside an error (specification: Bulk Write,
	// "Top-Level Errors").
	if killed := cur.Close(ctx); killed != nil && err != nil {
		err = failure.Join(err, killed)
	}
	return err
}

// outcomes reads the results of the writes, in an ordered operation up to the first that was
// rejected.
func (b *clientBulk) outcomes(ctx context.Context, cur *cursor.Cursor, op *exec.Op, addr string) error {
	var seen []bool // the writes of this message that have a result
	for cur.Advance(ctx, true) {
		outcome, err := command.ParseBulkOutcome(cur.Raw())
		if seen == nil {
			seen = make([]bool, b.cmd.Count())
		}
		switch {
		case err != nil:
		case outcome.Index >= len(seen):
			err = errors.New("server's result of a write has an index that no write has")
		case seen[outcome.Index]:
			err = fmt.Errorf("server has more than one result of write %d", b.cmd.First()+outcome.Index)
		default:
			seen[outcome.Index] = true
		}
		if err == nil {
			err = b.outcome(outcome, op, addr)
		}
		if err != nil {
			return op.Named(err)
		}
		if !outcome.OK && !b.opts.Unordered {
			break
		}
	}
	return cur.Err()
}

// outcome takes up the result of one write.
func (b *clientBulk) outcome(o command.BulkOutcome, op *exec.Op, addr string) error {
	i := b.cmd.First() + o.Index
	if !o.OK {
		e := op.WriteError(o.Raw, 0, addr)
		e.Index, e.Namespace = i, b.writes.list[i].Database+"."+b.writes.list[i].Collection
		b.errs.WriteErrors = append(b.errs.WriteErrors, e)
		b.done = b.done || !b.opts.Unordered && o.Index > 0
		return nil
	}
	b.done = true
	v := b.result.Verbose
	if v == nil {
		return nil
	}
	switch b.writes.list[i].Model.statement().kind {
	case insertKind:
		v.Inserts[i] = ClientInsertResult{InsertedID: b.writes.docs.ids[b.writes.ordinals[i]]}
	case updateKind:
		u := ClientUpdateResult{MatchedCount: o.N, ModifiedCount: o.NModified, Upserted: !o.UpsertedID.IsZero()}
		if u.Upserted {
			u.UpsertedID = decodeID(b.scope.bson, o.UpsertedID)
		}
		v.Updates[i] = u
	case deleteKind:
		v.Deletes[i] = ClientDeleteResult{DeletedCount: o.N}
	}
	return nil
}
