package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "getLastError", Aliases: []string{"getlasterror"}, Until: release.At(5, 1, 0), NoAuth: true, Where: Anywhere, Run: runGetLastError})
	register(&Command{Name: "resetError", Until: release.At(5, 0, 0), NoAuth: true, Where: Anywhere, Run: runNothing})
}

// runGetLastError answers as after a successful write, for commands report their errors themselves:
// it only waits for the write concern that it is given.
func runGetLastError(r *Request, dst []byte) ([]byte, error) {
	mark := len(dst)
	last := r.Conn.client.lastOp
	if !last.IsZero() && r.Node.set != nil {
		r.Node.set.Mu.Lock()
		term := r.Node.set.Term
		r.Node.set.Mu.Unlock()
		dst = replica.OpTime{TS: last, Term: term}.Append(dst, "lastOp")
	}
	dst = bson.AppendInt32(dst, "connectionId", r.Conn.id)
	dst = bson.AppendInt32(dst, "n", 0)
	start, concern := bson.BeginDocument(nil)
	for _, k := range []string{"w", "j", "fsync", "wtimeout"} {
		if v := r.Body.Lookup(k); v.Type != 0 {
			concern = bson.AppendRawValue(concern, k, v)
		}
	}
	r.writeConcern = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(concern, start)}
	if err := r.readWriteConcern(); err != nil {
		return dst, err
	}
	wc := r.wc
	wc.Provenance = ""
	if bson.Raw(r.writeConcern.Value).IsEmpty() {
		wc = replica.WriteConcern{W: 1}
	}
	dst = bson.AppendInt32(dst, "syncMillis", 0)
	var failed *srverr.Error
	if r.Node.set != nil && !last.IsZero() && (wc.NamedMode || wc.W > 1) {
		var err error
		if failed, err = r.Node.set.WaitReplication(r, r.Node, last, &wc); err != nil {
			return dst, err
		}
		dst = bson.AppendInt32(dst, "wtime", 0)
		dst = bsondoc.AppendStrings(dst, "writtenTo", nil)
	} else {
		dst = bson.AppendNull(dst, "writtenTo")
	}
	dst = wc.Append(dst, "writeConcern")
	dst = bson.AppendNull(dst, "err")
	if failed == nil {
		return dst, nil
	}
	at, extra := bson.BeginDocument(nil)
	e := *failed
	e.Extra = bson.EndDocument(append(extra, dst[mark:]...), at)
	return dst, &e
}
