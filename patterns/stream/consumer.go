package stream

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/flight"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/internal/settled"
)

// A consumer is the work of one holder of the lease. One goroutine reads events, some handle them,
// each those of some keys, and one stores the position.
type consumer[T any] struct {
	Options[T]
	log   *slog.Logger
	over  allium.Watched
	place place
	work  context.Context // ends when the lease is lost or anything fails
	end   context.CancelCauseFunc
	room  chan struct{} // has an element for each event that is not handled

	mu       sync.Mutex
	slots    []*slot[T] // in the order of the stream: those behind the position
	position bson.Raw
	handled  int64
	parked   int64
	news     bool // whether events were handled since the position was stored
}

// A slot is an event that is being handled, or a position between events.
type slot[T any] struct {
	ev   allium.ChangeEvent[T]
	odd  *mongoerr.DecodeError // if it does not decode
	next bson.Raw              // the position behind it
	at   time.Time             // of the event; zero: there is none
	done chan struct{}         // closed when it was handled
}

// run works until the context ends.
func (c *consumer[T]) run() error {
	position, err := c.place.claim(c.work)
	if err != nil {
		return err
	}
	s, err := c.open(position)
	if err != nil {
		return err
	}
	var keeper, workers sync.WaitGroup
	queues := make([]chan *slot[T], c.Parallel)
	for i := range queues {
		queues[i] = make(chan *slot[T], cap(c.room))
		workers.Go(func() {
			c.own(func() error {
				for s := range queues[i] {
					if err := c.finish(s); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	keeper.Go(func() { c.own(c.keep) })
	err = errLeft
	// Listeners of the program may panic while the stream is read, or end the goroutine: nothing is
	// left behind then either.
	defer func() {
		c.end(err)
		for _, q := range queues {
			close(q)
		}
		workers.Wait()
		keeper.Wait()
		// What was handled need not be handled again.
		again.Lastly(c.work, func(ctx context.Context) error { return c.save(ctx, true) })
	}()
	err = c.read(s, queues)
	return err
}

var errLeft = errors.New("stream: the program's own code has left the function")

// own runs what works on a goroutine of its own. Its error ends the work, and so does a panic of
// the program's listeners, which nobody could recover there.
func (c *consumer[T]) own(work func() error) {
	if err := flight.Apart(work); err != nil {
		c.end(err)
	}
}

// open opens the stream at the position. Without one, it begins now.
func (c *consumer[T]) open(position bson.Raw) (*allium.ChangeStream[T], error) {
	o := c.Watch
	o.StartAfter = position
	s, err := allium.Watch[T](c.work, c.over, c.Pipeline, o)
	if position != nil && again.Lost(err) {
		if c.Lost == nil {
			return nil, final{err}
		}
		c.log.WarnContext(c.work, "stream has lost events", "error", err)
		if err := flight.Apart(func() error { return c.Lost(c.work, err) }); err != nil {
			return nil, final{err}
		}
		return c.open(nil)
	}
	if err != nil || position != nil {
		return s, err
	}
	err = c.begin(s.ResumeToken())
	if err != nil {
		s.Close(c.work)
	}
	return s, err
}

// begin does what is to be done once, and stores the first position.
func (c *consumer[T]) begin(position bson.Raw) error {
	if err := c.place.forget(c.work); err != nil { // an old one must not hide that it is not done
		return err
	}
	first := c.Begin
	if c.sweep != nil {
		first = func(ctx context.Context) error { return c.sweep(ctx, c) }
	}
	if first != nil {
		if err := flight.Apart(func() error { return first(c.work) }); err != nil {
			switch {
			case c.work.Err() != nil:
				return context.Cause(c.work)
			case c.sweep != nil:
				return err
			}
			return final{err}
		}
	}
	if position == nil { // servers give one
		return nil
	}
	// It was done, also if the context has ended meanwhile.
	ctx, cancel := again.Afterwards(c.work)
	defer cancel()
	return c.place.store(ctx, position)
}

// read reads events and hands them to those who handle them.
func (c *consumer[T]) read(s *allium.ChangeStream[T], queues []chan *slot[T]) error {
	defer func() { s.Close(c.work) }()
	seed := maphash.MakeSeed()
	for {
		e := &slot[T]{done: make(chan struct{})}
		more := s.TryNext(c.work)
		err := s.Err()
		switch odd, isOdd := err.(*mongoerr.DecodeError); {
		case c.work.Err() != nil:
			return context.Cause(c.work)
		case more, isOdd:
			e.ev, e.odd = s.Current(), odd
		case mongoerr.IsTimeout(err): // the stream goes on
			again.Pause(c.work, c.Backoff)
			continue
		case err != nil:
			return err
		case s.ID() == 0: // it was invalidated
			behind, err := c.open(s.ResumeToken())
			if err != nil {
				return err
			}
			s.Close(c.work)
			s = behind
			continue
		default:
			c.idle(s.ResumeToken())
			continue
		}
		e.next = s.ResumeToken()
		if e.ev.OperationType == allium.ChangeInvalidate {
			c.idle(e.next)
			continue
		}
		e.at = time.Unix(int64(e.ev.ClusterTime.T), 0)
		key, alone := c.key(e)
		if alone && !c.settled() {
			return context.Cause(c.work)
		}
		select {
		case c.room <- struct{}{}:
		case <-c.work.Done():
			return context.Cause(c.work)
		}
		c.mu.Lock()
		c.slots = append(c.slots, e)
		c.mu.Unlock()
		queues[maphash.String(seed, key)%uint64(len(queues))] <- e // there is room for all
		if alone && !c.settled() {
			return context.Cause(c.work)
		}
	}
}

// key returns what an event has in common with those that are handled in order with it, and
// whether it concerns all.
func (c *consumer[T]) key(e *slot[T]) (key string, alone bool) {
	id := e.ev.DocumentKey.Lookup("_id")
	if id.IsZero() {
		return "", true
	}
	if c.Key != nil && e.odd == nil {
		return c.Key(e.ev), false
	}
	// What does not decode has a key that nobody can tell: it is only put aside, but in its turn.
	return e.ev.Namespace.String() + "\x00" + string(rune(id.Type)) + string(id.Value), c.Key != nil
}

// settled waits until all events have been handled.
func (c *consumer[T]) settled() bool {
	for {
		c.mu.Lock()
		var first *slot[T] // it goes as soon as it is done
		if len(c.slots) > 0 {
			first = c.slots[0]
		}
		c.mu.Unlock()
		if first == nil {
			return c.work.Err() == nil
		}
		select {
		case <-first.done:
		case <-c.work.Done():
			return false
		}
	}
}

// idle notes a position behind all events so far.
func (c *consumer[T]) idle(position bson.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.slots); n > 0 {
		c.slots[n-1].next = position
		return
	}
	c.position = position
}

// finish handles an event, whatever it takes.
func (c *consumer[T]) finish(e *slot[T]) error {
	if c.work.Err() != nil {
		return nil
	}
	parked, err := c.handle(e)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(e.done)
	c.handled++
	if parked {
		c.parked++
	}
	for len(c.slots) > 0 && isClosed(c.slots[0].done) {
		c.position, c.news = c.slots[0].next, true
		c.slots = c.slots[1:]
	}
	<-c.room
	return nil
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (c *consumer[T]) handle(e *slot[T]) (parked bool, err error) {
	if e.odd != nil {
		return true, c.park(e.ev.ID, e.odd.Document, e.odd, 0)
	}
	n, err := c.attempts(func() error { return c.Handle(c.work, e.ev) })
	if err == nil || c.work.Err() != nil {
		return false, err
	}
	return true, c.park(e.ev.ID, e.ev.Raw, err, n)
}

// attempts calls f until it succeeds, the context ends, or f has failed often enough. It returns
// how often it was called.
func (c *consumer[T]) attempts(f func() error) (n int, err error) {
	for n = 1; ; n++ {
		err := flight.Apart(f)
		switch {
		case err == nil:
			return n, nil
		case c.work.Err() != nil:
			return n, context.Cause(c.work)
		case errors.Is(err, ErrRefused) || n == c.Attempts:
			return n, err
		}
		if !again.Pause(c.work, again.Backoff(c.Backoff, time.Minute, n)) {
			return n, context.Cause(c.work)
		}
	}
}

// park puts an event, or a document, aside.
func (c *consumer[T]) park(id, event bson.Raw, reason error, attempts int) error {
	if c.Park == nil {
		if !errors.Is(reason, ErrRefused) {
			reason = fmt.Errorf("%w: %w", ErrRefused, reason)
		}
		return final{fmt.Errorf("%w, and there is no collection to park it in", reason)}
	}
	p := Parked{Event: event, Reason: reason.Error(), Attempts: attempts, At: time.Now()}
	p.ID.Name, p.ID.Event = c.Name, id
	coll := settled.Collection[bson.Raw](c.Park)
	for n := 1; ; n++ {
		change := bson.D{{Key: "$setOnInsert", Value: bson.D{
			{Key: "event", Value: p.Event}, {Key: "cut", Value: p.Cut}, {Key: "reason", Value: p.Reason},
			{Key: "attempts", Value: p.Attempts}, {Key: "at", Value: p.At}}}}
		_, err := coll.UpdateOne(c.work, bson.D{{Key: "_id", Value: p.ID}}, change, allium.UpdateOptions{Upsert: true})
		switch {
		case err == nil || errors.Is(err, mongoerr.ErrDuplicateKey):
			c.log.WarnContext(c.work, "stream parks an event", "reason", p.Reason, "attempts", attempts)
			return nil
		case c.work.Err() != nil:
			return context.Cause(c.work)
		case !again.Transient(err) && !p.Cut && len(event) > 1<<20: // it may be too large
			p.Cut, p.Event = true, without(event, "fullDocument", "fullDocumentBeforeChange", "updateDescription")
			continue
		case !again.Transient(err):
			return final{fmt.Errorf("park an event: %w", err)}
		}
		if !again.Pause(c.work, again.Backoff(c.Backoff, 10*time.Second, n)) {
			return context.Cause(c.work)
		}
	}
}

// without returns a document without some fields.
func without(doc bson.Raw, fields ...string) bson.Raw {
	start, b := bson.BeginDocument(nil)
next:
	for name, v := range doc.All() {
		for _, f := range fields {
			if name == f {
				continue next
			}
		}
		b = bson.AppendRawValue(b, name, v)
	}
	return bson.EndDocument(b, start)
}

// keep stores the position from time to time.
func (c *consumer[T]) keep() error {
	for n := 1; again.Pause(c.work, c.StoreEvery); n++ {
		if err := c.save(c.work, n%10 == 0); err != nil && !again.Transient(err) {
			return err
		}
	}
	return nil
}

// save stores the position if events were handled or, with idle, if it has moved at all.
func (c *consumer[T]) save(ctx context.Context, idle bool) error {
	c.mu.Lock()
	position, news := c.position, c.news
	p := Progress{Pending: len(c.slots), Handled: c.handled - c.parked, Parked: c.parked, Token: c.place.token}
	if len(c.slots) > 0 {
		p.Lag = max(0, time.Since(c.slots[0].at))
	}
	c.news = false
	c.mu.Unlock()
	if c.Observe != nil {
		c.Observe(p)
	}
	if position == nil || !news && !idle {
		return nil
	}
	err := c.place.store(ctx, position)
	if err != nil && news {
		c.mu.Lock()
		c.news = true
		c.mu.Unlock()
	}
	return err
}
