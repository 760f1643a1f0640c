package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func init() {
	add("watch/events", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		stream, err := c.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
		check(err)
		defer stream.Close(ctx)
		fill(ctx, c)
		_, err = c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"name": "new"}})
		check(err)
		_, err = c.DeleteOne(ctx, bson.M{"_id": 2})
		check(err)
		for range 5 {
			if !stream.Next(ctx) {
				fmt.Println("end", stream.Err())
				break
			}
			var ev struct {
				OperationType string
				FullDocument  *item
				DocumentKey   bson.M
				NS            struct{ Coll string }
			}
			check(stream.Decode(&ev))
			fmt.Println(ev.OperationType, ev.DocumentKey["_id"], ev.FullDocument != nil, ev.NS.Coll, stream.Current.Lookup("operationType").StringValue() == ev.OperationType)
		}
		fmt.Println(stream.ResumeToken() != nil, stream.TryNext(ctx), stream.Err())
	})
	add("watch/resume", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		stream, err := c.Watch(ctx, mongo.Pipeline{})
		check(err)
		fill(ctx, c)
		stream.Next(ctx)
		token := stream.ResumeToken()
		check(stream.Close(ctx))
		stream, err = c.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}}, options.ChangeStream().SetResumeAfter(token))
		check(err)
		stream.Next(ctx)
		var m bson.M
		check(stream.Decode(&m))
		key := stream.Current.Lookup("documentKey", "_id")
		n, _ := key.AsInt64OK()
		fmt.Println(m["operationType"], n, shape(m["fullDocument"])[:1])
		check(stream.Close(ctx))
	})
	add("watch/database and client", func(ctx context.Context, db *mongo.Database) {
		a, err := db.Watch(ctx, mongo.Pipeline{})
		check(err)
		b, err := db.Client().Watch(ctx, bson.A{})
		check(err)
		fill(ctx, db.Collection("items"))
		for _, s := range []*mongo.ChangeStream{a, b} {
			var ev bson.M
			fmt.Println(s.Next(ctx))
			check(s.Decode(&ev))
			fmt.Println(ev["operationType"])
			check(s.Close(ctx))
		}
	})
}
