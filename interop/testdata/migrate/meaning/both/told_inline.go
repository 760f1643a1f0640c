// told: inline
package main

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type inlined struct {
	X int            `bson:"x"`
	M map[string]any `bson:",inline"`
}

type hidden struct{ Y int }

type embedding struct {
	hidden `bson:",inline"`
	Z      int
}

func init() {
	add("told/inline", func(ctx context.Context, db *mongo.Database) {
		data, err := bson.Marshal(bson.D{{Key: "y", Value: bson.D{{Key: "in", Value: 1}}}})
		check(err)
		var e inlined
		check(bson.Unmarshal(data, &e))
		fmt.Println(shape(e.M["y"]))
		data, err = bson.Marshal(embedding{hidden{1}, 2})
		check(err)
		fmt.Println(len(data))
	})
}
