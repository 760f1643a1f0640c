package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/patterns/internal/again"
)

// A Message is one that this program has taken. It has it until Visibility has passed, unless it
// extends it, or Run does. Its methods are safe for concurrent use.
type Message[T any] struct {
	// ID is the message's, as Send has returned it.
	ID string
	// Payload is what was sent.
	Payload T
	// Attempt says how often the message was taken, from 1.
	Attempt int
	// Sent is when it was sent, by the server's clock.
	Sent time.Time
	// Reason is why the attempt before has failed, as far as that was told.
	Reason string

	queue *Queue[T]
	lock  string
	taken time.Time   // when the command was sent, by this program's clock
	ended atomic.Bool // Done, Retry or Bury was called
}

// TryTake takes the message that has been due for the longest. It returns ErrEmpty if none is due.
// A message whose payload does not decode as T is dead.
func (q *Queue[T]) TryTake(ctx context.Context) (*Message[T], error) {
	m, _, err := q.take(ctx)
	return m, err
}

// Take waits until it gets a message. The error is the cause of the context's end, or that of the
// server.
func (q *Queue[T]) Take(ctx context.Context) (*Message[T], error) {
	var b *bell
	defer func() { b.close() }()
	for {
		m, next, err := q.take(ctx)
		if !errors.Is(err, ErrEmpty) {
			return m, err
		}
		if b == nil {
			b = q.listen(ctx)
		}
		if !q.wait(ctx, b, next) {
			return nil, context.Cause(ctx)
		}
	}
}

// take takes a message. With ErrEmpty it returns how long it is until one is due, 0 if there is
// none.
func (q *Queue[T]) take(ctx context.Context) (m *Message[T], next time.Duration, err error) {
	has := func(doc bson.Raw, lock string) bool { s, _ := doc.Lookup("lock").StringValue(); return s == lock }
	for {
		lock, sent := bson.NewObjectID().Hex(), time.Now()
		// The server takes the first, not the first that is due: that is an index's end, however
		// many are due later.
		d, err := q.coll.FindOneAndUpdate(ctx, bson.D{{Key: "state", Value: live}}, q.taking(lock),
			allium.FindOneAndUpdateOptions{Sort: bson.D{{Key: "due", Value: 1}}, ReturnNew: true})
		odd, isOdd := errors.AsType[*mongoerr.DecodeError](err)
		switch {
		case isOdd && has(odd.Document, lock):
			id, _ := odd.Document.Lookup("_id").StringValue()
			m := &Message[T]{ID: id, queue: q, lock: lock}
			if err := m.Bury(ctx, odd); err != nil && !errors.Is(err, ErrLost) {
				return nil, 0, err
			}
			continue
		case isOdd, errors.Is(err, mongoerr.ErrNoDocuments):
		case err != nil:
			return nil, 0, err
		case d.Lock == lock:
			return &Message[T]{ID: d.ID, Payload: d.Payload, Attempt: d.Attempts, Sent: d.Sent, Reason: d.Reason,
				queue: q, lock: lock, taken: sent}, 0, nil
		case d.State == dead:
			continue
		}
		// It was not due, or somebody took it at the same time.
		wait, some, err := q.next(ctx)
		switch {
		case err != nil:
			return nil, 0, err
		case !some:
			return nil, 0, ErrEmpty
		case wait > 0:
			return nil, wait, ErrEmpty
		}
	}
}

// taking is the update that takes a message if it is due, and buries it if it was taken too often.
func (q *Queue[T]) taking(lock string) bson.A {
	isDue := bson.D{{Key: "$lte", Value: bson.A{"$due", "$$NOW"}}}
	taken := changed(bson.D{{Key: "lock", Value: lock}, {Key: "due", Value: fromNow(q.opts.Visibility)},
		{Key: "attempts", Value: bson.D{{Key: "$add", Value: bson.A{"$attempts", 1}}}}})
	if q.opts.Attempts > 0 {
		isSpent := bson.D{{Key: "$gte", Value: bson.A{"$attempts", q.opts.Attempts}}}
		const unknown = "nobody has said that it is done, or why not"
		silent := choose(bson.D{{Key: "$eq", Value: bson.A{"$reason", ""}}}, unknown,
			bson.D{{Key: "$concat", Value: bson.A{unknown + "; before: ", "$reason"}}})
		taken = choose(isSpent, changed(bson.D{{Key: "state", Value: dead}, {Key: "lock", Value: ""},
			{Key: "reason", Value: silent}}), taken)
	}
	return replace(isDue, taken, "$$ROOT")
}

// next returns how long it is until a message is due, and whether there is one.
func (q *Queue[T]) next(ctx context.Context) (wait time.Duration, some bool, err error) {
	cur, err := q.fresh.Aggregate(ctx, bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "state", Value: live}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "due", Value: 1}}}},
		bson.D{{Key: "$limit", Value: 1}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "wait",
			Value: bson.D{{Key: "$subtract", Value: bson.A{"$due", "$$NOW"}}}}}}},
	})
	if err != nil {
		return 0, false, err
	}
	list, err := cur.All(ctx)
	if err != nil || len(list) == 0 {
		return 0, false, err
	}
	ms, _ := list[0].Lookup("wait").AsInt64()
	return time.Duration(ms) * time.Millisecond, true, nil
}

// Done says that the message was handled: it is deleted. In a transaction it is deleted when that
// commits, which it does only if nobody else has taken the message; such a transaction must be
// shorter than Visibility, since the message is not extended any more.
func (m *Message[T]) Done(ctx context.Context) error {
	m.ended.Store(true)
	res, err := m.queue.bare.DeleteOne(ctx, m.own())
	return m.outcome(res.DeletedCount, err)
}

// Retry gives the message back: it is hidden for a while that grows with each attempt, and is dead
// if this one was the last. reason may be nil.
func (m *Message[T]) Retry(ctx context.Context, reason error) error {
	o := m.queue.opts
	if o.Attempts > 0 && m.Attempt >= o.Attempts {
		return m.Bury(ctx, reason)
	}
	return m.end(ctx, bson.D{{Key: "due", Value: fromNow(again.Backoff(o.Backoff, o.MaxBackoff, m.Attempt))}}, reason)
}

// Release gives the message back as it was taken, for others to take at once. The attempt does not
// count.
func (m *Message[T]) Release(ctx context.Context) error {
	return m.end(ctx, bson.D{{Key: "due", Value: "$$NOW"},
		{Key: "attempts", Value: bson.D{{Key: "$subtract", Value: bson.A{"$attempts", 1}}}}}, nil)
}

// Bury makes the message dead: it stays, with the reason, and is handed out no more.
func (m *Message[T]) Bury(ctx context.Context, reason error) error {
	return m.end(ctx, bson.D{{Key: "state", Value: dead}}, reason)
}

// Extend hides the message from others for Visibility from now on. Run does it by itself.
func (m *Message[T]) Extend(ctx context.Context) error {
	return m.update(ctx, bson.D{{Key: "due", Value: fromNow(m.queue.opts.Visibility)}})
}

func (m *Message[T]) end(ctx context.Context, fields bson.D, reason error) error {
	m.ended.Store(true)
	if reason != nil {
		fields = append(fields, bson.E{Key: "reason", Value: bson.D{{Key: "$literal", Value: short(reason.Error())}}})
	}
	return m.update(ctx, append(fields, bson.E{Key: "lock", Value: ""}))
}

// longest is how many bytes of a reason are stored.
const longest = 4096

func short(reason string) string {
	if len(reason) <= longest {
		return strings.ToValidUTF8(reason, "?")
	}
	return strings.ToValidUTF8(reason[:longest], "") + " …"
}

func (m *Message[T]) update(ctx context.Context, fields bson.D) error {
	res, err := m.queue.bare.UpdateOne(ctx, m.own(), bson.A{bson.D{{Key: "$set", Value: fields}}})
	return m.outcome(res.MatchedCount, err)
}

func (m *Message[T]) outcome(n int64, err error) error {
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %q", ErrLost, m.ID)
	}
	return err
}

// own selects the message as long as nobody else has taken it.
func (m *Message[T]) own() bson.D {
	return bson.D{{Key: "_id", Value: m.ID}, {Key: "lock", Value: m.lock}}
}
