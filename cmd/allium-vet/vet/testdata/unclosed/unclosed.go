package unclosed

import (
	"context"
	"errors"

	"allium"
	"allium/bson"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func bad(ctx context.Context, c *allium.Collection[bson.D], o *mongo.Collection, client *mongo.Client) error {
	cur, err := c.Find(ctx, bson.D{}) // want `cur is not closed where the function ends in line 20`
	if err != nil {
		return err
	}
	for cur.Next(ctx) {
		if len(cur.Current()) == 0 {
			return errors.New("empty")
		}
	}
	first, err := o.Aggregate(ctx, mongo.Pipeline{}) // want `first is not closed`
	if err != nil {
		return err
	}
	if first.Next(ctx) {
		var d bson.D
		return first.Decode(&d)
	}
	stream, err := o.Watch(ctx, mongo.Pipeline{}) // want `stream is not closed`
	if err != nil {
		return err
	}
	for stream.Next(ctx) {
	}
	sess, err := client.StartSession() // want `sess is not closed`
	if err != nil {
		return err
	}
	if err := sess.StartTransaction(); err != nil {
		return err
	}
	defer sess.EndSession(ctx)
	return nil
}

func early(ctx context.Context, o *mongo.Collection, stop bool) error {
	cur, err := o.Find(ctx, bson.D{}) // want `cur is not closed`
	if err != nil {
		return err
	}
	if err = cur.Err(); err != nil {
		return err
	}
	if cur.RemainingBatchLength() == 0 {
		return nil
	}
	return cur.Close(ctx)
}

func some(ctx context.Context, o *mongo.Collection) error {
	cur, err := o.Find(ctx, bson.D{}) // want `cur is not closed`
	if err != nil {
		return err
	}
	for n := 0; n < 10 && cur.Next(ctx); n++ {
	}
	return cur.Err()
}

type keeper struct{ cur *mongo.Cursor }

func good(ctx context.Context, c *allium.Collection[bson.D], o *mongo.Collection, client *mongo.Client, k *keeper) (*mongo.Cursor, error) {
	cur, err := c.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	for _, err := range cur.Seq(ctx) {
		if err != nil {
			return nil, err
		}
	}
	all, err := o.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	var docs []bson.D
	if err := all.All(ctx, &docs); err != nil {
		return nil, err
	}
	loop, err := o.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	for loop.Next(ctx) {
		var d bson.D
		loop.Decode(&d)
	}
	if err := loop.Err(); err != nil {
		return nil, err
	}
	deferred, err := o.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = deferred.Close(ctx) }()
	if deferred.Next(ctx) {
		return nil, nil
	}
	total, err := o.Aggregate(ctx, []bson.M{{"$match": bson.M{"a": 1}}, {"$group": bson.M{"_id": nil, "n": bson.M{"$sum": 1}}}})
	if err != nil {
		return nil, err
	}
	if !total.Next(ctx) {
		return nil, total.Err()
	}
	not, err := o.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	if !not.Next(ctx) || !(not.Next(ctx)) {
		return nil, not.Err()
	}
	for i := 0; i < 3 && not.Next(ctx); i++ {
	}
	not.Close(ctx)
	one, err := o.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	if ok := one.Next(ctx); !ok {
		return nil, one.Err()
	}
	kept, err := o.Find(ctx, bson.D{})
	k.cur = kept
	if err != nil {
		return nil, err
	}
	handed, err := o.Find(ctx, bson.D{})
	handed.Next(ctx)
	return handed, err
}

func session(ctx context.Context, client *mongo.Client) error {
	sess, err := client.StartSession()
	if err != nil {
		return err
	}
	defer sess.EndSession(ctx)
	_, err = sess.WithTransaction(ctx, func(context.Context) (any, error) { return nil, nil })
	return err
}
