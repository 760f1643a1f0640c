package allium

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/exec"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/internal/scope"
	"allium/mongoerr"
)

// ClientBulkWriteOptions are the options of Client.BulkWrite. The zero value of a field leaves it
// to the server.
type ClientBulkWriteOptions struct {
	// Unordered continues after an error. Otherwise the first error ends the operation.
	Unordered bool
	// VerboseResults asks for the result of each write in addition to the totals: InsertedIDs,
	// UpsertedIDs, Updates and Deletes of the result.
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
	// CommandFields is a document whose fields every command has besides its own. It is for the
	// server's own tools, and may change or go at any time.
	CommandFields any
	// CollectionUUIDs are the UUIDs that the collections of the writes must have, one for each
	// write in their order, nil for any: a collection that was dropped and made anew is not written
	// to. It is for the server's own tools, and may change or go at any time.
	CollectionUUIDs [][]byte
	// Timeout bounds the whole operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// BulkWrite runs writes on any collections of the deployment (server 8.0 and later), each made by
// its collection, in the order given unless Unordered is set, in as few messages as the server's
// limits allow. Each write is encoded as its collection says; concerns and timeouts are the
// client's. If the server rejects writes, or another error occurs after the first message, the
// error is a *mongoerr.BulkWriteError; the result covers the writes that are known to have
// succeeded, and is the zero value if there are none.
//
//	res, err := client.BulkWrite(ctx, []allium.WriteModel{
//		users.InsertOneModel(User{Name: "Alan"}),
//		log.InsertOneModel(bson.D{{Key: "added", Value: "Alan"}}),
//	})
//
// Each message is retried once after a network error or a failover, unless it holds an update or a
// delete of many documents; no write is applied twice. An unacknowledged write concern requires
// Unordered and excludes VerboseResults.
func (c *Client) BulkWrite(ctx context.Context, models []WriteModel,
	opts ...ClientBulkWriteOptions) (BulkWriteResult, error) {
	o, err := option.Merge(opts), error(nil)
	if len(models) == 0 {
		err = errNoWrites
	}
	s := c.inherited()
	s.db = "admin"
	if o.WriteConcern != nil {
		s.writeConcern = o.WriteConcern
	}
	b := clientBulk{inherited: &s, writes: clientWrites{list: models, uuids: o.CollectionUUIDs}, opts: o}
	b.writes.docs = documents{n: len(models), at: func(int) (any, *bson.Options) {
		return &b.writes.at.insert, b.writes.at.on.bson
	}}
	var op exec.Op
	if err == nil {
		op, err = b.op(ctx)
	}
	if err != nil {
		return BulkWriteResult{}, s.failed(ctx, "bulkWrite", "", err)
	}
	var res BulkWriteResult
	err = s.operation(ctx, "bulkWrite", "", func(ctx context.Context) (err error) {
		res, err = b.run(ctx, &op)
		return err
	})
	return res, err
}

// clientWrites gives a bulkWrite command its writes.
type clientWrites struct {
	list  []WriteModel
	uuids [][]byte // of their collections, nil for any
	docs  documents
	// ordinals holds, for each write, how many inserts come before it: documents are numbered
	// without what is between them.
	ordinals  []int32
	at        *WriteModel // whose document is asked for
	namespace string      // of the write that was asked for last
	// scopes holds the scopes of the writes' collections at work, nil if there are none.
	scopes map[*scope.Set]*scope.Run
}

// Len implements command.BulkWrites.
func (w *clientWrites) Len() int { return len(w.list) }

// Write implements command.BulkWrites.
func (w *clientWrites) Write(i int) command.BulkStatement {
	m := &w.list[i]
	if on := m.on; len(w.namespace) != len(on.db)+1+len(on.name) || w.namespace[:len(on.db)] != on.db ||
		w.namespace[len(on.db)+1:] != on.name {
		w.namespace = on.db + "." + on.name
	}
	s := command.BulkStatement{Namespace: w.namespace, Update: m.update, Delete: m.delete}
	if w.uuids != nil {
		s.CollectionUUID = w.uuids[i]
	}
	return s
}

// AppendDocument implements command.BulkWrites.
func (w *clientWrites) AppendDocument(dst []byte, i int) ([]byte, error) {
	w.at = &w.list[i]
	start := len(dst)
	dst, err := w.docs.Append(dst, int(w.ordinals[i]))
	if err == nil && w.scopes != nil {
		on := w.at.on
		dst, err = w.scopes[on.scopes].Insert(on.bson, dst, start)
	}
	return dst, err
}

// scope keeps the writes within the scopes of their collections: each of them has one, or none has.
func (w *clientWrites) scope(ctx context.Context, o *ClientBulkWriteOptions) error {
	scoped := slices.IndexFunc(w.list, func(m WriteModel) bool { return m.on.scopes != nil })
	if scoped < 0 {
		return nil
	}
	if i := slices.IndexFunc(w.list, func(m WriteModel) bool { return m.on.scopes == nil }); i >= 0 {
		return fmt.Errorf("write %d: %w: its collection has none, while that of write %d has: run them apart", i,
			mongoerr.ErrScope, scoped)
	}
	if o.RawData {
		return fmt.Errorf("%w: option RawData writes what the filter does not know", mongoerr.ErrScope)
	}
	if o.CommandFields != nil {
		return errExtraInScope
	}
	w.scopes = map[*scope.Set]*scope.Run{}
	w.list = slices.Clone(w.list)
	for i := range w.list {
		m := &w.list[i]
		run := w.scopes[m.on.scopes]
		if run == nil {
			run = m.on.scopes.Begin(ctx)
			w.scopes[m.on.scopes] = run
		}
		var err error
		switch m.kind {
		case updateKind:
			m.update = new(*m.update)
			err = run.Update(m.on.bson, m.update)
		case deleteKind:
			m.delete = new(*m.delete)
			err = run.Delete(m.on.bson, m.delete)
		}
		if err != nil {
			return fmt.Errorf("write %d on %s.%s: %w", i, m.on.db, m.on.name, err)
		}
	}
	return nil
}

// check finds what is wrong with the writes before any of them is sent, and numbers the inserts.
func (w *clientWrites) check(c *Client) error {
	if err := checkModels(w.list, c, nil); err != nil {
		return err
	}
	w.ordinals = make([]int32, len(w.list))
	n := int32(0)
	for i := range w.list {
		w.ordinals[i] = n
		if w.list[i].kind == insertKind {
			n++
		}
	}
	return nil
}

// clientBulk is the state of a Client.BulkWrite.
type clientBulk struct {
	inherited *inherited
	writes    clientWrites
	cmd       *command.BulkWrite
	opts      ClientBulkWriteOptions
	result    BulkWriteResult
	errs      mongoerr.BulkWriteError
	// done says that it is certain that some write was done.
	done bool
}

// op checks what can be checked before anything is sent, and prepares the operation that all
// messages share.
func (b *clientBulk) op(ctx context.Context) (op exec.Op, err error) {
	o := &b.opts
	w := &b.writes
	if err := w.check(b.inherited.client); err != nil {
		return op, err
	}
	if n := len(o.CollectionUUIDs); o.CollectionUUIDs != nil && n != len(w.list) {
		return op, fmt.Errorf("option CollectionUUIDs has %d UUIDs for %d writes", n, len(w.list))
	}
	b.cmd = &command.BulkWrite{Writes: w, ErrorsOnly: !o.VerboseResults, Ordered: !o.Unordered,
		BypassDocumentValidation: o.BypassDocumentValidation,
		Let:                      o.Let, Comment: o.Comment, RawData: o.RawData}
	if o.CommandFields != nil {
		if b.inherited.extra, err = command.NewExtra(b.inherited.bson, o.CommandFields); err != nil {
			return op, err
		}
	}
	if op, err = b.inherited.op(ctx, b.cmd, o.Timeout); err != nil {
		return op, err
	}
	if err := w.scope(ctx, o); err != nil {
		return op, err
	}
	op.ID = b.inherited.client.exec.NewOperationID()
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
		r := &b.result
		r.InsertedIDs, r.UpsertedIDs, r.Updates, r.Deletes = map[int]any{}, map[int]any{}, map[int]UpdateResult{},
			map[int]DeleteResult{}
	}
	b.cmd.CheckSize = !b.result.Acknowledged
	return op, nil
}

// run sends message after message.
func (b *clientBulk) run(ctx context.Context, op *exec.Op) (BulkWriteResult, error) {
	defer func() { b.inherited.client.exec.PutSession(op.Implicit) }()
	for b.cmd.Left() > 0 {
		op.Retryable = b.cmd.Retryable(1)
		res, err := b.inherited.run(ctx, op)
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
	if !b.done {
		b.result = BulkWriteResult{}
	}
	switch {
	case len(e.WriteErrors) > 0 || len(e.WriteConcernErrors) > 0 || e.Err != nil && b.done:
		return b.result, op.Explain(e)
	default:
		return b.result, e.Err // nothing is known beside it
	}
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
	if err := cur.Open(ctx, b.inherited.client.cursors, op, res); err != nil {
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
	if err != nil {
		return err
	}
	return res.Ended
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
		e.Index, e.Namespace = i, b.writes.list[i].on.db+"."+b.writes.list[i].on.name
		b.errs.WriteErrors = append(b.errs.WriteErrors, e)
		b.done = b.done || !b.opts.Unordered && o.Index > 0
		return nil
	}
	b.done = true
	if !b.opts.VerboseResults {
		return nil
	}
	switch r := &b.result; b.writes.list[i].kind {
	case insertKind:
		r.InsertedIDs[i] = b.writes.docs.ids[b.writes.ordinals[i]]
	case updateKind:
		u := UpdateResult{MatchedCount: o.N, ModifiedCount: o.NModified, Acknowledged: true}
		if !o.UpsertedID.IsZero() {
			u.MatchedCount, u.UpsertedCount = max(o.N-1, 0), 1 // n counts the upserted document, too
			u.UpsertedID = decodeID(b.writes.list[i].on.bson, o.UpsertedID)
			r.UpsertedIDs[i] = u.UpsertedID
		}
		r.Updates[i] = u
	case deleteKind:
		r.Deletes[i] = DeleteResult{DeletedCount: o.N, Acknowledged: true}
	}
	return nil
}
