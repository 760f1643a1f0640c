// told: methods with pointer receivers
package main

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type stamped struct {
	At *time.Time `bson:"at,omitempty"`
}

type amount struct {
	N big.Int `bson:"n"`
}

type pointed struct{ v int }

func (p *pointed) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.M{"v": p.v}) }

func init() {
	add("told/types", func(ctx context.Context, db *mongo.Database) {
		for _, v := range []any{stamped{At: new(time.Time)}, amount{}, map[string]pointed{"p": {1}}} {
			data, err := bson.Marshal(v)
			fmt.Println(len(data), err)
		}
	})
}
