package cursor

import (
	"context"
	"errors"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/flight"
	"allium/internal/pool"
	"allium/internal/session"
)

// remains are what is left of a cursor that is closed, until the server has been told.
type remains struct {
	openCursor
	exec      *exec.Executor
	operation int64
	comment   any
	bson      *bson.Options
	session   *session.Session
	implicit  *session.ServerSession
	lasts     bool // the implicit session: a change stream or a bulk write goes on in it
	conn      *pool.Conn
}

var errUnwound = errors.New("code of the program's failed while the cursor was killed")

// free tells the server to forget the cursor, and gives its session and its connection back.
// Without a limit, it takes most at the most. Once ctx has ended, the rest happens in the
// background. A server that could not be reached is told later.
func (r *remains) free(ctx context.Context, limit exec.Limit, most time.Duration, reg *Registry) (err error) {
	left := true // what is there to kill
	passed := false
	defer func() {
		if !passed { // code of the program's has panicked or ended the goroutine
			reg.rescue(r)
			r.release()
		}
	}()
	if ctx.Err() == nil {
		within, cancel := r.within(ctx, limit, most)
		var sent bool
		sent, err = r.kill(within, limit)
		cancel()
		if left = !sent && ctx.Err() != nil; !left {
			reg.orphans.add(r, sent, err)
		}
	}
	passed = true
	if !left || !reg.background.Run(r.freeLater(limit, reg), killGrace) {
		r.release()
	}
	return err
}

// rescue sees that a server is told of a cursor although code of the program's has failed while it
// was: later, or at once if only the cursor's own connection leads there.
func (reg *Registry) rescue(r *remains) {
	if r.server.Description().Kind != event.LoadBalancer {
		reg.orphans.add(r, false, errUnwound)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), killGrace)
	defer cancel()
	_ = flight.Apart(func() error {
		_, err := r.kill(ctx, exec.Limit{})
		return err
	})
}

// killGrace is how long the caller waits for what happens in the background: a server that is well
// answers sooner.
const killGrace = 100 * time.Millisecond

// freeLater returns what frees the cursor in the background.
func (r *remains) freeLater(limit exec.Limit, reg *Registry) func(ctx context.Context) {
	return func(ctx context.Context) {
		defer r.release()
		if r.session != nil && r.conn == nil && r.server.Description().Kind == event.LoadBalancer {
			return // only the connection of its transaction leads to it, whose end is the cursor's
		}
		// The sessions belong to others, who may be using them by now. Servers kill a cursor
		// without one.
		r.session = nil
		if r.lasts {
			r.implicit = nil
		}
		ctx, cancel := context.WithTimeout(ctx, killTimeout)
		defer cancel()
		passed := false
		defer func() {
			if !passed { // as in free
				reg.rescue(r)
			}
		}()
		sent, err := r.kill(ctx, limit.Refreshed())
		passed = true
		reg.orphans.add(r, sent, err)
	}
}

// within bounds ctx by most, unless there is a limit.
func (r *remains) within(ctx context.Context, limit exec.Limit,
	most time.Duration) (context.Context, context.CancelFunc) {
	if !limit.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, most)
}

// kill sends killCursors. done says that nothing is left to do: the command was sent, or the cursor
// has ended with its connection.
func (r *remains) kill(ctx context.Context, limit exec.Limit) (done bool, err error) {
	if r.conn != nil && (!r.conn.Alive() || r.conn.Streaming()) {
		return true, nil
	}
	op := exec.NewOp(&command.KillCursors{Collection: r.coll, ID: r.id, Comment: r.comment})
	op.ID, op.DB, op.BSON, op.Session, op.Implicit, op.Server, op.Conn = r.operation, r.db, r.bson, r.session,
		r.implicit, r.server, r.conn
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
	if !r.lasts {
		r.exec.PutSession(r.implicit)
	}
	if conn := r.conn; conn != nil {
		r.conn = nil
		conn.Return()
	}
}
