package write

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "update", Needs: server.NeedsBy("update on the collection; insert, if it upserts", needsOfUpdate), API: server.V1, Txn: server.TxnOK,
		Sequences: true, WriteConcern: true, OpTime: true, Retryable: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll, Reply: replyOfMongos},
		Parse:  parseWrite(updateStruct, parseUpdates), Run: runUpdate,
	})
}

var (
	updateStruct = writeStruct("update", []string{"updates"}, map[string]idl.Field{
		"updates": {Kind: idl.Objects}, "let": {Kind: idl.Object, Gated: true}, "runtimeConstants": {Kind: idl.Object, Gated: true},
		"legacyRuntimeConstants": {Kind: idl.Object, Gated: true},
	})
	updateEntry = &idl.Struct{Name: "update.updates", Required: []string{"q", "u"}, Fields: map[string]idl.Field{
		"q": {Kind: idl.Object}, "u": {}, "c": {Kind: idl.Object}, "multi": {Kind: idl.SafeBool, Strict: idl.Bool}, "upsert": {Kind: idl.SafeBool, Strict: idl.Bool},
		"upsertSupplied": {Kind: idl.SafeBool, Strict: idl.Bool, Gated: true}, "collation": {Kind: idl.Object}, "arrayFilters": {Kind: idl.Objects}, "hint": {},
		"sort": {Kind: idl.Object, Gated: true}, "sampleId": {Kind: idl.Any, Gated: true},
		"allowShardKeyUpdatesWithoutFullShardKeyInQuery": {Kind: idl.SafeBool, Gated: true},
		"includeQueryStatsMetricsForOpIndex":             {Kind: idl.Number, Gated: true},
	}}
)

func parseUpdates(r *server.Request, w *batch, field string, v bson.RawValue) error {
	list := idl.Documents(r, field, v)
	w.updates = make([]updateOp, len(list))
	for i, doc := range list {
		op := &w.updates[i]
		if err := updateEntry.Parse(r, doc, func(k string, v bson.RawValue) error { return op.set(r, k, v) }); err != nil {
			return err
		}
	}
	return nil
}

func runUpdate(r *server.Request, dst []byte) ([]byte, error) {
	w := batchOf(r)
	if err := namespace.CheckWritable(w.ns); err != nil {
		return dst, err
	}
	ns, ops := w.ns, w.updates
	if r.EncryptionSchema() != nil {
		switch {
		case len(ops) != 1:
			return dst, srverr.New(6371502, "Only single document updates are permitted")
		case ops[0].multi:
			return dst, srverr.New(6371503, "FLE only supports single document updates")
		case ops[0].u.Type == bson.TypeArray:
			return dst, srverr.New(6371517, "FLE only supports modifier and replacement style updates")
		}
	}
	for i := range ops {
		ops[i].bypass, ops[i].Let = w.bypass, w.let
	}
	var n, modified int32
	var errs []writeError
	var upserted []byte
	count := 0
	for i := range ops {
		stmt := w.statement(i)
		res, retried, err := recallUpdate(r, stmt)
		if retried && err != nil {
			return dst, err
		}
		if !retried {
			if err = checkRetryableUpdate(r, &ops[i]); err == nil {
				res, err = ops[i].run(r, ns, storeStatement(r, stmt))
			}
			switch {
			case err != nil:
			case res.upserted.Type != 0:
				remember(r, stmt, executedWrite{kind: session.StatementUpsert, id: res.upserted})
			case res.modified > 0:
				remember(r, stmt, executedWrite{kind: session.StatementUpdate})
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
		if r.Stops(e) {
			return dst, e
		}
		errs = append(errs, writeError{i, e})
		if r.SpoilTxn() || w.ordered {
			break
		}
	}
	dst = bson.AppendInt32(dst, "n", n)
	if count > 0 {
		at, d := bson.BeginArrayElement(dst, "upserted")
		dst = bson.EndDocument(append(d, upserted...), at)
	}
	dst = bson.AppendInt32(dst, "nModified", modified)
	return appendWriteErrors(dst, errs), nil
}

// checkRetryableUpdate refuses an update of several documents as a retryable write.
func checkRetryableUpdate(r *server.Request, op *updateOp) error {
	if op.multi && r.IsRetryable() {
		return srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	return nil
}

// set takes a field of an element of updates.
func (op *updateOp) set(r *server.Request, k string, v bson.RawValue) (err error) {
	switch k {
	case "q":
		op.Q = v.Value
	case "u":
		op.u = v
		err = updateArg(v, r.Node.Config().Version)
	case "c":
		op.constants = v.Value
	case "multi":
		op.multi = v.AsBool()
	case "upsert":
		op.upsert = v.AsBool()
	case "collation":
		op.Collation = v.Value
	case "arrayFilters":
		op.arrayFilters = idl.Documents(r, k, v)
	case "hint":
		op.Hint, err = arg.Hint(v)
	case "sort":
		op.Sort = v.Value
	}
	return err
}

// updateArg checks what an update may be: a document, or an array of pipeline stages.
func updateArg(v bson.RawValue, version release.Version) error {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(srverr.FailedToParse, "Update argument must be either an object or an array")
	}
	if v.Type == bson.TypeArray {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
			}
			if err := pipeline.CheckStage(e.Value, version); err != nil {
				return err
			}
		}
	}
	return nil
}
