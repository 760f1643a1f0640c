package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"allium/internal/flight"
	"allium/internal/option"
	"allium/patterns/internal/again"
)

// RunOptions are the options of Run.
type RunOptions struct {
	// Parallel is how many messages are handled at once. Zero: 1.
	Parallel int
	// Grace is how long handlers may go on when the context of Run has ended. Zero: their contexts
	// end with it.
	Grace time.Duration
	// Logger is told what a person might want to know: failures of handlers, messages that are
	// dead, errors after which Run goes on. Nil: nobody.
	Logger *slog.Logger
}

// A runner is a Run. Its workers take messages by themselves while there are some. Of those who
// find none only one waits for the next, the one that has the turn.
type runner[T any] struct {
	*Queue[T]
	RunOptions
	handle func(ctx context.Context, m *Message[T]) error
	bell   *bell
	turn   chan struct{}
	work   context.Context // that of the handlers
}

// Run takes messages and calls handle with each, until the context ends or something fails that
// does not mend itself. Then it takes no more, waits for the handlers, and returns the context's
// cause or the error.
//
// If handle returns nil, the message is done; an error that has ErrRefused makes it dead, another
// one is for Message.Retry. A panic is an error. Nothing is done if handle has called Done, Retry,
// Release or Bury itself and returns nil. A message whose handler fails when Run ends is released
// for other copies.
//
// The message is extended as long as handle works. Its context ends with that of Run and Grace, and
// when the message is lost, with the cause ErrLost. If Parallel is more than 1, handle must be safe
// for concurrent use.
func (q *Queue[T]) Run(ctx context.Context, handle func(ctx context.Context, m *Message[T]) error,
	opts ...RunOptions) error {
	o := option.Merge(opts)
	o.Parallel = max(o.Parallel, 1)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if handle == nil {
		return errors.New("queue: handle is nil")
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if o.Grace > 0 && !again.Pause(work, o.Grace) {
			return
		}
		cancel(context.Cause(ctx))
	})()
	r := &runner[T]{q, o, handle, q.listen(ctx), make(chan struct{}, 1), work}
	defer r.bell.close()
	r.turn <- struct{}{}
	var workers sync.WaitGroup
	for range o.Parallel {
		workers.Go(func() {
			// The program's listeners may panic here, where nobody could recover.
			end(flight.Apart(func() error {
				for {
					m, err := r.get(ctx)
					if err != nil {
						return err
					}
					r.do(m)
				}
			}))
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// get waits for a message.
func (r *runner[T]) get(ctx context.Context) (*Message[T], error) {
	m, err := r.tryHard(ctx, false)
	if !errors.Is(err, ErrEmpty) {
		return m, err
	}
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	return r.tryHard(ctx, true)
}

// tryHard takes a message, whatever interrupts that. It waits for one if told.
func (r *runner[T]) tryHard(ctx context.Context, waits bool) (*Message[T], error) {
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, next, err := r.take(ctx)
		alive := true
		switch {
		case err == nil, errors.Is(err, ErrEmpty) && !waits:
			return m, err
		case errors.Is(err, ErrEmpty):
			n = 0
			alive = r.wait(ctx, r.bell, next)
		case ctx.Err() == nil && !again.Transient(err):
			return nil, fmt.Errorf("queue: %w", err)
		default:
			r.Logger.WarnContext(ctx, "queue is interrupted", "error", err)
			alive = again.Pause(ctx, again.Backoff(100*time.Millisecond, 10*time.Second, n))
		}
		if !alive {
			return nil, context.Cause(ctx)
		}
	}
}

// do handles a message and tells the queue about it.
func (r *runner[T]) do(m *Message[T]) {
	log := r.Logger.With("message", m.ID, "attempt", m.Attempt)
	ctx, end := context.WithCancelCause(r.work)
	kept := make(chan error, 1)
	go func() {
		err := again.Keep(ctx, m.taken, r.opts.Visibility, r.opts.Visibility/3,
			func(ctx context.Context) (bool, error) {
				if m.ended.Load() {
					return true, nil // a transaction may have it, and nobody else gets it
				}
				err := m.Extend(ctx)
				if errors.Is(err, ErrLost) {
					return m.ended.Load(), nil
				}
				return true, err
			})
		if err != nil {
			end(fmt.Errorf("%w: %q: %w", ErrLost, m.ID, err))
		}
		kept <- err
	}()
	err := flight.Apart(func() error { return r.handle(ctx, m) })
	stopped := context.Cause(r.work) != nil
	end(nil)
	if lost := <-kept; lost != nil {
		log.WarnContext(ctx, "message is lost", "error", lost)
		return
	}
	if err == nil && m.ended.Load() {
		return
	}
	tell := m.Done
	switch {
	case err == nil:
	case errors.Is(err, ErrRefused):
		tell = func(ctx context.Context) error { return m.Bury(ctx, err) }
	case stopped:
		tell = m.Release
	default:
		tell = func(ctx context.Context) error { return m.Retry(ctx, err) }
	}
	if err != nil && !stopped {
		log.WarnContext(ctx, "message fails", "error", err)
	}
	// With a context of its own, since Run's may have ended: it was done.
	until, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.Visibility)
	defer cancel()
	for n := 1; ; n++ {
		err := tell(until)
		if errors.Is(err, ErrLost) && n > 1 || err == nil {
			return // an attempt before was not in vain
		}
		if !again.Transient(err) || !again.Pause(until, again.Backoff(100*time.Millisecond, time.Second, n)) {
			log.WarnContext(ctx, "message may come again", "error", err)
			return
		}
	}
}
