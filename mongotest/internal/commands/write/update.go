package write

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "update", Needs: server.NeedsBy("update on the collection; insert, if it upserts", needsOfUpdate),
		API: server.V1, Txn: server.TxnOK,
		Sequences: true, WriteConcern: true, OpTime: true, Retryable: true, Changes: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll, Reply: replyOfMongos},
		Parse:  parseWrite(updateArgs, withRoom(updatesOf)), Run: runUpdate,
	})
}

var (
	updateArgs = writeTable("update", []string{"updates"}, sameBatch, map[string]args.Field[batch]{
		"updates":                args.Objects[batch](nil).Then(parseUpdates),
		"let":                    args.Object(letOf).Gated(),
		"runtimeConstants":       args.RuntimeConstants[batch]("update.runtimeConstants", 51195).Gated(),
		"legacyRuntimeConstants": args.Object[batch](nil).Gated(),
	})
	updateEntry = &args.Table[updateOp]{Name: "update.updates", Required: []string{"q", "u"},
		Fields: map[string]args.Field[updateOp]{
			"q":              args.Object(func(op *updateOp) *bson.Raw { return &op.Q }),
			"u":              args.Any(func(op *updateOp) *bson.RawValue { return &op.u }).Then(checkMods),
			"c":              args.Object(func(op *updateOp) *bson.Raw { return &op.constants }),
			"multi":          args.Bool(func(op *updateOp) *bool { return &op.multi }),
			"upsert":         args.Bool(func(op *updateOp) *bool { return &op.upsert }),
			"upsertSupplied": args.SafeBool[updateOp](nil).Strict().Gated(),
			"collation":      args.Object(func(op *updateOp) *bson.Raw { return &op.Collation }),
			"arrayFilters":   args.Objects(func(op *updateOp) *[]bson.Raw { return &op.arrayFilters }),
			"hint":           args.Hint(func(op *updateOp) *bson.RawValue { return &op.Hint }),
			"sort":           args.Object(func(op *updateOp) *bson.Raw { return &op.Sort }).Gated(),
			"sampleId":       args.Any[updateOp](nil).Gated(),
			"allowShardKeyUpdatesWithoutFullShardKeyInQuery": args.SafeBool[updateOp](nil).Gated(),
			"includeQueryStatsMetricsForOpIndex":             args.Number[updateOp](nil).Gated(),
		}}
)

func updatesOf(w *batch) *[]updateOp { return &w.updates }

func parseUpdates(w *batch, v args.Value) error {
	if err := parseStatements(w, v, &w.updates, updateEntry); err != nil {
		return err
	}
	for i := range w.updates {
		if err := w.updates[i].checkSort(v.From.Version()); err != nil {
			return err
		}
	}
	return nil
}

// checkSort refuses an order for what updates all documents.
func (op *updateOp) checkSort(v release.Version) error {
	if op.multi && op.Sort != nil && v.AllParsed() {
		return srverr.New(srverr.FailedToParse, "Cannot specify sort with multi=true")
	}
	return nil
}

func runUpdate(r *server.Request, dst []byte) ([]byte, error) {
	w := batchOf(r)
	if err := namespace.CheckWritable(r.Version(), w.ns); err != nil {
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
		ops[i].countIn(&r.Changes)
		ops[i].bypass, ops[i].Let = w.bypass, w.let
	}
	var n, modified int32
	var errs []writeError
	var upserted []byte
	count := 0
	for i := range ops {
		stmt := w.statement(i)
		r.BeginStatement()
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
		r.Did(res.effect())
		r.EndStatement("update", ops[i].document, err)
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
			w.skipped = len(ops) - i - 1
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

// checkMods checks what an update may be: a document, or an array of pipeline stages.
func checkMods(_ *updateOp, v args.Value) error {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(srverr.FailedToParse, "Update argument must be either an object or an array")
	}
	if v.Type == bson.TypeArray {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
			}
			if err := pipeline.CheckStage(e.Value, v.From.Version()); err != nil {
				return err
			}
		}
	}
	return nil
}
