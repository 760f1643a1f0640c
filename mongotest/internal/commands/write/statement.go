package write

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/change"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// updateOp is one statement of an update, or the update of a findAndModify.
type updateOp struct {
	server.Selection
	u            bson.RawValue
	constants    bson.Raw
	multi        bool
	upsert       bool
	arrayFilters []bson.Raw
	bypass       bool          // bypassDocumentValidation
	diff         *query.Update // instead of u: an entry of the oplog

	findAndModify bool // the statement is a findAndModify

	paths  []string
	update *query.Update
	lost   error // why the statement does not get at all of its shards
}

// parse parses the statement's filter and update. c may be nil.
func (op *updateOp) parse(r *server.Request, ns string, c *store.Coll) (err error) {
	if err := op.Collate(r, c); err != nil {
		return err
	}
	o := op.Options(r, ns)
	uo := &query.UpdateOptions{Options: *o, ArrayFilters: op.arrayFilters, Multi: op.multi,
		Constants: op.constants != nil, Pipeline: op}
	if r.Routing != nil && op.multi && op.u.Type == bson.TypeEmbeddedDocument && !hasOperators(op.u.Value) {
		return srverr.New(srverr.InvalidOptions, "Replacement-style updates cannot be {multi:true}")
	}
	if op.diff != nil {
		op.Updates, op.update = true, op.diff
	} else if op.Updates = op.u.Type != 0; op.Updates {
		if op.update, err = query.ParseUpdate(op.u, uo); err != nil {
			return err
		}
	}
	op.NoExpr = op.upsert
	return op.ParseCollated(r, o)
}

// countIn counts the update by its kind.
func (op *updateOp) countIn(c *server.Changes) {
	if op.u.Type == bson.TypeArray {
		c.Pipelines++
	}
	if op.arrayFilters != nil {
		c.ArrayFilters++
	}
}

// ParsePipeline parses an update that is a pipeline.
func (op *updateOp) ParsePipeline(stages bson.Raw) (query.UpdatePipeline, error) {
	list, err := pipeline.StagesOf(bson.RawValue{Type: bson.TypeArray, Value: stages})
	if err != nil {
		return nil, err
	}
	let := op.Let
	if op.constants != nil {
		let = op.constants
	}
	return pipeline.ParseUpdate(list, op.PipelineOptions(let))
}

// updateResult is what came of it.
type updateResult struct {
	n, modified int32
	upserted    bson.RawValue // the _id of a document that was inserted
	old, new    bson.Raw      // the (last) document before and after
	at          int           // the array element that matched, for positional projections
}

// effect is what an update did, for the profiler. A document that was inserted does not count as
// one that matched.
func (res *updateResult) effect() server.Effect {
	e := server.Effect{Kind: "update", Matched: int64(res.n), Modified: int64(res.modified)}
	if res.upserted.Type != 0 {
		e.Matched, e.Upserted = 0, 1
	}
	return e
}

// document returns the statement of an update as the profiler shows it.
func (op *updateOp) document() bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("q", bsondoc.OrEmpty(op.Q))
		d.B = bson.AppendRawValue(d.B, "u", op.u)
		d.Flag("multi", op.multi).Flag("upsert", op.upsert)
		if op.Collation != nil {
			d.Doc("collation", op.Collation)
		}
		if op.arrayFilters != nil {
			list := make([][]byte, len(op.arrayFilters))
			for i, f := range op.arrayFilters {
				list[i] = f
			}
			d.B = bsondoc.AppendDocuments(d.B, "arrayFilters", list)
		}
		profiledHint(d, op.Hint)
	})
}

// profiledHint appends a hint as the profiler shows that of an update or a delete: the name of an
// index in a document of its own, while it shows a find or an aggregate as it was sent.
func profiledHint(d *bsondoc.Builder, hint bson.RawValue) {
	switch name, named := hint.StringValue(); {
	case named:
		d.Doc("hint", bsondoc.Build(func(d *bsondoc.Builder) { d.Str("$hint", name) }))
	case hint.Type != 0:
		d.B = bson.AppendRawValue(d.B, "hint", hint)
	}
}

// hasOperators tells an update by operators from a replacement.
func hasOperators(update bson.Raw) bool {
	for k := range update.All() {
		return strings.HasPrefix(k, "$")
	}
	return false
}

// begin parses the statement for the collection that it writes to, which it returns; nil: there is
// none.
func (op *updateOp) begin(r *server.Request, tx *store.Tx, ns string, stmt store.Statement) (*store.Coll, error) {
	tx.Statement(stmt)
	c, err := r.Writable(tx, ns, false)
	if err != nil {
		return nil, err
	}
	if op.Filter == nil || op.State != nil {
		op.State = encryptedState(tx, c)
		if err := op.parse(r, ns, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// apply runs the statement. What it has written when it fails stays written.
func (op *updateOp) apply(r *server.Request, tx *store.Tx, ns string,
	stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	if source := r.BucketSource(tx, ns); source != nil {
		return op.updateBuckets(r, tx, source, ns, stmt)
	}
	c, err := op.begin(r, tx, ns, stmt)
	if err != nil {
		return res, err
	}
	if c != nil && c.TimeSeries {
		if err := checkSeriesUpdate(r, c, op); err != nil {
			return res, err
		}
	}
	route, err := r.Route(c, ns)
	if err != nil {
		return res, err
	}
	s := route.Table
	if s != nil {
		err = checkUpdate(s, r, op, ns)
		if err == nil {
			err = op.reach(route, op.multi)
		}
	} else {
		err = route.ReachUnsharded(c)
	}
	if err != nil {
		return res, err
	}
	if c == nil && op.upsert {
		// The collection is created even if the upsert then fails.
		if c, err = r.Writable(tx, ns, true); err != nil {
			return res, err
		}
	}
	if c != nil {
		clock := updateClock(r)
		work := c
		err = op.Candidates(r, c, func(rid string, doc bson.Raw, at int) (bool, error) {
			if op.update.NeedsIndex() && at < 0 {
				_, at, _ = op.Filter.MatchIndex(doc)
			}
			next, modified, err := op.update.Apply(doc, at, clock)
			if err != nil {
				return false, err
			}
			if modified {
				if err := op.CheckShardKey(r, c, op.multi, doc, next); err != nil {
					return false, err
				}
				var hidden *concealed
				if next, hidden, err = conceal(r, tx, work, doc, next, op.bypass); err != nil {
					return false, err
				}
				if err := r.Validate(work, next, doc, op.bypass); err != nil {
					return false, err
				}
				if work.Capped && len(next) != len(doc) && !r.Version().AtLeast(5, 0) {
					return false, srverr.New(10003,
						"Cannot change the size of a document in a capped collection: %d != %d", len(doc), len(next))
				}
				replaced := op.update.IsReplacement() ||
					op.update.IsPipeline() && !r.Version().AtLeast(5, 0)
				if work, err = tx.Update(work, rid, doc, next, replaced, op.delta(tx)); err != nil {
					return false, err
				}
				if err := hidden.write(r, tx); err != nil {
					return false, err
				}
				res.modified++
			}
			res.n++
			res.old, res.new, res.at = doc, next, at
			return op.multi, nil
		})
	}
	if err == nil {
		err = op.lost
	}
	if err != nil || res.n > 0 || !op.upsert {
		return res, err
	}
	doc, err := op.update.Insert(op.Filter, updateClock(r))
	if err != nil {
		return res, err
	}
	if s != nil {
		if _, err := s.KeyOf(doc); err != nil {
			return res, err
		}
	}
	doc, hidden, err := conceal(r, tx, c, nil, doc, op.bypass)
	if err != nil {
		return res, err
	}
	if err := r.Validate(c, doc, nil, op.bypass); err != nil {
		return res, err
	}
	if err := r.CheckID(doc.Lookup("_id")); err != nil {
		return res, err
	}
	if _, err = tx.Insert(c, doc); err != nil {
		return res, err
	}
	if err := hidden.write(r, tx); err != nil {
		return res, err
	}
	res.n, res.new, res.upserted = 1, doc, doc.Lookup("_id")
	return res, nil
}

// reach checks that a statement on a sharded collection gets at the shards that it goes to. One
// that writes to several of them does what it can.
func (op *updateOp) reach(route server.Route, several bool) (err error) {
	op.Only, op.lost = op.Targets, nil
	if !several {
		return route.Reach(op.Targets...)
	}
	some, lost, err := route.ReachSome(op.Targets)
	switch {
	case err != nil:
		return err
	case lost != nil && len(some) == 0:
		return lost
	case lost != nil:
		op.Only, op.lost = some, lost
	}
	return nil
}

// delta returns what change events say about the update: the paths it names. nil: nobody asks.
func (op *updateOp) delta(tx *store.Tx) any {
	if !tx.Logged() {
		return nil
	}
	if op.paths == nil && op.u.Type == bson.TypeEmbeddedDocument && !op.update.IsReplacement() {
		op.paths = change.UpdatePaths(op.u.Value)
	}
	if op.paths == nil {
		return nil
	}
	return op.paths
}

func updateClock(r *server.Request) query.Clock {
	ts := r.Node.Data().Clock.Last()
	if ts.IsZero() {
		ts = r.Node.Data().Clock.Tick()
	}
	return query.Clock{Now: bson.NewDateTime(r.Node.Data().Clock.Now()), Timestamp: ts, KeepEmpty: r.KeepStamps}
}

// run applies the statement as a write of its own.
func (op *updateOp) run(r *server.Request, ns string, stmt store.Statement) (res updateResult, err error) {
	if err := r.FailAll("failAllUpdates"); err != nil {
		return res, err
	}
	var failed error
	err = r.Write(func(tx *store.Tx) error {
		res, failed = op.apply(r, tx, ns, stmt)
		if op.undone(r, failed) {
			return failed
		}
		return nil // a failed update of several documents keeps those that it has done
	})
	if err == nil {
		err = failed
	}
	if err != nil && op.lost == nil {
		res.n, res.modified = 0, 0 // but does not count them
	}
	return res, err
}

// undone reports whether what the statement has written before it failed is to be undone: it is
// done again, or its transaction ends.
func (op *updateOp) undone(r *server.Request, failed error) bool {
	if server.IsStale(failed) {
		op.Filter = nil // it may be another collection next time, with another collation
	}
	return failed != nil && (r.InTxn() || server.IsBlocked(failed) || server.IsStale(failed))
}

// deleteOp is one statement of a delete, or the removal of a findAndModify.
type deleteOp struct {
	updateOp
	one bool
}

// run deletes as a write of its own.
func (op *deleteOp) run(r *server.Request, ns string, stmt store.Statement) (res updateResult, err error) {
	if err := r.FailAll("failAllRemoves"); err != nil {
		return res, err
	}
	var failed error
	err = r.Write(func(tx *store.Tx) error {
		res, failed = op.apply(r, tx, ns, stmt)
		if op.undone(r, failed) {
			return failed
		}
		return nil
	})
	if err != nil {
		return updateResult{}, err // nothing was published
	}
	return res, failed
}

func (op *deleteOp) apply(r *server.Request, tx *store.Tx, ns string,
	stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	if source := r.BucketSource(tx, ns); source != nil {
		return op.deleteBuckets(r, tx, source, ns, stmt)
	}
	c, err := op.begin(r, tx, ns, stmt)
	if err != nil {
		return res, err
	}
	if c == nil {
		return res, nil
	}
	if c.TimeSeries {
		if err := checkSeriesDelete(r, c, op); err != nil {
			return res, err
		}
	}
	route, err := r.Route(c, ns)
	if err != nil {
		return res, err
	}
	if s := route.Table; s != nil {
		err = checkDelete(s, r, op, ns)
		if err == nil {
			err = op.reach(route, !op.one)
		}
	} else {
		err = route.ReachUnsharded(c)
	}
	if err != nil {
		return res, err
	}
	if c.Capped && !r.Version().AtLeast(5, 0) {
		return res, srverr.New(srverr.IllegalOperation, "cannot remove from a capped collection: %s", ns)
	}
	work := c
	err = op.Candidates(r, c, func(rid string, doc bson.Raw, at int) (bool, error) {
		var err error
		if work, err = tx.Delete(work, rid, doc); err != nil {
			return false, err
		}
		res.n++
		res.old, res.at = doc, at
		return !op.one, nil
	})
	if err == nil {
		err = op.lost
	}
	return res, err
}
