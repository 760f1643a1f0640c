package batch_test

import (
	"context"
	"fmt"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/stats/batch"
)

func Example() {
	ctx := context.Background()
	d, err := mongotest.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	coll := allium.CollectionOf[bson.D](client.Database("app"), "events")
	for i := range 10 {
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(3))})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cur.Close(ctx)
	b := batch.Of(cur)
	fmt.Println("left of the first batch:", b.Left())
	b.SetSize(5)
	b.SetMaxAwaitTime(0 * time.Second)
	if err := b.SetComment("the rest"); err != nil {
		fmt.Println(err)
		return
	}
	for cur.Next(ctx) {
		fmt.Print(b.Left(), " ")
	}
	fmt.Println(cur.Err())
	// Output:
	// left of the first batch: 3
	// 2 1 0 4 3 2 1 0 1 0 <nil>
}
