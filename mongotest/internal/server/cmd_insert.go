package server

import (
	"errors"

	"allium/bson"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	Register(&Command{Name: "insert", Parse: parseWrite(insertStruct, parseInserts), Txn: TxnOK, WriteConcern: true, OpTime: true, Retryable: true, Run: runInsert})
}

var insertStruct = writeStruct("insert", []string{"documents"}, map[string]idl.Field{"documents": {Kind: idl.Objects}})

func parseInserts(r *Request, w *writeSpec, field string, v bson.RawValue) error {
	w.docs = idl.Documents(r, field, v)
	return nil
}

// insertChunk is how many documents are inserted before others get a turn.
const insertChunk = 256

func runInsert(r *Request, dst []byte) ([]byte, error) {
	w := r.Writes
	if err := namespace.CheckWritable(w.NS); err != nil {
		return dst, err
	}
	if err := r.checkShardKeys(w.NS, w.docs); err != nil {
		return dst, err
	}
	n, errs, err := r.insert(w, w.docs)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "n", n)
	return r.appendWriteErrors(dst, errs), nil
}

// checkShardKeys refuses a whole insert because of one document without a place, as a mongos before
// 5.0 does.
func (r *Request) checkShardKeys(ns string, list []bson.Raw) error {
	if r.Node.role != Mongos || r.Node.cfg.Version.AtLeast(5, 0) {
		return nil
	}
	s := sharding.Of(r.Node.Store().Latest().Coll(ns))
	if s == nil {
		return nil
	}
	for _, doc := range list {
		if _, err := s.KeyOf(doc); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts documents one by one and returns how many it could.
func (r *Request) insert(w *writeSpec, list []bson.Raw) (n int32, errs []writeError, err error) {
	for i := 0; i < len(list); {
		done, stop, err := r.insertSome(w, list[:min(i+insertChunk, len(list))], i, &errs)
		if err != nil {
			return n, errs, err
		}
		i += done
		if stop {
			n = int32(i)
			break
		}
		n = int32(i)
		if err := r.Check(); err != nil {
			return n, errs, err
		}
	}
	failed := int32(len(errs))
	if w.ordered || failed == 0 || r.spoilt {
		return n, errs, nil
	}
	return n - failed, errs, nil
}

// insertSome inserts the next chunk of documents. done counts the documents that it has dealt with;
// stop is set after an error in an ordered batch, whose document is not counted.
func (r *Request) insertSome(w *writeSpec, list []bson.Raw, from int, errs *[]writeError) (done int, stop bool, err error) {
	failures := len(*errs)
	var inserted []insertedDoc
	err = r.Write(func(tx *store.Tx) error {
		done, stop, inserted = 0, false, inserted[:0]
		*errs = (*errs)[:failures]
		var c *store.Coll
		for i := from; i < len(list); i++ {
			stmt := w.statement(i)
			if _, ok := r.recall(stmt); ok {
				done++
				continue
			}
			tx.Statement(r.storeStatement(stmt))
			doc, err := r.Prepare(list[i])
			if err == nil && c == nil {
				if source := r.bucketSource(tx.State(), w.NS); source != nil {
					if err = r.insertBucket(tx, source, list[i], w.bypass); err == nil {
						done++
						continue
					}
				} else {
					if c, err = r.Writable(tx, w.NS, true); err == nil {
						err = r.reachUnsharded(c, w.NS)
					}
				}
			}
			if err == nil && c.TimeSeries {
				doc, err = r.measurement(c, doc)
			}
			if s := sharding.Of(c); err == nil && s != nil {
				if _, err = s.KeyOf(doc); err == nil {
					r.Targeted([]int{s.ShardOf(doc)})
					err = r.Reach(s.ShardOf(doc))
				}
			}
			var hidden *concealed
			if err == nil {
				doc, hidden, err = r.conceal(tx, c, nil, doc, w.bypass)
			}
			if err == nil {
				err = r.Validate(c, doc, nil, w.bypass)
			}
			if err == nil {
				c, err = tx.Insert(c, doc)
			}
			if err == nil {
				err = hidden.write(r, tx)
			}
			if err == nil {
				if r.IsRetryable() {
					inserted = append(inserted, insertedDoc{stmt, doc.Lookup("_id")})
				}
				done++
				continue
			}
			if IsBlocked(err) {
				if done == 0 {
					return err
				}
				return nil // publish what there is, then wait
			}
			e := srverr.From(err)
			if r.stops(e) {
				return e
			}
			*errs = append(*errs, writeError{i, e})
			if r.spoilTxn() || w.ordered {
				stop = true
				return nil
			}
			done++
		}
		return nil
	})
	var refused *failedCommit
	switch {
	case errors.As(err, &refused):
		*errs = (*errs)[:failures]
		if len(list)-from > 1 {
			// As the server does, which then inserts the documents of a chunk one by one.
			return r.insertSome(w, list[:from+1], from, errs)
		}
		if r.stops(refused.cause) {
			return done, stop, err
		}
		*errs = append(*errs, writeError{from, refused.cause})
		if w.ordered {
			return 0, true, nil
		}
		return 1, false, nil
	case err == nil:
		for _, d := range inserted {
			r.remember(d.stmt, executedWrite{kind: session.StatementInsert, id: d.id})
		}
	}
	return done, stop, err
}

// insertedDoc is a document that a retryable insert has inserted.
type insertedDoc struct {
	stmt int32
	id   bson.RawValue
}
