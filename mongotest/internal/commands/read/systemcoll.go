package read

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/store"
)

// Collections that are not stored: what they hold is known elsewhere, and is made into documents
// when somebody reads them.

// systemDocuments returns the documents of such a collection; ok is false for every other one.
func systemDocuments(r *server.Request, ns string) (docs []bson.Raw, ok bool) {
	n := r.Node
	switch {
	case n.Set() == nil:
		return nil, false
	case ns == "local.oplog.rs":
		return oplog(n), true
	case ns == "config.transactions":
		return transactionRecords(n), true
	case ns == "config.system.sessions":
		for _, s := range n.Data().Sessions().All(func(session.ID) bool { return true }) {
			docs = append(docs, s.Document())
		}
		return docs, true
	}
	return nil, false
}

// oplog returns the change log as the oplog has it, as far as it is kept and the member has it.
func oplog(n *server.Node) []bson.Raw {
	term, applied := n.Set().Position(n)
	var docs []bson.Raw
	for _, e := range n.Store().Latest().Log() {
		if e.TS.Compare(applied) > 0 {
			break
		}
		if e.Op != store.OpTrimmed {
			docs = append(docs, oplogEntry(e, term))
		}
	}
	if docs == nil { // there is always an entry: that of the set's beginning
		docs = append(docs, oplogEntry(store.FirstEntry(applied, n.Started()), term))
	}
	return docs
}

func oplogEntry(e *store.Entry, term int64) bson.Raw {
	_, coll := namespace.Split(e.NS())
	kind, ns := "c", e.NS()
	var command string // of what is no write of a document
	switch e.Op {
	case store.OpInsert:
		kind = "i"
	case store.OpUpdate, store.OpReplace:
		kind = "u"
	case store.OpDelete:
		kind = "d"
	case store.OpNoop, store.OpTrimmed:
		kind = "n"
	case store.OpCreate:
		command = "create"
	case store.OpDrop:
		command = "drop"
	case store.OpDropDatabase:
		command = "dropDatabase"
	case store.OpRename:
		command = "renameCollection"
	case store.OpCreateIndexes:
		command = "createIndexes"
	case store.OpDropIndexes:
		command = "dropIndexes"
	case store.OpModify:
		command = "collMod"
	default:
		kind = "n"
	}
	if kind == "c" {
		db, _ := namespace.Split(e.NS())
		ns = db + ".$cmd"
	}
	if kind == "n" {
		ns = ""
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendTimestamp(doc, "ts", e.TS)
	doc = bson.AppendInt64(doc, "t", term)
	doc = bson.AppendInt32(doc, "v", 2)
	doc = bson.AppendString(doc, "op", kind)
	doc = bson.AppendString(doc, "ns", ns)
	if kind != "n" && e.Op != store.OpDropDatabase {
		uuid := e.UUID()
		doc = bson.AppendBinary(doc, "ui", bson.BinaryUUID, uuid[:])
	}
	doc = bson.AppendDateTime(doc, "wall", bson.NewDateTime(e.Wall()))
	switch kind {
	case "i", "u":
		doc = bson.AppendDocument(doc, "o", bsondoc.OrEmpty(e.After()))
	case "d":
		doc = bson.AppendDocument(doc, "o", bsondoc.OrEmpty(e.Key()))
	default:
		o, d := bson.BeginDocumentElement(doc, "o")
		switch {
		case kind == "n":
			d = bson.AppendString(d, "msg", "noop")
		case e.Op == store.OpDropDatabase:
			d = bson.AppendInt32(d, command, 1)
		case e.Op == store.OpRename:
			d = bson.AppendString(bson.AppendString(d, command, e.NS()), "to", e.To())
		default:
			d = bson.AppendString(d, command, coll)
		}
		doc = bson.EndDocument(d, o)
	}
	if kind == "u" {
		doc = bson.AppendDocument(doc, "o2", bsondoc.OrEmpty(e.Key()))
	}
	if s := e.Statement(); s.LSID != nil {
		doc = bson.AppendDocument(doc, "lsid", s.LSID)
		doc = bson.AppendInt64(doc, "txnNumber", s.Number)
		doc = bson.AppendInt32(doc, "stmtId", s.ID)
	}
	return bson.EndDocument(doc, at)
}

// transactionRecords returns what config.transactions has of each session that wrote with a
// transaction number.
func transactionRecords(n *server.Node) []bson.Raw {
	term, _ := n.Set().Position(n)
	var docs []bson.Raw
	for _, s := range n.Data().Sessions().All(func(session.ID) bool { return true }) {
		if !s.Mu.TryLock() {
			continue // its command has not written yet
		}
		st := &s.State
		number, last := s.LastWrite(n.Data().Sessions().Undone)
		state := ""
		if number < st.TxnNumber {
			number, last = st.TxnNumber, bson.Timestamp{}
		}
		if st.TxnNumber == number && st.Txn != nil && st.Phase == session.TxnCommitted {
			last, state = st.Txn.CommitTS, "committed"
		}
		if !last.IsZero() {
			at, doc := bson.BeginDocument(nil)
			doc = s.ID.Append(doc, "_id")
			doc = bson.AppendInt64(doc, "txnNum", number)
			doc = replica.OpTime{TS: last, Term: term}.Append(doc, "lastWriteOpTime")
			doc = bson.AppendDateTime(doc, "lastWriteDate", bson.DateTime(int64(last.T)*1000))
			if state != "" {
				doc = bson.AppendString(doc, "state", state)
			}
			docs = append(docs, bson.EndDocument(doc, at))
		}
		s.Mu.Unlock()
	}
	return docs
}

// findSystem answers a query on a collection that is not stored.
func findSystem(r *server.Request, dst []byte, q *findSpec, docs []bson.Raw) ([]byte, error) {
	if q.natural && q.back {
		slices.Reverse(docs)
	}
	plain := *q
	plain.tailable, plain.noTimeout, plain.oplogReplay = false, false, false
	a, err := plain.aggregation()
	if err != nil {
		return dst, err
	}
	run := &server.Running{Request: r}
	o := r.ExprOptions(q.ns, nil, q.let)
	o.Check = run.Interrupted
	p, err := pipeline.Parse(a.stages, o)
	if err != nil {
		return dst, err
	}
	it, err := p.Run(pipeline.FromSlice(docs))
	if err != nil {
		return dst, err
	}
	return r.AppendCursor(dst, r.NewCursor(q.ns, it, run), q.batchSize, q.single)
}
