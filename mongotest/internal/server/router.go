package server

import (
	"strconv"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// router is what a mongos knows of the transactions that it has routed. All mongoses of a cluster work on one store, so
// that "routing" is remembering which transaction a session has open here.
type router struct {
	mu   sync.Mutex
	txns map[SessionID]*routedTxn
}

// routedTxn is the newest transaction of a session on one mongos.
type routedTxn struct {
	number       int64
	participants bool // a command has succeeded on a shard
	wrote        bool // one of them was a write: there is a shard that knows the outcome
}

// shardName returns the id of a shard.
func shardName(i int) string { return "sh" + strconv.Itoa(i) }

// route checks a transaction's command against what this mongos has seen of the transaction. done is true if the
// command is answered by that.
func (r *Request) route() (done bool, err error) {
	rt := &r.Node.router
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t := rt.txns[r.Session.ID]
	if t != nil && r.txnNumber < t.number {
		return false, srverr.New(srverr.TransactionTooOld, "txnNumber %d is less than last txnNumber %d seen in session %s", r.txnNumber, t.number, r.Session.ID)
	}
	same := t != nil && t.number == r.txnNumber
	remember := func() {
		if rt.txns == nil {
			rt.txns = map[SessionID]*routedTxn{}
		}
		t = &routedTxn{number: r.txnNumber}
		rt.txns[r.Session.ID] = t
	}
	switch {
	case r.startTxn:
		if same {
			return false, srverr.New(srverr.ConflictingOperationInProgress, "txnNumber %d for session %s already started", r.txnNumber, r.Session.ID)
		}
		remember()
	case same:
		if !t.participants && r.Cmd.Txn == TxnEnds {
			if r.Cmd.Name == "commitTransaction" && !r.Body.Lookup("recoveryToken").IsZero() {
				return r.recover()
			}
			if r.Cmd.Name == "abortTransaction" {
				return false, srverr.New(srverr.NoSuchTransaction, "no known command has been sent by this router for this transaction")
			}
		}
	case r.Cmd.Name == "commitTransaction":
		if r.Body.Lookup("recoveryToken").IsZero() {
			remember()
			return false, srverr.New(50940, "Cannot recover the transaction decision without a recoveryToken")
		}
		return r.recover()
	case r.Cmd.Name == "abortTransaction":
		return false, srverr.New(srverr.NoSuchTransaction, "no known command has been sent by this router for this transaction")
	default:
		return false, srverr.New(srverr.NoSuchTransaction, "cannot continue txnId %d for session %s with txnId %d", -1, r.Session.ID, r.txnNumber)
	}
	r.routed = t
	return false, nil
}

// recover finds out how a transaction of another mongos ended: one that is still open is aborted.
func (r *Request) recover() (done bool, err error) {
	token := r.Body.Lookup("recoveryToken")
	if token.Type != bson.TypeEmbeddedDocument {
		return false, srverr.New(srverr.TypeMismatch, "BSON field 'commit cmd.recoveryToken' is the wrong type '%s', expected type 'object'", bsontext.TypeName(token.Type))
	}
	id, ok := bson.Raw(token.Value).Lookup("recoveryShardId").StringValue()
	if !ok {
		return false, srverr.New(srverr.NoSuchTransaction, "Recovery token is empty, meaning the transaction only performed reads and can be safely retried")
	}
	if !r.Node.data.isShard(id) {
		return false, srverr.New(srverr.ShardNotFound, "Shard %s not found", id)
	}
	r.routed = &routedTxn{number: r.txnNumber, participants: true, wrote: true}
	s := r.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.txnNumber == r.txnNumber && s.state.phase == txnCommitted {
		return true, nil
	}
	if s.state.txnNumber == r.txnNumber {
		s.abort()
	}
	return false, srverr.New(srverr.NoSuchTransaction, "Recovering the transaction's outcome found the transaction aborted")
}

// routedDone notes the outcome of a transaction's command.
func (r *Request) routedDone(err error) {
	t := r.routed
	if t == nil || r.Cmd.Txn == TxnEnds {
		return
	}
	rt := &r.Node.router
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err != nil {
		if r.startTxn {
			t.participants, t.wrote = false, false
		}
		return
	}
	t.participants = true
	t.wrote = t.wrote || r.Cmd.Where == OnPrimary
}

// appendRecovery appends the recoveryToken that a mongos adds to every reply of a transaction.
func (r *Request) appendRecovery(dst []byte) []byte {
	t := r.routed
	if t == nil || !t.participants {
		return dst
	}
	at, dst := bson.BeginDocumentElement(dst, "recoveryToken")
	if t.wrote {
		dst = bson.AppendString(dst, "recoveryShardId", shardName(0))
	}
	return bson.EndDocument(dst, at)
}

func (d *Data) isShard(name string) bool {
	for i := range d.shards {
		if shardName(i) == name {
			return true
		}
	}
	return false
}

// writeErrors rewrites the errors of a write as a mongos reports them: with their names, without their details.
func (n *Node) writeErrors(list bson.Raw) bson.Raw {
	at, dst := bson.BeginDocument(nil)
	i := 0
	for e := range list.Values() {
		start, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		for k, v := range bson.Raw(e.Value).All() {
			switch k {
			case "keyPattern", "keyValue", "codeName":
			case "code":
				code, _ := number(v)
				d = bson.AppendInt32(d, "code", int32(code))
				d = bson.AppendString(d, "codeName", n.codeName(int32(code)))
			default:
				d = bson.AppendRawValue(d, k, v)
			}
		}
		dst = bson.EndDocument(d, start)
		i++
	}
	return bson.EndDocument(dst, at)
}

// reshape turns the elements of a mongod's reply, which start at start, into a mongos's.
func (r *Request) reshape(dst []byte, start int) []byte {
	shape := mongosReplies[r.Cmd.Name]
	if shape == nil {
		return dst
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(append(doc, dst[start:]...), at)
	return shape(r, bson.Raw(doc), dst[:start])
}

// mongosReplies are the commands whose replies look different on a mongos.
var mongosReplies map[string]func(r *Request, reply bson.Raw, dst []byte) []byte

func init() {
	write := func(r *Request, reply bson.Raw, dst []byte) []byte {
		for k, v := range reply.All() {
			switch k {
			case "opTime", "electionId":
			case "writeErrors":
				dst = bson.AppendArray(dst, k, r.Node.writeErrors(v.Value))
			default:
				dst = bson.AppendRawValue(dst, k, v)
			}
		}
		return dst
	}
	raw := func(r *Request, reply bson.Raw, dst []byte) []byte {
		at, dst := bson.BeginDocumentElement(dst, "raw")
		start, dst := bson.BeginDocumentElement(dst, r.Node.data.shardHost(0))
		dst = append(dst, reply[4:len(reply)-1]...)
		dst = bson.AppendDouble(dst, "ok", 1)
		dst = bson.EndDocument(dst, start)
		return bson.EndDocument(dst, at)
	}
	mongosReplies = map[string]func(r *Request, reply bson.Raw, dst []byte) []byte{
		"insert": write, "update": write, "delete": write,
		"getMore": func(r *Request, reply bson.Raw, dst []byte) []byte {
			cursor := bson.Raw(reply.Lookup("cursor").Value)
			at, dst := bson.BeginDocumentElement(dst, "cursor")
			for _, k := range []string{"id", "ns", "nextBatch", "postBatchResumeToken", "atClusterTime"} {
				if v := cursor.Lookup(k); !v.IsZero() {
					dst = bson.AppendRawValue(dst, k, v)
				}
			}
			return bson.EndDocument(dst, at)
		},
		"createIndexes": raw, "dropIndexes": raw, "collMod": raw,
		"drop": func(r *Request, reply bson.Raw, dst []byte) []byte { return dst },
		"count": func(r *Request, reply bson.Raw, dst []byte) []byte {
			at, dst := bson.BeginDocumentElement(dst, "shards")
			if n := reply.Lookup("n"); !n.IsZero() {
				dst = bson.AppendRawValue(dst, shardName(0), n)
			}
			dst = bson.EndDocument(dst, at)
			return append(dst, reply[4:len(reply)-1]...)
		},
	}
}

// shardHost returns a shard's address as listShards shows it: name/host. Nobody listens there.
func (d *Data) shardHost(i int) string { return shardName(i) + "/localhost:" + strconv.Itoa(27018+i) }
