package write

import (
	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "delete", Needs: server.OnColl("remove"), API: server.V1, Txn: server.TxnOK, Sequences: true,
		WriteConcern: true, OpTime: true,
		Retryable: true, Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll,
			Reply: replyOfMongos},
		Parse: parseWrite(deleteArgs, withRoom(deletesOf)), Run: runDelete,
	})
}

var (
	deleteArgs = writeTable("delete", []string{"deletes"}, sameBatch, map[string]args.Field[batch]{
		"deletes":                args.Objects[batch](nil).Then(parseDeletes),
		"let":                    args.Object(letOf).Gated(),
		"legacyRuntimeConstants": args.Object[batch](nil).Gated(),
	})
	deleteEntry = &args.Table[deleteOp]{Name: "delete.deletes", Required: []string{"q", "limit"},
		Fields: map[string]args.Field[deleteOp]{
			"q":         args.Object(func(op *deleteOp) *bson.Raw { return &op.Q }),
			"limit":     args.Any[deleteOp](nil).Then(setLimit),
			"collation": args.Object(func(op *deleteOp) *bson.Raw { return &op.Collation }),
			"hint":      args.Hint(func(op *deleteOp) *bson.RawValue { return &op.Hint }).Gated(),
			"sampleId":  args.Any[deleteOp](nil).Gated(),
		}}
)

func deletesOf(w *batch) *[]deleteOp { return &w.deletes }

func parseDeletes(w *batch, v args.Value) error {
	return parseStatements(w, v, &w.deletes, deleteEntry)
}

// setLimit takes how many documents go: 1, or 0 for all. What is no number counts as 0.
func setLimit(op *deleteOp, v args.Value) error {
	n := query.Float(v.RawValue)
	if n != 0 && n != 1 {
		return srverr.New(srverr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s",
			bsontext.CDouble(n, 6))
	}
	op.one = n == 1
	return nil
}

func runDelete(r *server.Request, dst []byte) ([]byte, error) {
	w := batchOf(r)
	if err := namespace.CheckWritable(r.Version(), w.ns); err != nil {
		return dst, err
	}
	ns, ops := w.ns, w.deletes
	if r.EncryptionSchema() != nil && len(ops) != 1 {
		return dst, srverr.New(6371302, "Only single document deletes are permitted")
	}
	for i := range ops {
		ops[i].Let = w.let
	}
	var n int32
	var errs []writeError
	for i := range ops {
		stmt := w.statement(i)
		if _, ok := recall(r, stmt); ok {
			n++
			continue
		}
		var res updateResult
		var err error
		r.BeginStatement()
		if !ops[i].one && r.IsRetryable() {
			err = srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
		} else {
			res, err = ops[i].run(r, ns, storeStatement(r, stmt))
		}
		r.Did(server.Effect{Kind: "remove", Deleted: int64(res.n)})
		r.EndStatement("remove", ops[i].document, err)
		if err == nil && res.n > 0 {
			remember(r, stmt, executedWrite{kind: session.StatementDelete})
		}
		n += res.n
		if err == nil {
			continue
		}
		e := srverr.From(err)
		if r.Stops(e) {
			return dst, e
		}
		errs = append(errs, writeError{i, e})
		if r.SpoilTxn() || w.ordered {
			w.skipped = len(w.deletes) - i - 1
			break
		}
	}
	dst = bson.AppendInt32(dst, "n", n)
	return appendWriteErrors(dst, errs), nil
}

// document returns the statement of a delete as the profiler shows it.
func (op *deleteOp) document() bson.Raw {
	limit := int32(0)
	if op.one {
		limit = 1
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("q", bsondoc.OrEmpty(op.Q))
		d.B = bson.AppendInt32(d.B, "limit", limit)
		if op.Collation != nil {
			d.Doc("collation", op.Collation)
		}
		profiledHint(d, op.Hint)
	})
}
