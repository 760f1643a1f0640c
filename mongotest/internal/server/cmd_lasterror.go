package server

import (
	"allium/bson"
)

func init() {
	register(&Command{Name: "getLastError", Aliases: []string{"getlasterror"}, Until: Version{5, 1, 0}, NoAuth: true, Where: Anywhere, Run: runGetLastError})
	register(&Command{Name: "resetError", Until: Version{5, 0, 0}, NoAuth: true, Where: Anywhere, Run: runNothing})
}

// runGetLastError answers as after a successful write: commands report their errors themselves.
func runGetLastError(r *Request, dst []byte) ([]byte, error) {
	last := r.Conn.client.lastOp
	if !last.IsZero() && r.Node.set != nil {
		r.Node.set.mu.Lock()
		term := r.Node.set.term
		r.Node.set.mu.Unlock()
		dst = OpTime{last, term}.append(dst, "lastOp")
	}
	dst = bson.AppendInt32(dst, "connectionId", r.Conn.id)
	dst = bson.AppendInt32(dst, "n", 0)
	dst = bson.AppendInt32(dst, "syncMillis", 0)
	dst = bson.AppendNull(dst, "writtenTo")
	at, dst := bson.BeginDocumentElement(dst, "writeConcern")
	dst = bson.AppendInt32(dst, "w", 1)
	dst = bson.AppendInt32(dst, "wtimeout", 0)
	dst = bson.EndDocument(dst, at)
	return bson.AppendNull(dst, "err"), nil
}
