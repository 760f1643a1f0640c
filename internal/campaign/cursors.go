package campaign

import (
	"context"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongoerr"
)

// cursor is what the clients' command events told of a cursor of the servers'.
type cursor struct {
	owner   *usage // of the client
	killing int    // killCursors that were sent for it
	killed  bool   // one of them was answered
	denied  bool   // the server said that it does not have it, which an injected error may say, too
}

// cursorAsked, cursorAnswered and cursorFailed note which cursors clients get to know, which they
// kill, and which they need not kill.
func (w *world) cursorAsked(e *event.CommandStarted) {
	switch e.CommandName {
	case "killCursors":
		w.eachKilled(e.Command, "cursors", func(c *cursor) { c.killing++ })
	case "getMore":
		id, _ := e.Command.Lookup("getMore").AsInt64()
		w.mu.Lock()
		w.getMores[e.RequestID] = id
		w.mu.Unlock()
	}
}

func (w *world) cursorFailed(e *event.CommandFailed) {
	if e.CommandName != "getMore" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := mongoerr.HasCode(e.Failure, 43) || mongoerr.HasCode(e.Failure, 237) // CursorNotFound, CursorKilled
	if c := w.cursors[w.getMores[e.RequestID]]; c != nil && gone {
		c.denied = true
	}
	delete(w.getMores, e.RequestID)
}

func (w *world) cursorAnswered(u *usage, e *event.CommandSucceeded) {
	if e.CommandName == "killCursors" {
		w.eachKilled(e.Reply, "cursorsKilled", func(c *cursor) { c.killed = true })
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.getMores, e.RequestID)
	if id, ok := e.Reply.Lookup("cursor", "id").AsInt64(); ok && id != 0 {
		if w.cursors[id] == nil {
			w.cursors[id] = &cursor{owner: u}
		}
	}
}

func (w *world) eachKilled(doc bson.Raw, key string, do func(*cursor)) {
	ids, _ := doc.Lookup(key).Array()
	w.mu.Lock()
	defer w.mu.Unlock()
	for v := range ids.Values() {
		if id, _ := v.AsInt64(); w.cursors[id] != nil {
			do(w.cursors[id])
		}
	}
}

// Why a cursor was left to a server to expire.
const (
	neverNamed = "no reply with its id was read"
	killLost   = "killCursors was sent and not answered"
	hadClosed  = "the client was closed while the server was away"
	wasDenied  = "an injected error said that it was gone"
)

// checkCursors is called when nobody uses a cursor any more, and looks at those that the servers
// still have. Clients have told the servers to forget each one that they knew of, if they had a
// chance to.
func (w *world) checkCursors(ctx context.Context) {
	if w.plan.Topology == LB {
		return // its servers answer no one who comes without the load balancer
	}
	for _, n := range w.d.Nodes() {
		idle, err := w.currentOps(ctx, n.Addr(), "idleCursors")
		if err != nil {
			w.violation("the idle cursors of a server when all is quiet: %v", err)
			continue
		}
		for v := range idle.Values() {
			doc, _ := v.Document()
			if kind, _ := doc.Lookup("type").StringValue(); kind != "idleCursor" {
				continue
			}
			id, _ := doc.Lookup("cursor", "cursorId").AsInt64()
			created, _ := doc.Lookup("cursor", "createdDate").DateTime()
			why := w.leftBecause(id)
			w.log("cursor %d of %s is left on %s, of %v: %s", id, doc.Lookup("ns"), n.Addr(),
				created.Time().Sub(w.start), why)
			if why == "" {
				w.violation("a cursor is left to a server that could have been told")
				continue
			}
			w.mu.Lock()
			w.stats.Cursors[why]++
			w.mu.Unlock()
		}
	}
}

// leftBecause returns why a cursor could be left to a server, "" if there is no reason.
func (w *world) leftBecause(id int64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.cursors[id]
	switch {
	case c == nil:
		return neverNamed
	case c.killed:
		return ""
	case c.denied:
		return wasDenied
	case c.killing > 0:
		return killLost
	}
	for _, client := range w.clients {
		if client.usage == c.owner {
			return ""
		}
	}
	return hadClosed
}

// currentOps asks one node for what it does, and for its idle cursors or sessions.
func (w *world) currentOps(ctx context.Context, addr, idle string) (bson.Raw, error) {
	o := allium.ClientOptions{Dialer: w.d}
	if w.plan.TLS {
		o.TLS = w.d.TLSConfig()
	}
	if w.plan.Auth {
		o.Credential = w.credential()
	}
	c, err := allium.Open(fmt.Sprintf("mongodb://%s/?directConnection=true", addr), o)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = c.Close(ctx)
	}()
	what := bson.D{{Key: "allUsers", Value: true}, {Key: idle, Value: true}}
	if w.plan.Topology != ReplSet {
		what = append(what, bson.E{Key: "localOps", Value: true})
	}
	reply, err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "aggregate", Value: 1},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$currentOp", Value: what}}}},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 10_000}}}})
	if err != nil {
		return nil, err
	}
	batch, _ := reply.Lookup("cursor", "firstBatch").Array()
	return batch, nil
}
