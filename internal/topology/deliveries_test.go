package topology

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What is queued is delivered whatever a listener does: it panics, ends its goroutine, or causes an
// event by itself. The goroutine ends when there is nothing left.
func TestDeliveriesSurviveListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q deliveries
		var got []int
		mark := func(n int) func() { return func() { got = append(got, n) } }
		q.add(mark(0))
		q.add(func() { // causes an event
			q.add(mark(6))
			got = append(got, 1)
			time.Sleep(time.Second)
		})
		q.add(func() { panic("listener") })
		q.add(mark(2))
		q.add(func() { time.Sleep(time.Second); runtime.Goexit() })
		q.add(mark(3))
		q.add(mark(4))
		q.add(mark(5))
		q.end()
		q.add(mark(7))
		q.end()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(got, want) {
			t.Errorf("delivered %v, want %v", got, want)
		}
	})
}

// A monitor waits for its listener until it has been told, but for no longer than it has patience
// or lives, unless so much is queued that it would fill the memory.
func TestDeliveriesPace(t *testing.T) {
	for name, c := range map[string]struct {
		queued   int
		life     time.Duration // of the monitor
		listener time.Duration // what it takes for the first event
		want     time.Duration
	}{
		"a quick listener":             {1, time.Hour, time.Second, time.Second},
		"a slow one":                   {1, time.Hour, time.Minute, 10 * time.Second},
		"the end of the monitor":       {1, 2 * time.Second, time.Minute, 2 * time.Second},
		"much is queued":               {maxUndelivered, time.Hour, time.Minute, time.Minute},
		"the end while much is queued": {maxUndelivered, 2 * time.Second, time.Minute, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				life, cancel := context.WithTimeout(t.Context(), c.life)
				defer cancel()
				var q deliveries
				defer q.end()
				q.add(func() { time.Sleep(c.listener) })
				synctest.Wait() // it is being told
				for range c.queued {
					q.add(func() {})
				}
				start := time.Now()
				delivered := q.pace(life, 10*time.Second)
				if took := time.Since(start); took != c.want || delivered != (c.want == c.listener) {
					t.Errorf("waited %v, delivered: %v; want %v", took, delivered, c.want)
				}
			})
		})
	}
}
