package topology

import (
	"context"
	"sync"
	"time"

	"allium/internal/flight"
)

// deliveries hands the events of one topology, and its log messages, to the program: in the order
// in which they were added, and one at a time (specification: SDAM Logging and Monitoring, "Event
// Order and Concurrency"). It does so on a goroutine of its own, which lives while there is
// something to deliver. The program's code therefore runs under no lock, and whoever added an event
// neither waits for it nor gets its panic. The zero value is ready.
type deliveries struct {
	work sync.WaitGroup // the goroutine; see end

	mu    sync.Mutex // a leaf
	queue []func()
	busy  bool // the goroutine is there
}

// maxUndelivered is how many events may wait before monitors wait for the program without a bound.
const maxUndelivered = 1000

// add has f called, behind all that was added before. It returns how many calls are queued.
func (q *deliveries) add(f func()) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, f)
	if !q.busy {
		q.busy = true
		q.start()
	}
	return len(q.queue)
}

// start delivers on a goroutine of its own. A listener that panics or ends the goroutine is
// reported, and the rest is delivered on another one.
func (q *deliveries) start() {
	flight.Go(&q.work, q.run, func(err error) {
		defer q.start()
		flight.Report(err)
	})
}

func (q *deliveries) run() {
	for f := q.next(); f != nil; f = q.next() {
		f()
	}
}

func (q *deliveries) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		q.queue, q.busy = nil, false
		return nil
	}
	f := q.queue[0]
	q.queue[0] = nil
	q.queue = q.queue[1:]
	return f
}

// pace returns when all that was added before has been delivered, or life or patience ends. It
// reports which. So much a monitor waits for its listener, which may itself wait for what the
// monitor will find out. A listener that never returns must not fill the memory: if very much is
// queued, there is no end to the patience.
func (q *deliveries) pace(life context.Context, patience time.Duration) (delivered bool) {
	told := make(chan struct{})
	var up <-chan time.Time
	if q.add(func() { close(told) }) <= maxUndelivered {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		up = timer.C
	}
	select {
	case <-told:
		return true
	case <-up:
	case <-life.Done():
	}
	return false
}

// end returns when all has been delivered. Nothing may be added meanwhile or later.
func (q *deliveries) end() { q.work.Wait() }
