package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func init() {
	add("cursors/all into nil without documents", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		var list []item
		check(cur.All(ctx, &list))
		fmt.Println(list == nil, asJSON(list))
		cur, err = c.Find(ctx, bson.D{})
		check(err)
		empty := []item{}
		check(cur.All(ctx, &empty))
		fmt.Println(empty == nil, asJSON(empty))
		cur, err = c.Find(ctx, bson.D{})
		check(err)
		full := []item{{ID: 1}, {ID: 2}}
		check(cur.All(ctx, &full))
		fmt.Println(len(full))
	})
	add("cursors/all into what there is", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertMany(ctx, []any{bson.M{"_id": 1, "name": "a"}, bson.M{"_id": 2}})
		check(err)
		cur, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		check(err)
		list := []item{{Name: "x", Count: 5}, {Name: "y", Count: 6}, {Name: "z", Count: 7}}
		check(cur.All(ctx, &list))
		fmt.Println(asJSON(list))
	})
	add("cursors/all into any", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		for _, into := range []any{new([]item), new([]bson.M), new([]bson.D), new([]bson.Raw), new([]*item)} {
			cur, err := c.Find(ctx, bson.D{})
			check(err)
			fmt.Println(cur.All(ctx, into))
		}
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		var no item
		fmt.Println(cur.All(ctx, &no) != nil, cur.All(ctx, no) != nil)
	})
	add("cursors/all pointers", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		cur, err := c.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 1}}}}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		check(err)
		var list []*item
		check(cur.All(ctx, &list))
		for _, it := range list {
			fmt.Println(it.ID, it.Tags == nil, len(it.Tags))
		}
	})
	add("cursors/next", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		cur, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2).SetSort(bson.D{{Key: "_id", Value: 1}}))
		check(err)
		defer cur.Close(ctx)
		var it item
		for cur.Next(ctx) {
			check(cur.Decode(&it))
			fmt.Println(it.ID, it.Name, it.Count, cur.Current.Lookup("name").StringValue())
		}
		fmt.Println(cur.Err(), cur.ID())
	})
	add("cursors/decode that fails", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertMany(ctx, []any{bson.M{"_id": 1, "name": "a"}, bson.M{"_id": 2, "name": 5}, bson.M{"_id": 3, "name": "c"}})
		check(err)
		cur, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		check(err)
		for cur.Next(ctx) {
			var it item
			if err := cur.Decode(&it); err != nil {
				fmt.Println("skipped", cur.Current.Lookup("_id").Int32())
				continue
			}
			fmt.Println(it.Name)
		}
		fmt.Println(cur.Err())
		cur, err = c.Find(ctx, bson.D{})
		check(err)
		list := []item{{Name: "before"}}
		fmt.Println(cur.All(ctx, &list) != nil, len(list))
	})
	add("cursors/try next", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		n := 0
		for cur.TryNext(ctx) {
			n++
		}
		fmt.Println(n, cur.Err())
		check(cur.Close(ctx))
		fmt.Println(cur.Next(ctx))
	})
	add("cursors/aggregate", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		cur, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "count", Value: bson.D{{Key: "$exists", Value: true}}}}}}, {{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$count"}}}}}}})
		check(err)
		var list []bson.M
		check(cur.All(ctx, &list))
		fmt.Println(len(list), list[0]["sum"], list[0]["_id"])
		cur, err = c.Aggregate(ctx, []bson.M{{"$sort": bson.M{"_id": -1}}, {"$limit": 1}}, options.Aggregate().SetAllowDiskUse(true))
		check(err)
		for cur.Next(ctx) {
			var it item
			check(cur.Decode(&it))
			fmt.Println(it.ID)
		}
		cur, err = c.Aggregate(ctx, bson.A{bson.D{{Key: "$count", Value: "n"}}})
		check(err)
		var counts []struct{ N int }
		check(cur.All(ctx, &counts))
		fmt.Println(counts)
	})
	add("cursors/command", func(ctx context.Context, db *mongo.Database) {
		fill(ctx, db.Collection("items"))
		cur, err := db.RunCommandCursor(ctx, bson.D{{Key: "find", Value: "items"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 2}}}})
		check(err)
		var list []item
		check(cur.All(ctx, &list))
		fmt.Println(asJSON(list))
	})
	add("cursors/raw", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		raw, err := c.FindOne(ctx, bson.M{"_id": 1}).Raw()
		check(err)
		fmt.Println(raw.Lookup("name").StringValue(), raw.Lookup("tags", "0").StringValue(), raw.Lookup("none").IsZero(), raw.Validate())
		s, ok := raw.Lookup("count").StringValueOK()
		fmt.Println(s, ok)
		v, err := raw.LookupErr("none")
		fmt.Println(v.IsZero(), err != nil)
		var tags []string
		check(raw.Lookup("tags").Unmarshal(&tags))
		fmt.Println(tags)
		func() {
			defer func() { fmt.Println(recover() != nil) }()
			_ = raw.Lookup("count").StringValue()
		}()
		n, ok := raw.Lookup("count").AsInt64OK()
		fmt.Println(n, ok)
	})
}
