package bench

import (
	"testing"
	"time"
)

// TestFullLength: a full measurement of a task takes a minute at least, and then ends with its
// 100th iteration or after five minutes (specification: Benchmarking, "Benchmark execution phases
// and measurement").
func TestFullLength(t *testing.T) {
	for _, tc := range []struct {
		each time.Duration // of an iteration
		want int
	}{{time.Millisecond, 60_000}, {500 * time.Millisecond, 120}, {time.Second, 100}, {2 * time.Second, 100}, {10 * time.Second, 30}, {10 * time.Minute, 1}} {
		p, n := Plan{Full: true, Rounds: 7}, 0
		for !p.done(n, time.Duration(n)*tc.each) {
			n++
		}
		if n != tc.want {
			t.Errorf("%v each: %d iterations, want %d", tc.each, n, tc.want)
		}
	}
	p := Plan{Rounds: 7}
	if p.done(6, time.Hour) || !p.done(7, 0) {
		t.Error("a short measurement does not end after its rounds")
	}
}
