package flight

import (
	"context"
	"errors"
	"time"
)

// Linger returns a context that ends as ctx does, but grace later, for work that must not be given
// up at once and must not keep its caller much longer. If ctx has ended, it lasts for grace. The
// caller calls stop when the work is done.
func Linger(ctx context.Context, grace time.Duration) (_ context.Context, stop func()) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	if ctx.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(ctx), grace)
	}
	late, cancel := begin(ctx, grace)
	unwatch := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) { // else late has its deadline
			timer := time.AfterFunc(grace, cancel)
			context.AfterFunc(late, func() { timer.Stop() })
		}
	})
	return late, func() { unwatch(); cancel() }
}

// begin returns a context that ends grace after the deadline of ctx, if there is one.
func begin(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(late, deadline.Add(grace))
	}
	return context.WithCancel(late)
}
