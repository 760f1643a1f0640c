package server

import (
	"cmp"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/change"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// UpdateOp is one statement of an update, or the update of a findAndModify.
type UpdateOp struct {
	Q            bson.Raw
	u            bson.RawValue
	constants    bson.Raw
	multi        bool
	upsert       bool
	Collation    bson.Raw
	arrayFilters []bson.Raw
	Hint         bson.RawValue
	Sort         bson.Raw
	Let          bson.Raw
	Projection   bson.Raw // that messages show
	bypass       bool

	findAndModify bool // the statement is a findAndModify

	paths         []string
	state         *store.State // that the statement reads; nil: what the request reads
	Filter        *query.Filter
	update        *query.Update
	order         *query.Sort
	natural, back bool // sorted by $natural
	// only are the shards that the statement gets at, nil if these are all; lost is why it does not
	// get at the others.
	only []int
	lost error
	Coll *query.Collation
}

// updateResult is what came of it.
type updateResult struct {
	n, modified int32
	upserted    bson.RawValue // the _id of a document that was inserted
	old, new    bson.Raw      // the (last) document before and after
	at          int           // the array element that matched, for positional projections
}

// CollationOf returns the collation of a statement: its own, or the collection's.
func (r *Request) CollationOf(spec bson.Raw, c *store.Coll) (*query.Collation, error) {
	if spec != nil {
		return query.ParseCollation(spec)
	}
	if c != nil {
		return c.Collation, nil
	}
	return nil, nil
}

// ExprOptions returns what expressions and pipelines are parsed with.
func (r *Request) ExprOptions(ns string, coll *query.Collation, let bson.Raw) *pipeline.Options {
	db, name := namespace.Split(ns)
	v := r.Node.cfg.Version
	return &pipeline.Options{
		NS: pipeline.Namespace{DB: db, Coll: name}, Version: v, Collation: coll, Let: let,
		Now: bson.NewDateTime(r.Node.data.Clock.Now()), ClusterTime: r.clusterNow(), ReplicaSet: r.Node.set != nil, Mongos: r.Node.role == Mongos, InTxn: r.InTxn(),
		CheckChangeStream: func(spec bson.Raw) error {
			return ChangeStreamStruct.Parse(r, spec, func(string, bson.RawValue) error { return nil })
		},
		Script: r.scripts(), Search: r.Node.cfg.Search != nil,
	}
}

// clusterNow is $$CLUSTER_TIME, zero on a standalone.
func (r *Request) clusterNow() bson.Timestamp {
	if r.Node.role == Standalone {
		return bson.Timestamp{}
	}
	return r.Node.data.Clock.Last()
}

// FullOptions returns what a filter that may contain $expr is parsed with.
func (r *Request) FullOptions(ns string, coll *query.Collation, let bson.Raw) *query.Options {
	return r.CheckedOptions(ns, coll, let, nil)
}

// CheckedOptions returns full options for a filter whose expressions end with the error of check.
func (r *Request) CheckedOptions(ns string, coll *query.Collation, let bson.Raw, check func() error) *query.Options {
	o := r.queryOptions(coll)
	o.Where = r.where(check)
	o.Expr = r.expressions(func() *pipeline.Options {
		eo := r.ExprOptions(ns, coll, let)
		eo.Check = check
		return eo
	})
	return o
}

// ValidatorOptions returns what a collection's validator is parsed with.
func (r *Request) ValidatorOptions(coll *query.Collation) *query.Options {
	o := r.queryOptions(coll)
	o.NoText, o.NoWhere = true, true
	o.Expr = r.expressions(func() *pipeline.Options {
		eo := r.ExprOptions("", coll, nil)
		eo.Validator = true
		return eo
	})
	return o
}

// expressions parses the expressions of a filter.
func (r *Request) expressions(options func() *pipeline.Options) query.ExprParser {
	return func(v bson.RawValue) (query.Expr, error) {
		parse, err := pipeline.ExprParser(options())
		if err != nil {
			return nil, err
		}
		return parse(v)
	}
}

// Parse parses the statement's filter and update. c may be nil.
func (op *UpdateOp) Parse(r *Request, ns string, c *store.Coll) (err error) {
	if op.Coll, err = r.CollationOf(op.Collation, c); err != nil {
		return err
	}
	let := op.Let
	if op.constants != nil {
		let = op.constants
	}
	o := r.CheckedOptions(ns, op.Coll, op.Let, r.Check)
	uo := &query.UpdateOptions{Options: *o, ArrayFilters: op.arrayFilters, Multi: op.multi, Constants: op.constants != nil}
	uo.Pipeline = func(stages bson.Raw) (query.UpdatePipeline, error) {
		list, err := pipeline.StagesOf(bson.RawValue{Type: bson.TypeArray, Value: stages})
		if err != nil {
			return nil, err
		}
		po := r.ExprOptions(ns, op.Coll, let)
		po.Check = r.Check
		return pipeline.ParseUpdate(list, po)
	}
	if r.Node.role == Mongos && op.multi && op.u.Type == bson.TypeEmbeddedDocument && !hasOperators(op.u.Value) {
		return srverr.New(srverr.InvalidOptions, "Replacement-style updates cannot be {multi:true}")
	}
	if op.u.Type != 0 {
		if op.update, err = query.ParseUpdate(op.u, uo); err != nil {
			return err
		}
	}
	q, err := r.RevealFilter(op.state, op.Q)
	if err != nil {
		return err
	}
	o.NoExpr = op.upsert
	if op.Filter, err = query.ParseFilter(q, o); err != nil {
		if e := srverr.From(err); op.upsert && e.Code == srverr.QueryFeatureNotAllowed {
			return srverr.New(srverr.QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
		}
		return err
	}
	if op.natural, op.back, err = query.Natural(op.Sort); err != nil {
		return err
	}
	if len(op.Sort) > 5 && !op.natural {
		if op.order, err = query.ParseSort(op.Sort, o); err != nil {
			return err
		}
	}
	return nil
}

// ExplicitCollation is a collation as commands show it that always have one.
func ExplicitCollation(c *query.Collation) bson.Raw {
	if c != nil {
		return c.Spec()
	}
	start, b := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendString(b, "locale", "simple"), start)
}

// hasOperators tells an update by operators from a replacement.
func hasOperators(update bson.Raw) bool {
	for k := range update.All() {
		return strings.HasPrefix(k, "$")
	}
	return false
}

// Candidates calls f for each document that matches, until it returns false. f may write through
// tx.
func (op *UpdateOp) Candidates(r *Request, c *store.Coll, f func(rid string, doc bson.Raw, at int) (more bool, err error)) error {
	if id, ok := op.Filter.IDEquality(); ok && op.Coll.Same(c.Collation) && op.Hint.Type == 0 && !c.Sharded() {
		if rid, doc, ok := c.ByID(id); ok {
			_, err := f(rid, doc, -1)
			return err
		}
		return nil
	}
	a := &Access{Coll: c, only: op.only, Reach: r.Reach, Filter: op.Filter, Sort: op.order, Natural: op.natural, Back: op.back, Hint: op.Hint, Collation: op.Coll}
	a.NoScan = func() bool { return r.NoTableScan(c.NS) }
	a.Text = func() string {
		shown := op.Collation
		if op.u.Type != 0 {
			shown = ExplicitCollation(op.Coll)
		}
		return Describe(c.NS, op.Filter, op.Sort, op.Projection, shown)
	}
	p, err := a.Plan()
	if err != nil {
		return err
	}
	s := &ScanIter{Run: &Running{Request: r}, NS: c.NS, Scan: p.Scan, Filter: p.Filter, At: -1}
	if p.Sort == nil && op.Filter.NeedsGeoIndex() {
		return nearestFirst(s, op.Filter.Near(), f)
	}
	if p.Sort == nil {
		for {
			doc, err := s.Next()
			if err != nil || doc == nil {
				return err
			}
			if more, err := f(s.RID, doc, s.At); err != nil || !more {
				return err
			}
		}
	}
	// Only the first in order is wanted.
	var best []bson.RawValue
	var rid string
	var hit bson.Raw
	at := -1
	for {
		doc, err := s.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		key, err := p.Sort.Key(doc, op.meta(doc))
		if err != nil {
			return err
		}
		if hit == nil || p.Sort.CompareKeys(key, best) < 0 {
			best, rid, hit, at = key, s.RID, doc, s.At
		}
	}
	if hit == nil {
		return nil
	}
	_, err = f(rid, hit, at)
	return err
}

// nearestFirst calls f for a scan's documents by their distance.
func nearestFirst(s *ScanIter, near *query.Near, f func(rid string, doc bson.Raw, at int) (more bool, err error)) error {
	type found struct {
		rid      string
		doc      bson.Raw
		at       int
		distance float64
	}
	var list []found
	for {
		doc, err := s.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		distance, _, _ := near.Distance(doc)
		list = append(list, found{s.RID, doc, s.At, distance})
	}
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.distance, b.distance) })
	for _, d := range list {
		if more, err := f(d.rid, d.doc, d.at); err != nil || !more {
			return err
		}
	}
	return nil
}

// meta returns the metadata of a document that sorts and projections ask for.
func (op *UpdateOp) meta(doc bson.Raw) func(name string) bson.RawValue {
	return func(name string) bson.RawValue {
		if name != "textScore" {
			return bson.RawValue{}
		}
		return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, op.Filter.TextScore(doc))}
	}
}

// begin parses the statement for the collection that it writes to, which it returns; nil: there is
// none.
func (op *UpdateOp) begin(r *Request, tx *store.Tx, ns string, stmt store.Statement) (*store.Coll, error) {
	if err := r.checkBucketWrite(tx.State(), ns); err != nil {
		return nil, err
	}
	tx.Statement(stmt)
	c, err := r.Writable(tx, ns, false)
	if err != nil {
		return nil, err
	}
	if op.Filter == nil || op.state != nil {
		op.state = encryptedState(tx, c)
		if err := op.Parse(r, ns, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// apply runs the statement. What it has written when it fails stays written.
func (op *UpdateOp) apply(r *Request, tx *store.Tx, ns string, stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	c, err := op.begin(r, tx, ns, stmt)
	if err != nil {
		return res, err
	}
	if c != nil && c.TimeSeries {
		if err := r.checkSeriesUpdate(c, op); err != nil {
			return res, err
		}
	}
	s := sharding.Of(c)
	if s != nil {
		err = checkUpdate(s, r, op)
		if err == nil {
			err = op.reach(r, op.multi)
		}
	} else {
		err = r.reachUnsharded(c, ns)
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
		clock := r.updateClock()
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
				if s != nil {
					if err := checkChange(s, r, op, doc, next); err != nil {
						return false, err
					}
				}
				var hidden *concealed
				if next, hidden, err = r.conceal(tx, work, doc, next, op.bypass); err != nil {
					return false, err
				}
				if err := r.Validate(work, next, doc, op.bypass); err != nil {
					return false, err
				}
				if work.Capped && len(next) != len(doc) && !r.Node.cfg.Version.AtLeast(5, 0) {
					return false, srverr.New(10003, "Cannot change the size of a document in a capped collection: %d != %d", len(doc), len(next))
				}
				replaced := op.update.IsReplacement() || op.update.IsPipeline() && !r.Node.cfg.Version.AtLeast(5, 0)
				if work, err = tx.Update(work, rid, doc, next, replaced, op.delta()); err != nil {
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
	doc, err := op.update.Insert(op.Filter, r.updateClock())
	if err != nil {
		return res, err
	}
	if s != nil {
		if _, err := s.KeyOf(doc); err != nil {
			return res, err
		}
	}
	doc, hidden, err := r.conceal(tx, c, nil, doc, op.bypass)
	if err != nil {
		return res, err
	}
	if err := r.Validate(c, doc, nil, op.bypass); err != nil {
		return res, err
	}
	if err := r.checkID(doc.Lookup("_id")); err != nil {
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
func (op *UpdateOp) reach(r *Request, several bool) (err error) {
	op.only, op.lost = nil, nil
	if !several {
		return r.Reach(r.shards...)
	}
	some, lost, err := r.reachSome(r.shards)
	switch {
	case err != nil:
		return err
	case lost != nil && len(some) == 0:
		return lost
	case lost != nil:
		op.only, op.lost = some, lost
	}
	return nil
}

// delta returns what change events say about the update: the paths it names.
func (op *UpdateOp) delta() any {
	if op.paths == nil && op.u.Type == bson.TypeEmbeddedDocument && !op.update.IsReplacement() {
		op.paths = change.UpdatePaths(op.u.Value)
	}
	if op.paths == nil {
		return nil
	}
	return op.paths
}

func (r *Request) updateClock() query.Clock {
	ts := r.Node.data.Clock.Last()
	if ts.IsZero() {
		ts = r.Node.data.Clock.Tick()
	}
	return query.Clock{Now: bson.NewDateTime(r.Node.data.Clock.Now()), Timestamp: ts, KeepEmpty: r.keepStamps}
}

// run applies the statement as a write of its own.
func (op *UpdateOp) run(r *Request, ns string, stmt store.Statement) (res updateResult, err error) {
	if err := r.failAll("failAllUpdates"); err != nil {
		return res, err
	}
	var failed error
	err = r.Write(func(tx *store.Tx) error {
		res, failed = op.apply(r, tx, ns, stmt)
		if IsBlocked(failed) || failed != nil && r.InTxn() {
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

// deleteOp is one statement of a delete, or the removal of a findAndModify.
type deleteOp struct {
	UpdateOp
	one bool
}

// run deletes as a write of its own.
func (op *deleteOp) run(r *Request, ns string, stmt store.Statement) (res updateResult, err error) {
	if err := r.failAll("failAllRemoves"); err != nil {
		return res, err
	}
	var failed error
	err = r.Write(func(tx *store.Tx) error {
		res, failed = op.apply(r, tx, ns, stmt)
		if IsBlocked(failed) || failed != nil && r.InTxn() {
			return failed
		}
		return nil
	})
	if err != nil {
		return updateResult{}, err // nothing was published
	}
	return res, failed
}

func (op *deleteOp) apply(r *Request, tx *store.Tx, ns string, stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	c, err := op.begin(r, tx, ns, stmt)
	if err != nil {
		return res, err
	}
	if c == nil {
		return res, nil
	}
	if c.TimeSeries {
		if err := r.checkSeriesDelete(c, op); err != nil {
			return res, err
		}
	}
	if s := sharding.Of(c); s != nil {
		err = checkDelete(s, r, op)
		if err == nil {
			err = op.reach(r, !op.one)
		}
	} else {
		err = r.reachUnsharded(c, ns)
	}
	if err != nil {
		return res, err
	}
	if c.Capped && !r.Node.cfg.Version.AtLeast(5, 0) {
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

// ChangeStreamStruct is the specification of $changeStream.
var ChangeStreamStruct = &idl.Struct{Name: "$changeStream", Fields: map[string]idl.Field{
	"resumeAfter": {Kind: idl.Object}, "startAfter": {Kind: idl.Object}, "startAtOperationTime": {Kind: idl.Timestamp}, "fullDocument": {Kind: idl.String},
	"fullDocumentBeforeChange": {Kind: idl.String}, "allChangesForCluster": {Kind: idl.Bool},
	"showMigrationEvents": {Kind: idl.Bool}, "allowToRunOnConfigDB": {Kind: idl.Bool}, "allowToRunOnSystemNS": {Kind: idl.Bool, Gated: true},
	"showExpandedEvents": {Kind: idl.Bool, Gated: true}, "showSystemEvents": {Kind: idl.Bool, Gated: true},
	"showRawUpdateDescription": {Kind: idl.Bool, Gated: true}, "showCommitTimestamp": {Kind: idl.Bool, Gated: true},
	"version": {Gated: true}, "supportedEvents": {Gated: true}, "ignoreRemovedShards": {Kind: idl.Bool, Gated: true},
}}

// CheckMeta refuses metadata that the query does not produce.
func CheckMeta(filter *query.Filter, sort *query.Sort, proj *query.Projection) error {
	needs := func(name string) bool {
		return proj != nil && proj.NeedsMeta(name) || sort != nil && sort.NeedsMeta(name)
	}
	for _, m := range []struct {
		name, what string
		have       bool
	}{
		{"textScore", "text score", filter != nil && filter.NeedsTextIndex()},
		{"geoNearDistance", "$geoNear distance", filter != nil && filter.NeedsGeoIndex()},
		{"geoNearPoint", "$geoNear point", filter != nil && filter.NeedsGeoIndex()},
		{"searchScore", "search score", false},
		{"searchHighlights", "search highlights", false},
	} {
		if needs(m.name) && !m.have {
			return srverr.New(40218, "query requires %s metadata, but it is not available", m.what)
		}
	}
	if proj != nil && proj.NeedsMeta("sortKey") && sort == nil {
		return srverr.New(srverr.BadValue, "cannot use sortKey $meta projection without a sort")
	}
	return nil
}
