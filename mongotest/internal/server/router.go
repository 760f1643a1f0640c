package server

import (
	"strings"
	"sync"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// router is what a mongos knows of the transactions that it has routed. The group of the shards'
// stores commits on all of them at once, so that "routing" a transaction is remembering which one a
// session has open here.
type router struct {
	mu   sync.Mutex
	txns map[session.ID]*routedTxn
}

// routedTxn is the newest transaction of a session on one mongos.
type routedTxn struct {
	number       int64
	participants bool // a command has succeeded on a shard
	wrote        bool // one of them was a write
	shard        int  // the first one that was written to: it knows the outcome
	reached      bool // a command was sent to a shard, whatever came of it
}

// beginTxn checks a transaction's command against what this mongos has seen of the transaction.
// done is true if the command is answered by that.
func (x *Routing) beginTxn() (done bool, err error) {
	recovers, done, err := x.look()
	if recovers {
		err = x.recover() // it may wait for the session, which another mongos uses
	}
	return done, err
}

// look is beginTxn under the lock of the node's transactions. recovers is true if another mongos
// knows the transaction.
func (x *Routing) look() (recovers, done bool, err error) {
	r := x.r
	rt := &r.Node.router
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t := rt.txns[r.Session.ID]
	if t != nil && r.TxnNumber < t.number {
		return false, false, srverr.New(srverr.TransactionTooOld,
			"txnNumber %d is less than last txnNumber %d seen in session %s", r.TxnNumber, t.number, r.Session.ID)
	}
	same := t != nil && t.number == r.TxnNumber
	remember := func() {
		if rt.txns == nil {
			rt.txns = map[session.ID]*routedTxn{}
		}
		t = &routedTxn{number: r.TxnNumber}
		rt.txns[r.Session.ID] = t
	}
	switch {
	case r.startTxn:
		if same {
			return false, false, srverr.New(srverr.ConflictingOperationInProgress,
				"txnNumber %d for session %s already started", r.TxnNumber, r.Session.ID)
		}
		remember()
	case same:
		if !t.participants && r.Cmd.Txn == TxnEnds {
			if r.Cmd.Name == "commitTransaction" && !r.Body.Lookup("recoveryToken").IsZero() {
				return true, false, nil
			}
			if r.Cmd.Name == "commitTransaction" && !t.reached {
				r.IntegerOK, x.routed = true, &routedTxn{participants: true}
				return false, true, nil
			}
			if r.Cmd.Name == "abortTransaction" {
				return false, false, srverr.New(srverr.NoSuchTransaction,
					"no known command has been sent by this router for this transaction")
			}
		}
	case r.Cmd.Name == "commitTransaction":
		if r.Body.Lookup("recoveryToken").IsZero() {
			remember()
			return false, false, srverr.New(50940, "Cannot recover the transaction decision without a recoveryToken")
		}
		return true, false, nil
	case r.Cmd.Name == "abortTransaction":
		return false, false, srverr.New(srverr.NoSuchTransaction,
			"no known command has been sent by this router for this transaction")
	default:
		return false, false, srverr.New(srverr.NoSuchTransaction,
			"cannot continue txnId %d for session %s with txnId %d", -1, r.Session.ID, r.TxnNumber)
	}
	x.routed = t
	return false, false, nil
}

// recover finds out how a transaction of another mongos ended: one that is still open is aborted.
func (x *Routing) recover() error {
	r := x.r
	token := r.Body.Lookup("recoveryToken")
	if token.Type != bson.TypeEmbeddedDocument {
		return srverr.New(
			srverr.TypeMismatch, "BSON field 'commit cmd.recoveryToken' is the wrong type '%s', expected type 'object'",
			bsontext.TypeName(token.Type))
	}
	id, ok := bson.Raw(token.Value).Lookup("recoveryShardId").StringValue()
	if !ok {
		return srverr.New(srverr.NoSuchTransaction,
			"Recovery token is empty, meaning the transaction only performed reads and can be safely retried")
	}
	if r.Node.data.ShardNumber(id) < 0 {
		return srverr.New(srverr.ShardNotFound, "Shard %s not found", id)
	}
	x.routed = &routedTxn{number: r.TxnNumber, participants: true, wrote: true}
	s := r.Session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.State.TxnNumber == r.TxnNumber && s.State.Phase == session.TxnCommitted && !r.commitUndone(s.State.Txn) {
		return nil // it runs as one that is repeated, and waits for its write concern
	}
	if s.State.TxnNumber == r.TxnNumber {
		s.Abort()
	}
	return srverr.New(srverr.NoSuchTransaction, "Recovering the transaction's outcome found the transaction aborted")
}

// finding says how a mongos came to the error of a transaction's command.
type finding int

const (
	byShard     finding = iota // a shard answered so
	ByRouter                   // it did not have to ask a shard
	BeforeShard                // it had chosen the shards, but not asked them
)

// Found notes how a mongos comes to the error that the command is about to end with.
func (x *Routing) Found(f finding) {
	if x != nil {
		x.found = f
	}
}

// endTxn notes the outcome of a transaction's command.
func (x *Routing) endTxn(err error) {
	r := x.r
	t := x.routed
	if t == nil || r.Cmd.Txn == TxnEnds {
		return
	}
	rt := &r.Node.router
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t.reached = t.reached || x.found != ByRouter
	if err != nil {
		if r.startTxn {
			t.participants, t.wrote = x.found == BeforeShard, false
		}
		return
	}
	t.participants = true
	if r.Cmd.Where == OnPrimary && !t.wrote {
		t.wrote, t.shard = true, x.FirstShard()
	}
}

// appendRecovery appends the recoveryToken that a mongos adds to every reply of a transaction.
func (x *Routing) appendRecovery(dst []byte) []byte {
	if x == nil || x.routed == nil {
		return dst
	}
	t := x.routed
	rt := &x.r.Node.router // another command of the transaction may still run: one that its client gave up
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if !t.participants && !x.raw || x.found != byShard {
		return dst
	}
	at, dst := bson.BeginDocumentElement(dst, "recoveryToken")
	if t.wrote {
		dst = bson.AppendString(dst, "recoveryShardId", ShardName(t.shard))
	}
	return bson.EndDocument(dst, at)
}

// shardError is an error of a shard as a mongos reports it.
func (x *Routing) shardError(err error) error {
	r := x.r
	e := *srverr.From(err)
	x.raw = true
	own := e.Extra
	details := func(d *bsondoc.Builder) {
		for k, v := range own.All() {
			d.B = bson.AppendRawValue(d.B, k, v)
		}
	}
	e.Extra = bsondoc.Build(func(d *bsondoc.Builder) {
		d.Doc("raw", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Doc(r.Node.data.ShardHost(x.FirstShard()), bsondoc.Build(func(d *bsondoc.Builder) {
				d.B = bson.AppendDouble(d.B, "ok", 0)
				d.Str("errmsg", e.Msg)
				d.B = bson.AppendInt32(d.B, "code", e.Code)
				d.Str("codeName", r.Node.CodeName(e.Code))
				details(d)
			}))
		}))
		if r.Version().AtLeast(5, 0) {
			details(d)
		}
	})
	return &e
}

// FromShard is an error that a mongos got from a shard, with what it says of that, and on other
// nodes the error itself.
func (x *Routing) FromShard(err error, context string) error {
	if err == nil || x == nil || inside(err) {
		return err
	}
	return srverr.From(err).Prefix(context + " :: caused by :: ")
}

// inside reports whether an error is for the server itself, which tries again.
func inside(err error) bool { return IsBlocked(err) || IsStale(err) }

// Failed says of an error of running a plan, since version 5.0, what it happened in: context, of
// the namespace since 8.0. The plan may have said so itself.
func (r *Request) Failed(err error, context, ns string) error {
	if err == nil || inside(err) || !r.Version().AtLeast(5, 0) {
		return err
	}
	e := srverr.From(err)
	if strings.HasPrefix(e.Msg, context) {
		return err
	}
	if r.Version().AtLeast(8, 0) {
		context += ": " + ns
	}
	return e.Prefix(context + " :: caused by :: ")
}

// missingDatabase answers a command on a database that the cluster does not have, as servers before
// 5.0 do. done is false if it is there.
func (x *Routing) missingDatabase(dst []byte) (out []byte, done bool, err error) {
	r := x.r
	if r.Version().AtLeast(5, 0) {
		return dst, false, nil
	}
	on := &r.Cmd.Mongos
	if on.Early != nil {
		if err := on.Early(r); err != nil {
			return dst, true, err
		}
	}
	if _, known := r.Node.data.PrimaryShard(r.DB); known || r.DB == "admin" || r.DB == "config" || on.Missing == nil {
		return dst, false, nil
	}
	return on.Missing(r, dst)
}

// RefuseMissing is for commands that fail on a database which the cluster does not have.
func RefuseMissing(r *Request, dst []byte) (out []byte, done bool, err error) {
	return dst, true, r.DatabaseKnown(r.DB)
}

// EmptyResult answers with an empty cursor of a namespace.
func EmptyResult(dst []byte, ns string) (out []byte, done bool, err error) {
	dst = bsondoc.AppendStrings(dst, "result", nil)
	return AppendListCursor(dst, ns, 0, func(dst []byte) []byte { return dst }), true, nil
}

// reshape turns the elements of a mongod's reply, which start at start, into a mongos's.
func (x *Routing) reshape(dst []byte, start int) []byte {
	shape := x.r.Cmd.Mongos.Reply
	if x.r.Cmd.Mongos.ShowsShards {
		shape = (*Request).AppendRaw
	}
	if shape == nil {
		return dst
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(append(doc, dst[start:]...), at)
	return shape(x.r, bson.Raw(doc), dst[:start])
}

// AppendRaw appends the reply of a command's only shard as "raw" shows it.
func (r *Request) AppendRaw(reply bson.Raw, dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "raw")
	start, dst := bson.BeginDocumentElement(dst, r.Node.data.ShardHost(r.Routing.FirstShard()))
	dst = bson.AppendDouble(append(dst, reply.Elements()...), "ok", 1)
	return bson.EndDocument(bson.EndDocument(dst, start), at)
}
