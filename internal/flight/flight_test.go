package flight

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errWork = errors.New("work failed")

// whenEnded is work that ends with its context, and counts that.
func whenEnded(ended *atomic.Int32) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		<-ctx.Done()
		ended.Add(1)
		return 0, ctx.Err()
	}
}

// Everybody who waits gets the result, whatever it is.
func TestResults(t *testing.T) {
	for name, tt := range map[string]struct {
		work func(context.Context) (int, error)
		want string
	}{
		"a value":  {work: func(context.Context) (int, error) { return 7, nil }},
		"an error": {work: func(context.Context) (int, error) { return 0, errWork }, want: "work failed"},
		"a panic":  {work: func(context.Context) (int, error) { panic(errWork) }, want: "panic: work failed"},
		"an exit":  {work: func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, want: "Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				landed := 0
				start := make(chan struct{})
				f := Start(t.Context(), time.Minute, func() { landed++ }, func(ctx context.Context) (int, error) { <-start; return tt.work(ctx) })
				results := make(chan error, 3)
				for i := range cap(results) {
					if i > 0 && !f.Join() {
						t.Fatal("nobody may join")
					}
					go func() {
						v, err := f.Wait(t.Context())
						if err == nil && v != 7 {
							t.Errorf("value %d", v)
						}
						results <- err
					}()
				}
				synctest.Wait()
				close(start)
				for range cap(results) {
					if err := <-results; (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
						t.Errorf("%v, want %q", err, tt.want)
					}
				}
				if landed != 1 {
					t.Errorf("landed %d times", landed)
				}
			})
		})
	}
}

// A panic is an error with its stack and its cause.
func TestPanic(t *testing.T) {
	err := Call(func() error { panic(errWork) })
	p, ok := errors.AsType[*Panic](err)
	if !ok || !errors.Is(err, errWork) || !strings.Contains(string(p.Stack), "TestPanic") {
		t.Errorf("%v", err)
	}
	if err := Call(func() error { return errWork }); err != errWork {
		t.Errorf("%v", err)
	}
}

// The work outlives whoever has started it, and ends with the last one who waits.
func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		first, giveUp := context.WithCancel(t.Context())
		f := Start(first, time.Hour, nil, whenEnded(&ended))
		f.Join()
		giveUp()
		if _, err := f.Wait(first); err != context.Canceled || ended.Load() != 0 {
			t.Errorf("the first: %v, ended %d", err, ended.Load())
		}
		cause := errors.New("enough")
		second, giveUpToo := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { giveUpToo(cause) })
		if _, err := f.Wait(second); err != cause || ended.Load() != 1 {
			t.Errorf("the second: %v, ended %d", err, ended.Load())
		}
		if f.Join() {
			t.Error("joined what has ended")
		}
	})
}

// Work is bounded by its limit and by the deadline of who starts it, and lands then even if it does
// not return.
func TestLimits(t *testing.T) {
	for name, hangs := range map[string]bool{"obeys": false, "hangs": true} {
		for bound, deadline := range map[string]time.Duration{"limit": time.Hour, "deadline": time.Second} {
			t.Run(name+", "+bound, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					over := make(chan struct{})
					landed := false
					f := Start(ctx, time.Minute, func() { landed = true }, func(ctx context.Context) (int, error) {
						if hangs {
							<-over
							return 7, nil
						}
						<-ctx.Done()
						return 0, errWork
					})
					f.Join()
					start := time.Now()
					go f.Wait(ctx)
					v, err := f.Wait(t.Context())
					want := errWork
					if hangs {
						want = context.DeadlineExceeded
					}
					if took := time.Since(start); took > min(time.Minute, deadline)+grace || !errors.Is(err, want) || v != 0 || !landed {
						t.Errorf("%d, %v after %v", v, err, took)
					}
					close(over)
					synctest.Wait()
					if v, err := f.value, f.err; v != 0 || !errors.Is(err, want) {
						t.Errorf("changed to %d, %v", v, err)
					}
				})
			})
		}
	}
}

// Who waits alone gets the work's own error at the end of its time.
func TestOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := Start(ctx, time.Minute, nil, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, errors.Join(errWork, ctx.Err())
		})
		if _, err := f.Wait(ctx); !errors.Is(err, errWork) || !errors.Is(err, context.DeadlineExceeded) || !Ended(err) {
			t.Errorf("%v", err)
		}
	})
}
