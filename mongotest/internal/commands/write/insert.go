package write

import (
	"errors"

	"allium/bson"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{Name: "insert", Parse: parseWrite(insertStruct, parseInserts), Txn: server.TxnOK, WriteConcern: true, OpTime: true, Retryable: true, Run: runInsert})
}

var insertStruct = writeStruct("insert", []string{"documents"}, map[string]idl.Field{"documents": {Kind: idl.Objects}})

func parseInserts(r *server.Request, w *batch, field string, v bson.RawValue) error {
	w.docs = idl.Documents(r, field, v)
	return nil
}

// insertChunk is how many documents are inserted before others get a turn.
const insertChunk = 256

func runInsert(r *server.Request, dst []byte) ([]byte, error) {
	w := batchOf(r)
	if err := namespace.CheckWritable(w.ns); err != nil {
		return dst, err
	}
	if err := checkShardKeys(r, w.ns, w.docs); err != nil {
		return dst, err
	}
	n, errs, err := insert(r, w, w.docs)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "n", n)
	return appendWriteErrors(dst, errs), nil
}

// checkShardKeys refuses a whole insert because of one document without a place, as a mongos before
// 5.0 does.
func checkShardKeys(r *server.Request, ns string, list []bson.Raw) error {
	if r.Node.Role() != server.Mongos || r.Node.Config().Version.AtLeast(5, 0) {
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
func insert(r *server.Request, w *batch, list []bson.Raw) (n int32, errs []writeError, err error) {
	for i := 0; i < len(list); {
		done, stop, err := insertSome(r, w, list[:min(i+insertChunk, len(list))], i, &errs)
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
	if w.ordered || failed == 0 || r.Spoilt() {
		return n, errs, nil
	}
	return n - failed, errs, nil
}

// insertSome inserts the next chunk of documents. done counts the documents that it has dealt with;
// stop is set after an error in an ordered batch, whose document is not counted.
func insertSome(r *server.Request, w *batch, list []bson.Raw, from int, errs *[]writeError) (done int, stop bool, err error) {
	failures := len(*errs)
	var inserted []insertedDoc
	err = r.Write(func(tx *store.Tx) error {
		done, stop, inserted = 0, false, inserted[:0]
		*errs = (*errs)[:failures]
		var c *store.Coll
		for i := from; i < len(list); i++ {
			stmt := w.statement(i)
			if _, ok := recall(r, stmt); ok {
				done++
				continue
			}
			tx.Statement(storeStatement(r, stmt))
			doc, err := r.Prepare(list[i])
			if err == nil && c == nil {
				if source := r.BucketSource(tx.State(), w.ns); source != nil {
					if err = r.InsertBucket(tx, source, list[i], w.bypass); err == nil {
						done++
						continue
					}
				} else {
					if c, err = r.Writable(tx, w.ns, true); err == nil {
						err = r.ReachUnsharded(c, w.ns)
					}
				}
			}
			if err == nil && c.TimeSeries {
				doc, err = r.Measurement(c, doc)
			}
			if s := sharding.Of(c); err == nil && s != nil {
				var shard int
				if shard, err = s.PlaceOf(w.ns, doc); err == nil {
					r.Targeted([]int{shard})
					err = r.Reach(shard)
				}
			}
			var hidden *concealed
			if err == nil {
				doc, hidden, err = conceal(r, tx, c, nil, doc, w.bypass)
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
			if server.IsBlocked(err) {
				if done == 0 {
					return err
				}
				return nil // publish what there is, then wait
			}
			e := srverr.From(err)
			if r.Stops(e) {
				return e
			}
			*errs = append(*errs, writeError{i, e})
			if r.SpoilTxn() || w.ordered {
				stop = true
				return nil
			}
			done++
		}
		return nil
	})
	var refused *server.FailedCommit
	switch {
	case errors.As(err, &refused):
		*errs = (*errs)[:failures]
		if len(list)-from > 1 {
			// As the server does, which then inserts the documents of a chunk one by one.
			return insertSome(r, w, list[:from+1], from, errs)
		}
		if r.Stops(refused.Cause) {
			return done, stop, err
		}
		*errs = append(*errs, writeError{from, refused.Cause})
		if w.ordered {
			return 0, true, nil
		}
		return 1, false, nil
	case err == nil:
		for _, d := range inserted {
			remember(r, d.stmt, executedWrite{kind: session.StatementInsert, id: d.id})
		}
	}
	return done, stop, err
}

// insertedDoc is a document that a retryable insert has inserted.
type insertedDoc struct {
	stmt int32
	id   bson.RawValue
}
