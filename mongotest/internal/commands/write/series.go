package write

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The updates and deletes that time series collections take.

// checkSeriesUpdate refuses the updates that a time series collection does not take.
func checkSeriesUpdate(r *server.Request, c *store.Coll, op *updateOp) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	_, meta := series.Fields(c)
	switch {
	case r.InTxn():
		return seriesInTxn(c)
	case op.upsert:
		return bad("Cannot perform an upsert on a time-series collection")
	case op.findAndModify, !op.multi:
		return bad("Cannot perform a non-multi update on a time-series collection")
	case op.update.IsReplacement() || op.update.IsPipeline():
		return bad("Cannot perform an update on a time-series collection using a pipeline update")
	case meta == "":
		return bad("Cannot perform an update on a time-series collection that does not have a metaField")
	case !series.OnlyMeta(op.Q, meta):
		return bad("Cannot perform an update on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	case !series.OnlyMeta(op.u.Value, meta), !renamesMeta(op.u.Value, meta):
		return bad("Cannot perform an update on a time-series collection which updates a field that is not the metaField '%s'", meta)
	}
	return nil
}

// renamesMeta reports whether $rename keeps what it renames below the meta field.
func renamesMeta(update bson.Raw, meta string) bool {
	renames, _ := update.Lookup("$rename").Document()
	for _, to := range renames.All() {
		if s, _ := to.StringValue(); s != meta && !strings.HasPrefix(s, meta+".") {
			return false
		}
	}
	return true
}

// checkSeriesDelete does the same for deletes, which since 7.0 may be any.
func checkSeriesDelete(r *server.Request, c *store.Coll, op *deleteOp) error {
	_, meta := series.Fields(c)
	switch {
	case r.InTxn():
		return seriesInTxn(c)
	case r.Version().AtLeast(7, 0):
		return nil
	case op.one || op.findAndModify:
		return srverr.New(srverr.IllegalOperation, "Cannot perform a non-multi delete on a time-series collection")
	case !series.OnlyMeta(op.Q, meta):
		return srverr.New(
			srverr.InvalidOptions, "Cannot perform a delete on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	}
	return nil
}

// seriesInTxn is the error of a write to a time series collection in a transaction.
func seriesInTxn(c *store.Coll) error {
	return srverr.New(srverr.OperationNotSupportedInTransaction,
		"Cannot perform a multi-document transaction write on a time-series collection: %s", c.NS)
}

// insertInTxn is that of an insert.
func insertInTxn(c *store.Coll) error {
	return srverr.New(srverr.OperationNotSupportedInTransaction,
		"Cannot insert into a time-series collection in a multi-document transaction: %s", c.NS)
}

// bucketWrite is a statement that writes to the buckets of a time series collection.
type bucketWrite struct {
	op    *updateOp
	r     *server.Request
	all   *series.Buckets
	table *sharding.Metadata // by the fields of the buckets; nil: the collection is not sharded
}

// beginBuckets parses a statement on buckets, and finds the shards that it goes to. check is
// checkUpdate or checkDelete.
func (op *updateOp) beginBuckets(r *server.Request, tx *store.Tx, source *store.Coll, ns string, stmt store.Statement,
	several bool, check func(s *sharding.Metadata) error) (*bucketWrite, error) {
	tx.Statement(stmt)
	if r.InTxn() {
		return nil, seriesInTxn(source)
	}
	if op.Filter == nil || op.State != nil {
		if err := op.parse(r, ns, source); err != nil {
			return nil, err
		}
	}
	route, err := r.Route(source, source.NS)
	if err != nil {
		return nil, err
	}
	x := &bucketWrite{op: op, r: r}
	var whole bool
	if x.table, whole = series.Table(source, route.Table); x.table == nil {
		err = route.ReachUnsharded(source)
	} else {
		if err = check(x.table); err == nil && !whole {
			op.Aim(r, x.table.Shards()...)
		}
		if err == nil {
			err = op.reach(route, several)
		}
	}
	x.all = r.Buckets(source, ns)
	return x, err
}

// beginBucketInsert returns the buckets that buckets are to be inserted beside.
func beginBucketInsert(r *server.Request, source *store.Coll, ns string) (*series.Buckets, error) {
	if r.InTxn() {
		return nil, insertInTxn(source)
	}
	route, err := r.Route(source, source.NS)
	if err == nil {
		err = route.ReachUnsharded(source)
	}
	if err == nil && route.Table != nil {
		err = route.Reach(route.Table.Shards()...)
	}
	if err != nil {
		return nil, err
	}
	return r.Buckets(source, ns), nil
}

// each calls f for the buckets that match, until it returns false.
func (x *bucketWrite) each(f func(doc bson.Raw, at int) (more bool, err error)) error {
	only := x.op.Only
	x.op.Only = nil
	defer func() { x.op.Only = only }()
	return x.op.Candidates(x.r, x.all.Coll(), func(_ string, doc bson.Raw, at int) (bool, error) {
		if only != nil && !slices.Contains(only, x.all.Shard(doc)) {
			return true, nil
		}
		return f(doc, at)
	})
}

// updateBuckets runs the statement on the buckets of a time series collection.
func (op *updateOp) updateBuckets(r *server.Request, tx *store.Tx, source *store.Coll, ns string,
	stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	x, err := op.beginBuckets(r, tx, source, ns, stmt, op.multi, func(s *sharding.Metadata) error {
		return checkUpdate(s, r, op, source.NS)
	})
	if err != nil {
		return res, err
	}
	clock := updateClock(r)
	err = x.each(func(doc bson.Raw, at int) (bool, error) {
		if op.update.NeedsIndex() && at < 0 {
			_, at, _ = op.Filter.MatchIndex(doc)
		}
		next, modified, err := op.update.Apply(doc, at, clock)
		if err != nil {
			return false, err
		}
		if modified {
			if err := op.CheckKeyOf(r, x.table, op.multi, doc, next); err != nil {
				return false, err
			}
			if err = x.all.Update(tx, next, r, op.bypass); err != nil {
				return false, err
			}
			res.modified++
		}
		res.n++
		res.old, res.new, res.at = doc, next, at
		return op.multi, nil
	})
	if err == nil {
		err = op.lost
	}
	if err != nil || res.n > 0 || !op.upsert {
		return res, err
	}
	doc, err := op.update.Insert(op.Filter, clock)
	if err != nil {
		return res, err
	}
	if err = x.all.Insert(tx, doc, r, op.bypass); err != nil {
		return res, err
	}
	res.n, res.new, res.upserted = 1, doc, doc.Lookup("_id")
	return res, nil
}

// deleteBuckets runs the statement on the buckets of a time series collection.
func (op *deleteOp) deleteBuckets(r *server.Request, tx *store.Tx, source *store.Coll, ns string,
	stmt store.Statement) (res updateResult, err error) {
	res.at = -1
	x, err := op.beginBuckets(r, tx, source, ns, stmt, !op.one, func(s *sharding.Metadata) error {
		return checkDelete(s, r, op, source.NS)
	})
	if err != nil {
		return res, err
	}
	err = x.each(func(doc bson.Raw, at int) (bool, error) {
		if err := x.all.Delete(tx, doc); err != nil {
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
