package flight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A lingering context ends once, grace after its parent, in the parent's way.
func TestLinger(t *testing.T) {
	const grace = time.Second
	for name, tt := range map[string]struct {
		parent func(ctx context.Context) (context.Context, context.CancelFunc)
		after  time.Duration // of the end; 0: never
		err    error
	}{
		"none": {func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, 0, nil},
		"cancelled before": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, grace, context.DeadlineExceeded},
		"deadline before": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, -time.Second)
		}, grace, context.DeadlineExceeded},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, 3*time.Second + grace, context.DeadlineExceeded},
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		}, 3*time.Second + grace, context.Canceled},
		"cancelled before its deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			time.AfterFunc(3*time.Second, cancel)
			return ctx, cancel
		}, 3*time.Second + grace, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := tt.parent(context.WithValue(context.Background(), t, 1))
				defer cancel()
				start := time.Now()
				late, stop := Linger(parent, grace)
				defer stop()
				if late.Value(t) != 1 {
					t.Error("the values are lost")
				}
				select {
				case <-late.Done():
				case <-time.After(time.Minute):
				}
				if took := time.Since(start); tt.after > 0 && took != tt.after || !errors.Is(late.Err(), tt.err) {
					t.Errorf("%v after %v, want %v after %v", late.Err(), took, tt.err, tt.after)
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

// Whoever is done early leaves no timer and no goroutine: the bubble would wait for them.
func TestLingerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		_, stop := Linger(parent, time.Hour)
		cancel()
		synctest.Wait()
		stop()
		synctest.Wait()
	})
}
