// Package flight lets several goroutines that want the same thing share the work that gets it: data
// keys, tokens, the status of a certificate.
//
// The work belongs to none of those who wait. It goes on when one of them gives up, and ends when
// all have; whatever becomes of it, it lands: by its result, by a panic, which becomes an error, or
// by its limit, even if it never returns.
package flight

import (
	"context"
	"errors"
	"sync"
	"time"
)

// grace is how long work that has been told to end is waited for.
const grace = 250 * time.Millisecond

// A Flight is work that is under way, and its result after that.
type Flight[V any] struct {
	ctx    context.Context // of the work
	cancel context.CancelFunc
	landed func()        // called once, before done is closed
	done   chan struct{} // closed when there is a result
	once   sync.Once
	value  V
	err    error

	mu      sync.Mutex
	waiters int // who will call Wait or Leave; nobody joins when there are none left
}

// Start begins the work for the caller, who must call Wait or Leave. The work's context has the
// values and the deadline of ctx, but lasts for limit at most; it is cancelled when all who wait
// have left. landed is called when there is a result, before anybody gets it; nil calls nothing.
// Work that ignores the end of its context is left to itself.
func Start[V any](ctx context.Context, limit time.Duration, landed func(),
	work func(context.Context) (V, error)) *Flight[V] {
	end := time.Now().Add(limit)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	f := &Flight[V]{landed: landed, done: make(chan struct{}), waiters: 1}
	f.ctx, f.cancel = context.WithDeadline(context.WithoutCancel(ctx), end)
	stop := context.AfterFunc(f.ctx, f.abandon)
	go func() {
		var value V
		err := errExit
		defer func() {
			stop()
			f.land(value, err)
			f.cancel()
		}()
		err = Call(func() (err error) {
			value, err = work(f.ctx)
			return err
		})
	}()
	return f
}

// abandon lands work that does not return after its context has ended.
func (f *Flight[V]) abandon() {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		var none V
		f.land(none, f.ctx.Err())
	}
}

// land makes the first result that there is the flight's.
func (f *Flight[V]) land(value V, err error) {
	f.once.Do(func() {
		f.value, f.err = value, err
		if f.landed != nil {
			f.landed()
		}
		close(f.done)
	})
}

// Join makes the caller one of those who wait; it must call Wait or Leave. It reports false if all
// others have left, so that the work is about to end.
func (f *Flight[V]) Join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiters == 0 {
		return false
	}
	f.waiters++
	return true
}

// Done returns a channel that is closed when there is a result.
func (f *Flight[V]) Done() <-chan struct{} { return f.done }

// Leave takes the place of Wait for a caller who does not want the result any more.
func (f *Flight[V]) Leave() {
	if f.leave() {
		f.cancel()
	}
}

// leave ends the part of a caller. It reports whether it was the last one.
func (f *Flight[V]) leave() (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiters--
	return f.waiters == 0
}

// Wait returns the result, or the cause of the end of ctx, and leaves. The last one who leaves ends
// the work, and waits for that for a moment: its own error says more about what took so long.
func (f *Flight[V]) Wait(ctx context.Context) (V, error) {
	select {
	case <-f.done:
		f.leave()
		InTime(ctx, f.err)
		return f.value, f.err
	case <-ctx.Done():
	}
	var none V
	if !f.leave() {
		return none, context.Cause(ctx)
	}
	if deadline, _ := f.ctx.Deadline(); time.Now().Before(deadline) {
		f.cancel()
	}
	<-f.done // when grace is over at the latest
	if errors.Is(f.err, context.Canceled) {
		return none, context.Cause(ctx)
	}
	return f.value, f.err
}

// InTime returns when ctx has ended, if err says that the time was up that ctx has. The context of
// the work ends at the same moment, and may be the first; callers look at their own.
func InTime(ctx context.Context, err error) {
	if deadline, ok := ctx.Deadline(); ok && Ended(err) && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
}

// Ended reports whether err says that the work was told to end, or had too little time: whoever has
// more may start it again.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
