package server

import (
	"sync"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/memnet"
	"allium/mongotest/internal/srverr"
)

// Local runs commands on a node for the deployment itself: it needs no listener, has all rights,
// and no hook sees it. Its commands run one after the other; it is safe for concurrent use.
type Local struct {
	mu sync.Mutex
	c  *Conn
	nc func() // closes the far end
}

// NewLocal returns a connection of the deployment's own to the node. The caller closes it.
func NewLocal(n *Node) *Local {
	near, far := memnet.Pipe("local", n.addr)
	c := newConn(n, far)
	c.trusted = true
	return &Local{c: c, nc: func() { near.Close(); far.Close() }}
}

// Close ends the connection.
func (l *Local) Close() { l.nc() }

// Run runs a command on a database and returns the reply, which the caller may keep. A command that
// fails, or whose write concern or statements do, returns the reply and a *srverr.Error.
func (l *Local) Run(db string, cmd bson.Raw, sequences ...wire.Sequence) (bson.Raw, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, body := bson.BeginDocument(nil)
	body = append(body, cmd.Elements()...)
	if cmd.Lookup("$db").IsZero() {
		body = bson.AppendString(body, "$db", db)
	}
	body = bson.EndDocument(body, at)
	r := &l.c.req
	r.reset(l.c)
	r.Body, r.Sequences = body, sequences
	reply := bson.Raw(l.c.node.dispatch(r, nil))
	l.c.req = Request{}
	return reply, failureOf(reply)
}

// failureOf returns what a reply says that went wrong, nil if nothing did.
func failureOf(reply bson.Raw) error {
	of := func(doc bson.Raw, text string) error {
		code, _ := doc.Lookup("code").AsInt64()
		msg, _ := doc.Lookup(text).StringValue()
		return &srverr.Error{Code: int32(code), Msg: msg}
	}
	if ok, _ := reply.Lookup("ok").AsInt64(); ok == 0 {
		return of(reply, "errmsg")
	}
	if list, ok := reply.Lookup("writeErrors").Array(); ok {
		if first, ok := list.Lookup("0").Document(); ok {
			return of(first, "errmsg")
		}
	}
	if doc, ok := reply.Lookup("writeConcernError").Document(); ok {
		return of(doc, "errmsg")
	}
	return nil
}
