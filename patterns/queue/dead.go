package queue

import (
	"context"
	"iter"
	"time"

	"allium"
	"allium/bson"
	"allium/patterns/internal/settled"
)

// Dead is a message that is handed out no more.
type Dead struct {
	// ID is the message's.
	ID string `bson:"_id"`
	// Payload is what was sent, as it is stored: it may be what does not decode.
	Payload bson.RawValue `bson:"payload"`
	// Reason is why the last attempt has failed, cut at 4096 bytes.
	Reason string `bson:"reason"`
	// Attempts is how often it was taken.
	Attempts int `bson:"attempts"`
	// Sent is when it was sent, by the server's clock.
	Sent time.Time `bson:"sent"`
}

// Dead returns the dead messages, in the order in which they were last due.
func (q *Queue[T]) Dead(ctx context.Context) iter.Seq2[Dead, error] {
	return settled.Collection[Dead](q.bare).Query(ctx, bson.D{{Key: "state", Value: dead}},
		allium.FindOptions{Sort: bson.D{{Key: "due", Value: 1}}})
}

// Revive hands out dead messages again, as if they had not been taken yet: those with these IDs,
// or all without any. It returns how many there were.
func (q *Queue[T]) Revive(ctx context.Context, ids ...string) (int64, error) {
	filter := bson.D{{Key: "state", Value: dead}}
	if len(ids) > 0 {
		filter = append(filter, bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}})
	}
	res, err := q.bare.UpdateMany(ctx, filter, bson.A{bson.D{{Key: "$set", Value: bson.D{
		{Key: "state", Value: live}, {Key: "due", Value: "$$NOW"}, {Key: "attempts", Value: 0}}}}})
	return res.ModifiedCount, err
}

// Stats is what a queue has.
type Stats struct {
	// Due are messages that can be taken now, Delayed those that come later, and Taken those that
	// somebody has.
	Due     int64 `bson:"due"`
	Delayed int64 `bson:"delayed"`
	Taken   int64 `bson:"taken"`
	// Dead are those that are handed out no more.
	Dead int64 `bson:"dead"`
	// Late is for how long the message has been due that has been for the longest.
	Late time.Duration `bson:"-"`
}

// Stats counts the messages: it reads all of them.
func (q *Queue[T]) Stats(ctx context.Context) (Stats, error) {
	is := func(op string, a, b any) bson.D { return bson.D{{Key: op, Value: bson.A{a, b}}} }
	count := func(conditions ...any) bson.D {
		return bson.D{{Key: "$sum", Value: choose(bson.D{{Key: "$and", Value: bson.A(conditions)}}, 1, 0)}}
	}
	alive, due, later, locked := is("$eq", "$state", live), is("$lte", "$due", "$$NOW"), is("$gt", "$due", "$$NOW"),
		is("$ne", "$lock", "")
	late := choose(bson.D{{Key: "$and", Value: bson.A{alive, due}}}, is("$subtract", "$$NOW", "$due"), int64(0))
	type counts struct {
		Stats `bson:",inline"`
		Late  int64 `bson:"late"`
	}
	cur, err := settled.Collection[counts](q.bare).Aggregate(ctx, bson.A{bson.D{{Key: "$group", Value: bson.D{
		{Key: "_id", Value: nil},
		{Key: "due", Value: count(alive, due)}, {Key: "delayed", Value: count(alive, later, is("$eq", "$lock", ""))},
		{Key: "taken", Value: count(alive, later, locked)}, {Key: "dead", Value: count(is("$eq", "$state", dead))},
		{Key: "late", Value: bson.D{{Key: "$max", Value: late}}},
	}}}})
	if err != nil {
		return Stats{}, err
	}
	list, err := cur.All(ctx)
	if err != nil || len(list) == 0 {
		return Stats{}, err
	}
	s := list[0].Stats
	s.Late = time.Duration(list[0].Late) * time.Millisecond
	return s, nil
}
