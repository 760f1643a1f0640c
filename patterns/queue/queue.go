// Package queue hands work to programs of which several copies run: a message is sent, one copy
// takes it, and it is gone when that copy says that it is done. A copy that dies, hangs or fails
// leaves it to another one.
//
//	q := queue.Of[Mail](db.Collection("mails"))
//	err := q.Ensure(ctx) // once: the index
//	id, err := q.Send(ctx, Mail{To: "ada@example.com"})
//
//	err = q.Run(ctx, func(ctx context.Context, m *queue.Message[Mail]) error {
//		return send(ctx, m.Payload)
//	})
//
// A message is a document in a collection of the queue's own. All times are the server's: clocks
// of the programs do not matter, as long as they run equally fast.
//
// # What it promises
//
//   - A message whose Send has succeeded is handled at least once: a handler returned nil for it,
//     or it is among the dead ones, with the reason.
//   - While a copy has a message, no other one gets it, until Visibility has passed since the copy
//     took or extended it. Run extends it as long as the handler works, and ends the handler's
//     context before another copy can have the message.
//   - A copy whose time has passed cannot say that the message is done once another copy has taken
//     it: each take has a lock of its own, and the methods of an outdated one return ErrLost.
//   - A message that Attempts takes have not brought to an end is dead: it stays in the collection,
//     and is handed out no more. A handler that kills its process is not met for ever.
//
// Exactly once is what Message.Done in a transaction gives: what the transaction writes and the end
// of the message are there together or not at all. Send in a transaction is an outbox.
//
// # What it does not
//
// Messages are taken in the order in which they are due, but handled beside each other, and one
// that has failed comes later: package stream keeps the order of each key. There are no
// priorities; urgent work has a queue of its own. A collection that is sharded cannot be a queue.
//
// It needs MongoDB 4.2 or newer.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/settled"
)

var (
	// ErrEmpty is returned by TryTake if no message is due.
	ErrEmpty = errors.New("queue has no message that is due")
	// ErrLost is returned by the methods of a message that was taken by somebody else since, or is
	// gone. It is the cause of the end of a handler's context if the message could not be extended.
	ErrLost = errors.New("message is lost")
	// ErrDuplicate is returned by Send if the queue has a message with this ID, dead or not.
	ErrDuplicate = errors.New("message is in the queue already")
	// ErrRefused, in the error of a handler, makes the message dead at once: see Refuse.
	ErrRefused = errors.New("message is refused")
)

// Refuse returns an error for a handler to return, which makes the message dead without further
// attempts.
func Refuse(reason error) error { return fmt.Errorf("%w: %w", ErrRefused, reason) }

// Options are the options of Of. All programs that use a queue should have the same.
type Options struct {
	// Visibility is how long a message that was taken is hidden from others, unless it is extended.
	// Zero: 30 seconds. It is at least 10 milliseconds.
	Visibility time.Duration
	// Attempts is how often a message is taken before it is dead. Zero: 10. Negative: for ever.
	Attempts int
	// Backoff is how long a message is hidden after its first failure. It doubles with each, up to
	// MaxBackoff, and half of it is by chance. Zero: a second.
	Backoff time.Duration
	// MaxBackoff bounds Backoff. Zero: an hour.
	MaxBackoff time.Duration
	// Poll is how often somebody who waits for a message asks for one where there are no change
	// streams, as on standalone servers, and a tenth as often where there are. Zero: a second.
	Poll time.Duration
}

// A Queue is a collection whose documents are messages with a payload of type T. It is safe for
// concurrent use.
type Queue[T any] struct {
	coll  *allium.Collection[document[T]]
	bare  *allium.Collection[bson.Raw]
	fresh *allium.Collection[bson.Raw] // reads what the primary has now: whether there is work
	opts  Options
}

// document is a message as it is stored. What was sent for the first time or was given back has
// no lock; what was taken has one, and is due when its time is up.
type document[T any] struct {
	ID       string    `bson:"_id"`
	State    string    `bson:"state"`
	Due      time.Time `bson:"due"`
	Lock     string    `bson:"lock"`
	Attempts int       `bson:"attempts"`
	Sent     time.Time `bson:"sent"`
	Reason   string    `bson:"reason"`
	Payload  T         `bson:"payload"`
}

// The states of a message.
const (
	live = "live" // to be handled, also while somebody has it
	dead = "dead"
)

// Of returns the queue in a collection. Payloads are encoded as the collection's options say.
func Of[T any](coll allium.AnyCollection, opts ...Options) *Queue[T] {
	o := option.Merge(opts)
	for _, d := range []struct {
		v     *time.Duration
		usual time.Duration
	}{{&o.Visibility, 30 * time.Second}, {&o.Backoff, time.Second}, {&o.MaxBackoff, time.Hour},
		{&o.Poll, time.Second}} {
		if *d.v <= 0 {
			*d.v = d.usual
		}
	}
	o.Visibility = max(o.Visibility, 10*time.Millisecond)
	if o.Attempts == 0 {
		o.Attempts = 10
	}
	bare := settled.Collection[bson.Raw](coll)
	return &Queue[T]{settled.Values[document[T]](coll), bare,
		bare.With(allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{}}), o}
}

// Index describes the index that a queue needs, for programs that declare theirs.
func Index() allium.IndexModel {
	return allium.IndexModel{Keys: bson.D{{Key: "state", Value: 1}, {Key: "due", Value: 1}}}
}

// Ensure creates the queue's index, and the collection with it, if they are not there.
func (q *Queue[T]) Ensure(ctx context.Context) error {
	_, err := q.bare.CreateIndex(ctx, Index())
	return err
}

// SendOptions are the options of Send.
type SendOptions struct {
	// ID is the message's. A message with the ID of one that is in the queue is not sent. Empty: a
	// new one.
	ID string
	// Delay is how long the message is hidden at first.
	Delay time.Duration
}

// Send puts a message into the queue, and returns its ID. In a transaction it is sent when that
// commits.
//
// An error that leaves open whether the message was sent, such as that of a connection, is no harm
// if Send is called again with the same ID: it is ErrDuplicate then, as long as nobody has handled
// the message.
func (q *Queue[T]) Send(ctx context.Context, payload T, opts ...SendOptions) (id string, err error) {
	o := option.Merge(opts)
	if o.ID == "" {
		o.ID = bson.NewObjectID().Hex()
	}
	message := bson.D{
		{Key: "_id", Value: "$_id"}, {Key: "state", Value: live}, {Key: "due", Value: fromNow(o.Delay)},
		{Key: "lock", Value: ""},
		{Key: "attempts", Value: 0}, {Key: "sent", Value: "$$NOW"}, {Key: "reason", Value: ""},
		{Key: "payload", Value: bson.D{{Key: "$literal", Value: payload}}},
	}
	isNew := bson.D{{Key: "$eq", Value: bson.A{bson.D{{Key: "$type", Value: "$state"}}, "missing"}}}
	for {
		res, err := q.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: o.ID}}, replace(isNew, message, "$$ROOT"),
			allium.UpdateOptions{Upsert: true})
		switch {
		case errors.Is(err, mongoerr.ErrDuplicateKey) && !mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction):
			continue // two sent it at once: now it is there
		case err != nil:
			return o.ID, err
		case res.UpsertedID == nil:
			return o.ID, fmt.Errorf("%w: %q", ErrDuplicate, o.ID)
		}
		return o.ID, nil
	}
}

// fromNow is an expression for a time.
func fromNow(d time.Duration) bson.D {
	return bson.D{{Key: "$add", Value: bson.A{"$$NOW", d.Milliseconds()}}}
}

// replace is an update that replaces the document with one of two.
func replace(condition, then, otherwise any) bson.A {
	return bson.A{bson.D{{Key: "$replaceWith", Value: choose(condition, then, otherwise)}}}
}

func choose(condition, then, otherwise any) bson.D {
	return bson.D{{Key: "$cond", Value: bson.A{condition, then, otherwise}}}
}

// changed is the document with other values in some fields.
func changed(fields bson.D) bson.D {
	return bson.D{{Key: "$mergeObjects", Value: bson.A{"$$ROOT", fields}}}
}
