package write

import (
	"bytes"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Retryable writes (specification: retryable writes): a statement that was executed is not executed
// again; what it did is answered from the session's record, whatever the retry says.

// executedWrite is what the session remembers of a statement: Reply in the session's Statement.
type executedWrite struct {
	kind session.StatementKind
	id   bson.RawValue // of an inserted document
	pre  bson.Raw      // the document as it was, if a findAndModify returned that
	post bson.Raw      // the document as it became, if a findAndModify returned that
}

// remember notes what a statement did. Statements that wrote nothing are not noted: a retry runs
// them again.
func remember(r *server.Request, stmt int32, w executedWrite) {
	rememberAt(r, stmt, w, r.Routing.LastShard())
}

// rememberAt is remember for a statement whose shard is known.
func rememberAt(r *server.Request, stmt int32, w executedWrite, shard int) {
	if !r.IsRetryable() || stmt < 0 {
		return
	}
	at, doc := bson.BeginDocument(nil)
	if w.id.Type != 0 {
		doc = bson.AppendRawValue(doc, "_id", w.id)
	}
	if w.pre != nil {
		doc = bson.AppendDocument(doc, "pre", w.pre)
	}
	if w.post != nil {
		doc = bson.AppendDocument(doc, "post", w.post)
	}
	r.Record(stmt, session.Statement{Kind: w.kind, TS: r.Conn.Client().LastOp, Reply: bson.EndDocument(doc, at)}, shard)
}

// recall returns what an earlier attempt of this statement did.
func recall(r *server.Request, stmt int32) (w executedWrite, ok bool) {
	if stmt < 0 {
		return w, false
	}
	s, ok := r.Executed(stmt)
	if !ok {
		return w, false
	}
	w.kind, w.id = s.Kind, s.Reply.Lookup("_id")
	w.pre, _ = s.Reply.Lookup("pre").Document()
	w.post, _ = s.Reply.Lookup("post").Document()
	return w, true
}

// recallUpdate answers an update from the record.
func recallUpdate(r *server.Request, stmt int32) (res updateResult, ok bool, err error) {
	w, ok := recall(r, stmt)
	if !ok {
		return res, false, nil
	}
	switch w.kind {
	case session.StatementUpdate:
		res.n, res.modified = 1, 1
	case session.StatementInsert, session.StatementUpsert:
		res.n, res.upserted = 1, w.id
	default:
		return res, true, srverr.New(40638, "update retry request is not compatible with previous write of type delete")
	}
	return res, true, nil
}

// recallFindAndModify answers a findAndModify from the record.
func recallFindAndModify(r *server.Request, stmt int32, remove, upsert,
	returnNew bool) (w executedWrite, ok bool, err error) {
	if w, ok = recall(r, stmt); !ok {
		return w, false, nil
	}
	bad := func(code int32, what string) error {
		return srverr.New(
			code, "findAndModify retry request: %s is not compatible with previous write in the transaction of type: %s", r.Body, what)
	}
	switch w.kind {
	case session.StatementDelete:
		if !remove {
			return w, true, bad(40606, "delete")
		}
		if w.pre == nil {
			return w, true, bad(40607, "delete")
		}
	case session.StatementInsert, session.StatementUpsert:
		if !upsert {
			return w, true, bad(40608, "insert")
		}
		if returnNew && w.post == nil {
			w.post = loggedInsert(r, stmt)
		}
	default:
		switch {
		case returnNew && w.post == nil:
			return w, true, bad(40611, "update")
		case !returnNew && w.pre == nil:
			return w, true, bad(40612, "update")
		}
	}
	return w, true, nil
}

// loggedInsert returns the document that a statement inserted, from the change log: the session
// keeps only the _id.
func loggedInsert(r *server.Request, stmt int32) bson.Raw {
	want := storeStatement(r, stmt)
	for _, e := range slices.Backward(r.Node.Store().Latest().Log()) {
		if e.Op != store.OpInsert {
			continue
		}
		if s := e.Statement(); s.ID == want.ID && s.Number == want.Number && bytes.Equal(s.LSID, want.LSID) {
			return e.After()
		}
	}
	return nil
}

// storeStatement names a retryable write's statement for the change log.
func storeStatement(r *server.Request, id int32) store.Statement {
	if !r.IsRetryable() {
		return store.Statement{}
	}
	if r.SessionDoc == nil {
		r.SessionDoc = r.Session.ID.Document()
	}
	return store.Statement{LSID: r.SessionDoc, Number: r.TxnNumber, ID: id}
}
