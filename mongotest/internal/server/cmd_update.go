package server

import (
	"allium/bson"
	"allium/mongotest/internal/expr"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "update", Parse: parseWrite("updates"), Txn: TxnOK, WriteConcern: true, OpTime: true, Retryable: true, Run: runUpdate})
}

func runUpdate(r *Request, dst []byte) ([]byte, error) {
	ns, err := r.collection(srverr.BadValue)
	if err != nil {
		return dst, err
	}
	w := writeSpec{name: "update", ns: ns, ordered: true}
	var field bson.RawValue
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch {
		case k == "updates":
			field = v
			continue
		case k == "let" && r.Node.cfg.Version.AtLeast(5, 0):
			if w.let, err = objectArg("update.let", v); err != nil {
				return dst, err
			}
			continue
		}
		ok, err := w.arg(r, k, v)
		if err != nil {
			return dst, err
		}
		if !ok {
			return dst, unknownField("update." + k)
		}
	}
	list, err := w.operations(r, "updates", field)
	if err != nil {
		return dst, err
	}
	ops := make([]updateOp, len(list))
	for i, doc := range list {
		if err := ops[i].read(r, &w, doc); err != nil {
			return dst, err
		}
	}
	var n, modified int32
	var errs []writeError
	var upserted []byte
	count := 0
	for i := range ops {
		stmt := w.statement(i)
		res, retried, err := r.recallUpdate(stmt)
		if !retried {
			if err = r.checkRetryableUpdate(&ops[i]); err == nil {
				res, err = ops[i].run(r, ns, r.storeStatement(stmt))
			}
			switch {
			case err != nil:
			case res.upserted.Type != 0:
				r.remember(stmt, executedWrite{kind: StatementUpsert, id: res.upserted})
			case res.modified > 0:
				r.remember(stmt, executedWrite{kind: StatementUpdate})
			}
		}
		n += res.n
		modified += res.modified
		if res.upserted.Type != 0 {
			at, d := bson.BeginDocument(bson.AppendIndexHeader(upserted, bson.TypeEmbeddedDocument, count))
			d = bson.AppendInt32(d, "index", int32(i))
			d = bson.AppendRawValue(d, "_id", res.upserted)
			upserted = bson.EndDocument(d, at)
			count++
		}
		if err == nil {
			continue
		}
		e := srverr.From(err)
		if r.stops(e) {
			return dst, e
		}
		errs = append(errs, writeError{i, e})
		if r.spoilTxn() || w.ordered {
			break
		}
	}
	dst = bson.AppendInt32(dst, "n", n)
	if count > 0 {
		at, d := bson.BeginArrayElement(dst, "upserted")
		dst = bson.EndDocument(append(d, upserted...), at)
	}
	dst = bson.AppendInt32(dst, "nModified", modified)
	return r.appendWriteErrors(dst, errs), nil
}

// checkRetryableUpdate refuses an update of several documents as a retryable write.
func (r *Request) checkRetryableUpdate(op *updateOp) error {
	if op.multi && r.IsRetryable() {
		return srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	return nil
}

// read reads one element of updates.
func (op *updateOp) read(r *Request, w *writeSpec, doc bson.Raw) error {
	const prefix = "update.updates."
	op.bypass, op.let = w.bypass, w.let
	var hasQ, hasU bool
	for k, v := range doc.All() {
		var err error
		switch k {
		case "q":
			op.q, err = objectArg(prefix+k, v)
			hasQ = true
		case "u":
			op.u = v
			hasU = true
			err = updateArg(v, r.Node.cfg.Version)
		case "c":
			op.constants, err = objectArg(prefix+k, v)
		case "multi":
			op.multi, err = boolArg(prefix+k, v, r.Node.cfg.Version.AtLeast(5, 0))
		case "upsert":
			op.upsert, err = boolArg(prefix+k, v, r.Node.cfg.Version.AtLeast(5, 0))
		case "collation":
			op.collation, err = objectArg(prefix+k, v)
		case "arrayFilters":
			if v.Type == bson.TypeEmbeddedDocument && !bson.Raw(v.Value).IsEmpty() && !r.Node.cfg.Version.AtLeast(5, 0) {
				for name := range bson.Raw(v.Value).All() {
					return srverr.New(40422, "BSON array field '%s' has an invalid value '%s' for an array field name.", prefix+k, name)
				}
			}
			op.arrayFilters, err = documentList(prefix+k, v)
		case "hint":
			op.hint, err = hintArg(v)
		case "sort":
			if !r.Node.cfg.Version.AtLeast(8, 0) {
				return unknownField(prefix + k)
			}
			op.sort, err = objectArg(prefix+k, v)
		case "upsertSupplied", "sampleId", "allowShardKeyUpdatesWithoutFullShardKeyInQuery", "includeQueryStatsMetrics":
		default:
			return unknownField(prefix + k)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !hasQ:
		return missingField(prefix + "q")
	case !hasU:
		return missingField(prefix + "u")
	}
	return nil
}

// updateArg checks what an update may be: a document, or an array of pipeline stages.
func updateArg(v bson.RawValue, version Version) error {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(srverr.FailedToParse, "Update argument must be either an object or an array")
	}
	if v.Type == bson.TypeArray {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
			}
			if err := pipeline.CheckStage(e.Value, expr.Version{Major: version.Major, Minor: version.Minor}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hintArg takes an index name or a key pattern.
func hintArg(v bson.RawValue) (bson.RawValue, error) {
	if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
		return v, srverr.New(srverr.FailedToParse, "Hint must be a string or an object")
	}
	return v, nil
}
