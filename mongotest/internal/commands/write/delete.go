package write

import (
	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "delete", Needs: server.OnColl("remove"), API: server.V1, Txn: server.TxnOK, Sequences: true, WriteConcern: true, OpTime: true,
		Retryable: true, Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll, Reply: replyOfMongos},
		Parse: parseWrite(deleteStruct, parseDeletes), Run: runDelete,
	})
}

var (
	deleteStruct = writeStruct("delete", []string{"deletes"}, map[string]idl.Field{
		"deletes": {Kind: idl.Objects}, "let": {Kind: idl.Object, Gated: true},
		"legacyRuntimeConstants": {Kind: idl.Object, Gated: true},
	})
	deleteEntry = &idl.Struct{Name: "delete.deletes", Required: []string{"q", "limit"}, Fields: map[string]idl.Field{
		"q": {Kind: idl.Object}, "limit": {}, "collation": {Kind: idl.Object}, "hint": {Gated: true}, "sampleId": {Gated: true},
	}}
)

func parseDeletes(r *server.Request, w *batch, field string, v bson.RawValue) error {
	list := idl.Documents(r, field, v)
	w.deletes = make([]deleteOp, len(list))
	for i, doc := range list {
		op := &w.deletes[i]
		if err := deleteEntry.Parse(r, doc, op.set); err != nil {
			return err
		}
	}
	return nil
}

func runDelete(r *server.Request, dst []byte) ([]byte, error) {
	w := batchOf(r)
	if err := namespace.CheckWritable(w.ns); err != nil {
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
		if !ops[i].one && r.IsRetryable() {
			err = srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
		} else {
			res, err = ops[i].run(r, ns, storeStatement(r, stmt))
		}
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
			break
		}
	}
	dst = bson.AppendInt32(dst, "n", n)
	return appendWriteErrors(dst, errs), nil
}

// set takes a field of an element of deletes.
func (op *deleteOp) set(k string, v bson.RawValue) (err error) {
	switch k {
	case "q":
		op.Q = v.Value
	case "limit":
		// Anything that is no number counts as 0.
		n := query.Float(v)
		if n != 0 && n != 1 {
			return srverr.New(srverr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", bsontext.CDouble(n, 6))
		}
		op.one = n == 1
	case "collation":
		op.Collation = v.Value
	case "hint":
		op.Hint, err = arg.Hint(v)
	}
	return err
}
