// told: documents that Next has returned
package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func init() {
	add("told/all after next", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		cur.Next(ctx)
		var list []item
		check(cur.All(ctx, &list))
		fmt.Println(len(list))
	})
}
