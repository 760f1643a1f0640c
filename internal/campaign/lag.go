package campaign

import (
	"sync"
	"time"
)

// lag measures how long a goroutine that is ready waits for a processor: what a busy machine adds
// to every call in real time, and no fault of the driver's.
type lag struct {
	mu     sync.Mutex
	total  time.Duration
	expect time.Time // when the measuring goroutine should be awake again
	stop   chan struct{}
	done   sync.WaitGroup
}

// lagTick is how often the lag is measured.
const lagTick = 5 * time.Millisecond

func startLag() *lag {
	l := &lag{stop: make(chan struct{}), expect: time.Now().Add(lagTick)}
	l.done.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			case <-time.After(lagTick):
				l.tick(time.Now())
			}
		}
	})
	return l
}

// tick notes that the measuring goroutine was awake at a time.
func (l *lag) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += max(0, now.Sub(l.expect))
	l.expect = now.Add(lagTick)
}

// upTo returns how long, up to a time, the measuring goroutine has waited for a processor.
func (l *lag) upTo(now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total + max(0, now.Sub(l.expect))
}

// end stops the measurement.
func (l *lag) end() {
	if l != nil {
		close(l.stop)
		l.done.Wait()
	}
}
