package flight

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Deliveries hands events, and log messages, to the program: in the order in which they were added,
// and one at a time. It does so on a goroutine of its own, which lives while there is something to
// deliver. The program's code therefore runs under no lock, and whoever added an event neither
// waits for it nor gets its panic. The zero value is ready.
//
// Code that never returns must not fill the memory: when MaxUndelivered events wait, further ones
// are dropped. That is reported when it begins and, with their number, when it has ended.
type Deliveries struct {
	Dropped *atomic.Int64 // counts the events that were dropped, if it is not nil

	pending atomic.Int64 // how many wait or are being delivered
	stuck   atomic.Bool  // Settle has waited in vain for what is being delivered

	mu       sync.Mutex // a leaf
	queue    []func()
	added    int64 // how many were, ever, and how many of them have returned
	returned int64
	waiting  []mark
	busy     bool          // the goroutine is there
	idle     chan struct{} // closed when it has nothing left; nil unless somebody waits for that
	dropped  int           // since all was delivered
}

// mark is somebody who waits until the first so many have been delivered.
type mark struct {
	behind int64
	told   chan struct{}
}

// MaxUndelivered is how many events may wait for the program. It is far more than a listener that
// is merely slow lets come together, since monitors wait for it: see Pace.
const MaxUndelivered = 10_000

// Add has f called, behind all that was added before. It reports false if f was dropped.
func (q *Deliveries) Add(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= MaxUndelivered {
		q.drop()
		return false
	}
	q.queue = append(q.queue, f)
	q.added++
	q.pending.Add(1)
	if !q.busy {
		q.busy = true
		q.start()
	}
	return true
}

// drop counts an event that is not delivered. The lock is held, so that the program's log is told
// elsewhere.
func (q *Deliveries) drop() {
	if q.dropped++; q.dropped == 1 {
		go Report(fmt.Errorf(
			"a listener or log handler does not return: %d events wait for it, and further ones are dropped",
			MaxUndelivered))
	}
	if q.Dropped != nil {
		q.Dropped.Add(1)
	}
}

// start delivers on a goroutine of its own. A listener that panics or ends the goroutine is
// reported, and the rest is delivered on another one.
func (q *Deliveries) start() {
	Go(nil, q.run, func(err error) {
		defer q.start()
		q.delivered()
		Report(err)
	})
}

func (q *Deliveries) run() {
	for f := q.next(); f != nil; f = q.next() {
		f()
		q.delivered()
	}
}

// delivered notes that the program's code has returned, in whatever way.
func (q *Deliveries) delivered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stuck.Store(false)
	q.pending.Add(-1)
	q.returned++
	q.waiting = slices.DeleteFunc(q.waiting, func(m mark) bool {
		if m.behind <= q.returned {
			close(m.told)
			return true
		}
		return false
	})
}

// mark returns a channel that is closed when all that was added before has been delivered.
func (q *Deliveries) mark() chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	told := make(chan struct{})
	if q.returned == q.added {
		close(told)
	} else {
		q.waiting = append(q.waiting, mark{q.added, told})
	}
	return told
}

// forget ends what mark has begun.
func (q *Deliveries) forget(told chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(m mark) bool { return m.told == told })
}

// next returns what is to be called next, nil if the goroutine may end.
func (q *Deliveries) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) > 0 {
		f := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		return f
	}
	if n := q.dropped; n > 0 {
		q.dropped = 0
		q.added++
		q.pending.Add(1)
		return func() { Report(fmt.Errorf("%d events were dropped while a listener or log handler did not return", n)) }
	}
	q.queue, q.busy = nil, false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return nil
}

// Pace returns when all that was added before has been delivered, or life or patience ends. It
// reports which. So much a monitor waits for its listener, which may itself wait for what the
// monitor will find out.
func (q *Deliveries) Pace(life context.Context, patience time.Duration) (delivered bool) {
	told := q.mark()
	defer q.forget(told)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-told:
		return true
	case <-timer.C:
	case <-life.Done():
	}
	return false
}

// settling is how long Settle waits for the program, and late how long when the time of who waits
// is up.
const (
	settling = time.Second
	late     = 50 * time.Millisecond
)

// Settle is for whoever tells of an event without the queue: it returns when all that was added
// before has been delivered, so that the order is kept. For code that takes longer than a second it
// waits no more, and neither does anyone else until that has returned; when ctx ends, it waits for
// another twentieth of a second.
func (q *Deliveries) Settle(ctx context.Context) {
	if q.pending.Load() == 0 || q.stuck.Load() {
		return
	}
	told := q.mark()
	defer q.forget(told)
	timer := time.NewTimer(settling)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
		q.stuck.Store(true)
	case <-ctx.Done():
		timer.Reset(late)
		select {
		case <-told:
		case <-timer.C:
		}
	}
}

// Wait returns when all has been delivered, also what was added meanwhile.
func (q *Deliveries) Wait() {
	q.mu.Lock()
	if !q.busy {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	<-idle
}
