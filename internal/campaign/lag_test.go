package campaign

import (
	"testing"
	"testing/synctest"
	"time"
)

// The lag is the time by which a goroutine woke too late, also before it has woken.
func TestLag(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	l := &lag{expect: at(lagTick)}
	l.tick(at(lagTick))               // in time
	l.tick(at(2*lagTick + 3*lagTick)) // too late by three
	for now, want := range map[time.Duration]time.Duration{5 * lagTick: 3 * lagTick, 6 * lagTick: 3 * lagTick, 10 * lagTick: 7 * lagTick} {
		if got := l.upTo(at(now)); got != want {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	if (*lag)(nil).upTo(start) != 0 {
		t.Error("simulated time lags")
	}
	// Where every goroutine has its processor at once, there is none.
	synctest.Test(t, func(*testing.T) {
		l := startLag()
		defer l.end()
		time.Sleep(time.Minute)
		if got := l.upTo(time.Now()); got != 0 {
			t.Errorf("%v in a bubble", got)
		}
	})
}
