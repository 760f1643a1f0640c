package again_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"allium/mongoerr"
	"allium/patterns/internal/again"
)

func TestTransient(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("mine"), false},
		{mongoerr.ErrClientClosed, false},
		{fmt.Errorf("x: %w", &mongoerr.ConnectionError{Wrapped: mongoerr.ErrClientClosed}), false},
		{&mongoerr.ConnectionError{}, true},
		{fmt.Errorf("x: %w", &mongoerr.SelectionError{}), true},
		{&mongoerr.PoolClearedError{}, true},
		{&mongoerr.WriteConcernError{}, true},
		{&mongoerr.TimeoutError{}, true},
		{&mongoerr.ServerError{Code: 10107}, true},
		{&mongoerr.ServerError{Code: 91}, true},
		{&mongoerr.ServerError{Code: 50}, true},
		{&mongoerr.ServerError{Code: 43}, true},
		{&mongoerr.ServerError{Code: 11601}, true},
		{&mongoerr.ServerError{Code: 237}, true},
		{&mongoerr.ServerError{Code: 13}, false},
		{&mongoerr.ServerError{Code: 40324}, false},
		{&mongoerr.ServerError{Code: 11000}, false},
		{&mongoerr.ServerError{Code: 1, Labels: mongoerr.Labels{mongoerr.LabelTransientTransaction}}, true},
		{&mongoerr.AuthError{}, false},
		{mongoerr.ErrNoDocuments, false},
	} {
		if got := again.Transient(c.err); got != c.want {
			t.Errorf("%v (%T): %v, want %v", c.err, c.err, got, c.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: time.Minute, 29: time.Minute, 1 << 40: time.Minute} {
		for range 100 {
			if d := again.Backoff(time.Second, time.Minute, n); d < most/2 || d > most {
				t.Fatalf("behind attempt %d: %v, want half of %v to all of it", n, d, most)
			}
		}
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if !again.Pause(ctx, 2*time.Second) || time.Since(began) != 2*time.Second {
			t.Errorf("a pause of 2 s took %v", time.Since(began))
		}
		if again.Pause(ctx, 2*time.Second) || time.Since(began) != 3*time.Second {
			t.Errorf("a pause ended %v after the context began", time.Since(began))
		}
	})
}

// TestKeep: what is held is renewed until the context ends, which is no loss, also within a
// renewal; it is lost when it has passed on, or when renewals have failed for nine tenths of its
// time.
func TestKeep(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		renew func(ctx context.Context, n int) (bool, error)
		want  error
		after time.Duration
	}{
		"renewed":   {func(context.Context, int) (bool, error) { return true, nil }, nil, 5 * time.Minute},
		"passed on": {func(_ context.Context, n int) (bool, error) { return n < 4, nil }, again.ErrPassed, 40 * time.Second},
		"away":      {func(context.Context, int) (bool, error) { return false, away }, away, 27 * time.Second},
		"away, later": {func(_ context.Context, n int) (bool, error) {
			return true, errors.Join(map[bool]error{true: away}[n > 2])
		}, away, 47 * time.Second},
		"back in time": {func(_ context.Context, n int) (bool, error) {
			return true, errors.Join(map[bool]error{true: away}[n%5 > 0])
		}, nil, 5 * time.Minute},
		"hangs": {func(ctx context.Context, _ int) (bool, error) { <-ctx.Done(); return false, ctx.Err() }, context.DeadlineExceeded, 27 * time.Second},
		"hangs at the end": {func(ctx context.Context, n int) (bool, error) {
			if n < 29 {
				return true, nil
			}
			<-ctx.Done()
			return false, ctx.Err()
		}, nil, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				n, began := 0, time.Now()
				err := again.Keep(ctx, began, 30*time.Second, 10*time.Second, func(ctx context.Context) (bool, error) { n++; return c.renew(ctx, n) })
				if took := time.Since(began); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || took != c.after {
					t.Errorf("%v after %v, want %v after %v", err, took, c.want, c.after)
				}
			})
		})
	}
}
