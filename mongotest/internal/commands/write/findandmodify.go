package write

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "findAndModify", Aliases: []string{"findandmodify"},
		Needs: server.NeedsBy("find and remove or update on the collection; insert, if it upserts",
			needsOfFindAndModify), API: server.V1,
		Txn: server.TxnOK, Sequences: true, WriteConcern: true, Retryable: true, Changes: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernAsIs}, Run: runFindAndModify,
	})
}

// findAndModify are the arguments of findAndModify.
type findAndModify struct {
	op        updateOp
	fields    bson.Raw
	remove    bool
	returnNew bool
	stamps    bool // bypassEmptyTsReplacement
	stmt      int64
}

func runFindAndModify(r *server.Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	if err := namespace.CheckWritable(r.Version(), ns); err != nil {
		return dst, err
	}
	q := findAndModify{}
	if err := q.parse(r); err != nil {
		return dst, err
	}
	q.op.countIn(&r.Changes)
	if r.EncryptionSchema() != nil {
		switch {
		case q.returnNew:
			return dst, srverr.New(6371402, "findAndModify with encryption only supports new: false")
		case q.fields != nil && len(q.fields.Elements()) > 0:
			return dst, srverr.New(6371408, "findAndModify fields must be empty")
		case q.op.u.Type == bson.TypeArray:
			return dst, srverr.New(6439901, "FLE only supports modifier and replacement style updates")
		}
	}
	if w, ok, err := recallFindAndModify(r, int32(q.stmt), q.remove, q.op.upsert, q.returnNew); ok || err != nil {
		if err != nil {
			return dst, err
		}
		return q.appendRecalled(dst, w), nil
	}
	return q.run(r, ns, dst)
}

const (
	notObject = "'%s' parameter must be an object, found %s"
	// sic
	badStatement = "BSON field 'findAndModify.%s' is the wrong type '%s', expected types '[long, int, decimal, double']"
)

var findAndModifyArgs = &args.Table[findAndModify]{Name: "findAndModify", Fields: map[string]args.Field[findAndModify]{
	"query":     args.Object(func(q *findAndModify) *bson.Raw { return &q.op.Q }).Old(31160, notObject),
	"sort":      args.Object(func(q *findAndModify) *bson.Raw { return &q.op.Sort }).Old(31174, notObject),
	"fields":    args.Object(func(q *findAndModify) *bson.Raw { return &q.fields }).Old(31175, notObject),
	"let":       args.Object(func(q *findAndModify) *bson.Raw { return &q.op.Let }).Gated(),
	"collation": args.Object(func(q *findAndModify) *bson.Raw { return &q.op.Collation }),
	"update":    args.Any(func(q *findAndModify) *bson.RawValue { return &q.op.u }).Optional(),
	"hint":      args.Hint(func(q *findAndModify) *bson.RawValue { return &q.op.Hint }).Optional().Gated(),
	"remove":    args.SafeBool(func(q *findAndModify) *bool { return &q.remove }).Loose(),
	"new":       args.SafeBool(func(q *findAndModify) *bool { return &q.returnNew }).Loose(),
	"upsert":    args.SafeBool(func(q *findAndModify) *bool { return &q.op.upsert }).Loose(),
	"arrayFilters": args.Objects(func(q *findAndModify) *[]bson.Raw {
		return &q.op.arrayFilters
	}).Then(func(q *findAndModify, v args.Value) error {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeEmbeddedDocument && !v.From.Version().AtLeast(5, 0) {
				return srverr.New(srverr.TypeMismatch, "Each array filter must be an object, found %s",
					bsontext.TypeName(e.Type))
			}
		}
		if q.op.arrayFilters == nil {
			q.op.arrayFilters = []bson.Raw{}
		}
		return nil
	}),
	"bypassDocumentValidation": args.SafeBool(func(q *findAndModify) *bool { return &q.op.bypass }).Loose(),
	"bypassEmptyTsReplacement": args.SafeBool(func(q *findAndModify) *bool { return &q.stamps }).Loose().Gated(),
	"stmtId": args.Number(func(q *findAndModify) *int64 {
		return &q.stmt
	}).Old(srverr.TypeMismatch, badStatement),
	"writeConcern": args.Any[findAndModify](nil).Before50().Then(func(_ *findAndModify, v args.Value) error {
		if doc, ok := v.Document(); ok && doc.IsEmpty() {
			return srverr.New(srverr.FailedToParse, "write concern object cannot be empty")
		}
		return nil
	}),
	"runtimeConstants": {}, "isTimeseriesNamespace": {}, "encryptionInformation": {}, "sampleId": {},
	"legacyRuntimeConstants":   {},
	"includeQueryStatsMetrics": {},
}, Old: &args.Old{
	Unknown: func(_ args.Source, k string) error {
		return srverr.New(51177, "BSON field '%s' is an unknown field.", k)
	},
	Wrong: args.WrongTypeOld,
}}

func (q *findAndModify) parse(r *server.Request) error {
	if v := r.Body.Lookup("hint"); v.Type == bson.TypeNull && r.Version().AllParsed() {
		return srverr.New(srverr.FailedToParse, "Hint must be a string or an object")
	}
	if r.Routing != nil && !r.Version().AtLeast(5, 0) && !r.Body.Lookup("runtimeConstants").IsZero() {
		return srverr.New(51196, "Cannot specify runtime constants option to a mongos")
	}
	if err := findAndModifyArgs.ParseCommand(r, q); err != nil {
		return err
	}
	r.KeepStamps = q.stamps
	hasUpdate := q.op.u.Type != 0
	bad := func(text string) error { return srverr.New(srverr.FailedToParse, "%s", text) }
	switch {
	case q.remove && hasUpdate:
		return bad("Cannot specify both an update and remove=true")
	case q.remove && q.op.upsert:
		if r.Version().AtLeast(5, 0) {
			return bad("Cannot specify both upsert=true and remove=true ") // sic
		}
		return bad("Cannot specify both upsert=true and remove=true")
	case q.remove && q.returnNew:
		return bad("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case q.remove && q.op.arrayFilters != nil:
		return bad("Cannot specify arrayFilters and remove=true")
	case !q.remove && !hasUpdate:
		return bad("Either an update or remove=true must be specified")
	}
	q.op.Q = bsondoc.OrEmpty(q.op.Q)
	return nil
}

func (q *findAndModify) run(r *server.Request, ns string, dst []byte) ([]byte, error) {
	var res updateResult
	var proj *query.Projection
	var failed error
	var meta func(doc bson.Raw) func(name string) bson.RawValue
	err := r.Write(func(tx *store.Tx) error {
		op := q.op
		op.findAndModify, op.Unsorted = true, r.Version().AllParsed()
		c := r.BucketSource(tx, ns)
		if c == nil {
			var err error
			if c, err = r.Writable(tx, ns, false); err != nil {
				return err
			}
		}
		if err := op.parse(r, ns, c); err != nil {
			return err
		}
		var err error
		if proj, err = q.projection(r, ns, &op); err != nil {
			return err
		}
		meta = op.Meta
		const context = "Plan executor error during findAndModify"
		if q.remove {
			d := deleteOp{updateOp: op, one: true}
			res, failed = d.apply(r, tx, ns, storeStatement(r, int32(q.stmt)))
		} else {
			res, failed = op.apply(r, tx, ns, storeStatement(r, int32(q.stmt)))
		}
		failed = r.Failed(failed, context, ns)
		return failed
	})
	if err != nil {
		return dst, err
	}
	if e := res.effect(); q.remove {
		r.Did(server.Effect{Kind: "remove", Deleted: int64(res.n)})
	} else {
		r.Did(e)
	}
	w := executedWrite{pre: res.old, id: res.upserted}
	value := res.old
	switch {
	case q.remove:
		w.kind = session.StatementDelete
	case res.upserted.Type != 0:
		w.kind, w.pre = session.StatementUpsert, nil
		w.post = res.new
	default:
		w.kind = session.StatementUpdate
		if q.returnNew {
			w.pre, w.post = nil, res.new
		}
	}
	if q.returnNew {
		value = res.new
	}
	if res.modified > 0 || res.upserted.Type != 0 || q.remove && res.n > 0 {
		remember(r, int32(q.stmt), w)
	} else {
		r.NoWrite = false
	}
	if value != nil && proj != nil {
		if value, err = proj.Apply(value, meta(value)); err != nil {
			return dst, err
		}
	}
	return q.append(dst, res.n, res.upserted, value), nil
}

// projection parses the fields that are wanted, for a statement that has been parsed; nil: all.
func (q *findAndModify) projection(r *server.Request, ns string, op *updateOp) (proj *query.Projection, err error) {
	if len(q.fields) > 5 {
		if proj, err = query.ParseProjection(q.fields, op.Filter, r.FullOptions(ns, op.Coll, op.Let)); err != nil {
			return nil, err
		}
		for _, v := range q.fields.All() {
			if s, _ := v.Document(); bsondoc.MustString(s.Lookup("$meta")) == "sortKey" {
				return nil, srverr.New(srverr.BadValue,
					"Cannot use a $meta sortKey projection in findAndModify commands.")
			}
		}
		if q.returnNew && hasPositional(q.fields) {
			return nil, srverr.New(srverr.BadValue, "cannot use a positional projection and return the new document")
		}
	}
	return proj, query.CheckMeta(op.Filter, op.Order, proj)
}

// append appends the reply.
func (q *findAndModify) append(dst []byte, n int32, upserted bson.RawValue, value bson.Raw) []byte {
	at, dst := bson.BeginDocumentElement(dst, "lastErrorObject")
	dst = bson.AppendInt32(dst, "n", n)
	if !q.remove {
		dst = bson.AppendBool(dst, "updatedExisting", n > 0 && upserted.Type == 0)
		if upserted.Type != 0 {
			dst = bson.AppendRawValue(dst, "upserted", upserted)
		}
	}
	dst = bson.EndDocument(dst, at)
	if value == nil {
		return bson.AppendNull(dst, "value")
	}
	return bson.AppendDocument(dst, "value", value)
}

// appendRecalled answers a retry: the document as it was noted, without the projection.
func (q *findAndModify) appendRecalled(dst []byte, w executedWrite) []byte {
	value := w.pre
	if q.returnNew {
		value = w.post
	}
	id := w.id
	if w.kind == session.StatementUpdate || w.kind == session.StatementDelete {
		id = bson.RawValue{}
	}
	recalled := *q
	recalled.remove = w.kind == session.StatementDelete
	return recalled.append(dst, 1, id, value)
}

// hasPositional reports whether a projection uses the positional operator.
func hasPositional(fields bson.Raw) bool {
	for k := range fields.All() {
		if strings.HasSuffix(k, ".$") {
			return true
		}
	}
	return false
}
