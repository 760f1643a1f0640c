// told: UpdateOneModel.SetFilter has no counterpart
package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func init() {
	add("bulk/in a loop", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		var models []mongo.WriteModel
		for i := range 3 {
			model := mongo.NewUpdateOneModel()
			model.SetFilter(bson.M{"_id": i}).SetUpdate(bson.M{"$set": bson.M{"n": i}}).SetUpsert(true)
			models = append(models, model)
		}
		res, err := c.BulkWrite(ctx, models)
		check(err)
		fmt.Println(res.UpsertedCount, res.UpsertedIDs[1])
	})
}
