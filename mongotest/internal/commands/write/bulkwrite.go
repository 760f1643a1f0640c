package write

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "bulkWrite", AdminOnly: true, Needs: server.NeedsBy("insert, update, remove on the collections, as the operations do", needsOfBulkWrite),
		API: server.V1, Txn: server.TxnOK, Sequences: true, WriteConcern: true, Retryable: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll}, Run: runBulkWrite,
	})
}

// bulkOp is one operation of a bulkWrite.
type bulkOp struct {
	ns     string
	insert bson.Raw
	update *updateOp
	delete *deleteOp
}

// bulkSpec are the arguments of bulkWrite.
type bulkSpec struct {
	w          batch
	ops        []bulkOp
	errorsOnly bool
	batchSize  int64
	specs      []bson.Raw
	namespaces []bson.Raw
}

var (
	bulkStruct = writeStruct("bulkWrite", []string{"ops", "nsInfo"}, map[string]idl.Field{
		"ops": {Kind: idl.Objects}, "nsInfo": {Kind: idl.Objects}, "errorsOnly": {Kind: idl.SafeBool}, "let": {Kind: idl.Object}, "cursor": {Kind: idl.Object},
	})
	bulkNamespace = &idl.Struct{Name: "bulkWrite.nsInfo", Required: []string{"ns"}, Fields: map[string]idl.Field{
		"ns": {Kind: idl.String}, "collectionUUID": {}, "encryptionInformation": {Kind: idl.Object}, "isTimeseriesNamespace": {Kind: idl.SafeBool},
		"databaseVersion": {}, "shardVersion": {},
	}}
)

func runBulkWrite(r *server.Request, dst []byte) ([]byte, error) {
	q := bulkSpec{w: batch{ordered: true}, batchSize: -1}
	if err := q.parse(r); err != nil {
		return dst, err
	}
	return q.run(r, dst)
}

func (q *bulkSpec) parse(r *server.Request) error {
	err := bulkStruct.ParseCommand(r, func(k string, v bson.RawValue) (err error) {
		switch k {
		case "ops":
			q.specs = idl.Documents(r, k, v)
		case "nsInfo":
			q.namespaces = idl.Documents(r, k, v)
			for _, doc := range q.namespaces {
				if err := bulkNamespace.Parse(r, doc, func(string, bson.RawValue) error { return nil }); err != nil {
					return err
				}
			}
		case "errorsOnly":
			q.errorsOnly = v.AsBool()
		case "cursor":
			err = server.ParseCursorOption(v, &q.batchSize)
		default:
			q.w.set(r, k, v)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := q.w.checkCount(len(q.specs)); err != nil {
		return err
	}
	for _, doc := range q.specs {
		op, err := q.parseOp(r, doc)
		if err != nil {
			return err
		}
		q.ops = append(q.ops, op)
	}
	return q.checkEncrypted()
}

// checkEncrypted refuses what cannot be done with Queryable Encryption.
func (q *bulkSpec) checkEncrypted() error {
	if !slices.ContainsFunc(q.namespaces, func(doc bson.Raw) bool { return !doc.Lookup("encryptionInformation").IsZero() }) {
		return nil
	}
	if len(q.namespaces) > 1 {
		return srverr.New(srverr.BadValue, "BulkWrite with Queryable Encryption supports only a single namespace.")
	}
	for _, op := range q.ops {
		switch {
		case len(q.ops) > 1 && op.insert == nil:
			return srverr.New(srverr.InvalidOptions, "BulkWrite with Queryable Encryption and multiple operations supports only insert.")
		case op.update != nil && op.update.multi:
			return srverr.New(6371503, "FLE only supports single document updates")
		case op.update != nil && op.update.u.Type == bson.TypeArray:
			return srverr.New(6371517, "FLE only supports modifier and replacement style updates")
		}
	}
	return nil
}

func (q *bulkSpec) parseOp(r *server.Request, doc bson.Raw) (op bulkOp, err error) {
	var kind string
	for k, v := range doc.All() {
		kind = k
		n, ok := v.AsInt64()
		if !ok {
			return op, arg.WrongTypes("bulkWrite.ops."+k, v.Type, "[int, decimal, double, long']")
		}
		if n < 0 || n >= int64(len(q.namespaces)) {
			return op, srverr.New(srverr.BadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", doc)
		}
		op.ns, err = arg.String("bulkWrite.nsInfo.ns", q.namespaces[n].Lookup("ns"))
		if err != nil {
			return op, err
		}
		break
	}
	db, coll := namespace.Split(op.ns)
	if err := namespace.Check(db, coll); err != nil {
		return op, err
	}
	if err := namespace.CheckWritable(op.ns); err != nil {
		return op, err
	}
	u := updateOp{Selection: server.Selection{Let: q.w.let}, bypass: q.w.bypass}
	multi := false
	hasMods := false
	first := true
	for k, v := range doc.All() {
		if first {
			first = false
			continue
		}
		field := "bulkWrite.ops." + k
		switch k {
		case "document":
			op.insert, err = arg.Object(field, v)
		case "filter":
			u.Q, err = arg.Object(field, v)
		case "updateMods":
			u.u, hasMods = v, true
		case "multi":
			multi, err = arg.Bool(field, v, true)
		case "upsert":
			u.upsert, err = arg.Bool(field, v, true)
		case "arrayFilters":
			u.arrayFilters, err = arg.Documents(field, v)
		case "hint":
			u.Hint, err = arg.Hint(v)
		case "collation":
			u.Collation, err = arg.Object(field, v)
		case "constants":
			u.constants, err = arg.Object(field, v)
		case "sort":
			u.Sort, err = arg.Object(field, v)
		case "upsertSupplied", "sampleId":
		default:
			err = arg.UnknownField(field)
		}
		if err != nil {
			return op, err
		}
	}
	switch kind {
	case "insert":
		if op.insert == nil {
			return op, arg.MissingField("bulkWrite.ops.document")
		}
	case "update":
		switch {
		case u.Q == nil:
			return op, arg.MissingField("bulkWrite.ops.filter")
		case !hasMods:
			return op, arg.MissingField("bulkWrite.ops.updateMods")
		}
		u.multi = multi
		op.update = &u
	case "delete":
		if u.Q == nil {
			return op, arg.MissingField("bulkWrite.ops.filter")
		}
		op.delete = &deleteOp{updateOp: u, one: !multi}
	default:
		return op, srverr.New(srverr.BadValue, "Unrecognized bulkWrite operation: %s", kind)
	}
	return op, nil
}

// bulkCounts are the totals of a bulkWrite.
type bulkCounts struct{ errors, inserted, matched, modified, upserted, deleted int32 }

func (q *bulkSpec) run(r *server.Request, dst []byte) ([]byte, error) {
	var sum bulkCounts
	var replies []bson.Raw
	for i := range q.ops {
		reply, err := q.one(r, i, &sum)
		if err != nil {
			e := srverr.From(err)
			if r.InTxn() || r.Stops(e) {
				return dst, e
			}
			sum.errors++
			at, doc := bson.BeginDocument(nil)
			doc = bson.AppendDouble(doc, "ok", 0)
			doc = bson.AppendInt32(doc, "idx", int32(i))
			doc = bson.AppendInt32(doc, "code", e.Code)
			doc = bson.AppendString(doc, "errmsg", e.Msg)
			for k, v := range e.Extra.All() {
				doc = bson.AppendRawValue(doc, k, v)
			}
			doc = bson.AppendInt32(doc, "n", 0)
			if q.ops[i].update != nil {
				doc = bson.AppendInt32(doc, "nModified", 0)
			}
			replies = append(replies, bson.EndDocument(doc, at))
			if q.w.ordered {
				break
			}
			continue
		}
		if !q.errorsOnly {
			replies = append(replies, reply)
		}
	}
	c := r.NewCursor("admin.$cmd.bulkWrite", pipeline.FromSlice(replies), &server.Running{})
	limit := q.batchSize
	if limit < 0 {
		limit = int64(len(replies)) + 1
	}
	dst, err := r.AppendCursor(dst, c, limit, false)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "nErrors", sum.errors)
	dst = bson.AppendInt32(dst, "nInserted", sum.inserted)
	dst = bson.AppendInt32(dst, "nMatched", sum.matched)
	dst = bson.AppendInt32(dst, "nModified", sum.modified)
	dst = bson.AppendInt32(dst, "nUpserted", sum.upserted)
	return bson.AppendInt32(dst, "nDeleted", sum.deleted), nil
}

// one runs an operation and returns its entry in the results cursor.
func (q *bulkSpec) one(r *server.Request, i int, sum *bulkCounts) (bson.Raw, error) {
	op, stmt := &q.ops[i], q.w.statement(i)
	var n, modified int32
	var upserted bson.RawValue
	switch {
	case op.insert != nil:
		w := q.w
		w.ns, w.stmts, w.stmt = op.ns, nil, stmt
		_, errs, err := insert(r, &w, []bson.Raw{op.insert})
		if err != nil {
			return nil, err
		}
		if len(errs) > 0 {
			return nil, errs[0].err
		}
		n = 1
		sum.inserted++
	case op.update != nil:
		res, retried, err := recallUpdate(r, stmt)
		if !retried {
			if err = checkRetryableUpdate(r, op.update); err == nil {
				res, err = op.update.run(r, op.ns, storeStatement(r, stmt))
			}
			switch {
			case err != nil:
			case res.upserted.Type != 0:
				remember(r, stmt, executedWrite{kind: session.StatementUpsert, id: res.upserted})
			case res.modified > 0:
				remember(r, stmt, executedWrite{kind: session.StatementUpdate})
			}
		}
		if err != nil {
			return nil, err
		}
		n, modified, upserted = res.n, res.modified, res.upserted
		if upserted.Type != 0 {
			sum.upserted++
		} else {
			sum.matched += n
		}
		sum.modified += modified
	default:
		if _, ok := recall(r, stmt); ok {
			n = 1
		} else {
			if !op.delete.one && r.IsRetryable() {
				return nil, srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
			}
			res, err := op.delete.run(r, op.ns, storeStatement(r, stmt))
			if err != nil {
				return nil, err
			}
			if n = res.n; n > 0 {
				remember(r, stmt, executedWrite{kind: session.StatementDelete})
			}
		}
		sum.deleted += n
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendDouble(doc, "ok", 1)
	doc = bson.AppendInt32(doc, "idx", int32(i))
	doc = bson.AppendInt32(doc, "n", n)
	if op.update != nil {
		doc = bson.AppendInt32(doc, "nModified", modified)
	}
	if upserted.Type != 0 {
		up, d := bson.BeginDocumentElement(doc, "upserted")
		doc = bson.EndDocument(bson.AppendRawValue(d, "_id", upserted), up)
	}
	return bson.EndDocument(doc, at), nil
}
