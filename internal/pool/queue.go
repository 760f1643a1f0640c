package pool

import "time"

// waiter is a checkout that waits for a connection.
type waiter struct {
	result     chan result // has room for one
	prev, next *waiter
	queued     bool
	// making is the connection that is being made on behalf of this waiter. Whoever waits longest
	// gets it, but if it cannot be made, this is who learns why.
	making *Conn

	patience patience
	begun    time.Time
	overdue  bool // its time in the queue is up, and it stays for what is being made for it
}

type result struct {
	conn *Conn
	err  error
}

// queue is a first-in-first-out queue of waiters that any of them can leave.
type queue struct {
	first, last *waiter
	n           uint64
}

func (q *queue) push(w *waiter) {
	w.queued, w.prev = true, q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.n++
}

// pop returns the waiter that came first, nil if there is none.
func (q *queue) pop() *waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}

// remove takes w out. It reports whether w was in the queue; if not, it has got a result.
func (q *queue) remove(w *waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.n--
	return true
}

// fail gives every waiter an error of its own.
func (q *queue) fail(err func() error) {
	for w := q.pop(); w != nil; w = q.pop() {
		if w.making != nil {
			w.making.owner, w.making = nil, nil
		}
		w.result <- result{err: err()}
	}
}
