package gridfs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium/mongoerr"
)

// Who waits in vain for another upload to create the indexes learns whose time was up.
func TestWaitForIndexes(t *testing.T) {
	for name, tt := range map[string]struct {
		ctx   func(ctx context.Context) (context.Context, context.CancelFunc)
		limit time.Duration
		want  mongoerr.Source
		text  string
	}{
		"a deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, time.Minute,
			mongoerr.SourceContext, "waiting for another upload to create the indexes timed out after 1s by the context's deadline: context deadline exceeded"},
		"a timeout": {context.WithCancel, time.Second,
			mongoerr.SourceOperation, "waiting for another upload to create the indexes timed out after 1s by the timeout of the operation: context deadline exceeded"},
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, 0, mongoerr.SourceCancel, "waiting for another upload to create the indexes cancelled after 1s: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := indexes{turn: make(chan struct{}, 1)}
				i.turn <- struct{}{}
				ctx, cancel := tt.ctx(t.Context())
				defer cancel()
				var l limit
				if tt.limit > 0 {
					l = limit{set: true, deadline: time.Now().Add(tt.limit)}
				}
				err := i.take(ctx, l)
				if e, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || e.Source != tt.want || err.Error() != tt.text {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
