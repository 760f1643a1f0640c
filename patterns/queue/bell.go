package queue

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/internal/flight"
	"allium/patterns/internal/again"
)

// A bell rings when there may be a message to take: change events of the queue say so. Where there
// are none, it never does.
type bell struct {
	rings chan struct{}
	works atomic.Bool // a change stream is open
	stop  context.CancelFunc
	done  chan struct{}
}

func (q *Queue[T]) listen(ctx context.Context) *bell {
	ctx, stop := context.WithCancel(ctx)
	b := &bell{rings: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		for n := 1; ctx.Err() == nil; n++ {
			opened := false
			// The program's listeners may panic here, where nobody could recover.
			err := flight.Apart(func() (err error) {
				opened, err = q.hear(ctx, b)
				return err
			})
			if opened {
				n = 1
			}
			if err != nil && !again.Transient(err) ||
				!again.Pause(ctx, again.Backoff(100*time.Millisecond, q.opts.Poll*10, n)) {
				return // such as on a standalone server
			}
		}
	}()
	return b
}

// news selects the events of messages that were sent, given back or woken.
var news = bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
	bson.D{{Key: "operationType", Value: bson.D{{Key: "$in", Value: bson.A{"insert", "replace"}}}}},
	bson.D{{Key: "updateDescription.updatedFields.lock", Value: ""}},
	bson.D{{Key: "updateDescription.updatedFields.state", Value: live}},
}}}}}}

// hear rings the bell with each event, until the stream ends.
func (q *Queue[T]) hear(ctx context.Context, b *bell) (opened bool, err error) {
	s, err := q.bare.Watch(ctx, news)
	if err != nil {
		return false, err
	}
	defer s.Close(ctx)
	b.works.Store(true)
	defer b.works.Store(false)
	b.ring() // something may have come before
	for s.Next(ctx) {
		b.ring()
	}
	return true, s.Err()
}

func (b *bell) ring() {
	select {
	case b.rings <- struct{}{}:
	default:
	}
}

// close ends the bell. There may be none.
func (b *bell) close() {
	if b != nil {
		b.stop()
		<-b.done
	}
}

// wait waits until there may be a message, at most until one is due if next is not 0. It reports
// whether the context is still alive.
func (q *Queue[T]) wait(ctx context.Context, b *bell, next time.Duration) bool {
	d := q.opts.Poll
	if b.works.Load() {
		d *= 10
	}
	d = d/2 + rand.N(d/2+1) // not all at once, when several wait
	if next > 0 {
		d = min(d, next)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.rings:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
