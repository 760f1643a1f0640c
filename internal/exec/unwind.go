package exec

import (
	"context"
	"errors"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/command"
	guard "allium/internal/flight"
	"allium/internal/pool"
)

// unwindTime bounds how long a server is told of a cursor that nobody will read.
const unwindTime = 100 * time.Millisecond

var errUnwound = errors.New("code of the program's panicked, or ended the goroutine")

// unwind gives back what an operation has whose caller's goroutine is on its way out of it, because
// a listener, a log handler or other code of the program's has panicked or called runtime.Goexit.
// res is the operation's result if it came so far. A connection in the middle of a message cannot
// be used any more; one that is between messages can.
func (r *run) unwind(ctx context.Context, res *Result) {
	r.fail(errUnwound)
	defer r.tell(ctx, errUnwound)
	defer r.endUnwound() // each of these may run code of the program's, which may fail again
	if r.op.Implicit == nil {
		defer func() { r.x.PutSession(r.implicit) }()
	}
	r.endTrace()
	c, reply := r.conn, r.reply // the reply is also that of a connection that has been given back
	if c == nil {
		c = res.Conn
	}
	if res.Reply != nil {
		reply = res.Reply
	}
	if c != nil {
		defer r.giveBack(c)
	}
	r.leave()
	if c != nil {
		if r.talking {
			c.Abandon()
			reply = nil
			if r.implicit != nil {
				r.implicit.MarkDirty()
			}
		} else if reply != nil {
			r.pin(c, nil) // the server has begun the transaction there
		}
	}
	r.killUnread(ctx, c, reply)
}

// giveBack returns a connection unless it is the cursor's or the transaction's.
func (r *run) giveBack(c *pool.Conn) {
	if r.op.Conn != c && r.txnConn() != c {
		c.Return()
	}
}

// endUnwound ends the operation's span.
func (r *run) endUnwound() {
	if r.span != nil {
		endSpan(r.span, errUnwound)
	}
}

// endTrace tells the end of a command that has begun: whoever heard of the beginning hears of it.
func (r *run) endTrace() {
	t := r.trace
	if t == nil || t.ended {
		return
	}
	_ = guard.Apart(func() error { t.failed(errUnwound); return nil })
}

// killUnread tells the server of a cursor that a reply has opened and nobody will read. Listeners
// hear of that, too, and may fail again. What could not be sent in that time, in which all
// connections may be in use, is left to Config.Unread.
func (r *run) killUnread(ctx context.Context, c *pool.Conn, reply bson.Raw) {
	if reply == nil || !r.op.KeepSession || !hasOpenCursor(reply) {
		return
	}
	cur, err := command.ParseCursor(reply, command.FirstBatch)
	if err != nil {
		return
	}
	_, coll, _ := strings.Cut(cur.NS(), ".")
	op := NewOp(&command.KillCursors{Collection: coll, ID: cur.ID})
	op.DB, op.Session, op.Implicit, op.Server, op.Conn, op.NoMaxTime = r.op.DB, r.op.Session, r.implicit, r.server, c,
		true
	op.NoSession = op.Session == nil && op.Implicit == nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwindTime)
	defer cancel()
	x := r.x // the closure must not take r to the heap
	told, sent := false, false
	for range 2 { // in case that a listener fails
		_ = guard.Apart(func() error {
			res, err := x.RunClosing(ctx, &op)
			told, sent = true, err == nil || res.Sent
			res.Release()
			return err
		})
		if told {
			break
		}
	}
	if !sent && c == nil && x.Unread != nil {
		x.Unread(op.DB, coll, cur.ID, r.server)
	}
}
