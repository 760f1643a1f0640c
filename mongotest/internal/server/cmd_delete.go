package server

import (
	"allium/bson"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "delete", Parse: parseWrite("deletes"), Txn: TxnOK, WriteConcern: true, OpTime: true, Retryable: true, Run: runDelete})
}

func runDelete(r *Request, dst []byte) ([]byte, error) {
	ns, err := r.collection(srverr.BadValue)
	if err != nil {
		return dst, err
	}
	w := writeSpec{name: "delete", ns: ns, ordered: true}
	var field bson.RawValue
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			continue
		}
		switch {
		case k == "deletes":
			field = v
			continue
		case k == "let" && r.Node.cfg.Version.AtLeast(5, 0):
			if w.let, err = objectArg("delete.let", v); err != nil {
				return dst, err
			}
			continue
		}
		ok, err := w.arg(r, k, v)
		if err != nil {
			return dst, err
		}
		if !ok {
			return dst, unknownField("delete." + k)
		}
	}
	list, err := w.operations(r, "deletes", field)
	if err != nil {
		return dst, err
	}
	ops := make([]deleteOp, len(list))
	for i, doc := range list {
		if err := ops[i].read(&w, doc); err != nil {
			return dst, err
		}
	}
	var n int32
	var errs []writeError
	for i := range ops {
		stmt := w.statement(i)
		if _, ok := r.recall(stmt); ok {
			n++
			continue
		}
		var res updateResult
		var err error
		if !ops[i].one && r.IsRetryable() {
			err = srverr.New(srverr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
		} else {
			res, err = ops[i].run(r, ns, r.storeStatement(stmt))
		}
		if err == nil && res.n > 0 {
			r.remember(stmt, executedWrite{kind: StatementDelete})
		}
		n += res.n
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
	return r.appendWriteErrors(dst, errs), nil
}

// read reads one element of deletes.
func (op *deleteOp) read(w *writeSpec, doc bson.Raw) error {
	const prefix = "delete.deletes."
	op.let, op.multi = w.let, false
	var hasQ, hasLimit bool
	for k, v := range doc.All() {
		var err error
		switch k {
		case "q":
			op.q, err = objectArg(prefix+k, v)
			hasQ = true
		case "limit":
			hasLimit = true
			n, _ := number(v)
			if !v.IsNumber() {
				n = 0
			}
			if n != 0 && n != 1 {
				return srverr.New(srverr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", n)
			}
			op.one = n == 1
		case "collation":
			op.collation, err = objectArg(prefix+k, v)
		case "hint":
			op.hint, err = hintArg(v)
		case "sampleId", "includeQueryStatsMetrics":
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
	case !hasLimit:
		return missingField(prefix + "limit")
	}
	return nil
}
