// told: bson.D prints otherwise
package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func init() {
	add("told/text", func(ctx context.Context, db *mongo.Database) {
		fmt.Println(bson.D{{Key: "a", Value: int32(1)}})
		fmt.Printf("%v\n", bson.M{"a": int64(1)})
		s := fmt.Sprint(bson.A{1, "x"})
		fmt.Println(s)
	})
}
