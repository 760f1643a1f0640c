package allium

import (
	"context"
	"sync"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
)

// openCursors are the cursors that servers hold for a client, so that closing the client can free them.
type openCursors struct {
	mu  sync.Mutex
	all map[*cursor]openCursor
}

// openCursor says where a cursor is. It does not change while the cursor is open, unlike the cursor itself, which belongs to
// the goroutine that reads it.
type openCursor struct {
	id       int64
	db, coll string
	server   *topology.Server
	pinned   bool // only its own connection, which may be in use, can kill it
}

func (o *openCursors) add(c *cursor, at openCursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*cursor]openCursor{}
	}
	o.all[c] = at
}

func (o *openCursors) remove(c *cursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

// kill asks the servers to forget all open cursors. A server that does not answer is not waited for longer than
// endTimeout in all: servers forget idle cursors by themselves.
func (o *openCursors) kill(ctx context.Context, x *exec.Executor) {
	o.mu.Lock()
	all := o.all
	o.all = nil
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for _, c := range all {
		if c.pinned || ctx.Err() != nil {
			continue
		}
		r := remains{exec: x, openCursor: c}
		r.kill(ctx, exec.Limit{})
	}
}

// endTimeout bounds how long a closing client waits for servers, for its cursors and again for its sessions.
const endTimeout = 2 * time.Second

// remains are what is left of a cursor that is closed, until the server has been told.
type remains struct {
	openCursor
	exec     *exec.Executor
	comment  any
	bson     *bson.Options
	session  *session.Session
	implicit *session.ServerSession
	resumes  bool // a change stream goes on in the session
	conn     *pool.Conn
}

// free tells the server to forget the cursor, and gives its session and its connection back. Without a limit, it takes most at the
// most. Once ctx has ended, the rest happens in the background.
func (r *remains) free(ctx context.Context, limit exec.Limit, most time.Duration, bg *background) (err error) {
	left := true // what is there to kill
	if ctx.Err() == nil {
		within, cancel := r.within(ctx, limit, most)
		var sent bool
		sent, err = r.kill(within, limit)
		cancel()
		left = !sent && ctx.Err() != nil
	}
	if !left || !bg.run(r.freeLater(limit), killGrace) {
		r.release()
	}
	return err
}

// killGrace is how long the caller waits for what happens in the background: a server that is well answers sooner.
const killGrace = 100 * time.Millisecond

// freeLater returns what frees the cursor in the background.
func (r *remains) freeLater(limit exec.Limit) func(ctx context.Context) {
	return func(ctx context.Context) {
		defer r.release()
		if r.session != nil && r.conn == nil && r.server.Description().Kind == event.LoadBalancer {
			return // only the connection of its transaction leads to it, whose end is the cursor's
		}
		// The sessions belong to others, who may be using them by now. Servers kill a cursor without one.
		r.session = nil
		if r.resumes {
			r.implicit = nil
		}
		ctx, cancel := context.WithTimeout(ctx, killTimeout)
		defer cancel()
		r.kill(ctx, limit.Refreshed())
	}
}

// within bounds ctx by most, unless there is a limit.
func (r *remains) within(ctx context.Context, limit exec.Limit, most time.Duration) (context.Context, context.CancelFunc) {
	if !limit.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, most)
}

// kill sends killCursors. done says that nothing is left to do: the command was sent, or the cursor has ended with its connection.
func (r *remains) kill(ctx context.Context, limit exec.Limit) (done bool, err error) {
	if r.conn != nil && (!r.conn.Alive() || r.conn.Streaming()) {
		return true, nil
	}
	op := exec.NewOp(&command.KillCursors{Collection: r.coll, ID: r.id, Comment: r.comment})
	op.DB, op.BSON, op.Session, op.Implicit, op.Server, op.Conn = r.db, r.bson, r.session, r.implicit, r.server, r.conn
	op.Limit, op.NoMaxTime = limit, limit.Deadline.IsZero()
	if r.session != nil && r.session.Ended() { // the cursor has outlived it
		op.Session = nil
	}
	op.NoSession = op.Session == nil && op.Implicit == nil
	res, err := r.exec.RunClosing(ctx, &op)
	if err == nil {
		res.Release()
	}
	return err == nil || res.Sent, err
}

// release gives back the session and the connection.
func (r *remains) release() {
	if !r.resumes {
		r.exec.PutSession(r.implicit)
	}
	if r.conn != nil {
		r.conn.Return()
		r.conn = nil
	}
}

// background is the work that callers left behind whose contexts had ended. The zero value is ready.
type background struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed once nothing runs any more; nil before close
	life    context.Context
	end     context.CancelFunc
}

// run runs f in a goroutine of its own, with a context that ends when close gives up waiting, and itself waits for f only so long. It
// reports false, and does nothing, after close.
func (b *background) run(f func(ctx context.Context), grace time.Duration) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	if b.life == nil {
		b.life, b.end = context.WithCancel(context.Background())
	}
	b.running++
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer b.done()
		defer close(done)
		f(b.life)
	}()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	return true
}

func (b *background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running == 0 && b.closed {
		close(b.idle)
	}
}

// close waits until all has been done. When ctx ends before, it interrupts what is left.
func (b *background) close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	if b.running == 0 {
		b.mu.Unlock()
		return
	}
	b.idle = make(chan struct{})
	b.mu.Unlock()
	defer b.end()
	select {
	case <-b.idle:
	case <-ctx.Done():
		b.end()
		<-b.idle
	}
}
