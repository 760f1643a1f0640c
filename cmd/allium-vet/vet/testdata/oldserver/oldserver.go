// Package oldserver runs on server 5.0.
package oldserver

import (
	"context"

	"allium"
	"allium/bson"
)

func aggregate(ctx context.Context, c *allium.UntypedCollection) {
	c.Aggregate(ctx, bson.A{
		bson.M{"$densify": bson.M{"field": "a"}},                                                   // want `stage \$densify is not in server 5.0: servers have it since 5.1`
		bson.M{"$setWindowFields": bson.M{"output": bson.M{"r": bson.M{"$rank": bson.M{}}}}},       // is in 5.0
		bson.M{"$group": bson.M{"_id": "$a", "n": bson.M{"$maxN": bson.M{"n": 3, "input": "$b"}}}}, // want `accumulator \$maxN is not in server 5.0`
		bson.M{"$set": bson.M{"id": bson.M{"$toUUID": "$b"}}},                                      // want `operator of expressions \$toUUID is not in server 5.0: servers have it since 8.0`
		bson.M{"$match": bson.M{"a": bson.M{"$gt": 1}}},
	})
}
