// Package again is what programs that run for ever do about what fails: whether it may succeed
// later, and how long to wait until then.
package again

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"allium/internal/errcode"
	"allium/mongoerr"
)

// Transient reports whether what failed with err may succeed later without anybody's doing: a
// server was away, an election took place, time was up.
func Transient(err error) bool {
	var server *mongoerr.ServerError
	switch {
	case err == nil, errors.Is(err, mongoerr.ErrClientClosed):
		return false
	case mongoerr.IsTimeout(err), is[*mongoerr.ConnectionError](err), is[*mongoerr.SelectionError](err),
		is[*mongoerr.PoolClearedError](err),
		is[*mongoerr.WriteConcernError](err), mongoerr.HasLabel(err, mongoerr.LabelRetryable),
		mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite),
		mongoerr.HasLabel(err, mongoerr.LabelResumableChangeStream),
		mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction),
		mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded):
		return true
	case errors.As(err, &server):
		return errcode.Is(server.Code, errcode.RetryableRead) || errcode.Is(server.Code, errcode.Resumable) ||
			errcode.Is(server.Code, errcode.OutOfTime) ||
			errcode.Is(server.Code, errcode.StateChange) || server.Code == interrupted ||
			server.Code == errcode.CursorKilled
	}
	return false
}

const interrupted = 11601 // by killOp

// Lost reports whether an error says that the server no longer has the events behind a position of
// a change stream: ChangeStreamHistoryLost, ChangeStreamFatalError.
func Lost(err error) bool { return mongoerr.HasCode(err, 286) || mongoerr.HasCode(err, 280) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Backoff returns how long to wait before the attempt behind the nth, from 1: twice as long each
// time, at most the bound, and half of it by chance.
func Backoff(first, most time.Duration, n int) time.Duration {
	d := most
	if n < 30 {
		d = min(first<<(n-1), most)
	}
	return d/2 + rand.N(d/2+1)
}

// Pause waits, and reports whether the context is still alive.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Afterwards returns a context for what is done when the work is over, whether or not its context
// has ended: a lease is given back, a position is stored. It lasts for five seconds; what could not
// be done by then ends by itself or is done again.
func Afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// Lastly calls f with such a context. What it could not do is nobody's loss: the error is dropped.
func Lastly(ctx context.Context, f func(ctx context.Context) error) {
	ctx, cancel := Afterwards(ctx)
	defer cancel()
	_ = f(ctx)
}
