package conn

import (
	"context"
	"sync"
	"time"

	"allium/internal/flight"
)

// watchAfter is how long an operation waits for its reply before its context is watched. Most have
// their reply by then. One that is cancelled earlier ends that late at most.
const watchAfter = 2 * time.Millisecond

// watch calls a function when the context of an operation is cancelled that is still under way.
//
// context.AfterFunc takes a lock that all operations of one context share, and memory, for what
// hardly any operation needs. A timer of the connection's own costs neither: AfterFunc is left to
// operations that are slow. The timer may ring late, in the next operation, which is watched a
// little earlier then.
type watch struct {
	timer *time.Timer

	mu       sync.Mutex      // of what follows
	ctx      context.Context // nil between operations
	canceled func()
	stop     func() bool // not nil once AfterFunc was called
}

// begin watches ctx until end is called. One that has ended already is noticed at once.
func (w *watch) begin(ctx context.Context, canceled func()) {
	ended := ctx.Err() != nil
	w.mu.Lock()
	w.ctx, w.canceled = ctx, canceled
	if ended {
		w.register()
	}
	w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, w.rings)
	} else {
		w.timer.Reset(watchAfter)
	}
}

func (w *watch) rings() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != nil && w.stop == nil {
		w.register()
	}
}

// register has the context call canceled. The context may be the program's own code: one that fails
// counts as cancelled.
func (w *watch) register() {
	if err := flight.Call(func() error { w.stop = context.AfterFunc(w.ctx, w.canceled); return nil }); err != nil {
		w.stop = func() bool { return false }
		go w.canceled()
	}
}

// end reports whether canceled was not called, and is not being called.
func (w *watch) end() bool {
	w.timer.Stop()
	w.mu.Lock()
	stop := w.stop
	w.ctx, w.canceled, w.stop = nil, nil, nil
	w.mu.Unlock()
	return stop == nil || stop()
}
