package topology

import (
	"slices"
	"sync"
	"time"
)

// rttSamples is how many recent round trip times the least one is taken of.
const rttSamples = 10

// rttStats are the round trip times of one server. It is safe for concurrent use.
type rttStats struct {
	mu      sync.Mutex
	known   bool
	average time.Duration
	recent  [rttSamples]time.Duration
	n       int // how many of recent are filled
	next    int // where the next one goes
}

// ewma is the exponentially weighted moving average that the specification Server Selection
// demands.
func ewma(average, sample time.Duration) time.Duration {
	const alpha = 0.2
	return time.Duration(alpha*float64(sample) + (1-alpha)*float64(average))
}

func (r *rttStats) add(sample time.Duration) {
	if sample < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known {
		r.average = ewma(r.average, sample)
	} else {
		r.known, r.average = true, sample
	}
	r.recent[r.next] = sample
	r.next = (r.next + 1) % rttSamples
	r.n = min(r.n+1, rttSamples)
}

func (r *rttStats) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.average, r.n, r.next = false, 0, 0, 0
}

// get returns the average and the least of the recent samples, which is 0 before there are two.
func (r *rttStats) get() (average, least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n < 2 {
		return r.average, 0
	}
	return r.average, slices.Min(r.recent[:r.n])
}
