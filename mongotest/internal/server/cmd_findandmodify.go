package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	Register(&Command{Name: "findAndModify", Aliases: []string{"findandmodify"}, Txn: TxnOK, WriteConcern: true, Retryable: true, Run: runFindAndModify})
}

// FindAndModify are the arguments of findAndModify.
type FindAndModify struct {
	Op        UpdateOp
	fields    bson.Raw
	Remove    bool
	returnNew bool
	stmt      int32
}

func runFindAndModify(r *Request, dst []byte) ([]byte, error) {
	ns, err := r.Collection(srverr.InvalidNamespace)
	if err != nil {
		return dst, err
	}
	if err := namespace.CheckWritable(ns); err != nil {
		return dst, err
	}
	q := FindAndModify{}
	if err := q.Parse(r); err != nil {
		return dst, err
	}
	if r.encryption() != nil {
		switch {
		case q.returnNew:
			return dst, srverr.New(6371402, "findAndModify with encryption only supports new: false")
		case q.fields != nil && len(q.fields.Elements()) > 0:
			return dst, srverr.New(6371408, "findAndModify fields must be empty")
		case q.Op.u.Type == bson.TypeArray:
			return dst, srverr.New(6439901, "FLE only supports modifier and replacement style updates")
		}
	}
	if w, ok, err := r.recallFindAndModify(q.stmt, q.Remove, q.Op.upsert, q.returnNew); ok || err != nil {
		if err != nil {
			return dst, err
		}
		return q.appendRecalled(dst, w), nil
	}
	return q.run(r, ns, dst)
}

// unknown is the error for an argument that the version does not have.
func (q *FindAndModify) unknown(idl bool, k string) error {
	if idl {
		return arg.UnknownField("findAndModify." + k)
	}
	return srverr.New(51177, "BSON field '%s' is an unknown field.", k)
}

func (q *FindAndModify) Parse(r *Request) error {
	idl := r.Node.cfg.Version.AtLeast(5, 0)
	object := func(k string, v bson.RawValue, code int32) (bson.Raw, error) {
		doc, ok := v.Document()
		switch {
		case ok:
			return doc, nil
		case idl:
			return nil, arg.WrongType("findAndModify."+k, v.Type, "object")
		}
		return nil, srverr.New(code, "'%s' parameter must be an object, found %s", k, bsontext.TypeName(v.Type))
	}
	hasUpdate := false
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		if idl && (v.Type == bson.TypeNull || v.Type == bson.TypeUndefined) {
			continue
		}
		var err error
		switch k {
		case "query":
			q.Op.Q, err = object(k, v, 31160)
		case "sort":
			q.Op.Sort, err = object(k, v, 31174)
		case "fields":
			q.fields, err = object(k, v, 31175)
		case "update":
			q.Op.u, hasUpdate = v, true
		case "remove":
			q.Remove = v.AsBool()
		case "new":
			q.returnNew = v.AsBool()
		case "upsert":
			q.Op.upsert = v.AsBool()
		case "hint":
			if !r.Node.cfg.Version.Has(release.Argument, "findAndModify.hint") {
				return q.unknown(idl, k)
			}
			q.Op.Hint, err = HintArg(v)
		case "collation":
			if v.Type != bson.TypeEmbeddedDocument && !idl {
				return arg.NotA(k, "object", v)
			}
			q.Op.Collation, err = arg.Object("findAndModify.collation", v)
		case "writeConcern":
			if doc, ok := v.Document(); ok && doc.IsEmpty() && !idl {
				return srverr.New(srverr.FailedToParse, "write concern object cannot be empty")
			}
		case "arrayFilters":
			if v.Type != bson.TypeArray && !idl {
				return srverr.New(srverr.TypeMismatch, "\"arrayFilters\" had the wrong type. Expected array, found %s", bsontext.TypeName(v.Type))
			}
			if !idl {
				for e := range bson.Raw(v.Value).Values() {
					if e.Type != bson.TypeEmbeddedDocument {
						return srverr.New(srverr.TypeMismatch, "Each array filter must be an object, found %s", bsontext.TypeName(e.Type))
					}
				}
			}
			q.Op.arrayFilters, err = arg.Documents(k, v)
			if q.Op.arrayFilters == nil {
				q.Op.arrayFilters = []bson.Raw{}
			}
		case "bypassDocumentValidation":
			q.Op.bypass = v.AsBool()
		case "bypassEmptyTsReplacement":
			if !r.Node.cfg.Version.Has(release.Argument, "findAndModify.bypassEmptyTsReplacement") {
				return q.unknown(idl, k)
			}
			r.keepStamps = v.AsBool()
		case "let":
			if !r.Node.cfg.Version.Has(release.Argument, "findAndModify.let") {
				return q.unknown(idl, k)
			}
			q.Op.Let, err = object(k, v, 0)
		case "stmtId":
			var n int64
			n, err = arg.Integer("findAndModify.stmtId", v)
			q.stmt = int32(n)
		case "runtimeConstants", "isTimeseriesNamespace", "encryptionInformation", "sampleId", "legacyRuntimeConstants", "includeQueryStatsMetrics":
		default:
			if r.Generic(k) {
				continue
			}
			return q.unknown(idl, k)
		}
		if err != nil {
			return err
		}
	}
	bad := func(text string) error { return srverr.New(srverr.FailedToParse, "%s", text) }
	switch {
	case q.Remove && hasUpdate:
		return bad("Cannot specify both an update and remove=true")
	case q.Remove && q.Op.upsert:
		return bad("Cannot specify both upsert=true and remove=true")
	case q.Remove && q.returnNew:
		return bad("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case q.Remove && q.Op.arrayFilters != nil:
		return bad("Cannot specify arrayFilters and remove=true")
	case !q.Remove && !hasUpdate:
		return bad("Either an update or remove=true must be specified")
	}
	q.Op.Q = bsondoc.OrEmpty(q.Op.Q)
	return nil
}

func (q *FindAndModify) run(r *Request, ns string, dst []byte) ([]byte, error) {
	var res updateResult
	var proj *query.Projection
	var failed error
	var meta func(doc bson.Raw) func(name string) bson.RawValue
	err := r.Write(func(tx *store.Tx) error {
		op := q.Op
		op.findAndModify = true
		c, err := r.Writable(tx, ns, false)
		if err != nil {
			return err
		}
		if err := op.Parse(r, ns, c); err != nil {
			return err
		}
		if len(q.fields) > 5 {
			if proj, err = query.ParseProjection(q.fields, op.Filter, r.FullOptions(ns, op.Coll, op.Let)); err != nil {
				return err
			}
			if q.returnNew && hasPositional(q.fields) {
				return srverr.New(srverr.BadValue, "cannot use a positional projection and return the new document")
			}
		}
		if err := CheckMeta(op.Filter, op.order, proj); err != nil {
			return err
		}
		meta = op.meta
		if q.Remove {
			d := deleteOp{UpdateOp: op, one: true}
			res, failed = d.apply(r, tx, ns, r.storeStatement(q.stmt))
		} else {
			res, failed = op.apply(r, tx, ns, r.storeStatement(q.stmt))
		}
		return failed
	})
	if err != nil {
		return dst, err
	}
	w := executedWrite{pre: res.old, id: res.upserted}
	value := res.old
	switch {
	case q.Remove:
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
	if res.modified > 0 || res.upserted.Type != 0 || q.Remove && res.n > 0 {
		r.remember(q.stmt, w)
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

// append appends the reply.
func (q *FindAndModify) append(dst []byte, n int32, upserted bson.RawValue, value bson.Raw) []byte {
	at, dst := bson.BeginDocumentElement(dst, "lastErrorObject")
	dst = bson.AppendInt32(dst, "n", n)
	if !q.Remove {
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
func (q *FindAndModify) appendRecalled(dst []byte, w executedWrite) []byte {
	value := w.pre
	if q.returnNew {
		value = w.post
	}
	id := w.id
	if w.kind == session.StatementUpdate || w.kind == session.StatementDelete {
		id = bson.RawValue{}
	}
	recalled := *q
	recalled.Remove = w.kind == session.StatementDelete
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
