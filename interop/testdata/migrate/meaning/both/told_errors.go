// told: The texts of errors are others
package main

import (
	"context"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func init() {
	add("told/error texts", func(ctx context.Context, db *mongo.Database) {
		err := db.Collection("none").FindOne(ctx, bson.D{}).Err()
		fmt.Println(strings.Contains(err.Error(), "no documents in result"))
	})
}
