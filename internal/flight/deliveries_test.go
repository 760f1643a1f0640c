package flight

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What is queued is delivered whatever a listener does: it panics, ends its goroutine, or causes an
// event by itself. The goroutine ends when there is nothing left.
func TestDeliveriesSurviveListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Deliveries
		var got []int
		mark := func(n int) func() { return func() { got = append(got, n) } }
		q.Add(mark(0))
		q.Add(func() { // causes an event
			q.Add(mark(6))
			got = append(got, 1)
			time.Sleep(time.Second)
		})
		q.Add(func() { panic("listener") })
		q.Add(mark(2))
		q.Add(func() { time.Sleep(time.Second); runtime.Goexit() })
		q.Add(mark(3))
		q.Add(mark(4))
		q.Add(mark(5))
		q.Wait()
		q.Add(mark(7))
		q.Wait()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(got, want) {
			t.Errorf("delivered %v, want %v", got, want)
		}
		q.Wait()
		if n := q.pending.Load(); n != 0 {
			t.Errorf("%d are pending", n)
		}
	})
}

// A monitor waits for its listener until it has been told, but for no longer than it has patience
// or lives, also if very much is queued.
func TestDeliveriesPace(t *testing.T) {
	for name, c := range map[string]struct {
		queued   int
		life     time.Duration // of the monitor
		listener time.Duration // what it takes for the first event
		want     time.Duration
	}{
		"a quick listener":       {1, time.Hour, time.Second, time.Second},
		"a slow one":             {1, time.Hour, time.Minute, 10 * time.Second},
		"the end of the monitor": {1, 2 * time.Second, time.Minute, 2 * time.Second},
		"the queue is full":      {MaxUndelivered, time.Hour, time.Minute, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, cancel := context.WithTimeout(t.Context(), c.life)
				defer cancel()
				var q Deliveries
				defer q.Wait()
				q.Add(func() { time.Sleep(c.listener) })
				synctest.Wait() // it is being told
				for range c.queued {
					q.Add(func() {})
				}
				start := time.Now()
				delivered := q.Pace(life, 10*time.Second)
				if took := time.Since(start); took != c.want || delivered != (c.want == c.listener) {
					t.Errorf("waited %v, delivered: %v; want %v", took, delivered, c.want)
				}
			})
		})
	}
}

// Who tells of something without the queue waits for what is in it, for a second at most, and not
// once more for the same code.
func TestDeliveriesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Deliveries
		took := func(ctx context.Context) time.Duration {
			start := time.Now()
			q.Settle(ctx)
			return time.Since(start)
		}
		expect := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: waited %v, want %v", what, got, want)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		expect("nothing is queued", took(t.Context()), 0)
		q.Add(func() { time.Sleep(time.Second / 2) })
		expect("the context ends", took(short), 150*time.Millisecond)
		expect("a slow listener", took(t.Context()), 350*time.Millisecond)
		q.Wait()
		q.Add(func() { time.Sleep(10 * time.Millisecond) })
		expect("the context has ended", took(short), 10*time.Millisecond)
		q.Add(func() { time.Sleep(time.Minute) })
		expect("one that hangs", took(t.Context()), time.Second)
		expect("it hangs still", took(t.Context()), 0)
		q.Wait()
		q.Add(func() { time.Sleep(time.Second / 2) })
		expect("it has returned", took(t.Context()), time.Second/2)
	})
}

// A listener that does not return does not fill the memory. What it misses is counted, and logged
// when that begins and when it has ended; what was queued is delivered.
func TestDeliveriesAreBounded(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		var dropped atomic.Int64
		q := Deliveries{Dropped: &dropped}
		hang := make(chan struct{})
		delivered := 0
		q.Add(func() { <-hang })
		synctest.Wait()
		for i := range MaxUndelivered + 7 {
			if took := q.Add(func() { delivered++ }); took != (i < MaxUndelivered) {
				t.Fatalf("event %d is queued: %v", i, took)
			}
		}
		synctest.Wait()
		if n := len(q.queue); n != MaxUndelivered || dropped.Load() != 7 {
			t.Errorf("%d are queued, %d were dropped", n, dropped.Load())
		}
		if text := log.String(); strings.Count(text, "does not return: 10000 events wait for it") != 1 {
			t.Errorf("logged %q while the listener hangs", text)
		}
		close(hang)
		q.Wait()
		if !q.Add(func() { delivered++ }) {
			t.Error("an event is dropped after the listener has returned")
		}
		q.Wait()
		if delivered != MaxUndelivered+1 {
			t.Errorf("%d were delivered", delivered)
		}
		if text := log.String(); strings.Count(text, "7 events were dropped while") != 1 {
			t.Errorf("logged %q at the end", text)
		}
	})
}
