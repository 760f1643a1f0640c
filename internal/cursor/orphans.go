package cursor

import (
	"context"
	"errors"
	"sync"
	"time"

	"allium/event"
	"allium/internal/exec"
	"allium/internal/flight"
	"allium/internal/topology"
	"allium/mongoerr"
)

// orphans are the cursors of a client that nobody uses any more and whose servers could not be
// told, because they could not be reached. One goroutine tells them once they are back. Without
// that, a server would keep them until they expire, ten minutes later. The specifications leave it
// open; killing a cursor that is gone does no harm, since its id is used for no other one.
type orphans struct {
	work sync.WaitGroup // the goroutine

	mu      sync.Mutex
	list    []orphan // the oldest first
	running bool
	closed  bool
	life    context.Context // of the goroutine
	end     context.CancelFunc
}

type orphan struct {
	remains
	since time.Time // when it was given up
}

// How the goroutine goes about it.
const (
	maxOrphans     = 1000             // what a client remembers; more would be a burden on servers that come back
	orphanLife     = 10 * time.Minute // how long servers keep an idle cursor, unless they are told otherwise
	firstOrphans   = time.Second      // how long it waits at first, and after each success
	maxOrphansWait = 10 * time.Second // that is doubled up to
	orphanTimeout  = 2 * time.Second  // of one killCursors
)

// add takes over a cursor whose kill ended in err, if another attempt makes sense. sent says
// whether the command had been sent.
func (o *orphans) add(r *remains, sent bool, err error) {
	if !worthAnother(r, sent, err) {
		return
	}
	// The session and the connection belong to others by now.
	c := orphan{remains{exec: r.exec, openCursor: r.openCursor, comment: r.comment, bson: r.bson}, time.Now()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.list) == maxOrphans {
		o.list = o.list[1:]
	}
	o.list = append(o.list, c)
	if !o.running {
		o.running = true
		if o.life == nil {
			o.life, o.end = context.WithCancel(context.Background())
		}
		o.work.Go(o.run)
	}
}

// worthAnother reports whether a cursor may be killed by another attempt.
func worthAnother(r *remains, sent bool, err error) bool {
	switch err.(type) {
	case nil, *mongoerr.ServerError:
		return false
	case *mongoerr.TimeoutError:
		if sent {
			return false // it has been told
		}
	}
	// Behind a load balancer, only its own connection leads to the cursor's server.
	return !errors.Is(err, mongoerr.ErrClientClosed) && r.conn == nil &&
		r.server.Description().Kind != event.LoadBalancer
}

// run tells the servers until none is left that has to be told.
func (o *orphans) run() {
	wait := firstOrphans
	for {
		t := time.NewTimer(wait)
		select {
		case <-o.life.Done():
			t.Stop()
			return
		case <-t.C:
		}
		o.mu.Lock()
		list := o.list
		o.list = nil
		o.mu.Unlock()
		left := kill(o.life, list)
		if wait = min(2*wait, maxOrphansWait); len(left) < len(list) {
			wait = firstOrphans
		}
		o.mu.Lock()
		o.list = append(left, o.list...)
		if len(o.list) == 0 {
			o.running = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
	}
}

// kill tells the servers, and returns the cursors of those that cannot be reached. It asks each of
// them once only, and none of which discovery knows that it is not there.
func kill(ctx context.Context, list []orphan) (left []orphan) {
	away := map[*topology.Server]bool{}
	for _, c := range list {
		if time.Since(c.since) > orphanLife {
			continue
		}
		if away[c.server] || ctx.Err() != nil || c.server.Description().Kind == event.UnknownServer {
			left = append(left, c)
			continue
		}
		within, cancel := context.WithTimeout(ctx, orphanTimeout)
		var sent bool
		err := flight.Apart(func() (err error) { // listeners hear of it
			sent, err = c.kill(within, exec.Limit{})
			return err
		})
		cancel()
		if worthAnother(&c.remains, sent, err) {
			away[c.server] = true
			left = append(left, c)
		}
	}
	return left
}

// close ends the goroutine and tells those servers that can be reached, until ctx ends.
func (o *orphans) close(ctx context.Context) {
	o.mu.Lock()
	o.closed = true
	if o.end != nil {
		o.end()
	}
	o.mu.Unlock()
	o.work.Wait()
	o.mu.Lock()
	list := o.list
	o.list = nil
	o.mu.Unlock()
	kill(ctx, list)
}
