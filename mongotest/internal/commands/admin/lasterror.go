package admin

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{Name: "getLastError", Aliases: []string{"getlasterror"}, NoAuth: true,
		Where: server.Anywhere, Mongos: server.OnMongos{Run: lastErrorOfShards}, Run: runGetLastError})
	server.Register(&server.Command{Name: "resetError", NoAuth: true, Where: server.Anywhere, Run: server.Nothing})
}

// lastErrorOfShards answers on a mongos, which asks the shards that the last command wrote to: none
// is left to ask.
func lastErrorOfShards(_ *server.Request, dst []byte) ([]byte, error) {
	dst = bson.AppendInt32(dst, "n", 0)
	dst = bsondoc.AppendStrings(dst, "shards", nil)
	dst = bson.AppendDocument(dst, "shardRawGLE", bsondoc.OrEmpty(nil))
	return bson.AppendNull(dst, "err"), nil
}

// runGetLastError answers as after a successful write, for commands report their errors themselves:
// it only waits for the write concern that it is given.
func runGetLastError(r *server.Request, dst []byte) ([]byte, error) {
	mark := len(dst)
	last := r.Conn.Client().LastOp
	if !last.IsZero() && r.Node.Set() != nil {
		r.Node.Set().Mu.Lock()
		term := r.Node.Set().Term
		r.Node.Set().Mu.Unlock()
		dst = replica.OpTime{TS: last, Term: term}.Append(dst, "lastOp")
	}
	dst = bson.AppendInt32(dst, "connectionId", r.Conn.ID())
	dst = bson.AppendInt32(dst, "n", 0)
	start, concern := bson.BeginDocument(nil)
	for _, k := range []string{"w", "j", "fsync", "wtimeout"} {
		if v := r.Body.Lookup(k); v.Type != 0 {
			concern = bson.AppendRawValue(concern, k, v)
		}
	}
	given := bson.Raw(bson.EndDocument(concern, start))
	wc, err := r.ParseWriteConcern(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: given})
	if err != nil {
		return dst, err
	}
	wc.Provenance = ""
	if given.IsEmpty() {
		wc = replica.WriteConcern{W: 1}
	}
	dst = bson.AppendInt32(dst, "syncMillis", 0)
	var failed *srverr.Error
	if r.Node.Set() != nil && !last.IsZero() && (wc.NamedMode || wc.W > 1) {
		var err error
		if failed, err = r.Node.Set().WaitReplication(r, r.Node, last, &wc); err != nil {
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
