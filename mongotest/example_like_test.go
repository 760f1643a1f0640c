package mongotest_test

import (
	"context"
	"fmt"

	"allium"
	"allium/bson"
	"allium/mongoerr"
	"allium/mongotest"
)

func ExampleLike() {
	fmt.Println(mongotest.Likes())
	d, err := mongotest.Open(mongotest.ReplicaSet(1), mongotest.Like("documentdb"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Stop()
	ctx := context.Background()
	client, err := allium.Open(d.URI(), allium.ClientOptions{RetryWrites: new(false)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	orders := client.Database("shop").Collection("orders")
	_, err = orders.Aggregate(ctx, bson.A{bson.D{{Key: "$sortByCount", Value: "$city"}}})
	fmt.Println(mongoerr.HasCode(err, 304))
	_, err = orders.Aggregate(ctx, bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$city"}}}}})
	fmt.Println(err)
	// Output:
	// [atlas-flex atlas-m0 cosmosdb documentdb ferretdb]
	// true
	// <nil>
}
