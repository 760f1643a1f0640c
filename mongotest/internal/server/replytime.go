package server

import "allium/bson"

// appendTimes appends operationTime and $clusterTime, which replica set members and mongoses put
// into every reply.
func (n *Node) appendTimes(r *Request, dst []byte) []byte {
	if n.role == Standalone {
		return dst
	}
	now := n.data.Clock.Last()
	if now.IsZero() {
		return dst
	}
	if r.oplogQuery && n.set != nil {
		dst = n.set.AppendOplogQueryData(dst, n)
	}
	at, dst := bson.BeginDocumentElement(dst, "$clusterTime")
	dst = bson.AppendTimestamp(dst, "clusterTime", now)
	dst = appendSignature(dst)
	dst = bson.EndDocument(dst, at)
	return bson.AppendTimestamp(dst, "operationTime", n.operationTime(r))
}

// appendSignature appends the signature of a cluster without keys: twenty zero bytes and key 0.
func appendSignature(dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "signature")
	dst = bson.AppendBinary(dst, "hash", bson.BinaryGeneric, make([]byte, 20))
	dst = bson.AppendInt64(dst, "keyId", 0)
	return bson.EndDocument(dst, at)
}

// operationTime returns the time of the last operation that the reply can have seen.
func (n *Node) operationTime(r *Request) bson.Timestamp {
	if n.set == nil {
		return n.data.Clock.Last()
	}
	return n.set.OperationTime(n, r.rc.level == "majority" && r.Cmd != nil && r.Cmd.ReadConcern)
}
