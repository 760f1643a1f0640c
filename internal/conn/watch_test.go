package conn

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a context of the program's that fails when it is watched.
type failing struct{ context.Context }

func (failing) Done() <-chan struct{} { panic("out of order") }

// The end of a context is noticed at once, or once the operation counts as slow.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name          string
		cancel, want  time.Duration // since the operation began
		fails, before bool
	}{
		{name: "ended before", before: true},
		{name: "early", cancel: watchAfter / 2, want: watchAfter},
		{name: "late", cancel: 5 * watchAfter, want: 5 * watchAfter},
		{name: "a context that fails", fails: true, want: watchAfter},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.before {
					cancel()
				}
				if c.fails {
					ctx = failing{ctx}
				}
				start := time.Now()
				called := make(chan time.Duration, 1)
				var w watch
				w.begin(ctx, func() { called <- time.Since(start) })
				if c.cancel > 0 {
					time.Sleep(c.cancel)
					cancel()
				}
				if got := <-called; got != c.want {
					t.Errorf("noticed after %v, want %v", got, c.want)
				}
				if w.end() {
					t.Error("end says that nothing was called")
				}
			})
		})
	}
}

// What an operation leaves, a context that ends later or a timer that rings, does not hit the next
// one.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch
		for _, long := range []time.Duration{0, watchAfter / 2, watchAfter, 3 * watchAfter} {
			ctx, cancel := context.WithCancel(t.Context())
			w.begin(ctx, func() { t.Errorf("%v: the context of an operation that has ended is watched", long) })
			time.Sleep(long)
			if !w.end() {
				t.Errorf("%v: end says that something was called", long)
			}
			w.begin(t.Context(), func() { t.Errorf("%v: the next operation is cancelled", long) })
			cancel()
			time.Sleep(2 * watchAfter)
			if !w.end() {
				t.Errorf("%v: the next operation's end says that something was called", long)
			}
		}
	})
}

// Whenever a context ends, either end says so, and canceled is called once, or it is not called.
func TestWatchRaces(t *testing.T) {
	var w watch
	for i := range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan struct{}, 2)
		w.begin(ctx, func() { called <- struct{}{} })
		if i%3 == 0 {
			w.rings()
		}
		go cancel()
		if n := rand.IntN(4); n > 0 {
			for range n * 100 {
				_ = ctx.Err()
			}
		}
		if !w.end() {
			<-called
		}
		<-ctx.Done()
		select {
		case <-called:
			t.Fatal("called after the end, or twice")
		default:
		}
	}
}
