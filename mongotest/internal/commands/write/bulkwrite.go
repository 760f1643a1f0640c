package write

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "bulkWrite", AdminOnly: true, Needs: server.NeedsBy(
			"insert, update, remove on the collections, as the operations do", needsOfBulkWrite),
		API: server.V1, Txn: server.TxnOK, Sequences: true, WriteConcern: true, Retryable: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll}, Run: runBulkWrite,
	})
}

// bulkOp is one operation of a bulkWrite.
type bulkOp struct {
	ns     string
	uuid   []byte // that the collection must have; nil: any
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
	bulkArgs = writeTable("bulkWrite", []string{"ops", "nsInfo"}, func(q *bulkSpec) *batch {
		return &q.w
	}, map[string]args.Field[bulkSpec]{
		"ops":        args.Objects(func(q *bulkSpec) *[]bson.Raw { return &q.specs }),
		"nsInfo":     args.Objects(func(q *bulkSpec) *[]bson.Raw { return &q.namespaces }).Then(checkNamespaces),
		"errorsOnly": args.Bool(func(q *bulkSpec) *bool { return &q.errorsOnly }),
		"let":        args.Within(args.Object(letOf), func(q *bulkSpec) *batch { return &q.w }),
		"cursor":     server.CursorOption(args.Object[bulkSpec](nil), func(q *bulkSpec) *int64 { return &q.batchSize }),
	})
	bulkNamespace = &args.Table[args.None]{Name: "bulkWrite.nsInfo", Required: []string{"ns"},
		Fields: map[string]args.Field[args.None]{
			"ns": args.String[args.None](nil), "collectionUUID": args.UUID[args.None]("bulkWrite.nsInfo", nil),
			"encryptionInformation": args.Object[args.None](nil),
			"isTimeseriesNamespace": args.SafeBool[args.None](nil), "databaseVersion": {}, "shardVersion": {},
		}}
	bulkEntries = &args.Table[bulkEntry]{Name: "bulkWrite.ops",
		Value: args.Any[bulkEntry](nil).Then(setBulkKind), Fields: map[string]args.Field[bulkEntry]{
			"document":       args.Object(func(e *bulkEntry) *bson.Raw { return &e.insert }),
			"filter":         args.Object(func(e *bulkEntry) *bson.Raw { return &e.u.Q }),
			"updateMods":     args.Any(func(e *bulkEntry) *bson.RawValue { return &e.u.u }),
			"multi":          args.Bool(func(e *bulkEntry) *bool { return &e.multi }),
			"upsert":         args.Bool(func(e *bulkEntry) *bool { return &e.u.upsert }),
			"arrayFilters":   args.Objects(func(e *bulkEntry) *[]bson.Raw { return &e.u.arrayFilters }),
			"hint":           args.Hint(func(e *bulkEntry) *bson.RawValue { return &e.u.Hint }),
			"collation":      args.Object(func(e *bulkEntry) *bson.Raw { return &e.u.Collation }),
			"constants":      args.Object(func(e *bulkEntry) *bson.Raw { return &e.u.constants }),
			"sort":           args.Object(func(e *bulkEntry) *bson.Raw { return &e.u.Sort }),
			"upsertSupplied": {}, "sampleId": {},
		}}
)

// bulkEntry is an element of ops.
type bulkEntry struct {
	q           *bulkSpec
	kind, ns    string
	uuid        []byte // that the collection must have; nil: any
	doc, insert bson.Raw
	u           updateOp
	multi       bool
}

func checkNamespaces(q *bulkSpec, v args.Value) error {
	for _, doc := range q.namespaces {
		if err := bulkNamespace.Parse(v.From, doc, nil); err != nil {
			return err
		}
	}
	return nil
}

// setBulkKind takes the field that an operation begins with: what it does, and where.
func setBulkKind(e *bulkEntry, v args.Value) error {
	k := v.Name
	if known := k == "insert" || k == "update" || k == "delete"; v.From.Version().AllParsed() {
		switch {
		case !known:
			return args.UnknownField("bulkWrite.ops." + k)
		case args.IsNull(v.RawValue):
			return args.MissingField("bulkWrite.ops." + k)
		}
	}
	n, ok := v.AsInt64()
	if !ok {
		return args.WrongTypes("bulkWrite.ops."+k, v.Type, "[int, decimal, double, long']")
	}
	if n < 0 || n >= int64(len(e.q.namespaces)) {
		return srverr.New(srverr.BadValue, "BulkWrite ops entry %s has an invalid nsInfo index.", e.doc)
	}
	e.kind, e.ns = k, bsondoc.MustString(e.q.namespaces[n].Lookup("ns"))
	if b, ok := e.q.namespaces[n].Lookup("collectionUUID").Binary(); ok {
		e.uuid = b.Data
	}
	db, coll := namespace.Split(e.ns)
	if err := namespace.Check(db, coll); err != nil {
		return err
	}
	return namespace.CheckWritable(v.From.Version(), e.ns)
}

func runBulkWrite(r *server.Request, dst []byte) ([]byte, error) {
	q := bulkSpec{w: batch{ordered: true}, batchSize: -1}
	if err := q.parse(r); err != nil {
		return dst, err
	}
	return q.run(r, dst)
}

func (q *bulkSpec) parse(r *server.Request) error {
	if err := bulkArgs.ParseCommand(r, q); err != nil {
		return err
	}
	r.KeepStamps = q.w.stamps
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
	if !slices.ContainsFunc(q.namespaces, func(doc bson.Raw) bool {
		return !doc.Lookup("encryptionInformation").IsZero()
	}) {
		return nil
	}
	if len(q.namespaces) > 1 {
		return srverr.New(srverr.BadValue, "BulkWrite with Queryable Encryption supports only a single namespace.")
	}
	for _, op := range q.ops {
		switch {
		case len(q.ops) > 1 && op.insert == nil:
			return srverr.New(srverr.InvalidOptions,
				"BulkWrite with Queryable Encryption and multiple operations supports only insert.")
		case op.update != nil && op.update.multi:
			return srverr.New(6371503, "FLE only supports single document updates")
		case op.update != nil && op.update.u.Type == bson.TypeArray:
			return srverr.New(6371517, "FLE only supports modifier and replacement style updates")
		}
	}
	return nil
}

func (q *bulkSpec) parseOp(r *server.Request, doc bson.Raw) (op bulkOp, err error) {
	e := bulkEntry{q: q, doc: doc, u: updateOp{Selection: server.Selection{Let: q.w.let}, bypass: q.w.bypass}}
	if err := bulkEntries.Parse(r, doc, &e); err != nil {
		return op, err
	}
	u := &e.u
	op.ns, op.uuid, op.insert = e.ns, e.uuid, e.insert
	switch e.kind {
	case "insert":
		if op.insert == nil {
			return op, args.MissingField("bulkWrite.ops.document")
		}
	case "update":
		switch {
		case u.Q == nil:
			return op, args.MissingField("bulkWrite.ops.filter")
		case u.u.Type == 0:
			return op, args.MissingField("bulkWrite.ops.updateMods")
		case u.u.Type != bson.TypeEmbeddedDocument && u.u.Type != bson.TypeArray:
			return op, srverr.New(srverr.FailedToParse, "Update argument must be either an object or an array")
		}
		u.multi = e.multi
		op.update = u
		if err := u.checkSort(r.Version()); err != nil {
			return op, err
		}
	case "delete":
		if u.Q == nil {
			return op, args.MissingField("bulkWrite.ops.filter")
		}
		op.delete = &deleteOp{updateOp: *u, one: !e.multi}
	case "":
		return op, namespace.Check("", "")
	default:
		return op, srverr.New(srverr.BadValue, "Unrecognized bulkWrite operation: %s", e.kind)
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
	r.Expect(op.ns, op.uuid)
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
				return nil,
					srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
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
