package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func init() {
	add("bulk/all kinds", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		var none []string
		models := []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(item{ID: 10}),
			mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 1}).SetUpdate(bson.M{"$set": bson.M{"tags": none}}),
			mongo.NewUpdateManyModel().SetFilter(bson.M{"_id": bson.M{"$gt": 1}}).SetUpdate(bson.M{"$inc": bson.M{"count": 1}}),
			mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 77}).SetUpdate(bson.M{"$set": bson.M{"x": 1}}).SetUpsert(true),
			mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": 2}).SetReplacement(item{ID: 2, Name: "r"}),
			mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 3}),
			mongo.NewDeleteManyModel().SetFilter(bson.M{"_id": 99}),
		}
		res, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
		check(err)
		fmt.Println(res.InsertedCount, res.MatchedCount, res.ModifiedCount, res.DeletedCount, res.UpsertedCount, len(res.UpsertedIDs))
		for i, id := range res.UpsertedIDs {
			fmt.Printf("%T %d %v\n", i, i, id)
		}
		n, err := c.CountDocuments(ctx, bson.M{"tags": bson.M{"$type": 10}})
		fmt.Println(n, err)
	})
	add("bulk/unordered errors", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		res, err := c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}), mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 50}), mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2}),
		}, options.BulkWrite().SetOrdered(false))
		fmt.Println(res.InsertedCount)
		if be, ok := err.(mongo.BulkWriteException); ok {
			for _, e := range be.WriteErrors {
				fmt.Println(e.Index, e.Code)
			}
		}
	})
	add("bulk/insert many of a type", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		res, err := c.InsertMany(ctx, []interface{}{item{ID: 5}, &item{ID: 6}, bson.M{"_id": 7}})
		check(err)
		fmt.Println(len(res.InsertedIDs), res.InsertedIDs[0], res.InsertedIDs[2])
		last := res.InsertedIDs[len(res.InsertedIDs)-1]
		fmt.Println(last)
		for i, id := range res.InsertedIDs {
			fmt.Println(i, id)
		}
	})
	add("bulk/array filters and collation", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		_, err := c.InsertOne(ctx, bson.M{"_id": 1, "name": "ANNA", "grades": bson.A{80, 95, 100}})
		check(err)
		res, err := c.UpdateOne(ctx, bson.M{"name": "anna"}, bson.M{"$set": bson.M{"x": 1}}, updateCollated(&options.Collation{Locale: "en", Strength: 2}))
		check(err)
		fmt.Println(res.MatchedCount)
	})
}
